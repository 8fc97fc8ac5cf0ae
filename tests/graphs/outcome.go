package graphs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Outcome is how a run came out.
type Outcome struct {
	End   string         // state and reason
	Steps map[string]End // by path
	Lost  []string       // paths of steps that ended otherwise than they do where nobody dies: a worker died in their only attempt, or in each of too many
	Wrong []string       // what may not be, whatever has died
	Shown []string       // run and steps as they were read, for people
}

// End is how a step came out.
type End struct{ State, Result string }

// Look reads how a run that has ended came out.
func Look(ctx context.Context, server *client.Client, id string) (Outcome, error) {
	o := Outcome{Steps: map[string]End{}}
	r, err := server.Run(ctx, id)
	if err != nil {
		return o, err
	}
	if r.EndedAt.IsZero() {
		o.Wrong = append(o.Wrong, fmt.Sprintf("W3: %s is %s", id, r.State))
	}
	o.End = strings.TrimSpace(r.State + " " + r.Reason)
	o.Shown = append(o.Shown, fmt.Sprintf("%s: %s, opened %s, ended %s, generation %d", r.ID, o.End, r.StartedAt, r.EndedAt, r.Generation))
	for s, err := range server.Steps(ctx, id, client.StepFilter{}) {
		if err != nil {
			return o, err
		}
		if s.Attempt > 0 || s.Kind == "scope" {
			if s, err = server.Step(ctx, id, s.Path); err != nil { // with its result
				return o, err
			}
		}
		o.Steps[s.Path] = End{s.State, string(s.Result)}
		if s.State == "unknown" || strings.HasPrefix(s.Reason, "killed its worker") {
			o.Lost = append(o.Lost, s.Path)
		}
		o.Wrong = append(o.Wrong, inOrder(r, s)...)
		o.Shown = append(o.Shown, fmt.Sprintf("%s: %s %s, released %s, began %s, ended %s: %+v", s.Path, s.State, s.Reason, s.ReleasedAt, s.StartedAt, s.EndedAt, s.Attempts))
	}
	return o, nil
}

// inOrder tells what of a step comes behind its own end, or that of its run.
func inOrder(r wire.Run, s wire.Step) (wrong []string) {
	succeeded := false
	for _, a := range s.Attempts {
		if succeeded {
			wrong = append(wrong, fmt.Sprintf("W1: attempt %d of step %s of %s began when it had succeeded", a.Attempt, s.Path, r.ID))
		}
		succeeded = succeeded || a.Outcome == "succeeded"
	}
	switch {
	case !slices.Contains([]string{"succeeded", "failed", "dead", "unknown", "skipped", "upstream_failed"}, s.State):
		wrong = append(wrong, fmt.Sprintf("W4: %s has ended, and its step %s is %s", r.ID, s.Path, s.State))
	case s.EndedAt.After(r.EndedAt), s.StartedAt.After(s.EndedAt.Add(dispatch.MaxSkew)): // the one by its step, the other perhaps by two clocks
		wrong = append(wrong, fmt.Sprintf("W4: step %s of %s began at %s and ended at %s, and the run ended at %s", s.Path, r.ID, s.StartedAt, s.EndedAt, r.EndedAt))
	case s.State == "succeeded" && s.Attempt > 0 && !succeeded:
		wrong = append(wrong, fmt.Sprintf("W1: step %s of %s succeeded by none of its attempts", s.Path, r.ID))
	}
	return wrong
}

// Judge tells in what an outcome is not that of the evaluator, where lost steps count as failed.
func (g Graph) Judge(o Outcome) []string {
	wrong := slices.Clone(o.Wrong)
	want := reference.Evaluate(withLost(g.Steps, "", o.Lost))
	if state, _, _ := strings.Cut(o.End, " "); state != map[rune]string{good: "succeeded", bad: "failed"}[want.End] {
		wrong = append(wrong, fmt.Sprintf("W2: it ended as %s, and the evaluator has %c", o.End, want.End))
	}
	for path, end := range want.Ends {
		states := map[rune][]string{good: {"succeeded"}, bad: {"failed", "dead", "unknown"}, reference.Upstream: {"upstream_failed"}, reference.Skip: {"skipped"}}[end]
		if !slices.Contains(states, o.Steps[path].State) {
			wrong = append(wrong, fmt.Sprintf("W2: step %s is %q, and the evaluator has %c", path, o.Steps[path].State, end))
		}
	}
	return wrong
}

// Same tells in what an outcome is not that of another run of the graph, of which nothing was lost. Where something was lost of this one, it is judged
// by the evaluator alone.
func (g Graph) Same(o, other Outcome) []string {
	wrong := g.Judge(o)
	if len(o.Lost) > 0 {
		return wrong
	}
	if o.End != other.End {
		wrong = append(wrong, fmt.Sprintf("it ended as %q, and without kills as %q", o.End, other.End))
	}
	for _, path := range slices.Sorted(maps.Keys(other.Steps)) {
		if o.Steps[path] != other.Steps[path] {
			wrong = append(wrong, fmt.Sprintf("step %s is %q, and without kills %q", path, o.Steps[path], other.Steps[path]))
		}
	}
	return wrong
}

func withLost(steps []reference.Step, prefix string, lost []string) []reference.Step {
	changed := slices.Clone(steps)
	for i, s := range changed {
		if slices.Contains(lost, prefix+s.Name) {
			changed[i].End, changed[i].Code = bad, "crash"
		}
		changed[i].Inside = withLost(s.Inside, prefix+s.Name+"/", lost)
	}
	return changed
}
