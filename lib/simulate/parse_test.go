package simulate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/simulate"
)

const whole = `
start: 2026-01-05T00:00:00Z
until: 3h
workers: 7
jobs:
  report: {schedule: {cron: "*/10 * * * *"}, overlap: skip, timeout: 1h, target: {handler: {name: report}}}
  mail: {target: {http: {url: "https://example.org/mail"}}, retry: {initial: 1s, max_attempts: 3}, queue: gpu}
outcomes:
  report: [{takes: 25m}, {takes: 1m, fails: "boom"}, {takes: 1s, result: {rows: 3}}]
  mail:
    by: .payload.customer
    is: {acme: [{fails: no such customer, permanent: true, code: gone}], "7": [{never: true, stops_after: 2s}]}
    else: [{crashes: true}]
  "*": [{takes: 0s}]
script:
  - {at: 35m, do: pause, job: report, reason: "db move"}
  - {at: 65m, do: resume, job: report}
  - {at: 70m, do: trigger, job: mail, as: a, payload: {customer: acme}, run_at: 80m}
  - {at: 71m, do: cancel, run: a}
  - {at: 72m, do: cancel, run: "report@10m"}
  - {at: 72m, do: cancel, job: mail}
  - {at: 80m, do: down, for: 20m}
  - {at: "2026-01-05T02:00:00+01:00", do: trigger, runs: [{job: mail, as: b, delay: 0s}, {job: mail}]}
  - {at: 2h, do: retry, run: b, force: true}
  - {at: 2h, do: redrive, job: mail}
  - {at: 2h, do: put, job: later, if_match: "*", definition: {target: {handler: {name: x}}}}
  - {at: 2h, do: delete, job: later}
  - {at: 2h, do: workers, n: 0}
  - {at: 2h, do: clock, by: -2s}
  - {at: 2h, do: look, as: then}
`

func TestAScenarioIsReadAsItStands(t *testing.T) {
	s, err := simulate.Parse("whole.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	if !s.Start.Equal(start) || !s.Until.Equal(start.Add(3*time.Hour)) || s.Workers != 7 {
		t.Errorf("clock: %v to %v, %d workers", s.Start, s.Until, s.Workers)
	}
	if len(s.Jobs) != 2 || s.Jobs[0].Name != "mail" || s.Jobs[1].Definition.Timeout.Std() != time.Hour || s.Jobs[1].Definition.Queue != "" {
		t.Errorf("jobs: %+v", s.Jobs)
	}
	if len(s.Script) != 15 || s.Script[7].Number != 8 || !s.Script[7].At.Equal(start.Add(time.Hour)) || !s.Script[7].Batch || len(s.Script[7].Triggers) != 2 {
		t.Errorf("script: %+v", s.Script)
	}
	if got := s.Script[4].Run; got.Job != "report" || !got.Nominal.Equal(start.Add(10*time.Minute)) {
		t.Errorf("a scheduled run: %+v", got)
	}
	if got := s.Script[2].Triggers[0]; got.As != "a" || got.Job != "mail" || !got.At.Equal(start.Add(80*time.Minute)) || string(got.Payload) != `{"customer":"acme"}` {
		t.Errorf("a trigger: %+v", got)
	}
	if s.Script[13].By != -2*time.Second || s.Script[14].As != "then" || s.Script[6].For != 20*time.Minute {
		t.Errorf("by, as, for: %+v", s.Script)
	}
	second := s.Outcomes["report"].Else[1]
	if !second.Fails || second.Error != "boom" || second.Takes != time.Minute || string(s.Outcomes["report"].Else[2].Result) != `{"rows":3}` {
		t.Errorf("outcomes: %+v", s.Outcomes["report"])
	}
}

