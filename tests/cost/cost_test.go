package cost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// scenario is a kind of run, as it comes again and again.
type scenario struct {
	kind  cost.Kind
	batch int // messages of an event, and requests of a call to the API

	handler func() target.Func
	cron    bool          // fires of jobs; else requests
	dense   bool          // they come every two hours, and so many that each bucket has more than a page
	kept    time.Duration // the jobs' retention; 0 for the usual
	retry   job.Retry     // of the jobs
	delay   time.Duration // of requests
	key     bool          // they bring an Idempotency-Key
	payload int           // bytes of theirs beyond some forty

	workflow string // the steps of the job's, as JSON; "" for a job that calls the handler

	writes, reads, sqs float64 // a run, at the most
}

func ok() target.Func {
	return func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }
}

// large answers with more than a run's record holds.
func large() target.Func {
	return func(context.Context, target.Call) (target.Result, error) {
		return target.Result{Body: make([]byte, 2000)}, nil
	}
}

var errFails = errors.New("the target answered 503 Service Unavailable")

// failing fails the first attempts.
func failing(attempts uint32) func() target.Func {
	return func() target.Func {
		return func(_ context.Context, call target.Call) (target.Result, error) {
			if uint32(call.Attempt) <= attempts {
				return target.Result{}, errFails
			}
			return target.Result{}, nil
		}
	}
}

// Runs come one at a time, and in batches of ten: so many at once that each of the 64 buckets has twenty.
const (
	lone = cost.Lone
	full = cost.Full
	many = timer.Buckets * 20

	// crowd is so many at once that each bucket has more than a page of timers: then the later sweeps look at its runs again.
	crowd = timer.Buckets * (tick.PageSize + 50)
)

// The budget is the design's: 4 write units when the first attempt succeeds, 2 more for a further attempt and 1 for an
// Idempotency-Key; 1.6 read units, and one more for each further delivery, which looks first; 0.4 requests to SQS in full batches.
// Beyond it are a run that is asked for ahead of its time, with 1 more for its claim and 1 for its listing, which requests of one call
// share (docs/cost.md says why); a dead one, with 3 for its dead letter, which is written in one transaction with its end; and a result
// of 2 KB, with 2. A lone run has nobody to share a message's three requests with, nor what sweeps read.
var scenarios = []scenario{
	{kind: cost.Cron, batch: lone, handler: ok, cron: true, writes: 4, reads: 4, sqs: 3},
	{kind: cost.Cron, batch: full, handler: ok, cron: true, writes: 4, reads: 1.6, sqs: 0.4},
	{kind: cost.Dense, batch: full, handler: ok, cron: true, dense: true, writes: 4, reads: 4.7, sqs: 0.4},
	{kind: cost.Immediate, batch: lone, handler: ok, writes: 4, reads: 4.5, sqs: 3},
	{kind: cost.Immediate, batch: full, handler: ok, writes: 4, reads: 1.6, sqs: 0.4},
	{kind: cost.Keyed, batch: lone, handler: ok, key: true, writes: 5, reads: 4.5, sqs: 3},
	{kind: cost.Keyed, batch: full, handler: ok, key: true, writes: 5, reads: 1.6, sqs: 0.4},
	{kind: cost.Large, batch: lone, handler: large, payload: 2000, writes: 6, reads: 4.5, sqs: 3},
	{kind: cost.Large, batch: full, handler: large, payload: 2000, writes: 6, reads: 1.6, sqs: 0.4},
	{kind: cost.Ahead, batch: lone, handler: ok, delay: time.Hour, writes: 6, reads: 4.5, sqs: 3},
	{kind: cost.Ahead, batch: full, handler: ok, delay: time.Hour, writes: 5.1, reads: 1.6, sqs: 0.4},
	{kind: cost.Retried, batch: lone, handler: failing(1), cron: true, writes: 6, reads: 6, sqs: 6},
	{kind: cost.Retried, batch: full, handler: failing(1), cron: true, writes: 6, reads: 3.6, sqs: 1},
	{kind: cost.Dead, batch: lone, handler: failing(3), cron: true, retry: job.Retry{MaxAttempts: 3}, writes: 11, reads: 9, sqs: 9},
	{kind: cost.Dead, batch: full, handler: failing(3), cron: true, retry: job.Retry{MaxAttempts: 3}, writes: 11, reads: 6.6, sqs: 1.5},
}

