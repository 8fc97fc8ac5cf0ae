package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// waitsOf are the waits of a run as a table says them.
func waitsOf(r simulate.Report, as string) string {
	names := simulate.Names(r)
	var told []string
	for _, one := range r.Runs {
		for _, w := range one.Waits {
			if one.As != nil && *one.As == as {
				told = append(told, simulate.Waited(w, names))
			}
		}
	}
	return strings.Join(told, "; ")
}

// Runs of several jobs share a gate in units, and a report says where a run waited, for how long, and for whom.
func TestAReportSaysAtWhichGateARunWaited(t *testing.T) {
	r := play(t, `until: 1h
gates: {gpu: {limit: 3}, stripe: {limit: 1}}
jobs:
  own: {overlap: queue, gates: [stripe, {gate: gpu, units: 2}], timeout: 5m, target: {handler: {name: x}}}
  light: {gates: [gpu], timeout: 5m, target: {handler: {name: x}}}
  call: {gates: [stripe], timeout: 5m, target: {handler: {name: x}}}
outcomes:
  own: [{takes: 10s}]
  light: [{takes: 30s}]
  call: [{takes: 1m}]
script:
  - {at: 1s, do: trigger, runs: [{job: light, as: l1}, {job: light, as: l2}]}
  - {at: 2s, do: trigger, job: call, as: c}
  - {at: 3s, do: trigger, job: own, as: first}
  - {at: 4s, do: trigger, job: own, as: second}
  - {at: 5s, do: trigger, job: light, as: l3}
`, simulate.Options{})
	for as, want := range map[string]string{
		"l1": "", "c": "",
		"first":  "waited 28s at gpu, while l1 and l2 were in progress; waited 31s at stripe, while c was in progress",
		"second": "waited 68s at job:own, while first was in progress",
		"l3":     "waited 26s at gpu, while l1 and l2 were in progress", // behind the heavy one, though a unit was free
	} {
		if got := waitsOf(r, as); got != want {
			t.Errorf("%s: %q, want %q", as, got, want)
		}
	}
	if got := fmt.Sprint(r.Most.Gates); got != "map[gpu:3 stripe:1]" || r.Open != 0 {
		t.Errorf("at most %s units, %d open", got, r.Open)
	}
}

// A retry holds its units, and a unit that was given back is not counted twice.
func TestUnitsAreHeldThroughRetries(t *testing.T) {
	r := play(t, `until: 1h
gates: {stripe: {limit: 1}}
jobs:
  flaky: {gates: [stripe], retry: {initial: 10s, factor: 1, max_attempts: 3}, target: {handler: {name: x}}}
outcomes: {flaky: [{fails: "no"}, {fails: "no"}, {takes: 1s}]}
script:
  - {at: 1s, do: trigger, job: flaky, as: a}
  - {at: 2s, do: trigger, job: flaky, as: b}
`, simulate.Options{})
	if got := waitsOf(r, "b"); got != "waited 40s at stripe, while a was in progress" {
		t.Errorf("it %s", got)
	}
	if r.Most.Gates["stripe"] != 1 {
		t.Errorf("units: %v", r.Most.Gates)
	}
}

// Of a gate that runs pass by a key, the most that was in progress is of all values together, and who has ended counts no more.
func TestUnitsOfAllValuesAreCountedTogether(t *testing.T) {
	r := play(t, `until: 1h
gates: {customer: {limit: 2}}
jobs:
  charge: {gates: [{gate: customer, key: "${ .payload }"}], timeout: 5m, target: {handler: {name: x}}}
outcomes: {charge: [{takes: 10s}]}
script:
  - {at: 1s, do: trigger, runs: [{job: charge, payload: a}, {job: charge, payload: a}, {job: charge, payload: a}, {job: charge, payload: b}]}
  - {at: 12s, do: trigger, runs: [{job: charge, payload: b}, {job: charge, payload: c}, {job: charge, payload: d}]}
`, simulate.Options{})
	if got := fmt.Sprint(r.Most.Gates); got != "map[customer:4]" || r.Open != 0 {
		t.Errorf("at most %s units, %d open", got, r.Open)
	}
}

