package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
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
	Attempts int     `query:"max_attempts" minimum:"1" maximum:"100" doc:"tries in all, the first included; 15 by default"`
	Initial  string  `query:"initial" maxLength:"64" pattern:"^(0|[0-9]+d([0-9]+(\\.[0-9]+)?(ms|s|m|h))*|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$" example:"1s" doc:"shortest wait between attempts; 1s by default"`
	Factor   float64 `query:"factor" minimum:"1" maximum:"10" doc:"how many times longer each further wait is; 2 by default"`
	Max      string  `query:"max" maxLength:"64" pattern:"^(0|[0-9]+d([0-9]+(\\.[0-9]+)?(ms|s|m|h))*|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$" example:"1h" doc:"longest wait between attempts; 1h by default, or initial where that is longer"`
	Duration string  `query:"duration" maxLength:"64" pattern:"^(0|[0-9]+d([0-9]+(\\.[0-9]+)?(ms|s|m|h))*|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$" example:"5s" doc:"how long each attempt takes until it fails; 0s by default"`
	Clients  int     `query:"clients" minimum:"1" maximum:"10000" doc:"how many fail together; 10000 by default"`
	Seed     uint64  `query:"seed" minimum:"1" doc:"of chance; the same seed gives the same answer; 1 by default"`
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
			asked, err := p.read()
			if err != nil {
				return nil, err
			}
			plan, err := a.Planner.Retry(ctx, asked)
			if err != nil {
				for _, name := range []string{"max_attempts", "initial", "factor", "max"} {
					err = renamed(err, "retry."+name, name)
				}
				return nil, err
			}
			return &answer[wire.RetryPlan]{plan}, nil
		})
}

func (p *retryQuestion) read() (wire.RetryQuestion, error) {
	q := wire.RetryQuestion{Retry: job.Retry{MaxAttempts: p.Attempts, Factor: p.Factor}, Clients: p.Clients, Seed: p.Seed}
	for _, d := range []struct {
		field, text string
		to          *schedule.Duration
	}{{"initial", p.Initial, &q.Retry.Initial}, {"max", p.Max, &q.Retry.Max}, {"duration", p.Duration, &q.Takes}} {
		if d.text == "" {
			continue
		}
		read, err := schedule.ParseDuration(d.text)
		if err != nil {
			return q, invalid.Field(d.field, d.text, "a duration such as 90s or 1h30m")
		}
		*d.to = read
	}
	return q, nil
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
