package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func lapsing(t *testing.T, lookAhead time.Duration) *Dispatcher {
	var id uint64
	d, err := New(Config{Store: memory.New(memory.Config{}), Book: new(job.Book), Queues: map[string]queue.Queue{"default": nil}, Layout: timer.Layout{Shards: 1}, LookAhead: lookAhead,
		Now: time.Now, Elapsed: func() time.Duration { return 0 }, NewID: func() uint64 { id++; return id }})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a shard shows of when passes came back: by a gap, by the leases that are not judged, or by the first look after an outage. A clock that was
// ahead shows nothing.
func TestP11_Fault09_when_passes_came_back(t *testing.T) {
	const now, second = int64(1_767_571_200_000), int64(1000)
	for name, c := range map[string]struct {
		lookAhead time.Duration
		shard     timer.Shard
		want      int64
	}{
		"never away":                         {2 * time.Second, timer.Shard{Passed: now - second, Horizon: now + second}, 0},
		"no pass for some seconds":           {2 * time.Second, timer.Shard{Passed: now - 7*second, Horizon: now - 5*second}, now},
		"no pass, but within the grace":      {2 * time.Second, timer.Shard{Passed: now - 4*second, Horizon: now - 2*second}, 0},
		"a gap":                              {2 * time.Second, timer.Shard{Passed: now - second, Horizon: now + second, Gaps: []timer.Gap{{After: now - 90*second, Before: now - 33*second}}}, now - 30*second},
		"a gap by a clock that was ahead":    {2 * time.Second, timer.Shard{Passed: now - second, Horizon: now + second, Gaps: []timer.Gap{{After: now - 90*second, Before: now + 3000*second}}}, 0},
		"leases not judged":                  {2 * time.Second, timer.Shard{Passed: now - second, Horizon: now + second, Settled: now - 970*second}, now - 1000*second},
		"the same by a clock that was ahead": {2 * time.Second, timer.Shard{Passed: now - second, Horizon: now + second, Settled: now + 970*second}, 0},
		"a pass each minute":                 {150 * time.Second, timer.Shard{Passed: now - 61*second, Horizon: now + 120*second}, 0},
		"none for a minute and a half":       {150 * time.Second, timer.Shard{Passed: now - 91*second, Horizon: now + 90*second}, now},
	} {
		if got := lapsing(t, c.lookAhead).Back(c.shard, now); got != c.want {
			t.Errorf("%s: back %d ms from now, want %d", name, got-now, c.want-now)
		}
	}
}

// A gap is kept while some of what fires in it may not be late by age alone, and longer where the watermark is still to come to it: a bounded number of them, the first.
// Of when passes came back an old one tells nothing.
func TestP2_Fault17_which_gaps_are_kept(t *testing.T) {
	const now, minute = int64(1_767_571_200_000), int64(60_000)
	gap := func(after, before int64) timer.Gap {
		return timer.Gap{After: now - after*minute, Before: now - before*minute}
	}
	many := make([]timer.Gap, 2*maxOld)
	for i := range many {
		many[i] = gap(1000-int64(i), 999-int64(i))
	}
	for name, c := range map[string]struct {
		watermark int64 // minutes ago
		gaps      []timer.Gap
		want      []timer.Gap
		back      int64
	}{
		"none":                            {1, nil, nil, 0},
		"a young one":                     {1, []timer.Gap{gap(20, 4)}, []timer.Gap{gap(20, 4)}, now - 4*minute + 3000},
		"an old one behind the watermark": {1, []timer.Gap{gap(20, 5)}, nil, 0},
		"one that begins at it":           {20, []timer.Gap{gap(20, 5)}, nil, 0},
		"an old one ahead of it":          {21, []timer.Gap{gap(20, 5)}, []timer.Gap{gap(20, 5)}, 0},
		"one of each":                     {21, []timer.Gap{gap(30, 25), gap(20, 15), gap(9, 3)}, []timer.Gap{gap(20, 15), gap(9, 3)}, now - 3*minute + 3000},
		"many old ones":                   {2000, many, many[:maxOld], 0},
		"many old ones, and a young one":  {2000, append(many, gap(9, 3)), append(many[:maxOld:maxOld], gap(9, 3)), now - 3*minute + 3000},
	} {
		s := timer.Shard{Passed: now - 1000, Horizon: now + 1000, Watermark: now - c.watermark*minute, Gaps: c.gaps}
		d := lapsing(t, 2*time.Second)
		if got := d.Gaps(s, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: kept are %v, want %v", name, got, c.want)
		}
		if got := d.Back(s, now); got != c.back {
			t.Errorf("%s: back at %d, want %d", name, got, c.back)
		}
	}
}

// A place is given anew only to what makes up for a missed fire, waits, and has not started.
func TestP11_whose_place_lapses(t *testing.T) {
	const now = int64(1_767_571_200_000)
	waiting := run.Run{State: run.Queued, Reason: run.CaughtUp, NextAt: now - 1}
	for name, c := range map[string]struct {
		change func(*run.Run)
		want   bool
	}{
		"it waits":              {func(*run.Run) {}, true},
		"its place is to come":  {func(r *run.Run) { r.NextAt = now }, false},
		"it was handed back":    {func(r *run.Run) { r.Attempt = 1 }, false},
		"it is running":         {func(r *run.Run) { r.State = run.Running }, false},
		"it was in time":        {func(r *run.Run) { r.NextAt, r.Reason = 0, "" }, false},
		"it is a retry":         {func(r *run.Run) { r.State, r.Attempt = run.Retrying, 1 }, false},
		"it was opened by hand": {func(r *run.Run) { r.Reason = "opened again" }, false},
	} {
		r := waiting
		c.change(&r)
		if got := r.Lapsed(now); got != c.want {
			t.Errorf("%s: lapsed is %v, want %v", name, got, c.want)
		}
	}
}

// A timer of owed fires that would stand where another one stands is as good as armed only if that one stands for as much.
func TestP2_Fault17_a_timer_of_owed_fires_gives_way_to_none_that_stands_for_less(t *testing.T) {
	const fire, wake = int64(1_767_571_200_000), int64(1_767_571_260_000)
	d := lapsing(t, 0)
	of := timer.Timer{Tenant: "acme", Job: "a", Generation: 1}
	for _, one := range []timer.Timer{of.Owing(fire, fire, wake), of.Owing(fire, fire+9000, wake), of.Owing(fire, fire+5000, wake), of.Owing(fire, fire+9000, wake)} {
		if err := d.Arm(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	items, err := d.Store.Get(t.Context(), of.Owing(fire, fire, wake).Key(), of.Owing(fire, fire, wake+1).Key(), of.Owing(fire, fire, wake+2).Key())
	if err != nil {
		t.Fatal(err)
	}
	var owed []int64
	for _, item := range items {
		if item.Exists() {
			one, err := timer.FromItem(item)
			if err != nil {
				t.Fatal(err)
			}
			owed = append(owed, one.Owed-fire)
		}
	}
	several := []timer.Timer{of.Owing(fire, fire, wake+60_000), of.Owing(fire, fire+9000, wake+60_000), of.Owing(fire, fire+2000, wake+60_000)}
	if err := d.Arm(t.Context(), several...); err != nil {
		t.Fatal(err)
	}
	if items, err = d.Store.Get(t.Context(), several[0].Key()); err != nil {
		t.Fatal(err)
	}
	if one, err := timer.FromItem(items[0]); err != nil || one.Owed != fire+9000 {
		t.Errorf("of three that are armed together one stands for up to %d, want %d (%v)", one.Owed, fire+9000, err)
	}
	if len(owed) != 2 || owed[0] != 0 || owed[1] != 9000 {
		t.Errorf("timers stand for %v ms more, want one for the fire alone and one for all", owed)
	}
}
