package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestAGateIsPutShownClosedOpenedAndDeleted(t *testing.T) {
	s := start(t, 0, nil)
	made := s.send("PUT", "/v1/gates/stripe", `{"limit": 10}`).is(201)
	g := into[wire.Gate](made)
	tag := made.header.Get("ETag")
	if g.Name != "stripe" || g.Limit != 10 || g.Order != "priority" || g.MaxWaiting != nil || g.Closed != nil || g.InProgress != 0 || g.Units != 0 || g.Waiting != 0 ||
		g.Generation == 0 || g.ETag != tag || tag == "" || g.CreatedAt.IsZero() || g.UpdatedAt.IsZero() || g.Job != "" || g.Policy != "" {
		t.Errorf("made %s, ETag %s", made.body, tag)
	}
	if again := s.send("PUT", "/v1/gates/stripe", `{"name": "stripe", "limit": 10, "order": "priority"}`).is(200); again.header.Get("ETag") != tag {
		t.Errorf("the same again has the ETag %s, before it was %s", again.header.Get("ETag"), tag)
	}
	if got := s.send("GET", "/v1/gates/stripe", "").is(200); got.header.Get("ETag") != tag || string(got.body) != string(made.body) {
		t.Errorf("got %s, put %s", got.body, made.body)
	}
	s.send("PUT", "/v1/gates/stripe", `{"limit": 3}`, "If-None-Match", "*").refused(412, "gate_exists")
	put := s.send("PUT", "/v1/gates/stripe", `{"limit": 3, "max_waiting": 0, "order": "fifo"}`, "If-Match", tag).is(200)
	if g := into[wire.Gate](put); g.Limit != 3 || g.Order != "fifo" || g.MaxWaiting == nil || *g.MaxWaiting != 0 || put.header.Get("ETag") == tag {
		t.Errorf("replaced by %s", put.body)
	}
	for method, path := range map[string]string{"PUT": "", "POST": "/close", "DELETE": ""} {
		body := map[string]string{"PUT": `{"limit": 4}`, "POST": `{}`}[method]
		s.send(method, "/v1/gates/stripe"+path, body, "If-Match", tag).refused(412, "precondition_failed")
	}
	closed := into[wire.Gate](s.send("POST", "/v1/gates/stripe/close", `{"reason": "they are down"}`).is(200))
	if closed.Closed == nil || closed.Closed.Reason != "they are down" || time.Since(closed.Closed.Since) > 5*time.Minute || closed.Generation <= g.Generation {
		t.Errorf("closed: %+v", closed)
	}
	if g := into[wire.Gate](s.send("PUT", "/v1/gates/stripe", `{"limit": 5}`).is(200)); g.Closed == nil || g.Limit != 5 {
		t.Errorf("put while it is closed: %+v", g)
	}
	if open := into[wire.Gate](s.send("POST", "/v1/gates/stripe/open", `{}`).is(200)); open.Closed != nil {
		t.Errorf("opened: %+v", open)
	}
	s.send("DELETE", "/v1/gates/stripe", "").is(204)
	for _, at := range []string{"GET ", "DELETE ", "POST /close", "POST /open", "GET /line"} {
		method, path, _ := strings.Cut(at, " ")
		body := map[string]string{"POST": `{}`}[method]
		s.send(method, "/v1/gates/stripe"+path, body).refused(404, "gate_not_found")
	}
	s.send("PUT", "/v1/gates/stripe", `{"limit": 1}`, "If-Match", "*").refused(412, "precondition_failed")
}

