package pebble

import (
	"fmt"
	"sync/atomic"
	"testing"

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

func absentPut() store.Op {
	n := counter.Add(1)
	return store.Op{
		Kind: store.Put, If: store.Absent, Attempt: n, Value: make([]byte, 200),
		Key: store.Key{Partition: fmt.Sprintf("run#default#job%d", n%1000), Sort: fmt.Sprintf("%013d#%d", n/1000, n)},
	}
}

// BenchmarkWriteEach100 is conditional puts in batches of 100, from 8 callers.
func BenchmarkWriteEach100(b *testing.B) {
	s := benchStore(b)
	b.SetParallelism(4)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for {
			var ops []store.Op
			for len(ops) < 100 && pb.Next() {
				ops = append(ops, absentPut())
			}
			if len(ops) == 0 {
				return
			}
			verdicts, err := s.WriteEach(b.Context(), ops...)
			if err != nil {
				b.Error(err)
				return
			}
			for _, v := range verdicts {
				if v.Err != nil {
					b.Error(v.Err)
				}
			}
		}
	})
	perSecond(b)
}

// BenchmarkWrite64 is single conditional puts from 64 callers.
func BenchmarkWrite64(b *testing.B) {
	s := benchStore(b)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Write(b.Context(), absentPut()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	perSecond(b)
}

// BenchmarkWrite1 is one caller: the time of a sync.
func BenchmarkWrite1(b *testing.B) {
	s := benchStore(b)
	for b.Loop() {
		if _, err := s.Write(b.Context(), absentPut()); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
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
