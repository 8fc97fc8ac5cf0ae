package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// overlapping is a job that says so of its runs.
func overlapping(overlap string) string {
	return strings.Replace(echo, "{", `{"overlap": `+overlap+`, `, 1)
}

func TestOverlapIsTheNameOfAPolicyOrAnObject(t *testing.T) {
	s := start(t, 0, nil)
	for i, c := range []struct{ sent, shown string }{
		{`"skip"`, `"skip"`},
		{`{"policy": "skip"}`, `"skip"`},
		{`{"policy": "skip", "limit": 1}`, `"skip"`},
		{`{"limit": 3, "policy": "skip"}`, `{"policy":"skip","limit":3}`},
		{`{"policy": "skip", "limit": 1000}`, `{"policy":"skip","limit":1000}`},
		{`"queue"`, `"queue"`},
		{`{"policy": "queue", "limit": 1}`, `"queue"`},
		{`{"policy": "queue", "max_waiting": 0}`, `{"policy":"queue","limit":1,"max_waiting":0}`},
		{`{"max_waiting": 9, "limit": 3}`, `{"policy":"allow","limit":3,"max_waiting":9}`},
		{`{"limit": 3}`, `{"policy":"allow","limit":3}`},
		{`"allow"`, ""},
		{`{"policy": "allow"}`, ""},
		{`{}`, ""},
	} {
		name := fmt.Sprint("a", i)
		s.send("PUT", "/v1/jobs/"+name, overlapping(c.sent)).is(201)
		got := s.send("GET", "/v1/jobs/"+name, "").is(200)
		if shown := string(into[map[string]json.RawMessage](got)["overlap"]); shown != c.shown {
			t.Errorf("%s is shown as %s, want %s", c.sent, shown, c.shown)
		}
		again := s.send("PUT", "/v1/jobs/"+name, string(got.body)).is(200)
		if again.header.Get("ETag") != got.header.Get("ETag") {
			t.Errorf("%s: putting back what was got made another generation", c.sent)
		}
		if listed := into[wire.JobPage](s.send("GET", "/v1/jobs?prefix="+name, "").is(200)).Items[0]; !reflect.DeepEqual(listed.Overlap, into[wire.Job](got).Overlap) {
			t.Errorf("%s is listed as %+v", c.sent, listed.Overlap)
		}
	}
	s.send("POST", "/v1/jobs/batch", `{"jobs": [`+strings.Replace(overlapping(`"skip"`), "{", `{"name": "b", `, 1)+`]}`).is(200)
	if got := into[wire.Job](s.send("GET", "/v1/jobs/b", "").is(200)).Overlap; got != (job.Overlap{Policy: job.OverlapSkip, Limit: 1}) {
		t.Errorf("of a batch: %+v", got)
	}
}