func TestAPayloadChoosesOutcomes(t *testing.T) {
	s, err := simulate.Parse("whole.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"customer":"acme"}`: "is acme", `{"customer":7}`: "is 7", `{"customer":"7"}`: "is 7", `{"customer":"other"}`: "else",
		`{"customer":null}`: "else", `{}`: "else", `[]`: "else", `7`: "else", ``: "else", `{"customer":{"acme":1}}`: "else",
	} {
		if got, list := s.Outcomes["mail"].Branch(simulate.Called{Payload: json.RawMessage(payload), Attempt: 1}); got != want || len(list) != 1 {
			t.Errorf("%s: branch %q, %d outcomes; want %q", payload, got, len(list), want)
		}
	}
	byAttempt, err := simulate.Parse("a.yaml", []byte("start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}}}\noutcomes: {a: {by: .attempt, is: {\"2\": [{fails: x}]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := byAttempt.Outcomes["a"].Branch(simulate.Called{Attempt: 2}); got != "is 2" {
		t.Errorf("attempt 2: %q", got)
	}
	if got, list := byAttempt.Outcomes["a"].Branch(simulate.Called{Attempt: 1}); got != "else" || list != nil {
		t.Errorf("attempt 1: %q, %v", got, list)
	}
}

// Rows are parts of a scenario with one mistake, and how its line begins.
func TestMistakesAreNamedByLineAndField(t *testing.T) {
	const job = "\njobs: {a: {target: {handler: {name: x}}}}"
	for name, row := range map[string]struct{ text, want string }{
		"nothing":                    {"", "line 1: the file is empty"},
		"two documents":              {"start: 2026-01-05T00:00:00Z\n---\nstart: 2026-01-05T00:00:00Z", "line 3: a second document"},
		"no YAML":                    {"start: [", "line 1: want YAML"},
		"a list":                     {"- a", "line 1: got an array, want an object"},
		"no start":                   {"until: 3h" + job, "line 1: start: missing"},
		"a mistyped field":           {"start: 2026-01-05T00:00:00Z\nscirpt: []", `line 2: scirpt: unknown field; did you mean "script"?`},
		"an unknown field":           {"start: 2026-01-05T00:00:00Z\nfoo: 1", "line 2: foo: unknown field; want events, expect, gates, jobs,"},
		"start is no time":           {"start: tomorrow" + job, `line 1: start: got "tomorrow", want a time such as`},
		"start without a zone":       {"start: 2026-01-05T00:00:00" + job, `line 1: start: got "2026-01-05T00:00:00", want`},
		"start before its time":      {"start: 1970-01-01T00:00:00Z" + job, "line 1: start: got"},
		"a 30th of February":         {"start: 2026-02-30T00:00:00Z" + job, "line 1: start: got"},
		"until before start":         {"start: 2026-01-05T00:00:00Z\nuntil: 2025-01-05T00:00:00Z", "line 2: until: got \"2025-01-05T00:00:00Z\", want a time after start"},
		"until at start":             {"start: 2026-01-05T00:00:00Z\nuntil: 0s", "line 2: until: got"},
		"until in years":             {"start: 2026-01-05T00:00:00Z\nuntil: 9999d", "line 2: until: got"},
		"until as a number":          {"start: 2026-01-05T00:00:00Z\nuntil: 3", "line 2: until: got a number, want text"},
		"no workers":                 {"start: 2026-01-05T00:00:00Z\nworkers: 0", "line 2: workers: got 0, want a whole number from 1 to 10000"},
		"half a worker":              {"start: 2026-01-05T00:00:00Z\nworkers: 1.5", "line 2: workers: got 1.5, want a whole number"},
		"gates":                      {"start: 2026-01-05T00:00:00Z\ngates: [a]" + strings.Replace(job, "{target", "{gates: [a], target", 1), "line 2: gates: got an array, want an object"},
		"a gate without a limit":     {"start: 2026-01-05T00:00:00Z\ngates: {a: {max_waiting: 1}}", "line 2: gates.a.limit: missing"},
		"a gate of 0":                {"start: 2026-01-05T00:00:00Z\ngates: {a: {limit: 0}}" + strings.Replace(job, "{target", "{gates: [a], target", 1), "line 2: gates.a.limit: got 0, want a whole number from 1 to 1000"},
		"a gate's order":             {"start: 2026-01-05T00:00:00Z\ngates: {a: {limit: 1, order: lifo}}", `line 2: gates.a.order: got "lifo", want priority, fifo or deadline`},
		"a gate's rate":              {"start: 2026-01-05T00:00:00Z\ngates: {a: {limit: 1, rate: {}}}", "line 2: gates.a.rate: not built yet"},
		"a gate's name":              {"start: 2026-01-05T00:00:00Z\ngates: {\"job:a\": {limit: 1}}", `line 2: gates.job:a: got "job:a", want 1 to 64 letters`},
		"a gate of another name":     {"start: 2026-01-05T00:00:00Z\ngates: {a: {name: b, limit: 1}}", `line 2: gates.a.name: got "b", want "a"`},
		"calendars":                  {"start: 2026-01-05T00:00:00Z\ncalendars: {}", "line 2: calendars: not built yet"},
		"a job without a target":     {"start: 2026-01-05T00:00:00Z\njobs:\n  a: {timeout: 1h}", "line 3: jobs.a.target: missing"},
		"a job's field":              {"start: 2026-01-05T00:00:00Z\njobs:\n  a: {target: {handler: {name: x}}, timout: 1h}", `line 3: jobs.a.timout: unknown field; did you mean "timeout"?`},
		"a job's cron":               {"start: 2026-01-05T00:00:00Z\njobs:\n  a:\n    target: {handler: {name: x}}\n    schedule: {cron: \"61 * * * *\"}", "line 5: jobs.a.schedule.cron: got"},
		"a job's zone":               {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, schedule: {cron: \"@daily\", timezone: Mars/Olympus}}}", "line 2: jobs.a.schedule.timezone: got"},
		"a job's timeout":            {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, timeout: 25h}}", "line 2: jobs.a.timeout: got"},
		"a job's timeout of 0":       {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, timeout: 0s}}", "line 2: jobs.a.timeout: got \"0s\", want more than 0s"},
		"a job's timeout, bare":      {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, timeout: 30}}", "line 2: jobs.a.timeout: got 30, want a duration"},
		"a job's policy":             {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, overlap: strictly}}", "line 2: jobs.a.overlap.policy: got \"strictly\", want allow, skip, queue, queue_one, queue_latest, cancel, replace or strict"},
		"a request's policy of \"\"": {"start: 2026-01-05T00:00:00Z" + job + "\nscript: [{at: 1m, do: trigger, job: a, overlap: \"\"}]", "line 3: script[0].overlap: got \"\", want the name of a policy"},
		"a request's policy of null": {"start: 2026-01-05T00:00:00Z" + job + "\nscript: [{at: 1m, do: trigger, job: a, overlap: null}]", "line 3: script[0].overlap: got null, want the name of a policy"},
		"a job's limit":              {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, overlap: {policy: skip, limt: 2}}}", `line 2: jobs.a.overlap.limt: unknown field; did you mean "limit"?`},
		"a job's mode":               {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, catch_up: {mode: al}}}", "line 2: jobs.a.catch_up.mode: got \"al\", want one, all or none"},
		"a job's name":               {"start: 2026-01-05T00:00:00Z\njobs: {\"a b\": {target: {handler: {name: x}}}}", "line 2: jobs.a b: got \"a b\", want 1 to 128 letters"},
		"a job's gates":              {"start: 2026-01-05T00:00:00Z\ngates: {gpu: {limit: 2}, stripes: {limit: 1}}\njobs: {a: {gates: [stripe, {gate: gpu, units: 2}], target: {handler: {name: x}}}}", `line 3: jobs.a.gates[0].gate: got "stripe", want a gate of this scenario, under gates; did you mean "stripes"?`},
		"a job's units":              {"start: 2026-01-05T00:00:00Z\ngates: {gpu: {limit: 2}}\njobs: {a: {gates: [{gate: gpu, units: 3}], target: {handler: {name: x}}}}", `line 3: jobs.a.gates[0].units: got "3", want at most 2, the limit of the gate gpu`},
		"a job's gate":               {"start: 2026-01-05T00:00:00Z\njobs: {a: {gates: [3], target: {handler: {name: x}}}}", "line 2: jobs.a.gates[0]: got a number, want the name of a gate"},
		"a job's gate's key":         {"start: 2026-01-05T00:00:00Z\njobs: {a: {gates: [{gate: a, key: b}], target: {handler: {name: x}}}}\ngates: {a: {limit: 1}}", `line 2: jobs.a.gates[0].key: got "b", want an expression in it, such as ${ .payload.customer }: without one, all runs have the same key`},
		"a job that never fires":     {"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}, schedule: {at: \"2025-01-05T00:00:00Z\"}}}", "line 2: jobs.a.schedule: want a fire after start"},
		"a job twice":                {"start: 2026-01-05T00:00:00Z\njobs:\n  a: {}\n  a: {}", "line 4: a: given twice; first in line 3"},
		"outcomes of no job":         {"start: 2026-01-05T00:00:00Z\njobs: {report: {target: {handler: {name: x}}}}\noutcomes: {reprot: [{}]}", `line 3: outcomes.reprot: got "reprot", want the name of a job of this scenario, or * for all others; did you mean "report"?`},
		"outcomes of a step":         {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a/load: [{}]}", "line 3: outcomes.a/load: got \"a/load\", want the name of a job alone: a has no steps that call a target"},
		"no outcomes":                {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: []}", "line 3: outcomes.a: want at least one outcome"},
		"outcomes as text":           {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: ok}", "line 3: outcomes.a: got text, want a list of outcomes"},
		"an outcome's field":         {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{take: 1s}]}", `line 3: outcomes.a[0].take: unknown field; did you mean "takes"?`},
		"an outcome to come":         {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{accepts: true}]}", "line 3: outcomes.a[0].accepts: not built yet"},
		"two ends":                   {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{fails: x, crashes: true}]}", "line 3: outcomes.a[0]: want one end of an attempt, got fails and crashes"},
		"permanent alone":            {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{permanent: true}]}", "line 3: outcomes.a[0].permanent: want no permanent without fails"},
		"never after a time":         {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{takes: 1s, never: true}]}", "line 3: outcomes.a[0].takes: want no takes beside never"},
		"a negative time":            {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{takes: -1s}]}", "line 3: outcomes.a[0].takes: got \"-1s\", want"},
		"a microsecond":              {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: [{takes: 1us}]}", "line 3: outcomes.a[0].takes: got"},
		"an expression":              {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: {by: \".payload.a + 1\", is: {}}}", "line 3: outcomes.a.by: got \".payload.a + 1\", want a path such as"},
		"what steps see":             {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: {by: .item.x, is: {}}}", "line 3: outcomes.a.by: got \".item.x\", want .attempt or a path in .payload"},
		"a choice without is":        {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: {by: .attempt}}", "line 3: outcomes.a.is: missing"},
		"a choice with a mistake":    {"start: 2026-01-05T00:00:00Z" + job + "\noutcomes: {a: {by: .attempt, is: {\"1\": [{fails: 7}]}}}", "line 3: outcomes.a.is.1[0].fails: got a number, want text"},
		"a line without at":          {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {do: delete, job: a}", "line 4: script[0].at: missing"},
		"a line before start":        {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: \"2026-01-04T00:00:00Z\", do: delete, job: a}", "line 4: script[0].at: got \"2026-01-04T00:00:00Z\", want a time not before start"},
		"a line at no time":          {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: noon, do: delete, job: a}", `line 4: script[0].at: got "noon", want a time such as "2026-01-05T00:35:00Z", or an offset from start`},
		"a line at a number":         {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 35, do: delete, job: a}", "line 4: script[0].at: got a number, want text"},
		"a gate's line without one":  {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: gate, name: a}", "line 3: script[0].definition: want a gate, as PUT /v1/gates/{gate} takes it, or null to delete it"},
		"a gate's line with a job":   {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: gate, name: a, definition: {target: {handler: {name: x}}}}", "line 3: script[0].definition: want a gate such as {limit: 10}, or null to delete it"},
		"an open of no line":         {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: open, gate: a, key: x}", `line 3: script[0].gate: got "a", want the own gate of a job, job:NAME`},
		"an open of a strange run":   {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: open, gate: \"job:a\", run: x}", `line 3: script[0].run: got "x", want the name of a run that a trigger has asked for by then`},
		"a put with a gate":          {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: put, job: a, definition: {limit: 3}}", "line 3: script[0].definition: want a job, as PUT"},
		"a gate's line's limit":      {"start: 2026-01-05T00:00:00Z\nscript:\n  - at: 1s\n    do: gate\n    name: a\n    definition: {limit: 2000}", "line 6: script[0].definition.limit: got 2000, want a whole number from 1 to 1000"},
		"a gate's line for a job":    {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: close, job: a, gate: a}", "line 3: script[0].job: want no job with do: close"},
		"a close of nothing":         {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: close}", "line 3: script[0].gate: want the name of a gate"},
		"an open of no name":         {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: open, gate: a b}", `line 3: script[0].gate: got "a b", want 1 to 64 letters`},
		"a release of nobody":        {"start: 2026-01-05T00:00:00Z\nscript:\n  - {at: 1s, do: release, run: a}", `line 3: script[0].run: got "a", want the name of a run that a trigger has asked for by then`},
		"no such action":             {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: triger, job: a}", `line 4: script[0].do: got "triger", want trigger, put, delete, pause, resume, cancel, retry, redrive, release, gate, close, open, down, workers, clock or look; did you mean "trigger"?`},
		"an action to come":          {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: signal, run: a}", "line 4: script[0].do: signal is not built yet"},
		"a field of another":         {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: pause, job: a, force: true}", "line 4: script[0].force: want no force with do: pause"},
		"pause without a job":        {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: pause}", "line 4: script[0].job: want the name of a job"},
		"cancel of nothing":          {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: cancel}", "line 4: script[0]: want either run or job"},
		"cancel of both":             {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: cancel, run: a@1m, job: a}", "line 4: script[0]: want either run or job"},
		"a run unheard of":           {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: cancel, run: b}", "line 4: script[0].run: got \"b\", want the name of a run that a trigger has asked for"},
		"a run of later":             {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: cancel, run: b}\n- {at: 2m, do: trigger, job: a, as: b}", "line 4: script[0].run: got \"b\", want"},
		"a run's name twice":         {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: trigger, job: a, as: b}\n- {at: 2m, do: trigger, job: a, as: b}", "line 5: script[1].as: got \"b\", want a name that no line before has given"},
		"a run at no time":           {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: cancel, run: a@noon}", "line 4: script[0].run: got \"noon\", want a time such as"},
		"a key":                      {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: trigger, job: a, key: k}", "line 4: script[0].key: want no key with do: trigger; this one is not built yet"},
		"trigger of nothing":         {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: trigger}", "line 4: script[0].job: want the name of a job"},
		"trigger of no runs":         {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: trigger, runs: []}", "line 4: script[0].runs: got 0 entries, want at least 1"},
		"trigger of both":            {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: trigger, job: a, runs: [{job: a}]}", "line 4: script[0].job: want no job beside runs"},
		"two dues":                   {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: trigger, job: a, run_at: 1h, delay: 1h}", "line 4: script[0].delay: want no delay beside run_at"},
		"put of a mistake":           {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- at: 1m\n  do: put\n  job: a\n  definition:\n    target: {handler: {name: x}}\n    retry: {max_attempts: 101}", "line 9: script[0].definition.retry.max_attempts: got 101, want a whole number from 1 to 100"},
		"down for nothing":           {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: down, for: 0s}", "line 4: script[0].for: got \"0s\", want more than 0s"},
		"a clock that stands":        {"start: 2026-01-05T00:00:00Z" + job + "\nscript:\n- {at: 1m, do: clock, by: 0s}", "line 4: script[0].by: got \"0s\", want a duration"},
		"an expectation's typo":      {"start: 2026-01-05T00:00:00Z" + job + "\nexpect:\n  runs:\n  - {stat: null}", `line 5: expect.runs[0].stat: unknown field; did you mean "state"?`},
		"an expectation of a kind":   {"start: 2026-01-05T00:00:00Z" + job + "\nexpect:\n  runs: 3", "line 4: expect.runs: got a number, want a list"},
		"an expectation to come":     {"start: 2026-01-05T00:00:00Z" + job + "\nexpect: {most: {tenants: {a: 1}}}", "line 3: expect.most.tenants: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := simulate.Parse("a.yaml", []byte(row.text))
			var wrong *simulate.Mistaken
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v, want %s", err, row.want)
			}
			if len(wrong.Mistakes) != 1 || !strings.HasPrefix(wrong.Error(), row.want) {
				t.Errorf("got\n%v\nwant one that begins with\n%s", err, row.want)
			}
		})
	}
}

