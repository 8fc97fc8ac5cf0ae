package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// burnt is one burn-down: jobs inserted with the workers off, then all run and recorded.
type burnt struct {
	jobs             int
	inserted, worked time.Duration
}

// inserted is one measurement of inserts.
type inserted struct {
	perSecond float64
	p50, p99  time.Duration
}

// warmUp is how many calls each caller makes before its calls are measured: they open its connection, and prepare its statements.
const warmUp = 8

// perSecond gives a rate.
func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// concurrently makes n calls, some at once, each numbered. The first error ends it.
func concurrently(ctx context.Context, callers, n int, call func(ctx context.Context, number int) error) (inserted, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	took := make([]time.Duration, n)
	began := time.Now()
	for range callers {
		group.Go(func() {
			for number := int(next.Add(1)) - 1; number < n && ctx.Err() == nil; number = int(next.Add(1)) - 1 {
				sent := time.Now()
				if err := call(ctx, number); err != nil {
					cancel(err)
				}
				took[number] = time.Since(sent)
			}
		})
	}
	group.Wait()
	all := time.Since(began)
	if ctx.Err() != nil {
		return inserted{}, context.Cause(ctx)
	}
	slices.Sort(took)
	return inserted{perSecond(n, all), quantile(took, 0.5), quantile(took, 0.99)}, nil
}

// quantile gives the smallest of sorted values that a share of them does not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[max(0, int(float64(len(sorted))*share+0.999999)-1)]
}

// until asks every few milliseconds.
func until(ctx context.Context, ask func() (bool, error)) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