func TestAWrongOverlapIsRefusedAndNamed(t *testing.T) {
	s := start(t, 0, nil)
	const either = `such as "skip" or "queue_latest", or an object such as {"policy": "queue", "limit": 3, "max_waiting": 100}`
	for _, c := range []struct {
		overlap, code, field, want string
	}{
		{`5`, "malformed", "overlap", "got number, want the name of a policy, " + either},
		{`null`, "malformed", "overlap", "got null, want the name of a policy, " + either},
		{`["skip"]`, "malformed", "overlap", either},
		{`""`, "malformed", "overlap", "want one of allow, skip, queue, queue_one, queue_latest, cancel, replace or strict"},
		{`"Skip"`, "malformed", "overlap", "want one of allow, skip, queue, queue_one, queue_latest, cancel, replace or strict"},
		{`"skip:3"`, "malformed", "overlap", "want one of allow, skip, queue, queue_one, queue_latest, cancel, replace or strict"},
		{`{"policy": "Forbid"}`, "malformed", "overlap.policy", "want one of allow, skip, queue, queue_one, queue_latest, cancel, replace or strict"},
		{`{"policy": null}`, "malformed", "overlap.policy", "got null"},
		{`{"policy": "skip", "limit": 0}`, "malformed", "overlap.limit", "at least 1"},
		{`{"policy": "skip", "limit": -1}`, "malformed", "overlap.limit", "at least 1"},
		{`{"policy": "skip", "limit": 1001}`, "malformed", "overlap.limit", "at most 1000"},
		{`{"policy": "skip", "limit": "3"}`, "malformed", "overlap.limit", "whole number"},
		{`{"policy": "skip", "limit": 1.5}`, "malformed", "overlap.limit", "whole number"},
		{`{"policy": "skip", "limit": 2.0}`, "invalid", "overlap.limit", "without a fraction"},
		{`{"policy": "skip", "limit": 2, "limit": 3}`, "malformed", "overlap.limit", "twice"},
		{`{"policy": "skip", "max": 3}`, "malformed", "overlap.max", "unknown field; want key, limit, max_waiting or policy"},
		{`{"policy": "queue", "limit": 0}`, "malformed", "overlap.limit", "at least 1"},
		{`{"policy": "allow", "limit": 0}`, "malformed", "overlap.limit", "at least 1"},
		{`{"policy": "queue", "limit": 1001}`, "malformed", "overlap.limit", "at most 1000"},
		{`{"policy": "queue", "max_waiting": -1}`, "malformed", "overlap.max_waiting", "at least 0"},
		{`{"policy": "queue", "max_waiting": 100001}`, "malformed", "overlap.max_waiting", "at most 100000"},
		{`{"policy": "queue", "max_waiting": "3"}`, "malformed", "overlap.max_waiting", "whole number"},
		{`{"policy": "queue", "max_waiting": null}`, "malformed", "overlap.max_waiting", "got null"},
		{`{"policy": "skip", "max_waiting": 3}`, "invalid", "overlap.max_waiting", "no max_waiting under skip"},
		{`{"policy": "allow", "max_waiting": 3}`, "invalid", "overlap.max_waiting", "a limit beside it"},
		{`{"policy": "skip", "key": null}`, "malformed", "overlap.key", "got null"},
		{`{"policy": "skip", "key": ""}`, "malformed", "overlap.key", "at least 1"},
		{`{"policy": "skip", "key": "customer"}`, "invalid", "overlap.key", "such as ${ .payload.customer }"},
		{`{"policy": "skip", "key": "${ .payload.a | slect(.b) }"}`, "invalid", "overlap.key", `got "slect" at character 17, want one of the functions that expressions may use; did you mean "select"?`},
		{`{"policy": "skip", "key": "${ .paylod.a }"}`, "invalid", "overlap.key", `got "paylod" at character 5, want one of payload, job, labels and nominal_time; did you mean "payload"?`},
		{`{"policy": "skip", "key": "${ .input.a }"}`, "invalid", "overlap.key", "want one of payload, job, labels and nominal_time"},
		{`{"key": "${ .job }"}`, "invalid", "overlap.key", "a limit beside it"},
		{`{"max_waiting": 0}`, "invalid", "overlap.max_waiting", "a limit beside it"},
	} {
		s.wrongOverlap(c.overlap, c.code, c.field, c.want)
	}
	s.send("GET", "/v1/jobs/x", "").refused(404, "job_not_found")
}

// wrongOverlap puts a job, alone and in a batch, and looks for what is said of a field.
func (s *server) wrongOverlap(overlap, code, field, want string) {
	s.t.Helper()
	status := map[string]int{"malformed": 400, "invalid": 422}[code]
	fields := s.send("PUT", "/v1/jobs/x", overlapping(overlap)).refused(status, code)
	if len(fields) != 1 || !strings.Contains(fields[field], want) {
		s.t.Errorf("%s: fields %v, want %s alone, saying %q", overlap, fields, field, want)
	}
	if code == "invalid" {
		return // of a batch, a verdict of its own
	}
	fields = s.send("POST", "/v1/jobs/batch", `{"jobs": [`+strings.Replace(overlapping(overlap), "{", `{"name": "b", `, 1)+`]}`).refused(status, code)
	if len(fields) != 1 || !strings.Contains(fields["jobs[0]."+field], want) {
		s.t.Errorf("%s in a batch: fields %v, want %s alone, saying %q", overlap, fields, field, want)
	}
}

