package stats

import (
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// How long counts are kept: long enough to look back, and to add the minutes up.
const (
	KeepMinutes = 8 * 24 * time.Hour
	KeepHours   = 400 * 24 * time.Hour
)

// Minute and Hour are the lengths of what is counted together, in ms.
const (
	Minute = int64(60_000)
	Hour   = 60 * Minute
)

// LateHours is how many hours after the last sweep has passed an hour those runs of it are looked at for the last time that had not ended until then.
const LateHours = 4

// Within is the longest that a run is followed for certain: from the end of the minute in which it was due to the last look. It is longer than what
// retries take by default.
const Within = (LateHours + 1) * time.Hour

// Settled is up to where nothing is looked at again, Unix ms, once the last sweep has come to an instant.
func Settled(swept int64) int64 { return max(swept/Hour-LateHours, 0) * Hour }

// Partition is where the counts of a tenant lie, and of no other.
func Partition(tenant string) string { return "sum#" + tenant }

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"sum": body{}} }

// Place is which runs a Sum counts: those of a tenant that were due in a minute and that a sweep of a minute came upon in a shard. All
// minutes are counted from the epoch.
type Place struct {
	Tenant string
	Minute int64 // in which the runs were due
	Shard  int
	Swept  int64 // the minute that was swept
}

// Key is where the Sum stands.
func (p Place) Key() store.Key {
	return store.Key{Partition: Partition(p.Tenant), Sort: fmt.Sprintf("%s#%010d", minuteSort(p.Shard, p.Minute), p.Swept)}
}

// The shard stands before the minute, since each shard adds up what it has counted itself, and reads nothing of the others.
func minuteSort(shard int, minute int64) string { return fmt.Sprintf("m#%02d#%010d", shard, minute) }
func hourSort(hour int64) string                { return fmt.Sprintf("h#%010d", hour) }

// Sum is what a sweep counted.
type Sum struct {
	Place
	Version uint64 // of its item
	body
}

type body struct {
	Seen    int64    `cbor:"1,keyasint,omitempty"` // Unix ms: when the pass began whose sweep read the runs
	Counts  Counts   `cbor:"2,keyasint,omitzero"`
	Unended []string `cbor:"3,keyasint,omitempty"` // IDs of runs that are not in Counts yet, since they had not ended
	named   int      // bytes of Unended
}

// maxNamed is how many bytes of IDs a Sum holds: some thousand runs. Those beyond are counted as open for good.
const maxNamed = 64 << 10

// Count adds a run. One that has not ended is named, so that a later sweep can tell what became of it.
func (s *Sum) Count(r run.Run) {
	if !r.State.Ended() {
		if id := r.ID.String(); s.named+len(id) <= maxNamed {
			s.named += len(id)
			s.Unended = append(s.Unended, id)
			return
		}
	}
	s.Counts.Add(r)
}

// All are the counts with the runs that are named among the open ones.
func (s *Sum) All() Counts {
	all := s.Counts
	all.Open += len(s.Unended)
	return all
}

// Runs are those that are named.
func (s *Sum) Runs() ([]run.Run, error) {
	runs := make([]run.Run, len(s.Unended))
	for i, text := range s.Unended {
		id, err := run.ParseID(text)
		if err != nil {
			return nil, fmt.Errorf("counts %s: %w: %w", s.Key(), record.ErrBroken, err)
		}
		runs[i] = run.Run{ID: id, Tenant: s.Tenant}
	}
	return runs, nil
}

// Settle counts those of the named runs that have ended, given all of them as they stand in the order of Runs; with last it counts the
// others as open and names none any more. A run that is not there was taken back by an edit, and counts for nothing. It tells whether anything has changed.
func (s *Sum) Settle(standing []run.Run, last bool) (changed bool) {
	named := s.Unended
	s.Unended = nil
	for i, r := range standing {
		switch {
		case r.Version == 0, r.State == run.Fenced:
		case r.State.Ended(), last:
			s.Counts.Add(r)
		default:
			s.Unended = append(s.Unended, named[i])
		}
	}
	return len(s.Unended) != len(named)
}

// Put gives the write of the Sum under the version that was read. Counted at now, it is kept from then on or from its minute, whichever is later.
func (s *Sum) Put(now time.Time, attempt uint64) (store.Op, error) {
	value, err := record.Encode(s.body)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: s.Key(), If: store.At(store.Item{Version: s.Version}), Value: value,
		Expires: later(now, time.UnixMilli(s.Minute*Minute)).Add(KeepMinutes), Attempt: attempt}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// FromItem reads the Sum at a place; an item that is not there gives an empty one.
func FromItem(p Place, item store.Item) (Sum, error) {
	s := Sum{Place: p, Version: item.Version}
	if !item.Exists() {
		return s, nil
	}
	if err := record.Decode(item.Value, &s.body); err != nil {
		return Sum{}, fmt.Errorf("counts %s: %w", item.Key, err)
	}
	return s, nil
}

// Minutes is the range of the Sums that a shard has made of a tenant's runs that were due in [from, to), minutes.
func Minutes(tenant string, shard int, from, to int64) store.Range {
	return store.Range{Partition: Partition(tenant), From: minuteSort(shard, from), To: minuteSort(shard, to)}
}

// Hours is the range of the counts of a tenant's hours in [from, to), counted from the epoch.
func Hours(tenant string, from, to int64) store.Range {
	return store.Range{Partition: Partition(tenant), From: hourSort(from), To: hourSort(to)}
}

// OfMinute reads an item of Minutes.
func OfMinute(tenant string, item store.Item) (Sum, error) {
	p := Place{Tenant: tenant}
	if _, err := fmt.Sscanf(item.Sort, "m#%02d#%010d#%010d", &p.Shard, &p.Minute, &p.Swept); err != nil {
		return Sum{}, fmt.Errorf("counts %s: %w: %w", item.Key, record.ErrBroken, err)
	}
	return FromItem(p, item)
}

// OfHour reads an item of Hours, and gives which hour it is of.
func OfHour(item store.Item) (hour int64, counts Counts, err error) {
	var shard int
	if _, err := fmt.Sscanf(item.Sort, "h#%010d#%02d", &hour, &shard); err != nil {
		return 0, Counts{}, fmt.Errorf("counts %s: %w: %w", item.Key, record.ErrBroken, err)
	}
	var s Sum
	if err := record.Decode(item.Value, &s.body); err != nil {
		return 0, Counts{}, fmt.Errorf("counts %s: %w", item.Key, err)
	}
	return hour, s.All(), nil
}

// PutHour gives the write of what a shard has counted in an hour, over what stood there at a version before the minutes were read, 0 for nothing: so
// no older reading takes the place of a newer one. Where some of the hour's minutes may be gone by now, what stands there is kept instead, and kept tells so.
func PutHour(tenant string, hour int64, shard int, counts Counts, standing uint64, now time.Time, attempt uint64) (op store.Op, kept bool, err error) {
	value, err := record.Encode(body{Seen: now.UnixMilli(), Counts: counts})
	if err != nil {
		return store.Op{}, false, err
	}
	begins := time.UnixMilli(hour * Hour)
	if kept = now.Sub(begins) > KeepMinutes-24*time.Hour; kept {
		standing = 0
	}
	return store.Op{Kind: store.Put, Key: store.Key{Partition: Partition(tenant), Sort: fmt.Sprintf("%s#%02d", hourSort(hour), shard)}, If: store.At(store.Item{Version: standing}),
		Value: value, Expires: later(now, begins).Add(KeepHours), Attempt: attempt}, kept, nil
}