// How long runs may wait is put, shown and taken away, and a run that waits says until when it may. One that is skipped for that says so, with who was in its way.
func TestARunSaysUntilWhenItMayWaitAtAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{server: start(t, 0, nil), ctx: t.Context(), stop: func() {}}
		s.work()
		defer func() { s.stop() }()
		put := s.send("PUT", "/v1/gates/stripe", `{"limit": 1, "max_wait": "600s", "order": "deadline"}`).is(201)
		if g := into[wire.Gate](put); g.MaxWait.String() != "10m" || g.Order != "deadline" {
			t.Errorf("put as %s", put.body)
		}
		if again := s.send("PUT", "/v1/gates/stripe", string(put.body)).is(200); string(again.body) != string(put.body) {
			t.Errorf("put again: %s", again.body)
		}
		s.send("POST", "/v1/gates/stripe/close", `{}`).is(200)
		s.job("charge", `{"target": {"handler": {"name": "echo"}}, "deadline": "2h", "gates": ["stripe"]}`)
		id := s.run("charge", `{}`)
		time.Sleep(5 * time.Second)
		r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
		if len(r.Waiting) != 1 || r.Waiting[0].WaitUntil.Sub(r.Waiting[0].Since) != 10*time.Minute || !strings.Contains(r.Waiting[0].Text, "It is skipped where it still waits there at "+r.Waiting[0].WaitUntil.Format(time.RFC3339)) {
			t.Fatalf("it waits as %+v", r.Waiting)
		}
		line := into[wire.LinePage](s.send("GET", "/v1/gates/stripe/line", "").is(200)).Items
		if len(line) != 1 || !line[0].WaitUntil.Equal(r.Waiting[0].WaitUntil) || !line[0].EndBy.Equal(line[0].NominalTime.Add(2*time.Hour)) {
			t.Errorf("in line as %+v", line)
		}
		time.Sleep(11 * time.Minute)
		r = into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
		if r.State != "skipped" || r.Why == nil || r.Why.Code != "max_wait" || r.Why.Gate != "stripe" || !r.Why.Since.Equal(line[0].Since) ||
			!strings.HasSuffix(r.Why.Text, ", for longer than 10m, and the gate was closed (gate: stripe, max_wait)") {
			t.Errorf("it is %s for %+v", r.State, r.Why)
		}
		if g := into[wire.Gate](s.send("PUT", "/v1/gates/stripe", `{"limit": 1}`).is(200)); g.MaxWait != 0 || g.Order != "priority" {
			t.Errorf("without them it is %+v", g)
		}
	})
}

// What GET gives can be put again. What says otherwise about whether the gate is closed is refused, and told what would be right.
func TestAPutNeitherClosesNorOpensAGate(t *testing.T) {
	s := start(t, 0, nil)
	refused := func(closed, want string) {
		t.Helper()
		fields := s.send("PUT", "/v1/gates/stripe", `{"limit": 1, "closed": `+closed+`}`).refused(422, "invalid")
		if len(fields) != 1 || !strings.Contains(fields["closed"], want) {
			t.Errorf("%s: %v", closed, fields)
		}
	}
	const close, open = "the gate is open, and POST /v1/gates/stripe/close closes it", "the gate is closed; POST /v1/gates/stripe/open opens it, and .../close changes the reason"
	shut := `{"since": "2026-11-25T09:00:00Z", "reason": "they are down"}`
	refused(shut, close) // there is none yet
	s.send("GET", "/v1/gates/stripe", "").refused(404, "gate_not_found")
	s.send("PUT", "/v1/gates/stripe", `{"limit": 1, "closed": null}`).is(201)
	for _, closed := range []string{shut, "true", "{}", `"now"`} {
		refused(closed, close)
	}
	s.send("PUT", "/v1/gates/stripe", string(s.send("GET", "/v1/gates/stripe", "").is(200).body)).is(200)
	s.send("POST", "/v1/gates/stripe/close", `{"reason": "they are down"}`).is(200)
	refused("null", open)
	refused(shut, open)
	refused("false", open)
	stands := s.send("GET", "/v1/gates/stripe", "").is(200)
	if again := s.send("PUT", "/v1/gates/stripe", string(stands.body)).is(200); string(again.body) != string(stands.body) {
		t.Errorf("put again: %s, was %s", again.body, stands.body)
	}
	if g := into[wire.Gate](s.send("PUT", "/v1/gates/stripe", `{"limit": 2}`).is(200)); g.Closed == nil || g.Limit != 2 {
		t.Errorf("put without the field: %+v", g)
	}
}

