package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

func TestAMonthOfEachMinute(t *testing.T) {
	days := 31
	if testing.Short() {
		days = 3
	}
	r := play(t, fmt.Sprintf("until: %dh\njobs: {j: {schedule: {cron: \"* * * * *\"}, %s}}\noutcomes: {j: [{takes: 10s}]}\n", days*24, handler), simulate.Options{})
	if len(r.Runs) != days*24*60 || r.Open != 0 || r.Most.Jobs["j"] != 1 {
		t.Fatalf("%d runs, %d open, %v", len(r.Runs), r.Open, r.Most)
	}
	for i, one := range r.Runs {
		if want := time.Date(2026, 1, 5, 0, i+1, 0, 0, time.UTC); !one.NominalTime.Equal(want) || !one.StartedAt.Equal(want) || one.State != "succeeded" || len(one.Attempts) != 1 {
			t.Fatalf("run %d: %+v", i, one)
		}
	}
}

// Runs outlive their records, which expire after some weeks.
func TestAScenarioWithoutAnEnd(t *testing.T) {
	r := play(t, "jobs: {j: {schedule: {cron: \"30 2 * * *\", timezone: Europe/Berlin}, retention: 24h, "+handler+"}}\n", simulate.Options{})
	if len(r.Runs) != 400 || r.Stopped == nil || r.Stopped.Bound != simulate.BoundSpan || !r.Stopped.At.Equal(time.Date(2027, 2, 9, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("%d runs, stopped %+v", len(r.Runs), r.Stopped)
	}
	for _, text := range []string{
		onDemand("", "[{takes: 1s}]", triggerA),
		"jobs: {j: {schedule: {at: 2026-01-05T01:00:00Z}, " + handler + "}}\n",
		"jobs: {j: {schedule: {cron: \"* * * * *\", end: 2026-01-05T01:00:00Z}, " + handler + "}}\n",
		"jobs: {j: {schedule: {cron: \"* * * * *\"}, " + handler + "}}\nscript: [{at: 1h, do: pause, job: j}]\n",
	} {
		if r := play(t, text, simulate.Options{}); r.Stopped != nil || r.Open != 0 || len(r.Runs) == 0 {
			t.Errorf("%s: %d runs, %d open, stopped %+v", text, len(r.Runs), r.Open, r.Stopped)
		}
	}
}

// A run that was cancelled never runs, though it was due long after records of that day have expired.
func TestACancelAheadOfItsTimeLasts(t *testing.T) {
	for name, line := range map[string]string{"one": "run: far", "all of a job": "job: j"} {
		t.Run(name, func(t *testing.T) {
			r := play(t, "jobs: {j: {retention: 24h, "+handler+"}}\nscript:\n- {at: 0s, do: trigger, job: j, as: far, delay: 390d}\n- {at: 1h, do: cancel, "+line+"}\n", simulate.Options{})
			if len(r.Runs) != 1 || r.Runs[0].State != "cancelled" || len(r.Runs[0].Attempts) != 0 {
				t.Errorf("the runs are %+v", r.Runs)
			}
		})
	}
}

// A bound holds within an instant, too, at which a script may ask for any number of attempts.
func TestABoundHoldsWithinAnInstant(t *testing.T) {
	text := "jobs: {j: {retry: {max_attempts: 1}, " + handler + "}}\noutcomes: {j: [{fails: no}]}\nscript:\n- {at: 1s, do: trigger, runs: [{job: j}, {job: j}, {job: j}, {job: j}]}\n" +
		strings.Repeat("- {at: 2s, do: redrive, job: j}\n", 50)
	r := play(t, text, simulate.Options{Attempts: 10})
	attempts := 0
	for _, one := range r.Runs {
		attempts += len(one.Attempts)
	}
	if r.Stopped == nil || r.Stopped.Bound != simulate.BoundAttempts || attempts > 10+len(r.Runs) {
		t.Errorf("%d attempts, stopped %+v", attempts, r.Stopped)
	}
}

func TestBounds(t *testing.T) {
	often := "until: 24h\njobs: {j: {schedule: {every: 1s}, retry: {max_attempts: 100}, " + handler + "}}\noutcomes: {j: [{fails: no}]}\n"
	for _, c := range []struct {
		o    simulate.Options
		want string
	}{
		{simulate.Options{Runs: 100}, "runs 100"},
		{simulate.Options{Attempts: 500}, "attempts 500"},
	} {
		r := play(t, often, c.o)
		if r.Stopped == nil || r.Stopped.Bound+" "+r.Stopped.Limit != c.want || len(r.Runs) > 501 || r.Open == 0 {
			t.Errorf("%+v: stopped %+v behind %d runs, %d open; want by %s", c.o, r.Stopped, len(r.Runs), r.Open, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := simulate.Play(ctx, parse(t, often), simulate.Options{Progress: func(time.Time, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// A day without Belfry, under each policy.
func TestADayDown(t *testing.T) {
	for mode, want := range map[string]string{
		"none": "750 runs; 1440 skipped from 12h0m0s through 35h59m0s, missed: catch-up is none",
		"one":  "750 runs; 1440 skipped from 12h0m0s through 35h59m0s, missed: only the newest fire runs",
		"all":  "2190 runs",
	} {
		// It comes back with a fire, which is its job's newest then.
		r := play(t, "until: 36h30m\njobs: {j: {schedule: {cron: \"* * * * *\"}, catch_up: {mode: "+mode+"}, "+handler+"}}\nscript: [{at: 12h, do: down, for: 24h}]\n", simulate.Options{})
		got := fmt.Sprintf("%d runs", len(r.Runs))
		for _, s := range r.Skipped {
			at := func(t time.Time) time.Duration { return t.Sub(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)) }
			got += fmt.Sprintf("; %d skipped from %s through %s, %s", s.Count, at(s.From), at(s.Through), s.Reason)
		}
		if got != want || r.Open != 0 {
			t.Errorf("%s: %s, %d open; want %s", mode, got, r.Open, want)
		}
	}
}

// Timers outlive any downtime.
func TestTwoMonthsDown(t *testing.T) {
	r := play(t, "until: 65d\njobs: {j: {schedule: {every: 1d}, catch_up: {mode: none}, "+handler+"}}\nscript: [{at: 1s, do: down, for: 62d}]\n", simulate.Options{})
	if len(r.Runs) != 4 || len(r.Skipped) != 1 || r.Skipped[0].Count != 61 || r.Open != 0 {
		t.Errorf("%d runs, skipped %+v, %d open", len(r.Runs), r.Skipped, r.Open)
	}
}

// At one instant come ends, then lines as they stand, then fires by name; and from each follows what follows before the next.
func TestTheOrderOfAnInstant(t *testing.T) {
	text := `until: 11m
workers: 2
jobs:
  z: {schedule: {cron: "*/10 * * * *"}, overlap: skip, ` + handler + `}
  b: {schedule: {cron: "*/10 * * * *"}, ` + handler + `}
  a: {schedule: {cron: "*/10 * * * *"}, ` + handler + `}
  m: {timeout: 1h, ` + handler + `}
outcomes:
  m: [{takes: 9m, result: 1}, {takes: 9m, result: 2}, {takes: 0s, result: 3}, {takes: 1m, result: 4}]
  "*": [{takes: 10s}]
script:
  - {at: 10m, do: trigger, job: z, as: zz}
  - {at: 1m, do: trigger, job: m, as: first}
  - {at: 1m, do: trigger, job: m, as: second}
  - {at: 5m, do: trigger, job: m, as: third}
  - {at: 10m, do: trigger, job: m, as: fourth}
`
	// At 10m the first two end, the third starts and ends at once; zz and fourth take both places; then a, b and z wait for them.
	want := `first=m@1m0s 1m0s..10m0s succeeded: succeeded 1
second=m@1m0s 1m0s..10m0s succeeded: succeeded 2
third=m@5m0s 10m0s..10m0s succeeded: succeeded 3
a@10m0s 10m10s..10m20s succeeded: succeeded
b@10m0s 10m20s..10m30s succeeded: succeeded
fourth=m@10m0s 10m0s..11m0s succeeded: succeeded 4
z@10m0s 10m30s..10m40s succeeded: succeeded
zz=z@10m0s 10m0s..10m10s succeeded: succeeded`
	r := play(t, text, simulate.Options{})
	if got := said(r); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	if r.Most.Workers != 2 || r.Most.Jobs["m"] != 2 || r.Most.Jobs["z"] != 1 {
		t.Errorf("most %+v", r.Most)
	}
}

func TestLooks(t *testing.T) {
	r := play(t, every10("overlap: skip", "[{takes: 15m}]", "{at: 12m, do: look, as: early}", "{at: 20m, do: look, as: late}", "{at: 21m, do: delete, job: nobody}"), simulate.Options{})
	early, late := r.Looks["early"], r.Looks["late"]
	if len(r.Looks) != 2 || said(*early) != "j@10m0s 10m0s.. running: running\n1 open" || said(*late) != said(*early) || early.Looks != nil || len(r.Refused) != 1 {
		t.Errorf("looks %+v: %s", r.Looks, said(*early))
	}
	text, err := json.Marshal(early)
	if err != nil || strings.Contains(string(text), "looks") || !strings.Contains(string(text), `"skipped":[],`) {
		t.Errorf("a look is %s, %v", text, err)
	}
}
