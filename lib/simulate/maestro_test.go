package simulate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// maestroInstance is a run of Maestro's: Instance counts those of a workflow.
type maestroInstance struct {
	Instance    int
	UUID, State string
}

// maestroStrategy is a run strategy of Maestro's as a text, a number or an object.
type maestroStrategy struct {
	Rule        string
	Concurrency *int
}

func (s *maestroStrategy) UnmarshalJSON(text []byte) error {
	type object maestroStrategy
	switch text[0] {
	case '"':
		return json.Unmarshal(text, &s.Rule)
	case '{':
		return json.Unmarshal(text, (*object)(s))
	}
	s.Rule = "PARALLEL"
	return json.Unmarshal(text, &s.Concurrency)
}

// overlap is a strategy as Belfry has it; "" for one that it has not.
func (s maestroStrategy) overlap() map[string]any {
	o := map[string]any{}
	switch strings.ToUpper(s.Rule) {
	case "":
	case "SEQUENTIAL":
		o["policy"] = "queue"
	case "FIRST_ONLY":
		o["policy"] = "skip"
	case "SERIAL_LATEST_ONLY":
		o["policy"] = "queue_latest"
	case "STRICT_SEQUENTIAL":
		o["policy"] = "strict"
	case "LAST_ONLY":
		o["policy"] = "replace"
	case "PARALLEL":
		o["policy"], o["limit"] = "allow", 20
	default:
		return nil
	}
	if s.Concurrency != nil {
		o["limit"] = *s.Concurrency
	}
	return o
}

