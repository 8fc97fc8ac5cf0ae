package flow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func TestAnInstantIsReadInItsZone(t *testing.T) {
	for text, want := range map[string]string{
		"2026-12-24T18:00:00Z":                "2026-12-24T18:00:00Z",
		"2026-12-24T18:00:00+01:00":           "2026-12-24T17:00:00Z",
		"2026-12-24T18:00:00.25Z":             "2026-12-24T18:00:00.25Z",
		"2026-12-24T18:00:00.0001Z":           "2026-12-24T18:00:00.001Z", // never before it
		"2026-12-24T18:00[Europe/Berlin]":     "2026-12-24T17:00:00Z",
		"2026-07-24T18:00:30[Europe/Berlin]":  "2026-07-24T16:00:30Z",
		"2026-03-29T02:30[Europe/Berlin]":     "2026-03-29T01:00:00Z", // which the clock does not show
		"2026-10-25T02:30[Europe/Berlin]":     "2026-10-25T00:30:00Z", // and which it shows twice
		"2026-12-24T18:00":                    `want an instant such as`,
		"2026-12-24":                          `want an instant such as`,
		"":                                    `want an instant such as`,
		"2026-12-24T18:00[Europe/Berlin":      `want an instant such as`,
		"2026-12-24T18:00[europe/berlin]":     `want "Europe/Berlin", in these capitals in the brackets`,
		"2026-12-24T18:00[]":                  `want an IANA time zone name`,
		"2026-12-24T18:00Z[Europe/Berlin]":    `want an instant such as`,
		"2026-12-24T25:00[Europe/Berlin]":     `want an instant such as`,
		strings.Repeat("2026-12-24", 100):     `want an instant such as`,
		"2026-12-24T18:00[" + "x/" + "\x00]":  `want an IANA time zone name`,
		"2026-12-24T18:00:00.5[Asia/Kolkata]": "2026-12-24T12:30:00.5Z",
	} {
		got, err := flow.ParseInstant(text)
		switch {
		case err != nil && (!strings.Contains(err.Error(), want) || len(invalid.All(err)) != 1):
			t.Errorf("%q: %v, want %s", text, err, want)
		case err == nil && got.Format(time.RFC3339Nano) != want:
			t.Errorf("%q is read as %s, want %s", text, got.Format(time.RFC3339Nano), want)
		}
	}
}

// A simulated wait lasts for what it says, or for what was told of it, and is cut off with the rest of its workflow.
func TestW2_ASimulationJumpsOverWaits(t *testing.T) {
	const steps = `"a": {"handler": {"name": "x"}}, "w": {"needs": ["a"], "wait": {"for": "3h"}}, "u": {"needs": ["a"], "wait": {"until": "${ .input.at }"}},
		"x": {"needs": ["a"], "wait": {"for": "1h"}, "when": ".input.no == 1"}, "b": {"needs": ["w", "u", "x"], "rule": "none_failed", "handler": {"name": "x"}}`
	for name, c := range map[string]struct{ more, outcomes, want string }{
		"as they say": {"", "", "succeeded in 3h2s\na succeeded at 1s, from 0s, attempts 1\nu succeeded at 2s, from 1s\nx succeeded at 1h1s, from 1s\n" +
			"w succeeded at 3h1s, from 1s\nb succeeded at 3h2s, from 3h1s, attempts 1"},
		"as was told": {"", `{"u": {"takes": "9h"}, "w": {"takes": "0s"}}`, "succeeded in 9h2s\na succeeded at 1s, from 0s, attempts 1\nw succeeded at 1s, from 1s\nx succeeded at 1h1s, from 1s\n" +
			"u succeeded at 9h1s, from 1s\nb succeeded at 9h2s, from 9h1s, attempts 1"},
		"failed": {"", `{"u": "failed"}`, "failed in 3h1s: u failed\na succeeded at 1s, from 0s, attempts 1\nu failed at 1s, from 1s\nb upstream_failed at 1s\nx succeeded at 1h1s, from 1s\n" +
			"w succeeded at 3h1s, from 1s"},
		"too long": {`"timeout": "3h", `, "", "failed in 3h: not over within its timeout of 3h\na succeeded at 1s, from 0s, attempts 1\nu succeeded at 2s, from 1s\nx succeeded at 1h1s, from 1s\n" +
			"w cancelled at 3h, from 1s\nb cancelled at 3h"},
	} {
		if got := played(t, workflow(t, `{`+c.more+`"steps": {`+steps+`}}`), c.outcomes); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestOutcomesOfWaitsNameWhatIsWrong(t *testing.T) {
	w := workflow(t, `{"steps": {"w": {"wait": {"for": "3h"}}, "u": {"wait": {"until": "${ .input.at }"}}}}`)
	for outcomes, want := range map[string]string{
		`{"w": "failed"}`:                           `nothing: this wait cannot fail`,
		`{"u": "skipped"}`:                          `failed, where an expression of the wait fails`,
		`{"u": {"state": "failed", "takes": "5s"}}`: `nothing beside the state failed`,
		`{"w": {"fails": 1}}`:                       `nothing: a wait has no attempts`,
		`{"w": {"to": "u"}}`:                        `nothing: only a switch chooses`,
		`{"w": {"result": 1}}`:                      `nothing: a wait has no result`,
		`{"w": 7}`:                                  `{"takes": "3d"} with how long it waits`,
	} {
		if _, err := w.ReadOutcomes([]byte(outcomes)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", outcomes, err, want)
		}
	}
}

// A wait is asked, and is not over before something is written of it. What follows from its end is that of any step.
func TestW2_AWaitIsAskedAndOpenUntilItEnds(t *testing.T) {
	w := workflow(t, `{"steps": {"w": {"wait": {"for": "3h"}}, "b": {"needs": ["w"], "handler": {"name": "x"}}, "c": {"needs": ["w"], "rule": "all_done", "handler": {"name": "x"}}}}`)
	n, _ := w.Node("w")
	facts := make([]flow.Fact, len(w.Nodes))
	if d := w.Plan(facts); !slices.Equal(d.Ask, []int{n.Index}) || len(d.Release) != 0 || d.Settled() {
		t.Errorf("before it was asked: %+v", d)
	}
	facts[n.Index] = flow.Fact{State: flow.Suspended, To: flow.None}
	if d := w.Plan(facts); len(d.Ask)+len(d.Release) != 0 || d.End != "" || d.States[n.Index] != flow.Suspended || !d.Settled() {
		t.Errorf("while it waits: %+v", d)
	}
	facts[n.Index].State = flow.Succeeded
	b, _ := w.Node("b")
	if d := w.Plan(facts); !slices.Equal(d.Release, []int{b.Index, b.Index + 1}) || d.Settled() {
		t.Errorf("when it has ended: %+v", d)
	}
}
