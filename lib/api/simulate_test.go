package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

const simulated = `{"start": "2026-01-05T00:00:00Z", "until": "1h", "jobs": {"report": {"schedule": {"cron": "*/10 * * * *"}, "overlap": "skip", "timeout": "1h",
	"target": {"handler": {"name": "anything"}}}}, "outcomes": {"report": [{"takes": "15m"}, {"takes": "1s", "result": {"rows": 3}}]},
	"script": [{"at": "5m", "do": "trigger", "job": "nobody"}]}`

func TestAScenarioIsPlayedAndNothingIsStored(t *testing.T) {
	s := start(t, 0, everything(t))
	got := into[wire.Simulation](s.send("POST", "/v1/simulate", simulated).is(200))
	if len(got.Runs) != 6 || got.Runs[0].State != "succeeded" || got.Runs[1].Why == nil || string(got.Runs[2].Result) != `{"rows":3}` || len(got.Refused) != 1 || got.Refused[0].Line != 1 {
		t.Errorf("the report is %+v", got)
	}
	if again := s.send("POST", "/v1/simulate", simulated).is(200); string(again.body) != string(s.send("POST", "/v1/simulate", simulated).is(200).body) {
		t.Error("the same scenario gives another report")
	}
	if jobs := string(s.send("GET", "/v1/jobs", "").is(200).body); strings.Contains(jobs, "report") {
		t.Errorf("the jobs are %s", jobs)
	}
}

func TestAScenarioIsRefusedByItsFields(t *testing.T) {
	s := start(t, 0, everything(t))
	for body, want := range map[string]string{
		`{"start": "2026-01-05T00:00:00Z", "calendars": {}}`:                                                                       "calendars",
		`{"start": "2026-01-05T00:00:00Z", "gates": {"a": {"limit": 0}}}`:                                                          "gates.a.limit",
		`{"start": "2026-01-05T00:00:00Z", "gates": {"a": {"limit": 1, "rate": {}}}}`:                                              "gates.a.rate",
		`{"start": "2026-01-05T00:00:00Z", "script": [{"at": "1m", "do": "gate", "name": "a", "definition": {"max_waiting": 1}}]}`: "script[0].definition.limit",
		`{"start": "2026-01-05T00:00:00Z", "script": [{"at": "1m", "do": "gate", "name": "a", "definition": 3}]}`:                  "script[0].definition",
		`{"start": "2026-01-05T00:00:00Z", "scirpt": []}`:                                                                          "scirpt",
		`{"start": "2026-01-05T00:00:00Z", "script": [{"at": "1m", "do": "signal"}]}`:                                              "script[0].do",
		`{"start": "2026-01-05T00:00:00Z", "script": [{"at": "1m", "do": "look", "as": "a", "x": 1}]}`:                             "script[0].x",
	} {
		if fields := s.send("POST", "/v1/simulate", body).refused(400, "malformed"); len(fields) != 1 || fields[want] == "" {
			t.Errorf("%s: %v, want %s", body, fields, want)
		}
	}
	const gated = `{"start": "2026-01-05T00:00:00Z", "gates": {"stripe": {"limit": 1}}, "jobs": {"a": {"gates": ["stripe"], "target": {"handler": {"name": "x"}}}}, "script": [
		{"at": "1m", "do": "close", "gate": "stripe", "reason": "they are down"}, {"at": "2m", "do": "trigger", "job": "a", "as": "one"}, {"at": "3m", "do": "gate", "name": "stripe", "definition": null},
		{"at": "4m", "do": "gate", "name": "stripe", "definition": {"limit": 2}}, {"at": "5m", "do": "put", "job": "b", "definition": {"gates": [{"gate": "stripe", "units": 3}], "target": {"handler": {"name": "x"}}}}]}`
	looks := strings.TrimSuffix(strings.Repeat(`{"at": "1m", "do": "look", "as": "l%d"},`, 4), ",")
	for body, want := range map[string]string{
		strings.Replace(simulated, `"1h"`, `"1970-01-01T00:00:00Z"`, 1):                                          "until",
		strings.Replace(simulated, `{"rows": 3}`, `"`+strings.Repeat("x", 300)+`"`, 1):                           "outcomes.report[1].result",
		strings.Replace(gated, `"gates": ["stripe"]`, `"gates": ["strpe"]`, 1):                                   "jobs.a.gates[0].gate",
		strings.Replace(gated, `"definition": null`, `"definition": {"target": {"handler": {"name": "x"}}}`, 1):  "script[2].definition",
		strings.Replace(simulated, `"*/10 * * * *"`, `"61 * * * *"`, 1):                                          "jobs.report.schedule.cron",
		`{"start": "2026-01-05T00:00:00Z", "script": [` + fmt.Sprintf(looks, 1, 2, 3, 4) + `]}`:                  "script[3].do",
		strings.Replace(simulated, `"outcomes": {"report": [`, `"outcomes": {"report": [], "*": [`, 1):           "outcomes.report",
		strings.Replace(simulated, `"outcomes": {"report": [{`, `"outcomes": {"report": [{"crashes": true, `, 1): "",
	} {
		r := s.send("POST", "/v1/simulate", body)
		if want == "" {
			r.is(200)
			continue
		}
		if fields := r.refused(422, "invalid"); len(fields) != 1 || fields[want] == "" {
			t.Errorf("%.300s: %v, want %s", body, fields, want)
		}
	}
	got := into[wire.Simulation](s.send("POST", "/v1/simulate", gated).is(200))
	if w := got.Runs[0].Waits; len(got.Runs) != 1 || got.Runs[0].State != "succeeded" || len(w) != 1 || w[0].Gate != "stripe" || w[0].To.Sub(w[0].From) != time.Minute ||
		len(got.Refused) != 1 || got.Refused[0].Line != 5 || !strings.Contains(got.Refused[0].Detail, "at most 2, the limit of the gate stripe") {
		t.Errorf("with a gate it is %+v, refused %+v", got.Runs, got.Refused)
	}
	s.send("POST", "/v1/simulate", `{"start": "2026-01-05T00:00:00Z", "expect": "`+strings.Repeat("x", 256<<10)+`"}`).is(413)
}

