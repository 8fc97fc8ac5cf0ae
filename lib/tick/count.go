package tick

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// The sweeps count runs (package stats): the first one those that it comes upon, the later ones what has become of those that had not ended, and the
// last one adds an hour up once it has passed it. Nothing of the protocol rests on that: an error is logged, and the sweep goes on.

// A pass is at it for so long at the most, or its shard's part of a quarter of the look-ahead, and does again what failed, which adds nothing. However long
// what comes before takes, each sweep has an eighth of that for its first minute, and adding up has one.
const (
	accountFor   = 5 * time.Second
	accountTries = 3
)

// counted says where a sweep has counted runs of a tenant.
type counted struct {
	Tenant  string  `cbor:"1,keyasint"`
	Minutes []int64 `cbor:"2,keyasint"`           // in which they were due: how many after the one that was swept, mostly 0
	Open    []int64 `cbor:"3,keyasint,omitempty"` // those of them whose counts name runs that have not ended
}

// maxCounted is how many bytes of them a sweep remembers, about: some thousand tenants of a minute and shard. Runs of others that had not ended stay open,
// and their hours are not added up.
const maxCounted = 128 << 10

// keepCounted is how long what the first sweep remembers is kept where it has counted: until the hour is added up.
const keepCounted = 4 * time.Hour

// tally is what a sweep of a minute has counted so far.
type tally struct {
	// Two timers may stand for one run: for a fire those lie in one bucket, for one on demand anywhere. By hash of tenant and ID.
	fires []map[uint64]bool // by bucket of the shard, until it is read

	mu    sync.Mutex
	asked map[uint64]bool
	sums  map[stats.Place]*stats.Sum
}

func newTally(buckets int) tally {
	return tally{fires: make([]map[uint64]bool, buckets), asked: map[uint64]bool{}, sums: map[stats.Place]*stats.Sum{}}
}

// read forgets which fires were counted of a bucket that was read to its end.
func (t *tally) read(i int) { t.fires[i] = nil }

// reckon counts the runs of a page.
func (s *minuteSweep) reckon(bucket int, seen []sighting) {
	first, _ := s.p.Dispatch.Layout.BucketsOf(s.p.shard.Number)
	fires := &s.tally.fires[bucket-first]
	if *fires == nil {
		*fires = map[uint64]bool{}
	}
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	for _, r := range seen {
		if !r.due || r.State == run.Fenced {
			continue
		}
		met := *fires
		if r.ID.OnDemand() {
			met = s.tally.asked
		}
		sum := hashOf(r.Run)
		if met[sum] {
			continue
		}
		met[sum] = true
		place := stats.Place{Tenant: r.Tenant, Minute: timer.Minute(r.ID.Nominal), Shard: s.p.shard.Number, Swept: s.minute}
		if s.tally.sums[place] == nil {
			s.tally.sums[place] = &stats.Sum{Place: place}
		}
		s.tally.sums[place].Count(r.Run)
	}
}

func hashOf(r run.Run) uint64 {
	var room [320]byte
	return xxhash.Sum64(r.ID.Append(append(append(room[:0], r.Tenant...), '#')))
}

// forCounts is how long a pass may be at its counts: what is due next is claimed when it has ended.
func (t *Ticker) forCounts() time.Duration {
	return min(accountFor, t.Dispatch.LookAhead/time.Duration(4*t.Dispatch.Layout.Shards))
}

// What a pass does for counts, one after the other: what its sweeps have seen, by their numbers, then these.
const (
	addingUp = timer.Sweeps + iota // of hours
	noting                         // what is left of that
)

// toCount is how long a pass may still be at its counts, up to the end of a step. Each step behind it has an eighth of all the time to itself.
func (p *pass) toCount(step int) time.Duration {
	return p.forCounts()*time.Duration(8-noting+step)/8 - p.counted
}

// counting does a step of what counts, in the time that there is for it.
func (p *pass) counting(ctx context.Context, step int, do func(context.Context)) {
	if !p.Dispatch.Still { // else it takes no time
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, p.toCount(step))
		defer cancel()
	}
	began := p.Dispatch.Elapsed()
	do(ctx)
	p.counted += p.Dispatch.Elapsed() - began
}

// account writes what was counted.
func (s *minuteSweep) account(ctx context.Context) {
	write := s.putSums
	if s.later {
		write = s.settle
	}
	if !s.later || s.found {
		s.p.counting(ctx, s.number, func(ctx context.Context) {
			err := write(ctx)
			for try := 1; err != nil && try < accountTries && ctx.Err() == nil; try++ {
				err = write(ctx)
			}
			if err != nil {
				s.p.Log.WarnContext(ctx, "runs were not counted in full", "shard", s.p.shard.Number, "minute", time.UnixMilli(s.minute*60_000).UTC(), "error", err)
			}
		})
	}
	if s.number == timer.Sweeps-1 {
		s.addUp(ctx)
	}
}

// putSums writes what the first sweep has counted, where nobody has written a newer reading.
func (s *minuteSweep) putSums(ctx context.Context) error {
	sums := make([]*stats.Sum, 0, len(s.tally.sums))
	for _, sum := range s.tally.sums {
		sum.Seen = s.p.bounds.Now
		sums = append(sums, sum)
	}
	slices.SortFunc(sums, func(a, b *stats.Sum) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Minute, b.Minute))
	})
	overtaken, err := s.put(ctx, sums)
	for _, c := range overtaken {
		mine := sums[c.at]
		standing, broken := stats.FromItem(mine.Place, c.item)
		if broken == nil && standing.Seen > mine.Seen {
			sums[c.at] = &standing // it counts what we do not know of any more
			continue
		}
		mine.Version = c.item.Version
		_, failed := s.put(ctx, []*stats.Sum{mine})
		err = errors.Join(err, failed)
	}
	s.remember(sums)
	return err
}

