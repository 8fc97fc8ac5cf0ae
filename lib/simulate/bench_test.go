package simulate_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// BenchmarkHundredThousandRuns is a week in which ten jobs fire each minute, some take long, some fail and are tried again.
func BenchmarkHundredThousandRuns(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // what is measured is collected as in a program
	var text strings.Builder
	text.WriteString("start: 2026-01-05T00:00:00Z\nuntil: 168h\njobs:\n")
	for i := range 10 {
		fmt.Fprintf(&text, "  job%d: {schedule: {cron: \"* * * * *\"}, timeout: 10m, target: {handler: {name: h}}}\n", i)
	}
	text.WriteString("outcomes:\n  job0: [{takes: 90s}]\n  job1: [{takes: 1s, fails: no}, {takes: 1s}, {takes: 1s}]\n  \"*\": [{takes: 5s}]\n")
	s, err := simulate.Parse("bench.yaml", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runs := 0
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		peak := uint64(0)
		r, err := simulate.Play(b.Context(), s, simulate.Options{Progress: func(time.Time, int) {
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc)
		}})
		if err != nil {
			b.Fatal(err)
		}
		if runs = len(r.Runs); r.Open != 0 {
			b.Fatalf("%d runs are open", r.Open)
		}
		b.ReportMetric(float64(runs)/time.Since(began).Seconds(), "runs/s")
		b.ReportMetric(float64(peak)/float64(1<<20), "peak-MB")
	}
	b.ReportMetric(float64(runs), "runs")
}
