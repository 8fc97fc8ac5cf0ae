package cost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// amount is what something has taken of what AWS charges for.
type amount struct {
	Writes  float64 // DynamoDB write units, but for those shared
	Shared  float64 // of the minute and its shards
	Reads   float64 // DynamoDB read units
	Storage float64 // GB-months in DynamoDB, until what was written expires
	SQS     float64 // requests
	Worker  float64 // invocations
	Tick    float64
	API     float64
	Objects float64 // S3 objects written
	Fetched float64 // and read
	Logs    float64 // bytes
}

// plus is a + n*b.
func (a amount) plus(n float64, b amount) amount {
	return amount{a.Writes + n*b.Writes, a.Shared + n*b.Shared, a.Reads + n*b.Reads, a.Storage + n*b.Storage, a.SQS + n*b.SQS,
		a.Worker + n*b.Worker, a.Tick + n*b.Tick, a.API + n*b.API, a.Objects + n*b.Objects, a.Fetched + n*b.Fetched, a.Logs + n*b.Logs}
}

// scenario is a kind of run, as it comes again and again.
type scenario struct {
	name  string
	batch int // messages of an event, and requests of a call to the API

	handler func() target.Func
	cron    bool          // fires of jobs; else requests
	retry   job.Retry     // of the jobs
	delay   time.Duration // of requests
	key     bool          // they bring an Idempotency-Key
	payload int           // bytes of theirs beyond some forty

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
	lone = 1
	full = 10
	many = 64 * 20
)

// The budget is the design's: 4 write units when the first attempt succeeds, 2 more for a further attempt and 1 for an
// Idempotency-Key; 1.6 read units, and one more for each further delivery, which looks first; 0.4 requests to SQS in full batches.
// Beyond it are a run that is asked for ahead of its time, with 1 more for its claim and 1 for its listing, which requests of one call
// share (docs/cost.md says why); a dead one, with 3 for its dead letter, which is written in one transaction with its end; and a result
// of 2 KB, with 2. A lone run has nobody to share a message's three requests with, nor what sweeps read.
var scenarios = []scenario{
	{name: "cron", batch: lone, handler: ok, cron: true, writes: 4, reads: 4, sqs: 3},
	{name: "cron", batch: full, handler: ok, cron: true, writes: 4, reads: 1.6, sqs: 0.4},
	{name: "immediate", batch: lone, handler: ok, writes: 4, reads: 4.5, sqs: 3},
	{name: "immediate", batch: full, handler: ok, writes: 4, reads: 1.6, sqs: 0.4},
	{name: "immediate, with a key", batch: lone, handler: ok, key: true, writes: 5, reads: 4.5, sqs: 3},
	{name: "immediate, with a key", batch: full, handler: ok, key: true, writes: 5, reads: 1.6, sqs: 0.4},
	{name: "immediate, 2 KB in and out", batch: lone, handler: large, payload: 2000, writes: 6, reads: 4.5, sqs: 3},
	{name: "immediate, 2 KB in and out", batch: full, handler: large, payload: 2000, writes: 6, reads: 1.6, sqs: 0.4},
	{name: "one-off, ahead", batch: lone, handler: ok, delay: time.Hour, writes: 6, reads: 4.5, sqs: 3},
	{name: "one-off, ahead", batch: full, handler: ok, delay: time.Hour, writes: 5.1, reads: 1.6, sqs: 0.4},
	{name: "retry, once", batch: lone, handler: failing(1), cron: true, writes: 6, reads: 5, sqs: 6},
	{name: "retry, once", batch: full, handler: failing(1), cron: true, writes: 6, reads: 2.6, sqs: 1},
	{name: "dead, after 3", batch: lone, handler: failing(3), cron: true, retry: job.Retry{MaxAttempts: 3}, writes: 11, reads: 7, sqs: 9},
	{name: "dead, after 3", batch: full, handler: failing(3), cron: true, retry: job.Retry{MaxAttempts: 3}, writes: 11, reads: 4.6, sqs: 1.5},
}