func TestAWrongGateIsRefusedAndNamed(t *testing.T) {
	s := start(t, 0, nil)
	const later = "not available yet; leave it out"
	for body, c := range map[string]struct{ code, field, want string }{
		`{}`:                                        {"malformed", "limit", "missing"},
		`{"limit": 0}`:                              {"malformed", "limit", "to let nobody in, close the gate"},
		`{"limit": -1}`:                             {"malformed", "limit", "at least 1"},
		`{"limit": 1001}`:                           {"malformed", "limit", "at most 1000"},
		`{"limit": "3"}`:                            {"malformed", "limit", "whole number"},
		`{"limit": 1.5}`:                            {"malformed", "limit", "whole number"},
		`{"limit": null}`:                           {"malformed", "limit", "got null"},
		`{"limit": 1, "max_waiting": -1}`:           {"malformed", "max_waiting", "at least 0"},
		`{"limit": 1, "max_waiting": 100001}`:       {"malformed", "max_waiting", "at most 100000"},
		`{"limit": 1, "order": "newest"}`:           {"malformed", "order", "priority, fifo or deadline"},
		`{"limit": 1, "order": "shortest"}`:         {"malformed", "order", `got "shortest", which is not available yet`},
		`{"limit": 1, "order": "fair"}`:             {"malformed", "order", `got "fair", which is not available yet`},
		`{"limit": 1, "rate": {"limit": 1}}`:        {"malformed", "rate", later},
		`{"limit": 1, "fair_by": "${ .job }"}`:      {"malformed", "fair_by", later},
		`{"limit": 1, "weights": {"a": 1}}`:         {"malformed", "weights", later},
		`{"limit": 1, "max_wait": "999ms"}`:         {"invalid", "max_wait", "1s to 1825d"},
		`{"limit": 1, "max_wait": "1826d"}`:         {"invalid", "max_wait", "1s to 1825d"},
		`{"limit": 1, "max_wait": 60}`:              {"malformed", "max_wait", `want a duration such as "90s"`},
		`{"limit": 1, "while_retrying": "release"}`: {"malformed", "while_retrying", later},
		`{"limit": 1, "open": {}}`:                  {"malformed", "open", later},
		`{"limit": 1, "breaker": {}}`:               {"malformed", "breaker", later},
		`{"limit": 1, "pool": {}}`:                  {"malformed", "pool", later},
		`{"limit": 1, "key": "${ .job }"}`:          {"malformed", "key", later},
		`{"limit": 1, "paused": true}`:              {"malformed", "paused", "unknown field; want closed, limit, max_wait, max_waiting, name or order"},
		`{"limit": 1, "lmit": 1}`:                   {"malformed", "lmit", "unknown field; want closed, limit, max_wait, max_waiting, name or order"},
		`{"limit": 1, "name": "other"}`:             {"invalid", "name", `"stripe", which is what this gate is called here`},
	} {
		status := map[string]int{"malformed": 400, "invalid": 422}[c.code]
		fields := s.send("PUT", "/v1/gates/stripe", body).refused(status, c.code)
		if len(fields) != 1 || !strings.Contains(fields[c.field], c.want) {
			t.Errorf("%s: fields %v, want %s alone, saying %q", body, fields, c.field, c.want)
		}
	}
	if fields := s.send("PUT", "/v1/gates/"+strings.Repeat("x", 65), `{"limit": 1}`).refused(422, "invalid"); !strings.Contains(fields["gate"], "1 to 64") {
		t.Errorf("a name of 65 bytes: %v", fields)
	}
	s.send("PUT", "/v1/gates/a:b", `{"limit": 1}`).refused(422, "invalid")
	s.send("PUT", "/v1/gates/-a", `{"limit": 1}`).refused(400, "malformed")
	s.send("GET", "/v1/gates/stripe", "").refused(404, "gate_not_found")
	s.send("PUT", "/v1/gates/stripe", `{"limit": 1}`).is(201)
	if fields := s.send("POST", "/v1/gates/stripe/close", `{"reason": "`+strings.Repeat("é", 129)+`"}`).refused(422, "invalid"); !strings.Contains(fields["reason"], "256 bytes") {
		t.Errorf("a reason of 258 bytes: %v", fields)
	}
	s.send("POST", "/v1/gates/stripe/close", `{"reason": "`+strings.Repeat("x", 257)+`"}`).refused(400, "malformed")
}

