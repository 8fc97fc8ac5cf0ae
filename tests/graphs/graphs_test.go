package graphs

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func named(t *testing.T, name string) Graph {
	t.Helper()
	all := Fixed()
	i := slices.IndexFunc(all, func(g Graph) bool { return g.Name == name })
	return all[i]
}

// asTold is the outcome that the evaluator has.
func asTold(g Graph) Outcome {
	want := reference.Evaluate(g.Steps)
	states := map[rune]string{good: "succeeded", bad: "failed", reference.Upstream: "upstream_failed", reference.Skip: "skipped"}
	o := Outcome{End: states[want.End], Steps: map[string]End{}}
	for path, end := range want.Ends {
		o.Steps[path] = End{State: states[end]}
	}
	return o
}

func TestEveryGraphIsTaken(t *testing.T) {
	all := append(Fixed(), Draw(1, 20)...)
	for _, g := range all {
		if _, err := flow.CheckTarget(g.workflow("http://127.0.0.1"), job.DefaultQueue, flow.AnyQueue); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		if wrong := g.Same(asTold(g), asTold(g)); len(wrong) > 0 {
			t.Errorf("%s: %q", g.Name, wrong)
		}
	}
	if again := Draw(1, 20); string(again[19].workflow("")) != string(all[len(all)-1].workflow("")) {
		t.Error("a seed draws other graphs the second time")
	}
}

// What is wrong with an outcome is told, and what follows from a step that was lost is not wrong.
func TestJudge(t *testing.T) {
	g := named(t, "once")
	for name, row := range map[string]struct {
		change func(*Outcome)
		want   string // "" for nothing
	}{
		"as told":              {func(*Outcome) {}, ""},
		"another end":          {func(o *Outcome) { o.End = "succeeded" }, "it ended as succeeded"},
		"another reason":       {func(o *Outcome) { o.End += " so" }, `without kills as "failed"`},
		"another result":       {func(o *Outcome) { o.Steps["c"] = End{"succeeded", "1"} }, "step c is"},
		"a step never ran":     {func(o *Outcome) { o.Steps["c"] = End{State: "skipped"} }, "step c is"},
		"what cannot be":       {func(o *Outcome) { o.Wrong = []string{"W1: so"} }, "W1: so"},
		"a step is lost":       {func(o *Outcome) { o.Lost = []string{"b-once"}; o.Steps["b-once"] = End{State: "unknown"} }, ""},
		"and what follows not": {func(o *Outcome) { o.Lost = []string{"a-once"}; o.Steps["a-once"] = End{State: "unknown"} }, "step b-once is"},
		"a state without loss": {func(o *Outcome) { o.Steps["b-once"] = End{State: "unknown"} }, "step b-once is"},
	} {
		o := asTold(g)
		o.Steps = maps.Clone(o.Steps)
		row.change(&o)
		wrong := strings.Join(g.Same(o, asTold(g)), "\n")
		if row.want == "" && wrong != "" || !strings.Contains(wrong, row.want) {
			t.Errorf("%s: %q, want %q", name, wrong, row.want)
		}
	}
}

func TestWhatComesBehindAnEnd(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	r := wire.Run{ID: "r", EndedAt: at(20)}
	twice := []wire.Attempt{{Attempt: 1, Outcome: "succeeded"}, {Attempt: 2, Outcome: "succeeded"}}
	for want, s := range map[string]wire.Step{
		"":                          {Path: "a", State: "succeeded", Attempt: 1, StartedAt: at(1), EndedAt: at(20), Attempts: twice[:1]},
		"began when it had":         {Path: "a", State: "succeeded", Attempt: 2, EndedAt: at(20), Attempts: twice},
		"its step a is running":     {Path: "a", State: "running", Attempt: 1},
		"and the run ended at":      {Path: "a", State: "failed", Attempt: 1, EndedAt: at(21)},
		"began at":                  {Path: "a", State: "failed", Attempt: 1, StartedAt: at(10), EndedAt: at(5)},
		"by none of its attempts":   {Path: "a", State: "succeeded", Attempt: 1, EndedAt: at(5)},
		"ended, and its step a is ": {Path: "a", State: "cancelled"},
	} {
		wrong := strings.Join(inOrder(r, s), "\n")
		if want == "" && wrong != "" || !strings.Contains(wrong, want) {
			t.Errorf("%+v: %q, want %q", s, wrong, want)
		}
	}
}

// A target tells of calls that may not be, and refuses those of a process that is gone.
func TestTarget(t *testing.T) {
	u := NewTarget(t, []Graph{named(t, "once"), named(t, "failed")})
	call := func(name, step string, fence int) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL, strings.NewReader(payload))
		if err != nil {
			t.Fatal(err)
		}
		for header, value := range map[string]string{"Belfry-Job": name, "Belfry-Run": "r-" + name + "/" + step, "Belfry-Fence": strconv.Itoa(fence)} {
			req.Header.Set(header, value)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := call("failed", "a", 2); got < 400 {
		t.Errorf("a step that fails answers %d", got)
	}
	call("failed", "a", 3)
	if got := call("failed", "a", 2); got != http.StatusConflict {
		t.Errorf("a call under an older fence is answered with %d", got)
	}
	if got := call("failed", "d", 2); got != http.StatusOK {
		t.Errorf("a step that succeeds answers %d", got)
	}
	if wrong := u.Wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	early := u.Early("r-failed", asTold(named(t, "failed")))
	if len(early) != 1 || !strings.Contains(early[0], "d of r-failed began before c had ended") {
		t.Errorf("%q, want d before c", early)
	}
	call("failed", "d", 2)
	call("once", "a-once", 2)
	call("once", "a-once", 3)
	call("once", "nothing", 2)
	wrong := strings.Join(u.Wrong(), "\n")
	for _, want := range []string{"d of r-failed was called twice under fence 2", "a-once of r-once was called twice, under fences 2 and 3", `run "r-once/nothing"`} {
		if !strings.Contains(wrong, want) {
			t.Errorf("%q is not in %q", want, wrong)
		}
	}
	if u.Calls() != 6 {
		t.Errorf("%d calls, want 6", u.Calls())
	}
}
