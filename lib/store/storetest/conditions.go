package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

func putReadsBack(f *fixture) {
	expires := time.Unix(2_000_000_000, 0).UTC()
	for name, op := range map[string]store.Op{
		"everything": {Value: []byte("value\x00\xff"), Expires: expires, Attempt: 1 << 63},
		"no value":   {Expires: expires},
		"no attempt": {Value: []byte("v")},
		"no expiry":  {Value: []byte("v"), Attempt: 7},
	} {
		op.Kind, op.Key = store.Put, key(name)
		if v := f.write(op)[0]; v != 1 {
			f.Fatalf("%s: the first put gave version %d", name, v)
		}
		for range 2 {
			got := f.get(op.Key)
			page := f.all(store.Range{Partition: "p", From: name, To: name + "\x00"})
			peeked, err := f.Peek(f.Context(), op.Key)
			if err != nil || len(page) != 1 || len(peeked) != 1 {
				f.Fatalf("%s: %d in the query, %d peeked, %v", name, len(page), len(peeked), err)
			}
			for _, i := range []store.Item{got, page[0]} {
				if i.Version == 0 || i.Key != op.Key || string(i.Value) != string(op.Value) || !i.Expires.Equal(op.Expires) ||
					i.Expires.IsZero() != op.Expires.IsZero() || i.Attempt != op.Attempt {
					f.Fatalf("%s: put %+v, read %+v", name, op, i)
				}
			}
			f.write(op)
		}
	}
}

func absentReads(f *fixture) {
	f.put(key("b"), "1")
	keys := []store.Key{key("c"), key("b"), key("a"), {Partition: "q", Sort: "b"}, key("b")}
	items, err := f.Get(f.Context(), keys...)
	if err != nil || len(items) != len(keys) {
		f.Fatalf("%d items for %d keys, %v", len(items), len(keys), err)
	}
	for i, k := range keys {
		if items[i].Key != k || items[i].Exists() != (k == key("b")) {
			f.Errorf("place %d: %+v, wanted the key %q", i, items[i], k)
		}
	}
	if items, err := f.Get(f.Context()); err != nil || len(items) != 0 {
		f.Errorf("no keys: %v, %v", items, err)
	}
	if got := f.all(store.Range{Partition: "nobody's"}); len(got) != 0 {
		f.Errorf("an empty partition holds %v", got)
	}
}

func conditions(f *fixture) {
	n := 0
	for _, c := range []struct {
		standing uint64 // 0: nothing
		cond     store.Cond
		holds    bool
	}{
		{0, store.Any, true}, {0, store.Absent, true}, {0, store.Version(1), false},
		{1, store.Any, true}, {1, store.Absent, false}, {1, store.Version(1), true}, {1, store.Version(2), false},
		{3, store.Any, true}, {3, store.Absent, false}, {3, store.Version(2), false}, {3, store.Version(3), true},
		{3, store.Version(4), false},
	} {
		for _, kind := range []store.Kind{store.Put, store.Delete, store.Check} {
			for _, each := range []bool{false, true} {
				if each && kind == store.Check {
					continue
				}
				n++
				k := key(fmt.Sprint(n))
				for range c.standing {
					f.put(k, "old")
				}
				op := store.Op{Kind: kind, Key: k, If: c.cond, Value: []byte("new")}
				var version uint64
				var err error
				if each {
					verdicts, failed := f.WriteEach(f.Context(), op)
					if failed != nil || len(verdicts) != 1 {
						f.Fatalf("%d verdicts, %v", len(verdicts), failed)
					}
					version, err = verdicts[0].Version, verdicts[0].Err
				} else {
					var versions []uint64
					if versions, err = f.Write(f.Context(), op); err == nil {
						version = versions[0]
					}
				}
				want, value := c.standing, "old"
				switch {
				case !c.holds || kind == store.Check:
				case kind == store.Put:
					want, value = c.standing+1, "new"
				default:
					want = 0
				}
				if want == 0 {
					value = ""
				}
				if c.holds != (err == nil) || (store.AsConflict(err) == nil) != c.holds {
					f.Fatalf("kind %d under %v on version %d (each: %v): %v", kind, c.cond, c.standing, each, err)
				}
				if gives := want; c.holds && kind == store.Put && version != gives {
					f.Fatalf("a put under %v on version %d gave %d", c.cond, c.standing, version)
				} else if (!c.holds || kind != store.Put) && version != 0 {
					f.Fatalf("kind %d under %v on version %d gave version %d", kind, c.cond, c.standing, version)
				}
				f.stands(k, want, value)
			}
		}
	}
}

