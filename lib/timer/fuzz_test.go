package timer_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/record/recordtest"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// FuzzItems reads anything as a timer and as the progress of a shard. What cannot be read is told as broken or newer, and what can is
// written as it was read.
func FuzzItems(f *testing.F) {
	id := run.RequestID("report", 1_800_000_000_000, 99)
	for _, one := range []timer.Timer{
		timer.NewFire("acme", "report", 7, 1_800_000_000_000, 1_800_000_000_500),
		timer.NewRequest(run.Run{ID: id, Tenant: "acme", State: run.Scheduled, Payload: run.Ref{Inline: []byte(`{}`)}}, 1_800_000_000_000, true),
		timer.NewBatch([]*run.Run{{ID: id, Tenant: "acme", State: run.Scheduled}, {ID: id, Tenant: "acme"}}, 1_800_000_000_000, true, 0xfeed),
		timer.NewCheck("acme", id, 1_800_000_060_000),
	} {
		op, err := one.Put(1)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(op.Key.Sort, op.Value)
	}
	shard := timer.Shard{Epoch: 3, Horizon: 5, Watermark: 4, Reached: map[int]string{2: timer.SortFrom(9)}}
	op, err := shard.Put(1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("progress", op.Value)
	f.Fuzz(func(t *testing.T, sort string, value []byte) {
		item := store.Item{Key: store.Key{Partition: "p", Sort: sort}, Version: 1, Value: value}
		recordtest.Same(t, value, timer.ReadBody)
		read, err := timer.FromItem(item)
		if told(t, err) {
			if kind, tenant, _, nominal, ok := timer.FromSort(sort); !ok || kind != read.Kind || tenant != read.Tenant || nominal != read.Nominal {
				t.Fatalf("of %q the key tells %c %s %d, and the item %+v", sort, kind, tenant, nominal, read)
			}
			op, err := read.Put(1)
			if err != nil {
				t.Fatal(err)
			}
			// Its own key may differ: digits can be written in more than one way, and only one is Belfry's.
			back, err := timer.FromItem(store.Item{Key: op.Key, Version: 1, Value: op.Value})
			if err != nil || !reflect.DeepEqual(read, back) {
				t.Fatalf("%+v\nwas written, and is read as\n%+v, %v", read, back, err)
			}
		}
		s, err := timer.ShardFromItem(1, item)
		if told(t, err) {
			positions := s.Positions(16, 32)
			oldest := s.Oldest()
			if oldest > s.Watermark || len(positions) != 16 {
				t.Fatalf("of %+v the oldest is %d, the positions %q", s, oldest, positions)
			}
			if before := s.Watermark; !s.Reach(16, positions) && s.Watermark != before {
				t.Fatalf("%+v moved from %d and does not tell", s, before)
			}
		}
	})
}

// told tells whether something was read. If not the reason must be one that callers know.
func told(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, record.ErrBroken) && !errors.Is(err, record.ErrNewer) {
		t.Fatalf("%v tells neither broken nor newer", err)
	}
	return err == nil
}
