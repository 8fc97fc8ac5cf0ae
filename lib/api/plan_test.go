package api_test

import (
	"context"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func planned(cfg *api.Config) { cfg.Planner = retrying.Service{} }

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

// held is a planner that is busy until it is let go.
type held struct{ began, end chan struct{} }

func (h held) Retry(context.Context, wire.RetryQuestion) (wire.RetryPlan, error) {
	h.began <- struct{}{}
	<-h.end
	return wire.RetryPlan{}, nil
}

func TestOnePlanOfATenantIsMadeAtATime(t *testing.T) {
	planner := held{make(chan struct{}), make(chan struct{})}
	s := start(t, 0, func(cfg *api.Config) {
		asking(t, access.GateConfig{})(cfg)
		cfg.Planner = planner
	})
	first, other := make(chan reply), make(chan reply)
	ask := func(to chan reply, token string) { to <- s.send("GET", "/v1/plan/retry", "", bearing(token)...) }
	ours, theirs := s.token("default", access.Read), s.token("acme", access.Read)
	go ask(first, ours)
	<-planner.began
	if busy := s.send("GET", "/v1/plan/retry", "", bearing(ours)...).is(429); busy.header.Get("Retry-After") != "1" || into[wire.Problem](busy).Code != "busy" {
		t.Errorf("Retry-After %q, %s", busy.header.Get("Retry-After"), busy.body)
	}
	go ask(other, theirs) // of another tenant: at once
	<-planner.began
	close(planner.end)
	(<-first).is(200)
	(<-other).is(200)
	go ask(first, ours)
	<-planner.began
	(<-first).is(200)
}