// What a later version has is refused as such: whoever wrote it made no typing error.
func TestWhatIsNotAvailableYetIsRefusedByItsName(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	s.wrongOverlap(`{"policy": "strict", "limit": 2}`, "invalid", "overlap.limit", "1 under strict")
	for _, c := range []struct{ method, path, body, field string }{
		{"PUT", "/v1/jobs/x", `"unique": {"for": "24h"}`, "unique"},
		{"PUT", "/v1/jobs/x", `"order_by": ".payload.id"`, "order_by"},
		{"PUT", "/v1/jobs/x", `"schedule": {"every": "1m", "exclude": ["holidays"]}`, "schedule.exclude"},
		{"PUT", "/v1/jobs/x", `"schedule": {"every": "1m", "only": ["workdays"]}`, "schedule.only"},
		{"POST", "/v1/jobs/batch", `"schedule": {"every": "1m", "only": []}`, "jobs[0].schedule.only"},
	} {
		body := strings.Replace(echo, "{", "{"+c.body+", ", 1)
		if c.method == "POST" {
			body = `{"jobs": [` + strings.Replace(body, "{", `{"name": "b", `, 1) + `]}`
		}
		fields := s.send(c.method, c.path, body).refused(400, "malformed")
		if !reflect.DeepEqual(fields, map[string]string{c.field: "not available yet; leave it out"}) {
			t.Errorf("%s: fields %v, want %s alone, as not available yet", c.body, fields, c.field)
		}
	}
	// The same names elsewhere are errors as before, or whatever their owner means by them.
	fields := s.send("POST", "/v1/jobs/a/pause", `{"overlap": "skip", "gates": 1}`).refused(400, "malformed")
	if !strings.HasPrefix(fields["overlap"], "unknown field") || !strings.HasPrefix(fields["gates"], "unknown field") {
		t.Errorf("where they will never be: %v", fields)
	}
	s.send("PUT", "/v1/jobs/free", strings.Replace(echo, "{", `{"labels": {"gates": "queue", "overlap": "queue"}, "payload": {"overlap": "queue", "deadline": 1}, `, 1)).is(201)
}

// The document has the field as it is taken, and nothing of what is to come.
func TestTheDocumentOfOverlap(t *testing.T) {
	s := start(t, 0, nil)
	type schema struct {
		Ref        string `json:"$ref"`
		Type       any
		Enum       []string
		OneOf      []schema
		Properties map[string]schema
		Minimum    *float64
		Maximum    *float64
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "").is(200).body, &document); err != nil {
		t.Fatal(err)
	}
	doc := document.Components.Schemas
	for _, name := range []string{"Job", "NamedJob"} {
		if got := doc[name].Properties["overlap"].Ref; got != "#/components/schemas/PolicyOrOverlap" {
			t.Errorf("%s has %s", name, got)
		}
	}
	one := doc["PolicyOrOverlap"].OneOf
	if len(one) != 2 || one[0].Ref != "#/components/schemas/OverlapPolicy" || one[1].Ref != "#/components/schemas/Overlap" || !slices.Equal(doc["OverlapPolicy"].Enum, []string{"allow", "skip", "queue", "queue_one", "queue_latest", "cancel", "replace", "strict"}) {
		t.Errorf("%+v, %+v", one, doc["OverlapPolicy"])
	}
	object := doc["Overlap"].Properties
	if limit := object["limit"]; len(object) != 4 || object["key"].Type != "string" || limit.Minimum == nil || *limit.Minimum != 1 || limit.Maximum == nil || *limit.Maximum != job.MaxOverlapLimit {
		t.Errorf("the object has %+v", object)
	}
}

