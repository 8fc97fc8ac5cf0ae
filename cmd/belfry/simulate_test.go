package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

const nightScenario = `start: 2026-01-05T00:00:00Z
until: 1h
jobs:
  report: {schedule: {cron: "*/10 * * * *"}, overlap: skip, timeout: 1h, target: {handler: {name: report}}}
  mail: {target: {handler: {name: mail}}, retry: {max_attempts: 2, initial: 1m}}
outcomes:
  report: [{takes: 25m}, {takes: 1s}]
  mail: [{takes: 1s, fails: "boom\u001b[31m"}]
script:
  - {at: 5m, do: trigger, job: mail, as: welcome}
  - {at: 6m, do: trigger, job: nobody}
`

func scenarioFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestASimulationAsATable(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "night.yaml", nightScenario)
	got := belfry(t, "", "simulate", file)
	want := `JOB     AS       DUE                  STATE      STARTED   ENDED     ATTEMPTS  WHY
mail    welcome  2026-01-05 00:05:00  dead       00:05:00  00:07:02  2         attempts spent: handler: boom [31m
report           2026-01-05 00:10:00  succeeded  00:10:00  00:35:00  1
report           2026-01-05 00:20:00  skipped              00:20:00  0         report@2026-01-05T00:10:00Z was in progress (overlap: skip)
report           2026-01-05 00:30:00  skipped              00:30:00  0         report@2026-01-05T00:10:00Z was in progress (overlap: skip)
report           2026-01-05 00:40:00  succeeded  00:40:00  00:40:01  1
report           2026-01-05 00:50:00  succeeded  00:50:00  00:50:01  1
report           2026-01-05 01:00:00  succeeded  01:00:00  01:00:01  1

Lines of the script that Belfry refused:
LINE  AT                   CODE           WHY
2     2026-01-05 00:06:00  job_not_found  there is no job nobody

7 runs: 4 succeeded, 2 skipped, 1 dead; 6 attempts; 1 refused line. At most 1 attempt at once.
`
	if got.code != exitOK || got.out != want || got.errors != "" {
		t.Errorf("code %d, stderr %q, stdout\n%s\nwant\n%s", got.code, got.errors, got.out, want)
	}
	if again := belfry(t, nightScenario, "simulate", "-"); again.out != want {
		t.Errorf("standard input gives\n%s", again.out)
	}
	if got := belfry(t, "", "simulate", file, "-n", "2").out; !strings.Contains(got, "\nand 5 runs more; -n 0 shows all\n") || !strings.Contains(got, "7 runs: ") {
		t.Errorf("two runs are shown as\n%s", got)
	}
	if got := belfry(t, "", "simulate", file, "--timezone", "Europe/Berlin").out; !strings.Contains(got, "2026-01-05 01:05:00  dead       01:05:00") {
		t.Errorf("in Berlin it is\n%s", got)
	}
}

// Steps stand below their run, named as outcomes name them.
func TestASimulationWithWorkflows(t *testing.T) {
	const text = `start: 2026-01-05T00:00:00Z
until: 1h
jobs:
  etl:
    schedule: {every: 30m}
    target:
      workflow:
        steps:
          a: {handler: {name: a}, retry: {max_attempts: 2, initial: 1s, factor: 1}}
          s: {needs: [a], rule: all_done, switch: [{when: .steps.a.state == "succeeded", to: b}, {to: c}]}
          b: {pass: {}}
          c: {fail: {code: no_rows, message: there are none}}
          d: {needs: [a], handler: {name: d}}
outcomes:
  etl/a: [{takes: 10s, fails: busy, code: full}, {takes: 5s}, {fails: broken, permanent: true}]
  etl/d: [{takes: 20s}]
`
	file := scenarioFile(t, t.TempDir(), "flow.yaml", text)
	want := `JOB    DUE                  STATE            STARTED   ENDED     ATTEMPTS  WHY
etl    2026-01-05 00:30:00  succeeded        00:30:00  00:30:37
etl/a                       succeeded        00:30:00  00:30:17  2
etl/d                       succeeded        00:30:17  00:30:37  1
etl/s                       succeeded        00:30:17  00:30:17            it chose b
etl/b                       succeeded
etl/c                       skipped
etl    2026-01-05 01:00:00  failed           01:00:00  01:00:00            step a is failed: handler: broken
etl/a                       failed           01:00:00  01:00:00  1         permanent failure: handler: broken
etl/s                       succeeded        01:00:00  01:00:00            it chose c
etl/b                       skipped
etl/c                       failed                                         no_rows: there are none
etl/d                       upstream_failed

2 runs: 1 succeeded, 1 failed; 10 steps; 4 attempts. At most 1 attempt at once.
`
	if got := belfry(t, "", "simulate", file); got.code != exitOK || got.out != want || got.errors != "" {
		t.Errorf("code %d, stderr %q, stdout\n%s\nwant\n%s", got.code, got.errors, got.out, want)
	}
	if got := belfry(t, "", "simulate", file, "-n", "7").out; !strings.Contains(got, "etl/c                       skipped\n\nand 1 run more; -n 0 shows all\n") {
		t.Errorf("seven lines are\n%s", got)
	}
}

