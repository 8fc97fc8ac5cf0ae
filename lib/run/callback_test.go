package run_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A callback is of one end: the same whoever asks for it, and another for each run, event, end and tenant.
func TestC2_ACallbackIsNamedByItsEnd(t *testing.T) {
	r := run.Run{ID: run.RequestID("report", 1000, 1), Tenant: "acme", State: run.Dead, Ended: 5000}
	called := r.Call(job.OnFailed, "tell")
	if again := r.Call(job.OnFailed, "tell"); again.ID != called.ID || called.ID.Nominal != r.Ended || !called.ID.OnDemand() {
		t.Errorf("named %s, and then %s", called.ID, again.ID)
	}
	if id, err := run.ParseID(called.ID.String()); err != nil || id != called.ID {
		t.Errorf("%s is no ID of a run: %v", called.ID, err)
	}
	seen := map[run.ID]string{called.ID: "itself"}
	for what, change := range map[string]func(r *run.Run) job.Event{
		"another run":    func(r *run.Run) job.Event { r.ID = run.RequestID("report", 1000, 2); return job.OnFailed },
		"a fire":         func(r *run.Run) job.Event { r.ID = run.FireID("report", 1000); return job.OnFailed },
		"another job":    func(r *run.Run) job.Event { r.ID.Job = "other"; return job.OnFailed },
		"another event":  func(*run.Run) job.Event { return job.OnSucceeded },
		"another end":    func(r *run.Run) job.Event { r.Ended++; return job.OnFailed },
		"another tenant": func(r *run.Run) job.Event { r.Tenant = "other"; return job.OnFailed },
	} {
		other := r
		id := other.Call(change(&other), "tell").ID
		if before, twice := seen[id]; twice {
			t.Errorf("%s has the name of %s", what, before)
		}
		seen[id] = what
	}
}

func TestWhoCallsBack(t *testing.T) {
	on := job.Callbacks{Failed: &job.Callback{Job: "tell"}, Succeeded: &job.Callback{Job: "tell"}}
	for _, s := range append(run.States(), run.Fenced) {
		r := run.Run{ID: run.FireID("report", 1000), State: s}
		ends := s == run.Succeeded || s == run.Failed || s == run.Dead || s == run.Unknown
		e, ok := r.Ends()
		if ok != ends || r.CallsBack(on) != ends || r.CallsBack(job.Callbacks{}) || ok && (e == job.OnSucceeded) != (s == run.Succeeded) {
			t.Errorf("%s ends as %q, %t, and calls back: %t", s, e, ok, r.CallsBack(on))
		}
		if r.CallsBack(job.Callbacks{Failed: on.Failed}) != (ends && e == job.OnFailed) || r.CallsBack(job.Callbacks{Recovered: on.Failed}) != ends {
			t.Errorf("%s calls back for another event, or not for a recovery", s)
		}
		r.Callback = run.Callback{Event: "failed", Run: "other~000000000"}
		if r.CallsBack(on) {
			t.Errorf("a callback that is %s calls back", s)
		}
	}
}

// What a request names goes before what the job says of that event, and leaves what it says of others.
func TestC1_WhomARequestCalls(t *testing.T) {
	says := job.Callbacks{Failed: &job.Callback{Job: "tell"}, Recovered: &job.Callback{Job: "well"}}
	r := run.Run{ID: run.RequestID("report", 1000, 1), State: run.Dead, Callees: run.Callees{Succeeded: "done", Failed: "other"}}
	on := r.Callees.Over(says)
	if on.Failed.Job != "other" || on.Succeeded.Job != "done" || on.Recovered.Job != "well" || says.Failed.Job != "tell" || says.Succeeded != nil {
		t.Errorf("it calls %+v, %+v and %+v", on.Succeeded, on.Failed, on.Recovered)
	}
	if own := (run.Callees{}).Over(says); own != says {
		t.Errorf("a request that names nobody changes %+v to %+v", says, own)
	}
	r.Callees.Failed = ""
	if !r.CallsBack(says) || r.CallsBack(job.Callbacks{}) {
		t.Error("who is named for a success is called for a failure")
	}
	r.State = run.Succeeded
	if !r.CallsBack(job.Callbacks{}) {
		t.Error("nobody is called for a success")
	}
	if r.State = run.Cancelled; r.CallsBack(job.Callbacks{}) {
		t.Error("a cancel calls")
	}
	again := run.Run{ID: r.ID, State: run.Dead, Version: 3, Callees: r.Callees}.Reopen(7, 1, "again")
	if again.Callees != r.Callees {
		t.Error("a run that is opened again forgets whom its request named")
	}
}

