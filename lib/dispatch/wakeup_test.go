package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// overdue gives the run of a workflow that was opened so long after it was due, and its workflow.
func overdue(opened, timeout time.Duration) (run.Run, *flow.Workflow) {
	head := run.Run{ID: run.RequestID("a", 1_767_571_234_567, 1), Tenant: "acme", State: run.Running}
	head.Started = head.ID.Nominal + opened.Milliseconds()
	return head, &flow.Workflow{Timeout: schedule.Duration(timeout)}
}

// TestACheckForTheEndOfAWorkflowsTime says when, from when the run was due, its opening has it looked at, where the regular check would come later.
func TestACheckForTheEndOfAWorkflowsTime(t *testing.T) {
	const second, minute = time.Second, time.Minute
	bySecond, byMinute := 2*second, 150*second
	for _, c := range []struct {
		lookAhead, opened, timeout time.Duration
		want                       time.Duration // 0: the regular check is early enough
	}{
		{bySecond, 0, second, 62 * second}, // not before what ticks may have passed
		{bySecond, 0, 30 * second, 62 * second},
		{bySecond, 0, 90 * second, 92 * second},
		{bySecond, 0, 2 * minute, 0}, // the sweep and the regular checks come upon the run before
		{bySecond, 0, 15 * minute, 0},
		{bySecond, 0, 7 * 24 * time.Hour, 0},
		{bySecond, 0, flow.MaxTimeout, 0},
		{bySecond, time.Hour, 5 * minute, 65*minute + 2*second},
		{bySecond, time.Hour, 20 * minute, 0},
		{byMinute, 0, second, 270 * second},
		{byMinute, 0, 4 * minute, 450 * second},
		{byMinute, 0, 5 * minute, 0},
		{byMinute, time.Hour, 5 * minute, 65*minute + 210*second},
		{byMinute, time.Hour, flow.MaxTimeout, 0},
	} {
		d := &Dispatcher{Config: Config{LookAhead: c.lookAhead}}
		head, w := overdue(c.opened, c.timeout)
		check, early := d.overdueBefore(head, w, head.Started+d.Directly().Milliseconds())
		after := time.Duration(check.Wake-head.ID.Nominal) * time.Millisecond
		if early != (c.want != 0) || early && after != c.want {
			t.Errorf("looks %s ahead, opened after %s, timeout %s: a check after %s, %t; want %s", c.lookAhead, c.opened, c.timeout, after, early, c.want)
		}
	}
}

// TestAWorkflowsRunIsFoundOverdue goes through the checks of a run that does not end, as ticks come upon them, and looks how soon after the end of its
// time one finds it over.
func TestAWorkflowsRunIsFoundOverdue(t *testing.T) {
	for _, ticks := range []struct{ lookAhead, every, bound time.Duration }{
		{2 * time.Second, time.Second, 65 * time.Second},
		{150 * time.Second, time.Minute, 2 * time.Minute},
	} {
		for _, opened := range []time.Duration{0, time.Second, 90 * time.Second, 5 * time.Minute, time.Hour, 67 * time.Minute} {
			for _, timeout := range []time.Duration{time.Second, 30 * time.Second, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute,
				5 * time.Minute, 7 * time.Minute, 9 * time.Minute, 16 * time.Minute, 40 * time.Minute, 25 * time.Hour} {
				t.Run(fmt.Sprintf("%s_opened_%s_timeout_%s", ticks.lookAhead, opened, timeout), func(t *testing.T) {
					d := &Dispatcher{Config: Config{LookAhead: ticks.lookAhead}}
					head, w := overdue(opened, timeout)
					late, checks := foundOverdue(d, head, w, ticks.every)
					if late > ticks.bound {
						t.Errorf("found %s after the end of its time, want at most %s", late, ticks.bound)
					}
					if most := int(timeout/(15*time.Minute)) + 12; checks > most {
						t.Errorf("%d checks after it was opened, want at most %d", checks, most)
					}
				})
			}
		}
	}
}

// foundOverdue gives how long after the end of its time a check finds the run over, and how many checks looked at it in vain before.
func foundOverdue(d *Dispatcher, head run.Run, w *flow.Workflow, every time.Duration) (late time.Duration, checks int) {
	armed := map[int64]bool{} // by when they wake
	next := func(now, reach int64) int64 {
		if check, early := d.overdueBefore(head, w, reach+1); now >= head.Started && early {
			return check.Wake
		}
		return timer.NextCheck(head.Tenant, head.ID, reach).Wake
	}
	opened, swept := false, false
	for now := head.ID.Nominal; ; now += every.Milliseconds() {
		if !opened && now >= head.Started {
			opened = true
			if check, early := d.overdueBefore(head, w, head.Started+d.Directly().Milliseconds()); early {
				armed[check.Wake] = true
			}
		}
		reach := d.HorizonAt(now)
		if !swept && now >= head.ID.Nominal+timer.Lags[0].Milliseconds()+time.Minute.Milliseconds() {
			swept = true
			armed[next(now, reach)] = true
		}
		for wake := range armed {
			if wake > reach {
				continue
			}
			delete(armed, wake)
			if opened && now >= over(head, w) {
				return time.Duration(now-over(head, w)) * time.Millisecond, checks
			}
			if opened {
				checks++
			}
			armed[next(now, reach)] = true
		}
	}
}
