package bench

import (
	"slices"
	"sync"
	"time"
)

// Spread is where a number of times lie, in milliseconds.
type Spread struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// times are collected by many goroutines.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	t.all = append(t.all, d)
	t.mu.Unlock()
}

func (t *times) spread() Spread {
	t.mu.Lock()
	defer t.mu.Unlock()
	return spreadOf(t.all)
}

// spreadOf sorts the times.
func spreadOf(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	slices.Sort(all)
	at := func(share float64) float64 { return millis(all[int(share*float64(len(all)-1))]) }
	return Spread{at(0.5), at(0.99), at(1)}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// rate is how many a second that was, 0 where there was no time.
func rate(n int, took time.Duration) float64 { return ratio(float64(n), took.Seconds()) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
