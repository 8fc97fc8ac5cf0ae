package run_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

var within = job.Callback{Job: "tell", Window: schedule.Duration(10 * time.Minute)}

// ended are callbacks of runs of some jobs, which end one after the other.
func ended(jobs ...string) (calls []run.Run) {
	for i, name := range jobs {
		at := int64(1_800_000_000_000 + 1000*i)
		r := run.Run{ID: run.FireID(name, at), Tenant: "acme", State: run.Dead, Generation: 7, Ended: at + 500, Attempt: 1, Reason: "attempts spent",
			Attempts: []run.Attempt{{Number: 1, Error: strings.Repeat("é", 150)}}, Result: run.Ref{Inline: []byte("1")}}
		calls = append(calls, r.CallAt(job.OnFailed, "tell", within.Until(r.Ended)+7000))
	}
	return calls
}

func toldOf(t *testing.T, r run.Run) (told run.Told) {
	t.Helper()
	if err := json.Unmarshal(r.Payload.Inline, &told); err != nil {
		t.Fatal(err)
	}
	return told
}

// 08:00:00.5 lies in the window from 08:00 to 08:10.
func TestC2_ACallbackWithAWindowIsDueWhenItIsOver(t *testing.T) {
	due := time.Date(2027, 1, 15, 8, 10, 7, 0, time.UTC)
	one := ended("report")[0]
	if !one.ID.Time().Equal(due) || one.Created != 1_800_000_000_500 || one.Callback.Count != 0 {
		t.Errorf("called as %+v", one)
	}
	for at, want := range map[int64]int64{0: 600_000, 599_999: 600_000, 600_000: 1_200_000} {
		if got := within.Until(at); got != want {
			t.Errorf("what ends at %d is told at %d, want %d", at, got, want)
		}
	}
	// Its ID is of its end alone, whatever window it lies in.
	if id := ended("report")[0].ID; id != one.ID || id == ended("other")[0].ID || id == ended("report", "report")[1].ID {
		t.Errorf("its ID is %s", id)
	}
}

func TestC2_WhatIsToldTogether(t *testing.T) {
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprint("job-", i%100)
	}
	for what, c := range map[string]struct {
		calls [][]string // each told together first
		jobs  map[string]int
		named int
	}{
		"one":                 {[][]string{{"a"}}, map[string]int{"a": 1}, 1},
		"two of a job":        {[][]string{{"a", "a"}}, map[string]int{"a": 2}, 2},
		"of several":          {[][]string{{"a", "b", "a"}}, map[string]int{"a": 2, "b": 1}, 3},
		"joined later":        {[][]string{{"a", "b"}, {"c", "a"}, {"b"}}, map[string]int{"a": 2, "b": 2, "c": 1}, 5},
		"as many as is named": {[][]string{slices.Repeat([]string{"a"}, 20)}, map[string]int{"a": 20}, 20},
		"one more":            {[][]string{slices.Repeat([]string{"a"}, 20), {"b"}}, map[string]int{"a": 20, "b": 1}, 20},
		"many jobs":           {[][]string{many}, nil, 20},
	} {
		var flat []string
		for _, some := range c.calls {
			flat = append(flat, some...)
		}
		all := ended(flat...)
		var joined []run.Run
		for rest := all; len(c.calls) > 0; c.calls = c.calls[1:] {
			n := len(c.calls[0])
			joined, rest = append(joined, run.Together(rest[:n], within.Window.Std())), rest[n:]
		}
		got := run.Together(joined, within.Window.Std())
		told := toldOf(t, got)
		if got.ID != all[0].ID || got.Callback != (run.Callback{Event: "failed", Run: told.Run.ID, Count: len(all)}) || got.Created != all[0].Created {
			t.Errorf("%s: called as %+v", what, got)
		}
		if told.Count != len(all) || len(told.Runs) != c.named || c.jobs != nil && !maps.Equal(told.Jobs, c.jobs) || told.Event != job.OnFailed || string(told.Run.Result) != `"1"` ||
			!told.Window.From.Equal(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)) || !told.Window.Until.Equal(told.Window.From.Add(10*time.Minute)) {
			t.Errorf("%s: told %s", what, got.Payload.Inline)
		}
		for i, of := range told.Runs {
			if want := toldOf(t, all[i]).Run; of.ID != want.ID || of.State != "dead" || of.Reason != want.Reason || of.Result != nil || len(of.Error) > 200 || !strings.HasPrefix(of.Error, "éé") || of.Missed != nil {
				t.Errorf("%s: run %d is told as %+v", what, i, of)
			}
		}
		if c.jobs == nil {
			sum := 0
			for _, n := range told.Jobs {
				sum += n
			}
			if len(told.Jobs) != run.MaxTogether || sum != 3*run.MaxTogether {
				t.Errorf("%s: told of the jobs %v", what, told.Jobs)
			}
		}
		again := run.Together(joined, within.Window.Std())
		if string(again.Payload.Inline) != string(got.Payload.Inline) {
			t.Errorf("%s: told otherwise the second time", what)
		}
	}
}

func TestC2_MissedFiresAreToldTogether(t *testing.T) {
	var calls []run.Run
	for _, name := range []string{"a", "b"} {
		record, _ := run.Run{ID: run.FireID(name, 1_800_000_000_000), Tenant: "acme"}.Skip(run.Stretch{Generation: 7, Through: 1_800_000_300_000, Count: 6, Reason: "missed"}, 1_800_000_350_000, time.Hour)
		calls = append(calls, record.CallAt(job.OnMissed, "tell", within.Until(record.Ended)+7000))
	}
	told := toldOf(t, run.Together(calls, within.Window.Std()))
	if told.Count != 2 || told.Missed == nil || told.Missed.Count != 6 || told.Runs[1].Job != "b" || told.Runs[1].Missed == nil || told.Runs[1].Missed.Count != 6 {
		t.Errorf("told %+v", told)
	}
}

// The longest names and texts make a record that can be read, and that an item holds many times.
func TestTheLongestCallbackOfAWindowIsKept(t *testing.T) {
	var calls []run.Run
	for i := range 100 {
		name := fmt.Sprintf("%0128d", i)
		r := run.Run{ID: run.RequestID(name, 1_800_000_000_000, 1), Tenant: strings.Repeat("t", 128), State: run.Dead, Ended: 1_800_000_000_500, Reason: strings.Repeat("\x01", 120),
			Attempts: []run.Attempt{{Number: 1, Error: strings.Repeat("\x01", 240)}}, Result: run.Ref{Inline: []byte(strings.Repeat("\x01", run.MaxTold))}}
		calls = append(calls, r.CallAt(job.OnFailed, strings.Repeat("j", 128), within.Until(r.Ended)))
	}
	called := run.Together(calls, within.Window.Std())
	op, err := called.Item(1)
	if err != nil {
		t.Fatal(err)
	}
	var back run.Run
	if err := record.Decode(op.Value, &back); err != nil || back.Callback != called.Callback || string(back.Payload.Inline) != string(called.Payload.Inline) || len(op.Value) > 80<<10 {
		t.Errorf("%d bytes are read as %+v, %v", len(op.Value), back, err)
	}
}
