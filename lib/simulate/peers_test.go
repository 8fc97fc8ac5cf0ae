package simulate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	Strategy, Value   json.RawMessage // a rule, a number, or {rule, concurrency}
	Existing          json.RawMessage // instances, or how many are queued
	Submit            []struct {
		UUID      string
		RestartOf int `json:"restart_of"`
	}
	temporalRow

	Expect struct {
		Create      *int
		Requeue     *float64 `json:"requeue_after_s"`
		Error       bool
		Due         *string
		Recent      *time.Time
		Missed      json.RawMessage // instants, or none, few or many
		Next        *time.Time
		Fired       json.RawMessage // instants, or a number
		Skipped     *int
		Started     *int
		Terminated  int
		CancelAsked int             `json:"cancel_asked"`
		FiredN      *int            `json:"fired_counter"`
		SkippedN    *int            `json:"skipped_counter"`
		Nominal     string          `json:"nominal_text"`
		Buffered    json.RawMessage // a number, or whether
		Result      json.RawMessage // for each that is submitted, or an error
		After       []maestroInstance
		MayStart    *int  `json:"may_start_count"`
		Starting    []int `json:"may_start"` // where MayStart does not say how many
		Valid       bool
		Parallel    int `json:"concurrency"`
		temporalExpect
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

// plays plays a scenario, whatever it refuses; an error says what is wrong with it.
func plays(t *testing.T, d document) (simulate.Report, error) {
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
	if report.Stopped != nil {
		t.Fatalf("%s\nis stopped by %+v", text, report.Stopped)
	}
	return report, nil
}

// played plays a scenario of which nothing is refused.
func played(t *testing.T, d document) (simulate.Report, error) {
	t.Helper()
	report, err := plays(t, d)
	if len(report.Refused) > 0 {
		t.Fatalf("%v\ngives %+v", d, report.Refused)
	}
	return report, err
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