func TestWhatACallbackIsTold(t *testing.T) {
	long := strings.Repeat("x", run.MaxTold)
	for name, c := range map[string]struct {
		result run.Ref
		want   string // of the run, without what all have
	}{
		"nothing":                  {run.Ref{}, ""},
		"JSON":                     {run.Ref{Inline: []byte(` {"a": "<b>"} `), Type: "application/json"}, `,"result":{"a":"<b>"}`},
		"JSON in a charset":        {run.Ref{Inline: []byte(`{"a":1}`), Type: "application/json; charset=utf-8"}, `,"result":{"a":1}`},
		"a kind of JSON":           {run.Ref{Inline: []byte(`{"a":1}`), Type: "application/problem+json"}, `,"result":{"a":1}`},
		"no JSON":                  {run.Ref{Inline: []byte(`{"a"`), Type: "application/json"}, `,"result":"{\"a\"","result_type":"application/json"`},
		"text":                     {run.Ref{Inline: []byte("line\n")}, `,"result":"line\n"`},
		"bytes":                    {run.Ref{Inline: []byte{0xff, 0}, Type: "image/x"}, `,"result":"/wA=","result_type":"image/x;base64"`},
		"cut":                      {run.Ref{Inline: []byte(`{"a":1}`), Type: "application/json", Cut: true}, `,"result":"{\"a\":1}","result_type":"application/json","result_cut":true`},
		"as long as may be":        {run.Ref{Inline: []byte(long)}, `,"result":"` + long + `"`},
		"longer":                   {run.Ref{Inline: []byte(long + "x")}, `,"result_left_out":true`},
		"in a blob":                {run.Ref{Blob: "b"}, `,"result_left_out":true`},
		"in a blob, and it is cut": {run.Ref{Blob: "b", Cut: true}, `,"result_cut":true,"result_left_out":true`},
	} {
		r := run.Run{ID: run.FireID("report", 1_800_000_000_000), Tenant: "acme", State: run.Succeeded, Generation: 7, Started: 1_800_000_001_000, Ended: 1_800_000_002_500, Attempt: 2,
			Attempts: []run.Attempt{{Number: 1, Error: "old"}, {Number: 2}}, Result: c.result}
		want := `{"event":"succeeded","run":{"id":"` + r.ID.String() + `","job":"report","generation":7,"state":"succeeded","nominal_time":"2027-01-15T08:00:00Z",` +
			`"started_at":"2027-01-15T08:00:01Z","ended_at":"2027-01-15T08:00:02.5Z","attempt":2` + c.want + `}}`
		called := r.Call(job.OnSucceeded, "tell")
		if got := string(called.Payload.Inline); got != want {
			t.Errorf("%s: told\n%s, want\n%s", name, got, want)
		}
		if called.Created != r.Ended || called.State != run.Scheduled || called.Callback != (run.Callback{Event: "succeeded", Run: r.ID.String()}) || called.Tenant != "acme" {
			t.Errorf("%s: called as %+v", name, called)
		}
	}
	failed := run.Run{ID: run.RequestID("report", 1, 1), State: run.Dead, Ended: 2, Reason: "attempts spent", Attempts: []run.Attempt{{Number: 1, Error: "exit: \xff <no>"}}}
	var told run.Told
	if err := json.Unmarshal(failed.Call(job.OnFailed, "tell").Payload.Inline, &told); err != nil || told.Event != job.OnFailed || told.Run.Reason != "attempts spent" ||
		told.Run.Error != "exit: \ufffd <no>" || !told.Run.StartedAt.IsZero() || !told.Run.EndedAt.Equal(time.UnixMilli(2)) {
		t.Errorf("told %+v, %v", told, err)
	}
}

