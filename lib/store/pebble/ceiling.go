package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Load is what Ceiling writes: batches of Ops puts of Bytes each, key and value together, by so many writers at once.
type Load struct {
	Writers int
	Ops     int
	Bytes   int
}

// Ceiling measures what Pebble alone makes durable in a new folder: batches made beforehand, with nothing read, decided or encoded, set
// up as a Store sets it up. No engine over Pebble is faster with batches of that size. elapsed tells the time since some start.
func Ceiling(ctx context.Context, dir string, load Load, most time.Duration, elapsed func() time.Duration) (ops int64, took time.Duration, done Disk, err error) {
	s := &Store{log: slog.New(slog.DiscardHandler), failed: make(chan struct{})}
	cfg := Config{Dir: dir, FS: vfs.Default, CacheBytes: 64 << 20, memTable: 32 << 20}
	db, err := pebble.Open(dir, s.options(cfg))
	if err != nil {
		return 0, 0, Disk{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	before, began := s.Disk(), elapsed()
	var mu sync.Mutex
	var writers sync.WaitGroup
	for n := range load.Writers {
		writers.Go(func() {
			written, failed := load.write(ctx, db, uint64(n))
			mu.Lock()
			defer mu.Unlock()
			ops += written
			err = errors.Join(err, failed)
		})
	}
	writers.Wait()
	return ops, elapsed() - began, s.Disk().Since(before), err
}

const ceilingKey = 40 // bytes of a key, about what a run has

// write applies batches until ctx ends. Keys are spread as those of jobs and buckets are, and never repeat.
func (l Load) write(ctx context.Context, db *pebble.DB, writer uint64) (ops int64, err error) {
	value := make([]byte, max(0, l.Bytes-ceilingKey))
	for i := range value {
		value[i] = byte(scattered(uint64(i)) >> 56) // not to be compressed away
	}
	var key [ceilingKey]byte
	binary.BigEndian.PutUint64(key[16:], writer)
	for n := uint64(0); ctx.Err() == nil; {
		batch := db.NewBatchWithSize(l.Ops*(l.Bytes+16) + 16)
		for range l.Ops {
			n++
			binary.BigEndian.PutUint64(key[:], scattered(n)%64)
			binary.BigEndian.PutUint64(key[24:], n)
			must(batch.Set(key[:], value, nil))
		}
		if err := db.Apply(batch, pebble.Sync); err != nil {
			return ops, err
		}
		ops += int64(l.Ops)
		if err := batch.Close(); err != nil {
			return ops, err
		}
	}
	return ops, nil
}

// scattered is n's place in an order that has nothing to do with numbers: the end of SplitMix64.
func scattered(n uint64) uint64 {
	n = (n + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