func readAs[T any](t *testing.T, text json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// inTurn plays runs of a job without a schedule, each of which takes an hour behind those that outcomes has.
func inTurn(t *testing.T, overlap map[string]any, outcomes []any, script ...any) (simulate.Report, error) {
	t.Helper()
	definition := map[string]any{"target": anyHandler, "timeout": "24h", "retry": map[string]any{"max_attempts": 1}, "overlap": overlap}
	return plays(t, document{"start": "2026-01-05T00:00:00Z", "until": "1m", "jobs": map[string]any{"job": definition},
		"outcomes": map[string]any{"job": append(outcomes, map[string]any{"takes": "1h"})}, "script": script})
}

func asks(at time.Duration, names ...string) map[string]any {
	runs := []any{}
	for _, name := range names {
		runs = append(runs, map[string]any{"job": "job", "as": name})
	}
	return map[string]any{"at": at.String(), "do": "trigger", "runs": runs}
}

// stands is what has become of a run at last, in words of both.
func stands(state string) string {
	switch state {
	case "STOPPED", "skipped", "cancelled":
		return "stopped"
	case "FAILED", "dead":
		return "failed"
	}
	return "goes on"
}

// submitted plays new runs that meet what is there. The answer has what became of each, and then of all.
func (row peerRow) submitted(t *testing.T) string {
	t.Helper()
	strategy := readAs[maestroStrategy](t, row.Strategy)
	var outcomes, script []any
	var names []string
	began := strategy.overlap()
	if row.ID == "submit-15" {
		began = map[string]any{"policy": "allow", "limit": 20}
	}
	existing := readAs[[]maestroInstance](t, row.Existing)
	for i, there := range existing {
		if there.State == "FAILED" {
			outcomes = append(outcomes, map[string]any{"fails": "no"})
		}
		names = append(names, fmt.Sprint(there.Instance))
		script = append(script, asks(time.Duration(i+1)*time.Second, names[i]))
	}
	if row.ID == "submit-27" { // what is queued there waits here for a run in progress
		script = slices.Insert(script, 1, any(asks(1500*time.Millisecond, "other")))
	}
	switch row.ID {
	case "submit-3":
		script = append(script, map[string]any{"at": "9s", "do": "delete", "job": "job"})
	case "submit-15":
		script = append(script, map[string]any{"at": "9s", "do": "put", "job": "job", "definition": map[string]any{"target": anyHandler, "timeout": "24h", "overlap": strategy.overlap()}})
	}
	met := map[string]bool{} // new ones, and those that were opened again
	known := map[string]bool{}
	for i, s := range row.Submit {
		if known[s.UUID] { // a repeated request makes no run: that is left to the Idempotency-Key, which scripts have not
			continue
		}
		known[s.UUID] = true
		at := time.Duration(10+i) * time.Second
		name := fmt.Sprint(len(names) + 1)
		if s.RestartOf > 0 {
			name = fmt.Sprint(s.RestartOf)
			script = append(script, map[string]any{"at": at.String(), "do": "retry", "run": name})
		} else {
			names = append(names, name)
			script = append(script, asks(at, name))
		}
		met[name] = true
	}
	r, err := inTurn(t, began, outcomes, script...)
	if err != nil {
		t.Fatal(err)
	}
	result, after := []string{}, []string{}
	for _, one := range r.Runs {
		if *one.As == "other" {
			continue
		}
		after = append(after, *one.As+" "+stands(one.State))
		if met[*one.As] {
			verdict := "1"
			if one.State == "skipped" || one.State == "cancelled" {
				verdict = "-1"
			}
			result = append(result, verdict)
		}
	}
	if len(r.Refused) > 0 {
		return fmt.Sprintf("refused, %s", after)
	}
	return fmt.Sprintf("%s, %s", result, after)
}

// atOnce counts the runs that start as the first one does, since they need not wait for any other.
func atOnce(r simulate.Report) (n int) {
	for _, one := range r.Runs {
		if one.StartedAt != nil && one.StartedAt.Sub(r.Runs[0].NominalTime) < time.Minute {
			n++
		}
	}
	return n
}

// dequeued plays instances as they stand: those that have ended or run come first, and of those that are queued some start at once.
func (row peerRow) dequeued(t *testing.T) (got, want string) {
	t.Helper()
	var outcomes, script []any
	var queued []string
	if row.Existing[0] == '{' {
		for i := range readAs[struct{ Queued int }](t, row.Existing).Queued {
			queued = append(queued, fmt.Sprint(i+1))
		}
		script = append(script, asks(time.Second, queued...))
	} else {
		for i, there := range readAs[[]maestroInstance](t, row.Existing) {
			name := fmt.Sprint(there.Instance)
			script = append(script, asks(time.Duration(2*i+1)*time.Second, name))
			switch there.State {
			case "SUCCEEDED":
				outcomes = append(outcomes, map[string]any{"takes": "1s"})
			case "FAILED":
				outcomes = append(outcomes, map[string]any{"fails": "no"})
			case "queued":
				queued = append(queued, name)
			}
		}
	}
	r, err := inTurn(t, readAs[maestroStrategy](t, row.Strategy).overlap(), outcomes, script...)
	if err != nil {
		t.Fatal(err)
	}
	started := []int{}
	for _, one := range r.Runs {
		if slices.Contains(queued, *one.As) && one.StartedAt != nil && one.StartedAt.Sub(r.Runs[0].NominalTime) < time.Minute {
			n, err := strconv.Atoi(*one.As)
			if err != nil {
				t.Fatal(err)
			}
			started = append(started, n)
		}
	}
	if row.Expect.MayStart != nil {
		return fmt.Sprint(len(started)), fmt.Sprint(*row.Expect.MayStart)
	}
	return fmt.Sprint(started), fmt.Sprint(row.Expect.Starting)
}

func TestMaestroRunStrategies(t *testing.T) {
	rows := peerRows(t, "maestro-run-strategies.json")
	const again = "a request that is repeated is found by its Idempotency-Key, which scripts have not"
	not := map[string]string{
		"parse-21":  "a limit under last only, which Maestro refuses: of two in progress the earlier is ended",
		"submit-13": again,
		"submit-10": again,
		"submit-26": again,
		"submit-29": "a run that is made as failed; Belfry alone ends runs",
		"dequeue-5": "one that waits under first only, which neither has",
	}
	for _, row := range rows {
		of := row.Strategy
		if row.Kind == "parse" {
			of = row.Value
		}
		if readAs[maestroStrategy](t, of).overlap() == nil {
			not[row.ID] = "there is no such policy"
		}
	}
	otherwise := map[string]string{
		"submit-15": "[-1], [1 goes on 2 goes on 3 stopped]",
		"submit-24": "[1 1], [1 goes on 2 goes on]",
		"parse-6":   "refused",
		"parse-12":  "refused",
		"parse-17":  "2 at once",
		"parse-18":  "2 at once",
		"parse-20":  "2 at once",
	}
	agrees(t, rows, not, otherwise, func(t *testing.T, row peerRow) (got, want string) {
		switch row.Kind {
		case "submit":
			after := []string{}
			for _, is := range row.Expect.After {
				after = append(after, fmt.Sprint(is.Instance)+" "+stands(is.State))
			}
			slices.Sort(after)
			want = "refused"
			if row.Expect.Result[0] == '[' {
				want = fmt.Sprint(slices.DeleteFunc(readAs[[]int](t, row.Expect.Result), func(verdict int) bool { return verdict == 0 })) // of repeated requests
			}
			return row.submitted(t), fmt.Sprintf("%s, %s", want, after)
		case "dequeue":
			return row.dequeued(t)
		}
		want = "refused"
		if row.Expect.Valid {
			want = fmt.Sprintf("%d at once", row.Expect.Parallel)
		}
		r, err := inTurn(t, readAs[maestroStrategy](t, row.Value).overlap(), nil, asks(time.Second, "a", "b", "c"))
		if err != nil {
			return "refused", want
		}
		return fmt.Sprintf("%d at once", atOnce(r)), want
	})
}