func TestAllMistakesAreNamedAtOnceUpToABound(t *testing.T) {
	text := "start: 2026-01-05T00:00:00Z\nuntil: never\njobs:\n  a: {timeout: 0s}\nscript:\n- {at: 1m, do: pause, jbo: a}\n- {at: 1m, do: cancel, run: x}\n"
	_, err := simulate.Parse("a.yaml", []byte(text))
	want := []string{"line 2: until", "line 4: jobs.a.timeout", "line 4: jobs.a.target", "line 6: script[0].jbo", "line 7: script[1].run"}
	lines := strings.Split(err.Error(), "\n")
	for i, begins := range want {
		if len(lines) != len(want) || !strings.HasPrefix(lines[i], begins) {
			t.Fatalf("got\n%v\nwant lines that begin with %q", err, want)
		}
	}
	var many strings.Builder
	many.WriteString("start: 2026-01-05T00:00:00Z\nscript:\n")
	for i := range 250 {
		fmt.Fprintf(&many, "- {at: %dm, do: pause, jbo: a}\n", i)
	}
	_, err = simulate.Parse("a.yaml", []byte(many.String()))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 101 || lines[100] != "and 150 more" {
		t.Errorf("%d lines, the last one %q", len(lines), lines[len(lines)-1])
	}
}