// overtaken is what stands where a Sum was to be written.
type overtaken struct {
	at   int
	item store.Item
}

// put writes Sums, each under the version that was read, and gives those that it did not since others have written them.
func (s *minuteSweep) put(ctx context.Context, sums []*stats.Sum) (lost []overtaken, err error) {
	ops := make([]store.Op, len(sums))
	for i, sum := range sums {
		if ops[i], err = sum.Put(time.UnixMilli(s.p.bounds.Now), s.p.Dispatch.NewID()); err != nil {
			return nil, err
		}
	}
	verdicts, err := s.p.Dispatch.WriteEach(ctx, ops)
	if err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		if conflict := store.AsConflict(v.Err); conflict != nil {
			lost = append(lost, overtaken{i, conflict.Standing})
		} else if v.Err != nil {
			err = errors.Join(err, v.Err)
		}
	}
	return lost, err
}

// remember notes in what the first sweep remembers where it has counted, for the later ones. sums are in order.
func (s *minuteSweep) remember(sums []*stats.Sum) {
	bytes := 0
	all := &s.seen.Counted
	*all = nil
	for _, sum := range sums {
		if len(*all) == 0 || (*all)[len(*all)-1].Tenant != sum.Tenant {
			bytes += len(sum.Tenant) + 8
			*all = append(*all, counted{Tenant: sum.Tenant})
		}
		if bytes += 8; bytes > maxCounted {
			*all = (*all)[:len(*all)-1]
			s.p.Log.Warn("so many tenants have runs in one minute that not all of them are counted again", "minute", time.UnixMilli(s.minute*60_000).UTC(), "from", sum.Tenant)
			return
		}
		in := &(*all)[len(*all)-1]
		in.Minutes = append(in.Minutes, sum.Minute-sum.Swept)
		if len(sum.Unended) > 0 {
			in.Open = append(in.Open, sum.Minute-sum.Swept)
		}
	}
}

// expires is until when what the first sweep saw is kept.
func (s *minuteSweep) expires() time.Time {
	end := time.UnixMilli((s.minute + 1) * 60_000)
	if len(s.seen.Counted) == 0 {
		return end.Add(2 * timer.Lags[timer.Sweeps-1])
	}
	if now := time.UnixMilli(s.p.bounds.Now); now.After(end) { // after an outage the later sweeps come as late
		end = now
	}
	return end.Add(keepCounted)
}

// settle looks at the runs that had not ended when they were counted.
func (s *minuteSweep) settle(ctx context.Context) error {
	known, err := s.before(ctx)
	if err != nil || known == nil {
		return err
	}
	var places []stats.Place
	for _, c := range known.Counted {
		for _, after := range c.Open {
			places = append(places, stats.Place{Tenant: c.Tenant, Minute: s.minute + after, Shard: s.p.shard.Number, Swept: s.minute})
		}
	}
	for some := range slices.Chunk(places, store.MaxKeys) {
		err = errors.Join(err, s.settleSome(ctx, some))
	}
	return err
}

func (s *minuteSweep) settleSome(ctx context.Context, places []stats.Place) error {
	keys := make([]store.Key, len(places))
	for i, place := range places {
		keys[i] = place.Key()
	}
	items, err := s.p.store.Peek(ctx, keys...) // what is written goes by the version that was read
	if err != nil {
		return err
	}
	s.p.used.Add(int64(len(keys)))
	var sums []*stats.Sum
	for i, item := range items {
		sum, broken := stats.FromItem(places[i], item)
		if broken != nil {
			s.unreadable(item, broken)
			continue
		}
		sums = append(sums, &sum)
	}
	return s.follow(ctx, sums, false)
}

// follow counts those runs that Sums name and that have ended, with last all of them.
func (s *minuteSweep) follow(ctx context.Context, sums []*stats.Sum, last bool) error {
	var named []run.Run
	each := make([]int, len(sums))
	for i, sum := range sums {
		runs, broken := sum.Runs()
		if broken != nil {
			s.unreadable(store.Item{Key: sum.Key()}, broken)
		}
		named, each[i] = append(named, runs...), len(runs)
	}
	standing, err := s.p.readOpen(ctx, named)
	if err != nil {
		return err
	}
	s.p.used.Add(int64(len(named)))
	var changed []*stats.Sum
	for i, sum := range sums {
		if each[i] > 0 && sum.Settle(standing[:each[i]], last) {
			changed = append(changed, sum)
		}
		standing = standing[each[i]:]
	}
	lost, err := s.put(ctx, changed)
	if len(lost) > 0 {
		err = errors.Join(err, errors.New("others have written the counts of a minute meanwhile"))
	}
	return err
}

// unreadable tells of an item that cannot be read, and is left out.
func (s *minuteSweep) unreadable(item store.Item, err error) {
	s.p.Metrics.Unreadable.Inc()
	s.p.Log.Error("counts are unreadable and left out", "key", item.Key.String(), "error", err)
}

// query visits the items of a range.
func (s *minuteSweep) query(ctx context.Context, r store.Range, visit func(store.Item) error) error {
	for {
		page, err := s.p.store.Query(ctx, r)
		if err != nil {
			return err
		}
		s.p.used.Add(1)
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return nil
		}
	}
}
