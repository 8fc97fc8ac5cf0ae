package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Stats is what became of the runs that were due in a window.
type Stats struct {
	Swept  time.Time // minutes before it have been counted; zero where no tick has come to any
	Points []StatsPoint
	Totals stats.Counts
}

// StatsPoint is a minute or an hour in which runs were due.
type StatsPoint struct {
	At     time.Time // its beginning
	Counts stats.Counts
}

// Stats gives a tenant's counts in [from, to) by minutes or hours, which step is, and both ends are whole ones of. What it reads is bounded by the window: for each
// minute or hour an item of each shard, and some more where runs were made late.
func (s *Service) Stats(ctx context.Context, tenant string, from, to time.Time, step time.Duration) (Stats, error) {
	shards, err := s.shards(ctx)
	if err != nil {
		return Stats{}, err
	}
	counted, added := shards[0].Swept[0], shards[0].Swept[timer.Sweeps-1]
	for _, shard := range shards[1:] {
		counted, added = min(counted, shard.Swept[0]), min(added, shard.Swept[timer.Sweeps-1])
	}
	var shown Stats
	if counted > 0 {
		shown.Swept = time.UnixMilli(counted).UTC()
	}
	first, end := max(from.UnixMilli(), 0), max(to.UnixMilli(), 0)
	at := map[int64]*stats.Counts{} // by number of the step, from the epoch
	if step == time.Hour {
		// What the last sweep has passed is added up.
		hours := min(max(added/stats.Hour, first/stats.Hour), end/stats.Hour)
		if err := s.readStats(ctx, tenant, stats.Hours(tenant, first/stats.Hour, hours), 1, at); err != nil {
			return Stats{}, err
		}
		err = s.readStats(ctx, tenant, stats.Minutes(tenant, hours*60, end/stats.Minute), 60, at)
	} else {
		err = s.readStats(ctx, tenant, stats.Minutes(tenant, first/stats.Minute, end/stats.Minute), 1, at)
	}
	for _, n := range slices.Sorted(maps.Keys(at)) {
		shown.Points = append(shown.Points, StatsPoint{time.UnixMilli(n * step.Milliseconds()).UTC(), *at[n]})
		shown.Totals.Merge(at[n])
	}
	return shown, err
}

// readStats adds up the counts of a range, so many of its minutes or hours in one.
func (s *Service) readStats(ctx context.Context, tenant string, r store.Range, together int64, at map[int64]*stats.Counts) error {
	for r.From < r.To {
		page, err := s.Store.Query(ctx, r)
		if err != nil {
			return fmt.Errorf("read the counts of runs: %w", err)
		}
		for _, item := range page.Items {
			n, _, counts, err := stats.Read(item)
			if err != nil {
				s.unreadable(tenant, item, err)
				continue
			}
			if at[n/together] == nil {
				at[n/together] = new(stats.Counts)
			}
			at[n/together].Merge(&counts)
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return nil
		}
	}
	return nil
}
