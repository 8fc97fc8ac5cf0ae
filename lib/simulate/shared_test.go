package simulate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// sharedRow is a row of what other schedulers do at limits that several jobs, or steps, share: the file's semantics explain the fields.
type sharedRow struct {
	ID, Src  string
	Scenario document
	Expect   json.RawMessage
}

// elsewise is what Belfry says of the rows that it answers otherwise: a part of the report, or of the error by which it refuses the scenario.
// docs/simulate-peers.md says why.
var elsewise = map[string]string{
	"conc-inngest-what-counts": `{"runs": [{"as": "waits", "ended_at": "2026-01-05T00:01:21Z"}, {"as": "next", "started_at": "2026-01-05T00:01:21Z"}]}`,
	"queue-trigger-long-wait":  `{"runs": [{"as": "waits", "ended_at": "2026-01-05T00:02:21Z"}, {"as": "next", "started_at": "2026-01-05T00:02:21Z"}]}`,
	"conc-inngest-scope-key":   `{"refused": []}`,
	"conc-inngest-zero":        `gates.none.limit: got 0, want a whole number from 1 to 1000`,
	"strategy-cn-zero":         `gates.group.limit: got 0, want a whole number from 1 to 1000`,
	"units-1-all-or-none":      `{"runs": [{}, {"as": "2", "started_at": "2026-01-05T00:00:31Z"}, {"as": "3", "started_at": "2026-01-05T00:01:01Z"}]}`,
	"priority-hatchet":         `{"runs": [{}, {"as": "2", "started_at": "2026-01-05T00:01:01Z"}, {"as": "3", "started_at": "2026-01-05T00:00:31Z"}]}`,
	"fair-bullmq-max":          `{"refused": [], "runs": [{}, {}, {}, {}, {}, {}, {}, {"state": "succeeded"}, {"as": "8", "state": "skipped", "why": {"code": "full", "gate": "group", "key": "x"}}]}`,
	"unique-lock-outlived":     `{"runs": [{"as": "1", "state": "succeeded"}, {"as": "2", "state": "skipped", "why": {"code": "overlap", "key": "x"}}]}`,
	"unique-manual-delete":     `{"runs": [{"as": "1", "state": "cancelled"}, {"as": "2", "state": "succeeded"}]}`,
}

// Limits, units, keys, priorities and locks as Inngest, Hatchet, Trigger.dev, BullMQ, Oban and Sidekiq have them.
func TestSharedLimitsOfOthers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "peers", "shared-concurrency.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Source struct{ Sources map[string]any }
		Rows   []sharedRow
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, row := range file.Rows {
		met[row.ID] = true
		if file.Source.Sources[row.Src] == nil {
			t.Errorf("%s: the file does not say what %s is", row.ID, row.Src)
		}
		t.Run(row.ID, func(t *testing.T) {
			t.Parallel()
			differences := row.play(t, row.Expect)
			own, differs := elsewise[row.ID]
			if differs {
				if len(differences) == 0 {
					t.Error("both answer alike now: take it from the differences, here and in docs/simulate-peers.md")
				}
				if !strings.Contains(peersPage(t), "`"+row.ID+"`") {
					t.Error("docs/simulate-peers.md does not name it")
				}
				if !strings.HasPrefix(own, "{") {
					if !strings.Contains(strings.Join(differences, "\n"), own) {
						t.Errorf("got %q, want %q", differences, own)
					}
					return
				}
				differences = row.play(t, json.RawMessage(own))
			}
			for _, d := range differences {
				t.Error(d)
			}
		})
	}
	for id := range elsewise {
		if !met[id] {
			t.Errorf("there is no row %s", id)
		}
	}
}

// play plays the row, and lists what is otherwise than expected, or by what error it is refused.
func (row sharedRow) play(t *testing.T, expect json.RawMessage) (told []string) {
	t.Helper()
	jobs := map[string]any{}
	for name, definition := range row.Scenario["jobs"].(map[string]any) {
		whole := map[string]any{"timeout": "1h", "target": anyHandler}
		for field, value := range definition.(map[string]any) {
			whole[field] = value
		}
		jobs[name] = whole
	}
	d := document{"start": "2026-01-05T00:00:00Z", "until": "2h", "expect": expect}
	for field, value := range row.Scenario {
		d[field] = value
	}
	d["jobs"] = jobs
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.Parse("row.json", text)
	if err != nil {
		return []string{err.Error()}
	}
	report, err := simulate.Play(t.Context(), s, simulate.Options{})
	if err != nil || report.Stopped != nil {
		t.Fatalf("%v, stopped: %+v", err, report.Stopped)
	}
	differences, _, err := s.Expect.Compare(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		told = append(told, d.String())
	}
	return told
}
