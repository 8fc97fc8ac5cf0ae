package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/store"
)

func limits(f *fixture) {
	long := func(n int) string { return strings.Repeat("k", n) }
	item := func(p, s string, size int) store.Op {
		return put(store.Key{Partition: p, Sort: s}, store.Absent, repeat(size-len(p)-len(s)))
	}
	many := func(n int, size int) []store.Op {
		var ops []store.Op
		for i := range n {
			ops = append(ops, item(fmt.Sprintf("many%d,%d", n, size), fmt.Sprintf("%06d", i), size))
		}
		return ops
	}
	write := func(ops ...store.Op) error { _, err := f.Write(f.Context(), ops...); return err }
	each := func(ops ...store.Op) error {
		verdicts, err := f.WriteEach(f.Context(), ops...)
		for _, v := range verdicts {
			err = errors.Join(err, v.Err)
		}
		return err
	}
	get := func(n int) error {
		keys := make([]store.Key, n)
		for i := range keys {
			keys[i] = key(fmt.Sprint(i))
		}
		items, err := f.Get(f.Context(), keys...)
		_, peek := f.Peek(f.Context(), keys...)
		if err == nil && len(items) != n {
			err = fmt.Errorf("%d items for %d keys", len(items), n)
		}
		if (err == nil) != (peek == nil) {
			err = fmt.Errorf("get and peek differ: %w", errors.Join(err, peek))
		}
		return err
	}
	query := func(r store.Range) error { _, err := f.Query(f.Context(), r); return err }
	const sixteen = store.MaxOpsBytes / 16
	for _, c := range []struct {
		what     string
		at, over error
	}{
		{"item", write(item("a", "a", store.MaxItemBytes)), write(item("a", "b", store.MaxItemBytes+1))},
		{"item of each", each(item("b", "a", store.MaxItemBytes)), each(item("b", "b", store.MaxItemBytes+1))},
		{"partition", write(item(long(store.MaxPartition), "a", 4000)), write(item(long(store.MaxPartition+1), "a", 4000))},
		{"sort key", write(item("c", long(store.MaxSort), 4000)), write(item("c", long(store.MaxSort+1), 4000))},
		{"ops", write(many(store.MaxOps, 200)...), write(many(store.MaxOps+1, 200)...)},
		{"bytes of ops", write(many(16, sixteen)...), write(append(many(16, sixteen-1), item("more", "x", 17))...)},
		{"each", each(many(store.MaxEach, 100)...), each(many(store.MaxEach+1, 100)...)},
		{"keys", get(store.MaxKeys), get(store.MaxKeys + 1)},
		{"bounds of a range", query(store.Range{Partition: "p", From: long(store.MaxSort), To: long(store.MaxSort)}),
			query(store.Range{Partition: "p", From: long(store.MaxSort + 1)})},
		{"partition of a range", query(store.Range{Partition: long(store.MaxPartition)}),
			query(store.Range{Partition: long(store.MaxPartition + 1)})},
	} {
		if c.at != nil {
			f.Errorf("%s at the limit: %v", c.what, c.at)
		}
		if !errors.Is(c.over, store.ErrTooLarge) {
			f.Errorf("%s over the limit: %v, want ErrTooLarge", c.what, c.over)
		}
	}
	for _, r := range []store.Range{
		{Partition: "b", From: "b"}, {Partition: "a", From: "b"},
		{Partition: "more"}, {Partition: "many16," + fmt.Sprint(sixteen-1)}, {Partition: "many101,200"}, {Partition: "many1001,100"},
	} {
		if items := f.all(r); len(items) > 0 {
			f.Errorf("a refused call wrote %d items into %q", len(items), r.Partition)
		}
	}
	if n := len(f.all(store.Range{Partition: "many16," + fmt.Sprint(sixteen)})); n != 16 {
		f.Errorf("the write at the limit left %d items", n)
	}
}