func conflictCarries(f *fixture) {
	op := store.Op{
		Kind: store.Put, Key: key("a"), Value: []byte(repeat(5000)), Expires: time.Unix(2_000_000_000, 0).UTC(), Attempt: 9,
	}
	f.write(op)
	check := func(c *store.Conflict) {
		f.Helper()
		if s := c.Standing; s.Version != 1 || string(s.Value) != string(op.Value) || !s.Expires.Equal(op.Expires) || s.Attempt != 9 {
			f.Fatalf("the conflict carries %+v", s)
		}
	}
	check(f.refused(1, put(key("b"), store.Absent, "b"), put(key("a"), store.Absent, "new")))
	check(f.refused(0, remove(key("a"), store.Version(2))))
	verdicts, err := f.WriteEach(f.Context(), put(key("c"), store.Any, "c"), put(key("a"), store.Version(2), "new"))
	if err != nil {
		f.Fatal(err)
	}
	c := store.AsConflict(verdicts[1].Err)
	if c == nil || c.Op != 1 || c.Standing.Key != key("a") {
		f.Fatalf("verdict %+v", verdicts[1])
	}
	check(c)
	if c := f.refused(0, put(key("d"), store.Version(1), "d")); c.Standing.Exists() {
		f.Fatalf("nothing stands, but the conflict carries %+v", c.Standing)
	}
}

