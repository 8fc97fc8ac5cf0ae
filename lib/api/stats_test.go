package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// TestStatsCountRuns has a tenant's runs counted by minute and hour, and no other's.
func TestStatsCountRuns(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		began := time.Now().UTC().Truncate(time.Minute)
		s.send("PUT", "/v1/jobs/good", echo).is(201)
		s.send("PUT", "/v1/jobs/bad", strings.Replace(echo, "echo", "fail", 1)).is(201)
		for range 3 {
			s.send("POST", "/v1/jobs/good/runs", `{}`).is(202)
		}
		s.send("POST", "/v1/jobs/bad/runs", `{}`).is(202)
		time.Sleep(5 * time.Minute)
		s.send("POST", "/v1/jobs/good/runs", `{}`).is(202)
		got := into[wire.Stats](s.send("GET", "/v1/stats", "").is(200))
		if got.StepSeconds != 60 || got.To.Sub(got.From) > time.Hour+time.Minute || got.To.Before(time.Now()) || got.From.Second() != 0 || got.To.Second() != 0 {
			t.Errorf("%s to %s by %d s, want the last hour by minutes", got.From, got.To, got.StepSeconds)
		}
		if len(got.Points) != 1 || !got.SweptUntil.After(began.Add(2*time.Minute)) || got.SweptUntil.After(time.Now().Add(-2*time.Minute)) {
			t.Fatalf("%d points, swept until %s, want one: the newest run's minute is not swept", len(got.Points), got.SweptUntil)
		}
		p := got.Points[0]
		if p.Due != 4 || p.Succeeded != 3 || p.Failed+p.Dead != 1 || p.Open != 0 || !p.At.Equal(began) || fmt.Sprint(p.StatsCounts) != fmt.Sprint(got.Totals) {
			t.Errorf("got %+v of %s, want 3 that succeeded and one that did not", p, began)
		}
		for name, h := range map[string]wire.StatsHistogram{"lateness": p.Lateness, "duration": p.Duration} {
			if h.Count != 4 || len(h.Buckets) != 17 || h.Buckets[0] != 4 || h.P50 <= 0 || h.P99 < h.P50 {
				t.Errorf("%s: %+v, want 4 in the lowest bucket", name, h)
			}
		}
		if len(got.LatenessBoundsMS) != 16 || len(got.DurationBoundsMS) != 16 || !slices.IsSorted(got.LatenessBoundsMS) || !slices.IsSorted(got.DurationBoundsMS) {
			t.Errorf("bounds are %v and %v", got.LatenessBoundsMS, got.DurationBoundsMS)
		}
		hour := into[wire.Stats](s.send("GET", "/v1/stats?step=1h", "").is(200))
		if hour.StepSeconds != 3600 || len(hour.Points) != 1 || hour.Points[0].Due != 4 {
			t.Errorf("by hours: %+v", hour)
		}
		other := s.send("GET", "/v1/stats", "", s.of("acme")...).is(200)
		if shown := into[wire.Stats](other); len(shown.Points) != 0 || shown.Totals.Due != 0 || !strings.Contains(string(other.body), `"points":[]`) {
			t.Errorf("another tenant is told of %s", other.body)
		}
		time.Sleep(3 * time.Hour)
		added := into[wire.Stats](s.send("GET", "/v1/stats?step=1h&from="+url.QueryEscape(began.Format(time.RFC3339)), "").is(200))
		if len(added.Points) != 1 || added.Points[0].Due != 5 || added.Totals.Succeeded != 4 {
			t.Errorf("when the hour was added up: %+v", added)
		}
	})
}

// TestAWindowOfStatsIsBounded, and says what it may be.
func TestAWindowOfStatsIsBounded(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		at := func(ago time.Duration) string {
			return url.QueryEscape(time.Now().UTC().Add(-ago).Format(time.RFC3339))
		}
		const day = 24 * time.Hour
		for query, want := range map[string]int{
			"?from=" + at(6*time.Hour):                                     60,
			"?from=" + at(6*time.Hour+time.Minute):                         3600,
			"?step=1m&from=" + at(day):                                     60,
			"?from=" + at(32*day):                                          3600,
			"?to=" + at(300*day):                                           60,
			"?to=1970-01-01T00:30:00Z":                                     60,
			"?from=9999-12-31T22:00:00Z&to=9999-12-31T23:00:00Z&step=1h":   3600,
			"?from=2026-01-01T00:00:59.9Z&to=2026-01-01T00:01:00Z&step=1m": 60,
		} {
			if got := into[wire.Stats](s.send("GET", "/v1/stats"+query, "").is(200)); got.StepSeconds != want || !got.From.Before(got.To) {
				t.Errorf("%s: %s to %s by %d s, want %d", query, got.From, got.To, got.StepSeconds, want)
			}
		}
		for query, want := range map[string]string{
			"?step=1m&from=" + at(day+time.Minute):               "at most 24 h before to with step=1m; step=1h takes up to 32 days",
			"?from=" + at(32*day+time.Hour):                      "at most 32 days before to",
			"?from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z": "a time before to, which is 2026-01-01T00:00:00Z",
			"?from=" + at(-time.Hour):                            "a time before to",
		} {
			if fields := s.send("GET", "/v1/stats"+query, "").refused(422, "invalid"); !strings.Contains(fields["from"], want) {
				t.Errorf("%s: %v, want %q", query, fields, want)
			}
		}
		s.send("GET", "/v1/stats?step=5m", "").refused(400, "malformed")
		s.send("GET", "/v1/stats?from=yesterday", "").refused(422, "invalid")
	})
}
