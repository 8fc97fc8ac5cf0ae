package changes

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Store gives a store that tells the hub what was written to it.
func Store(s store.Store, h *Hub) store.Store { return &told{s, h} }

type told struct {
	store.Store
	hub *Hub
}

func (t *told) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	versions, err := t.Store.Write(ctx, ops...)
	if err == nil && t.hub.Listening() {
		for _, op := range ops {
			t.tell(op)
		}
	}
	return versions, err
}

func (t *told) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	verdicts, err := t.Store.WriteEach(ctx, ops...)
	if err == nil && t.hub.Listening() {
		for i, op := range ops {
			if verdicts[i].Err == nil {
				t.tell(op)
			}
		}
	}
	return verdicts, err
}

func (t *told) tell(op store.Op) {
	if op.Kind == store.Check {
		return
	}
	if tenant, names := Of(op.Key); len(names) > 0 {
		t.hub.Tell(tenant, names...)
	}
}

// Of names what changes, and for which tenant, where an item is written; nothing for items that no page shows.
func Of(k store.Key) (tenant string, names []string) {
	if tenant, name, ok := job.FromKey(k); ok {
		return tenant, []string{Jobs, JobTopic(name)}
	}
	if tenant, id, ok := run.IDFromKey(k); ok {
		if id.IsStep() {
			return tenant, []string{RunTopic(id.Whole().String())}
		}
		return tenant, []string{Runs, Queues, JobTopic(id.Job), RunTopic(id.String())}
	}
	if tenant, ok := run.DeadFromKey(k); ok {
		return tenant, []string{DeadLetters}
	}
	return "", nil
}
