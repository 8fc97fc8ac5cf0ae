package bench_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

// A soak of seconds: every run is in the rows, and when its retention is over nothing of it is left.
func TestASoakLooksAndCleansUp(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	var told atomic.Int64
	r, err := bench.Soak{For: 4 * time.Second, Every: time.Second, Rate: 21, Workers: 10, Retention: 24 * time.Hour}.Run(t.Context(), hostOf(folder, &told))
	if err != nil {
		t.Fatal(err)
	}
	if r.Runs != 84 || told.Load() < 84 || len(r.Rows) != 4 {
		t.Fatalf("%d runs, %d told, rows %+v", r.Runs, told.Load(), r.Rows)
	}
	for i, row := range r.Rows {
		if row.Seconds != float64(i+1) || row.Heap == 0 || row.Goroutines == 0 || row.Disk == 0 || row.P50 > row.P99 {
			t.Errorf("got %+v", row)
		}
	}
	for name, trend := range map[string]bench.Trend{"rss": r.Trends.RSS, "heap": r.Trends.Heap, "lateness": r.Trends.Lateness, "disk": r.Trends.Disk, "goroutines": r.Trends.Routines} {
		if trend.Verdict != bench.Flat && trend.Verdict != bench.Rising && trend.Verdict != bench.Falling {
			t.Errorf("%s: %+v", name, trend)
		}
	}
	if r.Aged.Deleted < r.Runs || r.Aged.RunsLeft != 0 || r.Aged.DiskBefore == 0 || r.Aged.DiskAfter == 0 || r.Aged.Bound == 0 {
		t.Errorf("got %+v", r.Aged)
	}
	gone(t, folder)
}