// A table says at which gate a run waited, for how long and for whom, and how full gates were.
func TestASimulationWithGates(t *testing.T) {
	const text = `start: 2026-01-05T00:00:00Z
until: 1h
gates: {stripe: {limit: 1}, unused: {limit: 1}}
jobs:
  charge: {gates: [stripe], timeout: 5m, target: {handler: {name: x}}}
  own: {overlap: queue, timeout: 5m, target: {handler: {name: x}}}
outcomes: {"*": [{takes: 40s}]}
script:
  - {at: 1m, do: trigger, runs: [{job: charge, as: one}, {job: own, as: mine}]}
  - {at: 1m10s, do: trigger, runs: [{job: charge, as: two}, {job: own, as: next}]}
  - {at: 1m35s, do: close, gate: stripe}
`
	file := scenarioFile(t, t.TempDir(), "gates.yaml", text)
	want := `JOB     AS    DUE                  STATE      STARTED   ENDED     ATTEMPTS  WHY
charge  one   2026-01-05 00:01:00  succeeded  00:01:00  00:01:40  1
own     mine  2026-01-05 00:01:00  succeeded  00:01:00  00:01:40  1
charge  two   2026-01-05 00:01:10  waiting                        0         waits at stripe, while one was in progress
own     next  2026-01-05 00:01:10  succeeded  00:01:40  00:02:20  1         waited 30s at job:own, while mine was in progress

Gates:
GATE    MOST UNITS  WAITS  MEAN  LONGEST
stripe  1           1      70s   70s
unused  0           0

4 runs: 1 waiting, 3 succeeded; 3 attempts; 1 not ended. At most 2 attempts at once.
`
	if got := belfry(t, "", "simulate", file); got.code != exitOK || got.out != want {
		t.Errorf("code %d, stderr %q, stdout\n%s\nwant\n%s", got.code, got.errors, got.out, want)
	}
	if svg := belfry(t, "", "simulate", file, "--chart=svg").out; !strings.Contains(svg, "<title>two, charge at 2026-01-05 00:01:10: waits at stripe, while one was in progress</title>") {
		t.Errorf("the chart is\n%s", svg)
	}
	if got := belfry(t, strings.Replace(text, "gates: [stripe]", "gates: [strpe]", 1), "simulate", "-"); got.code != exitUsage || !strings.Contains(got.errors, `line 5: jobs.charge.gates[0].gate: got "strpe", want a gate of this scenario, under gates; did you mean "stripe"?`) {
		t.Errorf("code %d, %s", got.code, got.errors)
	}
}

