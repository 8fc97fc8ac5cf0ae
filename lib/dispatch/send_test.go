package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// sent is a queue that keeps what it is sent.
type sent struct {
	queue.Queue
	got []queue.Outgoing
}

func (s *sent) Send(_ context.Context, _ queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	s.got = append(s.got, batch...)
	return make([]error, len(batch)), nil
}

// A message is held back until its run is due by the store's time, whatever the host's clock says within what is allowed.
func TestFault07_AMessageWaitsByTheStoresTime(t *testing.T) {
	now := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	for _, behind := range []time.Duration{-1500 * time.Millisecond, 0, 1500 * time.Millisecond} {
		s := faulty.New(memory.New(memory.Config{}), nil)
		s.SetSkew(behind)
		q := &sent{}
		d, err := dispatch.New(dispatch.Config{Store: s, Book: job.NewBook(s, job.Compile), Queues: map[string]queue.Queue{"default": q},
			Layout: timer.Layout{Shards: 1}, Now: func() time.Time { return now.Add(-behind) }, Elapsed: func() time.Duration { return 0 },
			NewID: func() uint64 { return 1 }})
		if err != nil {
			t.Fatal(err)
		}
		due := now.Add(10 * time.Second)
		out := dispatch.Outgoing{Run: run.Run{ID: run.FireID("j", due.UnixMilli()), Tenant: "acme", Version: 1, State: run.Queued, Priority: queue.Normal},
			Queue: "default", Due: due.UnixMilli()}
		if unsent, err := d.Send(t.Context(), []dispatch.Outgoing{out}); err != nil || len(unsent) > 0 {
			t.Fatal(unsent, err)
		}
		if len(q.got) != 1 || q.got[0].Delay != 10*time.Second {
			t.Errorf("on a host %s behind: %d messages, held back for %s, want 10s", behind, len(q.got), q.got[0].Delay)
		}
	}
}
