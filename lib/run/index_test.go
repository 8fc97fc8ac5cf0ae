package run_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

func item(op store.Op) store.Item { return store.Item{Key: op.Key, Version: 1, Value: op.Value} }

func TestIndexListsEachRunOnceInOrder(t *testing.T) {
	const minute = int64(29_460_000) * 60_000
	var runs []run.Listing
	for i := range 3000 {
		id := run.FireID(fmt.Sprintf("job-%04d", i), minute+int64(i%120)*1000) // of two minutes
		if i%3 == 0 {
			id = run.RequestID("asked", minute+int64(i), rand.Uint64())
		}
		runs = append(runs, run.Listing{ID: id, Expires: time.UnixMilli(minute).Add(time.Duration(1+i%40) * 24 * time.Hour)})
	}
	runs = append(runs, runs[:50]...) // come upon twice
	rand.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	ops, err := run.Index("acme", runs, 7)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, op := range ops {
		ids, err := run.IndexFromItem(item(op))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(op.Key.Partition) + len(op.Key.Sort) + len(op.Value) + 42; n > 8192 {
			t.Errorf("an item of %d bytes, over eight units", n)
		}
		if op.Key.Partition != run.IndexPartition("acme", 0) || !op.If.IsAny() {
			t.Errorf("%s under %s", op.Key, op.If)
		}
		if !strings.HasPrefix(op.Key.Sort, ids[0].Place()) || op.Key.Sort >= run.IndexMinute(ids[0].Nominal) {
			t.Errorf("%s begins with %s", op.Key, ids[0])
		}
		for _, id := range ids {
			if id.Nominal/60_000 != ids[0].Nominal/60_000 {
				t.Errorf("%s beside %s: of two minutes", id, ids[0])
			}
			listed = append(listed, id.Place())
			i := slices.IndexFunc(runs, func(l run.Listing) bool { return l.ID == id })
			if op.Expires.Before(runs[i].Expires) {
				t.Errorf("%s is listed until %s, want %s or later", id, op.Expires, runs[i].Expires)
			}
		}
	}
	if len(listed) != 3000 || !slices.IsSortedFunc(listed, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d runs are listed, want 3000, newest first", len(listed))
	}
	if units := len(ops) * 8; units > 120+16 {
		t.Errorf("%d items for 3000 runs", len(ops))
	}

	// The same runs are the same items, others are others.
	again, err := run.Index("acme", runs, 8)
	if err != nil || len(again) != len(ops) || again[0].Key != ops[0].Key {
		t.Errorf("%d items at %s, %v; want those from before", len(again), again[0].Key, err)
	}
	fewer, err := run.Index("acme", slices.DeleteFunc(slices.Clone(runs), func(l run.Listing) bool { return l.ID == runs[0].ID }), 9)
	if err != nil {
		t.Fatal(err)
	}
	before := map[store.Key]string{}
	for _, op := range ops {
		before[op.Key] = string(op.Value)
	}
	for _, op := range fewer {
		if value, ok := before[op.Key]; ok && value != string(op.Value) {
			t.Errorf("%s is overwritten by other runs", op.Key)
		}
	}
}

func TestPlacesFollowTimeThenJob(t *testing.T) {
	at := int64(1_767_571_200_000)
	ordered := []run.ID{
		run.FireID("a", at), run.RequestID("a", at, 1), run.RequestID("a", at, 2), run.FireID("a-b", at), run.FireID("a.b", at),
		run.FireID("a0", at), run.FireID("ab", at), run.FireID("a", at+1),
	}
	for i := 1; i < len(ordered); i++ {
		if ordered[i-1].Place() >= ordered[i].Place() {
			t.Errorf("%s does not come before %s", ordered[i-1], ordered[i])
		}
	}
}
