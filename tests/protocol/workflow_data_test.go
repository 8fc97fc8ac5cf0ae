package protocol_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// dataWorld is the run of a workflow whose steps pass results along.
type dataWorld struct {
	*flowWorld
	mu     sync.Mutex
	inputs map[string][]string // what each attempt of a step was handed
	fails  map[string]int      // how many attempts of a step fail
	cut    bool                // the result of "extract" is the beginning of a longer one
	media  string              // the media type of that
}

// newDataWorld has a job with a workflow as JSON, triggered with a payload. Its steps call the handler "give", which gives back what it is handed, but the step "extract", whose result is told.
func newDataWorld(w *world, workflow, payload, extract string) *dataWorld {
	d := &dataWorld{flowWorld: &flowWorld{world: w}, inputs: map[string][]string{}, fails: map[string]int{}, media: "application/json"}
	w.must(w.handlers.Register("give", func(_ context.Context, c target.Call) (target.Result, error) {
		id, err := run.ParseID(c.Run)
		if err != nil {
			return target.Result{}, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.inputs[id.Step] = append(d.inputs[id.Step], string(c.Payload))
		if d.fails[id.Step] > 0 {
			d.fails[id.Step]--
			return target.Result{}, errors.New("told to")
		}
		if id.Step == "extract" {
			return target.Result{Body: []byte(extract), ContentType: d.media, Truncated: d.cut}, nil
		}
		return target.Result{Body: c.Payload, ContentType: "application/json"}, nil
	}))
	def := job.Definition{Target: target.Spec{Workflow: json.RawMessage(workflow)}}
	_, _, err := w.host("api").control.Put(context.Background(), tenant, "flow", def, control.Match{})
	w.must(err)
	r, _, err := w.host("api").control.Trigger(context.Background(), tenant, "flow", control.Request{Payload: []byte(payload)})
	w.must(err)
	d.id = r.ID
	return d
}

// same tells of steps that were handed one thing at one attempt and another at a later one.
func (d *dataWorld) same() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var wrong []string
	for _, path := range slices.Sorted(maps.Keys(d.inputs)) {
		if all := slices.Compact(slices.Clone(d.inputs[path])); len(all) > 1 {
			wrong = append(wrong, fmt.Sprintf("W9: step %s was handed %s", path, strings.Join(all, ", then ")))
		}
	}
	return wrong
}

func (d *dataWorld) handed(path string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.inputs[path]) == 0 {
		return "nothing"
	}
	return d.inputs[path][0]
}

func (d *dataWorld) result() string {
	data, _, err := d.host("api").control.Result(context.Background(), d.head())
	d.must(err)
	return string(data)
}

const etl = `{"steps": {
	"extract": {"handler": {"name": "give"}},
	"rows": {"needs": ["extract"], "pass": {"input": "${ .steps.extract.result.rows }"}},
	"size": {"needs": ["rows"], "switch": [{"when": ".steps.rows.result > 100", "to": "large"}, {"when": ".steps.rows.result > 0", "to": "small"}]},
	"large": {"handler": {"name": "give"}, "input": {"of": "${ .steps.extract.result.id }", "size": "large"}},
	"small": {"handler": {"name": "give"}, "input": {"of": "${ .steps.extract.result.id }", "day": "on ${ .input.day }", "literal": "$${"}},
	"check": {"needs": ["extract"], "handler": {"name": "give"}, "when": ".steps.extract.result.checked"},
	"inside": {"needs": ["small"], "steps": {"deep": {"handler": {"name": "give"}, "input": "${ [.steps.small.result.of, .run.job] }"}}},
	"report": {"needs": ["large", "small", "check", "inside"], "rule": "none_failed_min_one_success", "handler": {"name": "give"},
		"input": "${ {large: .steps.large.state, small: .steps.small.result.of, check: .steps.check.state, why: .steps.check.error, inside: .steps.inside.state} }"}},
	"output": {"report": "${ .steps.report.result }", "rows": "${ .steps.rows.result }"}}`