// A job fires each second, and its runs take five: what is due meanwhile is skipped, and says what was in its way wherever it is shown.
func TestARunThatIsOneTooManySaysWhatWasInItsWay(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		const slow = `{"schedule": {"every": "1s"}, "target": {"handler": {"name": "wait"}}, "timeout": "5s", "retry": {"max_attempts": 1}, "overlap": "skip", "labels": {"team": "billing"}}`
		s.send("PUT", "/v1/jobs/slow", slow).is(201)
		time.Sleep(20 * time.Second)
		s.send("POST", "/v1/jobs/slow/pause", `{}`).is(200)
		time.Sleep(10 * time.Second)
		runs := into[wire.RunPage](s.send("GET", "/v1/jobs/slow/runs?limit=1000", "").is(200)).Items
		tried := map[string]wire.Run{}
		for _, r := range runs {
			if r.State == "dead" {
				tried[r.ID] = r
			}
		}
		skipped := into[wire.RunPage](s.send("GET", "/v1/runs?state=skipped&label=team%3Dbilling&limit=1000", "").is(200)).Items
		if len(tried) < 3 || len(tried) > 5 || len(skipped) < 12 || len(tried)+len(skipped) != len(runs) {
			t.Fatalf("of %d runs %d were tried and %d were skipped", len(runs), len(tried), len(skipped))
		}
		for _, r := range skipped {
			if r.Why == nil || r.Why.Code != "overlap" || r.Why.Gate != "job:slow" || r.Why.Policy != "skip" || len(r.Why.InTheWay) != 1 {
				t.Fatalf("%s: why %+v", r.ID, r.Why)
			}
			first := tried[r.Why.InTheWay[0]]
			if !first.StartedAt.Before(r.EndedAt) || first.EndedAt.Before(r.NominalTime) {
				t.Errorf("%s, of %s, ended at %s for %s, which went on from %s to %s", r.ID, r.NominalTime, r.EndedAt, first.ID, first.StartedAt, first.EndedAt)
			}
			if one := into[wire.Run](s.send("GET", "/v1/runs/"+r.ID, "").is(200)); !reflect.DeepEqual(one.Why, r.Why) || one.Attempt != 0 || one.Skipped != nil {
				t.Errorf("alone it is %+v", one)
			}
		}
		for _, r := range tried {
			if r.Why != nil {
				t.Errorf("%s was tried, and says %+v", r.ID, r.Why)
			}
		}

		// It may be tried after all, and has nothing in its way any more.
		again := into[wire.Run](s.send("POST", "/v1/runs/"+skipped[0].ID+"/retry", `{}`).is(200))
		if again.Why != nil || again.State != "queued" {
			t.Errorf("retried: %+v", again)
		}
		time.Sleep(10 * time.Second)
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+skipped[0].ID, "").is(200)); got.State != "dead" || got.Why != nil || got.Attempt != 1 {
			t.Errorf("after the retry: %+v", got)
		}
	})
}

// A request is answered before it is known whether there is room, and many at once are as many as the limit says.
func TestRequestsThatAreTooManyAreSkippedWhenTheyAreDue(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/slow", `{"target": {"handler": {"name": "wait"}}, "timeout": "1m", "retry": {"max_attempts": 1}, "overlap": {"policy": "skip", "limit": 3}}`).is(201)
		for range 8 {
			s.send("POST", "/v1/jobs/slow/runs", `{}`).is(202)
		}
		later := into[wire.Run](s.send("POST", "/v1/jobs/slow/runs", `{"delay": "5m"}`).is(202))
		settle()
		if n := len(into[wire.RunPage](s.send("GET", "/v1/jobs/slow/runs?state=running", "").is(200)).Items); n != 3 {
			t.Errorf("%d run at once, want 3", n)
		}
		for _, r := range into[wire.RunPage](s.send("GET", "/v1/jobs/slow/runs?state=skipped", "").is(200)).Items {
			if r.Why == nil || len(r.Why.InTheWay) != 3 || r.Trigger != "request" {
				t.Errorf("%s: why %+v", r.ID, r.Why)
			}
		}
		time.Sleep(5 * time.Minute)
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+later.ID, "").is(200)); got.State != "running" {
			t.Errorf("the one of later is %s, and has room", got.State)
		}
		s.send("POST", "/v1/runs/"+later.ID+"/cancel", `{}`).is(200)
		settle()
	})
}

