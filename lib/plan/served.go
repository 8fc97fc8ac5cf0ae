package plan

import (
	"cmp"
	"context"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/plan/ordering"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Service answers what a server is asked, each within its bounds. Store is what plans of a stack take its adapter for.
type Service struct {
	retrying.Service
	queueing.Bounded

	Store Adapter
}

// Order gives joined *invalid.Errors, by the names of the API, of what is wrong with a question.
func (Service) Order(ctx context.Context, q wire.OrderQuestion) (wire.OrderPlan, error) {
	return ordering.Play(ctx, q)
}

// Once gives joined *invalid.Errors, by the names of the API, of what is wrong with a question.
func (Service) Once(ctx context.Context, q wire.OnceQuestion) (wire.OncePlan, error) {
	return simulate.DemonstrateOnce(ctx, q)
}

// What every plan is made with: files of this build, read once.
var (
	listed  = sync.OnceValue(cost.Listed)
	counted = sync.OnceValue(cost.Counted)
)

// Capacity gives joined *invalid.Errors, by the names of the API, of what is wrong with a question. It takes some milliseconds and no memory to
// speak of, whatever the load is.
func (s Service) Capacity(_ context.Context, q wire.CapacityQuestion) (wire.CapacityPlan, error) {
	l := Usual(listed())
	daily := q.PerDay != 0
	if daily == (q.PerSecond != 0) {
		if daily {
			return wire.CapacityPlan{}, invalid.Field("runs_per_day", Count(q.PerDay), "only one of runs_per_day and runs_per_second")
		}
		return wire.CapacityPlan{}, invalid.Missing("runs_per_day", "how many runs there are in a day, on average over a month; or in a second, by runs_per_second")
	}
	l.Schedules, l.Rate, l.OnDemand, l.Ahead, l.Retries = q.Schedules, q.PerSecond+q.PerDay/Day, q.OnDemand, q.Ahead, q.Retries
	l.Together = cmp.Or(q.Together, l.Together)
	l.Result, l.HotJob, l.Shards = q.Result, q.HotJob, q.Shards
	l.Peak = cmp.Or(q.Peak, l.Rate)
	l.Late, l.Duration, l.Retention = cmp.Or(q.Late.Std(), l.Late), cmp.Or(q.Duration.Std(), l.Duration), cmp.Or(q.Retention.Std(), l.Retention)
	l.Tenants, l.Priority = cmp.Or(q.Tenants, l.Tenants), cmp.Or(q.Priority, l.Priority)
	l.AtOnce, l.Payload, l.Helpers = given(q.AtOnce, l.AtOnce), given(q.Payload, l.Payload), given(q.Helpers, l.Helpers)
	if err := l.Check(caller(daily)); err != nil {
		return wire.CapacityPlan{}, err
	}
	return *Make(l, listed(), counted(), s.Store), nil
}

// given is what was said, or what is usual.
func given[T any](said *T, usual T) T {
	if said == nil {
		return usual
	}
	return *said
}
