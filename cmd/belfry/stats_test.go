package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// TestStatsAreShown as a table without columns of zeros, with all of the window in the last line, and for programs as the server gives them.
func TestStatsAreShown(t *testing.T) {
	at := time.Date(2026, 11, 26, 15, 3, 0, 0, time.UTC)
	late := wire.StatsHistogram{Count: 3, P50: 2.5, P90: 20, P99: 1234.5}
	given := wire.Stats{From: at.Truncate(time.Hour), To: at.Add(57 * time.Minute), StepSeconds: 60, SweptUntil: at.Add(10 * time.Minute),
		Points: []wire.StatsPoint{{At: at, StatsCounts: wire.StatsCounts{Due: 4, Succeeded: 3, Dead: 1, Lateness: late, Duration: late}},
			{At: at.Add(time.Minute), StatsCounts: wire.StatsCounts{Due: 2, Skipped: 1, Unended: 1}}},
		Totals: wire.StatsCounts{Due: 6, Succeeded: 3, Dead: 1, Skipped: 1, Unended: 1, Lateness: late, Duration: late}}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(given)
	}))
	t.Cleanup(server.Close)
	got := belfry(t, "", "stats", "--address", server.URL)
	if got.code != 0 {
		t.Fatalf("code %d: %s", got.code, got.errors)
	}
	want := `FROM                  DUE  SUCCEEDED  DEAD  SKIPPED  UNENDED  LATE P50  LATE P99  TOOK P50  TOOK P99
2026-11-26 15:03 UTC  4    3          1     0        0        2.5ms     1.2s      2.5ms     1.2s
2026-11-26 15:04 UTC  2    0          0     1        1
all                   6    3          1     1        1        2.5ms     1.2s      2.5ms     1.2s
`
	if text := trimmed(got.out); text != want || !strings.Contains(got.errors, "counted up to 2026-11-26 15:13:00 UTC") {
		t.Errorf("shown as\n%s%swant\n%s", text, got.errors, want)
	}
	if found := decode[wire.Stats](t, belfry(t, "", "stats", "--address", server.URL, "--last", "7d", "-o", "json").out); len(found.Points) != 2 || found.Totals.Due != 6 {
		t.Errorf("for programs: %+v", found)
	}
	belfry(t, "", "stats", "--address", server.URL, "--from", "2026-11-21T09:00:00Z", "--to", "2026-11-21T10:00:00Z", "--step", "1m")
	if last := asked[len(asked)-1]; last != "/v1/stats?from=2026-11-21T09%3A00%3A00Z&step=1m&to=2026-11-21T10%3A00%3A00Z" {
		t.Errorf("asked %s", last)
	}
	for _, wrong := range [][]string{{"--last", "x"}, {"--step", "5m"}, {"--last", "1h", "--from", "2026-11-21"}} {
		if got := belfry(t, "", append([]string{"stats", "--address", server.URL}, wrong...)...); got.code != 2 {
			t.Errorf("%v: code %d: %s", wrong, got.code, got.errors)
		}
	}
	given = wire.Stats{From: given.From, To: given.To, StepSeconds: 60}
	if got := belfry(t, "", "stats", "--address", server.URL); got.out != "" || !strings.Contains(got.errors, "no run is counted between") || !strings.Contains(got.errors, "nothing is counted yet") {
		t.Errorf("nothing: %q, %q", got.out, got.errors)
	}
}

// trimmed is text without spaces at the ends of its lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