func TestW9_ResultsArePassedAlong(t *testing.T) {
	d := newDataWorld(newWorld(t), etl, `{"day": "monday"}`, `{"id": 12345678901234567890, "rows": 7, "checked": false}`)
	d.calm()
	for path, want := range map[string]string{
		"small":       `{"day":"on monday","literal":"${","of":12345678901234567890}`,
		"inside/deep": `[12345678901234567890,"flow"]`,
		"report":      `{"check":"skipped","inside":"succeeded","large":"skipped","small":12345678901234567890,"why":null}`,
		"large":       "nothing",
		"check":       "nothing",
	} {
		if got := d.handed(path); got != want {
			t.Errorf("step %s was handed %s, want %s", path, got, want)
		}
	}
	if head := d.head(); head.State != run.Succeeded {
		t.Errorf("the run is %s: %s", head.State, head.Reason)
	}
	if got, want := d.result(), `{"report":{"check":"skipped","inside":"succeeded","large":"skipped","small":12345678901234567890,"why":null},"rows":7}`; got != want {
		t.Errorf("the run gives %s, want %s", got, want)
	}
	rows := d.rows()
	if size, check := rows["size"], rows["check"]; size.State != run.Succeeded || size.Chose != "small" || check.State != run.Skipped || check.Missed() {
		t.Errorf("the switch is %s and chose %q, and what was skipped is %s for %+v", size.State, size.Chose, check.State, check.Why)
	}
}

// The worker dies before each of its operations in turn, its messages are lost every other time, and attempts fail: a step is handed at each attempt what it was at the
// first, and the run comes out the same.
func TestW9_AStepIsHandedTheSameAtEachAttempt(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t)
		d := newDataWorld(w, etl, `{"day": "monday"}`, `{"id": 5, "rows": 700, "checked": true}`)
		d.fails["large"], d.fails["report"], d.fails["check"] = 1, 2, 1
		met, at := d.crashing(n)
		if n%2 == 0 {
			d.lose()
		}
		d.calm()
		wrong := d.same()
		if head := d.head(); head.State != run.Succeeded {
			wrong = append(wrong, fmt.Sprintf("the run is %s: %s", head.State, head.Reason))
		} else if got, want := d.result(), `{"report":{"check":"succeeded","inside":"skipped","large":"succeeded","small":null,"why":null},"rows":700}`; got != want {
			wrong = append(wrong, fmt.Sprintf("the run gives %s, want %s", got, want))
		}
		for _, problem := range wrong {
			t.Errorf("a worker that dies before its operation %d (%s): %s", n, at, problem)
		}
		if !met {
			break
		}
		if n > 400 {
			t.Fatal("a run of nine steps takes more than 400 operations")
		}
	}
}

// What a step names may still be open when an early rule lets it run: then it is so for it at each attempt, also when that has ended meanwhile.
func TestW9_WhatWasOpenStaysOpenForAStep(t *testing.T) {
	d := newDataWorld(newWorld(t), `{"steps": {
		"extract": {"handler": {"name": "give"}},
		"slow": {"handler": {"name": "give"}, "retry": {"max_attempts": 5, "initial": "5m"}},
		"first": {"needs": ["extract", "slow"], "rule": "one_success", "handler": {"name": "give"}, "retry": {"initial": "10m"},
			"input": "${ {extract: .steps.extract.result, slow: .steps.slow} }"}}}`, `null`, `{"id": 1}`)
	d.fails["slow"], d.fails["first"] = 2, 3
	d.advance(90*time.Minute, 10*time.Second, "worker")
	if wrong := d.same(); len(wrong) > 0 {
		t.Error(wrong)
	}
	want := `{"extract":{"id":1},"slow":{"attempt":0,"ended_at":null,"error":null,"result":null,"started_at":null,"state":"open"}}`
	if got := d.handed("first"); got != want || len(d.inputs["first"]) != 4 {
		t.Errorf("it was handed %s at %d attempts, want %s", got, len(d.inputs["first"]), want)
	}
	if head := d.head(); head.State != run.Succeeded {
		t.Errorf("the run is %s: %s", head.State, head.Reason)
	}
}

