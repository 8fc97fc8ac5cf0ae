package run_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/record/recordtest"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// FuzzItems reads anything as the items that this package writes: runs, dead letters and the index. What cannot be read is told as
// broken or newer, and what can is written as it was read.
func FuzzItems(f *testing.F) {
	r := sample().Run
	ended := r
	ended.State, ended.Ended = run.Dead, 1_800_000_000_000
	var ops []store.Op
	for _, write := range []func() (store.Op, error){
		func() (store.Op, error) { return r.Item(1) },
		func() (store.Op, error) { return ended.DeadLetterOp(1) },
		func() (store.Op, error) { return r.WaitingOp(1) },
		func() (store.Op, error) { return run.IndexAlone("acme", run.Listing{ID: r.ID}, 1) },
	} {
		op, err := write()
		if err != nil {
			f.Fatal(err)
		}
		ops = append(ops, op)
	}
	for _, op := range ops {
		f.Add(op.Key.Sort, op.Value)
	}
	f.Add("000000000060000#x", ops[0].Value)
	f.Add("000000000060000", ops[0].Value)
	f.Fuzz(func(t *testing.T, sort string, value []byte) {
		recordtest.Same(t, value, (*run.Run).ReadFields)
		item := store.Item{Key: store.Key{Partition: "p", Sort: sort}, Version: 1, Value: value}
		if id, err := run.IDFromSort("report", sort); told(t, err) {
			if key := id.Key("acme"); key.Sort != sort {
				t.Fatalf("the sort key %q was read as %+v, whose own is %q", sort, id, key.Sort)
			}
			if again, err := run.ParseID(id.String()); err == nil && again != id {
				t.Fatalf("%+v is %q, which is read as %+v", id, id, again)
			}
			if r, ok, err := run.FromItem("acme", id, item); told(t, err) && ok {
				op, err := r.Item(1)
				if err != nil {
					t.Fatal(err)
				}
				back, _, err := run.FromItem("acme", id, store.Item{Key: op.Key, Version: 1, Value: op.Value})
				if err != nil {
					t.Fatalf("%+v was read, and cannot be read when written: %v", r, err)
				}
				// Only what is for people may be cut, to keep a record small.
				for _, one := range []*run.Run{&r, &back} {
					one.Attempts, one.Reason = nil, ""
				}
				if !reflect.DeepEqual(r, back) {
					t.Fatalf("%+v\nwas written, and is read as\n%+v", r, back)
				}
			}
		}
		if letter, err := run.DeadLetterFromItem(item); told(t, err) && letter.Run.Job == "" {
			t.Fatal("a dead letter of no run")
		}
		if ids, err := run.IndexFromItem(item); told(t, err) {
			for _, id := range ids {
				if _, err := run.ParseID(id.String()); err != nil {
					t.Fatalf("the index lists what is no ID: %v", err)
				}
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

// A key that no run has must be told: its ID would have no place, and asking for it would end the process.
func TestSortKeysOfNoRunAreBroken(t *testing.T) {
	for _, sort := range []string{"", "#", "000000000060000", "60000#", "-00000000060000#", "000000000060000#x", "000000000060000#00000000000A0", "000000000060000#zzzzzzzzzzzzz"} {
		if id, err := run.IDFromSort("report", sort); !errors.Is(err, record.ErrBroken) {
			t.Errorf("%q was read as %+v, %v", sort, id, err)
		}
	}
}
