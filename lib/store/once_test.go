package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
)

func TestOpsThatShareAKeyAreFound(t *testing.T) {
	for _, n := range []int{0, 1, 12, 13, 700, store.MaxEach} {
		ops := make([]store.Op, n)
		for i := range ops {
			ops[i] = store.Op{Kind: store.Put, Key: store.Key{Partition: fmt.Sprint("p", i%7), Sort: fmt.Sprint("s", i)}, Value: fmt.Append(nil, i)}
		}
		if err := store.CheckEach(ops); err != nil {
			t.Errorf("%d ops with keys of their own: %v", n, err)
		}
		once, at := store.Once(ops)
		if len(once) != n || len(at) != n || n > 0 && (at[n-1] != n-1 || &once[0] != &ops[0]) {
			t.Errorf("%d ops with keys of their own became %d, at %v", n, len(once), at)
		}
		if n < 3 {
			continue
		}
		twice := slices.Clone(ops)
		twice[n-1].Key, twice[n-2].Key = twice[0].Key, twice[0].Key
		if err := store.CheckEach(twice); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("of %d ops three share a key: %v", n, err)
		}
		once, at = store.Once(twice)
		if len(once) != n-2 || at[n-1] != 0 || at[n-2] != 0 || string(once[0].Value) != "0" {
			t.Errorf("of %d ops three share a key: %d are left, the last at %d and %d", n, len(once), at[n-2], at[n-1])
		}
		for i := range n - 2 {
			if once[at[i]].Key != ops[i].Key {
				t.Errorf("of %d ops, number %d is at %d, where %s stands", n, i, at[i], once[at[i]].Key)
			}
		}
		// One in the middle, so that what follows moves up.
		middle := slices.Insert(slices.Clone(ops[:n-1]), 1, ops[0])
		once, at = store.Once(middle)
		if len(once) != n-1 || at[1] != 0 || at[n-1] != n-2 || once[n-2].Key != ops[n-2].Key {
			t.Errorf("of %d ops the second repeats the first: %d are left, at %v", n, len(once), at)
		}
	}
}