const (
	// window is how long is counted, and how often runs come: each ten minutes.
	window = 10
	// warm is how long things go on before that: until the last sweep, an hour behind, comes upon what was done at the beginning.
	warm = 70
)

// measure gives what a window takes, with a burst of so many runs in it, and which metrics were seen.
func measure(t *testing.T, over *rig, s scenario, runs int) (amount, []string) {
	r := over
	calls := 0.0
	now := func() amount {
		u := r.meter.read()
		objects, err := r.objects()
		if err != nil {
			t.Fatal(err)
		}
		return amount{Writes: u.Writes - u.Shared, Shared: u.Shared, Reads: u.Reads, Storage: u.GBMonths, SQS: r.till.requests,
			Worker: float64(r.events), Tick: float64(r.ticks), API: calls, Objects: float64(objects), Fetched: float64(r.fetched.Load()), Logs: float64(r.logs.bytes)}
	}
	// EventBridge ticks somewhere in the minute, and not at its beginning: what a tick looks at begins in one minute and ends in the next.
	time.Sleep(17 * time.Second)
	each := s.load(t, r, runs, &calls)
	if err := r.minutes(warm+int(s.delay.Minutes()), each); err != nil {
		t.Fatal(err)
	}
	before := now()
	clear(r.logs.metrics)
	if err := r.minutes(window, each); err != nil {
		t.Fatal(err)
	}
	return now().plus(-1, before), slices.Sorted(maps.Keys(r.logs.metrics))
}

// load makes the jobs, and gives what asks for runs in each minute.
func (s *scenario) load(t *testing.T, r *rig, runs int, calls *float64) func(int) error {
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Retry: s.retry}
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
				call[i] = control.Asked{Job: "on-demand", Request: control.Request{Delay: s.delay, Payload: payload}}
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

// results are what is counted once for all tests of this package.
type results struct {
	idle    amount   // a minute without anything due
	metrics []string // that it gives
	busy    []string // and a minute with runs of all kinds
	runs    []amount // by scenario: what a run takes beyond what the minute would have taken
}

var count = sync.OnceValue(func() *results { return new(results) })

var counting sync.Mutex

// counted counts, when it is called for the first time.
func counted(t *testing.T) *results {
	t.Helper()
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	counting.Lock()
	defer counting.Unlock()
	got := count()
	if got.runs != nil {
		return got
	}
	nothing := scenario{batch: lone, handler: ok}
	synctest.Test(t, func(t *testing.T) {
		all, seen := measure(t, newRig(t, nil, lone, ok()), nothing, 0)
		got.idle, got.metrics = amount{}.plus(1.0/window, all), seen
	})
	busy := map[string]bool{}
	for _, s := range scenarios {
		runs := many
		if s.batch == lone {
			runs = 1
		}
		synctest.Test(t, func(t *testing.T) {
			all, seen := measure(t, newRig(t, nil, s.batch, s.handler()), s, runs)
			got.runs = append(got.runs, amount{}.plus(1/float64(runs), all.plus(-window, got.idle)))
			for _, metric := range seen {
				busy[metric] = true
			}
		})
	}
	got.busy = slices.Sorted(maps.Keys(busy))
	return got
}

func TestARunKeepsToItsBudget(t *testing.T) {
	got := counted(t)
	t.Logf("idle minute: %+v; %d metrics, %d with runs", got.idle, len(got.metrics), len(got.busy))
	const slack = 1.02 // what is counted by the minute and not told apart
	for i, s := range scenarios {
		used := got.runs[i]
		t.Logf("%-24s by %2d: %+v", s.name, s.batch, used)
		if used.Writes > s.writes*slack || used.Reads > s.reads*slack || used.SQS > s.sqs*slack {
			t.Errorf("%s by %d: %.2f write units, %.2f read units and %.2f requests to SQS a run, want at most %g, %g and %g", s.name, s.batch,
				used.Writes, used.Reads, used.SQS, s.writes, s.reads, s.sqs)
		}
		if used.Writes < 3 || used.Reads < 0.5 || used.SQS < 0.2 || used.Worker == 0 {
			t.Errorf("%s by %d: %+v, which is too little to be true", s.name, s.batch, used)
		}
	}
}
