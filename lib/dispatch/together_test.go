package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// waitsFor is the timer of a callback that waits, named by the job whose run has ended.
func waitsFor(tenant, callee string, e job.Event, window time.Duration, of string, ended int64) timer.Timer {
	r := run.Run{ID: run.FireID(of, ended), Tenant: tenant, State: run.Dead, Ended: ended}
	to := job.Callback{Job: callee, Window: schedule.Duration(window)}
	return timer.NewWaiting(r.CallAt(e, callee, to.Until(ended)+7000), window, to.Until(ended)+8000)
}

func TestC2_WhoIsToldOfTogether(t *testing.T) {
	const begin = int64(1_800_000_000_000)
	simple := func(of string, ended int64) timer.Timer {
		return waitsFor("acme", "tell", job.OnFailed, time.Minute, of, begin+ended)
	}
	joined := simple("joined", 1)
	joined.Joined = true
	partly := simple("partly", 30)
	partly.Create.Callback.Count = 5
	storm := make([]timer.Timer, MaxTogether+1)
	for i := range storm {
		storm[i] = simple(fmt.Sprint("s", i), 0)
	}
	for what, c := range map[string]struct {
		timers []timer.Timer
		alone  int
		groups string // the runs that each tells of; that of a group first which stands for all
	}{
		"none":                               {nil, 0, ""},
		"requests":                           {[]timer.Timer{timer.NewRequest(run.Run{ID: run.RequestID("tell", begin, 1), Tenant: "acme"}, begin, false), joined}, 2, ""},
		"one":                                {[]timer.Timer{simple("a", 1)}, 0, "a"},
		"the first to have ended, first":     {[]timer.Timer{simple("c", 3), simple("a", 1), simple("b", 2)}, 0, "a b c"},
		"one that stands for several, first": {[]timer.Timer{simple("a", 1), partly}, 0, "partly a"},
		"one that stands for all stays":      {[]timer.Timer{simple("a", 1), joined}, 1, "a"},
		"another window":                     {[]timer.Timer{simple("a", 1), simple("b", 60_001)}, 0, "a|b"},
		"another length": {[]timer.Timer{waitsFor("acme", "tell", job.OnFailed, 2*time.Minute, "a", begin+60_001),
			simple("b", 60_001)}, 0, "a|b"},
		"another tenant": {[]timer.Timer{simple("a", 1), waitsFor("zeta", "tell", job.OnFailed, time.Minute, "b", begin+2)}, 0, "a|b"},
		"another job":    {[]timer.Timer{simple("a", 1), waitsFor("acme", "other", job.OnFailed, time.Minute, "b", begin+2)}, 0, "a|b"},
		"another event":  {[]timer.Timer{simple("a", 1), waitsFor("acme", "tell", job.OnMissed, time.Minute, "b", begin+2), simple("c", 3)}, 0, "a c|b"},
	} {
		alone, groups := byWindow(c.timers)
		var said []string
		for _, group := range groups {
			var names []string
			for _, g := range group {
				name, _, _ := strings.Cut(g.Create.Callback.Run, "~")
				names = append(names, name)
			}
			said = append(said, strings.Join(names, " "))
		}
		if got := strings.Join(said, "|"); got != c.groups || len(alone) != c.alone {
			t.Errorf("%s: %d alone and %q, want %d and %q", what, len(alone), got, c.alone, c.groups)
		}
	}
	if _, groups := byWindow(storm); len(groups) != 2 || len(groups[0]) != MaxTogether || len(groups[1]) != 1 {
		t.Errorf("a storm is told of in %d calls", len(groups))
	}
	if first := simple("a", 1); slices.ContainsFunc(storm, func(s timer.Timer) bool { return s.Bucket() != first.Bucket() }) {
		t.Error("what is told of together lies in different buckets")
	}
}