func malformed(f *fixture) {
	good := put(key("good"), store.Any, "v")
	for name, op := range map[string]store.Op{
		"no partition":    put(store.Key{Sort: "a"}, store.Any, "v"),
		"no sort key":     put(store.Key{Partition: "p"}, store.Any, "v"),
		"no kind":         {Key: key("a")},
		"unknown kind":    {Kind: 9, Key: key("a")},
		"version 0":       put(key("a"), store.Version(0), "v"),
		"a key twice":     put(key("good"), store.Any, "again"),
		"put and delete":  remove(key("good"), store.Any),
		"an empty delete": remove(store.Key{}, store.Any),
	} {
		if _, err := f.Write(f.Context(), good, op); !errors.Is(err, store.ErrTooLarge) {
			f.Errorf("%s: write gave %v, want ErrTooLarge", name, err)
		}
		if _, err := f.WriteEach(f.Context(), good, op); !errors.Is(err, store.ErrTooLarge) {
			f.Errorf("%s: write each gave %v, want ErrTooLarge", name, err)
		}
	}
	var ops []store.Op
	for _, s := range numbered(99) {
		ops = append(ops, put(key(s), store.Any, "v"))
	}
	_, err := f.Write(f.Context(), append(ops, ops[50])...)
	f.is(err, store.ErrTooLarge)
	_, err = f.Write(f.Context(), good, check(key("good"), store.Absent))
	f.is(err, store.ErrTooLarge)
	_, err = f.WriteEach(f.Context(), good, check(key("b"), store.Any))
	f.is(err, store.ErrTooLarge)
	for _, k := range []store.Key{{}, {Partition: "p"}, {Sort: "s"}} {
		_, err := f.Get(f.Context(), key("a"), k)
		f.is(err, store.ErrTooLarge)
	}
	for _, r := range []store.Range{{}, {Partition: "p", Limit: -1}} {
		_, err := f.Query(f.Context(), r)
		f.is(err, store.ErrTooLarge)
	}
	if got := f.sorts(store.Range{Partition: "p"}); len(got) != 0 {
		f.Fatalf("malformed calls wrote %q", got)
	}
}

func valueIsCopied(f *fixture) {
	value := []byte("as written")
	f.write(store.Op{Kind: store.Put, Key: key("a"), Value: value})
	copy(value, "scribbled!")
	f.stands(key("a"), 1, "as written")
	if _, err := f.WriteEach(f.Context(), store.Op{Kind: store.Put, Key: key("b"), Value: value}); err != nil {
		f.Fatal(err)
	}
	copy(value, "as written")
	f.stands(key("b"), 1, "scribbled!")
}

func contextOver(f *fixture) {
	f.put(key("a"), "1")
	over, cancel := context.WithCancel(f.Context())
	cancel()
	_, err := f.Get(over, key("a"))
	f.is(err, context.Canceled)
	_, err = f.Peek(over, key("a"))
	f.is(err, context.Canceled)
	_, err = f.Query(over, store.Range{Partition: "p"})
	f.is(err, context.Canceled)
	_, err = f.Write(over, put(key("a"), store.Any, "2"))
	f.is(err, context.Canceled)
	_, err = f.WriteEach(over, put(key("a"), store.Any, "2"))
	f.is(err, context.Canceled)
	f.stands(key("a"), 1, "1")
}

func closed(f *fixture) {
	f.put(key("a"), "1")
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				if n == 1 {
					started <- struct{}{}
				}
				// Each call is either done whole before Close returns, or refused by name.
				if _, err := f.Write(f.Context(), put(key(fmt.Sprint(i, ",", n)), store.Absent, "v")); err != nil {
					if !errors.Is(err, store.ErrClosed) {
						f.Errorf("a write while the store closed: %v", err)
					}
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	if err := f.Close(); err != nil {
		f.Fatal(err)
	}
	wg.Wait()
	_, err := f.Get(f.Context(), key("a"))
	f.is(err, store.ErrClosed)
	_, err = f.Peek(f.Context(), key("a"))
	f.is(err, store.ErrClosed)
	_, err = f.Query(f.Context(), store.Range{Partition: "p"})
	f.is(err, store.ErrClosed)
	_, err = f.Write(f.Context(), put(key("a"), store.Any, "2"))
	f.is(err, store.ErrClosed)
	_, err = f.WriteEach(f.Context(), put(key("a"), store.Any, "2"))
	f.is(err, store.ErrClosed)
	if err := f.Close(); err != nil {
		f.Errorf("closing twice: %v", err)
	}
}
