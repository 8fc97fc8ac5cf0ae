package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

// lines measures a line at one gate, embedded and synced where no address is given: so many runs join it behind as many as may be in progress, and then all of them take
// their turns, limit at a time. The limit has to be below the workers that there are, since who waits for a worker is in no line. Their handlers
// do nothing, so from the end of one to the begin of the next is what Belfry takes.
func lines(ctx context.Context, at string, runs, limit int, named bool) error {
	folder, err := os.MkdirTemp("", "belfry-line-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if at == "" {
		at = "pebble://" + filepath.Join(folder, "data")
	}
	b, err := belfry.Open(ctx, at)
	if err != nil {
		return err
	}
	defer b.Stop(context.Background())
	var mu sync.Mutex
	var ended time.Time
	var gaps []time.Duration
	open, done := make(chan struct{}), make(chan struct{})
	took := 0
	bound := belfry.QueueOverlap(limit, 100_000)
	if named {
		if err := b.SetGate(ctx, "hot", limit); err != nil {
			return err
		}
		bound = belfry.Gates("hot")
	}
	belfry.Handle(b, "turn", func(context.Context, *belfry.Job[int]) error {
		<-open
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if !ended.IsZero() {
			gaps = append(gaps, now.Sub(ended))
		}
		ended = now
		if took++; took == runs {
			close(done)
		}
		return nil
	}, bound, belfry.Timeout(time.Hour))
	if err := b.Start(ctx); err != nil {
		return err
	}
	for range limit {
		if _, err := belfry.Enqueue(ctx, b, "turn", 0); err != nil {
			return err
		}
	}
	<-time.After(time.Second)
	before := heap()
	began := time.Now()
	for sent := limit; sent < runs; {
		orders := make([]belfry.Order[int], min(1000, runs-sent))
		sent += len(orders)
		if _, err := belfry.EnqueueMany(ctx, b, "turn", orders...); err != nil {
			return err
		}
	}
	for waiting := 0; waiting < runs-limit; {
		waiting = 0
		for range b.Runs(ctx, "turn", belfry.Waiting) {
			waiting++
		}
		<-time.After(200 * time.Millisecond)
	}
	joined := time.Since(began)
	fmt.Printf("%d runs joined in %s, %.0f a second; %.0f bytes of memory each\n", runs, joined.Round(time.Millisecond), float64(runs-limit)/joined.Seconds(), float64(heap()-before)/float64(runs))
	began = time.Now()
	close(open)
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	all := time.Since(began)
	mu.Lock()
	slices.Sort(gaps)
	fmt.Printf("limit %d: all have had their turns in %s, %.0f a second; from an end to the next begin p50 %s, p99 %s\n", limit, all.Round(time.Millisecond), float64(runs)/all.Seconds(),
		gaps[len(gaps)/2].Round(time.Microsecond), gaps[len(gaps)*99/100].Round(time.Microsecond))
	mu.Unlock()
	return nil
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