const (
	// window is how many minutes are counted, and how often runs come.
	window = 10
	// wide is the window of a crowd.
	wide = 120
	// warm is how long things go on before that: until the last sweep, an hour behind, comes upon what was done at the beginning.
	warm = 70
)

// measure gives what a window takes, with a burst of so many runs in it, and which metrics were seen.
func measure(t *testing.T, over *rig, s scenario, runs int) (cost.Amount, []string) {
	r := over
	calls := 0.0
	now := func() cost.Amount {
		u := r.meter.read()
		objects, bytes, err := r.objects()
		if err != nil {
			t.Fatal(err)
		}
		return cost.Amount{Writes: u.Writes - u.Shared, Shared: u.Shared, Index: u.Index, Reads: u.Reads, Storage: u.GBMonths - u.Kept, Kept: u.Kept,
			SQS: r.till.requests, Worker: float64(r.events), Tick: float64(r.ticks), API: calls, Objects: float64(objects),
			Fetched: float64(r.fetched.Load()), Lying: bytes / (1 << 30), Logs: float64(r.logs.bytes)}
	}
	// EventBridge ticks somewhere in the minute, and not at its beginning: what a tick looks at begins in one minute and ends in the next.
	time.Sleep(17 * time.Second)
	each := s.load(t, r, runs, &calls)
	if err := r.minutes(warm+int(s.delay.Minutes()), each); err != nil {
		t.Fatal(err)
	}
	before := now()
	clear(r.logs.metrics)
	if err := r.minutes(s.window(), each); err != nil {
		t.Fatal(err)
	}
	return now().Plus(-1, before), slices.Sorted(maps.Keys(r.logs.metrics))
}

func (s *scenario) window() int {
	if s.dense {
		return wide
	}
	return window
}

// load makes the jobs, and gives what asks for runs in each minute.
func (s *scenario) load(t *testing.T, r *rig, runs int, calls *float64) func(int) error {
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Retry: s.retry,
		Retention: schedule.Duration(s.kept)}
	if s.workflow != "" {
		def.Target = target.Spec{Workflow: []byte(`{"steps": {` + s.workflow + `}}`)}
	}
	put := func(name string) {
		if _, _, err := r.Control.Put(r.ctx, "default", name, def, control.Match{}); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case runs == 0:
		return nil
	case s.cron:
		def.Schedule = &schedule.Spec{Cron: "*/10 * * * *"}
		if s.dense {
			def.Schedule.Cron = "0 */2 * * *"
		}
		for n := range runs {
			put(fmt.Sprintf("nightly-report-%04d", n))
		}
		return nil
	}
	put("on-demand")
	asked := 0
	return func(minute int) error {
		if minute%window != 0 {
			return nil
		}
		for range runs / s.batch {
			*calls++
			call := make([]control.Asked, s.batch)
			for i := range call {
				asked++
				payload := fmt.Appendf(nil, `{"order": 4711, "customer": "c-1234%s"}`, strings.Repeat("x", s.payload))
				call[i] = control.Asked{Job: "on-demand", Request: control.Request{Delay: new(s.delay), Payload: payload}}
				if s.key {
					call[i].Key = fmt.Sprint("order-", asked)
				}
			}
			for _, answer := range r.Control.TriggerMany(r.ctx, "default", call) {
				if answer.Err != nil {
					return answer.Err
				}
			}
		}
		return nil
	}
}

