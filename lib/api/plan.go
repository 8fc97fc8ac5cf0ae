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
	// Queue gives joined *invalid.Errors, by the names of queueQuestion, of what is wrong with a question.
	Queue(context.Context, wire.QueueQuestion) (wire.QueuePlan, error)
	// Capacity gives joined *invalid.Errors, by the names of capacityQuestion, of what is wrong with a question.
	Capacity(context.Context, wire.CapacityQuestion) (wire.CapacityPlan, error)
	// Order gives joined *invalid.Errors, by the names of orderQuestion, of what is wrong with a question.
	Order(context.Context, wire.OrderQuestion) (wire.OrderPlan, error)
	// Once gives joined *invalid.Errors, by the names of onceQuestion, of what is wrong with a question.
	Once(context.Context, wire.OnceQuestion) (wire.OncePlan, error)
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

type queueQuestion struct {
	Workers      int                `query:"workers" required:"true" doc:"number of workers, up to 1000000"`
	From         int                `query:"from" zero:"allowed" doc:"of the workers, those that are there at the beginning; 0, the default, for all"`
	Grow         float64            `query:"grow" zero:"allowed" doc:"workers that come in a minute, up to 1000000, until all are there: more than 0 where from is fewer than workers; 0 by default"`
	Batch        int                `query:"batch" minimum:"1" doc:"runs that a worker takes at once, up to 10; 1 by default"`
	Arrivals     float64            `query:"arrivals" required:"true" doc:"runs that come in a second, on average from one burst to the next"`
	AtOnce       float64            `query:"at_once" zero:"allowed" doc:"share of the runs, from 0 to 1, that comes in bursts, each at one instant; the rest is a Poisson process; 0 by default"`
	Every        schedule.Duration  `query:"burst_every" doc:"time from one burst to the next, up to 24h, with the first at the beginning: 1m, the default, for one at each full minute, 1h for one at each full hour"`
	Duration     schedule.Duration  `query:"duration" doc:"mean duration of a run; 200ms by default"`
	Distribution string             `query:"distribution" enum:"constant,exponential,lognormal" doc:"distribution of durations; constant by default"`
	P99          schedule.Duration  `query:"p99" zero:"allowed" doc:"duration that one run in a hundred exceeds, with distribution=lognormal"`
	High         float64            `query:"high" zero:"allowed" doc:"share of the runs, from 0 to 1, that have high priority; 0 by default"`
	Low          float64            `query:"low" zero:"allowed" doc:"share of the runs that have low priority; what is left is normal; 0 by default"`
	For          schedule.Duration  `query:"for" doc:"time that is simulated, 1s to 30d, in which at most 2 million runs may come; 10m by default"`
	Warm         *schedule.Duration `query:"warm" zero:"allowed" doc:"warm-up: time at the beginning that the totals leave out; a tenth of it by default, cut to whole periods of burst_every with at_once above 0"`
	Seed         uint64             `query:"seed" minimum:"1" doc:"seed of all chance: the same one gives the same answer; 1 by default"`
}