func TestTheOwnGateOfAJobIsShownAndNotEdited(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/report", overlapping(`{"policy": "queue", "limit": 2}`)).is(201)
	s.send("PUT", "/v1/jobs/free", echo).is(201)
	got := s.send("GET", "/v1/gates/job:report", "").is(200)
	g := into[wire.Gate](got)
	if g.Name != "job:report" || g.Job != "report" || g.Policy != "queue" || g.Limit != 2 || g.ETag != "" || got.header.Get("ETag") != "" || g.Generation != 0 || g.Order != "" {
		t.Errorf("shown as %s", got.body)
	}
	s.send("GET", "/v1/gates/job:free", "").refused(404, "gate_not_found")
	s.send("GET", "/v1/gates/job:none", "").refused(404, "gate_not_found")
	for _, of := range []string{"report", "none"} {
		for _, at := range []string{"PUT ", "DELETE ", "POST /close", "POST /open"} {
			method, path, _ := strings.Cut(at, " ")
			body := map[string]string{"PUT": `{"limit": 1}`, "POST": `{}`}[method]
			r := s.send(method, "/v1/gates/job:"+of+path, body)
			if of == "none" && path == "/open" { // which the line of a job may need
				r.refused(404, "gate_not_found")
				continue
			}
			r.refused(409, "own_gate")
			says := "pause that job"
			if path == "/open" {
				says = "never stands still"
			}
			if !strings.Contains(into[wire.Problem](r).Detail, says) {
				t.Errorf("%s: %s", at, r.body)
			}
		}
	}
}

// Under strict the gate of a job says behind which run its line stands still, and is opened: for that run alone, by whom and why being kept.
func TestTheGateOfAStrictJobIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{server: start(t, 0, nil), ctx: t.Context(), stop: func() {}}
		s.work()
		defer func() { s.stop() }()
		s.job("a", strings.Replace(strings.Replace(fallible, "5", "1", 1), "{", `{"overlap": "strict", `, 1))
		first := s.run("a", `{"payload": 1}`)
		settle()
		second := s.run("a", `{"payload": 1}`)
		settle()
		g := into[wire.Gate](s.send("GET", "/v1/gates/job:a", "").is(200))
		if len(g.BlockedBy) != 1 || g.BlockedBy[0].Run != first || g.BlockedBy[0].State != "dead" || g.BlockedBy[0].Since.IsZero() || g.Policy != "strict" || g.InProgress != 0 || g.Waiting != 1 || g.Opened != nil {
			t.Errorf("the gate is %+v", g)
		}
		s.send("POST", "/v1/gates/job:a/open", fmt.Sprintf(`{"run": %q}`, second)).refused(409, "run_not_blocking")
		s.send("POST", "/v1/gates/job:a/open", `{"run": "b~0mwqktqeg"}`).refused(422, "invalid")
		since := g.BlockedBy[0].Since
		ended := func(at time.Time) string {
			return fmt.Sprintf(`{"run": %q, "since": %q, "reason": "made up by hand"}`, first, at.Format(time.RFC3339Nano))
		}
		s.send("POST", "/v1/gates/job:a/open", ended(since.Add(-time.Millisecond))).refused(409, "run_not_blocking")
		g = into[wire.Gate](s.send("POST", "/v1/gates/job:a/open", ended(since)).is(200))
		if len(g.BlockedBy) != 0 || g.Opened == nil || g.Opened.Reason != "made up by hand" || len(g.Opened.Runs) != 1 || g.Opened.Runs[0] != first {
			t.Errorf("opened as %+v", g)
		}
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+second, "").is(200)); r.State != "dead" {
			t.Errorf("the second is %s", r.State)
		}
		s.send("PUT", "/v1/gates/stripe", `{"limit": 1}`).is(201)
		if fields := s.send("POST", "/v1/gates/stripe/open", fmt.Sprintf(`{"run": %q}`, first)).refused(422, "invalid"); !strings.Contains(fields["run"], "left out") {
			t.Errorf("a run at a named gate: %v", fields)
		}
		if fields := s.send("POST", "/v1/gates/stripe/open", `{"since": "2026-11-21T18:05:32Z"}`).refused(422, "invalid"); !strings.Contains(fields["since"], "left out") {
			t.Errorf("an end of a run at a named gate: %v", fields)
		}
	})
}