func TestASimulationAsADocument(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "night.yaml", nightScenario)
	got := belfry(t, "", "simulate", file, "-o", "json")
	r := decode[simulate.Report](t, got.out)
	if got.code != exitOK || len(r.Runs) != 7 || *r.Runs[0].As != "welcome" || len(r.Refused) != 1 || r.Runs[2].Why.Policy != "skip" {
		t.Errorf("code %d: %+v", got.code, r)
	}
	if yaml := belfry(t, "", "simulate", file, "-o", "yaml").out; !strings.HasPrefix(yaml, "runs:\n") {
		t.Errorf("as YAML %.100s", yaml)
	}
	if strings.Contains(got.out, "\x1b") {
		t.Error("a terminal would act on it")
	}
}

func TestASimulationAsAChart(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "night.yaml", nightScenario)
	for _, flag := range []string{"--chart", "--chart=text"} {
		if got := belfry(t, "", "simulate", file, flag); got.code != exitOK || !strings.HasPrefix(got.out, "mail   │") || !strings.Contains(got.out, "× skipped") {
			t.Errorf("code %d:\n%s", got.code, got.out)
		}
	}
	if got := belfry(t, "", "simulate", file, "--chart=svg"); got.code != exitOK || !strings.HasPrefix(got.out, "<svg ") || strings.Contains(got.out, "\x1b") {
		t.Errorf("code %d: %.200s", got.code, got.out)
	}
	for _, args := range [][]string{{"--chart=png"}, {"--chart", "-o", "json"}, {"-n", "-1"}, {"--cut", "3"}, {"--cut", "-1"}, {file, "--chart"}} {
		if got := belfry(t, "", append([]string{"simulate", file}, args...)...); got.code != exitUsage || got.out != "" {
			t.Errorf("%q: code %d, %s", args, got.code, got.out)
		}
	}
}

func TestWhatAScenarioExpects(t *testing.T) {
	folder := t.TempDir()
	const end = "expect:\n  open: 0\n  looks: {}\n  refused: [{code: job_not_found}, null]\n  runs:\n  - {as: welcome, attempts: [{outcome: failed}, {outcome: failed}, null]}\n  - {job: report, state: %s, why: null}\n"
	holds := scenarioFile(t, folder, "holds.yaml", nightScenario+strings.Replace(end, "%s", "succeeded", 1))
	differs := scenarioFile(t, folder, "differs.yaml", nightScenario+strings.Replace(end, "%s", "dead", 1))
	if got := belfry(t, "", "simulate", holds); got.code != exitOK || !strings.HasSuffix(got.out, "All that the file expects holds.\n") {
		t.Errorf("code %d:\n%s%s", got.code, got.out, got.errors)
	}
	got := belfry(t, "", "simulate", differs, "-o", "json")
	if want := differs + ", line 18: runs[1].state: want \"dead\", got \"succeeded\"\n"; got.code != exitFailed || got.errors != want {
		t.Errorf("code %d, stderr %q, want %q", got.code, got.errors, want)
	}
	if r := decode[simulate.Report](t, got.out); len(r.Runs) != 7 {
		t.Errorf("the report is %+v", r)
	}
}

