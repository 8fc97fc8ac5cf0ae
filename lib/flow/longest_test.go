package flow_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func TestForHowLongARunMayBeUnderWay(t *testing.T) {
	workflow := func(text string) job.Definition {
		return job.Definition{Target: target.Spec{Workflow: []byte(text)}}
	}
	thrice := job.Definition{Timeout: schedule.Duration(time.Minute), Retry: job.Retry{MaxAttempts: 3, Initial: schedule.Duration(time.Hour), Factor: 1, Max: schedule.Duration(time.Hour)}}
	for name, c := range map[string]struct {
		def  job.Definition
		want time.Duration
	}{
		"a workflow without a timeout": {workflow(`{"steps": {"a": {"pass": {}}}}`), flow.DefaultTimeout},
		"one of years":                 {workflow(`{"timeout": "43800h", "steps": {"a": {"pass": {}}}}`), flow.MaxTimeout},
		"one of a newer version":       {workflow(`{"unheard": 1}`), flow.MaxTimeout},
		"three attempts":               {thrice, 3*time.Minute + 2*time.Hour},
	} {
		if got := flow.Longest(c.def); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
