package protocol_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// tells has the job "tell" told of the ends of the workflow's runs.
func tells(def *job.Definition) { def.On = telling().On }

// newTellingFlow is a world whose workflow tells of its ends.
func newTellingFlow(t *testing.T, steps []reference.Step) *flowWorld {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "tell", definition(nil, 1)))
	return newFlowWorld(w, steps, tells)
}

// told are the events that were told of, and of which runs, in the order of the runs that tell. Each of these has succeeded.
func (f *flowWorld) told() (events []string, last run.Told) {
	for _, r := range f.runs() {
		if r.Callback.IsZero() {
			continue
		}
		if r.State != run.Succeeded || r.ID.Job != "tell" {
			f.Errorf("C1: run %s, which tells of %+v, is %s", r.ID, r.Callback, r.State)
		}
		f.must(json.Unmarshal(r.Payload.Inline, &last))
		events = append(events, r.Callback.Event+" of "+r.Callback.Run)
	}
	slices.Sort(events)
	return events, last
}

// swept lets the first sweep make what the end of a run has left, and checks send what of that has no message any more.
func (f *flowWorld) swept() {
	f.advance(6*time.Minute, 10*time.Second, "calm")
	for range 5 {
		if !slices.ContainsFunc(f.runs(), func(r run.Run) bool { return !r.State.Ended() }) {
			return
		}
		f.advance(16*time.Minute, 10*time.Second, "calm")
	}
}

// The end of a workflow's run calls what any end of a run calls, once, whoever is gone behind which of their operations; its steps call nothing.
func TestC1_C2_W4_Fault01_Fault02_AWorkflowTellsOfItsEnd(t *testing.T) {
	for event, steps := range map[string][]reference.Step{
		"succeeded": {task("a", bad, ""), task("b", good, "", "a")},
		"failed":    {task("a", good, ""), task("b", bad, "", "a")},
	} {
		steps[0].Allowed = true
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s_lost_%t", event, lost), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					f := newTellingFlow(t, steps)
					met, last := f.crashing(k)
					if lost {
						f.elapsed += 20 * time.Minute
						f.lose()
					}
					f.calm()
					f.swept()
					want := []string{event + " of " + f.id.String()}
					got, told := f.told()
					if !slices.Equal(got, want) || told.Run.Reason != f.head().Reason {
						t.Fatalf("gone before operation %d (%s): the run is %s (%s) and told were %v (%+v), want %v", k, last, f.head().State, f.head().Reason, got, told, want)
					}
					if !met {
						break
					}
				}
			})
		}
	}
}

// Who stood still while others brought the run to its end calls nobody again.
func TestC2_W4_Fault40_AWorkflowWhoseEndIsWrittenByTwo(t *testing.T) {
	for k := 1; ; k++ {
		f := newTellingFlow(t, []reference.Step{task("a", bad, "")})
		thaw := f.freezing(k)
		f.elapsed += time.Hour
		f.calm()
		if thaw == nil {
			break
		}
		thaw()
		f.calm()
		f.swept()
		if got, _ := f.told(); !slices.Equal(got, []string{"failed of " + f.id.String()}) {
			t.Fatalf("stood still before operation %d: told were %v", k, got)
		}
	}
}

// A workflow that recovers tells of that, and one whose time is over that it was given up. A cancel calls nothing.
func TestC1_C2_W4_AWorkflowThatIsLateAndRecoversAndIsCancelled(t *testing.T) {
	f := newTellingFlow(t, graphs["chain"])
	again := func(more string, during func()) run.ID {
		def := job.Definition{}
		tells(&def)
		f.must(f.defineAs("flow", more, def))
		r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "flow", controlRequest())
		f.must(err)
		f.id, f.during = r.ID, func(string) { during() }
		f.work()
		f.calm()
		f.swept()
		return r.ID
	}
	f.work()
	first := f.id
	late := again(`, "timeout": "30s"`, func() { f.elapsed += 40 * time.Second })
	stopped := again("", func() {
		if _, err := f.host("api").control.Cancel(context.Background(), tenant, f.id, "no longer needed"); err != nil {
			t.Error(err)
		}
	})
	well := again("", func() {})
	want := []string{"failed of " + late.String(), "recovered of " + well.String(), "succeeded of " + first.String(), "succeeded of " + well.String()}
	got, _ := f.told()
	if !slices.Equal(got, want) {
		t.Errorf("told were %s, want %s; cancelled was %s", strings.Join(got, ", "), strings.Join(want, ", "), stopped)
	}
}
