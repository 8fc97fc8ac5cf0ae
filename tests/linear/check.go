package linear

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Report is what a check found.
type Report struct {
	Requests   int // sent, each try
	Lost       int // of which nobody knows what became
	Refused    int // that did nothing
	Operations int // checked
	Unknown    int // of them, those of which nobody knows whether they happened
	Open       int // of these, those that may have happened at any time up to the end of the history
	Things     int // jobs, runs and keys
	Took       time.Duration
	Failures   []Failure
}

// Failure is a thing whose history has no order in which every answer is right, or for which none was found in time.
type Failure struct {
	Thing   string
	Verdict porcupine.CheckResult
	Text    string // for people: how far an order comes, and what does not fit
	page    []byte // porcupine's picture of it
}

// Undecided tells that nobody knows whether there is an order: the search ran out of time.
func (f Failure) Undecided() bool { return f.Verdict == porcupine.Unknown }

func (r Report) String() string {
	return fmt.Sprintf("%d requests, %d lost, %d refused: %d operations on %d jobs, runs and keys checked by porcupine in %s, %d of them of unknown outcome, %d of these to the end",
		r.Requests, r.Lost, r.Refused, r.Operations, r.Things, r.Took.Round(time.Millisecond), r.Unknown, r.Open)
}

// perThing is how long the search for one thing's order may take. In histories that have one it takes milliseconds.
const perThing = 20 * time.Second

// Hold checks what was recorded, and fails the test where it does not hold: a verdict of "unknown" is a failure too. What failed is
// drawn into the test's artifacts (go test -artifacts -outputdir DIR keeps them). Call it when no request is under way, outside of
// virtual time.
func Hold(t *testing.T, r *Recorder) Report {
	t.Helper()
	report := r.Check(perThing)
	for _, f := range report.Failures {
		name := filepath.Join(t.ArtifactDir(), plain.ReplaceAllString(f.Thing, "_")+".html")
		if err := os.WriteFile(name, f.page, 0o600); err != nil {
			t.Error(err)
		}
		t.Errorf("%s\nThe whole history: %s", f.Text, name)
	}
	t.Log(report)
	return report
}

var plain = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Check looks for an order for each thing, each for so long.
func (r *Recorder) Check(each time.Duration) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	began := r.now()
	report := Report{Requests: r.requests, Lost: r.lost, Refused: r.refused, Things: len(r.things)}
	things := r.sorted()
	failures := make([]*Failure, len(things))
	work := make(chan int)
	var searchers sync.WaitGroup
	for range 2 {
		searchers.Go(func() {
			for i := range work {
				failures[i] = r.search(things[i], each)
			}
		})
	}
	for i, on := range things {
		all := r.of(on)
		report.Operations += len(all)
		for _, o := range all {
			if o.back == 0 {
				report.Unknown++
				if o.way.over == 0 {
					report.Open++
				}
			}
		}
		work <- i
	}
	close(work)
	searchers.Wait()
	for _, f := range failures {
		if f != nil {
			report.Failures = append(report.Failures, *f)
		}
	}
	report.Took = r.now().Sub(began)
	return report
}

var models = map[string]porcupine.Model{aJob: jobs(), aRun: runModel.ToModel(), aKey: keyModel.ToModel()}

// search looks for the order of one thing.
func (r *Recorder) search(on thing, each time.Duration) *Failure {
	model := models[on.kind]
	operations := r.operations(on)
	verdict := porcupine.CheckOperationsTimeout(model, operations, each)
	if verdict == porcupine.Ok {
		return nil
	}
	// Once more, and now it notes how far it comes.
	_, info := porcupine.CheckOperationsVerbose(model, operations, each)
	f := &Failure{Thing: on.String(), Verdict: verdict, Text: explain(on, model, verdict, operations, info)}
	var page bytes.Buffer
	if err := porcupine.Visualize(model, info, &page); err != nil {
		fmt.Fprintf(&page, "<p>not drawn: %s", err)
	}
	f.page = page.Bytes()
	return f
}

// operations are those of one thing as porcupine takes them, by their begins. Those whose outcome is not known end
// when their request is over, as far as that was told, and else with the history.
func (r *Recorder) operations(on thing) []porcupine.Operation {
	end := r.moment + 1
	history := r.of(on)
	all := make([]porcupine.Operation, 0, len(history))
	for _, o := range history {
		what := o.what
		if step, ok := what.(jobStep); ok {
			step.stepped = r.stepped
			if step.match != "" && step.match != "*" {
				step.etag = -1 // one that no answer told stands for no generation
				if generation, ok := r.tags[step.match]; ok {
					step.etag = generation
				}
			}
			what = step
		}
		if step, ok := what.(runStep); ok && r.stepped && step.seen.state == "scheduled" {
			step.seen.state = "queued" // which of the two is shown, the clock tells
			what = step
		}
		all = append(all, porcupine.Operation{ClientId: o.client, Input: what, Call: o.call, Return: o.ends(end)})
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	return all
}

// explain says how far the longest order comes, and which answers fit nowhere behind it.
func explain(on thing, model porcupine.Model, verdict porcupine.CheckResult, all []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var text strings.Builder
	if verdict == porcupine.Unknown {
		fmt.Fprintf(&text, "%s: in time, no order of its %d operations was found in which every answer is right.\n", on, len(all))
	} else {
		fmt.Fprintf(&text, "%s: its %d operations have no order in which every answer is right.\n", on, len(all))
	}
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	state := model.Init()
	for _, o := range longest {
		if ok, next := model.Step(state, o.Input, o.Output); ok {
			state = next
		}
	}
	fmt.Fprintf(&text, "The longest order that is right has %d of them, and leads to: %s\n", len(longest), model.DescribeState(state))
	for _, o := range longest[max(0, len(longest)-shown):] {
		fmt.Fprintf(&text, "  %s\n", describe(model, o))
	}
	left := without(all, longest)
	next := int64(math.MaxInt64)
	for _, o := range left {
		next = min(next, o.Return)
	}
	text.WriteString("None of these fits next:")
	left = slices.DeleteFunc(left, func(o porcupine.Operation) bool { return o.Call > next })
	for _, o := range left[:min(len(left), shown)] {
		fmt.Fprintf(&text, "\n  %s", describe(model, o))
	}
	return text.String()
}

// shown is how many operations an explanation lists, before and after.
const shown = 8

func describe(model porcupine.Model, o porcupine.Operation) string {
	return fmt.Sprintf("[%d to %d] client %d: %s", o.Call, o.Return, o.ClientId, model.DescribeOperation(o.Input, o.Output))
}

// without takes each of some operations out of all, once.
func without(all, some []porcupine.Operation) []porcupine.Operation {
	left := slices.Clone(all)
	for _, o := range some {
		if i := slices.Index(left, o); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	return left
}
