package pebble

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// The figures of docs/store.md: on the real file system, every write synced.
//
//	go test ./lib/store/pebble -run '^$' -bench . -benchtime 2s
func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

var counter atomic.Uint64

const benchValue = 200

func benchKey(n uint64) store.Key {
	return store.Key{Partition: fmt.Sprintf("run#default#job%d", n%1000), Sort: fmt.Sprintf("%013d#%d", n/1000, n)}
}

func absentPut() store.Op {
	n := counter.Add(1)
	return store.Op{Kind: store.Put, If: store.Absent, Attempt: n, Value: make([]byte, benchValue), Key: benchKey(n)}
}

// writers runs so many of them, each of which writes size items at a time: by the store, and by Pebble alone, which reads nothing,
// decides nothing and encodes nothing. That is the ceiling.
func writers(b *testing.B, callers, size int, write func(s *Store, ops []store.Op) error) {
	b.Run("store", func(b *testing.B) {
		s := benchStore(b)
		each(b, callers, size, func() error {
			ops := make([]store.Op, size)
			for i := range ops {
				ops[i] = absentPut()
			}
			return write(s, ops)
		})
	})
	b.Run("pebble", func(b *testing.B) {
		s := benchStore(b)
		value := make([]byte, benchValue+11) // with the header that the store adds
		each(b, callers, size, func() error {
			batch := s.db.NewBatchWithSize(size * (benchValue + 80))
			for range size {
				k := benchKey(counter.Add(1))
				must(batch.Set(appendKey(make([]byte, 0, keyLen(k)), k.Partition, k.Sort), value, nil))
			}
			return errors.Join(s.db.Apply(batch, pebble.Sync), batch.Close())
		})
	})
}

// each lets the callers do b.N items, size at a time.
func each(b *testing.B, callers, size int, do func() error) {
	var next atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		all.Go(func() {
			for next.Add(int64(size)) <= int64(b.N+size-1) {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	perSecond(b)
}

// BenchmarkWriteEach100 is conditional puts in batches of 100, from 8 callers.
func BenchmarkWriteEach100(b *testing.B) {
	writers(b, 8, 100, func(s *Store, ops []store.Op) error {
		verdicts, err := s.WriteEach(b.Context(), ops...)
		for _, v := range verdicts {
			err = errors.Join(err, v.Err)
		}
		return err
	})
}

func writeOne(b *testing.B, callers int) {
	writers(b, callers, 1, func(s *Store, ops []store.Op) error {
		_, err := s.Write(b.Context(), ops...)
		return err
	})
}

// BenchmarkWrite64 is single conditional puts from 64 callers, BenchmarkWrite1 from one: the time of a sync.
func BenchmarkWrite64(b *testing.B) { writeOne(b, 64) }
func BenchmarkWrite1(b *testing.B)  { writeOne(b, 1) }

// BenchmarkRuns200 is what 200 workers write for runs that wait already: a start, then an end that will expire, each under
// the version before.
func BenchmarkRuns200(b *testing.B) {
	s := benchStore(b)
	runs := make([]store.Key, b.N)
	for n := range runs {
		runs[n] = benchKey(counter.Add(1))
	}
	for some := range slices.Chunk(runs, 100) {
		ops := make([]store.Op, len(some))
		for i, k := range some {
			ops[i] = store.Op{Kind: store.Put, If: store.Absent, Key: k, Value: make([]byte, benchValue), Attempt: 1}
		}
		if _, err := s.Write(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	each(b, 200, 1, func() error {
		at := next.Add(1) - 1
		if at >= int64(b.N) {
			return nil
		}
		op := store.Op{Kind: store.Put, If: store.Version(1), Key: runs[at], Value: make([]byte, benchValue), Attempt: 2}
		_, err := s.Write(b.Context(), op)
		op.If, op.Expires = store.Version(2), time.Unix(4_000_000_000, 0)
		_, again := s.Write(b.Context(), op)
		return errors.Join(err, again)
	})
}

func filled(b *testing.B) (*Store, []store.Key) {
	s := benchStore(b)
	var keys []store.Key
	for range 1000 {
		var ops []store.Op
		for range 100 {
			op := absentPut()
			ops, keys = append(ops, op), append(keys, op.Key)
		}
		if _, err := s.WriteEach(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.db.Flush(); err != nil {
		b.Fatal(err)
	}
	return s, keys
}

func BenchmarkGet(b *testing.B) {
	s, keys := filled(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		items, err := s.Get(b.Context(), keys[n*7919%len(keys)])
		if err != nil || !items[0].Exists() {
			b.Fatal(items, err)
		}
	}
	perSecond(b)
}

func BenchmarkQueryEmpty(b *testing.B) {
	s, _ := filled(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		page, err := s.Query(b.Context(), store.Range{Partition: fmt.Sprintf("due#28500000#%d", n%64)})
		if err != nil || len(page.Items) != 0 {
			b.Fatal(page, err)
		}
	}
	perSecond(b)
}

func BenchmarkQuery100(b *testing.B) {
	s, _ := filled(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		page, err := s.Query(b.Context(), store.Range{Partition: fmt.Sprintf("run#default#job%d", n%1000)})
		if err != nil || len(page.Items) < 99 {
			b.Fatal(len(page.Items), err)
		}
	}
	perSecond(b)
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/op")
}
