package embed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func config(t *testing.T, data string) embed.Config {
	t.Helper()
	targets, err := target.New(target.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	return embed.Config{Data: data, Targets: targets, Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64}
}

func TestAFolderHasOneProcess(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first, err := embed.Open(t.Context(), config(t, data))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embed.Open(t.Context(), config(t, data)); !errors.Is(err, embed.ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := embed.Open(t.Context(), config(t, data))
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if second.Name == first.Name {
		t.Errorf("two starts are both called %s", first.Name)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFailedOpenGivesTheFolderBack(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	blobs := filepath.Join(data, "blobs")
	if err := os.WriteFile(blobs, nil, 0o600); err != nil { // a file where the folder is to be
		t.Fatal(err)
	}
	if _, err := embed.Open(t.Context(), config(t, data)); err == nil {
		t.Fatal("opened without a place for blobs")
	}
	if err := os.Remove(blobs); err != nil {
		t.Fatal(err)
	}
	p, err := embed.Open(t.Context(), config(t, data))
	if err != nil {
		t.Fatalf("after it was mended: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemoryRunsAndEnds(t *testing.T) {
	p, err := embed.Open(t.Context(), config(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Node.Run(ctx) }()
	if err := p.Node.Ready(ctx); err != nil {
		t.Errorf("not ready: %v", err)
	}
	stop()
	if err := errors.Join(<-done, p.Close()); err != nil {
		t.Error(err)
	}
}
