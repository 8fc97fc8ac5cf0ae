package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

func keyOrder(f *fixture) {
	sorts := []string{
		"\x00", "\x00\x00", "\x00\xff", "\x01", " ", "1", "10", "2", "A", "a", "a\x00", "a\x00b", "a\x01", "aa", "ab", "b",
		"\x7f", "\x80", "\xc3\xa9", "\xfe", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff",
	}
	slices.Sort(sorts)
	for i := range sorts {
		f.put(key(sorts[(i*7)%len(sorts)]), "v") // 7 and the number of keys have no common divisor: each comes once
	}
	if got := f.sorts(store.Range{Partition: "p"}); !slices.Equal(got, sorts) {
		f.Fatalf("order %q, want %q", got, sorts)
	}
	for i, from := range sorts {
		if got := f.sorts(store.Range{Partition: "p", From: from}); !slices.Equal(got, sorts[i:]) {
			f.Fatalf("from %q: %q", from, got)
		}
		if got := f.sorts(store.Range{Partition: "p", To: from}); !slices.Equal(got, sorts[:i]) {
			f.Fatalf("to %q: %q", from, got)
		}
	}
}

func partitionsApart(f *fixture) {
	// Each pair would fall together, or among each other's keys, if partition and sort key were only joined.
	keys := []store.Key{
		{Partition: "a", Sort: "bc"}, {Partition: "ab", Sort: "c"}, {Partition: "a", Sort: "b"}, {Partition: "a\x00", Sort: "b"},
		{Partition: "a", Sort: "\x00b"}, {Partition: "a/b", Sort: "c"}, {Partition: "a", Sort: "/b/c"},
		{Partition: "\xff", Sort: "\xff"}, {Partition: "\xff\xff", Sort: "x"}, {Partition: "\xff", Sort: "\xffx"},
		{Partition: strings.Repeat("a", 256), Sort: "a"}, {Partition: strings.Repeat("a", 255), Sort: "aa"},
		{Partition: strings.Repeat("\xff", store.MaxPartition), Sort: strings.Repeat("\xff", store.MaxSort)},
	}
	want := map[string]int{}
	for _, k := range keys {
		want[k.Partition]++
		if v := f.write(put(k, store.Absent, k.Partition+"|"+k.Sort))[0]; v != 1 {
			f.Fatalf("%q: version %d", k, v)
		}
	}
	for _, k := range keys {
		f.stands(k, 1, k.Partition+"|"+k.Sort)
		for _, backward := range []bool{false, true} {
			items := f.all(store.Range{Partition: k.Partition, Backward: backward})
			if len(items) != want[k.Partition] {
				f.Fatalf("%q holds %d items, want %d", k.Partition, len(items), want[k.Partition])
			}
			for _, i := range items {
				if i.Partition != k.Partition || string(i.Value) != i.Partition+"|"+i.Sort {
					f.Fatalf("%q holds %q with %q", k.Partition, i.Key, i.Value)
				}
			}
		}
	}
}

// bounds reads every range of some items, in both directions, in one page and in several.
func bounds(f *fixture) {
	sorts := numbered(8)
	for _, s := range sorts {
		f.put(key(s), s)
	}
	for from := -1; from <= len(sorts); from++ {
		for to := -1; to <= len(sorts); to++ {
			r := store.Range{Partition: "p"}
			low, high := 0, len(sorts)
			if from >= 0 {
				r.From, low = fmt.Sprintf("%06d", from), from
			}
			if to >= 0 {
				r.To, high = fmt.Sprintf("%06d", to), to
			}
			var want []string
			if low < high {
				want = sorts[low:high]
			}
			for _, r.Limit = range []int{0, 3} {
				r.Backward = false
				if got := f.sorts(r); !slices.Equal(got, want) {
					f.Fatalf("%+v: %q", r, got)
				}
				r.Backward = true
				if got := f.sorts(r); !slices.Equal(got, reversed(want)) {
					f.Fatalf("%+v: %q", r, got)
				}
			}
		}
	}
}

// pages reads more than a page holds, in both directions. Of heavy items the bytes end a page, whatever the limit; of light ones the limit
// does, also where it is the number of items.
func pages(f *fixture) {
	read := func(partition string, sorts []string, limits ...int) {
		for _, limit := range limits {
			for _, backward := range []bool{false, true} {
				want := sorts
				if backward {
					want = reversed(sorts)
				}
				if got := f.sorts(store.Range{Partition: partition, Limit: limit, Backward: backward}); !slices.Equal(got, want) {
					f.Fatalf("limit %d, backward %v: read %d items of %d", limit, backward, len(got), len(want))
				}
			}
		}
	}
	sorts := numbered(700)
	for part := range slices.Chunk(sorts, 100) {
		ops := make([]store.Op, len(part))
		for i, s := range part {
			ops[i] = put(key(s), store.Absent, repeat(4<<10))
		}
		if _, err := f.WriteEach(f.Context(), ops...); err != nil {
			f.Fatal(err)
		}
	}
	read("p", sorts, 0, 100, len(sorts))
	light := sorts[:30]
	for _, s := range light {
		f.put(store.Key{Partition: "light", Sort: s}, s)
	}
	read("light", light, 0, 1, 7, len(light)-1, len(light), len(light)+1)
	page, err := f.Query(f.Context(), store.Range{Partition: "p"})
	if err != nil || page.Cursor == "" || len(page.Items) == 0 {
		f.Fatalf("a range of 2.8 MB gave a page of %d items with the cursor %q, %v", len(page.Items), page.Cursor, err)
	}
	// Items of the largest size: a page holds at least one, whatever it weighs.
	for _, s := range sorts[:5] {
		k := store.Key{Partition: "large", Sort: s}
		f.write(put(k, store.Absent, repeat(store.MaxItemBytes-len(k.Partition)-len(k.Sort))))
	}
	if got := f.sorts(store.Range{Partition: "large"}); !slices.Equal(got, sorts[:5]) {
		f.Fatalf("of 5 large items, read %q", got)
	}
}