// The same holds for what a pass reads whose result a step reads: whoever looks at it later sees as much of it as the first attempt did.
func TestW9_WhatWasOpenStaysOpenThroughAPass(t *testing.T) {
	for name, steps := range map[string]string{
		"one":            `"all": {"needs": ["extract", "slow"], "rule": "one_success", "pass": {"input": "${ [.steps.extract.result, .steps.slow.state] }"}}, "first": {"needs": ["all"], `,
		"one that asks":  `"all": {"needs": ["extract", "slow"], "rule": "one_success", "when": "true", "pass": {"input": "${ [.steps.extract.result, .steps.slow.state] }"}}, "first": {"needs": ["all"], `,
		"one behind one": `"some": {"needs": ["extract", "slow"], "rule": "one_success", "pass": {"input": "${ .steps.slow.state }"}}, "all": {"needs": ["some"], "pass": {"input": ["${ .steps.extract.result }", "${ .steps.some.result }"]}}, "first": {"needs": ["all"], `,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDataWorld(newWorld(t), `{"steps": {
				"extract": {"handler": {"name": "give"}},
				"slow": {"handler": {"name": "give"}, "retry": {"max_attempts": 5, "initial": "5m"}},
				`+steps+`"handler": {"name": "give"}, "retry": {"initial": "10m"}, "input": "${ .steps.all.result }"}}}`, `null`, `{"id": 1}`)
			d.fails["slow"], d.fails["first"] = 2, 3
			d.advance(90*time.Minute, 10*time.Second, "worker")
			if wrong := d.same(); len(wrong) > 0 {
				t.Error(wrong)
			}
			if got, want := d.handed("first"), `[{"id":1},"open"]`; got != want || len(d.inputs["first"]) != 4 {
				t.Errorf("it was handed %s at %d attempts, want %s", got, len(d.inputs["first"]), want)
			}
			if head := d.head(); head.State != run.Succeeded {
				t.Errorf("the run is %s: %s", head.State, head.Reason)
			}
		})
	}
}

// What cannot be evaluated fails for good, with the place in the definition, and nothing is called.
func TestW9_Scenario25_AnExpressionThatFailsFailsItsStep(t *testing.T) {
	endless := `[(1, 2)` + strings.Repeat("|(.,.)", 40) + `]`
	for name, row := range map[string]struct{ step, reason string }{
		"no boolean":         {`"when": ".steps.extract.result.rows"`, "step x is failed: expression: steps.x.when: it gives 7; a condition is to give true or false"},
		"no value":           {`"when": "empty"`, "step x is failed: expression: steps.x.when: it gives no value; it is to give exactly one"},
		"two values":         {`"when": "true, true"`, "step x is failed: expression: steps.x.when: it gives several values, true and true first; it is to give exactly one"},
		"an error":           {`"when": "error(\"no way\")"`, "step x is failed: expression: steps.x.when: error: no way"},
		"out of steps":       {`"when": "` + endless + ` | true"`, "step x is failed: expression: steps.x.when: it took more than 1000000 steps"},
		"a wrong input":      {`"input": {"a": ["${ .steps.extract.result.rows.none }"]}`, "step x is failed: expression: steps.x.input.a[0]: expected an object but got: number (7)"},
		"an input of two":    {`"input": "a ${ 1, 2 }"`, "step x is failed: expression: steps.x.input: it gives several values, 1 and 2 first; it is to give exactly one"},
		"out of steps again": {`"input": "${ ` + endless + ` }"`, "step x is failed: expression: steps.x.input: it took more than 1000000 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}, "x": {"needs": ["extract"], "handler": {"name": "give"}, `+row.step+`}, "after": {"needs": ["x"], "handler": {"name": "give"}}}}`,
				`null`, `{"rows": 7}`)
			d.calm()
			if got := d.handed("x") + d.handed("after"); got != "nothingnothing" {
				t.Errorf("something was called: %s", got)
			}
			head, x := d.head(), d.rows()["x"]
			if head.State != run.Failed || head.Reason != row.reason && !strings.HasSuffix(head.Reason, "…") {
				t.Errorf("the run is %s:\n got %s\nwant %s", head.State, head.Reason, row.reason)
			}
			if x.State != run.Failed || !strings.Contains(row.reason, x.Fault()) {
				t.Errorf("the step is %s: %s", x.State, x.Fault())
			}
		})
	}
	t.Run("a switch", func(t *testing.T) {
		d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}, "x": {"needs": ["extract"], "switch": [{"when": ".steps.extract.result", "to": "after"}]}, "after": {"handler": {"name": "give"}}}}`, `null`, `{}`)
		d.calm()
		if head := d.head(); head.State != run.Failed || !strings.HasPrefix(head.Reason, "step x is failed: expression: steps.x.switch[0].when: it gives an object") {
			t.Errorf("the run is %s: %s", head.State, head.Reason)
		}
	})
	t.Run("an output", func(t *testing.T) {
		d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}}, "output": {"x": "${ .steps.extract.result.a.b }"}}`, `null`, `{"a": 1}`)
		d.calm()
		if head := d.head(); head.State != run.Failed || !strings.HasPrefix(head.Reason, "expression: output.x: expected an object but got: number (1)") {
			t.Errorf("the run is %s: %s", head.State, head.Reason)
		}
	})
}

