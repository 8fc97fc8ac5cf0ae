//go:build emulators

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// 500 fires over two minutes, under the tick of each minute: how long after its nominal time a run's target is called. Not a test: it
// says how this machine and this emulator did.
func BenchmarkLateness(b *testing.B) {
	const fires, over = 500, 2 * time.Minute
	stack, target := opened(b, "BELFRY_"), listen(b)
	for b.Loop() {
		p := target.at("lateness-" + session)
		// The first is beyond what any tick has seen, so that all are claimed by the ticks of the schedule.
		first := time.Now().Add(160 * time.Second).Truncate(time.Second)
		var jobs []object
		for n := range fires {
			at := first.Add(over / fires * time.Duration(n))
			jobs = append(jobs, object{"name": fmt.Sprintf("late-%03d-%s", n, session), "schedule": object{"at": at.Format(time.RFC3339Nano)}, "target": p.get()})
		}
		for _, verdict := range stack.must(b, http.StatusOK, "POST", "/v1/jobs/batch", object{"jobs": jobs}).list("items") {
			if verdict.number("status") != http.StatusCreated {
				b.Fatal(verdict)
			}
		}
		if begun := time.Until(first); begun < 0 {
			b.Fatalf("registering took until %v after the first fire", -begun)
		}
		hits := p.waitFor(b, fires, 160*time.Second+over+patience)
		late := lateness(hits)
		b.ReportMetric(late(0.5).Seconds(), "p50-s")
		b.ReportMetric(late(0.99).Seconds(), "p99-s")
		b.ReportMetric(late(1).Seconds(), "max-s")
		b.ReportMetric(0, "ns/op")
	}
}
