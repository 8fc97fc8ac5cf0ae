package store_test

import (
	"errors"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// FuzzCursor reads a page of a range with any cursor. Only one that this range has handed out is taken, and it goes on where that page
// ended: neither before the range nor behind it.
func FuzzCursor(f *testing.F) {
	r := store.Range{Partition: "p", From: "a", To: "m", Limit: 3}
	f.Add(r.Partition, r.From, r.To, false, r.After("c"))
	f.Add(r.Partition, r.From, r.To, true, r.After("c"))
	f.Add("p", "", "", false, "")
	f.Add("p", "b", "a", false, "AAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, partition, from, to string, backward bool, cursor string) {
		r := store.Range{Partition: partition, From: from, To: to, Backward: backward, Cursor: cursor}
		lowest, end, err := r.Bounds()
		if err != nil {
			if !errors.Is(err, store.ErrBadCursor) && !errors.Is(err, store.ErrTooLarge) {
				t.Fatalf("%+v: %v, which callers do not know", r, err)
			}
			return
		}
		if cursor == "" {
			if lowest != from || end != to {
				t.Fatalf("%+v: from %q to %q", r, lowest, end)
			}
			return
		}
		last := end
		if !backward {
			last = lowest[:len(lowest)-1]
		}
		if r.After(last) != cursor {
			t.Fatalf("%+v: it was taken for the cursor behind %q, which is %q", r, last, r.After(last))
		}
		turned := r
		turned.Backward = !backward
		if _, _, err := turned.Bounds(); err == nil {
			t.Fatalf("%+v: the cursor is good in both directions", r)
		}
	})
}