// A skip goes through three hundred steps, whoever dies where: none of them is called, and the run ends.
func TestW2_W3_Scenario24_ASkipGoesOnWhoeverDies(t *testing.T) {
	var steps strings.Builder
	for i := range 297 {
		fmt.Fprintf(&steps, `, "s%d": {"needs": ["%s"], "handler": {"name": "give"}, "input": "${ .steps.first.result }"}`, i, map[bool]string{true: "first", false: fmt.Sprintf("s%d", i-1)}[i == 0])
	}
	workflow := `{"steps": {"extract": {"handler": {"name": "give"}}, "first": {"needs": ["extract"], "handler": {"name": "give"}, "when": ".steps.extract.result.go"}` + steps.String() +
		`, "last": {"needs": ["s296"], "rule": "all_done", "handler": {"name": "give"}, "input": "${ .steps.s296.state }"}}}`
	for n := 1; ; n++ {
		d := newDataWorld(newWorld(t), workflow, `null`, `{"go": false}`)
		met, at := d.crashing(n)
		d.calm()
		if head := d.head(); head.State != run.Succeeded || d.handed("last") != `"skipped"` || len(d.inputs) != 2 || len(d.rows()) != 3 {
			t.Errorf("a worker that dies before its operation %d (%s): the run is %s (%s), and %v were handed something", n, at, head.State, head.Reason, slices.Sorted(maps.Keys(d.inputs)))
		}
		if !met {
			break
		}
	}
}

const relay = `{"steps": {"extract": {"handler": {"name": "give"}, "retry": {"max_attempts": 1}}, "x": {"needs": ["extract"], "handler": {"name": "give"}, "retry": {"max_attempts": 1}, "input": "${ .steps.extract.result }"},
	"y": {"needs": ["x"], "pass": {}}}, "output": "${ .steps.x.result }"}`

// A result of up to 16 MiB is handed on as it is, to the byte, also where it is no JSON that jq would write like that.
func TestW9_ALargeResultArrivesWhole(t *testing.T) {
	for _, size := range []int{10, run.MaxResult, run.MaxResult + 1, 1 << 20, flow.MaxResult} {
		result := `[1.50, "` + strings.Repeat("x", size-len(`[1.50, ""]`)) + `"]`
		d := newDataWorld(newWorld(t), relay, `null`, result)
		d.calm()
		if head := d.head(); head.State != run.Succeeded || d.handed("x") != result || d.result() != result {
			t.Errorf("of %d bytes: the run is %s: %s; %d bytes were handed on, and %d given", size, head.State, head.Reason, len(d.handed("x")), len(d.result()))
		}
	}
}

// A pass that is nothing but a result hands that on as it is: nobody has to read it.
func TestW9_ALargeResultArrivesWholeThroughAPass(t *testing.T) {
	workflow := `{"steps": {"extract": {"handler": {"name": "give"}}, "mid": {"needs": ["extract"], "pass": {"input": "${ .steps.extract.result }"}}, "more": {"needs": ["mid"], "pass": {"input": "${ .steps.mid.result }"}},
		"x": {"needs": ["more"], "handler": {"name": "give"}, "input": "${ .steps.more.result }"}}, "output": "${ .steps.mid.result }"}`
	for _, result := range []string{"", `{"n": 1.50}`, `[1.50, "` + strings.Repeat("x", flow.MaxResult-len(`[1.50, ""]`)) + `"]`, "[" + strings.Repeat("0,", 5<<20) + "0]"} {
		d := newDataWorld(newWorld(t), workflow, `null`, result)
		d.calm()
		want := cmp.Or(result, "null")
		if head := d.head(); head.State != run.Succeeded || d.handed("x") != want || d.result() != want {
			t.Errorf("of %d bytes: the run is %s: %s; %d bytes were handed on, and %d given", len(result), head.State, head.Reason, len(d.handed("x")), len(d.result()))
		}
	}
}

