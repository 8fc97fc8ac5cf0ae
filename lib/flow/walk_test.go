package flow_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
)

// finisher is somebody who has ended a task and brings on what follows. Between any two of its requests others may make theirs.
type finisher struct {
	ended int
	known []flow.Known
	looks int
	puts  []int // to be made, one after the other
	put   bool
	met   bool // something stood there
	whole bool // it has read all
}

// walking is a workflow's run: what stands of each node, who is at work on it, and how often each was put.
type walking struct {
	*graph
	rows  []flow.Fact
	at    []*finisher
	puts  []int // how often each node was put
	reads int
	all   int
	asked int
	over  bool
}

func (w *walking) end(i int, chance *rand.Rand) {
	w.rows[i] = w.fact(i, chance)
	f := &finisher{ended: i, known: make([]flow.Known, len(w.rows)), looks: chance.IntN(5)}
	f.known[i] = flow.Known{Read: true, Fact: w.rows[i]}
	w.at = append(w.at, f)
}

// planned is what the full plan does: it asks what is to be asked, one after the other.
func (w *walking) planned() flow.Decisions {
	d := w.flow.Plan(w.rows)
	for ; len(d.Ask) > 0; d = w.flow.Plan(w.rows) {
		w.asked++
		w.rows[d.Ask[0]] = w.fact(d.Ask[0], w.asks)
	}
	return d
}

// put puts a node where nothing stands.
func (w *walking) put(i int) bool {
	if w.rows[i].State != "" {
		return false
	}
	w.rows[i] = flow.Fact{State: flow.Queued, To: flow.None}
	w.puts[i]++
	return true
}

// step has a finisher make its next request; false where it has nothing more to do.
func (w *walking) step(f *finisher) bool {
	if len(f.puts) > 0 {
		f.met = !w.put(f.puts[0]) || f.met
		f.puts = f.puts[1:]
		return true
	}
	if f.whole || f.put && !f.met {
		return false
	}
	next := w.flow.Walk(f.ended, f.known, f.looks)
	switch {
	case next.All || f.met:
		w.all++
		f.whole = true
		d := w.planned()
		w.over = w.over || d.End != ""
		f.puts = d.Release
	case len(next.Release) > 0:
		f.puts, f.put = next.Release, true
	case next.Read == flow.None:
		return false
	default:
		w.reads++
		f.looks--
		f.known[next.Read] = flow.Known{Read: true, Fact: w.rows[next.Read]}
	}
	return true
}

// walk draws a graph without switches, which nothing runs yet, and begins a run of it.
func walk(seed uint64) (*walking, *rand.Rand) {
	g, chance := draw(seed)
	for i := range g.flow.Nodes {
		n := &g.flow.Nodes[i]
		if n.Kind == flow.KindSwitch {
			return nil, nil
		}
		for _, p := range n.Needs {
			g.flow.Nodes[p].Next = append(g.flow.Nodes[p].Next, i)
		}
	}
	w := &walking{graph: g, rows: make([]flow.Fact, len(g.flow.Nodes)), puts: make([]int, len(g.flow.Nodes))}
	first := w.planned()
	for _, i := range first.Release {
		w.put(i)
	}
	w.over = first.End != ""
	return w, chance
}

// open gives the tasks that run, or are to.
func (w *walking) open() []int {
	var open []int
	for i, fact := range w.rows {
		if fact.State == flow.Queued {
			open = append(open, i)
		}
	}
	return open
}

// settled holds that nothing is left of what all the facts ask for, and nothing more was done.
func (w *walking) settled(t *testing.T) {
	t.Helper()
	d := w.flow.Plan(w.rows)
	for _, i := range slices.Concat(d.Release, d.Ask) {
		t.Errorf("%s was not released", w.flow.Nodes[i].Path)
	}
	if (d.End != "") != w.over {
		t.Errorf("the workflow is over as %q, and those who read all of it: %v", d.End, w.over)
	}
	want := reference.Evaluate(w.steps)
	for i, count := range w.puts {
		if path := w.flow.Nodes[i].Path; count > 1 || count == 1 && !want.Ran[path] {
			t.Errorf("%s was released %d times, and its rule says %c", path, count, want.Ends[path])
		}
	}
}

