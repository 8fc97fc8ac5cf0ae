package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

// customer is a payload with a value of the key.
type customer struct {
	Customer string `json:"customer"`
}

// many measures gates of many values, embedded and synced: two runs of each value of each gate, of which one at a time may be in progress. Their handlers do nothing. What it took of memory
// and of the disk is what stands behind them all: the runs that have ended, which are kept, among it.
func many(ctx context.Context, gates, values int) error {
	folder, err := os.MkdirTemp("", "belfry-gates-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b, err := belfry.Open(ctx, "pebble://"+filepath.Join(folder, "data"))
	if err != nil {
		return err
	}
	defer b.Stop(context.WithoutCancel(ctx))
	runs := int64(2 * gates * values)
	var ended atomic.Int64
	done := make(chan struct{})
	name := func(i int) string { return fmt.Sprintf("gate-%d", i) }
	for i := range gates {
		if err := b.SetGate(ctx, name(i), 1); err != nil {
			return err
		}
		belfry.Handle(b, name(i), func(context.Context, *belfry.Job[customer]) error {
			if ended.Add(1) == runs {
				close(done)
			}
			return nil
		}, belfry.GateKey(name(i), "${ .payload.customer }"))
	}
	if err := b.Start(ctx); err != nil {
		return err
	}
	before, began := heap(), time.Now()
	orders := make([]belfry.Order[customer], 0, 2*values)
	for range 2 {
		for v := range values {
			orders = append(orders, belfry.Order[customer]{Payload: customer{fmt.Sprint("customer-", v)}})
		}
	}
	for i := range gates {
		for from := 0; from < len(orders); from += 1000 {
			if _, err := belfry.EnqueueMany(ctx, b, name(i), orders[from:min(from+1000, len(orders))]...); err != nil {
				return err
			}
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	took := time.Since(began)
	size, err := sizeOf(folder)
	if err != nil {
		return err
	}
	n := float64(gates * values)
	fmt.Printf("%d gates of %d values: %d runs in %s, %.0f a second; %.0f bytes of memory for each value more than before, %.0f on the disk\n", gates, values, runs, took.Round(time.Millisecond),
		float64(runs)/took.Seconds(), float64(heap()-before)/n, float64(size)/n)
	return nil
}

// sizeOf is how many bytes the files of a folder take.
func sizeOf(folder string) (bytes int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
