package api_test

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/plan/ordering"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

var planner = plan.Service{Store: plan.Adapter{Writes: 32}}

func planned(cfg *api.Config) { cfg.Planner = planner }

func TestARetryPolicyIsPlanned(t *testing.T) {
	s := start(t, 0, planned)
	p := into[wire.RetryPlan](s.send("GET", "/v1/plan/retry?max_attempts=3&initial=2s&max=1m&duration=1s&clients=10&seed=3", "").is(200))
	if len(p.Attempts) != 3 || p.Clients != 10 || p.Seed != 3 || p.Takes.String() != "1s" || p.Retry.Initial.String() != "2s" || p.GivesUp.Least != 9 || p.GivesUp.Most != 15 {
		t.Errorf("%+v", p)
	}
	if p = into[wire.RetryPlan](s.send("GET", "/v1/plan/retry", "").is(200)); len(p.Attempts) != 15 || p.Clients != 10_000 || p.Seed != 1 {
		t.Errorf("%+v", p)
	}
	for _, zero := range []string{"0s", "0"} { // the default, and so a value like any other
		if p = into[wire.RetryPlan](s.send("GET", "/v1/plan/retry?max_attempts=1&duration="+zero, "").is(200)); p.Takes != 0 || p.GivesUp.Most != 0 {
			t.Errorf("attempts that take %s: %+v", zero, p)
		}
	}
	for _, c := range []struct {
		query, field, code string
		status             int
	}{{"initial=soon", "initial", "malformed", 400}, {"duration=-1s", "duration", "malformed", 400}, {"duration=25h", "duration", "invalid", 422}, {"initial=2h&max=1h", "max", "invalid", 422},
		{"initial=8d", "initial", "invalid", 422}, {"initial=0s", "initial", "invalid", 422}, {"max_attempts=100&max=7d", "max", "invalid", 422}} {
		if fields := s.send("GET", "/v1/plan/retry?"+c.query, "").refused(c.status, c.code); len(fields) != 1 || fields[c.field] == "" {
			t.Errorf("%s is refused as %v", c.query, fields)
		}
	}
	if without := start(t, 0, nil); without.send("GET", "/v1/plan/retry", "").status != 404 {
		t.Error("a server without a planner has the path")
	}
}

// TestAQueueIsPlanned: the answer is that of the simulation for the same question, in the form that the command line prints.
func TestAQueueIsPlanned(t *testing.T) {
	s := start(t, 0, planned)
	for query, q := range map[string]wire.QueueQuestion{
		"workers=5&arrivals=20": {Workers: 5, Rate: 20},
		"workers=40&from=5&grow=30&batch=10&arrivals=150.5&at_once=0.6&burst_every=1h&duration=300ms&distribution=lognormal&p99=1s&high=0.1&low=0.3&for=5m&warm=0s&seed=9223372036854775807": {
			Workers: 40, From: 5, Grow: 30, Batch: 10, Rate: 150.5, AtOnce: 0.6, Every: schedule.Duration(time.Hour), Service: wire.QueueService{Kind: queueing.Lognormal, Mean: schedule.Duration(300 * time.Millisecond), P99: schedule.Duration(time.Second)},
			Shares: [3]float64{0: 0.1, 2: 0.3}, For: schedule.Duration(5 * time.Minute), Warm: new(schedule.Duration), Seed: math.MaxInt64},
	} {
		made, err := queueing.Simulate(t.Context(), q, queueing.Most)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.send("GET", "/v1/plan/queue?"+query, "").is(200); !jsonEqual(t, got.body, want) {
			t.Errorf("%s: %s\nwant %s", query, got.body, want)
		}
	}
	for _, c := range []struct {
		query, field, code string
		status             int
	}{
		{"arrivals=5", "workers", "malformed", 400}, {"workers=5", "arrivals", "malformed", 400}, {"workers=1.5&arrivals=5", "workers", "malformed", 400}, {"workers=5&arrivals=NaN", "arrivals", "malformed", 400},
		{"workers=5&arrivals=1e999", "arrivals", "malformed", 400}, {"workers=5&arrivals=5&distribution=normal", "distribution", "malformed", 400}, {"workers=5&arrivals=5&duration=0s", "duration", "invalid", 422},
		{"workers=5&arrivals=5&warm=-1s", "warm", "malformed", 400}, {"workers=1000001&arrivals=5", "workers", "invalid", 422}, {"workers=-1&arrivals=5", "workers", "invalid", 422}, {"workers=5&arrivals=-5", "arrivals", "invalid", 422},
		{"workers=5&arrivals=5&from=6", "from", "invalid", 422}, {"workers=5&arrivals=5&from=-1", "from", "invalid", 422}, {"workers=5&arrivals=5&grow=5", "grow", "invalid", 422}, {"workers=5&arrivals=5&from=4", "grow", "invalid", 422}, {"workers=5&arrivals=5&low=1.1", "low", "invalid", 422}, {"workers=5&arrivals=5&batch=11", "batch", "invalid", 422},
		{"workers=5&arrivals=5&at_once=1.01", "at_once", "invalid", 422}, {"workers=5&arrivals=5&at_once=0.5&burst_every=30s", "burst_every", "invalid", 422}, {"workers=5&arrivals=5&burst_every=25h", "burst_every", "invalid", 422}, {"workers=5&arrivals=5&high=0.6&low=0.5", "high", "invalid", 422}, {"workers=5&arrivals=5&distribution=lognormal", "p99", "invalid", 422},
		{"workers=5&arrivals=5&p99=1s", "p99", "invalid", 422}, {"workers=5&arrivals=5&for=31d", "for", "invalid", 422}, {"workers=5&arrivals=5&for=10s&warm=10s", "warm", "invalid", 422},
		{"workers=1&arrivals=10000&for=1h", "for", "invalid", 422}, {"workers=1000000&arrivals=10000000&at_once=1&for=1s", "arrivals", "invalid", 422},
	} {
		if fields := s.send("GET", "/v1/plan/queue?"+c.query, "").refused(c.status, c.code); len(fields) != 1 || fields[c.field] == "" {
			t.Errorf("%s is refused as %v", c.query, fields)
		}
	}
	if fields := s.send("GET", "/v1/plan/queue?workers=1&arrivals=10000&for=1h", "").refused(422, "invalid"); !strings.Contains(fields["for"], "3m20s at the most") {
		t.Errorf("more runs than a server simulates: %v", fields)
	}
	if without := start(t, 0, nil); without.send("GET", "/v1/plan/queue?workers=1&arrivals=1", "").status != 404 {
		t.Error("a server without a planner has the path")
	}
}