func TestAFolderOfScenariosIsASuite(t *testing.T) {
	folder := t.TempDir()
	scenarioFile(t, folder, "a.yaml", nightScenario)
	scenarioFile(t, folder, "b.yaml", nightScenario+"expect: {open: 0}\n")
	scenarioFile(t, folder, "deep/c.json", `{"start": "2026-01-05T00:00:00Z"}`)
	suite := func(code int, args ...string) outcome {
		t.Helper()
		got := belfry(t, "", append([]string{"simulate"}, args...)...)
		if got.code != code {
			t.Errorf("%q: code %d, want %d\n%s%s", args, got.code, code, got.out, got.errors)
		}
		got.out = strings.ReplaceAll(got.out, folder, "F")
		got.errors = strings.ReplaceAll(got.errors, folder, "F")
		return got
	}
	if got := suite(exitOK, folder).out; !strings.HasSuffix(got, "  RESULT  RUNS  NOTE\nF/a.yaml  ok      7     expects nothing\nF/b.yaml  ok      7\n") {
		t.Errorf("the folder is\n%s", got)
	}
	if got := suite(exitOK, folder, "-R").out; !strings.Contains(got, "F/deep/c.json  ok      0     expects nothing") {
		t.Errorf("with its folders it is\n%s", got)
	}
	scenarioFile(t, folder, "c.yaml", nightScenario+"expect: {open: 1}\n")
	if got := suite(exitFailed, folder); !strings.Contains(got.out, "F/c.yaml  differs  7     1 difference\n") || got.errors != "F/c.yaml, line 12: open: want 1, got 0\n" {
		t.Errorf("%s%s", got.out, got.errors)
	}
	scenarioFile(t, folder, "d.yaml", nightScenario+"expct: {}\nuntli: 1h\n")
	got := suite(exitUsage, folder)
	if want := "F/c.yaml, line 12: open: want 1, got 0\nF/d.yaml, line 12: expct: unknown field; did you mean \"expect\"?\nF/d.yaml, line 13: untli: unknown field; did you mean \"until\"?\n"; got.errors != want {
		t.Errorf("stderr\n%s\nwant\n%s", got.errors, want)
	}
	if !strings.Contains(got.out, "F/d.yaml  bad            2 mistakes\n") {
		t.Errorf("%s", got.out)
	}
	all := decode[[]played](t, suite(exitUsage, folder, "-o", "json").out)
	if len(all) != 4 || all[2].Result != "differs" || all[2].Differences[0].Field != "open" || len(all[0].Report.Runs) != 7 || all[3].Mistakes[1].Line != 13 || all[3].Report != nil {
		t.Errorf("as JSON %+v", all)
	}
	if got := suite(exitUsage, filepath.Join(folder, "a.yaml"), filepath.Join(folder, "none.yaml")); !strings.Contains(got.errors, "none.yaml") {
		t.Errorf("a file that is not there: %s%s", got.out, got.errors)
	}
}

// Of what is wrong, so much is listed as anybody reads, and all is counted.
func TestAllThatIsWrongIsCounted(t *testing.T) {
	folder := t.TempDir()
	scenarioFile(t, folder, "bad.yaml", "start: 2026-01-05T00:00:00Z\nscript:\n"+strings.Repeat("- {at: 1m, do: pause}\n", 230))
	scenarioFile(t, folder, "differs.yaml", nightScenario+"expect: {runs: ["+strings.Repeat("{job: x}, ", 240)+"]}\n")
	got := belfry(t, "", "simulate", folder)
	for _, want := range []string{"230 mistakes\n", "240 differences\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%s\nwant %q", got.out, want)
		}
	}
	for _, want := range []string{"bad.yaml: and 130 more\n", "differs.yaml: and 140 more\n"} {
		if !strings.Contains(got.errors, want) {
			t.Errorf("%s\nwant %q", got.errors, want)
		}
	}
}

func TestAFileThatIsNoScenario(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "bad.yaml", "start: 2026-01-05T00:00:00Z\nsript: []\ncalendars: {}\n")
	got := belfry(t, "", "simulate", file)
	want := file + ", line 2: sript: unknown field; did you mean \"script\"?\n" + file + ", line 3: calendars: not built yet; leave it out\n"
	if got.code != exitUsage || got.out != "" || got.errors != want {
		t.Errorf("code %d, stdout %q, stderr %q, want %q", got.code, got.out, got.errors, want)
	}
	if got := belfry(t, "", "simulate", filepath.Join(t.TempDir(), "none.yaml")); got.code != exitUsage {
		t.Errorf("no file: code %d, %s", got.code, got.errors)
	}
	if got := belfry(t, "", "simulate"); got.code != exitUsage {
		t.Errorf("nothing: code %d", got.code)
	}
}

