package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Stats is what became of the runs that were due in a window.
type Stats struct {
	Swept   time.Time // minutes before it have been counted; zero where no tick has come to any
	Points  []StatsPoint
	Totals  stats.Counts
	Unended int // of all points
}

// StatsPoint is a minute or an hour in which runs were due.
type StatsPoint struct {
	At      time.Time // its beginning
	Counts  stats.Counts
	Unended int // those of Counts.Open that had not ended after stats.Within, and are not looked at again
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
	sums := summing{at: map[int64]*stats.Counts{}}
	minutes := first / stats.Minute
	if step == time.Hour {
		// What the last sweep has passed is added up, which may take the next hour.
		hours := min(max(added/stats.Hour-1, first/stats.Hour), end/stats.Hour)
		if err := s.readHours(ctx, tenant, stats.Hours(tenant, first/stats.Hour, hours), &sums); err != nil {
			return Stats{}, err
		}
		minutes = hours * 60
	}
	var group errgroup.Group
	for shard := range shards {
		group.Go(func() error {
			return s.readMinutes(ctx, tenant, stats.Minutes(tenant, shard, minutes, end/stats.Minute), step.Milliseconds()/stats.Minute, &sums)
		})
	}
	if err := group.Wait(); err != nil {
		return Stats{}, err
	}
	for _, n := range slices.Sorted(maps.Keys(sums.at)) {
		point := StatsPoint{At: time.UnixMilli(n * step.Milliseconds()).UTC(), Counts: *sums.at[n]}
		if n*step.Milliseconds() < stats.Settled(added) {
			point.Unended = point.Counts.Open
		}
		shown.Points = append(shown.Points, point)
		shown.Totals.Merge(&point.Counts)
		shown.Unended += point.Unended
	}
	return shown, nil
}

// summing adds counts up by the step that they are of, whose number is counted from the epoch.
type summing struct {
	mu sync.Mutex
	at map[int64]*stats.Counts
}

func (s *summing) add(step int64, counts *stats.Counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[step] == nil {
		s.at[step] = new(stats.Counts)
	}
	s.at[step].Merge(counts)
}

func (s *Service) readHours(ctx context.Context, tenant string, r store.Range, to *summing) error {
	return s.readCounts(ctx, tenant, r, func(item store.Item) error {
		hour, counts, err := stats.OfHour(item)
		if err == nil {
			to.add(hour, &counts)
		}
		return err
	})
}

// readMinutes adds so many minutes up in one step.
func (s *Service) readMinutes(ctx context.Context, tenant string, r store.Range, together int64, to *summing) error {
	return s.readCounts(ctx, tenant, r, func(item store.Item) error {
		sum, err := stats.OfMinute(tenant, item)
		if err == nil {
			counts := sum.All()
			to.add(sum.Minute/together, &counts)
		}
		return err
	})
}

// readCounts visits the items of a range, and leaves out those that cannot be read.
func (s *Service) readCounts(ctx context.Context, tenant string, r store.Range, visit func(store.Item) error) error {
	for r.From < r.To {
		page, err := s.Store.Query(ctx, r)
		if err != nil {
			return fmt.Errorf("read the counts of runs: %w", err)
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				s.unreadable(tenant, item, err)
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return nil
		}
	}
	return nil
}