// Each who ends a task walks before the next one ends: by what it reads it releases what the full plan does, no more and no less.
func TestW1_W3_AWalkReleasesWhatThePlanDoes(t *testing.T) {
	graphs, ends, reads, all, asked := 0, 0, 0, 0, 0
	for seed := range 4 * seeds() {
		w, chance := walk(seed)
		if w == nil {
			continue
		}
		graphs++
		w.settled(t)
		for open := w.open(); len(open) > 0; open = w.open() {
			ends++
			w.end(open[chance.IntN(len(open))], chance)
			for w.step(w.at[0]) {
			}
			w.at = nil
			w.settled(t)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if !w.over {
			t.Fatalf("seed %d: nobody has seen that the workflow is over", seed)
		}
		reads, all, asked = reads+w.reads, all+w.all, asked+w.asked
	}
	t.Logf("%d graphs, %d ends, %d reads, and %d of all; %d scopes asked", graphs, ends, reads, all, asked)
	if graphs < 1000 || reads < graphs/2 || all > ends*2/3 || asked < graphs/20 {
		t.Error("too few walks do without the plan")
	}
}

// Many end and walk at once, in any order of their requests. When nobody has anything left to do, all has been released that the full plan releases.
func TestW1_W3_WalksAtOnceLeaveNothing(t *testing.T) {
	graphs := 0
	for seed := range 4 * seeds() {
		w, chance := walk(seed)
		if w == nil {
			continue
		}
		graphs++
		for {
			open := w.open()
			if len(open) == 0 && len(w.at) == 0 {
				break
			}
			if len(w.at) == 0 || len(open) > 0 && chance.IntN(3) == 0 {
				w.end(open[chance.IntN(len(open))], chance)
			}
			i := chance.IntN(len(w.at))
			if !w.step(w.at[i]) {
				w.at = slices.Delete(w.at, i, i+1)
				if len(w.at) == 0 {
					w.settled(t)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if !w.over {
			t.Fatalf("seed %d: nobody has seen that the workflow is over", seed)
		}
	}
	t.Logf("%d graphs", graphs)
}

// A step may be decided without anybody writing that down. Then it is not open, though some of those that it needs are.
func TestW3_AWalkSeesThroughWhatIsDecidedUnseen(t *testing.T) {
	text := `{"steps": {"bad": {"handler": {"name": "x"}}, "here": {"handler": {"name": "x"}}, "slow": {"handler": {"name": "x"}},
		"never": {"needs": ["bad", "here", "slow"], "handler": {"name": "x"}}, "then": {"needs": ["here", "never"], "rule": "all_done", "handler": {"name": "x"}}}}`
	w := workflow(t, text)
	facts := map[string]flow.State{"bad": flow.Failed, "here": flow.Succeeded, "slow": flow.Running}
	here, _ := w.Node("here")
	then, _ := w.Node("then")
	known := make([]flow.Known, len(w.Nodes))
	known[here.Index] = flow.Known{Read: true, Fact: flow.Fact{State: facts["here"]}}
	for range w.Nodes {
		next := w.Walk(here.Index, known, len(w.Nodes))
		if next.Read == flow.None {
			if !next.All && !slices.Equal(next.Release, []int{then.Index}) {
				t.Errorf("got %+v, want step %d released, or all read: never has been decided by bad alone", next, then.Index)
			}
			return
		}
		known[next.Read] = flow.Known{Read: true, Fact: flow.Fact{State: facts[w.Nodes[next.Read].Name]}}
	}
	t.Error("it reads for ever")
}

// Whether a scope with a condition runs is not known to who has not read its answer, even where nothing in it takes time: what needs it is not released by that.
func TestW1_AWalkTakesNoScopeToRunThatMayNot(t *testing.T) {
	w := workflow(t, `{"steps": {"before": {"handler": {"name": "x"}}, "here": {"handler": {"name": "x"}},
		"s": {"needs": ["before"], "when": ".steps.before.result", "steps": {"p": {"pass": {}}, "t": {"needs": ["p"], "steps": {"q": {"pass": {}}}}}},
		"then": {"needs": ["here", "s"], "handler": {"name": "x"}}}}`)
	here, _ := w.Node("here")
	known := make([]flow.Known, len(w.Nodes))
	known[here.Index] = flow.Known{Read: true, Fact: flow.Fact{State: flow.Succeeded}}
	if next := w.Walk(here.Index, known, 0); !next.All {
		t.Errorf("it asks for %+v, want all to be read", next)
	}
	// One that stands in it has read the answer.
	in, _ := w.Node("s/p")
	known = make([]flow.Known, len(w.Nodes))
	known[in.Index] = flow.Known{Read: true, Fact: flow.Fact{State: flow.Succeeded}}
	if next := w.Walk(in.Index, known, 0); len(next.Release) > 0 {
		t.Errorf("it releases %v, want nothing before here has ended", next.Release)
	}
}