func TestAScenarioWithoutEndSaysWhereItStopped(t *testing.T) {
	const endless = "start: 2026-01-05T00:00:00Z\njobs: {a: {schedule: {cron: \"@daily\"}, target: {handler: {name: a}}}}"
	got := belfry(t, endless, "simulate", "-")
	if want := "The simulation was stopped at 2027-02-09T00:00:00Z: without \"until\", a scenario lasts at most 400d.\n"; got.code != exitOK || got.errors != want {
		t.Errorf("code %d, stderr %q, want %q", got.code, got.errors, want)
	}
	if !strings.Contains(got.out, "400 runs: 400 succeeded; 400 attempts.") {
		t.Errorf("%s", got.out)
	}
	file := scenarioFile(t, t.TempDir(), "a.yaml", endless)
	if got := belfry(t, "", "simulate", filepath.Dir(file)); got.code != exitOK || !strings.HasSuffix(got.out, "  400   expects nothing, stopped after 400d\n") {
		t.Errorf("in a suite: code %d\n%s%s", got.code, got.out, got.errors)
	}
	if got, want := stoppedInShort(simulate.Stopped{Bound: simulate.BoundRuns, Limit: "1000000"}), "stopped at 1000000 runs"; got != want {
		t.Errorf("of another bound it says %q, want %q", got, want)
	}
}

// What a kill leaves is recovered: the same runs, in the same states.
func TestASimulationWithKills(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "night.yaml", nightScenario+"expect: {runs: [{state: dead}, {state: succeeded}, {state: skipped}, {state: skipped}, {state: succeeded}, {state: succeeded}, {state: succeeded}, null], open: 0}\n")
	for _, cut := range []string{"10", "13", "50"} {
		if got := belfry(t, "", "simulate", file, "--cut", cut); got.code != exitOK {
			t.Errorf("--cut %s: code %d\n%s%s", cut, got.code, got.out, got.errors)
		}
	}
}

// Whatever shows times shows them in the zone that is asked for, and in UTC without one.
func TestTimesAreShownInAZone(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "a.yaml", nightScenario)
	for args, times := range map[string][2]string{"": {"2026-01-05 00:10:00", "2026-01-05 09:10:00"}, "--chart": {" 00:00 ", " 09:00 "},
		"--chart=svg": {"2026-01-05 00:10:00", "2026-01-05 09:10:00"}} {
		for i, zone := range []string{"", "Asia/Tokyo"} {
			all := append([]string{"simulate", file}, strings.Fields(args)...)
			if zone != "" {
				all = append(all, "--timezone", zone)
			}
			if got := belfry(t, "", all...); !strings.Contains(got.out, times[i]) || strings.Contains(got.out, times[1-i]) {
				t.Errorf("%s in %q: want %q, and not %q\n%s", args, zone, times[i], times[1-i], got.out)
			}
		}
	}
}

func TestASeedDrawsWaits(t *testing.T) {
	file := scenarioFile(t, t.TempDir(), "a.yaml", "start: 2026-01-05T00:00:00Z\njobs: {a: {retry: {initial: 1h, max: 2h}, target: {handler: {name: a}}}}\noutcomes: {a: [{fails: x}]}\nscript: [{at: 0s, do: trigger, job: a}]\n")
	of := func(args ...string) string { return belfry(t, "", append([]string{"simulate", file}, args...)...).out }
	bound, one := of(), of("--seed", "1")
	if bound != of() || one != of("--seed", "1") || one == of("--seed", "2") || bound == of("--seed", "0") {
		t.Error("the same seed gives the same, another one something else, and none the upper bound")
	}
}

// A server plays what the command plays, and answers with the same report.
func TestAServerSimulatesAsTheCommandDoes(t *testing.T) {
	const scenario = `{"start": "2026-01-05T00:00:00Z", "until": "1h", "events": true, "jobs": {"a": {"schedule": {"every": "10m"}, "target": {"handler": {"name": "a"}}}}, "outcomes": {"a": [{"takes": "1s", "fails": "boom"}, {"takes": "2s"}]}}`
	answer, err := http.Post(dev(t, "--data", t.TempDir())+"/v1/simulate", "application/json", strings.NewReader(scenario))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var far, near any
	if err := json.NewDecoder(answer.Body).Decode(&far); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", answer.StatusCode, err)
	}
	if err := json.Unmarshal([]byte(belfry(t, scenario, "simulate", "-", "-o", "json").out), &near); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(far, near) {
		t.Errorf("the server gives %v, the command %v", far, near)
	}
}
