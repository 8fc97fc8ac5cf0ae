package tick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// When the last sweep has passed an hour, each shard adds up what it has counted in it, a tenant's hour at a time. What fails, or takes longer than there is to
// spare, is noted and gone on with after the next minute. So is noted where runs had not ended: they are looked at for the last time stats.LateHours
// later, and their hours are written again. The cursor of the sweep moves after the note.

// tenantHour is an hour in which runs of a tenant were due.
type tenantHour struct {
	Tenant string `cbor:"1,keyasint"`
	Hour   int64  `cbor:"2,keyasint"`
}

func (a tenantHour) compare(b tenantHour) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Hour, b.Hour))
}

// owed is what is left to be done of what a shard has counted in the sweeps of an hour.
type owed struct {
	Add  []tenantHour `cbor:"1,keyasint,omitempty"` // to be added up
	Open []tenantHour `cbor:"2,keyasint,omitempty"` // to be looked at once more
}

// maxOwed is how many of them are noted of an hour, about as many as a sweep of a minute remembers.
const maxOwed = 4096

func owedKey(shard int, hour int64) store.Key {
	return store.Key{Partition: fmt.Sprintf("owed#%02d", shard), Sort: fmt.Sprintf("%010d", hour)}
}

// debt is what is owed of an hour of sweeps, and what stands of that.
type debt struct {
	owed
	hour    int64
	version uint64
	changed bool
}

// addUp adds up the hour whose last minute this is, and goes on with what is left of those before.
func (s *minuteSweep) addUp(ctx context.Context) error {
	ends := (s.minute+1)%60 == 0
	if !ends && !s.p.owes(s.p.shard.Number) {
		return nil
	}
	debts, err := s.debts(ctx)
	if err != nil {
		return err
	}
	if swept := s.minute / 60; ends {
		i := slices.IndexFunc(debts, func(d *debt) bool { return d.hour == swept })
		if i < 0 {
			i, debts = len(debts), append(debts, &debt{hour: swept})
		}
		if debts[i].Add, err = s.hours(ctx, swept); err != nil {
			return err
		}
	}
	last := (s.minute+1)/60 - 1 - stats.LateHours // of the hours up to it nothing is looked at again
	s.p.counting(ctx, func(ctx context.Context) {
		for _, d := range debts {
			if err := s.pay(ctx, d, d.hour <= last); err != nil {
				s.p.Log.WarnContext(ctx, "an hour of counts is not added up in full yet", "shard", s.p.shard.Number, "hour", time.UnixMilli(d.hour*stats.Hour).UTC(), "error", err)
			}
		}
	})
	left := slices.ContainsFunc(debts, func(d *debt) bool { return len(d.Add) > 0 || d.hour <= last && len(d.Open) > 0 })
	if err := s.record(ctx, debts); err != nil {
		return err
	}
	s.p.noteOwing(s.p.shard.Number, left)
	return nil
}

// debts reads what is owed of all hours.
func (s *minuteSweep) debts(ctx context.Context) (debts []*debt, err error) {
	err = s.query(ctx, store.Range{Partition: owedKey(s.p.shard.Number, 0).Partition}, func(item store.Item) error {
		hour, err := strconv.ParseInt(item.Sort, 10, 64)
		if err != nil {
			s.unreadable(item, err)
			return nil
		}
		d := &debt{hour: hour, version: item.Version}
		if err := record.Decode(item.Value, &d.owed); err != nil {
			s.unreadable(item, err)
			d.owed, d.changed = owed{}, true // it is not kept
		}
		debts = append(debts, d)
		return nil
	})
	return debts, err
}

// hours are those in which runs were due that the sweeps of an hour came upon, in order.
func (s *minuteSweep) hours(ctx context.Context, swept int64) ([]tenantHour, error) {
	found := map[tenantHour]bool{}
	from, to := printKey(s.p.shard.Number, swept*60), printKey(s.p.shard.Number, (swept+1)*60)
	err := s.query(ctx, store.Range{Partition: from.Partition, From: from.Sort, To: to.Sort}, func(item store.Item) error {
		var known print
		minute, err := strconv.ParseInt(item.Sort, 10, 64)
		if err = cmp.Or(err, record.Decode(item.Value, &known)); err != nil {
			s.unreadable(item, err)
			return nil
		}
		for _, c := range known.Counted {
			for _, after := range c.Minutes {
				found[tenantHour{c.Tenant, (minute + after) / 60}] = true
			}
		}
		return nil
	})
	return slices.SortedFunc(maps.Keys(found), tenantHour.compare), err
}