// pagesMove removes and adds between pages. What stood all the time is read once; what came behind the cursor is not.
func pagesMove(f *fixture) {
	sorts := numbered(30)
	for _, backward := range []bool{false, true} {
		for _, s := range sorts {
			f.put(key(s), s)
		}
		r := store.Range{Partition: "p", Limit: 10, Backward: backward}
		page, err := f.Query(f.Context(), r)
		if err != nil || len(page.Items) == 0 || page.Cursor == "" {
			f.Fatalf("%d items, cursor %q, %v", len(page.Items), page.Cursor, err)
		}
		want := sorts
		if backward {
			want = reversed(sorts)
		}
		read := len(page.Items)
		last := page.Items[read-1].Sort
		f.write(remove(key(last), store.Any))
		f.write(remove(key(want[read]), store.Any))
		f.put(key(want[0]+"behind"), "new")
		f.put(key(want[25]+"x"), "new")
		r.Cursor = page.Cursor
		rest := f.sorts(r)
		expect := slices.Clone(want[read+1:])
		expect = append(expect, want[25]+"x")
		slices.Sort(expect)
		if backward {
			slices.Reverse(expect)
		}
		if !slices.Equal(rest, expect) {
			f.Fatalf("backward %v: the rest is %q, want %q", backward, rest, expect)
		}
		for _, i := range f.all(store.Range{Partition: "p"}) {
			f.write(remove(i.Key, store.Any))
		}
	}
}

func cursors(f *fixture) {
	for _, p := range []string{"p", "q"} {
		for _, s := range numbered(10) {
			f.put(store.Key{Partition: p, Sort: s}, s)
		}
	}
	r := store.Range{Partition: "p", From: "000001", To: "000009", Limit: 3}
	page, err := f.Query(f.Context(), r)
	if err != nil || page.Cursor == "" {
		f.Fatalf("cursor %q, %v", page.Cursor, err)
	}
	r.Cursor = page.Cursor
	for name, change := range map[string]func(*store.Range){
		"partition": func(r *store.Range) { r.Partition = "q" },
		"from":      func(r *store.Range) { r.From = "000002" },
		"to":        func(r *store.Range) { r.To = "" },
		"direction": func(r *store.Range) { r.Backward = true },
		"cut":       func(r *store.Range) { r.Cursor = r.Cursor[:len(r.Cursor)-1] },
		"changed":   func(r *store.Range) { r.Cursor = "A" + r.Cursor[1:] + "A" },
		"nonsense":  func(r *store.Range) { r.Cursor = "no cursor at all!" },
		"short":     func(r *store.Range) { r.Cursor = "AAAA" },
	} {
		other := r
		change(&other)
		if _, err := f.Query(f.Context(), other); err == nil {
			f.Errorf("%s: another range's cursor was taken", name)
		} else {
			f.is(err, store.ErrBadCursor)
		}
	}
	// The limit is no part of the range; and a cursor may be used twice.
	for _, r.Limit = range []int{2, 0} {
		if got := f.sorts(r); !slices.Equal(got, numbered(9)[1+len(page.Items):]) {
			f.Errorf("with the limit changed to %d, the rest is %q", r.Limit, got)
		}
	}
}

// expiry holds an engine to what it may do with an item whose time is over: nothing that a caller could notice but its
// absence. So the expired items here are only ever read as "there, or gone".
func expiry(f *fixture) {
	past, future := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	for name, c := range map[string]struct{ given, want time.Time }{
		"never":   {time.Time{}, time.Time{}},
		"whole":   {time.Unix(future.Unix(), 0), time.Unix(future.Unix(), 0)},
		"rounded": {time.Unix(future.Unix(), 1), time.Unix(future.Unix()+1, 0)},
	} {
		op := put(key(name), store.Any, "v")
		op.Expires = c.given
		f.write(op)
		if got := f.get(key(name)); !got.Expires.Equal(c.want) || got.Expires.IsZero() != c.want.IsZero() {
			f.Errorf("%s: put with %v, read with %v, want %v", name, c.given, got.Expires, c.want)
		}
	}
	for i := range 50 {
		k := key(fmt.Sprint("old", i))
		op := put(k, store.Absent, "old")
		op.Expires = past
		f.write(op)
		switch got := f.get(k); {
		case !got.Exists():
		case string(got.Value) != "old" || got.Version != 1:
			f.Fatalf("the expired item reads as %+v", got)
		}
		// Written again without an expiry, it stays, whatever the engine had in mind for it.
		if i%2 == 0 {
			f.put(k, "kept")
		}
	}
	for i := 0; i < 50; i += 2 {
		if got := f.get(key(fmt.Sprint("old", i))); string(got.Value) != "kept" || !got.Expires.IsZero() {
			f.Fatalf("an item that no longer expires reads as %+v", got)
		}
	}
}
