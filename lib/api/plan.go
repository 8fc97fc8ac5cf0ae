package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// retryPlanning is after how long a tenant may ask for a plan again while one of its own is being made.
const retryPlanning = time.Second

// Planner answers what something would come to. Its work is bounded by what it takes, and it ends early with the context.
type Planner interface {
	// Retry gives joined *invalid.Errors, by the fields of a job, of what is wrong with a policy.
	Retry(context.Context, wire.RetryQuestion) (wire.RetryPlan, error)
}

type retryQuestion struct {
	Attempts int               `query:"max_attempts" minimum:"1" maximum:"100" doc:"tries in all, the first included; 15 by default"`
	Initial  schedule.Duration `query:"initial" doc:"shortest wait between attempts; 1s by default"`
	Factor   float64           `query:"factor" minimum:"1" maximum:"10" doc:"factor by which each further wait grows; 2 by default"`
	Max      schedule.Duration `query:"max" doc:"longest wait between attempts; 1h by default, or initial where that is longer"`
	Duration schedule.Duration `query:"duration" zero:"allowed" doc:"how long each attempt takes until it fails; 0s by default"`
	Clients  int               `query:"clients" minimum:"1" maximum:"10000" doc:"how many fail together; 10000 by default"`
	Seed     uint64            `query:"seed" minimum:"1" doc:"seed of all chance: the same one gives the same answer; 1 by default"`
}

func (a *api) plans() {
	var alone planning
	register(a, operation{id: "plan-retry", method: http.MethodGet, path: "/v1/plan/retry", tag: "system", scope: access.Read,
		summary: "Say what a retry policy comes to: when each attempt begins, when it gives up, and how many clients come back at once; one plan of a tenant at a time",
		codes:   []control.Code{control.CodeBusy}},
		func(ctx context.Context, p *retryQuestion, in input[noBody]) (*answer[wire.RetryPlan], error) {
			leave, err := alone.enter(in.tenant)
			if err != nil {
				return nil, err
			}
			defer leave()
			plan, err := a.Planner.Retry(ctx, wire.RetryQuestion{
				Retry: job.Retry{MaxAttempts: p.Attempts, Initial: p.Initial, Factor: p.Factor, Max: p.Max},
				Takes: p.Duration, Clients: p.Clients, Seed: p.Seed,
			})
			if err != nil {
				for _, name := range []string{"initial", "max"} {
					err = renamed(err, "retry."+name, name)
				}
				return nil, err
			}
			return &answer[wire.RetryPlan]{plan}, nil
		})
}

// planning lets one plan of each tenant be made at a time.
type planning struct {
	lock    sync.Mutex
	tenants map[string]bool
}

func (p *planning) enter(tenant string) (leave func(), err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.tenants[tenant] {
		busy := newProblem(control.CodeBusy, "Another plan is being made for you. Try again when it is done, or use belfry plan, which needs no server.")
		busy.RetryAfter = schedule.Duration(retryPlanning)
		return nil, busy
	}
	if p.tenants == nil {
		p.tenants = map[string]bool{}
	}
	p.tenants[tenant] = true
	return func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		delete(p.tenants, tenant)
	}, nil
}
