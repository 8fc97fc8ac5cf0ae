package tick

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// sweeps takes the second looks that are due: whole minutes, each once per sweep, none skipped however late. A minute that
// fails holds its sweep, not the others. The cursors are written when the pass ends: every run of these minutes has ended or has a
// check timer ahead of the horizon by then, and a crash before that write sweeps them again.
//
// Meanwhile nothing is claimed. Where this process is alone, a minute of so many timers that this would use up the look-ahead is gone on
// with by the next pass. Where several tick, the one that has the shard does all of a minute: what it knows of a part is worth nothing to another.
func (p *pass) sweeps(ctx context.Context) error {
	var errs []error
	for k := range timer.Sweeps {
		p.mu.Lock()
		end := min(p.bounds.Now-timer.Lags[k].Milliseconds(), p.shard.Watermark)
		swept := p.shard.Swept[k]
		p.mu.Unlock()
		end -= end % 60_000 // the first instant of the first minute that is not over
		budget := p.used.Load() + int64(p.work/4)
		enough := func() bool { return p.Alone && p.used.Load() >= budget && p.Dispatch.Elapsed() >= p.spare }
		for first := true; swept < end && p.used.Load() < budget && !p.over() && (first || p.toCount(k) > 0); first = false {
			minute := timer.Minute(swept)
			done, err := p.sweep(ctx, k, minute, enough)
			if err != nil {
				errs = append(errs, fmt.Errorf("sweep %d of minute %d: %w", k+1, minute, err))
				break
			}
			if done {
				swept = (minute + 1) * 60_000
			}
			p.mu.Lock()
			p.behind = p.behind || swept < end
			p.shard.Swept[k] = swept
			p.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

// print is what the first sweep remembers of a minute: for each bucket a hash over its timers, 0 for none. A later sweep that
// finds the same need not look at the runs: each had ended, or had a check timer.
type print struct {
	Buckets [timer.Buckets]uint64 `cbor:"1,keyasint"`
	Counted []counted             `cbor:"2,keyasint,omitempty"` // where the runs of the minute were counted
}

func printKey(shard int, minute int64) store.Key {
	return store.Key{Partition: fmt.Sprintf("swept#%02d", shard), Sort: fmt.Sprintf("%010d", minute)}
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"swept": print{}, "owed": owed{}} }

// minuteSweep is a sweep of one minute, which may take several passes. It is in memory only: where it is lost, to a crash or an error, the
// minute is swept from its beginning.
type minuteSweep struct {
	p       *pass // that is at it
	minute  int64
	number  int      // of the sweep, from 0
	later   bool     // it is not the first sweep
	from    []string // by bucket of the shard: from where on it is to be read
	mended  []bool   // by bucket: it has changed since the first sweep, and was looked at
	changed []string // by bucket: from where on it is to be read once more, since it has changed; "" for not at all. nil until all was read once

	asking chan struct{} // has room for the one who reads known: not a mutex, which is not to be held over a request
	asked  bool
	known  *print // what the first sweep saw; nil where it came upon nothing

	mu    sync.Mutex
	seen  print
	found bool                     // the minute has timers
	ready map[string][]run.Listing // by tenant: to be listed
	count int                      // in ready

	tally tally
}

// sweep looks at one minute again, and lists the runs that came due in it, until it is told that it is enough. It tells whether all of
// the minute was done. A later sweep looks at the runs of those buckets only that have changed.
func (p *pass) sweep(ctx context.Context, k int, minute int64, enough func() bool) (done bool, err error) {
	s := p.under[k]
	p.under[k] = nil // an error begins it anew
	if s == nil || s.minute != minute {
		s = &minuteSweep{minute: minute, number: k, later: k > 0, from: p.beginning(minute), mended: make([]bool, len(p.at)),
			asking: make(chan struct{}, 1), ready: map[string][]run.Listing{}, tally: newTally(len(p.at))}
	}
	s.p = p
	if done, err = s.goOn(ctx, enough); err != nil || !done {
		if err == nil {
			p.under[k] = s
		}
		return false, err
	}
	return true, s.finish(ctx)
}

// sweeper is what a sweep does with a page.
type sweeper func(*minuteSweep, context.Context, page) (Report, error)

func (s *minuteSweep) goOn(ctx context.Context, enough func() bool) (done bool, err error) {
	look := sweeper((*minuteSweep).first)
	if s.later {
		look = (*minuteSweep).compare
	}
	if done, err = s.read(ctx, s.from, look, enough); err != nil || !done || !s.later {
		return done, err
	}
	if s.changed == nil {
		if s.changed, err = s.differing(ctx); err != nil {
			return false, err
		}
	}
	return s.read(ctx, s.changed, (*minuteSweep).repair, enough)
}

// read hands the pages of some buckets on, and tells whether it came to their ends. How far it came stands in from.
func (s *minuteSweep) read(ctx context.Context, from []string, look sweeper, enough func() bool) (done bool, err error) {
	w := walk{minute: s.minute, from: slices.Clone(from), to: timer.SortFrom((s.minute + 1) * 60_000), enough: enough}
	w.handle = func(_ *pass, ctx context.Context, pg page) (Report, error) { return look(s, ctx, pg) }
	w.moved = func(i int, position string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		from[i] = position
		if position >= w.to {
			s.tally.read(i)
		}
	}
	if s.p.Alone {
		w.long = make(chan struct{}, 1)
	}
	err = errors.Join(s.p.walk(ctx, &w)...)
	return !slices.ContainsFunc(from, func(position string) bool { return position != "" && position < w.to }), err
}

// first is what the first sweep does with a page.
func (s *minuteSweep) first(ctx context.Context, pg page) (Report, error) {
	s.see(pg)
	repairs, runs, err := s.p.again(ctx, pg)
	if err == nil && s.p.Counts {
		s.reckon(pg.bucket, runs)
	}
	if err == nil {
		err = s.note(ctx, runs)
	}
	return Report{Repairs: repairs}, err
}

// compare is what a later sweep does with a page. A bucket that is all on it is at hand, and looked at at once where it has changed. Of
// longer ones that is known when all has been read: a store may show only by an empty page that one is at its end.
func (s *minuteSweep) compare(ctx context.Context, pg page) (Report, error) {
	sum := s.see(pg)
	if !pg.only {
		return Report{}, nil
	}
	known, err := s.before(ctx)
	if err != nil || known != nil && sum == known.Buckets[pg.bucket] {
		return Report{}, err
	}
	first, _ := s.p.Dispatch.Layout.BucketsOf(s.p.shard.Number)
	s.mended[pg.bucket-first] = true
	return s.repair(ctx, pg)
}

// differing gives where to begin with the buckets that have changed, and were not at hand.
func (s *minuteSweep) differing(ctx context.Context) ([]string, error) {
	changed := make([]string, len(s.from))
	if !s.found {
		return changed, nil
	}
	known, err := s.before(ctx)
	if err != nil {
		return nil, err
	}
	first, _ := s.p.Dispatch.Layout.BucketsOf(s.p.shard.Number)
	for i := range changed {
		if sum := s.seen.Buckets[first+i]; sum != 0 && !s.mended[i] && (known == nil || sum != known.Buckets[first+i]) {
			changed[i] = timer.SortFrom(s.minute * 60_000)
		}
	}
	return changed, nil
}

// repair looks after the runs of a page, and lists them.
func (s *minuteSweep) repair(ctx context.Context, pg page) (Report, error) {
	repairs, runs, err := s.p.again(ctx, pg)
	if err == nil {
		err = s.note(ctx, runs)
	}
	return Report{Repairs: repairs}, err
}

// see adds a page to what was seen, and gives the hash of its bucket up to there.
func (s *minuteSweep) see(pg page) uint64 {
	sum := pg.hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = true
	s.seen.Buckets[pg.bucket] += sum
	return s.seen.Buckets[pg.bucket]
}

// hash covers what the sweep acts on: which timers there are, and what they stand for. That of a bucket is the sum of its pages',
// however it is cut into them.
func (pg page) hash() (sum uint64) {
	var to [8]byte
	one := xxhash.New()
	for _, timers := range [][]timer.Timer{pg.fires, pg.requests, pg.checks} {
		for _, t := range timers {
			one.Reset()
			_, _ = one.WriteString(t.Key().Sort)
			binary.LittleEndian.PutUint64(to[:], uint64(t.To))
			_, _ = one.Write(to[:])
			sum += one.Sum64()
		}
	}
	return sum
}

// before gives what the first sweep saw of the minute, nil for no timers. It is read once, and where nothing is there to be compared
// with it, never.
func (s *minuteSweep) before(ctx context.Context) (*print, error) {
	if err := ctx.Err(); err != nil { // of two that are ready select takes any
		return nil, err
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.asked {
		return s.known, nil
	}
	items, err := s.p.store.Get(ctx, printKey(s.p.shard.Number, s.minute))
	if err != nil {
		return nil, err
	}
	s.p.used.Add(1)
	s.asked = true
	if items[0].Exists() {
		s.known = new(print)
		if err := record.Decode(items[0].Value, s.known); err != nil {
			s.p.Log.WarnContext(ctx, "what the first sweep remembered is unreadable: all is looked at", "minute", s.minute, "error", err)
			*s.known = print{}
			for i := range s.known.Buckets {
				s.known.Buckets[i] = 1 // no hash is likely to be that
			}
		}
	}
	return s.known, nil
}

// finish lists what is left when all of the minute was looked at, has its runs counted, and remembers what the first sweep saw.
func (s *minuteSweep) finish(ctx context.Context) error {
	if err := s.write(ctx, s.full(1)); err != nil {
		return err
	}
	if s.p.Counts {
		s.account(ctx)
	}
	if s.later || !s.found {
		return nil
	}
	value, err := record.Encode(s.seen)
	if err != nil {
		return err
	}
	_, err = s.p.Dispatch.Write(ctx, store.Op{Kind: store.Put, Key: printKey(s.p.shard.Number, s.minute), Value: value,
		Expires: s.expires(), Attempt: s.p.Dispatch.NewID()})
	return err
}
