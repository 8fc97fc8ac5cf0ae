package embed_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func wire(t *testing.T, d *embed.Data) *node.Node {
	t.Helper()
	targets, err := target.New(target.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n, err := d.Node(t.Context(), node.Config{Targets: targets, Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func open(t *testing.T, folder string) *embed.Data {
	t.Helper()
	d, err := embed.Open(t.Context(), folder, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func shut(t *testing.T, d *embed.Data) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFolderHasOneProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	first := open(t, folder)
	name := wire(t, first).Name
	if _, err := embed.Open(t.Context(), folder, slog.New(slog.DiscardHandler)); !errors.Is(err, embed.ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	shut(t, first)
	second := open(t, folder)
	if again := wire(t, second).Name; again == name {
		t.Errorf("two starts are both called %s", name)
	}
	shut(t, second)
}

func TestAFailedOpenGivesTheFolderBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	blobs := embed.BlobFolder(folder)
	if err := os.WriteFile(blobs, nil, 0o600); err != nil { // a file where the folder is to be
		t.Fatal(err)
	}
	if _, err := embed.Open(t.Context(), folder, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("opened without a place for blobs")
	}
	if err := os.Remove(blobs); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, folder))
}

func TestARestoreThatWasCutShortIsNoData(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, embed.Unfinished), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := embed.Open(t.Context(), folder, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("opened: %v", err)
	}
}

func TestMemoryRunsAndEnds(t *testing.T) {
	d := open(t, "")
	n := wire(t, d)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	if err := n.Ready(ctx); err != nil {
		t.Errorf("not ready: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	shut(t, d)
}
