package tick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// When the last sweep has passed an hour, each shard adds up what it has counted in it, a tenant's hour at a time. What fails, or takes longer than there is to
// spare, is noted and gone on with after the next minute. So is noted where runs had not ended: they are looked at for the last time stats.LateHours
// later, and their hours are written again. The cursor of the sweep never waits for that: where the note itself fails, the shard says so in the
// same write as the cursor (timer.Shard.AddFrom), and the list is made later, from what the first sweeps remember.

// tenantHour is an hour in which runs of a tenant were due.
type tenantHour struct {
	Tenant string `cbor:"1,keyasint"`
	Hour   int64  `cbor:"2,keyasint"`
}

func (a tenantHour) compare(b tenantHour) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Hour, b.Hour))
}

// owed is what is left to be done of what a shard has counted in the sweeps of an hour, or of a part of that.
type owed struct {
	Add  []tenantHour `cbor:"1,keyasint,omitempty"` // to be added up
	Open []tenantHour `cbor:"2,keyasint,omitempty"` // to be looked at once more
}

// maxOwed is how many bytes of them one item has, about, in both lists together: an hour of more has several.
const (
	maxOwed       = 256 << 10
	ofATenantHour = 12 // bytes, beside the name
)

func owedKey(shard int, hour int64, part int) store.Key {
	k := store.Key{Partition: fmt.Sprintf("owed#%02d", shard), Sort: fmt.Sprintf("%010d", hour)}
	if part > 0 {
		k.Sort += fmt.Sprintf("#%04d", part)
	}
	return k
}

// debt is what is owed of an hour of sweeps, or of a part of that, and what stands of it.
type debt struct {
	owed
	hour    int64
	part    int
	version uint64
	changed bool
}

// adding is how far a pass has come with adding hours up.
type adding struct {
	*minuteSweep
	from  int64   // of the hours of sweeps whose lists are to be made, the first; 0 for none
	to    int64   // the hour behind the last one of them
	debts []*debt // what is owed of the others
	left  bool    // the next minute has something to do
}

// addUp adds up the hour whose last minute this is, and goes on with what is left of those before.
func (s *minuteSweep) addUp(ctx context.Context) {
	a := adding{minuteSweep: s, from: s.p.shard.AddFrom, to: (s.minute + 1) / 60}
	if a.from == 0 && (s.minute+1)%60 == 0 {
		a.from = a.to - 1
	}
	if a.from == 0 && !s.p.owes(s.p.shard.Number) {
		return
	}
	unlisted := a.from
	s.p.counting(ctx, addingUp, func(ctx context.Context) {
		a.list(ctx)
		a.pay(ctx)
	})
	s.p.counting(ctx, noting, func(ctx context.Context) {
		if !a.note(ctx) {
			a.from = unlisted
		}
	})
	if a.from == a.to {
		a.from = 0
	}
	s.p.mu.Lock()
	s.p.shard.AddFrom = a.from
	s.p.mu.Unlock()
	s.p.noteOwing(s.p.shard.Number, a.left)
}

// list reads what is owed, and makes the lists of the hours that have none.
func (a *adding) list(ctx context.Context) {
	var err error
	a.debts, err = a.owing(ctx)
	for err == nil && 0 < a.from && a.from < a.to {
		if a.debts, err = a.listHour(ctx, a.debts, a.from); err == nil {
			a.from++
		}
	}
	if err != nil {
		a.left = true
		a.p.Log.WarnContext(ctx, "it is not known yet what is to be added up of the counts of an hour", "shard", a.p.shard.Number, "error", err)
	}
}

// pay does what is owed, as far as the time goes.
func (a *adding) pay(ctx context.Context) {
	for _, d := range a.debts {
		if err := a.payHour(ctx, d, a.isLast(d)); err != nil {
			a.p.Log.WarnContext(ctx, "an hour of counts is not added up in full yet", "shard", a.p.shard.Number, "hour", time.UnixMilli(d.hour*stats.Hour).UTC(), "error", err)
		}
		a.left = a.left || len(d.Add) > 0 || a.isLast(d) && len(d.Open) > 0
	}
}

// isLast tells whether what is owed of an hour is looked at for the last time.
func (a *adding) isLast(d *debt) bool { return d.hour <= a.to-1-stats.LateHours }

// note writes what is owed now, and tells whether it stands.
func (a *adding) note(ctx context.Context) bool {
	err := a.record(ctx, a.debts)
	if err != nil {
		a.left = true
		a.p.Log.WarnContext(ctx, "what is to be added up of the counts of an hour is not noted yet", "shard", a.p.shard.Number, "error", err)
	}
	return err == nil
}

// owing reads what is owed of all hours.
func (s *minuteSweep) owing(ctx context.Context) (debts []*debt, err error) {
	err = s.query(ctx, store.Range{Partition: owedKey(s.p.shard.Number, 0, 0).Partition}, func(item store.Item) error {
		d := &debt{version: item.Version}
		if err := d.at(item.Sort); err != nil {
			s.unreadable(item, err)
			return nil
		}
		if err := record.Decode(item.Value, &d.owed); err != nil {
			s.unreadable(item, err)
			d.owed, d.changed = owed{}, true // it is not kept
		}
		debts = append(debts, d)
		return nil
	})
	return debts, err
}

// at reads which part of which hour has a sort key.
func (d *debt) at(sort string) (err error) {
	hour, part, split := strings.Cut(sort, "#")
	d.hour, err = strconv.ParseInt(hour, 10, 64)
	if err == nil && split {
		d.part, err = strconv.Atoi(part)
	}
	return err
}

// listHour adds what is to be added up of the sweeps of an hour, in as many parts as it takes. What stands already is not noted again.
func (s *minuteSweep) listHour(ctx context.Context, debts []*debt, swept int64) ([]*debt, error) {
	found, err := s.hours(ctx, swept)
	if err != nil {
		return debts, err
	}
	part := 0
	for _, d := range debts {
		if d.hour == swept {
			part = max(part, d.part+1)
			for _, h := range slices.Concat(d.Add, d.Open) {
				delete(found, h)
			}
		}
	}
	d, bytes := &debt{hour: swept, part: part}, 0
	debts = append(debts, d)
	for _, h := range slices.SortedFunc(maps.Keys(found), tenantHour.compare) {
		if bytes += len(h.Tenant) + ofATenantHour; bytes > maxOwed {
			d, bytes = &debt{hour: swept, part: d.part + 1}, len(h.Tenant)+ofATenantHour
			debts = append(debts, d)
		}
		d.Add = append(d.Add, h)
	}
	return debts, nil
}

// hours are those in which runs were due that the sweeps of an hour came upon.
func (s *minuteSweep) hours(ctx context.Context, swept int64) (map[tenantHour]bool, error) {
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
	return found, err
}

// payHour does what is owed of an hour, with last the last look too, and leaves in it what failed.
func (s *minuteSweep) payHour(ctx context.Context, d *debt, last bool) error {
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
		op := store.Op{Kind: store.Put, Key: owedKey(s.p.shard.Number, d.hour, d.part), If: store.At(store.Item{Version: d.version}), Attempt: s.p.Dispatch.NewID()}
		if len(d.Add)+len(d.Open) == 0 {
			if op.Kind = store.Delete; d.version == 0 {
				continue
			}
		} else {
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
