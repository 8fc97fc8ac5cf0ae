package protocol_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// tellsAll has the job of a name told of all that others name nobody for.
func tellsAll(name string) dispatch.DefaultCallbacks {
	all := dispatch.DefaultCallee{"": name}
	return dispatch.DefaultCallbacks{Failed: all, Missed: all, Recovered: all}
}

// refusing is a job on demand that fails, and says nothing of whom that calls.
func refusing(change ...func(*job.Definition)) job.Definition {
	def := definition(nil, 1)
	refuses(&def)
	for _, c := range change {
		c(&def)
	}
	return def
}

// namesNobody takes out whom a job calls.
func namesNobody(def *job.Definition) { def.On = job.Callbacks{} }

// recoversAll is recovers of a job that says nothing of whom that calls.
func recoversAll(w *world) {
	asks(refusing())(w)
	w.work()
	api := w.host("api")
	w.must(api.put(tenant, "a", definition(nil, 1)))
	w.must(api.trigger(tenant, "a", 0))
	w.must(api.trigger(tenant, "a", 0))
	w.elapsed += 100 * time.Millisecond
}

// defaults are acts that end a run, or record missed fires, of a job whose callbacks the operator names.
func defaults() []scenario {
	pass := func(h *host) error { return h.worker.Pass(h.life, 0) }
	twice := func(h *host) error {
		err := pass(h)
		h.elapsed += 100 * time.Millisecond
		return errors.Join(err, pass(h))
	}
	tick := func(h *host) error { return h.tick() }
	calls := func(name string) *job.Callback { return &job.Callback{Job: name} }
	return []scenario{
		{name: "all_dead", callbacks: tellsAll("tell"), prepare: asks(refusing()), act: pass},
		{name: "all_dead_and_recovered_is_not_named", callbacks: dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{tenant: "tell"}}, prepare: asks(refusing()), act: pass},
		{name: "all_succeeded", callbacks: tellsAll("tell"), prepare: asks(definition(nil, 1)), act: pass},
		{name: "all_recovered_beside_another", callbacks: tellsAll("tell"), prepare: recoversAll, act: pass, then: pass},
		{name: "all_missed", callbacks: tellsAll("tell"), prepare: misses(job.CatchUpOne, 0, namesNobody), act: tick},
		{name: "all_of_another_tenant", callbacks: dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{other: "tell"}}, prepare: asks(refusing()), act: pass},
		{name: "all_and_one_for_the_tenant", callbacks: dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{"": "other", tenant: "tell"}}, prepare: callee(asks(refusing())), act: pass},
		{name: "all_and_its_own_word", callbacks: tellsAll("other"), prepare: callee(asks(telling(refuses))), act: pass},
		{name: "all_and_its_word_on_another_event", callbacks: tellsAll("other"), prepare: callee(asks(refusing(func(def *job.Definition) { def.On.Recovered = calls("tell") }))), act: pass},
		{name: "all_and_a_request_that_calls", callbacks: tellsAll("tell"), prepare: asksToCall(refusing()), act: pass},
		{name: "all_at_a_gate", callbacks: tellsAll("tell"), prepare: asks(oneAtATime(refusing())), act: pass},
		{name: "all_of_the_one_that_is_called", callbacks: tellsAll("a"), prepare: asks(refusing()), act: pass},
		{name: "all_and_a_callback_that_fails", callbacks: tellsAll("other"), prepare: func(w *world) {
			callee(asks(telling(refuses)))(w)
			w.must(w.host("api").put(tenant, "tell", refusing()))
		}, act: twice},
		{name: "all_call_one_that_never_was", callbacks: tellsAll("nobody"), prepare: asks(refusing()), act: pass},
		{name: "all_call_one_that_comes", callbacks: tellsAll("nobody"), prepare: asks(refusing()), act: pass, then: func(h *host) error { return h.put(tenant, "nobody", definition(nil, 1)) }},
		{name: "all_call_one_that_goes", callbacks: tellsAll("tell"), prepare: asks(refusing()), act: pass, then: func(h *host) error { return h.delete(tenant, "tell") }},
		{name: "all_unknown_by_its_message", callbacks: tellsAll("tell"), prepare: func(w *world) {
			hangs(telling(atMostOnce, namesNobody))(w)
			w.elapsed += 70 * time.Second
		}, act: pass},
	}
}

// TestC1_C2_Fault01_Fault02_Fault11_EachEndOfAJobThatNamesNobody breaks each operation of each act that ends a run of a job whose callbacks the operator names, in
// each way.
func TestC1_C2_Fault01_Fault02_Fault11_EachEndOfAJobThatNamesNobody(t *testing.T) {
	for _, s := range defaults() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}

// toldOf are all events that were told of: by which job, of which, and how that run has ended.
func (w *world) toldOf() (all []string) {
	w.Helper()
	for _, r := range w.runs() {
		if r.Callback.IsZero() {
			continue
		}
		var told run.Told
		w.must(json.Unmarshal(r.Payload.Inline, &told))
		all = append(all, strings.TrimSuffix(r.ID.Job+" of "+string(told.Event)+" of "+told.Run.Job+": "+r.State.String()+", "+r.Reason, ", "))
	}
	slices.Sort(all)
	return all
}

// Who is called for all jobs, and for which: the judge has the same rules, and here they are spelt out.
func TestC1_C2_WhomTheOperatorNames(t *testing.T) {
	for name, want := range map[string][]string{
		"all_dead":                            {"tell of failed of a: succeeded"},
		"all_dead_and_recovered_is_not_named": {"tell of failed of a: succeeded"},
		"all_succeeded":                       nil,
		"all_recovered_beside_another":        {"tell of failed of a: succeeded", "tell of recovered of a: succeeded"},
		"all_missed":                          {"tell of missed of a: succeeded"},
		"all_of_another_tenant":               nil,
		"all_and_one_for_the_tenant":          {"tell of failed of a: succeeded"},
		"all_and_its_own_word":                {"tell of failed of a: succeeded"},
		"all_and_its_word_on_another_event":   {"other of failed of a: succeeded"},
		"all_and_a_request_that_calls":        {"other of failed of a: succeeded", "tell of failed of a: succeeded"},
		"all_of_the_one_that_is_called":       nil,
		"all_and_a_callback_that_fails":       {"tell of failed of a: dead, attempts spent"},
		"all_call_one_that_never_was":         {"nobody of failed of a: cancelled, there is no such job"},
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(defaults(), func(s scenario) bool { return s.name == name })
			s := defaults()[at]
			w := newWorld(t, callsForAll(s.callbacks))
			s.prepare(w)
			w.must(s.act(w.host("acting")))
			w.wants(w.settle())
			if got := w.toldOf(); !slices.Equal(got, want) {
				t.Errorf("told were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// The whole of a workflow calls whom the operator names, whoever is gone behind which of its operations; its steps call nobody.
func TestC1_C2_W4_Fault01_Fault02_AWorkflowThatNamesNobodyTellsOfItsEnd(t *testing.T) {
	steps := []reference.Step{task("a", bad, ""), task("b", bad, "", "a")}
	steps[0].Allowed = true
	for k := 1; ; k++ {
		w := newWorld(t, callsForAll(dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{"": "tell"}}))
		w.must(w.host("api").put(tenant, "tell", definition(nil, 1)))
		f := newFlowWorld(w, steps)
		met, last := f.crashing(k)
		f.calm()
		f.swept()
		if got, _ := f.told(); !slices.Equal(got, []string{"failed of " + f.id.String()}) {
			t.Fatalf("gone before operation %d (%s): told were %v", k, last, got)
		}
		if !met {
			break
		}
	}
}
