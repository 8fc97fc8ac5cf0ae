package dispatch_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

func TestDefaultCalleesAreRead(t *testing.T) {
	for text, want := range map[string]dispatch.DefaultCallee{
		"":                                  {},
		" , ":                               {},
		"tell-ops":                          {"": "tell-ops"},
		"acme=ops":                          {"acme": "ops"},
		"tell-ops, acme=ops ,rival-1.eu=Op": {"": "tell-ops", "acme": "ops", "rival-1.eu": "Op"},
	} {
		if got, err := dispatch.ParseDefaultCallee(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q is read as %v, %v", text, got, err)
		}
	}
	if got, err := dispatch.ParseDefaultCallee("a", "acme=b,rival=c"); err != nil || len(got) != 3 {
		t.Errorf("several texts are read as %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"=ops":                         "JOB or TENANT=JOB",
		"acme=":                        "JOB or TENANT=JOB",
		"=":                            "JOB or TENANT=JOB",
		"Acme=ops":                     "JOB or TENANT=JOB",
		"acme=a=b":                     "JOB or TENANT=JOB",
		"acme:ops":                     "JOB or TENANT=JOB",
		"tell ops":                     "JOB or TENANT=JOB",
		"acme/ops":                     "JOB or TENANT=JOB",
		"-ops":                         "JOB or TENANT=JOB",
		"acme =ops":                    "JOB or TENANT=JOB",
		strings.Repeat("a", 129):       "JOB or TENANT=JOB",
		strings.Repeat("a", 64) + "=b": "JOB or TENANT=JOB",
		"a,b":                          "one job for all tenants: a stands before it",
		"a,a":                          "one job for all tenants: a stands before it",
		"x=a,y=b,x=c":                  "each tenant once: x=a stands before it",
	} {
		if _, err := dispatch.ParseDefaultCallee(text); len(invalid.All(err)) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := dispatch.ParseDefaultCallee("a b,acme=,c"); len(invalid.All(err)) != 2 {
		t.Errorf("two wrong ones: %v", err)
	}
}

func TestTheOperatorsWordGoesBehindAllOthers(t *testing.T) {
	callee := func(name string) *job.Callback { return &job.Callback{Job: name} }
	named := func(c *job.Callback) string {
		if c == nil {
			return ""
		}
		return c.Job
	}
	all := dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{"": "all", "acme": "own"}, Recovered: dispatch.DefaultCallee{"rival": "well"}, Missed: dispatch.DefaultCallee{"": "gone"}}
	plain := run.Run{ID: run.RequestID("report", 1000, 1), Tenant: "default"}
	of := func(change func(*run.Run)) run.Run { r := plain; change(&r); return r }
	step := plain
	step.ID.Step = "a"
	for what, c := range map[string]struct {
		r                                    run.Run
		on                                   job.Callbacks
		succeeded, failed, recovered, missed string
	}{
		"nobody else says":                {r: plain, failed: "all", missed: "gone"},
		"the tenant has its own":          {r: of(func(r *run.Run) { r.Tenant = "acme" }), failed: "own", missed: "gone"},
		"one tenant alone":                {r: of(func(r *run.Run) { r.Tenant = "rival" }), failed: "all", recovered: "well", missed: "gone"},
		"the job says of this event":      {r: plain, on: job.Callbacks{Failed: callee("mine")}, failed: "mine", missed: "gone"},
		"the job says of another event":   {r: plain, on: job.Callbacks{Succeeded: callee("mine"), Recovered: callee("back")}, succeeded: "mine", failed: "all", recovered: "back", missed: "gone"},
		"the request says":                {r: of(func(r *run.Run) { r.Callees.Failed = "asked" }), on: job.Callbacks{Failed: callee("mine")}, failed: "asked", missed: "gone"},
		"it is of the job that is called": {r: of(func(r *run.Run) { r.ID.Job = "all" }), missed: "gone"},
		"of that of another tenant":       {r: of(func(r *run.Run) { r.ID.Job = "own" }), failed: "all", missed: "gone"},
		"it is a step":                    {r: step},
	} {
		on := all.Over(c.r, c.on)
		if named(on.Succeeded) != c.succeeded || named(on.Failed) != c.failed || named(on.Recovered) != c.recovered || named(on.Missed) != c.missed {
			t.Errorf("%s: succeeded %q, failed %q, recovered %q, missed %q", what, named(on.Succeeded), named(on.Failed), named(on.Recovered), named(on.Missed))
		}
		if again := all.Over(c.r, on); named(again.Failed) != c.failed || named(again.Missed) != c.missed || named(again.Recovered) != c.recovered {
			t.Errorf("%s: asked again it is another answer", what)
		}
		own := c.r.Callees.Over(c.on)
		nobody := (dispatch.DefaultCallbacks{}).Over(c.r, c.on)
		for _, e := range job.Events() {
			if named(nobody.Of(e)) != named(own.Of(e)) {
				t.Errorf("%s: without a word of the operator, %s calls %q", what, e, named(nobody.Of(e)))
			}
		}
	}
}