// What a job says of gates is what is shown, and what puts it back changes nothing.
func TestGatesOfAJobAreNamesOrObjects(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/gates/stripe", `{"limit": 2}`).is(201)
	s.send("PUT", "/v1/gates/gpu", `{"limit": 4}`).is(201)
	with := func(gates string) string { return strings.Replace(echo, "{", `{"gates": `+gates+`, `, 1) }
	for i, c := range []struct{ sent, shown string }{
		{`["stripe"]`, `["stripe"]`},
		{`[{"gate": "stripe"}, {"units": 4, "gate": "gpu"}]`, `["stripe",{"gate":"gpu","units":4}]`},
		{`[{"gate": "stripe", "units": 1}]`, `["stripe"]`},
		{`[]`, ""},
	} {
		name := fmt.Sprint("a", i)
		s.send("PUT", "/v1/jobs/"+name, with(c.sent)).is(201)
		got := s.send("GET", "/v1/jobs/"+name, "").is(200)
		if shown := string(into[map[string]json.RawMessage](got)["gates"]); shown != c.shown {
			t.Errorf("%s is shown as %s, want %s", c.sent, shown, c.shown)
		}
		if again := s.send("PUT", "/v1/jobs/"+name, string(got.body)).is(200); again.header.Get("ETag") != got.header.Get("ETag") {
			t.Errorf("%s: putting back what was got made another generation", c.sent)
		}
	}
	const either = `want the name of a gate, such as "stripe", or an object such as {"gate": "stripe", "units": 2}`
	for gates, c := range map[string]struct{ code, field, want string }{
		`"stripe"`:                              {"malformed", "gates", "got string, want an array"},
		`[3]`:                                   {"malformed", "gates[0]", "got number, " + either},
		`[null]`:                                {"malformed", "gates[0]", "got null, " + either},
		`["job:report"]`:                        {"malformed", "gates[0]", "1 to 64 letters"},
		`["` + strings.Repeat("x", 65) + `"]`:   {"malformed", "gates[0]", "at most 64"},
		`[{"units": 2}]`:                        {"malformed", "gates[0].gate", "missing"},
		`[{"gate": "gpu", "units": 0}]`:         {"malformed", "gates[0].units", "at least 1"},
		`[{"gate": "gpu", "units": 1001}]`:      {"malformed", "gates[0].units", "at most 1000"},
		`[{"gate": "gpu", "unit": 1}]`:          {"malformed", "gates[0].unit", "unknown field; want gate, key or units"},
		`["a","b","c","d","e","f","g","h","i"]`: {"malformed", "gates", "at most 8"},
		`["stripe", "gpu", "stripe"]`:           {"invalid", "gates[2].gate", "each gate once"},
		`["stripe", "none"]`:                    {"invalid", "gates[1].gate", "a gate that exists"},
		`[{"gate": "gpu", "units": 5}]`:         {"invalid", "gates[0].units", "at most 4, the limit of the gate gpu"},
	} {
		status := map[string]int{"malformed": 400, "invalid": 422}[c.code]
		for _, query := range []string{"", "?dry_run=true"} {
			fields := s.send("PUT", "/v1/jobs/x"+query, with(gates)).refused(status, c.code)
			if len(fields) != 1 || !strings.Contains(fields[c.field], c.want) {
				t.Errorf("%s%s: fields %v, want %s alone, saying %q", gates, query, fields, c.field, c.want)
			}
		}
	}
	flow := `{"gates": ["stripe"], "target": {"workflow": {"steps": {"a": {"pass": {}}}}}}`
	if fields := s.send("PUT", "/v1/jobs/x", flow).refused(422, "invalid"); !strings.Contains(fields["gates"], "nothing beside a workflow") {
		t.Errorf("beside a workflow: %v", fields)
	}
	if fields := s.send("PATCH", "/v1/jobs/a0", `{"gates": ["none"]}`).refused(422, "invalid"); fields["gates[0].gate"] == "" {
		t.Errorf("a patch: %v", fields)
	}
	s.send("DELETE", "/v1/gates/stripe", "").is(204)
	s.send("PATCH", "/v1/jobs/a0", `{"description": "its gate is gone"}`).is(200)
}