var count = sync.OnceValue(func() *cost.Units { return new(cost.Units) })

var counting sync.Mutex

// counted counts, when it is called for the first time.
func counted(t *testing.T) *cost.Units {
	t.Helper()
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	counting.Lock()
	defer counting.Unlock()
	got := count()
	if got.Runs != nil {
		return got
	}
	nothing := scenario{batch: lone, handler: ok}
	synctest.Test(t, func(t *testing.T) {
		all, seen := measure(t, newRig(t, nil, lone, ok()), nothing, 0)
		got.Idle, got.Metrics = cost.Amount{}.Plus(1.0/window, all), len(seen)
	})
	busy := map[string]bool{}
	for _, s := range scenarios {
		takes, seen := s.count(t, got.Idle)
		got.Runs = append(got.Runs, cost.Run{Kind: s.kind, Batch: s.batch, Takes: takes})
		for _, metric := range seen {
			busy[metric] = true
		}
	}
	got.Busy = len(busy)
	return got
}

// count gives what one run takes beyond what its minutes would have taken, and which metrics were seen.
func (s *scenario) count(t *testing.T, idle cost.Amount) (takes cost.Amount, seen []string) {
	t.Helper()
	runs := many
	switch {
	case s.batch == lone:
		runs = 1
	case s.dense:
		runs = crowd
	}
	synctest.Test(t, func(t *testing.T) {
		var all cost.Amount
		all, seen = measure(t, newRig(t, nil, s.batch, s.handler()), *s, runs)
		takes = cost.Amount{}.Plus(1/float64(runs), all.Plus(-float64(s.window()), idle))
	})
	return takes, seen
}

func TestARunKeepsToItsBudget(t *testing.T) {
	got := counted(t)
	t.Logf("idle minute: %+v; %d metrics, %d with runs", got.Idle, got.Metrics, got.Busy)
	const slack = 1.02 // what is counted by the minute and not told apart
	for i, s := range scenarios {
		used := got.Runs[i].Takes
		t.Logf("%-24s by %2d: %+v", s.kind, s.batch, used)
		if used.Writes > s.writes*slack || used.Reads > s.reads*slack || used.SQS > s.sqs*slack {
			t.Errorf("%s by %d: %.2f write units, %.2f read units and %.2f requests to SQS a run, want at most %g, %g and %g", s.kind, s.batch,
				used.Writes, used.Reads, used.SQS, s.writes, s.reads, s.sqs)
		}
		if used.Writes < 3 || used.Reads < 0.5 || used.SQS < 0.2 || used.Worker == 0 {
			t.Errorf("%s by %d: %+v, which is too little to be true", s.kind, s.batch, used)
		}
	}
}

// TestWhatIsKeptGoesByTheRetention holds the one figure that plans change by hand: what lies in the table for twice the retention. Nearly,
// since what lists a run stays two weeks beyond it.
func TestWhatIsKeptGoesByTheRetention(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	for _, kind := range []cost.Kind{cost.Cron, cost.Large} {
		at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.kind == kind && s.batch == lone })
		once, twice := scenarios[at], scenarios[at]
		twice.kept = 2 * job.DefaultRetention
		short, _ := once.count(t, cost.Amount{})
		long, _ := twice.count(t, cost.Amount{})
		if want := short.Retained(2 * cost.CountedRetention); math.Abs(long.Kept/want.Kept-1) > 0.1 || math.Abs(long.Storage/want.Storage-1) > 0.001 {
			t.Errorf("%s, kept for twice as long: %g and %g GB-months, want about %g and %g", kind, long.Kept, long.Storage, want.Kept, want.Storage)
		}
	}
	if days := job.DefaultRetention.Hours() / 24; days != cost.CountedRetention {
		t.Errorf("runs are kept for %g days here, and cost.CountedRetention is %d", days, cost.CountedRetention)
	}
}
