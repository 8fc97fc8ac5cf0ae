package simulate_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// catchUp is a catch-up policy of Cadence as Belfry has it.
func (row peerRow) catchUp(policy string) map[string]any {
	c := map[string]any{}
	if mode := map[string]string{"ONE": "one", "ALL": "all", "SKIP": "none"}[policy]; mode != "" {
		c["mode"] = mode
	}
	if row.Window > 0 {
		c["window"] = schedule.Duration(time.Duration(row.Window) * time.Second).String()
	}
	return c
}

// away plays a job whose fires behind from were missed, up to now; last is its last fire, the zero time where more follow.
func (row peerRow) away(t *testing.T, cron string, from, last time.Time, catchUp map[string]any) (fired []time.Time, skipped int) {
	t.Helper()
	at := map[string]any{"cron": cron}
	if !last.IsZero() {
		at["end"] = rfc(last.Add(time.Millisecond))
	}
	definition := map[string]any{"schedule": at, "target": anyHandler}
	if len(catchUp) > 0 {
		definition["catch_up"] = catchUp
	}
	down := from.Add(time.Second)
	r, err := played(t, document{"start": rfc(from), "until": rfc(row.Now), "jobs": map[string]any{"job": definition},
		"script": []any{map[string]any{"at": rfc(down), "do": "down", "for": row.Now.Sub(down).String()}}})
	if err != nil {
		t.Fatal(err)
	}
	fired, _ = nominal(r, from, row.Now)
	return fired, missed(r)
}

// cadenceOverlap has Cadence's policies as Belfry has them.
var cadenceOverlap = map[string]string{"SKIP_NEW": "skip", "CONCURRENT": "skip", "CANCEL_PREVIOUS": "cancel", "TERMINATE_PREVIOUS": "replace"}

func TestCadenceSchedules(t *testing.T) {
	rows := peerRows(t, "cadence-catchup.json")
	not := map[string]string{"unpause_catch_up-5": "the budget of one pass, which Belfry has as a pace"}
	for _, row := range rows {
		if row.Kind != "fire" {
			continue
		}
		switch {
		case row.Failing != nil:
			not[row.ID] = "its store fails in between; Belfry's own simulation has stores that fail"
		case row.Trigger == "backfill":
			not[row.ID] = "backfills are not built yet"
		case cadenceOverlap[row.Overlap] == "":
			not[row.ID] = "this policy is not built yet"
		}
	}
	otherwise := map[string]string{
		"catch_up-2":         "[2026-01-15T13:00:00Z], 2 skipped",
		"unpause_catch_up-2": "0 fired",
	}
	agrees(t, rows, not, otherwise, func(t *testing.T, row peerRow) (got, want string) {
		switch row.Kind {
		case "next_run":
			at := map[string]any{"cron": row.Cron}
			if row.NotBefore != nil {
				at["start"] = rfc(*row.NotBefore)
			}
			if row.NotAfter != nil {
				at["end"] = rfc(row.NotAfter.Add(time.Millisecond)) // which is in for Cadence
			}
			r, err := played(t, document{"start": rfc(row.Now), "until": rfc(row.Expect.Next.Add(time.Minute)), "jobs": map[string]any{"job": map[string]any{"schedule": at, "target": anyHandler}}})
			if err != nil {
				t.Fatal(err)
			}
			started, _ := nominal(r, time.Time{}, row.Expect.Next.Add(time.Hour))
			return instants(started), instants([]time.Time{*row.Expect.Next})
		case "missed":
			var all []time.Time
			if err := json.Unmarshal(row.Expect.Missed, &all); err != nil {
				t.Fatal(err)
			}
			fired, skipped := row.away(t, row.Cron, row.Last, time.Time{}, map[string]any{"mode": "all"})
			return fmt.Sprintf("%s, %d skipped", instants(fired), skipped), fmt.Sprintf("%s, 0 skipped", instants(all))
		case "catch_up":
			var all []time.Time
			if err := json.Unmarshal(row.Expect.Fired, &all); err != nil {
				t.Fatal(err)
			}
			fired, skipped := row.away(t, "0 * * * *", row.Missed[0].Add(-time.Minute), row.Missed[len(row.Missed)-1], row.catchUp(row.Policy))
			return fmt.Sprintf("%s, %d skipped", instants(fired), skipped), fmt.Sprintf("%s, %d skipped", instants(all), *row.Expect.Skipped)
		case "catch_up_counters":
			fired, skipped := row.away(t, row.Cron, row.Watermark, time.Time{}, row.catchUp(row.Policy))
			return fmt.Sprintf("%d fired, %d skipped", len(fired), skipped), fmt.Sprintf("%d fired, %d skipped", *row.Expect.FiredN, *row.Expect.SkippedN)
		case "unpause_catch_up":
			until := row.Now.Add(time.Second)
			r, err := played(t, document{"start": rfc(row.Watermark), "until": rfc(until), "jobs": map[string]any{"job": map[string]any{"schedule": map[string]any{"cron": row.Cron}, "target": anyHandler}},
				"script": []any{map[string]any{"at": rfc(row.Watermark), "do": "pause", "job": "job"}, map[string]any{"at": rfc(until), "do": "resume", "job": "job"}}})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%d fired", len(r.Runs)), fmt.Sprintf("%s fired", row.Expect.Fired)
		case "fire":
			limit, ended := 1, 0
			if row.Overlap == "CONCURRENT" {
				limit = row.Limit
			}
			script, outcomes := []any{}, []any{}
			for _, tracked := range row.Tracked {
				script = append(script, map[string]any{"at": "0s", "do": "trigger", "job": "job", "as": tracked.Run})
				outcomes = append(outcomes, map[string]map[string]any{"running": {"never": true}, "closed": {"takes": "1s"}}[tracked.State])
			}
			r, err := played(t, document{"start": "2026-01-15T09:59:00Z", "until": "1m", "script": script, "outcomes": map[string]any{"job": append(outcomes, map[string]any{"takes": "1s"})},
				"jobs": map[string]any{"job": map[string]any{"schedule": map[string]any{"cron": "0 * * * *"}, "target": anyHandler, "timeout": "1h", "overlap": map[string]any{"policy": cadenceOverlap[row.Overlap], "limit": limit}}}})
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
			started, skipped := nominal(r, at.Add(-time.Second), at)
			for _, one := range r.Runs {
				if one.As != nil && one.State == "cancelled" {
					ended++
				}
			}
			return fmt.Sprintf("%d started, %d skipped, %d ended", len(started), len(skipped), ended),
				fmt.Sprintf("%d started, %d skipped, %d ended", *row.Expect.Started, *row.Expect.Skipped, row.Expect.Terminated+row.Expect.CancelAsked)
		}
		t.Fatalf("kind %s", row.Kind)
		return "", ""
	})
}