func TestARunThatDoesNotWaitIsNotReleased(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"delay": "1h"}`).is(202)).ID
	r := s.send("POST", "/v1/runs/"+id+"/release", `{}`)
	r.refused(409, "run_not_waiting")
	if !strings.Contains(into[wire.Problem](r).Detail, "scheduled") {
		t.Errorf("it is told %s", r.body)
	}
	s.send("POST", "/v1/runs/"+strings.Replace(id, "a~", "b~", 1)+"/release", `{}`).refused(404, "run_not_found")
}

// Who has closed a gate, opened it, and released a run, and for what reason, is shown: at the gate, with the run, and to who waits.
func TestWhoClosesOpensAndReleases(t *testing.T) {
	runningWith(t, func(cfg *api.Config) { asking(t, access.GateConfig{})(cfg) }, func(t *testing.T, s *server) {
		caller := bearing(s.token("default", access.Write, access.Run, access.Read))
		someone := regexp.MustCompile(`[0-9a-f]{16}`)
		s.send("PUT", "/v1/gates/stripe", `{"limit": 1}`, caller...).is(201)
		s.send("PUT", "/v1/jobs/charge", `{"timeout": "1h", "gates": ["stripe"], "target": {"handler": {"name": "wait"}}}`, caller...).is(201)
		closed := into[wire.Gate](s.send("POST", "/v1/gates/stripe/close", `{"reason": "they are down"}`, caller...).is(200))
		if c := closed.Closed; c == nil || c.Reason != "they are down" || !someone.MatchString(c.By) || closed.Opened != nil {
			t.Errorf("closed: %+v, opened %+v", c, closed.Opened)
		}
		var ids []string
		for range 2 {
			ids = append(ids, into[wire.Run](s.send("POST", "/v1/jobs/charge/runs", `{}`, caller...).is(202)).ID)
			settle()
		}
		for range 2 { // repeated, it changes nothing
			r := into[wire.Run](s.send("POST", "/v1/runs/"+ids[1]+"/release", `{"reason": "the customer waits"}`, caller...).is(200))
			if r.ReleasedAt.IsZero() || r.ReleasedFor != "the customer waits" || !someone.MatchString(r.ReleasedBy) {
				t.Errorf("released: %+v", r)
			}
		}
		r := into[wire.Run](s.send("GET", "/v1/runs/"+ids[1], "", caller...).is(200))
		if len(r.Waiting) != 1 || !strings.Contains(r.Waiting[0].Text, "The gate is closed by "+closed.Closed.By+" (they are down)") ||
			!strings.Contains(r.Waiting[0].Text, "Somebody released it to the front: "+r.ReleasedBy+" (the customer waits).") {
			t.Errorf("it waits for %+v", r.Waiting)
		}
		for range 2 {
			opened := into[wire.Gate](s.send("POST", "/v1/gates/stripe/open", `{"reason": "they are back"}`, caller...).is(200))
			if o := opened.Opened; opened.Closed != nil || o == nil || o.Reason != "they are back" || !someone.MatchString(o.By) || o.At.Before(closed.Closed.Since) {
				t.Errorf("opened: %+v", opened)
			}
		}
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+ids[1], "", caller...).is(200)); r.State != "running" || r.ReleasedFor != "the customer waits" || r.ReleasedBy == "" {
			t.Errorf("let in it is %+v", r)
		}
		stands := s.send("GET", "/v1/gates/stripe", "", caller...).is(200)
		s.send("PUT", "/v1/gates/stripe", string(stands.body), caller...).is(200)
		if fields := s.send("POST", "/v1/gates/stripe/open", `{"reason": "`+strings.Repeat("é", 129)+`"}`, caller...).refused(422, "invalid"); !strings.Contains(fields["reason"], "256 bytes") {
			t.Errorf("a reason of 258 bytes: %v", fields)
		}
		s.send("POST", "/v1/runs/"+ids[0]+"/release", `{"reason": "`+strings.Repeat("é", 201)+`"}`, caller...).refused(400, "malformed")
	})
}

// Runs of two jobs wait in one line: it is listed, told of to each of them, and counted in runs and units. A close holds it up, a release and a deletion do
// what they say.
func TestTheLineOfAGateThatJobsShare(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/gates/shared", `{"limit": 3}`).is(201)
		for name, uses := range map[string]string{"one": `["shared"]`, "two": `[{"gate": "shared", "units": 2}]`} {
			s.send("PUT", "/v1/jobs/"+name, `{"timeout": "1h", "gates": `+uses+`, "target": {"handler": {"name": "wait"}}}`).is(201)
		}
		trigger := func(name string) string {
			id := into[wire.Run](s.send("POST", "/v1/jobs/"+name+"/runs", `{}`).is(202)).ID
			settle()
			return id
		}
		stands := func(want string) {
			t.Helper()
			g := into[wire.Gate](s.send("GET", "/v1/gates/shared", "").is(200))
			listed := into[wire.GatePage](s.send("GET", "/v1/gates", "").is(200)).Items
			got := fmt.Sprintf("%d runs, %d units, %d wait", g.InProgress, g.Units, g.Waiting)
			if got != want || len(listed) != 1 || fmt.Sprint(listed[0].InProgress, listed[0].Units, listed[0].Waiting) != fmt.Sprint(g.InProgress, g.Units, g.Waiting) {
				t.Errorf("%s, listed as %+v; want %s", got, listed, want)
			}
		}
		line := func() (ids []string) {
			t.Helper()
			for cursor, more := "", true; more; more = cursor != "" {
				page := into[wire.LinePage](s.send("GET", "/v1/gates/shared/line?limit=1"+cursorOf(cursor), "").is(200))
				for _, r := range page.Items {
					ids = append(ids, r.ID)
				}
				cursor = page.Next
			}
			return ids
		}
		first, second := trigger("two"), trigger("one")
		stands("2 runs, 3 units, 0 wait")
		third, fourth := trigger("one"), trigger("two")
		stands("2 runs, 3 units, 2 wait")
		if got := line(); fmt.Sprint(got) != fmt.Sprint([]string{third, fourth}) {
			t.Errorf("in line are %v, want %s and %s", got, third, fourth)
		}
		why := func(id string) wire.Waiting {
			t.Helper()
			r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
			if r.State != "waiting" || len(r.Waiting) != 1 || r.Waiting[0].Code != "gate" {
				t.Fatalf("the run is %s, and waits for %+v", r.State, r.Waiting)
			}
			return r.Waiting[0]
		}
		if w := why(fourth); w.Gate != "shared" || *w.Behind != 1 || fmt.Sprint(w.InTheWay) != fmt.Sprint([]string{first, second}) || w.Since.IsZero() {
			t.Errorf("it waits for %+v", w)
		}
		if l := into[wire.LinePage](s.send("GET", "/v1/gates/shared/line?key=a", "").is(200)); len(l.Items) != 0 { // nobody passes it by a key
			t.Errorf("for a wait %+v", l.Items)
		}

		s.send("POST", "/v1/gates/shared/close", `{"reason": "they are down"}`).is(200)
		s.send("POST", "/v1/runs/"+second+"/cancel", `{}`).is(200)
		time.Sleep(time.Minute) // until its worker has heard of it
		stands("1 runs, 2 units, 2 wait")
		if w := why(third); !strings.Contains(w.Text, "The gate is closed (they are down)") || *w.Behind != 0 {
			t.Errorf("behind a closed gate it waits for %+v", w)
		}
		released := into[wire.Run](s.send("POST", "/v1/runs/"+fourth+"/release", `{}`).is(200))
		if age := time.Since(released.ReleasedAt); released.State != "waiting" || age < 0 || age > time.Minute {
			t.Errorf("released as %+v", released)
		}
		if got := line(); fmt.Sprint(got) != fmt.Sprint([]string{fourth, third}) {
			t.Errorf("after a release %v are in line, want %s first", got, fourth)
		}
		s.send("POST", "/v1/runs/"+first+"/release", `{}`).refused(409, "run_not_waiting")
		s.send("POST", "/v1/gates/shared/open", `{}`).is(200)
		settle()
		stands("1 runs, 2 units, 2 wait") // the first in line wants two, and nobody passes it
		s.send("PUT", "/v1/gates/shared", `{"limit": 4}`).is(200)
		settle()
		stands("2 runs, 4 units, 1 wait")
		s.send("DELETE", "/v1/gates/shared", "").is(204)
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+third, "").is(200)); r.State != "running" {
			t.Errorf("after the deletion it is %s, waiting for %+v", r.State, r.Waiting)
		}
		s.send("PUT", "/v1/gates/brief", `{"limit": 1, "max_waiting": 0}`).is(201)
		s.send("PUT", "/v1/jobs/brief", `{"timeout": "1h", "overlap": {"limit": 5, "key": "${ .job }"}, "gates": ["brief"], "target": {"handler": {"name": "wait"}}}`).is(201)
		let, full := trigger("brief"), trigger("brief")
		if y := into[wire.Run](s.send("GET", "/v1/runs/"+full, "").is(200)).Why; y == nil || y.Code != "full" || y.Gate != "brief" || y.Policy != "" || y.Key != "" ||
			y.Text != let+" was in progress or in line, which was full (gate: brief)" {
			t.Errorf("skipped for %+v", y)
		}
		for _, id := range []string{first, third, fourth, let} {
			s.send("POST", "/v1/runs/"+id+"/cancel", `{}`).is(200)
		}
		time.Sleep(time.Minute)
	})
}

// Of a gate that jobs pass by a key, the values that are in use are shown with it, as of a job's own.
func TestTheValuesOfAGateAreShown(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/gates/customer", `{"limit": 1}`).is(201)
		s.send("PUT", "/v1/jobs/charge", `{"timeout": "1h", "gates": [{"gate": "customer", "key": "${ .payload }"}], "target": {"handler": {"name": "wait"}}}`).is(201)
		for _, customer := range []string{"acme", "acme", "other"} {
			s.send("POST", "/v1/jobs/charge/runs", `{"payload": "`+customer+`"}`).is(202)
			settle()
		}
		want := []wire.KeyGate{{Key: "acme", InProgress: 1, Waiting: 1}, {Key: "other", InProgress: 1}}
		if g := into[wire.Gate](s.send("GET", "/v1/gates/customer", "").is(200)); !slices.Equal(g.Keys, want) || g.InProgress != 2 || g.Waiting != 1 {
			t.Errorf("it stands as %+v", g)
		}
		if listed := into[wire.GatePage](s.send("GET", "/v1/gates", "").is(200)).Items; len(listed) != 1 || !slices.Equal(listed[0].Keys, want) {
			t.Errorf("listed %+v", listed)
		}
	})
}
