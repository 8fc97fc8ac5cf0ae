package dispatch_test

import (
	"context"
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

// A check and a request timer in one page name the same run: it is claimed once, and nothing is held up.
func TestP4_P10_Fault20_a_run_named_twice_in_a_batch_is_claimed_once(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	over := memory.New(memory.Config{Now: time.Now})
	local := queuelocal.New(queuelocal.Config{Now: time.Now})
	id := uint64(0)
	d, err := dispatch.New(dispatch.Config{
		Store: over, Book: job.NewBook(over, job.Compile), Queues: map[string]queue.Queue{job.DefaultQueue: local},
		Layout: timer.Layout{Shards: 1}, Now: func() time.Time { return now }, Elapsed: func() time.Duration { return 0 },
		NewID: func() uint64 { id++; return id },
	})
	if err != nil {
		t.Fatal(err)
	}
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "none"}}}.WithDefaults()
	job, err := job.Job{Tenant: "default", Name: "report", Generation: 1, Def: def}.Put(d.NewID())
	if err != nil {
		t.Fatal(err)
	}
	asked := run.Run{ID: run.RequestID("report", now.UnixMilli(), 1), Tenant: "default", State: run.Scheduled, Trigger: run.ByRequest, Priority: queue.Normal}
	put, err := asked.Item(d.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := over.Write(ctx, job, put); err != nil {
		t.Fatal(err)
	}
	b := dispatch.Bounds{Now: now.UnixMilli(), Horizon: now.UnixMilli() + 2000, Reach: now.UnixMilli() + 2000, Resume: now.UnixMilli() + 4000}
	if _, err := d.Check(ctx, 1, b, []run.Run{asked, asked}, nil); err != nil {
		t.Fatal(err)
	}
	items, err := over.Get(ctx, asked.ID.Key("default"))
	if err != nil {
		t.Fatal(err)
	}
	if stands, _, err := run.FromItem("default", asked.ID, items[0]); err != nil || stands.State != run.Queued || stands.Version != 2 {
		t.Errorf("stands as %s in version %d (%v), want queued by one write", stands.State, stands.Version, err)
	}
	messages, err := local.Receive(ctx, queue.MaxBatch, 0, time.Second)
	if err != nil || len(messages) == 0 {
		t.Errorf("%d messages sent (%v), want one at least", len(messages), err)
	}
}

// A request stopped between its timer and its run, and its job was deleted: the run is put as it was asked for, and then cancelled. What
// was to be written of it before is not in it.
func TestP4_Fault24_a_request_that_is_made_up_for_is_put_as_it_was_asked(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	var put []run.Run
	asked := run.Run{ID: run.RequestID("report", now.UnixMilli(), 1), Tenant: "default", State: run.Scheduled, Trigger: run.ByRequest, Priority: queue.Normal}
	over := faulty.New(memory.New(memory.Config{Now: time.Now}), func(_ context.Context, c faulty.Call) faulty.Fault {
		for _, op := range c.Ops {
			if op.Key == asked.ID.Key("default") && op.If == store.Absent {
				r, _, err := run.FromItem("default", asked.ID, store.Item{Key: op.Key, Version: 1, Value: op.Value})
				if err != nil {
					t.Error(err)
				}
				put = append(put, r)
			}
		}
		return faulty.Fault{}
	})
	id := uint64(0)
	d, err := dispatch.New(dispatch.Config{
		Store: over, Book: job.NewBook(over, job.Compile), Queues: map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{Now: time.Now})},
		Layout: timer.Layout{Shards: 1}, Now: func() time.Time { return now }, Elapsed: func() time.Duration { return 0 },
		NewID: func() uint64 { id++; return id },
	})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := job.Job{Tenant: "default", Name: "report", Generation: 1, Deleted: true}.Put(d.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := over.Write(ctx, gone); err != nil {
		t.Fatal(err)
	}
	b := dispatch.Bounds{Now: now.UnixMilli(), Horizon: now.UnixMilli() + 2000, Reach: now.UnixMilli() + 2000, Resume: now.UnixMilli() + 4000}
	if _, err := d.Requests(ctx, "default", 1, b, []run.Run{asked}); err != nil {
		t.Fatal(err)
	}
	if len(put) != 1 || put[0].State != run.Scheduled || put[0].Ended != 0 || put[0].Expires != 0 || put[0].Reason != "" {
		t.Errorf("put as %+v, want it as it was asked for", put)
	}
	items, err := over.Get(ctx, asked.ID.Key("default"))
	if err != nil {
		t.Fatal(err)
	}
	if stands, _, err := run.FromItem("default", asked.ID, items[0]); err != nil || stands.State != run.Cancelled {
		t.Errorf("stands as %s (%v), want cancelled", stands.State, err)
	}
	if got := d.Metrics.Runs.Value("cancelled"); got != 1 {
		t.Errorf("%d runs counted as cancelled, want 1", got)
	}
}
