package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

// The program as it is, with a night a second: it writes its report, stops, and has kept what became of it.
func TestItWritesItsReports(t *testing.T) {
	folder := t.TempDir()
	orders, data := filepath.Join(folder, "orders.csv"), filepath.Join(folder, "data")
	if err := os.WriteFile(orders, []byte("1,1250\n2,999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	said, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-data", data, "-orders", orders, "-reports", filepath.Join(folder, "reports"), "-cron", "* * * * * *"}, stdout)
		ended <- err
		stdout.CloseWithError(io.EOF)
	}()
	file, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatalf("it said nothing: %v, %v", err, <-ended)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // until it has stopped
	text, err := os.ReadFile(strings.TrimSpace(file))
	if want := `{"orders":2,"cents":2249}` + "\n"; err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v, want %q", file, text, err, want)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("it ended with %v", err)
	}

	b, err := belfry.Open(t.Context(), "pebble:"+data)
	if err != nil {
		t.Fatal(err)
	}
	succeeded := 0
	for r, err := range b.Runs(t.Context(), "nightly-report", belfry.Succeeded) {
		if err != nil {
			t.Fatal(err)
		}
		if r, err = b.Run(t.Context(), r.ID); err != nil || string(r.Result) != `{"orders":2,"cents":2249}` {
			t.Errorf("kept %+v, %v", r, err)
		}
		succeeded++
	}
	if succeeded == 0 {
		t.Error("no run is kept")
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
