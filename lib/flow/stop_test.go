package flow_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// stoppable is a workflow with a scope that stops, in one that may be caught.
const stoppable = `{"timeout": "1d", %s"steps": {"before": {"handler": {"name": "x"}},
	"s": {"needs": ["before"], %s "steps": {"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}}, "c": {"needs": ["b"], "handler": {"name": "x"}},
		"d": {"needs": ["a"], "rule": "all_done", "handler": {"name": "x"}}, "e": {"needs": ["a"], "handler": {"name": "x"}}, "p": {"needs": ["b"], "rule": "all_done", "pass": {}},
		"t": {"needs": ["b"], "rule": "all_done", "steps": {"f": {"handler": {"name": "x"}}}}}},
	"next": {"needs": ["s"], "handler": {"name": "x"}}%s}}`

func TestPlanOfScopesThatStop(t *testing.T) {
	const stops, times = `"on_failure": "stop",`, `"timeout": "1h",`
	type facts = map[string]flow.State
	for name, c := range map[string]struct {
		whole, scope, more    string
		facts                 facts
		stopped               map[string]string // scopes that were, by what; "" by their time
		halt, release, cancel string
		states                facts
		caught                string // by whom the failure of s is, and what of
		cause                 string
		stop                  string
		shown                 facts
	}{
		"before it is released":          {"", times, "", facts{"before": flow.Succeeded}, nil, "", "[]", "[]", facts{"s": flow.Queued, "s/a": flow.Pending}, "", "", "", nil},
		"nothing has failed":             {"", stops, "", facts{"before": flow.Succeeded, "s/a": flow.Running}, nil, "", "[s/b]", "[]", facts{"s": flow.Running}, "", "", "", nil},
		"a step fails":                   {"", stops, "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Running}, nil, "s by s/a", "[]", "[]", facts{"s": flow.Running}, "", "s/a", "", nil},
		"and its scope finishes":         {"", "", "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Running}, nil, "", "[s/d]", "[]", facts{"s": flow.Running}, "", "s/a", "", nil},
		"one in a scope inside":          {"", stops, "", facts{"before": flow.Succeeded, "s/a": flow.Running, "s/b": flow.Succeeded, "s/c": flow.Running, "s/t/f": flow.Dead}, nil, "s by s/t/f", "[]", "[]", facts{"s": flow.Running}, "", "s/t/f", "", nil},
		"others go on":                   {"", stops, `, "beside": {"handler": {"name": "x"}}`, facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Running}, nil, "s by s/a", "[beside]", "[]", nil, "", "", "", nil},
		"the run stops as well":          {`"on_failure": "stop", `, stops, "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Running}, nil, "", "[]", "[]", nil, "", "", "s/a", nil},
		"but not of what may be handled": {`"on_failure": "stop", `, stops + `"allow_failure": true,`, "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Running}, nil, "s by s/a", "[]", "[]", nil, "", "", "", nil},
		"it was stopped": {"", stops, "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Running}, map[string]string{"s": "s/a"}, "", "[]", "[s/d]",
			facts{"s": flow.Running, "s/e": flow.UpstreamFailed, "next": flow.Pending}, "", "", "", nil},
		"what runs ends": {"", stops, "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Cancelled, "s/d": flow.Cancelled}, map[string]string{"s": "s/a"}, "", "[]", "[s/t/f]",
			facts{"s": flow.Running, "s/t": flow.Running, "next": flow.Pending}, "", "", "", nil},
		"all has ended": {"", stops, "", facts{"before": flow.Succeeded, "s/a": flow.Failed, "s/b": flow.Cancelled, "s/d": flow.Cancelled, "s/t/f": flow.Cancelled}, map[string]string{"s": "s/a"}, "", "[]", "[]",
			facts{"s": flow.Failed, "next": flow.UpstreamFailed}, "", "s/a", "", facts{"s/a": flow.Failed, "s/e": flow.UpstreamFailed, "s/c": flow.Cancelled, "s/d": flow.Cancelled, "s/p": flow.Cancelled, "s/t": flow.Cancelled, "s": flow.Failed}},
		"of its time": {"", times + `"catch": [{"codes": ["timeout"], "to": "late"}, {"to": "other"}],`, `, "late": {"handler": {"name": "x"}}, "other": {"handler": {"name": "x"}}`,
			facts{"before": flow.Succeeded, "s": flow.Running, "s/a": flow.Cancelled, "s/b": flow.Failed, "s/d": flow.Cancelled, "s/t/f": flow.Cancelled}, map[string]string{"s": ""}, "", "[late]", "[]",
			facts{"s": flow.Failed, "next": flow.Skipped, "other": flow.Skipped}, "late of timeout", "", "", facts{"s/c": flow.UpstreamFailed, "s/e": flow.Cancelled}},
		"by a failure that is caught": {"", stops + `"catch": [{"codes": ["panic"], "to": "late"}, {"to": "other"}],`, `, "late": {"handler": {"name": "x"}}, "other": {"handler": {"name": "x"}}`,
			facts{"before": flow.Succeeded, "s/a": flow.Cancelled, "s/b": flow.Failed, "s/d": flow.Cancelled, "s/t/f": flow.Cancelled}, map[string]string{"s": "s/b"}, "", "[late]", "[]",
			facts{"s": flow.Failed}, "late of panic", "", "", nil},
		"too late": {"", times, "", facts{"before": flow.Succeeded, "s": flow.Running, "s/a": flow.Succeeded, "s/b": flow.Succeeded, "s/c": flow.Succeeded, "s/d": flow.Succeeded, "s/e": flow.Succeeded, "s/t/f": flow.Succeeded},
			map[string]string{"s": ""}, "", "[next]", "[]", facts{"s": flow.Succeeded}, "", "", "", nil},
		"one that never began": {"", times + `"when": ".input.a",`, "", facts{"before": flow.Succeeded, "s": flow.Cancelled}, nil, "", "[]", "[]", facts{"s": flow.Cancelled, "s/t/f": flow.UpstreamFailed}, "", "s", "", nil},
	} {
		w := workflow(t, fmt.Sprintf(stoppable, c.whole, c.scope, c.more))
		all := make([]flow.Fact, len(w.Nodes))
		index := func(path string) int {
			if n, ok := w.Node(path); ok {
				return n.Index
			}
			return flow.None
		}
		for path, state := range c.facts {
			all[index(path)] = flow.Fact{State: state, To: flow.None}
			if state.Failure() {
				all[index(path)].Code = "panic"
			}
		}
		for path, by := range c.stopped {
			all[index(path)].Stopped, all[index(path)].By = true, index(by)
		}
		d := w.Plan(all)
		paths := func(nodes []int) string {
			var got []string
			for _, i := range nodes {
				got = append(got, w.Nodes[i].Path)
			}
			return fmt.Sprint(got)
		}
		var halt []string
		for scope, by := range d.Halt {
			halt = append(halt, w.Nodes[scope].Path+" by "+w.Nodes[by].Path)
		}
		if got := strings.Join(halt, ", "); got != c.halt || paths(d.Release) != c.release || paths(d.Cancel) != c.cancel {
			t.Errorf("%s: stops %q, releases %s and cancels %s, want %q, %s and %s", name, got, paths(d.Release), paths(d.Cancel), c.halt, c.release, c.cancel)
		}
		for path, want := range c.states {
			if got := d.States[index(path)]; got != want {
				t.Errorf("%s: %s is %s, want %s", name, path, got, want)
			}
		}
		caught := ""
		if to, is := d.Caught[index("s")]; is {
			caught = w.Nodes[to.To].Path + " of " + to.Code
		}
		cause := ""
		if i := w.Cause(index("s"), &d); i != flow.None {
			cause = w.Nodes[i].Path
		} else if i := w.Cause(flow.None, &d); i != flow.None && c.cause != "" {
			cause = w.Nodes[i].Path
		}
		stop := ""
		if d.Stop != flow.None {
			stop = w.Nodes[d.Stop].Path
		}
		if caught != c.caught || c.cause != "" && cause != c.cause || stop != c.stop {
			t.Errorf("%s: caught by %q, failed of %q, and the run stops of %q; want %q, %q and %q", name, caught, cause, stop, c.caught, c.cause, c.stop)
		}
		shown := w.Shown(all, d)
		for path, want := range c.shown {
			if got := shown[index(path)]; got != want {
				t.Errorf("%s: %s is shown as %s, want %s", name, path, got, want)
			}
		}
		if d.Settled() != (c.halt == "" && c.release == "[]" && c.cancel == "[]" && c.stop == "" && d.End == "" && len(d.Ask) == 0) {
			t.Errorf("%s: settled: %t", name, d.Settled())
		}
	}
}

// stopping is the run of a random graph in which scopes stop: what stands of each node, and which scopes were stopped. Those who bring it on may have read that some time
// before they read what stands, and put what follows from it some time after.
type stopping struct {
	*graph
	rows   []flow.Fact
	heads  []map[int]int // what was written of stops, one after the other
	marked map[int]bool  // what runs and was told to stop
	later  []func()      // what somebody does some time
	said   []flow.Fact   // what anybody has said of ends
	caught map[int]flow.Caught
	begun  map[int]bool
}

// with gives the facts by some rows and what is known of stops.
func (s *stopping) with(rows []flow.Fact, head map[int]int) []flow.Fact {
	facts := slices.Clone(rows)
	for scope, by := range head {
		facts[scope].Stopped, facts[scope].By = true, by
	}
	return facts
}

// answers is how a node that runs comes out, where nobody stops it.
func (s *stopping) answers(i int, chance *rand.Rand) flow.Fact {
	f := s.fact(i, chance)
	if f.State == flow.Cancelled {
		f.State = flow.Failed
	}
	return f
}

// put puts a row where nothing stands.
func (s *stopping) put(i int, f flow.Fact) {
	if s.rows[i].State == "" {
		s.rows[i] = f
	}
}

// look is what somebody does who has read what was written of stops, and then what stands.
func (s *stopping) look(t *testing.T, chance *rand.Rand, head int, all bool) (end flow.State) {
	t.Helper()
	rows := slices.Clone(s.rows)
	for i := range rows {
		if !all && chance.IntN(3) == 0 {
			rows[i] = flow.Fact{}
		}
	}
	facts := s.with(rows, s.heads[head])
	for i, f := range rows {
		if f.State == flow.Cancelled && s.flow.StoppedBy(facts, i) == flow.None {
			return "" // it has read of stops too early, and begins anew
		}
	}
	d := s.flow.Plan(facts)
	for i, state := range d.States {
		if !state.Ended() {
			continue
		}
		if was := s.said[i].State; was != "" && was != state {
			t.Errorf("%s is %s, and was %s before", s.flow.Nodes[i].Path, state, was)
		}
		s.said[i].State = state
		c, is := d.Caught[i]
		if was, before := s.caught[i]; before && (!is || c != was) {
			t.Errorf("the failure of %s is caught by %v, and was by %v before", s.flow.Nodes[i].Path, c, was)
		}
		if is {
			s.caught[i] = c
		}
	}
	for _, i := range d.Release {
		s.later = append(s.later, func() { s.put(i, flow.Fact{State: flow.Queued}) })
	}
	for _, i := range d.Ask {
		answer := s.answers(i, chance)
		s.later = append(s.later, func() { s.put(i, answer) })
	}
	if !all {
		return "" // who has read some alone does no more
	}
	for _, i := range d.Cancel {
		s.later = append(s.later, func() { s.put(i, flow.Fact{State: flow.Cancelled, To: flow.None, Code: "cancelled"}) })
	}
	for i, f := range rows {
		if s.flow.StoppedBy(facts, i) == flow.None || f.Stopped || f.State.Ended() || s.flow.Nodes[i].Kind == flow.KindScope {
			continue
		}
		s.later = append(s.later, func() {
			switch s.rows[i].State {
			case flow.Queued:
				s.rows[i] = flow.Fact{State: flow.Cancelled, To: flow.None, Code: "cancelled"}
			case flow.Running:
				s.marked[i] = true
			}
		})
	}
	halt := maps.Clone(d.Halt)
	if halt == nil {
		halt = map[int]int{}
	}
	for i, state := range d.States {
		n := &s.flow.Nodes[i]
		if n.Timeout != 0 && rows[i].State == flow.Running && state == flow.Running && !facts[i].Stopped && s.flow.StoppedBy(facts, i) == flow.None && chance.IntN(12) == 0 {
			halt[i] = flow.None
		}
		if head == len(s.heads)-1 {
			s.halts(t, d, facts, i)
		}
	}
	if len(halt) > 0 {
		s.later = append(s.later, func() {
			if head != len(s.heads)-1 {
				return // another has written, and it begins anew
			}
			next := maps.Clone(s.heads[head])
			maps.Copy(next, halt)
			for scope := range halt {
				for _, around := range slices.Sorted(maps.Keys(halt)) {
					if s.flow.Within(scope, around) {
						delete(next, scope)
					}
				}
			}
			s.heads = append(s.heads, next)
		})
	}
	return d.End
}

// halts holds that a scope which stops for a failure is stopped when a step directly in it has failed and nothing handles that.
func (s *stopping) halts(t *testing.T, d flow.Decisions, facts []flow.Fact, scope int) {
	t.Helper()
	n := &s.flow.Nodes[scope]
	if !n.Stops || d.States[scope].Ended() || facts[scope].Stopped || s.flow.StoppedBy(facts, scope) != flow.None {
		return
	}
	for _, i := range n.Body.Steps {
		_, caught := d.Caught[i]
		if !d.States[i].Failure() || caught || s.flow.Nodes[i].AllowFailure {
			continue
		}
		_, halts := d.Halt[scope]
		for around := range d.Halt {
			halts = halts || s.flow.Within(scope, around)
		}
		if !halts {
			t.Errorf("%s has failed, and does not stop %s", s.flow.Nodes[i].Path, n.Path)
		}
	}
}

// move has one thing happen: a step begins or ends, or somebody does what he was about to.
func (s *stopping) move(chance *rand.Rand) {
	if len(s.later) > 0 && chance.IntN(3) > 0 {
		k := chance.IntN(len(s.later))
		do := s.later[k]
		s.later = slices.Delete(s.later, k, k+1)
		do()
		return
	}
	i := chance.IntN(len(s.rows))
	head := s.heads[len(s.heads)-1]
	switch row := s.rows[i]; {
	case row.State == flow.Queued && s.flow.StoppedBy(s.with(s.rows, head), i) == flow.None:
		s.later = append(s.later, func() { // its start has read that nothing stops it
			if s.rows[i].State == flow.Queued {
				s.rows[i] = flow.Fact{State: flow.Running}
				s.begun[i] = true
			}
		})
	case row.State == flow.Queued:
		s.rows[i] = flow.Fact{State: flow.Cancelled, To: flow.None, Code: "cancelled"}
	case row.State == flow.Running && s.flow.Nodes[i].Kind != flow.KindScope:
		s.rows[i] = s.answers(i, chance)
		if s.marked[i] && chance.IntN(3) > 0 {
			s.rows[i] = flow.Fact{State: flow.Cancelled, To: flow.None, Code: "cancelled"}
		}
	}
}

// came is the graph as it has come about: how each step has ended that somebody released, and which scopes were cut off.
func (s *stopping) came(steps []reference.Step, prefix string, head map[int]int) []reference.Step {
	out := slices.Clone(steps)
	for k := range out {
		step := &out[k]
		i := slices.IndexFunc(s.flow.Nodes, func(n flow.Node) bool { return n.Path == prefix+step.Name })
		step.Inside = s.came(step.Inside, prefix+step.Name+"/", head)
		switch row := s.rows[i]; {
		case row.State == flow.Cancelled && len(step.Inside) > 0:
			step.When, step.Code = reference.Failure, "cancelled"
		case row.State == flow.Cancelled:
			step.End, step.Code = reference.Failure, "cancelled"
		}
		by, stopped := head[i]
		if !stopped {
			continue
		}
		for j, row := range s.rows {
			if row.State == flow.Cancelled && s.flow.StoppedBy(s.with(s.rows, head), j) == i {
				step.Stopped = "timeout"
				if by != flow.None && s.flow.Nodes[by].Kind != flow.KindScope {
					step.Stopped = s.by[s.flow.Nodes[by].Path].Code
				} else if by != flow.None && s.rows[by].State == flow.Failed {
					step.Stopped = "expression"
				}
			}
		}
	}
	return out
}

// Scopes are stopped in random graphs, by failures and since their time is over, while others who do not know of that bring the run on. Nobody says of an end what another
// does not, nothing begins in a scope behind its stop, and all comes out as the evaluator says by how each step has ended.
func TestW2_W4_W5_RandomGraphsWhoseScopesAreStopped(t *testing.T) {
	stopped, cut, timed, begun := 0, 0, 0, 0
	for seed := range 8 * seeds() {
		g, _ := draw(seed)
		own := rand.New(rand.NewPCG(seed, 41))
		for i := range g.flow.Nodes {
			if n := &g.flow.Nodes[i]; n.Kind == flow.KindScope {
				n.Stops = own.IntN(2) == 0
				if own.IntN(3) == 0 {
					n.Timeout = schedule.Duration(1)
					if step := g.by[n.Path]; step.When == 0 {
						step.When = reference.Success
						g.by[n.Path] = step
					}
				}
			}
		}
		s := &stopping{graph: g, rows: make([]flow.Fact, len(g.flow.Nodes)), heads: []map[int]int{{}}, marked: map[int]bool{}, said: make([]flow.Fact, len(g.flow.Nodes)), caught: map[int]flow.Caught{}, begun: map[int]bool{}}
		for steps := 0; ; steps++ {
			newest := len(s.heads) - 1
			at := newest
			if own.IntN(3) == 0 {
				at = own.IntN(newest + 1)
			}
			if len(s.later) < 40 && own.IntN(4) == 0 {
				s.look(t, own, at, own.IntN(3) > 0)
			} else {
				s.move(own)
			}
			if steps%20 == 0 {
				if end := s.look(t, own, len(s.heads)-1, true); end != "" {
					break
				}
			}
			if t.Failed() || steps > 200_000 {
				d := g.flow.Plan(s.with(s.rows, s.heads[len(s.heads)-1]))
				t.Fatalf("seed %d: after %d steps %v, with %d left to do, and the plan is %+v", seed, steps, s.rows, len(s.later), d)
			}
		}
		for len(s.later) > 0 { // who has not known of the end changes nothing any more
			s.later[0]()
			s.later = s.later[1:]
		}
		head := s.heads[len(s.heads)-1]
		facts := s.with(s.rows, head)
		d := g.flow.Plan(facts)
		for i, row := range s.rows {
			if row.State != "" && !row.State.Ended() && g.flow.Nodes[i].Kind != flow.KindScope {
				t.Errorf("the run has ended, and %s is %s", g.flow.Nodes[i].Path, row.State)
			}
		}
		want := reference.Evaluate(s.came(g.steps, "", head))
		s.agree(t, d, want)
		for scope, by := range head {
			stopped++
			n := &g.flow.Nodes[scope]
			if _, is := d.Stopped[scope]; is {
				cut++
			}
			switch {
			case by == flow.None:
				timed++
			case !n.Stops || !g.flow.Within(by, scope) || want.Ends[g.flow.Nodes[by].Path] != reference.Failure:
				t.Errorf("%s was stopped by %s, which is %c", n.Path, g.flow.Nodes[by].Path, want.Ends[g.flow.Nodes[by].Path])
			}
			for in := by; by != flow.None && in != scope; in = g.flow.Nodes[in].Scope {
				if _, caught := d.Caught[in]; caught || g.flow.Nodes[in].AllowFailure {
					t.Errorf("%s was stopped by %s, which %s may handle", n.Path, g.flow.Nodes[by].Path, g.flow.Nodes[in].Path)
				}
			}
			if around := g.flow.StoppedBy(facts, scope); around != flow.None && by != flow.None && !g.flow.Within(by, scope) {
				t.Errorf("%s was stopped in %s, which was before", n.Path, g.flow.Nodes[around].Path)
			}
		}
		begun += len(s.begun)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d scopes stopped, %d of them cut off, %d since their time was over; %d steps begun", stopped, cut, timed, begun)
	if stopped < 500 || cut < 400 || timed < 200 || begun < 5000 {
		t.Error("too few scopes are stopped to say anything")
	}
}

// A workflow whose time is over before that of a scope in it ends with its own, by a simulation too.
func TestASimulationEndsByTheTimeThatIsOverFirst(t *testing.T) {
	for limit, want := range map[string]string{
		"6h": "failed in 6h: not over within its timeout of 6h", "7h": "failed in 7h: not over within its timeout of 7h", "8h": "succeeded in 7h1s"} {
		w := workflow(t, `{"timeout": "`+limit+`", "defaults": {"timeout": "11h"}, "steps": {"a": {"handler": {"name": "x"}},
			"s": {"needs": ["a"], "timeout": "2h", "catch": [{"to": "h"}], "steps": {"b": {"handler": {"name": "x"}}}}, "h": {"handler": {"name": "x"}}}}`)
		if got, _, _ := strings.Cut(played(t, w, `{"a": {"takes": "5h"}, "s/b": {"takes": "10h"}}`), "\n"); got != want {
			t.Errorf("with %s it has %s, want it to have %s", limit, got, want)
		}
	}
}

// A simulation stops scopes at once: by a failure, and when their time is over.
func TestASimulationOfScopesThatStop(t *testing.T) {
	for name, row := range map[string]struct{ scope, more, outcomes, want string }{
		"by a failure": {`"on_failure": "stop",`, "", `{"s/a": "failed", "s/b": {"takes": "9s"}}`,
			"failed in 2s: s/a failed | before succeeded at 1s, from 0s, attempts 1 | s/a failed at 2s, from 1s, attempts 1 | s/e upstream_failed at 2s | s/b cancelled at 2s, from 1s, attempts 1 | s/c cancelled at 2s | s/d cancelled at 2s | s/p cancelled at 2s | s/t/f cancelled at 2s | s/t cancelled at 2s | s failed at 2s, from 1s | next upstream_failed at 2s"},
		"of its time": {`"timeout": "3s", "catch": [{"codes": ["timeout"], "to": "late"}],`, `, "late": {"handler": {"name": "x"}, "input": "${ .caught[0] }"}`, `{"s/a": {"takes": "2500ms"}, "s/b": {"takes": "9s"}}`,
			`succeeded in 5s | before succeeded at 1s, from 0s, attempts 1 | s/a succeeded at 3.5s, from 1s, attempts 1 | s/b cancelled at 4s, from 1s, attempts 1 | s/c cancelled at 4s | s/d cancelled at 4s, from 3.5s, attempts 1 | s/e cancelled at 4s, from 3.5s, attempts 1 | s/p cancelled at 4s | s/t/f cancelled at 4s | s/t cancelled at 4s | s failed at 4s, from 1s | next skipped at 4s | late succeeded at 5s, from 4s, attempts 1`},
		"just in time": {`"timeout": "2s",`, "", `{}`, "succeeded in 4s"},
		"too late":     {`"timeout": "1999ms",`, "", `{}`, "failed in 2.999s: s failed: timeout: the scope was not over after 1.999s"},
	} {
		w := workflow(t, fmt.Sprintf(stoppable, "", row.scope, row.more))
		if got := strings.ReplaceAll(played(t, w, row.outcomes), "\n", " | "); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
}
