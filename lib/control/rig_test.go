package control_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// rig is a control plane over a store in memory, in virtual time, without ticks and workers.
type rig struct {
	*control.Service
	t     *testing.T
	hook  faulty.Hook // nil: no faults
	queue queue.Queue
}

// newIDs draws the same IDs in each test: they say in which partition a run lies.
func newIDs() func() uint64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(3, 5))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Uint64()
	}
}

func inBubble(t *testing.T, test func(t *testing.T, g *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ids := newIDs()
		g := &rig{t: t, queue: queuelocal.New(queuelocal.Config{Now: time.Now, Capacity: 5000})}
		s := faulty.New(memory.New(memory.Config{}), func(ctx context.Context, c faulty.Call) faulty.Fault {
			if g.hook == nil {
				return faulty.Fault{}
			}
			return g.hook(ctx, c)
		})
		layout, err := timer.Setup(t.Context(), s, 1, time.Now().UnixMilli(), ids)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		d, err := dispatch.New(dispatch.Config{Store: s, Book: job.NewBook(s, job.Compile), Queues: map[string]queue.Queue{"default": g.queue},
			Layout: layout, Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: ids})
		if err != nil {
			t.Fatal(err)
		}
		if g.Service, err = control.New(control.Config{Store: s, Blobs: blob.New(memblob.OpenBucket(nil)), Dispatch: d, Now: time.Now, NewID: ids, Can: func(string, target.Spec) error { return nil }}); err != nil {
			t.Fatal(err)
		}
		test(t, g)
	})
}

func definition(change ...func(*job.Definition)) job.Definition {
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}}
	for _, c := range change {
		c(&def)
	}
	return def
}

func (g *rig) put(tenant, name string, change ...func(*job.Definition)) job.Job {
	g.t.Helper()
	j, _, err := g.Put(g.t.Context(), tenant, name, definition(change...), control.Match{})
	if err != nil {
		g.t.Fatal(err)
	}
	return j
}

func (g *rig) trigger(tenant, name string, req control.Request) run.Run {
	g.t.Helper()
	r, _, err := g.Trigger(g.t.Context(), tenant, name, req)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// write writes a run as it is decided, over what stands.
func (g *rig) write(r run.Run, decide func(run.Run, int64) run.Run) run.Run {
	g.t.Helper()
	now := time.Now().UnixMilli()
	standing, err := g.Run(g.t.Context(), r.Tenant, r.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	next := decide(standing, now)
	edition, err := g.Dispatch.Book.Edition(g.t.Context(), next.Tenant, next.ID.Job, next.Generation)
	var on job.Callbacks
	if err == nil {
		on = edition.Def.On
	} else if !errors.Is(err, job.ErrNotFound) { // one that is not bound yet has no definition
		g.t.Fatal(err)
	}
	if next, err = g.Dispatch.PutRun(g.t.Context(), next, on, now); err != nil {
		g.t.Fatal(err)
	}
	return next
}

var limits = run.Limits{MaxFailures: 1, MaxCrashes: 3, Retention: 30 * 24 * time.Hour}

// fail starts a run and lets it fail for good.
func (g *rig) fail(r run.Run, message string) run.Run {
	g.t.Helper()
	g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
	return g.write(r, func(r run.Run, now int64) run.Run { return r.Fail(now, run.Failure{Error: message}, limits) })
}

func (g *rig) succeed(r run.Run) run.Run {
	g.t.Helper()
	g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
	return g.write(r, func(r run.Run, now int64) run.Run { return r.Succeed(now, run.Ref{}, "", limits) })
}

// refused checks the code of a refusal.
func refused(t *testing.T, err error, code control.Code) {
	t.Helper()
	var refusal *control.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code || refusal.Message == "" {
		t.Errorf("got %v, want a refusal with code %s", err, code)
	}
}

// all gives the runs of all pages of a listing, newest first. It holds the other order against it.
func (g *rig) all(tenant string, f control.RunFilter) []run.Run {
	g.t.Helper()
	newest := g.pages(tenant, f)
	f.Oldest = true
	oldest := g.pages(tenant, f)
	slices.Reverse(oldest)
	if same := func(a, b run.Run) bool { return a.ID == b.ID }; !slices.EqualFunc(oldest, newest, same) {
		g.t.Errorf("%+v: the oldest first, from behind, are %v, and the newest first %v", f, idsOf(oldest), idsOf(newest))
	}
	return newest
}

func idsOf(runs []run.Run) (ids []string) {
	for _, r := range runs {
		ids = append(ids, r.ID.String())
	}
	return ids
}

func (g *rig) pages(tenant string, f control.RunFilter) (all []run.Run) {
	g.t.Helper()
	for cursor := ""; ; {
		runs, next, err := g.Runs(g.t.Context(), tenant, f, cursor, 5)
		if err != nil {
			g.t.Fatal(err)
		}
		all = append(all, runs...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// list writes to the index as a sweep does.
func (g *rig) list(tenant string, listed ...run.Listing) {
	g.t.Helper()
	ops, err := run.Index(tenant, listed, 1)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, op := range ops {
		if _, err := g.Store.Write(g.t.Context(), op); err != nil {
			g.t.Fatal(err)
		}
	}
}

// unreadable replaces what stands under a key by a record of a newer version.
func (g *rig) unreadable(key store.Key) {
	g.t.Helper()
	if _, err := g.Store.Write(g.t.Context(), store.Op{Kind: store.Put, Key: key, Value: []byte{99}}); err != nil {
		g.t.Fatal(err)
	}
}

func everyHour() *schedule.Spec { return &schedule.Spec{Every: schedule.Duration(time.Hour)} }