// TestAStackIsPlanned: the answer is the plan of the same load, and what is left out has its default.
func TestAStackIsPlanned(t *testing.T) {
	s := start(t, 0, planned)
	tariff := cost.Listed()
	usual := plan.Usual(tariff)
	daily, all := usual, usual
	daily.Schedules, daily.Rate, daily.Peak = 500, 60_000.0/86400, 60_000.0/86400
	all.Schedules, all.Rate, all.Peak, all.AtOnce, all.Late, all.Duration, all.OnDemand, all.Ahead, all.Retries = 20_000, 50, 1500, 0, 2*time.Minute, 2*time.Second, 0.25, 0.125, 0.03
	all.Payload, all.Result, all.Retention, all.Tenants, all.Priority, all.HotJob, all.Shards, all.Helpers = 0, 5000, 7*24*time.Hour, 3, 0.5, 2, 32, 0
	for query, l := range map[string]plan.Load{
		"schedules=500&runs_per_day=60000": daily,
		"schedules=20000&runs_per_second=50&peak=1500&at_once=0&late=2m&duration=2s&on_demand=0.25&ahead=0.125&retry_rate=0.03&payload=0&result=5000&retention=7d&tenants=3&priority=0.5&hot_job=2&shards=32&helpers=0": all,
	} {
		want, err := json.Marshal(plan.Make(l, tariff, cost.Counted(), planner.Store))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.send("GET", "/v1/plan/capacity?"+query, "").is(200); !jsonEqual(t, got.body, want) {
			t.Errorf("%s: %s\nwant %s", query, got.body, want)
		} else if strings.Contains(string(got.body), "null") {
			t.Errorf("%s: a list is null: %s", query, got.body)
		}
	}
	const load = "schedules=500&runs_per_day=60000&"
	for _, c := range []struct {
		query, field, code, says string
		status                   int
	}{
		{"schedules=5", "runs_per_day", "invalid", "runs_per_second", 422}, {load + "runs_per_second=1", "runs_per_day", "invalid", "only one", 422}, {"schedules=5&runs_per_day=0", "runs_per_day", "invalid", "than 0", 422},
		{"schedules=5&runs_per_day=-3", "runs_per_day", "invalid", "a run a month", 422}, {"schedules=5&runs_per_day=1e15", "runs_per_day", "invalid", "at most 864G", 422}, {"schedules=5&runs_per_second=1e9", "runs_per_second", "invalid", "at most 10M", 422},
		{"runs_per_day=5", "schedules", "invalid", "1 for on_demand", 422}, {"schedules=1&runs_per_second=5", "schedules", "invalid", "at least 5", 422}, {"schedules=1.5&runs_per_day=5", "schedules", "malformed", "", 400},
		{load + "peak=0.5", "peak", "invalid", "at least the 0.694445 of the average, by runs_per_day", 422}, {load + "at_once=60", "at_once", "invalid", "a share from 0 to 1", 422}, {load + "late=2h", "late", "invalid", "1s to 1h", 422},
		{load + "duration=15m", "duration", "invalid", "14m", 422}, {load + "on_demand=0.7&ahead=0.5", "ahead", "invalid", "together with on_demand at most 1", 422}, {load + "retry_rate=-1", "retry_rate", "invalid", "0.05 where", 422},
		{load + "payload=300000", "payload", "invalid", "256KB", 422}, {load + "result=-1", "result", "invalid", "256KB", 422}, {load + "retention=1h", "retention", "invalid", "1d to", 422}, {load + "tenants=2000000", "tenants", "invalid", "1M", 422},
		{load + "priority=0.2", "priority", "invalid", "0.34 to 1", 422}, {load + "hot_job=100", "hot_job", "invalid", "up to peak", 422}, {load + "shards=12", "shards", "invalid", "power of two", 422}, {load + "helpers=65", "helpers", "invalid", "64", 422},
		{load + "at_once=NaN", "at_once", "malformed", "", 400}, {load + "gate=x", "gate", "malformed", "unknown", 400},
	} {
		if fields := s.send("GET", "/v1/plan/capacity?"+c.query, "").refused(c.status, c.code); len(fields) != 1 || !strings.Contains(fields[c.field], c.says) || fields[c.field] == "" {
			t.Errorf("%s is refused as %v", c.query, fields)
		}
	}
	if without := start(t, 0, nil); without.send("GET", "/v1/plan/capacity?"+load, "").status != 404 {
		t.Error("a server without a planner has the path")
	}
}

