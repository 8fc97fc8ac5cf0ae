package dispatch

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

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

// readers bounds how many histories are read at once.
const readers = 16

// countOnce fits decisions over missed fires to what stands among these by way of other timers of the generation: a crash between a
// successor and the claims of its timer leaves two that stand for the fires from the successor on. Each timer has a record at its first
// fire, by which sweeps see that it was decided, and each fire that does not run is counted in one of them. So a decision that begins within
// another counts nothing and ends with it, and one that reaches another, or a run that was claimed, ends before that.
//
// Two ticks that decide at the same moment may miss each other's. Then the fires of both are counted twice, and no other harm is done.
func (d *Dispatcher) countOnce(ctx context.Context, planned []*firing) {
	var group errgroup.Group
	group.SetLimit(readers)
	for _, f := range planned {
		if s := f.plan.Skip; s != nil {
			group.Go(func() error {
				s.failed = d.fit(ctx, f, s)
				return nil
			})
		}
	}
	_ = group.Wait() // each has its own error
}

func (d *Dispatcher) fit(ctx context.Context, f *firing, s *stretch) error {
	partition := f.blank(s.From).ID.Key(f.Timer.Tenant).Partition
	before, found, err := f.decided, true, error(nil)
	if before.Through < s.From { // else a run may stand in between
		before, found, err = d.nearest(ctx, f, store.Range{Partition: partition, To: run.SortFrom(s.From), Backward: true})
	}
	switch {
	case err != nil:
		return err
	case found && before.Missed() && before.Through >= s.From:
		s.Through, s.Upto, s.Count, s.Known = before.Through, before.Upto, 0, before.Upto
		if s.Reason = before.Reason; before.Count > 0 {
			s.Reason = "missed: counted with the fires from " + instant(before.ID.Nominal).Format(time.RFC3339) + " on"
		}
		s.Next, err = nextAfter(f.Edition.Schedule, before.Through)
		return err
	}
	among, found, err := d.nearest(ctx, f, store.Range{Partition: partition, From: run.SortFrom(s.From + 1), To: run.SortFrom(s.Through + 1)})
	if err != nil || !found {
		return err
	}
	s.Next = among.ID.Nominal
	if !among.Missed() {
		s.Known = s.Next // it stands, and is left to run
	}
	s.Through, _ = lastFire(f.Edition.Schedule, s.From, s.Next-1)
	s.Upto = s.Through
	s.Count, _ = f.Edition.Schedule.Count(instant(s.From), instant(s.Through), maxCounted)
	return nil
}

// nearest gives the first run in a range that a firing's generation has claimed or dropped.
func (d *Dispatcher) nearest(ctx context.Context, f *firing, r store.Range) (run.Run, bool, error) {
	return d.nearestOf(ctx, f.Timer.Tenant, f.Timer.Job, f.Edition.Generation, r)
}

// nearestOf is nearest for a generation of a job. What lies before such a run are fences and runs of other generations, hardly ever more than a
// horizon has fires.
func (d *Dispatcher) nearestOf(ctx context.Context, tenant, name string, generation int64, r store.Range) (run.Run, bool, error) {
	r.Limit = 10
	for looked := 0; looked < maxFires; r.Limit = store.MaxKeys {
		page, err := d.Store.Query(ctx, r)
		if err != nil {
			return run.Run{}, false, err
		}
		for _, item := range page.Items {
			id, err := run.IDFromSort(name, item.Sort)
			if err != nil {
				continue // listings and doctor tell of it
			}
			standing, found, err := run.FromItem(tenant, id, item)
			if err == nil && found && standing.State != run.Fenced && standing.ClaimedFor() == generation {
				return standing, true, nil
			}
		}
		if looked, r.Cursor = looked+len(page.Items), page.Cursor; r.Cursor == "" {
			break
		}
	}
	return run.Run{}, false, nil
}

// covered finds plans whose first fire a decision over fires before it has dropped, and makes them decisions that count nothing. A timer in time lies among the fires
// that another one's decision drops only after a clock that was ahead has been set back, so that only then anything is read. One of owed fires may at any time: a
// pass that died has left their first ones to two timers, of which one came to decide when they were too old. A run that stands is left to run.
func (d *Dispatcher) covered(ctx context.Context, b Bounds, planned []*firing) error {
	stale := d.Stale(b.Horizon, b.Now)
	var doubtful []*firing
	for _, f := range planned {
		if f.plan.Skip == nil && (stale || f.Timer.Owed != 0 && !f.stands) { // one with a decision looks for itself
			doubtful = append(doubtful, f)
		}
	}
	if doubtful == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, f := range doubtful {
		group.Go(func() error { return d.cover(ctx, f) })
	}
	return group.Wait()
}

func (d *Dispatcher) cover(ctx context.Context, f *firing) error {
	first := f.blank(f.plan.Fires[0])
	if f.decided.Through < first.ID.Nominal {
		before, found, err := d.nearest(ctx, f, store.Range{Partition: first.ID.Key(f.Timer.Tenant).Partition, To: run.SortFrom(first.ID.Nominal), Backward: true})
		if err != nil || !found || !dropped(before, f.Edition.Generation) || before.Through < first.ID.Nominal {
			return err
		}
		f.decided = before
	}
	standing, err := d.ReadRuns(ctx, []run.Run{first})
	switch {
	case err != nil:
	case claimed(standing[0], f.Edition.Generation): // and those behind it are looked at in another round
		f.plan.Fires, f.plan.Owed, f.plan.Beside = f.plan.Fires[:1], nil, false
		f.plan.Rest, err = nextAfter(f.Edition.Schedule, first.ID.Nominal)
	default:
		f.plan.Skip, f.plan.Fires = &stretch{From: first.ID.Nominal}, nil // countOnce fits it to what stands
	}
	return err
}

// claimed tells whether what stands at a fire is a run that a generation has claimed, whatever has become of it.
func claimed(r run.Run, generation int64) bool {
	return r.Version != 0 && r.State != run.Fenced && !r.Missed() && r.ClaimedFor() == generation
}

// heed leaves out of a round's claims, and of what is owed behind them, what a decision among them has dropped. That one was made by way of another timer, where we
// claim late what a stopped tick may have claimed, or what is owed; or by a clock that was ahead and has been set back, so that what was missed is in time again: then
// a horizon stands that no clock of now can have published.
func (d *Dispatcher) heed(ctx context.Context, f *firing) error {
	var claims []*wish
	var decided run.Run
	if f.plan.Skip != nil { // else all but the first fire is for another round
		decided = f.decided
	}
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
			if dropped(r, f.Edition.Generation) && r.Through > decided.Through {
				decided = r
			}
			if r.ID.Nominal > decided.Through || r.Version != 0 && r.State != run.Fenced {
				claims = append(claims, some[i])
			}
		}
	}
	f.rest, f.owed = claims, behind(f.owed, f.Edition.Schedule, decided.Through)
	if f.from <= decided.Through { // what is still open is to be adopted
		next, err := nextAfter(f.Edition.Schedule, decided.Through)
		if err != nil {
			return err
		}
		f.from, f.known = next, decided.Upto
	}
	return nil
}
