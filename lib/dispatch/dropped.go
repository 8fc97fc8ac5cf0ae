package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// inTurn puts off all but the earliest decision over missed fires of each generation: the others are to find it standing.
func inTurn(planned []*firing) (now, later []*firing) {
	type reign struct {
		tenant, job string
		generation  int64
	}
	first := map[reign]*firing{}
	of := func(f *firing) reign { return reign{f.Timer.Tenant, f.Timer.Job, f.Edition.Generation} }
	for _, f := range planned {
		if f.plan.Skip == nil {
			continue
		}
		if other := first[of(f)]; other == nil || f.plan.Skip.From < other.plan.Skip.From {
			first[of(f)] = f
		}
	}
	for _, f := range planned {
		if f.plan.Skip == nil || first[of(f)] == f {
			now = append(now, f)
		} else {
			later = append(later, f)
		}
	}
	return now, later
}

// countOnce fits a decision over missed fires to those that stand among them, made by way of other timers of the generation: a crash
// between a successor and the claims of its timer leaves two that stand for the fires from the successor on. Each timer has a record at
// its first fire, by which sweeps see that it was decided, and each fire is counted in one of them: a decision under one before it counts
// none of its own, and one over another ends before that.
//
// Two ticks that decide at the same moment may miss each other's. Then the fires of both are counted twice, and no other harm is done.
func (d *Dispatcher) countOnce(ctx context.Context, f *firing, s *stretch) error {
	head := f.blank(s.From)
	partition, at := head.ID.Key(head.Tenant).Partition, run.SortFrom(s.From)
	before, found, err := d.decision(ctx, f, store.Range{Partition: partition, To: at, Backward: true})
	switch {
	case err != nil:
		return err
	case found && before.Through >= s.From:
		s.Through, s.Upto, s.Count, s.Known = before.Through, before.Upto, 0, before.Upto
		if s.Reason = before.Reason; before.Count > 0 {
			s.Reason = "missed: counted with the fires from " + instant(before.ID.Nominal).Format(time.RFC3339) + " on"
		}
		s.Next, err = nextAfter(f.Edition.Schedule, before.Through)
		return err
	}
	after, found, err := d.decision(ctx, f, store.Range{Partition: partition, From: run.SortFrom(s.From + 1), To: run.SortFrom(s.Through + 1)})
	if err != nil || !found {
		return err
	}
	s.Next = after.ID.Nominal
	s.Through, _ = lastFire(f.Edition.Schedule, s.From, s.Next-1)
	s.Count, _ = f.Edition.Schedule.Count(instant(s.From), instant(s.Through), maxCounted)
	return nil
}

// decision gives the first record of dropped fires in a range that a firing's generation has there, if it is among the first few runs:
// between two that overlap lie only fires that had been fenced or claimed before.
func (d *Dispatcher) decision(ctx context.Context, f *firing, r store.Range) (run.Run, bool, error) {
	const few = 25
	for looked := 0; looked < few; {
		r.Limit = few - looked
		page, err := d.Store.Query(ctx, r)
		if err != nil {
			return run.Run{}, false, err
		}
		for _, item := range page.Items {
			id, err := run.IDFromSort(f.Timer.Job, item.Sort)
			if err != nil {
				continue // listings and doctor tell of it
			}
			standing, found, err := run.FromItem(f.Timer.Tenant, id, item)
			if err == nil && found && standing.State == run.Skipped && standing.Generation == f.Edition.Generation {
				return standing, true, nil
			}
		}
		if looked, r.Cursor = looked+len(page.Items), page.Cursor; r.Cursor == "" {
			break
		}
	}
	return run.Run{}, false, nil
}

// heed leaves out of a round's claims what a decision among them has dropped. That one was made by way of another timer, where we claim
// late what a stopped tick may have claimed; or by a clock that was ahead and has been set back, so that what was missed is in time again:
// then a horizon stands that no clock of now can have published.
func (d *Dispatcher) heed(ctx context.Context, f *firing) error {
	var claims []*wish
	var decided run.Run
	for some := range slices.Chunk(f.rest, store.MaxKeys) {
		runs := make([]run.Run, len(some))
		for i, w := range some {
			runs[i] = w.run
		}
		standing, err := d.ReadRuns(ctx, runs)
		if err != nil {
			return err
		}
		for i, r := range standing {
			if r.State == run.Skipped && r.Generation == f.Edition.Generation && r.Through > decided.Through {
				decided = r
			}
			if r.ID.Nominal > decided.Through || r.Version != 0 && r.State != run.Fenced {
				claims = append(claims, some[i])
			}
		}
	}
	f.rest = claims
	if f.from <= decided.Through { // what is still open is to be adopted
		next, err := nextAfter(f.Edition.Schedule, decided.Through)
		if err != nil {
			return err
		}
		f.from, f.known = next, decided.Upto
	}
	return nil
}