// pay does what is owed of an hour, with last the last look too, and leaves in it what failed.
func (s *minuteSweep) pay(ctx context.Context, d *debt, last bool) error {
	all := slices.Clone(d.Add)
	if last {
		all = append(all, d.Open...)
	}
	if len(all) == 0 {
		return nil
	}
	open, errs := make([]bool, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(s.p.Parallel)
	for i, h := range all {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				open[i], errs[i] = s.hour(ctx, h, d.hour, last)
			}
			return nil
		})
	}
	_ = group.Wait()
	left := owed{}
	if !last {
		left.Open = d.Open
	}
	for i, h := range all {
		switch {
		case errs[i] == nil && open[i]:
			left.Open = append(left.Open, h)
		case errs[i] == nil:
		case i < len(d.Add):
			left.Add = append(left.Add, h)
		default:
			left.Open = append(left.Open, h)
		}
	}
	slices.SortFunc(left.Open, tenantHour.compare)
	left.Open = slices.Compact(left.Open)
	d.owed, d.changed = left, true
	return cmp.Or(errs...)
}

// record writes what is left, which another tick that has the shard may have done meanwhile.
func (s *minuteSweep) record(ctx context.Context, debts []*debt) error {
	var ops []store.Op
	for _, d := range debts {
		op := store.Op{Kind: store.Put, Key: owedKey(s.p.shard.Number, d.hour), If: store.At(store.Item{Version: d.version}), Attempt: s.p.Dispatch.NewID()}
		if len(d.Add)+len(d.Open) == 0 {
			if op.Kind = store.Delete; d.version == 0 {
				continue
			}
		} else {
			for _, list := range []*[]tenantHour{&d.Add, &d.Open} {
				if len(*list) > maxOwed {
					s.p.Log.WarnContext(ctx, "so many tenants have runs in one hour that not all of their hours are added up again", "hour", time.UnixMilli(d.hour*stats.Hour).UTC(), "from", (*list)[maxOwed].Tenant)
					*list = (*list)[:maxOwed]
				}
			}
			var err error
			if op.Value, err = record.Encode(d.owed); err != nil {
				return err
			}
			op.Expires = time.UnixMilli(s.p.bounds.Now).Add(stats.KeepMinutes)
		}
		if d.changed {
			ops = append(ops, op)
		}
	}
	verdicts, err := s.p.Dispatch.WriteEach(ctx, ops)
	for _, v := range verdicts {
		err = errors.Join(err, v.Err)
	}
	return err
}

// hour adds up what this shard has counted in an hour, and tells whether runs of it that the sweeps of an hour came upon had not ended. With last these
// are looked at once more, and counted as they are.
func (s *minuteSweep) hour(ctx context.Context, h tenantHour, swept int64, last bool) (open bool, err error) {
	var standing uint64
	for range accountTries {
		var counts stats.Counts
		if counts, open, err = s.sums(ctx, h, swept, last); err != nil || counts.Due() == 0 {
			return open, err
		}
		op, kept, err := stats.PutHour(h.Tenant, h.Hour, s.p.shard.Number, counts, standing, time.UnixMilli(s.p.bounds.Now), s.p.Dispatch.NewID())
		if err != nil {
			return open, err
		}
		verdicts, err := s.p.Dispatch.WriteEach(ctx, []store.Op{op})
		if err != nil {
			return open, err
		}
		conflict := store.AsConflict(verdicts[0].Err)
		if conflict == nil {
			return open, verdicts[0].Err
		}
		if kept {
			return open, nil
		}
		standing = conflict.Standing.Version // the minutes are to be read after that was written
	}
	return open, errors.New("others have written the counts of an hour meanwhile")
}

// sums adds up the minutes of an hour.
func (s *minuteSweep) sums(ctx context.Context, h tenantHour, swept int64, last bool) (all stats.Counts, open bool, err error) {
	var late []*stats.Sum
	err = s.query(ctx, stats.Minutes(h.Tenant, s.p.shard.Number, h.Hour*60, (h.Hour+1)*60), func(item store.Item) error {
		sum, err := stats.OfMinute(h.Tenant, item)
		if err != nil {
			s.unreadable(item, err)
			return nil
		}
		if len(sum.Unended) > 0 && sum.Swept/60 <= swept { // others are owed of the hour of their own sweep
			late = append(late, &sum)
			return nil
		}
		counts := sum.All()
		all.Merge(&counts)
		return nil
	})
	for _, sum := range late {
		if last && err == nil { // one by one: so much is done, however little time there is
			err = s.follow(ctx, []*stats.Sum{sum}, true)
		}
		counts := sum.All()
		all.Merge(&counts)
	}
	return all, !last && len(late) > 0, err
}

// owes tells whether this process knows that something is left to be done of what a shard has counted, or is to see whether it is. What others have left, those
// who are not alone come upon with the next hour.
func (t *Ticker) owes(shard int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	owing, known := t.owing[shard]
	return owing || !known && t.Alone
}

func (t *Ticker) noteOwing(shard int, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owing[shard] = is
}
