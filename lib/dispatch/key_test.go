package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// keyedBy bounds the job's runs by the values of a key.
func (g *gated) keyedBy(key string) *job.Edition {
	g.t.Helper()
	def := queueing(1)
	def.Overlap.Key = key
	g.edit(func(j *job.Job) {
		j.Def.Overlap, j.Def.Payload, j.Def.Labels, j.Keyed = def.Overlap, []byte(`{"customer": "everybody"}`), map[string]string{"team": "billing"}, true
	})
	e, err := g.Book.Edition(g.t.Context(), "default", "report", 1)
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func bringing(payload string) func(run.Run) run.Run {
	return func(r run.Run) run.Run {
		r.ID = run.RequestID("report", r.ID.Nominal, 77)
		r.Trigger, r.Payload.Inline = run.ByRequest, []byte(payload)
		return r
	}
}

// What the key of a run is, what it is read from, and that a payload which is kept apart is asked for only where the key names it.
func TestTheKeyOfARun(t *testing.T) {
	apart := func(r run.Run) run.Run { r.Payload = run.Ref{Blob: "payload/default/gone"}; return r }
	for name, row := range map[string]struct {
		key    string
		of     func(run.Run) run.Run
		want   string // the value
		failed string
		err    bool
	}{
		"its payload":                         {"${ .payload.customer }", bringing(`{"customer": "acme"}`), "acme", "", false},
		"the payload of the job":              {"${ .payload.customer }", nil, "everybody", "", false},
		"a payload that is text":              {"${ .payload }", bringing(`no JSON`), "no JSON", "", false},
		"a payload that is neither":           {"${ .payload }", bringing("\xff\xfe"), "", "expression: overlap.key: the payload of the run is neither JSON nor text", false},
		"labels, name and time":               {"${ .labels.team } ${ .job } ${ .nominal_time }", nil, "billing report 2027-01-15T08:00:00.000Z", "", false},
		"nothing":                             {"${ .payload.none }", nil, "", "expression: overlap.key: it gives null; want a text, a number, true or false", false},
		"a payload apart that is named":       {"${ .payload.customer }", apart, "", "", true},
		"a payload apart that is not":         {"${ .job }", apart, "report", "", false},
		"what its record says":                {"${ .payload.none }", func(r run.Run) run.Run { r.GateKey = gate.KeyOf("acme"); return r }, "acme", "", false},
		"a payload apart, what a record says": {"${ .payload.none }", func(r run.Run) run.Run { r = apart(r); r.GateKey = gate.KeyOf("acme"); return r }, "acme", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			e := g.keyedBy(row.key)
			r := g.put(0, row.of)
			keyed, ok, err := g.Keyed(t.Context(), r, e)
			stands := g.stands(r)
			switch {
			case (err != nil) != row.err:
				t.Fatalf("%v", err)
			case row.err && (ok || stands.State != run.Queued):
				t.Errorf("it is %s", stands.State)
			case row.failed != "" && (ok || !keyed.State.Ended() || stands.State != run.Failed || stands.Reason != row.failed || stands.Attempt != 0 || stands.Placed):
				t.Errorf("it is %s: %s", stands.State, stands.Reason)
			case row.failed == "" && !row.err && (!ok || keyed.GateKey != gate.KeyOf(row.want) || stands.State != run.Queued):
				t.Errorf("its key is %q, want that of %q", keyed.GateKey, row.want)
			}
			if again, ok, err := g.Keyed(t.Context(), r, e); row.failed != "" && (ok || err != nil || again.State.Ended()) {
				t.Errorf("another delivery is told %t, %v", ok, err)
			}
		})
	}
}

// A run that has entered and never started is ended by somebody who has no record of that: whoever waits for its value is let in all the same, and nobody else is.
func TestG2_WhoEnteredAndNeverStartedLeavesTheGateOfItsValue(t *testing.T) {
	for _, value := range []string{"acme", "a value that is longer than forty bytes, of which the hash is kept"} {
		g := newGated(t)
		e := g.keyedBy("${ .payload.customer }")
		var runs []run.Run
		for n, v := range []string{value, "other", value, "other"} {
			r, ok, err := g.Keyed(t.Context(), g.put(n, bringing(fmt.Sprintf(`{"customer": %q}`, v))), e)
			if !ok || err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		if came := g.enters(e.Def, runs...); fmt.Sprint(came) != fmt.Sprint([]dispatch.Entrance{dispatch.Passed, dispatch.Passed, dispatch.Joined, dispatch.Joined}) {
			t.Fatalf("they came to %v", came)
		}
		stood := g.stands(runs[0])
		if stood.GateKey != "" || stood.Placed {
			t.Fatalf("the record says %q", stood.GateKey)
		}
		was := g.MayHold(t.Context(), stood, e)
		ended, _ := stood.AskCancel(then, "", 24*time.Hour)
		g.write(ended)
		if err := g.Left(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		if s := g.stands(runs[2]); s.Waits() || s.GateKey != gate.KeyOf(value) || !s.Placed {
			t.Errorf("who waited for %q is %s at %q", value, s.Stage(), s.GateKey)
		}
		if s := g.stands(runs[3]); !s.Waits() {
			t.Errorf("who waits for another is %s", s.Stage())
		}
	}
}