// What is too large to compute with fails who reads it, once and for good, and says which result or payload that is.
func TestW9_Scenario25_WhatIsTooLargeToComputeWithFailsItsStep(t *testing.T) {
	large, values, objects := `"`+strings.Repeat("x", flow.MaxRead)+`"`, "["+strings.Repeat("0,", 3<<20)+"0]", "["+strings.Repeat("{},", 300<<10)+"0]"
	for name, row := range map[string]struct{ input, payload, result, reason string }{
		"a result":            {`"${ .steps.extract.result | length }"`, `null`, large, "the result of step extract is too large to compute with: all that is read may have 8 MiB"},
		"a result of values":  {`"${ .steps.extract.result | length }"`, `null`, values, "the result of step extract: it is too large to compute with: the values of all that is read take more than 64 MiB"},
		"a payload of values": {`["${ .input }"]`, objects, `1`, "the payload of the run: it is too large to compute with: the values of all that is read take more than 64 MiB"},
		"JSON in a text":      {`"${ .steps.extract.result | fromjson | length }"`, `null`, `"` + values + `"`, "it is too large to compute with: the values of all that is read take more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}, "x": {"needs": ["extract"], "handler": {"name": "give"}, "input": `+row.input+`}}}`, row.payload, row.result)
			d.calm()
			head, want := d.head(), "step x is failed: expression: steps.x.input: "+row.reason
			if head.State != run.Failed || head.Reason != want && !(strings.HasSuffix(head.Reason, "…") && strings.HasPrefix(want, strings.TrimSuffix(head.Reason, "…"))) || d.handed("x") != "nothing" {
				t.Errorf("the run is %s:\n got %s\nwant %s", head.State, head.Reason, want)
			}
		})
	}
}

// JSON is JSON however much its media type says beside that.
func TestW9_AResultIsJSONByItsMediaTypeAlone(t *testing.T) {
	for _, media := range []string{"application/json", "application/json; charset=utf-8", "application/json; profile=" + strings.Repeat("x", 100), "application/problem+json;" + strings.Repeat(" ", 100) + "a=b", "application/json; charset"} {
		d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}, "x": {"needs": ["extract"], "handler": {"name": "give"}, "input": ["${ .steps.extract.result.rows }"]}}}`, `null`, `{"rows": 7}`)
		d.media = media
		d.calm()
		if head := d.head(); head.State != run.Succeeded || d.handed("x") != "[7]" {
			t.Errorf("%s: the run is %s: %s; %s was handed on", media, head.State, head.Reason, d.handed("x"))
		}
	}
}

func TestW9_AResultThatIsTooLargeFailsItsStep(t *testing.T) {
	d := newDataWorld(newWorld(t), relay, `null`, `"`+strings.Repeat("x", flow.MaxResult)+`"`)
	d.calm()
	if head := d.head(); head.State != run.Failed || !strings.HasPrefix(head.Reason, "step extract is failed: result_too_large: ") || d.handed("x") != "nothing" {
		t.Errorf("the run is %s: %s", head.State, head.Reason)
	}
}

// What a process has printed is cut where it is too long. Of a step that is no result.
func TestW9_AResultThatWasCutFailsItsStep(t *testing.T) {
	d := newDataWorld(newWorld(t), relay, `null`, `"the beginning"`)
	d.cut = true
	d.calm()
	if head := d.head(); head.State != run.Failed || !strings.HasPrefix(head.Reason, "step extract is failed: result_too_large: ") || d.handed("x") != "nothing" {
		t.Errorf("the run is %s: %s", head.State, head.Reason)
	}
}

// A result that is gone when a successor starts fails that, and tells whose it was.
func TestW9_Scenario40_AResultThatIsGoneFailsWhoReadsIt(t *testing.T) {
	for name, input := range map[string]string{"handed on": `"${ .steps.extract.result }"`, "read": `"${ .steps.extract.result | length }"`} {
		t.Run(name, func(t *testing.T) {
			workflow := strings.Replace(strings.Replace(relay, `"${ .steps.extract.result }"`, input, 1), `"give"}, "retry": {"max_attempts": 1}, "input"`, `"give"}, "retry": {"initial": "20m"}, "input"`, 1)
			d := newDataWorld(newWorld(t), workflow, `null`, `"`+strings.Repeat("x", 1<<20)+`"`)
			d.fails["x"] = 1
			d.advance(5*time.Minute, 10*time.Second, "worker")
			if len(d.inputs["x"]) != 1 {
				t.Fatalf("x was called %d times", len(d.inputs["x"]))
			}
			if n, err := d.blobs.DeleteExpired(context.Background(), base.AddDate(10, 0, 0), 100); err != nil || n == 0 {
				t.Fatalf("%d blobs are gone, %v", n, err)
			}
			d.advance(2*time.Hour, 10*time.Second, "worker")
			head := d.head()
			if want := "step x is failed: expression: steps.x.input: the result of step extract cannot be read any more"; head.State != run.Failed || !strings.HasPrefix(head.Reason, want) || len(d.inputs["x"]) != 1 {
				t.Errorf("the run is %s:\n got %s\nwant %s", head.State, head.Reason, want)
			}
		})
	}
}
