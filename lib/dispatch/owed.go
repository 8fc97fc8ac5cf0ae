package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// behind is what a timer that owes fires still owes where those up to an instant are dropped; nil for none.
func behind(owed *timer.Timer, s job.Fires, through int64) *timer.Timer {
	if owed == nil || owed.Nominal > through {
		return owed
	}
	next, err := nextAfter(s, through)
	if err != nil || next > owed.Owed {
		return nil
	}
	less := owed.Owing(next, owed.Owed, owed.Wake)
	return &less
}

// passOver takes those out of a pass's firings whose next owed fires another timer has seen to, and gives timers of what they owe behind these.
//
// Several timers come to owe the same fires where passes died, were away, or were late again and again. Each goes on by itself, and the places of a job are
// what catch-up waits for: none is given for what has begun. A run that has not begun is not passed over, since it may have no message.
func (d *Dispatcher) passOver(ctx context.Context, b Bounds, open []*firing) (left []*firing, owed []timer.Timer, err error) {
	over := map[*firing]*timer.Timer{} // what they owe behind; nil for nothing
	doubtful := slices.DeleteFunc(slices.Clone(open), func(f *firing) bool {
		return f.Timer.Owed == 0 || f.from != f.Timer.Nominal || f.Edition.Schedule == nil || f.Gone || b.Pace == nil
	})
	for far, looked := 1, 0; len(doubtful) > 0 && looked < maxFires; far, looked = min(4*far, store.MaxKeys), looked+far {
		var further []*firing
		for some := range slices.Chunk(doubtful, store.MaxKeys/far) {
			var runs []run.Run
			fires := make([][]int64, len(some))
			for i, f := range some {
				fires[i] = FiresBetween(f.Edition.Schedule, f.from, f.Timer.Owed, far)
				for _, nominal := range fires[i] {
					runs = append(runs, f.blank(nominal))
				}
			}
			standing, err := d.PeekRuns(ctx, runs) // what has begun has begun, however old the answer is
			if err != nil {
				return nil, nil, fmt.Errorf("read runs of those owed: %w", err)
			}
			for i, f := range some {
				mine := standing[:len(fires[i])]
				standing = standing[len(mine):]
				f.stands = f.Timer.Nominal == f.Timer.Owed && len(mine) == 1 && claimed(mine[0], f.Edition.Generation)
				n := slices.IndexFunc(mine, func(r run.Run) bool { return !begun(r, f.Edition.Generation) })
				if n == 0 || len(mine) == 0 {
					continue
				}
				through := fires[i][cmp.Or(max(n, 0), len(mine))-1]
				owes := f.Timer.Owing(f.Timer.Nominal, f.Timer.Owed, b.Next)
				over[f] = behind(&owes, f.Edition.Schedule, through)
				if n < 0 && over[f] != nil {
					f.from = over[f].Nominal
					further = append(further, f)
				}
			}
		}
		doubtful = further
	}
	for _, f := range open {
		switch owes, passed := over[f]; {
		case !passed:
			left = append(left, f)
		case owes != nil:
			owed = append(owed, *owes)
		}
	}
	return left, owed, nil
}

// begun tells of what stands at a fire whether it is a run of a generation that has started, or ended. A decision over missed fires is none: it has a
// say over those behind it.
func begun(r run.Run, generation int64) bool {
	return r.State != run.Fenced && !r.Missed() && r.ClaimedFor() == generation && (r.Attempt > 0 || r.State.Ended())
}

// owing gives the timers of what a round's firings still owe, and of what others do. Where one of them stands for all that another one owes, it is enough.
func owing(b Bounds, planned []*firing, others []timer.Timer) []timer.Timer {
	var alone []timer.Timer
	for _, f := range planned {
		if f.owed == nil {
			continue
		}
		head := f.head
		if place := head.run.NextAt; head.verdict == run.Standing && len(f.plan.Fires) == 1 && place < f.plan.Places[head.run.ID.Nominal] {
			// Whoever claimed it goes on behind its place, and so does this one: the two timers have one key. A later place is of a clock that was ahead.
			f.owed.Wake = max(b.Next, place+1)
		}
		// Places that lapsed are left to nobody else: what a timer owes before them may take longer than it shows that they lapsed.
		if head.verdict == run.Placed || f.owed.Nominal <= f.Timer.Nominal {
			alone = append(alone, *f.owed)
		} else {
			others = append(others, *f.owed)
		}
	}
	slices.SortFunc(others, func(a, b timer.Timer) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Job, b.Job), cmp.Compare(a.Generation, b.Generation),
			cmp.Compare(a.Nominal, b.Nominal), cmp.Compare(b.Owed, a.Owed), cmp.Compare(a.Wake, b.Wake))
	})
	widest := others[:0]
	for _, t := range others {
		if n := len(widest) - 1; n >= 0 && widest[n].Tenant == t.Tenant && widest[n].Job == t.Job && widest[n].Generation == t.Generation && widest[n].Owed >= t.Owed {
			continue
		}
		widest = append(widest, t)
	}
	return append(widest, alone...)
}

// beside is the successor on its own way through the steps, where some of its fires are to be claimed now; nil where none are.
func (f *firing) beside() *firing {
	if !f.plan.Beside {
		return nil
	}
	next := f.FireTimer
	next.Timer = *f.plan.Successor
	f.plan.Beside = false
	return &firing{FireTimer: next, tracer: f.tracer, from: next.Timer.Nominal, known: f.plan.Known}
}

// errNoPace says that a timer asks for missed fires, and nobody here gives them places.
var errNoPace = errors.New("missed fires are left to a tick")

// places gives the firing's missed fires their places; nil where it has none, or nobody who gives them. A deleted job's need none: they end at once.
func (f *firing) places(b Bounds) places {
	tenant, name, pace := f.Timer.Tenant, f.Timer.Job, b.Pace
	switch {
	case f.known == 0 && f.Timer.Owed == 0 && !b.late(f.from):
		return nil
	case f.Gone:
		return func(int64, bool) (int64, bool) { return 0, true }
	case pace == nil:
		return nil
	}
	return func(fire int64, first bool) (int64, bool) { return pace.take(missed{tenant, name, fire}, !first) }
}
