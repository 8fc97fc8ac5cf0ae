package simulate_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

const begin = "start: 2026-01-05T00:00:00Z\n"

func parse(t testing.TB, text string) simulate.Scenario {
	t.Helper()
	s, err := simulate.Parse("test.yaml", []byte(begin+text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t testing.TB, text string, o simulate.Options) simulate.Report {
	t.Helper()
	r, err := simulate.Play(t.Context(), parse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said is a report in short: a line for each run, stretch and refusal, with times as offsets from the beginning.
func said(r simulate.Report) string {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.Sub(start).String()
	}
	var lines []string
	for _, one := range r.Runs {
		line := fmt.Sprintf("%s@%s", one.Job, at(&one.NominalTime))
		if one.As != nil {
			line = *one.As + "=" + line
		}
		for _, a := range one.Attempts {
			line += fmt.Sprintf(" %s..%s %s", at(&a.StartedAt), at(a.EndedAt), a.Outcome)
			if a.Code != "" {
				line += "(" + a.Code + ")"
			}
		}
		line += ": " + one.State
		if one.Reason != "" {
			line += ", " + one.Reason
		}
		if one.Result != nil {
			line += " " + string(one.Result)
		}
		lines = append(lines, line)
	}
	for _, s := range r.Skipped {
		lines = append(lines, fmt.Sprintf("%s: %d skipped from %s through %s, %s", s.Job, s.Count, at(&s.From), at(&s.Through), s.Reason))
	}
	for _, f := range r.Refused {
		lines = append(lines, fmt.Sprintf("line %d at %s: %s", f.Line, at(&f.At), f.Code))
	}
	if r.Open > 0 {
		lines = append(lines, fmt.Sprint(r.Open, " open"))
	}
	if r.Stopped != nil {
		lines = append(lines, fmt.Sprintf("stopped by %s %s at %s", r.Stopped.Bound, r.Stopped.Limit, at(&r.Stopped.At)))
	}
	return strings.Join(lines, "\n")
}

const handler = `target: {handler: {name: h}}`

// onDemand is a job j and the runs a, b and so on that are asked for at once.
func onDemand(more, outcomes string, script ...string) string {
	if more != "" {
		more += ", "
	}
	return "jobs:\n  j: {" + more + handler + "}\noutcomes:\n  j: " + outcomes + "\nscript:\n  - " + strings.Join(script, "\n  - ") + "\n"
}

const triggerA = "{at: 0s, do: trigger, job: j, as: a}"

func TestWhatTargetsDo(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"at once", onDemand("", "[{}]", triggerA), "a=j@0s 0s..0s succeeded: succeeded"},
		{"takes and gives a result", onDemand("", `[{takes: 1.5s, result: {n: 1}}]`, triggerA), `a=j@0s 0s..1.5s succeeded: succeeded {"n":1}`},
		{"a result that a record has no room for", onDemand("", `[{result: "`+strings.Repeat("x", 5000)+`"}]`, triggerA),
			`a=j@0s 0s..0s succeeded: succeeded "` + strings.Repeat("x", 5000) + `"`},
		{"fails, waits and is tried again", onDemand("retry: {initial: 10s, factor: 3, max_attempts: 4}", `[{takes: 1s, fails: no}]`, triggerA),
			"a=j@0s 0s..1s failed 21s..22s failed 1m22s..1m23s failed 4m23s..4m24s failed: dead, attempts spent"},
		{"longer than a message waits", onDemand("retry: {initial: 1h, max: 2h, max_attempts: 3}", `[{fails: no}, {fails: no}, {}]`, triggerA),
			"a=j@0s 0s..0s failed 2h0m0s..2h0m0s failed 4h0m0s..4h0m0s succeeded: succeeded"},
		{"more attempts than a record keeps", onDemand("retry: {initial: 1s, factor: 1, max_attempts: 8}", `[{fails: no}]`, triggerA),
			"a=j@0s 0s..0s failed 2s..2s failed 4s..4s failed 6s..6s failed 8s..8s failed 10s..10s failed 12s..12s failed 14s..14s failed: dead, attempts spent"},
		{"fails for good", onDemand("", `[{fails: no, permanent: true}]`, triggerA), "a=j@0s 0s..0s failed: failed, permanent failure"},
		{"fails with a code", onDemand("retry: {max_attempts: 1}", `[{fails: no, code: declined}]`, triggerA), "a=j@0s 0s..0s failed(declined): dead, attempts spent"},
		{"at most once, and nobody knows", onDemand("guarantee: at_most_once", `[{fails: no, code: lost}]`, triggerA),
			"a=j@0s 0s..0s failed(lost): unknown, at most once: the effect may have happened"},
		{"dies once", onDemand("", `[{takes: 5s, crashes: true}, {takes: 1s}]`, triggerA), "a=j@0s 0s..30s crashed 30s..31s succeeded: succeeded"},
		{"dies behind renewals", onDemand("timeout: 5m", `[{takes: 65s, crashes: true}, {}]`, triggerA), "a=j@0s 0s..1m30s crashed 1m30s..1m30s succeeded: succeeded"},
		{"kills its workers", onDemand("", `[{crashes: true}]`, triggerA),
			"a=j@0s 0s..30s crashed 30s..1m0s crashed 1m0s..1m30s crashed: dead, killed its worker: its lease ran out"},
		{"dies, at most once", onDemand("guarantee: at_most_once", `[{crashes: true}]`, triggerA), "a=j@0s 0s..30s crashed: unknown, its lease ran out"},
		{"never ends by itself", onDemand("timeout: 45s, retry: {max_attempts: 2}", `[{never: true}]`, triggerA),
			"a=j@0s 0s..45s failed 47s..1m32s failed: dead, attempts spent"},
		{"takes longer than its timeout", onDemand("timeout: 10m", `[{takes: 1h}, {takes: 10m}]`, triggerA), "a=j@0s 0s..10m0s failed 10m2s..20m2s succeeded: succeeded"},
		{"the last outcome goes on for ever", onDemand("", `[{takes: 1s}, {takes: 2s}]`, triggerA, strings.ReplaceAll(triggerA, "a}", "b}"), "{at: 1h, do: trigger, job: j, as: c}"),
			"a=j@0s 0s..1s succeeded: succeeded\nb=j@0s 0s..2s succeeded: succeeded\nc=j@1h0m0s 1h0m0s..1h0m2s succeeded: succeeded"},
		{"of a renewed lease nobody hears", onDemand("timeout: 24h", `[{takes: 20h}]`, triggerA), "a=j@0s 0s..20h0m0s succeeded: succeeded"},
		{"chosen by what is asked for", onDemand("", `{by: .payload.who, is: {acme: [{takes: 1s}, {takes: 2s}], "7": [{takes: 7s}]}, else: [{takes: 9s}]}`,
			"{at: 1m, do: trigger, job: j, as: a, payload: {who: acme}}", "{at: 2m, do: trigger, job: j, as: b, payload: {who: 7}}",
			"{at: 3m, do: trigger, job: j, as: c, payload: {who: acme}}", "{at: 4m, do: trigger, job: j, as: d}"),
			"a=j@1m0s 1m0s..1m1s succeeded: succeeded\nb=j@2m0s 2m0s..2m7s succeeded: succeeded\nc=j@3m0s 3m0s..3m2s succeeded: succeeded\nd=j@4m0s 4m0s..4m9s succeeded: succeeded"},
		{"chosen by the number of the attempt", onDemand("", `{by: .attempt, is: {"3": [{}]}, else: [{fails: no}]}`, triggerA),
			"a=j@0s 0s..0s failed 2s..2s failed 6s..6s succeeded: succeeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := said(play(t, c.text, simulate.Options{})); got != c.want {
				t.Errorf("it says\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// mixed has something of everything.
const mixed = `until: 12h
workers: 3
jobs:
  a: {schedule: {cron: "*/7 * * * *", jitter: 30s}, overlap: skip, timeout: 1h, target: {handler: {name: a}}}
  b: {schedule: {every: 5m}, queue: other, retry: {initial: 30s, max_attempts: 3}, target: {exec: {argv: [b]}}}
  c: {schedule: {cron: "*/5 * * * *"}, priority: high, target: {http: {url: "https://example.org"}}, catch_up: {mode: all}}
  d: {target: {handler: {name: d}}, guarantee: at_most_once}
outcomes:
  a: [{takes: 3m}, {takes: 12m}, {crashes: true}, {takes: 1m, fails: "no"}]
  b: [{takes: 10s, fails: "one"}, {takes: 10s, fails: "two"}, {takes: 2m}]
  c: [{takes: 4m}]
  "*": [{takes: 1s, result: [1]}]
script:
  - {at: 10m, do: trigger, job: d, as: first, payload: {n: 1}}
  - {at: 10m, do: trigger, job: d, as: later, delay: 3h}
  - {at: 1h, do: pause, job: b, reason: "db move"}
  - {at: 2h, do: down, for: 40m}
  - {at: 130m, do: trigger, job: d}
  - {at: 3h, do: resume, job: b}
  - {at: 4h, do: workers, n: 1}
  - {at: 5h, do: clock, by: 10m}
  - {at: 6h, do: clock, by: -20m}
  - {at: 6h30m, do: workers, n: 5}
  - {at: 7h, do: cancel, job: c}
  - {at: 8h, do: look, as: before}
  - {at: 8h, do: redrive, job: b}
  - {at: 9h, do: delete, job: a}
`

// The same file gives the same bytes, whatever the processors do.
func TestSameBytes(t *testing.T) {
	seed := uint64(7)
	for name, o := range map[string]simulate.Options{"upper bounds": {}, "drawn": {Seed: &seed}} {
		t.Run(name, func(t *testing.T) {
			var first []byte
			for _, processors := range []int{4, 4, 1} {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				text, err := json.Marshal(play(t, mixed, o))
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = text
				}
				if !slices.Equal(first, text) {
					t.Fatalf("%d processors: another outcome", processors)
				}
			}
		})
	}
	if drawn, longest := said(play(t, mixed, simulate.Options{Seed: &seed})), said(play(t, mixed, simulate.Options{})); drawn == longest {
		t.Error("a seed draws nothing")
	}
}