func TestTheSameIsReadOfJSON(t *testing.T) {
	_, err := simulate.Parse("a.json", []byte("{\"start\": \"2026-01-05T00:00:00Z\",\n \"jobs\": {\"a\": {\"target\": {\"handler\": {\"name\": \"x\"}},\n  \"prioritty\": \"high\"}}}"))
	if err == nil || err.Error() != `line 3: jobs.a.prioritty: unknown field; did you mean "priority"?` {
		t.Errorf("got %v", err)
	}
}

func TestADocumentIsBounded(t *testing.T) {
	if _, err := simulate.Parse("a.yaml", make([]byte, simulate.MaxDocument+1)); err == nil || !strings.Contains(err.Error(), "at most 8 MB") {
		t.Errorf("a large file: %v", err)
	}
	var jobs strings.Builder
	jobs.WriteString("start: 2026-01-05T00:00:00Z\njobs:\n")
	for i := range simulate.MaxJobs + 1 {
		fmt.Fprintf(&jobs, "  j%d: {target: {handler: {name: x}}}\n", i)
	}
	if _, err := simulate.Parse("a.yaml", []byte(jobs.String())); err == nil || !strings.Contains(err.Error(), "jobs: got \"1001 jobs\", want at most 1000") {
		t.Errorf("many jobs: %v", err)
	}
	lines := "start: 2026-01-05T00:00:00Z\nscript:\n" + strings.Repeat("- {at: 1m, do: pause, job: a}\n", simulate.MaxScript+1)
	if _, err := simulate.Parse("a.yaml", []byte(lines)); err == nil || !strings.Contains(err.Error(), "script: got 10001 entries, want at most 10000") {
		t.Errorf("many lines: %v", err)
	}
	outcomes := "start: 2026-01-05T00:00:00Z\njobs: {a: {target: {handler: {name: x}}}}\noutcomes:\n  a:\n" + strings.Repeat("  - {}\n", simulate.MaxOutcomes+1)
	if _, err := simulate.Parse("a.yaml", []byte(outcomes)); err == nil || !strings.Contains(err.Error(), "at most 10000 in all") {
		t.Errorf("many outcomes: %v", err)
	}
}

