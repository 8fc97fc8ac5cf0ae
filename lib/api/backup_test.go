package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// backupServer serves backups that write gives.
func backupServer(t *testing.T, write func(context.Context, io.Writer) error) string {
	t.Helper()
	handler, err := New(Config{
		Control: &control.Service{}, Gate: openGate(t), Now: time.Now, Version: "1", Backup: write,
		Ready:   func(context.Context) []wire.Check { return nil },
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/v1/backup"
}

func TestBackupsAreStreamedOneAtATime(t *testing.T) {
	next := make(chan string)
	url := backupServer(t, func(_ context.Context, out io.Writer) error {
		for text := range next {
			if _, err := io.WriteString(out, text); err != nil {
				return err
			}
			out.(*patient).control.Flush()
		}
		return errors.New("broke off")
	})
	go func() { next <- "first " }()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	piece := make([]byte, 6)
	if _, err := io.ReadFull(answer.Body, piece); err != nil || string(piece) != "first " || answer.Header.Get("Content-Type") != backupType {
		t.Fatalf("the first piece is %q, %v, of type %s", piece, err, answer.Header.Get("Content-Type"))
	}
	busy, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	busy.Body.Close()
	if busy.StatusCode != http.StatusTooManyRequests || busy.Header.Get("Retry-After") == "" {
		t.Errorf("a second one at the same time gets %d, Retry-After %q", busy.StatusCode, busy.Header.Get("Retry-After"))
	}
	next <- "second"
	close(next)
	if rest, err := io.ReadAll(answer.Body); err != nil || string(rest) != "second" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}