// Missed fires are told of by their record, unless that is part of another's stretch.
func TestC1_WhoTellsOfMissedFires(t *testing.T) {
	blank := run.Run{ID: run.FireID("report", 1_800_000_000_000), Tenant: "acme"}
	skipped, _ := blank.Skip(run.Stretch{Generation: 7, Through: 1_800_000_300_000, Upto: 1_800_000_400_000, Count: 6, Reason: "missed: catch-up is none"}, 1_800_000_350_000, time.Hour)
	part, _ := blank.Skip(run.Stretch{Generation: 7, Through: 1_800_000_300_000, Upto: 1_800_000_400_000}, 1_800_000_350_000, time.Hour)
	on := job.Callbacks{Missed: &job.Callback{Job: "tell"}}
	others := job.Callbacks{Succeeded: on.Missed, Failed: on.Missed, Recovered: on.Missed}
	for what, c := range map[string]struct {
		r    run.Run
		on   job.Callbacks
		want bool
	}{
		"their record":              {skipped, on, true},
		"a part of another's":       {part, on, false},
		"where nobody is named":     {skipped, others, false},
		"one too many at its gate":  {run.Run{ID: blank.ID, State: run.Queued}.Overlapping(run.Why{Code: run.WhyOverlap}, false, 1, time.Hour), on, false},
		"a run that was given up":   {run.Run{ID: blank.ID, State: run.Dead, Count: 1}, on, false},
		"a run that was called off": {run.Run{ID: blank.ID, State: run.Cancelled, Count: 1}, on, false},
	} {
		if c.r.CallsMissed(c.on) != c.want || c.r.CallsBack(on) {
			t.Errorf("%s tells of missed fires: %t, and of an end: %t", what, c.r.CallsMissed(c.on), c.r.CallsBack(on))
		}
	}
	called := skipped.Call(job.OnMissed, "tell")
	want := `{"event":"missed","run":{"id":"` + skipped.ID.String() + `","job":"report","generation":7,"state":"skipped","nominal_time":"2027-01-15T08:00:00Z","ended_at":"2027-01-15T08:05:50Z",` +
		`"attempt":0,"reason":"missed: catch-up is none"},"missed":{"count":6,"first":"2027-01-15T08:00:00Z","last":"2027-01-15T08:05:00Z"}}`
	if got := string(called.Payload.Inline); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	if called.ID.Nominal != skipped.Ended || called.Callback != (run.Callback{Event: "missed", Run: skipped.ID.String()}) {
		t.Errorf("called as %+v", called)
	}
}

// The longest names make a record that can be read.
func TestTheLongestCallbackIsKept(t *testing.T) {
	name := strings.Repeat("j", 128)
	r := run.Run{ID: run.RequestID(name, 1_800_000_000_000, 1), Tenant: strings.Repeat("t", 128), State: run.Dead, Ended: 1_800_000_000_500, Reason: strings.Repeat("r", 120),
		Attempts: []run.Attempt{{Number: 1, Error: strings.Repeat("\x01", 240)}}, Result: run.Ref{Inline: []byte(strings.Repeat("\x01", run.MaxTold))}}
	called := r.Call(job.OnFailed, name)
	called.Callees = run.Callees{Succeeded: name, Failed: name} // which no callback has
	for range 5 {                                               // it fails, and is tried again
		called = called.Start("worker", 1, time.Minute).Fail(2, run.Failure{Error: strings.Repeat("e", 300)}, run.Limits{MaxFailures: 9})
	}
	op, err := called.Item(1)
	if err != nil {
		t.Fatal(err)
	}
	var back run.Run
	if err := record.Decode(op.Value, &back); err != nil || back.Callback != called.Callback || back.Callees != called.Callees || string(back.Payload.Inline) != string(called.Payload.Inline) || back.Attempt != 5 {
		t.Errorf("read as %+v, %v", back, errors.Join(err))
	}
}
