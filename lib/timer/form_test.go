package timer_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/record/recordtest"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func TestATimerIsWrittenAsItsTagsSay(t *testing.T) {
	recordtest.Run(t, timer.WriteBody, timer.ReadBody)
}

// Keys are stored: they stay as they are.
func TestTheKeysOfTimers(t *testing.T) {
	for want, one := range map[string]timer.Timer{
		"due#0030000000#%02d/001800000000500#f#acme#report#7#1800000000000":                         timer.NewFire("acme", "report", 7, 1_800_000_000_000, 1_800_000_000_500),
		"due#0030000001#%02d/001800000060000#c#acme#report~0mywpiww0~000000000002r#0#1800000000000": timer.NewCheck("acme", run.RequestID("report", 1_800_000_000_000, 99), 1_800_000_060_000),
		"due#0030000000#%02d/001800000000500#b#acme#abc#0#1800000000000": timer.NewBatch([]*run.Run{{ID: run.RequestID("report", 1_800_000_000_000, 99), Tenant: "acme"}},
			1_800_000_000_500, true, 0xabc),
		"due#0000000000#%02d/000000000000000#c#a#b~000000000#0#0": timer.NewCheck("a", run.FireID("b", 0), 0),
	} {
		key := one.Key()
		if got := key.Partition + "/" + key.Sort; got != fmt.Sprintf(want, one.Bucket()) {
			t.Errorf("the key is %s, want %s", got, fmt.Sprintf(want, one.Bucket()))
		}
	}
}

func TestABatchStandsForEachOfItsRequests(t *testing.T) {
	runs := make([]*run.Run, timer.Together)
	for i := range runs {
		runs[i] = &run.Run{ID: run.RequestID("report", 1_800_000_000_000+int64(i), uint64(i)), Tenant: "acme", State: run.Scheduled, Trigger: run.ByRequest,
			Created: int64(i), Payload: run.Ref{Inline: []byte(strconv.Itoa(i))}}
	}
	op, err := timer.NewBatch(runs, 1_800_000_000_500, true, 7).Put(5)
	if err != nil {
		t.Fatal(err)
	}
	read, err := timer.FromItem(store.Item{Key: op.Key, Version: 1, Value: op.Value, Attempt: 5})
	if err != nil {
		t.Fatal(err)
	}
	if read.Key() != op.Key {
		t.Errorf("the timer that was put at %s is to stand at %s", op.Key, read.Key())
	}
	singles := read.AppendSingles(nil)
	if len(singles) != len(runs) {
		t.Fatalf("a batch of %d stands for %d", len(runs), len(singles))
	}
	for i, got := range singles {
		want := timer.NewRequest(*runs[i], 1_800_000_000_500, true)
		want.Version, want.Attempt = 1, 5
		if !reflect.DeepEqual(got, want) {
			t.Errorf("request %d is\n%+v of %+v\nwant\n%+v of %+v", i, got, got.Create, want, want.Create)
		}
	}
}

func TestABatchWithARunThatNobodyCanReadIsBroken(t *testing.T) {
	op, err := timer.NewBatch([]*run.Run{{ID: run.ID{Job: "no~name"}, Tenant: "acme"}}, 1, true, 7).Put(5)
	if err != nil {
		t.Fatal(err)
	}
	for _, sort := range []string{op.Key.Sort, strings.Replace(op.Key.Sort, "#7#", "#seven#", 1)} {
		_, err := timer.FromItem(store.Item{Key: store.Key{Partition: op.Key.Partition, Sort: sort}, Version: 1, Value: op.Value})
		if !errors.Is(err, record.ErrBroken) {
			t.Errorf("%s: %v", sort, err)
		}
	}
}

// BenchmarkRequest shows what writing and reading a request's timer costs by hand, with its key, and what its record alone does by the
// tags of its struct.
func BenchmarkRequest(b *testing.B) {
	one := timer.NewRequest(run.Run{ID: run.RequestID("report", 1_800_000_000_000, 99), Tenant: "default", State: run.Queued, Generation: 1_795_251_600_123,
		Trigger: run.ByRequest, Priority: queue.Normal, Created: 1_800_000_000_000}, 1_800_000_000_000, true)
	op, err := one.Put(1)
	if err != nil {
		b.Fatal(err)
	}
	item := store.Item{Key: op.Key, Version: 1, Value: op.Value}
	var body timer.Body
	if err := record.Decode(op.Value, &body); err != nil {
		b.Fatal(err)
	}
	b.Run("write/hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := one.Put(1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write/tags", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := record.Encode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = one.Key()
		}
	})
	b.Run("read/hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := timer.FromItem(item); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read/tags", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var body timer.Body
			if err := record.Decode(item.Value, &body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
