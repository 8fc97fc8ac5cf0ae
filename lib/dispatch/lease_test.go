package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// leased is a dispatcher whose clock a test moves, and a run of it that a worker holds.
type leased struct {
	*dispatch.Dispatcher
	now     time.Time
	elapsed time.Duration
	run     run.Run
}

func newLeased(t *testing.T, hook faulty.Hook) *leased {
	t.Helper()
	over := faulty.New(memory.New(memory.Config{Now: time.Now}), hook)
	l := &leased{now: time.UnixMilli(1_800_000_000_000)}
	var id atomic.Uint64
	var err error
	if l.Dispatcher, err = dispatch.New(dispatch.Config{
		Store: over, Book: job.NewBook(over, job.Compile), Queues: map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{})},
		Layout: timer.Layout{Shards: 1}, Now: func() time.Time { return l.now }, Elapsed: func() time.Duration { return l.elapsed },
		NewID: func() uint64 { return id.Add(1) },
	}); err != nil {
		t.Fatal(err)
	}
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "none"}}}.WithDefaults()
	definition, err := job.Job{Tenant: "default", Name: "report", Generation: 1, Def: def}.Put(l.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Store.Write(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	l.run, err = l.PutRun(t.Context(), run.Run{ID: run.RequestID("report", l.now.UnixMilli(), 1), Tenant: "default", State: run.Queued, Generation: 1,
		Trigger: run.ByRequest, Priority: queue.Normal}, job.Callbacks{}, l.now.UnixMilli())
	if err == nil {
		l.run, err = l.PutRun(t.Context(), l.run.Start("worker", l.now.UnixMilli(), l.Lease), job.Callbacks{}, l.now.UnixMilli())
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pass lets time go by, as the host's clock shows it and as it is.
func (l *leased) pass(shown, elapsed time.Duration) {
	l.now, l.elapsed = l.now.Add(shown), l.elapsed+elapsed
}

// check looks after the run, as a pass does.
func (l *leased) check(t *testing.T) (dispatch.Repairs, run.Run) {
	t.Helper()
	now := l.now.UnixMilli()
	repairs, err := l.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000}, []run.Run{l.run}, nil)
	if err != nil {
		t.Fatal(err)
	}
	standing, err := l.ReadRuns(t.Context(), []run.Run{l.run})
	if err != nil {
		t.Fatal(err)
	}
	return repairs, standing[0]
}

// The clock was ahead when a worker took its lease, and is set right: a dead worker's run does not wait until that time comes.
func TestP4_Fault08_a_lease_of_the_future_ends(t *testing.T) {
	l := newLeased(t, nil)
	if _, err := l.Clock(); err != nil {
		t.Fatal(err)
	}
	l.pass(-3*time.Hour, time.Second)
	if repairs, r := l.check(t); repairs.Expired != 0 || r.State != run.Running {
		t.Fatalf("right after the step: %s, %d leases ended; a living worker has had no time to renew", r.State, repairs.Expired)
	}
	l.pass(l.Lease, l.Lease)
	if repairs, r := l.check(t); repairs.Expired != 1 || r.State != run.Queued || r.Crashes != 1 {
		t.Errorf("a lease after the step: %s after %d crashes, %d leases ended; want it queued again", r.State, r.Crashes, repairs.Expired)
	}
}

// A worker finishes between the reading of its run by a check and the end of its lease: what it wrote stands.
func TestP6_P7_Fault37_a_check_loses_to_the_worker(t *testing.T) {
	var l *leased
	finished := false
	l = newLeased(t, func(ctx context.Context, c faulty.Call) faulty.Fault {
		for _, op := range c.Ops {
			if l == nil || finished || op.Key != l.run.ID.Key("default") || op.If != store.Version(l.run.Version) {
				continue
			}
			finished = true
			now := l.now.UnixMilli()
			if _, err := l.PutRun(ctx, l.run.Succeed(now, run.Ref{Inline: []byte("1")}, "", run.Limits{Retention: time.Hour}), job.Callbacks{}, now); err != nil {
				t.Error(err)
			}
		}
		return faulty.Fault{}
	})
	l.pass(l.Lease+time.Second, l.Lease+time.Second)
	repairs, r := l.check(t)
	if !finished || repairs.Expired != 0 || r.State != run.Succeeded || r.Crashes != 0 || r.Version != l.run.Version+1 {
		t.Errorf("the run is %s in version %d after %d crashes, %d leases ended; want what its worker wrote", r.State, r.Version, r.Crashes, repairs.Expired)
	}
}