// slow plays until it is told to end, or its time is over.
type slow struct{ began, end chan struct{} }

func (slow) Check(wire.Scenario) error { return nil }

func (p slow) Play(ctx context.Context, _ wire.Scenario) (wire.Simulation, error) {
	p.began <- struct{}{}
	select {
	case <-p.end:
		return wire.Simulation{}, nil
	case <-ctx.Done():
		return wire.Simulation{}, ctx.Err()
	}
}

func TestP11_OneSimulationAtATimeAndNoneForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		player := slow{make(chan struct{}), make(chan struct{})}
		s := start(t, 0, func(cfg *api.Config) { cfg.Simulator = player })
		first := make(chan reply)
		play := func() { first <- s.send("POST", "/v1/simulate", `{"start": "2026-01-05T00:00:00Z"}`) }
		go play()
		<-player.began
		if busy := s.send("POST", "/v1/simulate", `{"start": "2026-01-05T00:00:00Z"}`).is(429); busy.header.Get("Retry-After") != "5" || into[wire.Problem](busy).Code != "busy" {
			t.Errorf("Retry-After %q, %s", busy.header.Get("Retry-After"), busy.body)
		}
		close(player.end)
		(<-first).is(200)

		player.end = make(chan struct{})
		s = start(t, 0, func(cfg *api.Config) { cfg.Simulator = player })
		go play()
		<-player.began
		if late := (<-first).is(422); into[wire.Problem](late).Code != "simulation_too_long" {
			t.Errorf("%s", late.body)
		}
		go play()
		<-player.began
		close(player.end)
		(<-first).is(200)
	})
}

func TestASimulationAsksForTheRightToRead(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	s.send("POST", "/v1/simulate", simulated, bearing(s.token("default", access.Read))...).is(200)
	s.send("POST", "/v1/simulate", simulated, bearing(s.token("default", access.Work))...).is(403)
	s.send("POST", "/v1/simulate", simulated).is(401)
	if without := start(t, 0, nil); without.send("POST", "/v1/simulate", simulated).status != 404 {
		t.Error("a server without a simulator has the path")
	}
}