// Where all that is left waits for what nobody does any more, the simulation is at its end.
func TestRunsThatNobodyLetsInEndASimulation(t *testing.T) {
	const jobs = `until: 1h
gates: {stripe: {limit: 1}, gpu: {limit: 1}}
jobs:
  charge: {gates: [stripe], target: {handler: {name: x}}}
  queued: {overlap: queue, target: {handler: {name: x}}}
  both: {gates: [gpu, stripe], target: {handler: {name: x}}}
  late: {gates: [stripe], expires_after: 5h, target: {handler: {name: x}}}
outcomes: {"*": [{takes: 20s}]}
script:
`
	for name, row := range map[string]struct {
		script string
		want   string
	}{
		"a closed gate": {`
  - {at: 1m, do: close, gate: stripe}
  - {at: 2m, do: trigger, job: charge}`, "charge waiting: 1"},
		"who is held by one that waits at a closed gate": {`
  - {at: 1m, do: close, gate: stripe}
  - {at: 2m, do: trigger, job: both}
  - {at: 3m, do: trigger, job: both}`, "both waiting: 2"},
		"a paused job": {`
  - {at: 1m, do: trigger, runs: [{job: queued}, {job: queued}]}
  - {at: 1m1s, do: pause, job: queued}`, "queued succeeded: 1\nqueued waiting: 1"},
		"a paused job at a named gate": {`
  - {at: 1m, do: trigger, runs: [{job: charge}, {job: charge}]}
  - {at: 1m1s, do: pause, job: charge}`, "charge succeeded: 1\ncharge waiting: 1"},
		"who expires": {`
  - {at: 1m, do: close, gate: stripe}
  - {at: 2m, do: trigger, job: late}`, "late skipped: 1"},
		"a gate that is opened after a day": {`
  - {at: 1m, do: close, gate: stripe}
  - {at: 2m, do: trigger, job: charge}
  - {at: 1d, do: open, gate: stripe}`, "charge succeeded: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, jobs+row.script+"\n", simulate.Options{})
			if got := ends(r); got != row.want || r.Stopped != nil {
				t.Errorf("it says\n%s\nwant\n%s\nstopped: %+v", got, row.want, r.Stopped)
			}
		})
	}
}

// A server that is killed behind any write comes to the same with gates and with what people do to them.
func TestCutsChangeNothingAtGates(t *testing.T) {
	text := `until: 3h
gates: {stripe: {limit: 2, max_waiting: 40}, gpu: {limit: 3, order: fifo}}
jobs:
  a: {gates: [stripe], timeout: 1h, target: {handler: {name: a}}}
  b: {gates: [{gate: gpu, units: 2}, stripe], timeout: 1h, target: {handler: {name: b}}}
  c: {gates: [gpu], timeout: 1h, target: {handler: {name: c}}}
outcomes:
  a: [{takes: 90s}]
  b: [{takes: 2m}]
  c: [{takes: 10s}]
script:
  - {at: 21m, do: close, gate: stripe, reason: "they are down"}
  - {at: 22m, do: trigger, job: c, as: first}
  - {at: 41m, do: open, gate: stripe}
  - {at: 61m30s, do: gate, name: gpu, definition: {limit: 2}}
  - {at: 91m30s, do: gate, name: stripe, definition: null}
  - {at: 92m, do: open, gate: stripe}
  - {at: 121m30s, do: gate, name: stripe, definition: {limit: 3}}
  - {at: 122m, do: release, run: first}
`
	for minute := 2; minute <= 180; minute += 2 {
		text += fmt.Sprintf("  - {at: %dm, do: trigger, runs: [{job: a}, {job: b}, {job: a}]}\n", minute)
	}
	want := ends(play(t, text, simulate.Options{}))
	if !strings.Contains(want, "line 6 gate_not_found: 1") || !strings.Contains(want, "line 8 run_not_waiting: 1") || strings.Contains(want, "line 5") {
		t.Fatalf("without cuts it says\n%s", want)
	}
	for _, cut := range []int{simulate.LeastCut, 23} {
		t.Run(fmt.Sprint("each ", cut), func(t *testing.T) {
			t.Parallel()
			if got := ends(play(t, text, simulate.Options{Cut: cut})); got != want {
				t.Errorf("it says\n%s\nand without cuts\n%s", got, want)
			}
		})
	}
}

func TestAWaitInWords(t *testing.T) {
	from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	to := from.Add(30 * time.Second)
	names := map[string]string{"x~1": "one", "x~2": "two", "x~3": "three", "x~4": "four"}
	for want, w := range map[string]simulate.Wait{
		"waited 30s at stripe": {Gate: "stripe", From: from, To: &to},
		"waits at job:a for the key acme, while one was in progress":                {Gate: "job:a", Key: "acme", From: from, InTheWay: []string{"x~1"}},
		"waits at a, while one, two and x~9 were in progress":                       {Gate: "a", From: from, InTheWay: []string{"x~1", "x~2", "x~9"}},
		"waited 30s at stripe, while one, two and at least 2 more were in progress": {Gate: "stripe", From: from, To: &to, InTheWay: []string{"x~1", "x~2", "x~3", "x~4"}},
	} {
		if got := simulate.Waited(w, names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
