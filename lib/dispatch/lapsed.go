package dispatch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// maxOld is how many gaps are kept that say nothing any more but up to where somebody may have claimed in time.
const maxOld = 64

// Gaps gives a shard's gaps at now, Unix ms: with the time since which no pass was in time, and without what is so old that all of it is late, and
// lies behind the watermark. A pass is still to come upon timers before other old ones, which tell it up to where horizons had reached: see Bounds.reached.
func (d *Dispatcher) Gaps(s timer.Shard, now int64) []timer.Gap {
	var gaps []timer.Gap
	for _, g := range s.Gaps {
		if !old(g, now) || s.Watermark < g.After && len(gaps) < maxOld {
			gaps = append(gaps, g)
		}
	}
	if s.Passed > now {
		// The clock was set back. Gaps that were too old by it to be kept are missing now: what it had for late by age alone stays late.
		if before := min(s.Passed-job.NewestWithin.Milliseconds(), now-job.Grace.Milliseconds()); s.Watermark+1 < before {
			gaps = append(gaps, timer.Gap{After: s.Watermark, Before: before})
		}
	}
	after := s.Horizon
	if s.Passed != 0 { // a horizon that a clock has published which was ahead tells nothing of when passes were
		after = d.Reach(s.Horizon, s.Passed)
	}
	if before := now - job.Grace.Milliseconds(); after+1 < before {
		gaps = append(gaps, timer.Gap{After: after, Before: before})
	}
	return gaps
}

// old tells of a gap whether all that fires in it is late at now by its age alone.
func old(g timer.Gap, now int64) bool { return g.Before <= now-job.NewestWithin.Milliseconds() }

// Overdue tells whether the last pass over a shard is longer ago than passes are apart that come every so often: processes may have been away.
func (d *Dispatcher) Overdue(s timer.Shard, now int64, every time.Duration) bool {
	usual := max(every, d.LookAhead/2) + d.Lease/3
	return s.Passed != 0 && now-s.Passed > usual.Milliseconds()
}

// Back gives when passes over a shard came back after they had been away, Unix ms, as far as it shows at now; 0: they never were. Who had a place
// before it, and has not started, may have missed it because nobody was there. What waits for a busy worker is told apart by this alone. It keeps
// its place, so it starts in its order, and an outage gives each run one place at the most.
func (d *Dispatcher) Back(s timer.Shard, now int64) int64 {
	if d.Overdue(s, now, 0) {
		return now
	}
	back := int64(0)
	came := func(at int64) {
		if at <= max(s.Passed, now) { // else by a clock that was ahead
			back = max(back, at)
		}
	}
	came(s.Settled - d.Lease.Milliseconds())
	for _, g := range d.Gaps(s, now) {
		if !old(g, now) {
			came(g.Before + job.Grace.Milliseconds())
		}
	}
	return back
}

// lapsed tells of a run whether its place has lapsed while nobody was there.
func (b Bounds) lapsed(r run.Run) bool { return r.Lapsed(b.Back) }

// tardy is how long ago a place is that has lapsed for a worker: who is no later starts.
const tardy = time.Second

// Tardy tells of a run that makes up for a missed fire whether it comes too late for its place to start without a look at why.
func (d *Dispatcher) Tardy(r run.Run) bool {
	if !r.Lapsed(math.MaxInt64) { // as nearly all
		return false
	}
	now, err := d.Clock()
	return err == nil && r.Lapsed(now-tardy.Milliseconds())
}

// PlaceAnew sees to a Tardy run that somebody has a message of. It tells whether the run is given another place, with another message: where it
// lapsed since nobody was there. Else it has waited for a worker, and starts.
//
// Places are given by passes alone. So a timer asks the next one for it, which reads what stands then.
//
// Durable then: that timer, ahead of all that passes under way may read. A crash before it leaves the message, and the run's check.
func (d *Dispatcher) PlaceAnew(ctx context.Context, r run.Run) (bool, error) {
	key := timer.ShardKey(d.Layout.ShardOf(timer.BucketOf(r.Tenant, r.ID.Job)))
	wake := int64(0)
	for range maxRounds {
		items, err := d.Store.Get(ctx, key)
		if err != nil {
			return false, fmt.Errorf("read the shard of job %s: %w", r.ID.Job, err)
		}
		s, err := timer.ShardFromItem(0, items[0])
		if err != nil {
			return false, err
		}
		now, err := d.Clock()
		if err != nil {
			return false, err
		}
		reach := max(d.Reach(s.Horizon, now), now)
		switch {
		case wake > reach:
			return true, nil
		case wake == 0 && !r.Lapsed(d.Back(s, now)):
			return false, nil
		}
		wake = reach + ResumeAfter.Milliseconds() // or a pass has come by meanwhile, which may have read before this was there
		asks := timer.NewFire(r.Tenant, r.ID.Job, r.Generation, r.ID.Nominal, wake)
		asks.Owed = r.ID.Nominal
		if err := d.Arm(ctx, asks); err != nil {
			return false, err
		}
	}
	return true, nil // its check comes upon it
}

// lookBack has timers of owed fires that are found late begin with those before them whose places have lapsed with them: they come first. It looks
// further and further back while it comes upon any.
func (d *Dispatcher) lookBack(ctx context.Context, b Bounds, open []*firing) error {
	if b.Pace == nil {
		return nil
	}
	late := slices.DeleteFunc(slices.Clone(open), func(f *firing) bool {
		return f.Timer.Owed == 0 || f.Timer.Wake >= b.Back || f.Gone || f.Edition.Schedule == nil
	})
	for far := 4; len(late) > 0; far = min(2*far, store.MaxKeys) {
		var further []*firing
		for some := range slices.Chunk(late, store.MaxKeys/far) {
			var runs []run.Run
			counts := make([]int, len(some))
			for i, f := range some {
				for at := f.from; counts[i] < far; counts[i]++ {
					last, ok := lastFire(f.Edition.Schedule, 0, at-1)
					if !ok {
						break
					}
					runs, at = append(runs, f.blank(last)), last
				}
			}
			standing, err := d.ReadRuns(ctx, runs)
			if err != nil {
				return fmt.Errorf("read runs before those owed: %w", err)
			}
			for i, f := range some {
				for k, r := range standing[:counts[i]] {
					if r.Generation == f.Timer.Generation && b.lapsed(r) {
						f.from = r.ID.Nominal
						if k == far-1 {
							further = append(further, f)
						}
					}
				}
				standing = standing[counts[i]:]
			}
		}
		late = further
	}
	return nil
}