// Runs that wait their turn are shown as waiting wherever runs are shown, with the reason, and what is done to a run that waits holds.
func TestRunsThatWaitTheirTurn(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		const slow = `{"target": {"handler": {"name": "wait"}}, "timeout": "1m", "retry": {"max_attempts": 1}, "overlap": {"policy": "queue", "max_waiting": 3}}`
		s.send("PUT", "/v1/jobs/slow", slow).is(201)
		var ids []string
		for range 5 {
			ids = append(ids, into[wire.Run](s.send("POST", "/v1/jobs/slow/runs", `{}`).is(202)).ID)
			settle()
		}
		states := func() (states []string) {
			t.Helper()
			for _, id := range ids {
				states = append(states, into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)).State)
			}
			return states
		}
		if got := states(); !slices.Equal(got, []string{"running", "waiting", "waiting", "waiting", "skipped"}) {
			t.Fatalf("they are %v", got)
		}
		if y := into[wire.Run](s.send("GET", "/v1/runs/"+ids[4], "").is(200)).Why; y == nil || y.Code != "full" || y.Policy != "queue" || y.InTheWay[0] != ids[0] || len(y.InTheWay) != 4 {
			t.Errorf("skipped for %+v", y)
		}
		r := into[wire.Run](s.send("GET", "/v1/runs/"+ids[2], "").is(200))
		if len(r.Waiting) != 1 {
			t.Fatalf("it waits for %+v", r.Waiting)
		}
		if w := r.Waiting[0]; w.Code != "gate" || w.Gate != "job:slow" || w.Behind == nil || *w.Behind != 1 || !slices.Equal(w.InTheWay, ids[:1]) || w.Since.Before(r.NominalTime) || !strings.Contains(w.Text, "One run is before it") {
			t.Errorf("it waits for %+v", w)
		}
		for path, want := range map[string]int{"/v1/runs?state=waiting": 3, "/v1/jobs/slow/runs?state=waiting": 3, "/v1/runs?state=queued": 0, "/v1/jobs/slow/runs?state=waiting,running": 4} {
			if got := into[wire.RunPage](s.send("GET", path, "").is(200)).Items; len(got) != want {
				t.Errorf("%s lists %d, want %d", path, len(got), want)
			}
		}
		gates := into[wire.GatePage](s.send("GET", "/v1/gates", "").is(200)).Items
		if len(gates) != 1 || gates[0].Name != "job:slow" || gates[0].Waiting != 3 || gates[0].InProgress != 1 || gates[0].Limit != 1 || gates[0].Policy != "queue" || gates[0].MaxWaiting == nil || *gates[0].MaxWaiting != 3 {
			t.Errorf("the gates are %+v", gates)
		}
		line := into[wire.LinePage](s.send("GET", "/v1/gates/job:slow/line?limit=2", "").is(200))
		if len(line.Items) != 2 || line.Items[0].ID != ids[1] || line.Items[1].ID != ids[2] || line.Next == "" {
			t.Errorf("the line is %+v", line)
		}
		rest := into[wire.LinePage](s.send("GET", "/v1/gates/job:slow/line?cursor="+line.Next, "").is(200))
		if len(rest.Items) != 1 || rest.Items[0].ID != ids[3] || rest.Next != "" {
			t.Errorf("its rest is %+v", rest)
		}
		s.send("GET", "/v1/gates/job:none/line", "").is(404)
		s.send("GET", "/v1/gates/stripe/line", "").is(404)
		s.send("POST", "/v1/runs/"+ids[1]+"/cancel", `{}`).is(200)
		if gates := into[wire.GatePage](s.send("GET", "/v1/gates", "").is(200)).Items; gates[0].Waiting != 2 {
			t.Errorf("after a cancel %d wait", gates[0].Waiting)
		}
		s.send("POST", "/v1/jobs/slow/pause", `{}`).is(200)
		s.send("POST", "/v1/runs/"+ids[0]+"/cancel", `{}`).is(200)
		time.Sleep(time.Minute)
		if got := states(); !slices.Equal(got, []string{"cancelled", "cancelled", "waiting", "waiting", "skipped"}) {
			t.Errorf("in a pause they are %v", got)
		}
		if w := into[wire.Run](s.send("GET", "/v1/runs/"+ids[2], "").is(200)).Waiting; len(w) != 2 || w[0].Code != "paused" || w[1].Code != "gate" {
			t.Errorf("in a pause it waits for %+v", w)
		}
		s.send("POST", "/v1/jobs/slow/resume", `{}`).is(200)
		settle()
		if got := states(); !slices.Equal(got[2:4], []string{"running", "waiting"}) {
			t.Errorf("after the resume they are %v", got)
		}
		s.send("PUT", "/v1/jobs/slow", strings.Replace(slow, `"max_waiting": 3`, `"limit": 2`, 1)).is(200)
		settle()
		if got := states(); !slices.Equal(got[2:4], []string{"running", "running"}) {
			t.Errorf("with a raised limit they are %v", got)
		}
		next := into[wire.Run](s.send("POST", "/v1/jobs/slow/runs", `{}`).is(202)).ID
		time.Sleep(61 * time.Second) // until those in progress run into their timeouts
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+next, "").is(200)); got.State != "running" {
			t.Errorf("when others have ended it is %s", got.State)
		}
		s.send("POST", "/v1/jobs/slow/runs", `{}`).is(202)
		settle()
		more := into[wire.Run](s.send("POST", "/v1/jobs/slow/runs", `{}`).is(202)).ID
		settle()
		s.send("DELETE", "/v1/jobs/slow", "").is(204)
		settle()
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+more, "").is(200)); got.State != "cancelled" || got.Reason != "the job was deleted" {
			t.Errorf("after the delete it is %s: %s", got.State, got.Reason)
		}
	})
}

