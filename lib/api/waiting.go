package api

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// waiting tells why a run does not go on. What cannot be found out is left out: the run itself was found.
func (a *api) waiting(ctx context.Context, r run.Run) []wire.Waiting {
	if r.State.Ended() {
		return nil
	}
	standing, err := a.Control.Standing(ctx, r)
	return a.reasons(ctx, r.ID, r.Tenant, standing, err)
}

// stepWaiting tells that of a step.
func (a *api) stepWaiting(ctx context.Context, g control.Graph, one control.Step) []wire.Waiting {
	standing, err := a.Control.StepStanding(ctx, g, one)
	return a.reasons(ctx, g.Run.ID.At(one.Node.Path), g.Run.Tenant, standing, err)
}

// reasons are why a run or a step does not go on, by what was looked up, or what that failed of.
func (a *api) reasons(ctx context.Context, id run.ID, tenant string, standing control.Standing, err error) []wire.Waiting {
	if err != nil {
		a.Log.WarnContext(ctx, "a run is shown without the reasons for its wait", "run", id.String(), "error", err)
		return nil
	}
	if standing.Queued() {
		if standing.Pool, err = a.pool(ctx, tenant, standing.Def.Queue); err != nil {
			a.Log.WarnContext(ctx, "a run is shown without what waits in its queue", "run", id.String(), "error", err)
		}
	}
	why := standing.Why()
	shown := make([]wire.Waiting, len(why))
	for i, w := range why {
		shown[i] = wire.Waiting{Code: string(w.Code), Text: w.Text, Until: w.Until, Who: w.Who, Since: w.Since, Queue: w.Queue, Need: w.Need, Ticks: w.Ticks, Steps: w.Steps}
		if w.Ahead > 0 {
			ahead := int(w.Ahead)
			shown[i].Behind = &ahead
		}
		if l := w.Line; l != nil {
			shown[i].Gate, shown[i].Key, shown[i].Since, shown[i].Behind, shown[i].InTheWay = l.Gate, l.Key, instant(l.Since), &l.Behind, l.InTheWay
			shown[i].WaitUntil = instant(l.Until)
			shown[i].BlockedBy = blockedBy(l.Blocked)
		}
	}
	return shown
}

// pool is what the server sees of a queue, nil where the tenant may see nothing of it.
func (a *api) pool(ctx context.Context, tenant, name string) (*control.Pool, error) {
	queues, err := a.Queues(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if q.Name != name {
			continue
		}
		pool := &control.Pool{Ready: map[queue.Priority]int64{}, Alone: !q.Shared, Workers: q.Workers, Lacking: q.Lacking}
		for priority, depth := range q.Priorities {
			pool.Ready[queue.Priority(priority)] = depth.Ready
		}
		workers, err := a.Workers(ctx, tenant)
		for _, w := range workers {
			if w.Queue == name {
				pool.Places, pool.Taken = pool.Places+w.Concurrency, pool.Taken+w.Running
			}
		}
		return pool, err
	}
	return nil, nil
}
