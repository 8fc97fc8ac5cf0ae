// Package retention holds that what Belfry keeps is bounded by its jobs' retention, however long it runs.
package retention

import (
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

var month = flag.Int("month", 2, "days of a month; 30 takes ten minutes")

// unsynced is the host's file system without the waiting: nothing here is about a power cut.
type unsynced struct{ vfs.FS }

func (u unsynced) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := u.FS.Create(name, c)
	return unsyncedFile{f}, err
}

func (u unsynced) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := u.FS.ReuseForWrite(from, to, c)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) Sync() error                { return nil }
func (unsyncedFile) SyncData() error            { return nil }
func (unsyncedFile) SyncTo(int64) (bool, error) { return false, nil }

// year is a data folder on which a scheduler runs, with a restart each day.
type year struct {
	t     *testing.T
	dir   string
	store *pebble.Store
	blobs *blob.Bucket
	node  *node.Node
	stop  func()
}

func (y *year) open(name string) {
	y.t.Helper()
	var running atomic.Pointer[node.Node]
	swept := func() time.Time { // as the program has it
		if n := running.Load(); n != nil {
			return n.Swept()
		}
		return time.Unix(0, 0)
	}
	var err error
	if y.store, err = pebble.Open(pebble.Config{Dir: filepath.Join(y.dir, "store"), FS: unsynced{vfs.Default}, Now: swept, SweepEvery: 10 * time.Minute, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		y.t.Fatal(err)
	}
	where := url.URL{Scheme: "file", Path: filepath.Join(y.dir, "blobs")}
	if y.blobs, err = bloblocal.Open(y.t.Context(), where.String()); err != nil {
		y.t.Fatal(err)
	}
	handlers := new(target.Registry)
	if err := handlers.Register("f", func(_ context.Context, call target.Call) (target.Result, error) {
		switch call.Job {
		case "fails":
			return target.Result{}, target.Permanent(errors.New("no"))
		case "large":
			return target.Result{Body: []byte(strings.Repeat(call.Run, 400))}, nil
		}
		return target.Result{Body: []byte(call.Run)}, nil
	}); err != nil {
		y.t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		y.t.Fatal(err)
	}
	began := time.Now()
	y.node, err = node.New(y.t.Context(), node.Config{Store: y.store, Blobs: y.blobs, Targets: targets, Metrics: metrics.New(), Name: name,
		Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})}, CleansBySwept: true,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64,
		Every: 10 * time.Minute, LookAhead: 14 * time.Minute}) // the fewer ticks, the sooner the years go by
	if err != nil {
		y.t.Fatal(err)
	}
	running.Store(y.node)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- y.node.Run(ctx) }()
	y.stop = func() {
		cancel()
		if err := errors.Join(<-done, y.blobs.Close(), y.store.Close()); err != nil {
			y.t.Error(err)
		}
	}
}

func (y *year) put(name string, every time.Duration) {
	y.t.Helper()
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}, Retention: schedule.Duration(24 * time.Hour),
		Schedule: &schedule.Spec{Every: schedule.Duration(every)}}
	if _, _, err := y.node.Control.Put(y.t.Context(), "default", name, def, control.Match{}); err != nil {
		y.t.Fatal(err)
	}
}

const never = 1000 * 24 * time.Hour

// held is what a folder holds.
type held struct {
	items map[string]int           // by kind
	goes  map[string]time.Duration // by kind: in how long the last of them goes
	blobs int
	bytes int64 // on the disk
}

func (y *year) holds() held {
	y.t.Helper()
	h := held{items: map[string]int{}, goes: map[string]time.Duration{}}
	if err := y.store.Export(y.t.Context(), func(item store.Item) error {
		kind, _, _ := strings.Cut(item.Partition, "#")
		h.items[kind]++
		if item.Expires.IsZero() && kind != "run" { // one that has not ended has no end yet
			h.goes[kind] = never
		}
		h.goes[kind] = max(h.goes[kind], time.Until(item.Expires))
		return nil
	}); err != nil {
		y.t.Fatal(err)
	}
	return h
}

func (y *year) onDisk(h *held) {
	y.t.Helper()
	if err := filepath.WalkDir(y.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		h.bytes += info.Size()
		if strings.HasPrefix(path, filepath.Join(y.dir, "blobs")) {
			h.blobs++
		}
		return nil
	}); err != nil {
		y.t.Fatal(err)
	}
}

// TestP11_TheDataFolderIsBoundedByRetention runs jobs at a steady rate for three months. What it holds of each kind after the third
// is what it held after the second, and so is its size on the disk. What is kept for longer than a short month still grows after
// the second; of that it shows that each item has its end.
func TestP11_TheDataFolderIsBoundedByRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &year{t: t, dir: t.TempDir()}
		var after [3]held
		for m := range 3 {
			for d := range *month {
				y.open(time.Now().Format(time.RFC3339))
				if m+d == 0 {
					y.put("works", 2*time.Minute)
					y.put("large", time.Hour)
					y.put("fails", 20*time.Minute)
				}
				for range 20 { // requests, too
					if _, _, err := y.node.Control.Trigger(t.Context(), "default", "works", control.Request{Key: crand.Text()}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(24 * time.Hour)
				if d == *month-1 {
					after[m] = y.holds()
				}
				y.stop()
			}
			y.onDisk(&after[m])
			t.Logf("after month %d: %d bytes, %d blobs, items %v", m+1, after[m].bytes, after[m].blobs, after[m].items)
		}
		second, third := after[1], after[2]
		for kind, n := range third.items {
			long := kind == "ran" || kind == "idem" || kind == "sum" // 60 days beyond the run's retention, 7 days, and 8 and 400
			if n > second.items[kind]+second.items[kind]/10+10 && (!long || *month >= 30) {
				t.Errorf("%d items of kind %s after the second month, %d after the third", second.items[kind], kind, n)
			}
		}
		if third.blobs > second.blobs+second.blobs/10+10 || third.blobs < 20 {
			t.Errorf("%d blobs after the second month, %d after the third", second.blobs, third.blobs)
		}
		if third.bytes > second.bytes*3/2 {
			t.Errorf("%d bytes after the second month, %d after the third", second.bytes, third.bytes)
		}
		// A day's, those that wait for the last sweep, and what is kept for a while beyond its end.
		for kind, most := range map[string]int{"run": 1100, "due": 200, "dead": 90} {
			if n := third.items[kind]; n == 0 || n > most {
				t.Errorf("%d items of kind %s are kept, want no more than %d", n, kind, most)
			}
		}
		for kind, left := range third.goes {
			if most := map[string]time.Duration{"job": never, "meta": never, "shard": never, "sum": stats.KeepHours}[kind]; left > max(most, 62*24*time.Hour) {
				t.Errorf("an item of kind %s stays for %s more", kind, left)
			}
		}
	})
}