// A run that waits for its next attempt holds its place, and its cancel lets in whoever waits for that.
func TestACancelLetsInTheNext(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "wait"}}, "timeout": "1s", "retry": {"max_attempts": 3, "initial": "6h", "max": "6h"}, "overlap": "queue"}`).is(201)
		first := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)).ID
		settle()
		next := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)).ID
		settle()
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+next, "").is(200)).State; got != "waiting" {
			t.Fatalf("it is %s", got)
		}
		s.send("POST", "/v1/runs/"+first+"/cancel", `{}`).is(200)
		settle()
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+next, "").is(200)).State; got == "waiting" {
			t.Errorf("after the cancel it is %s", got)
		}
	})
}

// Each end lets in the next, long before a check of it comes: that of a run that is given up, which is written by itself, and that of one that is cancelled while it
// runs, which is written with others.
func TestAnEndLetsInTheNext(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "wait"}}, "timeout": "7s", "retry": {"max_attempts": 1}, "overlap": "queue"}`).is(201)
		var ids []string
		for range 4 {
			ids = append(ids, into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)).ID)
			time.Sleep(time.Second)
		}
		state := func(i int) string { return into[wire.Run](s.send("GET", "/v1/runs/"+ids[i], "").is(200)).State }
		settle() // until the first runs into its timeout
		settle()
		if state(0) != "dead" || state(1) != "running" {
			t.Errorf("behind a run that is %s the next is %s", state(0), state(1))
		}
		s.send("POST", "/v1/runs/"+ids[1]+"/cancel", `{}`).is(200)
		settle()
		if state(1) != "cancelled" || state(2) != "running" || state(3) != "waiting" {
			t.Errorf("behind a run that is %s the next is %s, and the one behind it %s", state(1), state(2), state(3))
		}
	})
}
