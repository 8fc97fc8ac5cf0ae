package upgrade

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// folder is an open data folder.
type folder struct {
	store *pebble.Store
	blobs *blob.Bucket
}

func openFolder(t *testing.T, dir string) *folder {
	t.Helper()
	s, err := pebble.Open(pebble.Config{Dir: filepath.Join(dir, "store"), Now: func() time.Time { return time.Unix(0, 0) }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	where := url.URL{Scheme: "file", Path: filepath.Join(dir, "blobs")}
	b, err := bloblocal.Open(t.Context(), where.String())
	if err != nil {
		t.Fatal(err)
	}
	return &folder{s, b}
}

func (f *folder) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(f.blobs.Close(), f.store.Close()); err != nil {
		t.Fatal(err)
	}
}

// life is a node over a store, until stop.
type life struct {
	*node.Node
	t    *testing.T
	stop func()
}

func live(t *testing.T, on store.Store, blobs *blob.Bucket, name string) *life {
	t.Helper()
	handlers := new(target.Registry)
	if err := handlers.Register("f", handle); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n, err := node.New(t.Context(), node.Config{Store: on, Blobs: blobs, Targets: targets, Metrics: metrics.New(), Name: name, Log: slog.New(slog.DiscardHandler),
		Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})},
		Now:    time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	l := &life{Node: n, t: t}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// handle does what the jobs' names say.
func handle(ctx context.Context, call target.Call) (target.Result, error) {
	switch name := call.Job; {
	case strings.HasPrefix(name, "slow"):
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
		return target.Result{}, ctx.Err()
	case strings.HasPrefix(name, "failed"):
		return target.Result{}, target.Permanent(errors.New("no"))
	case name == "dead", name == "retrying":
		return target.Result{}, errors.New("not now")
	case name == "large":
		_, _ = call.Log.Write([]byte("a line of a log\n"))
		return target.Result{Body: []byte(strings.Repeat("result ", 500)), ContentType: "text/plain"}, nil
	}
	return target.Result{Body: []byte(`"small"`), ContentType: "application/json"}, nil
}

func (l *life) put(name string, every time.Duration, change ...func(*job.Definition)) {
	l.t.Helper()
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}, Retention: schedule.Duration(90 * 24 * time.Hour)}
	if every > 0 {
		def.Schedule = &schedule.Spec{Every: schedule.Duration(every)}
	}
	for _, c := range change {
		c(&def)
	}
	if _, _, err := l.Control.Put(l.t.Context(), "default", name, def, control.Match{}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) trigger(name string, req control.Request) run.ID {
	l.t.Helper()
	r, _, err := l.Control.Trigger(l.t.Context(), "default", name, req)
	if err != nil {
		l.t.Fatal(err)
	}
	return r.ID
}

// runs gives the state of every run of every job.
func (l *life) runs() map[string]string {
	l.t.Helper()
	found := map[string]string{}
	jobs, _, err := l.Control.Jobs(l.t.Context(), "default", control.JobFilter{}, "", control.MaxLimit)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, j := range jobs {
		for cursor := ""; ; {
			runs, next, err := l.Control.Runs(l.t.Context(), "default", control.RunFilter{Job: j.Name}, cursor, control.MaxLimit)
			if err != nil {
				l.t.Fatal(err)
			}
			for _, r := range runs {
				found[r.ID.String()] = r.Stage().String()
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return found
}
