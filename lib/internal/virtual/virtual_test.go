package virtual_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/internal/virtual"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func TestAClockStandsWhereItIsSet(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := virtual.NewClock(begin.Add(time.Microsecond))
	c.Set(begin.Add(time.Hour))
	c.Step(-10 * time.Minute)
	c.Set(begin.Add(2 * time.Hour))
	if now, passed := c.Now(), c.Passed(); !now.Equal(begin.Add(110*time.Minute)) || !passed.Equal(begin.Add(2*time.Hour)) || c.Elapsed() != 2*time.Hour {
		t.Errorf("it shows %s, %s passed, %s elapsed", now, passed, c.Elapsed())
	}
}

// The diary knows what is written, each instant once, until it was taken out.
func TestADiaryKnowsWhenTimersWake(t *testing.T) {
	const minute = int64(60_000)
	d := virtual.NewDiary()
	s := d.Watch(memory.New(memory.Config{}))
	if _, ok := d.Next(); ok || d.Calls() || d.Due(1<<40, 1<<40).Any() {
		t.Fatal("an empty diary knows of something")
	}
	asked := run.Run{ID: run.RequestID("j", 20*minute, 7), Tenant: "t"}
	var ops []store.Op
	for _, one := range []timer.Timer{
		timer.NewFire("t", "j", 1, 10*minute, 10*minute), timer.NewFire("t", "k", 1, 10*minute, 10*minute),
		timer.NewRequest(asked, 20*minute, false), timer.NewRequest(run.Run{ID: run.RequestID("j", minute, 8), Tenant: "t"}, minute, true), // who armed it sends the run
		timer.NewCheck("t", asked.ID, 20*minute+1), timer.NewCheck("t", asked.ID, 25*minute),
	} {
		op, err := one.Put(1)
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	if _, err := s.WriteEach(t.Context(), append(ops, store.Op{Kind: store.Put, Key: store.Key{Partition: "other", Sort: "x"}, Attempt: 1})...); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		next  int64
		want  virtual.Due
		calls bool
	}{
		{1*minute + 3*minute, virtual.Due{Sweeps: true, Minute: minute}, true},
		{10 * minute, virtual.Due{Timers: true, Wake: 10 * minute}, true},
		{13 * minute, virtual.Due{Sweeps: true, Minute: 10 * minute}, true},
		{20 * minute, virtual.Due{Timers: true, Wake: 20 * minute, Looks: []run.ID{asked.ID}}, false}, // the pass looks a millisecond further
		{20*minute + 1, virtual.Due{Timers: true, Wake: 20*minute + 1, Looks: []run.ID{asked.ID}}, false},
		{23 * minute, virtual.Due{Sweeps: true, Minute: 20 * minute}, false},
		{25 * minute, virtual.Due{Timers: true, Wake: 25 * minute, Looks: []run.ID{asked.ID}}, false},
		{28 * minute, virtual.Due{Sweeps: true, Minute: 25 * minute}, false},
	} {
		next, ok := d.Next()
		if !ok || next != c.next {
			t.Fatalf("next at %d, want %d", next, c.next)
		}
		got := d.Due(next, next+1)
		if got.Timers != c.want.Timers || got.Sweeps != c.want.Sweeps || got.Timers && got.Wake != c.want.Wake || got.Sweeps && got.Minute != c.want.Minute ||
			!slices.Equal(got.Looks, c.want.Looks) || d.Calls() != c.calls {
			t.Errorf("at %d due is %+v, calls %v; want %+v, %v", next, got, d.Calls(), c.want, c.calls)
		}
	}
	if _, ok := d.Next(); ok {
		t.Error("something is left")
	}
	both := virtual.Due{Timers: true, Wake: 5}.And(virtual.Due{Timers: true, Wake: 3, Sweeps: true, Minute: 7})
	if !both.Timers || both.Wake != 3 || !both.Sweeps || both.Minute != 7 {
		t.Errorf("both are %+v", both)
	}
}
