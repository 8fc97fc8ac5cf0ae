package simulate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// peerRow is a row of what another scheduler's own tests and documentation say of it: testdata/peers has the source. The fields are those of all
// kinds; the file's semantics explain them.
type peerRow struct {
	ID, Kind, Case string

	Now               time.Time
	Schedule, Cron    string
	Timezone          *string
	Created           time.Time
	LastScheduled     *time.Time `json:"last_scheduled"`
	Deadline          *int       `json:"deadline_s"`
	ApplyDeadline     *bool      `json:"apply_deadline"`
	Suspend           bool
	Policy            string `json:"policy"`
	ConcurrencyPolicy string
	StillActive       bool    `json:"still_active"`
	Listed            *bool   `json:"previous_job_visible_in_listing"`
	Active            *bool   `json:"previous_job_in_active_list"`
	CreateError       *string `json:"create_error"`
	GetError          *string `json:"get_error"`
	OldSchedule       string  `json:"old_schedule"`
	NewSchedule       string  `json:"new_schedule"`
	Nominal           time.Time
	Last, Watermark   time.Time
	NotBefore         *time.Time `json:"not_before"`
	NotAfter          *time.Time `json:"not_after"`
	Missed            []time.Time
	Window            int    `json:"window_s"`
	SchedulePolicy    string `json:"schedule_policy"`
	Override          *string
	Budget            int
	Overlap, Trigger  string
	Failing           *string
	Limit             int `json:"concurrency_limit"`
	Tracked           []struct{ Run, State string }

	Expect struct {
		Create   *int
		Requeue  *float64 `json:"requeue_after_s"`
		Error    bool
		Due      *string
		Recent   *time.Time
		Missed   json.RawMessage // instants, or none, few or many
		Next     *time.Time
		Fired    json.RawMessage // instants, or a number
		Skipped  *int
		Started  *int
		FiredN   *int   `json:"fired_counter"`
		SkippedN *int   `json:"skipped_counter"`
		Nominal  string `json:"nominal_text"`
		Buffered bool
	}
}

func peerRows(t *testing.T, name string) []peerRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "peers", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Source struct{ Repo, Licence, Attribution string }
		Rows   []peerRow
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if file.Source.Repo == "" || file.Source.Licence == "" || file.Source.Attribution == "" {
		t.Errorf("%s does not say where it comes from", name)
	}
	return file.Rows
}

// page is docs/simulate-peers.md, which names each row that Belfry answers otherwise.
func peersPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulate-peers.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// agrees holds what became of each row against what the peer says, and against the rows where Belfry answers otherwise: each of those has
// exactly the answer that stands here, and its place in the page.
func agrees(t *testing.T, rows []peerRow, not map[string]string, otherwise map[string]string, play func(t *testing.T, row peerRow) (got, want string)) {
	t.Helper()
	page, played := peersPage(t), 0
	met := map[string]bool{}
	for _, row := range rows {
		met[row.ID] = true
		if not[row.ID] != "" || not[row.Kind] != "" {
			met[row.Kind] = true
			continue
		}
		played++
		t.Run(row.ID, func(t *testing.T) {
			t.Parallel()
			got, want := play(t, row)
			if own, differs := otherwise[row.ID]; differs {
				if got == want {
					t.Errorf("%s: both give %s now: take it from the differences, here and in docs/simulate-peers.md", row.Case, got)
				}
				if !strings.Contains(page, "`"+row.ID+"`") {
					t.Error("docs/simulate-peers.md does not name it")
				}
				want = own
			}
			if got != want {
				t.Errorf("%s: got %s, want %s", row.Case, got, want)
			}
		})
	}
	for _, of := range []map[string]string{not, otherwise} {
		for id := range of {
			if !met[id] {
				t.Errorf("there is no row %s", id)
			}
		}
	}
	t.Logf("%d of %d rows played", played, len(rows))
}

// document is a scenario as it is built for a row.
type document map[string]any

func played(t *testing.T, d document) (simulate.Report, error) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.Parse("row.json", text)
	if err != nil {
		return simulate.Report{}, err
	}
	report, err := simulate.Play(t.Context(), s, simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Refused) > 0 || report.Stopped != nil {
		t.Fatalf("%s\ngives %+v, %+v", text, report.Refused, report.Stopped)
	}
	return report, nil
}

var anyHandler = map[string]any{"handler": map[string]any{"name": "x"}}

