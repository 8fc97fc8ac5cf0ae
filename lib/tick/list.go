package tick

import (
	"context"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// A sweep of a minute lists the runs that it comes upon: it collects them, and writes the items by which they are found by time
// (run.Index). The sweep's cursor moves after that: what lies behind it is listed, and what lies before it is found in the buckets.

// listedAtOnce bounds how many runs are held before they are written.
const listedAtOnce = 4096

// note takes the runs of a page.
func (s *minuteSweep) note(ctx context.Context, runs []sighting) error {
	noted := make([]run.Listing, len(runs))
	for i, r := range runs {
		var err error
		if noted[i], err = s.p.Dispatch.Listing(ctx, r.Run, (s.minute+1)*60_000); err != nil {
			return err
		}
	}
	s.mu.Lock()
	for i, r := range runs {
		s.ready[r.Tenant] = append(s.ready[r.Tenant], noted[i])
	}
	s.count += len(runs)
	full := s.full(listedAtOnce)
	s.mu.Unlock()
	return s.write(ctx, full)
}

// full gives what is ready, once it is so much.
func (s *minuteSweep) full(much int) map[string][]run.Listing {
	if s.count < much {
		return nil
	}
	ready := s.ready
	s.ready, s.count = map[string][]run.Listing{}, 0
	return ready
}

// write lists runs, those of each tenant in items of its own. Whoever sweeps the minute again after a crash comes upon the same
// runs and writes the same items, or lists some of them once more, which does no harm.
func (s *minuteSweep) write(ctx context.Context, ready map[string][]run.Listing) error {
	var ops []store.Op
	for _, tenant := range slices.Sorted(maps.Keys(ready)) {
		some, err := run.Index(tenant, ready[tenant], s.p.Dispatch.NewID())
		if err != nil {
			return err
		}
		ops = append(ops, some...)
	}
	verdicts, err := s.p.Dispatch.WriteEach(ctx, ops)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Err != nil {
			return v.Err
		}
	}
	return nil
}
