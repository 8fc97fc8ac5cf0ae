package prometheus_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/prometheus"
)

func scrape(t *testing.T, r *metrics.Registry, now time.Time) string {
	t.Helper()
	h, err := prometheus.Handler(r, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	got := httptest.NewRecorder()
	h.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(got.Body)
	if err != nil || got.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", got.Code, err, body)
	}
	return string(body)
}

func TestAScrapeShowsWhatWasCounted(t *testing.T) {
	r := metrics.New()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r.Runs.Add(3, "succeeded")
	r.Lateness.Observe(4 * time.Millisecond)
	r.Queue.Set(5, "low", "ready")
	r.OldestDue.Since(now.Add(-90 * time.Second))
	r.Store.Observe(200*time.Microsecond, "write", "conflict")
	got := scrape(t, r, now)
	for _, want := range []string{
		"# TYPE belfry_runs_total counter",
		`belfry_runs_total{outcome="succeeded"} 3`,
		`belfry_runs_total{outcome="dead"} 0`,
		"# TYPE belfry_lateness_seconds histogram",
		`belfry_lateness_seconds_bucket{le="0.0025"} 0`,
		`belfry_lateness_seconds_bucket{le="0.005"} 1`,
		`belfry_lateness_seconds_bucket{le="3600"} 1`,
		`belfry_lateness_seconds_bucket{le="+Inf"} 1`,
		`belfry_lateness_seconds_sum 0.004`,
		`belfry_lateness_seconds_count 1`,
		"# TYPE belfry_queue_messages gauge",
		`belfry_queue_messages{priority="low",state="ready"} 5`,
		`belfry_oldest_due_seconds 90`,
		`belfry_store_seconds_bucket{operation="write",result="conflict",le="0.00025"} 1`,
		"belfry_retries_total 0",
		"go_goroutines ",
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
}

func TestEveryFamilyIsShownAndKeepsPrometheusHabits(t *testing.T) {
	r := metrics.New()
	r.OldestDue.Since(time.Unix(1, 0))
	r.Store.Observe(time.Second, "get", "ok")
	r.Consumed("GetItem", 0.5, 0)
	r.Runs.Inc("of no declared name")
	r.GateWait.Observe(time.Second, r.Gate("job:report", true))
	r.GateWaiting.Set(2, "job:report")
	r.GateInProgress.Set(1, "job:report")
	r.JobEnded("report", true, time.Unix(1_795_000_000, 0))
	got := scrape(t, r, time.Unix(2, 0))
	r.Each(time.Unix(2, 0), func(f metrics.Family, _ []metrics.Sample) {
		if !strings.Contains(got, "# TYPE "+f.Name+" "+string(f.Kind)+"\n") || !strings.Contains(got, "# HELP "+f.Name+" "+f.Help+"\n") {
			t.Errorf("the scrape lacks %s", f.Name)
		}
	})
	if !strings.Contains(got, `belfry_runs_total{outcome="other"} 1`) {
		t.Error("the scrape lacks what was counted under no declared name")
	}
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "belfry_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