func onePutWins(f *fixture) {
	for round := range 20 {
		var wins, conflicts atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				op := tried(put(key(fmt.Sprint(round)), store.Absent, fmt.Sprint(i)), uint64(100*round+i+1))
				switch _, err := f.Write(f.Context(), op); {
				case err == nil:
					wins.Add(1)
				case store.AsConflict(err) != nil && store.AsConflict(err).Standing.Version == 1:
					conflicts.Add(1)
				default:
					f.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || conflicts.Load() != 7 {
			f.Fatalf("%d won, %d met the winner", wins.Load(), conflicts.Load())
		}
	}
}

func staleWrite(f *fixture) {
	f.put(key("a"), "1")
	late := put(key("a"), store.Version(1), "late")
	f.write(put(key("a"), store.Version(1), "2"))
	if c := f.refused(0, late); c.Standing.Version != 2 {
		f.Fatalf("the conflict carries version %d", c.Standing.Version)
	}
	f.refused(0, remove(key("a"), store.Version(1)))
	f.refused(1, put(key("b"), store.Absent, "b"), check(key("a"), store.Version(1)))
	f.stands(key("a"), 2, "2")
	f.stands(key("b"), 0, "")
}

func deletedBeginsAnew(f *fixture) {
	for range 3 {
		f.put(key("a"), "1")
		f.put(key("a"), "2")
		f.stands(key("a"), 2, "2")
		f.write(remove(key("a"), store.Version(2)))
		f.stands(key("a"), 0, "")
		if got := f.sorts(store.Range{Partition: "p"}); len(got) != 0 {
			f.Fatalf("the deleted item is still in the range: %q", got)
		}
	}
	f.write(remove(key("a"), store.Any))
	f.write(remove(key("a"), store.Absent))
}

func ownAttempt(f *fixture) {
	first := tried(put(key("a"), store.Absent, "1"), 11)
	second := tried(put(key("a"), store.Version(1), "2"), 12)
	each := func(op store.Op) store.Verdict {
		f.Helper()
		verdicts, err := f.WriteEach(f.Context(), op)
		if err != nil {
			f.Fatal(err)
		}
		return verdicts[0]
	}
	for n, op := range []store.Op{first, second} {
		want := uint64(n + 1)
		for range 2 {
			if v := f.write(op)[0]; v != want {
				f.Fatalf("the op that was done gave version %d, want %d", v, want)
			}
			if v := each(op); v.Err != nil || v.Version != want {
				f.Fatalf("the op that was done gave %+v, want version %d", v, want)
			}
		}
		f.stands(key("a"), want, fmt.Sprint(want))
	}
	// Overtaken: the first attempt is no longer there to be seen, so its owner must look at what stands.
	if c := f.refused(0, first); c.Standing.Attempt != 12 || string(c.Standing.Value) != "2" {
		f.Fatalf("the conflict carries %+v", c.Standing)
	}
	if c := store.AsConflict(each(first).Err); c == nil || c.Standing.Attempt != 12 {
		f.Fatal("an overtaken attempt was no conflict")
	}
	// A stranger's attempt at the same version, and no attempt at all.
	f.refused(0, tried(put(key("a"), store.Version(1), "2"), 13))
	f.refused(0, put(key("a"), store.Version(1), "2"))
	f.put(key("b"), "1")
	f.refused(0, put(key("b"), store.Absent, "1"))
	// The own attempt at another version: a later write of the same owner is not this one.
	f.write(tried(put(key("a"), store.Version(2), "3"), 12))
	f.refused(0, tried(put(key("a"), store.Version(1), "2"), 12))
	// A delete knows no attempt.
	f.refused(0, tried(remove(key("a"), store.Version(1)), 12))
	f.stands(key("a"), 3, "3")
}

func ownAttemptOfWrite(f *fixture) {
	f.put(key("timer"), "t")
	f.put(key("job"), "j")
	whole := []store.Op{
		remove(key("timer"), store.Version(1)),
		check(key("job"), store.Version(1)),
		tried(put(key("run"), store.Absent, "r"), 21),
		tried(put(key("index"), store.Any, "i"), 22),
	}
	f.write(whole...)
	f.put(key("job"), "moved on")
	if v := f.write(whole...); v[0] != 0 || v[1] != 0 || v[2] != 1 || v[3] != 1 {
		f.Fatalf("the second try gave versions %d", v)
	}
	f.stands(key("run"), 1, "r")
	f.stands(key("index"), 1, "i")
	f.stands(key("timer"), 0, "")
	// Somebody has written over a part of it: the second try leaves that as it is.
	f.put(key("index"), "theirs")
	if v := f.write(whole...); v[2] != 1 {
		f.Fatalf("the second try gave versions %d", v)
	}
	f.stands(key("run"), 1, "r")
	f.stands(key("index"), 2, "theirs")
	// Nothing of the write is there to be seen any more.
	f.write(put(key("run"), store.Version(1), "r2"))
	if c := f.refused(0, whole...); c.Standing.Exists() {
		f.Fatalf("the conflict carries %+v", c.Standing)
	}
	f.stands(key("run"), 2, "r2")
	// One own put and one of a stranger: the own one was never written, since a write happens whole.
	f.put(key("y"), "theirs")
	f.refused(1, tried(put(key("x"), store.Absent, "x"), 23), tried(put(key("y"), store.Absent, "y"), 23))
	f.stands(key("x"), 0, "")
}

func writeWhole(f *fixture) {
	f.put(key("c"), "1")
	all := []store.Op{
		put(key("a"), store.Absent, "a"),
		remove(key("c"), store.Version(1)),
		{Kind: store.Put, Key: store.Key{Partition: "other", Sort: "b"}, Value: []byte("b")},
		check(key("d"), store.Version(9)),
	}
	f.refused(3, all...)
	f.stands(key("a"), 0, "")
	f.stands(key("c"), 1, "1")
	f.stands(all[2].Key, 0, "")
	all[3] = check(key("d"), store.Absent)
	if v := f.write(all...); v[0] != 1 || v[1] != 0 || v[2] != 1 || v[3] != 0 {
		f.Fatalf("versions %d", v)
	}
	f.stands(key("a"), 1, "a")
	f.stands(key("c"), 0, "")
	f.stands(all[2].Key, 1, "b")
	f.write(check(key("a"), store.Version(1)))
	f.refused(0, check(key("a"), store.Absent))
	if v, err := f.Write(f.Context()); err != nil || len(v) != 0 {
		f.Fatalf("no ops: %v, %v", v, err)
	}
}

func verdicts(f *fixture) {
	f.put(key("1"), "old")
	f.put(key("3"), "old")
	ops := []store.Op{
		put(key("0"), store.Absent, "new"), put(key("1"), store.Absent, "new"), put(key("2"), store.Version(4), "new"),
		remove(key("3"), store.Version(1)), put(key("4"), store.Any, "new"), remove(key("5"), store.Version(1)),
	}
	got, err := f.WriteEach(f.Context(), ops...)
	if err != nil || len(got) != len(ops) {
		f.Fatalf("%d verdicts for %d ops, %v", len(got), len(ops), err)
	}
	for i, version := range []uint64{1, 0, 0, 0, 1, 0} {
		c := store.AsConflict(got[i].Err)
		if failed := i == 1 || i == 2 || i == 5; failed != (c != nil) || failed != (got[i].Err != nil) || got[i].Version != version {
			f.Errorf("op %d: %+v", i, got[i])
		}
		if c != nil && (c.Op != i || c.Standing.Key != ops[i].Key) {
			f.Errorf("op %d: the conflict names op %d and %q", i, c.Op, c.Standing.Key)
		}
	}
	f.stands(key("0"), 1, "new")
	f.stands(key("1"), 1, "old")
	f.stands(key("2"), 0, "")
	f.stands(key("3"), 0, "")
	f.stands(key("4"), 1, "new")
	if got, err := f.WriteEach(f.Context()); err != nil || len(got) != 0 {
		f.Errorf("no ops: %v, %v", got, err)
	}
	// As many as go into one call, from several callers at once: each item is won once.
	var won atomic.Int32
	var wg sync.WaitGroup
	for caller := range 3 {
		wg.Go(func() {
			ops := make([]store.Op, store.MaxEach)
			for i, n := range numbered(len(ops)) {
				ops[i] = tried(put(key("many"+n), store.Absent, n), uint64(caller+1))
			}
			got, err := f.WriteEach(f.Context(), ops...)
			if err != nil || len(got) != len(ops) {
				f.Errorf("%d verdicts, %v", len(got), err)
			}
			for i, v := range got {
				if v.Err == nil {
					won.Add(1)
				} else if c := store.AsConflict(v.Err); c == nil || c.Op != i || string(c.Standing.Value) != numbered(i + 1)[i] {
					f.Errorf("op %d: %v", i, v.Err)
				}
			}
		})
	}
	wg.Wait()
	if won.Load() != store.MaxEach {
		f.Errorf("%d puts of %d items won", won.Load(), store.MaxEach)
	}
}