type capacityQuestion struct {
	Schedules int               `query:"schedules" zero:"allowed" doc:"jobs that have a schedule, up to 1000000000; 0 by default, where all runs are asked for"`
	PerDay    float64           `query:"runs_per_day" doc:"runs a day, on average over a month; it or runs_per_second must be given"`
	PerSecond float64           `query:"runs_per_second" doc:"the same a second, up to 10000000"`
	Peak      float64           `query:"peak" doc:"runs a second in the busiest minute; those of the average by default"`
	AtOnce    *float64          `query:"at_once" zero:"allowed" nullable:"false" doc:"share of that minute's runs, from 0 to 1, that is due in its first second, as cron's are; 1 by default"`
	Late      schedule.Duration `query:"late" doc:"by when these are to have started, 1s to 1h; 30s by default"`
	Duration  schedule.Duration `query:"duration" doc:"how long a target takes, on average, up to 14m; 100ms by default"`
	OnDemand  float64           `query:"on_demand" zero:"allowed" doc:"share of the runs, from 0 to 1, that are asked for by the API, to start at once; 0 by default"`
	Ahead     float64           `query:"ahead" zero:"allowed" doc:"share of the runs that are asked for ahead of their time; 0 by default"`
	Together  int               `query:"runs_in_request" doc:"runs that each request to the API asks for, up to 1000; 1 by default"`
	Retries   float64           `query:"retry_rate" zero:"allowed" doc:"further attempts of a run, on average: 0.05 where one in twenty is tried again; 0 by default"`
	Payload   *int              `query:"payload" zero:"allowed" nullable:"false" doc:"bytes that a request brings, up to 262144; 40 by default"`
	Result    int               `query:"result" zero:"allowed" doc:"bytes that a target answers, up to 262144; 0 by default"`
	Retention schedule.Duration `query:"retention" doc:"for how long ended runs are kept; 30d by default"`
	Tenants   int               `query:"tenants" doc:"tenants that share the load evenly, up to 1000000; 1 by default"`
	Priority  float64           `query:"priority" doc:"share of the runs, from 0.34 to 1, that have the most usual priority; 1 by default"`
	HotJob    float64           `query:"hot_job" zero:"allowed" doc:"requests a second for the busiest job; 0 by default"`
	Shards    int               `query:"shards" doc:"shards of the table, a power of two up to 64; as many as the load needs by default"`
	Helpers   *int              `query:"helpers" zero:"allowed" nullable:"false" doc:"ticks at once beside the one by the clock, up to 64; as many as the load needs by default"`
}

type orderQuestion struct {
	Workers      int               `query:"workers" required:"true" minimum:"1" maximum:"100" doc:"number of workers, each of which takes one message at a time"`
	Arrivals     float64           `query:"arrivals" required:"true" minimum:"0.001" maximum:"1000000" doc:"messages that are sent a second, on average: a Poisson process"`
	Messages     int               `query:"messages" minimum:"1" maximum:"1000" doc:"messages that are sent in all; 100 by default"`
	Delayed      float64           `query:"delayed" zero:"allowed" doc:"share of the messages, from 0 to 1, that are sent ahead of their time; 0 by default"`
	LongestDelay schedule.Duration `query:"longest_delay" doc:"longest delay of these messages, up to 15m; delays are evenly distributed from 0s on; 10s by default"`
	Duration     schedule.Duration `query:"duration" doc:"mean duration of a run, up to 1h; 200ms by default. No run takes longer than 12h"`
	Distribution string            `query:"distribution" enum:"constant,exponential,lognormal" doc:"distribution of durations; constant by default"`
	P99          schedule.Duration `query:"p99" zero:"allowed" doc:"duration that one run in a hundred exceeds, with distribution=lognormal"`
	High         float64           `query:"high" zero:"allowed" doc:"share of the messages, from 0 to 1, that have high priority; 0 by default"`
	Low          float64           `query:"low" zero:"allowed" doc:"share of the messages that have low priority; what is left is normal; 0 by default"`
	Seed         uint64            `query:"seed" minimum:"1" doc:"seed of all chance: the same one gives the same answer; 1 by default"`
}

type onceQuestion struct {
	Guarantee string `query:"guarantee" enum:"at_least_once,at_most_once" doc:"guarantee of the job; at_least_once by default"`
	Fault     string `query:"fault" enum:"none,message_twice,dies_before,dies_after,answer_lost,write_lost,zombie,zombie_first,clocks_jump" doc:"what goes wrong in the first attempt. message_twice: the queue has the message twice; dies_before, dies_after: the worker dies before its call, or after the effect; answer_lost: the target's answer is lost; write_lost: the store's answer to the end of the attempt is lost; zombie: the worker stands still before its call until another has taken over and made its own; zombie_first: it makes its call before that one does; clocks_jump: the clocks of all hosts jump ahead, and the message comes again; none by default"`
	Guard     string `query:"guard" enum:"none,key,fence,both" doc:"what the target heeds. key: it does nothing for an Idempotency-Key under which it has done it; fence: it refuses a call whose Belfry-Fence is older than the highest that it has seen for this run; none by default"`
}