func rfc(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// instants are times in a line.
func instants(all []time.Time) string {
	texts := make([]string, len(all))
	for i, at := range all {
		texts[i] = rfc(at)
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// nominal are the times of the runs in a stretch, its end included, by whether they started.
func nominal(r simulate.Report, after, upTo time.Time) (started, skipped []time.Time) {
	for _, one := range r.Runs {
		switch {
		case !one.NominalTime.After(after) || one.NominalTime.After(upTo):
		case one.StartedAt != nil:
			started = append(started, one.NominalTime)
		default:
			skipped = append(skipped, one.NominalTime)
		}
	}
	return started, skipped
}

// missed counts the fires that the catch-up policy dropped.
func missed(r simulate.Report) (n int) {
	for _, s := range r.Skipped {
		n += s.Count
	}
	return n
}

// at is a schedule of Kubernetes as Belfry has it. Its @every counts from the last run, which is a phase here.
func (row peerRow) at(text string, from time.Time) (map[string]any, schedule.Spec) {
	text = strings.ReplaceAll(text, "?", "*")
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		interval, _ := schedule.ParseDuration(every)
		phase := time.Duration(from.UnixNano()) % interval.Std()
		return map[string]any{"every": every, "phase": schedule.Duration(phase).String()}, schedule.Spec{Every: interval, Phase: schedule.Duration(phase)}
	}
	at, spec := map[string]any{"cron": text}, schedule.Spec{Cron: text}
	if row.Timezone != nil {
		at["timezone"], spec.Timezone = *row.Timezone, *row.Timezone
	}
	return at, spec
}

// cronJob is one reconcile pass as a scenario: the job has run as the row says, then Belfry is down until now.
func (row peerRow) cronJob(t *testing.T) (simulate.Report, time.Time, error) {
	t.Helper()
	start := row.Created
	if row.LastScheduled != nil {
		start = start.Add(-time.Second) // so that a fire at that time is one
	}
	at, spec := row.at(row.Schedule, row.Created)
	definition := map[string]any{"schedule": at, "target": anyHandler, "timeout": "4h", "retry": map[string]any{"max_attempts": 1}, "paused": row.Suspend}
	if row.ConcurrencyPolicy == "Forbid" {
		definition["overlap"] = "skip"
	}
	if row.Deadline != nil && (row.ApplyDeadline == nil || *row.ApplyDeadline) {
		window := max(time.Duration(*row.Deadline)*time.Second, 5*time.Minute) // the least that there is
		definition["catch_up"] = map[string]any{"mode": "one", "window": schedule.Duration(window).String()}
	}
	last := start
	outcomes := []any{}
	if row.LastScheduled != nil {
		last = *row.LastScheduled
		if row.StillActive {
			compiled, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			before, _ := compiled.Count(start, last, 1000)
			for range before - 1 {
				outcomes = append(outcomes, map[string]any{"takes": "10s"})
			}
			outcomes = append(outcomes, map[string]any{"never": true})
		} else {
			outcomes = append(outcomes, map[string]any{"takes": "10s"})
		}
	}
	until := row.Now
	if row.Expect.Requeue != nil {
		until = row.Now.Add(time.Duration(*row.Expect.Requeue*1000) * time.Millisecond)
	}
	if !until.After(start) {
		until = start.Add(time.Second)
	}
	d := document{"start": rfc(start), "until": rfc(until), "jobs": map[string]any{"job": definition}}
	if len(outcomes) > 0 {
		d["outcomes"] = map[string]any{"job": outcomes}
	}
	if from := last.Add(time.Second); row.Now.After(from) {
		d["script"] = []any{map[string]any{"at": rfc(from), "do": "down", "for": row.Now.Sub(from).String()}}
	}
	r, err := played(t, d)
	return r, last, err
}

// next is how long after now the next fire is, "none" for none.
func next(r simulate.Report, now time.Time) string {
	for _, one := range r.Runs {
		if one.NominalTime.After(now) {
			return fmt.Sprint(one.NominalTime.Sub(now).Seconds())
		}
	}
	return "none"
}

func TestKubernetesCronJobs(t *testing.T) {
	rows := peerRows(t, "kubernetes-cronjob.json")
	not := map[string]string{}
	for _, row := range rows {
		switch {
		case row.CreateError != nil || row.GetError != nil:
			not[row.ID] = "its API fails in between; Belfry's own simulation has stores that fail"
		case row.ConcurrencyPolicy == "Replace":
			not[row.ID] = "overlap: replace is not built yet"
		case row.Listed != nil && !*row.Listed || row.StillActive && (row.Active == nil || !*row.Active):
			not[row.ID] = "its cache lags behind; Belfry has none"
		}
	}
	otherwise := map[string]string{
		"sync-13":  "refused",
		"sync-26":  "1 started, next in 3540",
		"sync-63":  "1 started, next in 3589",
		"sync-66":  "1 started, next in 3589",
		"sync-69":  "1 started, next in 3589",
		"recent-5": "2016-05-20T12:30:00Z, few",
		"update-3": "next in 1",
	}
	agrees(t, rows, not, otherwise, func(t *testing.T, row peerRow) (got, want string) {
		switch row.Kind {
		case "update":
			from := row.Now.Add(-time.Minute)
			old, _ := row.at(row.OldSchedule, time.Unix(0, 0))
			to, _ := row.at(row.NewSchedule, time.Unix(0, 0))
			r, err := played(t, document{"start": rfc(from), "until": rfc(row.Now.Add(time.Hour)), "jobs": map[string]any{"job": map[string]any{"schedule": old, "target": anyHandler}},
				"script": []any{map[string]any{"at": rfc(row.Now), "do": "put", "job": "job", "definition": map[string]any{"schedule": to, "target": anyHandler}}}})
			if err != nil {
				t.Fatal(err)
			}
			return "next in " + next(r, row.Now), "next in " + fmt.Sprint(*row.Expect.Requeue)
		case "nominal_time_on_run":
			row.Schedule, row.Created, row.Now = "0 10 * * *", row.Nominal.Add(-time.Minute), row.Nominal
			r, _, err := row.cronJob(t)
			if err != nil || len(r.Runs) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			return rfc(r.Runs[0].NominalTime), row.Expect.Nominal
		}
		r, last, err := row.cronJob(t)
		started, _ := nominal(r, last, row.Now)
		newest := "none"
		if len(started) > 0 {
			newest = rfc(started[len(started)-1])
		}
		switch row.Kind {
		case "sync", "sync_known_bug":
			want = "refused"
			if row.Expect.Create != nil && !(strings.Contains(row.Schedule, "error") && *row.Expect.Create == 0) {
				want = fmt.Sprintf("%d started, next in ", *row.Expect.Create)
				if row.Expect.Requeue == nil {
					want += "none"
				} else {
					want += fmt.Sprint(*row.Expect.Requeue)
				}
			}
			got = fmt.Sprintf("%d started, next in %s", len(started), next(r, row.Now))
		case "due":
			want = "none"
			switch {
			case row.Expect.Error:
				want = "refused"
			case row.Expect.Due != nil && *row.Expect.Due == "any":
				if want = newest; newest == "none" {
					want = "any"
				}
			case row.Expect.Due != nil:
				want = *row.Expect.Due
			}
			got = newest
		case "most_recent":
			want, got = "none", newest
			if row.Expect.Recent != nil {
				want = rfc(*row.Expect.Recent)
			}
			var class string
			if err := json.Unmarshal(row.Expect.Missed, &class); err != nil {
				t.Fatal(err)
			}
			n := len(started) + missed(r)
			want += ", " + class
			switch {
			case n <= 1:
				got += ", none"
			case n <= 100:
				got += ", few"
			default:
				got += ", many"
			}
		case "time_to_next":
			return "next in " + next(r, row.Now), "next in " + fmt.Sprint(*row.Expect.Requeue)
		}
		if err != nil {
			got = "refused"
		}
		return got, want
	})
}

// policy is a catch-up policy of Cadence as Belfry has it.
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
		case row.Overlap != "SKIP_NEW" && row.Overlap != "CONCURRENT":
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
			limit := 1
			if row.Overlap == "CONCURRENT" {
				limit = row.Limit
			}
			script, outcomes := []any{}, []any{}
			for _, tracked := range row.Tracked {
				script = append(script, map[string]any{"at": "0s", "do": "trigger", "job": "job", "as": tracked.Run})
				outcomes = append(outcomes, map[string]map[string]any{"running": {"never": true}, "closed": {"takes": "1s"}}[tracked.State])
			}
			r, err := played(t, document{"start": "2026-01-15T09:59:00Z", "until": "1m", "script": script, "outcomes": map[string]any{"job": append(outcomes, map[string]any{"takes": "1s"})},
				"jobs": map[string]any{"job": map[string]any{"schedule": map[string]any{"cron": "0 * * * *"}, "target": anyHandler, "timeout": "1h", "overlap": map[string]any{"policy": "skip", "limit": limit}}}})
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
			started, skipped := nominal(r, at.Add(-time.Second), at)
			return fmt.Sprintf("%d started, %d skipped", len(started), len(skipped)), fmt.Sprintf("%d started, %d skipped", *row.Expect.Started, *row.Expect.Skipped)
		}
		t.Fatalf("kind %s", row.Kind)
		return "", ""
	})
}