// TestAnOrderIsPlayed: the answer is that of the play for the same question, in the form that the command line prints.
func TestAnOrderIsPlayed(t *testing.T) {
	s := start(t, 0, planned)
	for query, q := range map[string]wire.OrderQuestion{
		"workers=5&arrivals=20": {Workers: 5, Rate: 20},
		"workers=4&arrivals=150.5&messages=300&delayed=0.5&longest_delay=1m&duration=300ms&distribution=lognormal&p99=1s&high=0.1&low=0.3&seed=9223372036854775807": {
			Workers: 4, Rate: 150.5, Messages: 300, Delayed: 0.5, Delay: schedule.Duration(time.Minute), Service: wire.QueueService{Kind: queueing.Lognormal, Mean: schedule.Duration(300 * time.Millisecond), P99: schedule.Duration(time.Second)},
			Shares: [3]float64{0: 0.1, 2: 0.3}, Seed: math.MaxInt64},
	} {
		made, err := ordering.Play(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.send("GET", "/v1/plan/order?"+query, "").is(200); !jsonEqual(t, got.body, want) {
			t.Errorf("%s: %s\nwant %s", query, got.body, want)
		}
	}
	for _, c := range []struct {
		query, field, code string
		status             int
	}{
		{"workers=0&arrivals=5", "workers", "malformed", 400}, {"arrivals=5", "workers", "malformed", 400}, {"workers=5", "arrivals", "malformed", 400}, {"workers=101&arrivals=5", "workers", "malformed", 400}, {"workers=5&arrivals=1e8", "arrivals", "malformed", 400},
		{"workers=5&arrivals=5&messages=1001", "messages", "malformed", 400}, {"workers=5&arrivals=5&longest_delay=16m", "longest_delay", "invalid", 422}, {"workers=5&arrivals=5&longest_delay=0s", "longest_delay", "invalid", 422}, {"workers=5&arrivals=5&delayed=2", "delayed", "invalid", 422},
		{"workers=5&arrivals=5&duration=2h", "duration", "invalid", 422}, {"workers=5&arrivals=5&batch=1", "batch", "malformed", 400}, {"workers=5&arrivals=5&high=0.6&low=0.5", "high", "invalid", 422},
	} {
		if fields := s.send("GET", "/v1/plan/order?"+c.query, "").refused(c.status, c.code); len(fields) != 1 || fields[c.field] == "" || strings.Contains(fields[c.field], "left out") && strings.HasPrefix(c.query, "workers=0") {
			t.Errorf("%s is refused as %v", c.query, fields)
		}
	}
	if without := start(t, 0, nil); without.send("GET", "/v1/plan/order?workers=1&arrivals=1", "").status != 404 {
		t.Error("a server without a planner has the path")
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(parsed(t, string(a)), parsed(t, string(b)))
}

// TestARunThatGoesWrongIsPlayed: the answer is that of the demonstration for the same question, in the form that the command line prints.
func TestARunThatGoesWrongIsPlayed(t *testing.T) {
	s := start(t, 0, planned)
	for query, q := range map[string]wire.OnceQuestion{
		"": {},
		"?guarantee=at_most_once&fault=dies_after&guard=both": {Guarantee: "at_most_once", Fault: "dies_after", Guard: "both"},
		"?fault=zombie&guard=fence":                           {Fault: "zombie", Guard: "fence"},
	} {
		made, err := simulate.DemonstrateOnce(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.send("GET", "/v1/plan/once"+query, "").is(200); !jsonEqual(t, got.body, want) {
			t.Errorf("%s: %s\nwant %s", query, got.body, want)
		}
	}
	for query, field := range map[string]string{"guarantee=exactly_once": "guarantee", "fault=fire": "fault", "guard=dog": "guard"} {
		if fields := s.send("GET", "/v1/plan/once?"+query, "").refused(400, "malformed"); len(fields) != 1 || !strings.Contains(fields[field], "one of") {
			t.Errorf("%s is refused as %v", query, fields)
		}
	}
	if without := start(t, 0, nil); without.send("GET", "/v1/plan/once", "").status != 404 {
		t.Error("a server without a planner has the path")
	}
}

// held is a planner that is busy until it is let go.
type held struct{ began, end chan struct{} }

func (h held) Retry(context.Context, wire.RetryQuestion) (wire.RetryPlan, error) {
	h.began <- struct{}{}
	<-h.end
	return wire.RetryPlan{}, nil
}

func (h held) Queue(context.Context, wire.QueueQuestion) (wire.QueuePlan, error) {
	h.began <- struct{}{}
	<-h.end
	return wire.QueuePlan{}, nil
}

func (h held) Capacity(context.Context, wire.CapacityQuestion) (wire.CapacityPlan, error) {
	h.began <- struct{}{}
	<-h.end
	return wire.CapacityPlan{}, nil
}

func (h held) Order(context.Context, wire.OrderQuestion) (wire.OrderPlan, error) {
	h.began <- struct{}{}
	<-h.end
	return wire.OrderPlan{}, nil
}

func (h held) Once(context.Context, wire.OnceQuestion) (wire.OncePlan, error) {
	h.began <- struct{}{}
	<-h.end
	return wire.OncePlan{}, nil
}

// TestOnePlanOfATenantIsMadeAtATime: of every kind that the document has, while one of any kind is being made.
func TestOnePlanOfATenantIsMadeAtATime(t *testing.T) {
	planner := held{make(chan struct{}), make(chan struct{})}
	s := start(t, 0, func(cfg *api.Config) {
		asking(t, access.GateConfig{})(cfg)
		cfg.Planner = planner
	})
	wants := map[string]string{"capacity": "runs_per_day=1&schedules=1", "once": "fault=zombie", "order": "workers=1&arrivals=1", "queue": "workers=1&arrivals=1", "retry": ""}
	kinds := slices.Sorted(maps.Keys(wants))
	var paths, served []string
	for _, kind := range kinds {
		paths = append(paths, "/v1/plan/"+kind+"?"+wants[kind])
	}
	ours, theirs := s.token("default", access.Read), s.token("acme", access.Read)
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "", bearing(ours)...).is(200).body, &document); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		if kind, is := strings.CutPrefix(path, "/v1/plan/"); is {
			served = append(served, kind)
		}
	}
	if !slices.Equal(served, kinds) {
		t.Fatalf("the document has plans of %q, and those of %q are asked for here", served, kinds)
	}
	first, other := make(chan reply), make(chan reply)
	ask := func(to chan reply, path, token string) { to <- s.send("GET", path, "", bearing(token)...) }
	for i, making := range paths {
		go ask(first, making, ours)
		<-planner.began
		for _, path := range paths {
			if busy := s.send("GET", path, "", bearing(ours)...).is(429); busy.header.Get("Retry-After") != "1" || into[wire.Problem](busy).Code != "busy" {
				t.Errorf("%s while %s is made: Retry-After %q, %s", path, making, busy.header.Get("Retry-After"), busy.body)
			}
		}
		go ask(other, paths[(i+1)%len(paths)], theirs) // of another tenant: at once
		<-planner.began
		planner.end <- struct{}{}
		planner.end <- struct{}{}
		(<-first).is(200)
		(<-other).is(200)
	}
}