func (a *api) plans() {
	var alone planning
	made(a, &alone, operation{id: "plan-capacity", path: "/v1/plan/capacity",
		summary: "Say what a load needs of a stack on AWS, what it costs a month, and which limit is reached first"},
		func(ctx context.Context, p *capacityQuestion) (wire.CapacityPlan, error) {
			return a.Planner.Capacity(ctx, wire.CapacityQuestion(*p))
		})
	made(a, &alone, operation{id: "plan-queue", path: "/v1/plan/queue",
		summary: "Simulate a queue with workers: how deep it gets, how busy they are, and how long runs wait, over time"},
		func(ctx context.Context, p *queueQuestion) (wire.QueuePlan, error) {
			return a.Planner.Queue(ctx, wire.QueueQuestion{
				Workers: p.Workers, From: p.From, Grow: p.Grow, Batch: p.Batch, Rate: p.Arrivals, AtOnce: p.AtOnce, Every: p.Every,
				Service: wire.QueueService{Kind: p.Distribution, Mean: p.Duration, P99: p.P99},
				Shares:  [3]float64{0: p.High, 2: p.Low}, For: p.For, Warm: p.Warm, Seed: p.Seed,
			})
		})
	made(a, &alone, operation{id: "plan-once", path: "/v1/plan/once",
		summary: "Play one run to which something goes wrong, by the scheduler's own code in virtual time, with two workers and a target that follow a script: each message, write of the run, call and fence, and how often the target was called and had its effect"},
		func(ctx context.Context, p *onceQuestion) (wire.OncePlan, error) {
			return a.Planner.Once(ctx, wire.OnceQuestion(*p))
		})
	made(a, &alone, operation{id: "plan-order", path: "/v1/plan/order",
		summary: "Play made-up load through a queue as in a server's own memory (dev, and serve without --store), in virtual time: when each message is sent, ready, taken and done, in their order"},
		func(ctx context.Context, p *orderQuestion) (wire.OrderPlan, error) {
			return a.Planner.Order(ctx, wire.OrderQuestion{
				Workers: p.Workers, Rate: p.Arrivals, Messages: p.Messages, Delayed: p.Delayed, Delay: p.LongestDelay,
				Service: wire.QueueService{Kind: p.Distribution, Mean: p.Duration, P99: p.P99},
				Shares:  [3]float64{0: p.High, 2: p.Low}, Seed: p.Seed,
			})
		})
	made(a, &alone, operation{id: "plan-retry", path: "/v1/plan/retry",
		summary: "Say what a retry policy comes to: when each attempt begins, when it gives up, and how many clients come back at once"},
		func(ctx context.Context, p *retryQuestion) (wire.RetryPlan, error) {
			plan, err := a.Planner.Retry(ctx, wire.RetryQuestion{
				Retry: job.Retry{MaxAttempts: p.Attempts, Initial: p.Initial, Factor: p.Factor, Max: p.Max},
				Takes: p.Duration, Clients: p.Clients, Seed: p.Seed,
			})
			for _, name := range []string{"initial", "max"} {
				err = renamed(err, "retry."+name, name)
			}
			return plan, err
		})
}

// made serves the plans of one kind. All kinds wait for each other, by tenant.
func made[Question, Plan any](a *api, alone *planning, op operation, plan func(context.Context, *Question) (Plan, error)) {
	op.method, op.tag, op.scope, op.codes = http.MethodGet, "system", access.Read, []control.Code{control.CodeBusy}
	op.summary += "; one plan of a tenant at a time"
	register(a, op, func(ctx context.Context, q *Question, in input[noBody]) (*answer[Plan], error) {
		leave, err := alone.enter(in.tenant)
		if err != nil {
			return nil, err
		}
		defer leave()
		made, err := plan(ctx, q)
		if err != nil {
			return nil, err
		}
		return &answer[Plan]{made}, nil
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
