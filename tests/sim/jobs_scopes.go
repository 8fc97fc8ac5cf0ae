package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// drawScoped draws how many scopes of workflows ask whether they run, and give what others read, from a stream of its own: a world in which none does stays as it
// was before they could.
func (m *Mix) drawScoped(r *rand.Rand) {
	if m.Jobs.Workflows > 0 && chance(r, 0.5) {
		m.Jobs.Scoped = pick(r, []float64{0.4, 0.7, 1})
	}
}

// conditions are those of scopes: some hold for all runs, or for none, some for a few, and some give neither true nor false.
var conditions = []string{"true", `.run.nominal_time[18:19] != "7"`, `.run.nominal_time[15:16] < "5"`, `.run.trigger == "schedule"`, "false", ".run.job"}

// scoped has some scopes of a graph ask whether they run, some have an output, and tasks that wait for scopes be handed what these give.
func (m *Mix) scoped(r *rand.Rand, steps map[string]flow.Step) {
	names := slices.Sorted(maps.Keys(steps))
	for _, name := range names {
		s := steps[name]
		switch {
		case len(s.Steps) > 0:
			m.scoped(r, s.Steps)
			if chance(r, m.Jobs.Scoped) {
				s.When = pick(r, conditions)
			}
			if chance(r, m.Jobs.Scoped/2) {
				inside := slices.Sorted(maps.Keys(s.Steps))
				s.Output = fmt.Appendf(nil, `{"one": %s, "other": %s}`, read(r, pick(r, inside)), read(r, pick(r, inside)))
			}
		case s.Handler != nil:
			for _, needed := range s.Needs {
				if len(steps[needed].Steps) > 0 && chance(r, m.Jobs.Scoped) {
					s.Input = reads(r, s.Input, needed)
					break
				}
			}
		}
		steps[name] = s
	}
}

// read is a text that is what is told of a step, or some of that.
func read(r *rand.Rand, name string) []byte {
	text, err := json.Marshal(fmt.Sprintf(`${ .steps["%s"]%s }`, name, pick(r, []string{".result", ".state", ""})))
	if err != nil {
		panic(fmt.Sprintf("an expression as JSON: %v", err))
	}
	return text
}

// reads adds what a scope gives to what a task does, which is its input, or what its run brings.
func reads(r *rand.Rand, input json.RawMessage, scope string) json.RawMessage {
	if input == nil {
		return fmt.Appendf(nil, `"${ (.input | objects // {}) + {reads: .steps[\"%s\"]%s} }"`, scope, pick(r, []string{".result", ""}))
	}
	var does map[string]json.RawMessage
	if err := json.Unmarshal(input, &does); err != nil {
		panic(fmt.Sprintf("the work of a task: %v", err))
	}
	does["reads"] = read(r, scope)
	text, err := json.Marshal(does)
	if err != nil {
		panic(fmt.Sprintf("the work of a task as JSON: %v", err))
	}
	return text
}