// What somebody may have meant costs a look at each name. A document of many that are wrong beside many that are right is told so of the first
// ones only, and all mistakes are counted.
func TestOfManyWrongNamesTheFirstAreGuessed(t *testing.T) {
	const named, wrong = 4000, 500
	var text strings.Builder
	text.WriteString("start: 2026-01-05T00:00:00Z\nscript:\n")
	for i := range named {
		fmt.Fprintf(&text, "- {at: 1h, do: trigger, job: a, as: name%04d}\n", i)
	}
	for i := range wrong {
		fmt.Fprintf(&text, "- {at: 1h, do: retry, run: name%04dx}\n", i)
	}
	_, err := simulate.Parse("a.yaml", []byte(text.String()))
	lines := strings.Split(err.Error(), "\n")
	if want := `script[4000].run: got "name0000x", want the name of a run that a trigger has asked for by then; did you mean "name0000"?`; !strings.HasSuffix(lines[0], want) {
		t.Errorf("the first is %s, want %s", lines[0], want)
	}
	if n := strings.Count(err.Error(), "did you mean"); n > 20 {
		t.Errorf("%d of them are guessed", n)
	}
	if want := fmt.Sprintf("and %d more", wrong-invalid.Most); lines[len(lines)-1] != want {
		t.Errorf("the last line is %q, want %q", lines[len(lines)-1], want)
	}
}
