package flow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// graph is a workflow under test, as the evaluator and the planner see it.
type graph struct {
	steps []reference.Step
	flow  *flow.Workflow
	by    map[string]reference.Step // by path
	kind  map[string]flow.Kind      // by name
	asks  *rand.Rand                // which scopes ask whether they run, and what comes of it; nil: none does
}

var kinds = map[flow.Kind]int{flow.KindTask: 12, flow.KindScope: 3, flow.KindPass: 2, flow.KindFail: 1, flow.KindSwitch: 3}

// drawGraph draws siblings; what stands before a step may be its parent.
func drawGraph(chance *rand.Rand, depth int, g *graph, scope int, prefix string) []reference.Step {
	draw := func(n int) int { return chance.IntN(n) }
	name := func(i int) string { return fmt.Sprintf("s%d_%d", scope+1, i) } // each once
	n := 1 + draw(7)
	all := make([]reference.Step, n)
	own := make([]int, n) // indices in the workflow
	switches := make([]int, n)
	catchers := make([][]int, n) // who names a step in a catch
	for i := range n {
		switches[i] = flow.None
	}
	for i := range n {
		kind := flow.KindTask
		for k, at := flow.KindTask, draw(21); k <= flow.KindSwitch; k++ {
			if at -= kinds[k]; at < 0 {
				kind = k
				break
			}
		}
		if kind == flow.KindScope && depth == 3 {
			kind = flow.KindTask
		}
		s := &all[i]
		s.Name = name(i)
		s.Rule = string(flow.AllSuccess)
		if draw(2) == 0 {
			s.Rule = string(flow.Rules[draw(len(flow.Rules))])
		}
		s.Allowed = (kind == flow.KindTask || kind == flow.KindScope) && draw(8) == 0
		node := flow.Node{AllowFailure: s.Allowed, Index: len(g.flow.Nodes), Path: prefix + s.Name, Name: s.Name, Kind: kind, Depth: depth, Scope: scope, Rule: flow.Rule(s.Rule), Switch: flow.None}
		own[i] = node.Index
		if switches[i] != flow.None {
			s.Parents = append(s.Parents, all[switches[i]].Name)
			node.Needs, node.Switch = append(node.Needs, own[switches[i]]), own[switches[i]]
		}
		for p := range i {
			if len(s.Parents) < 4 && p != switches[i] && !slices.Contains(catchers[i], p) && draw(3) == 0 {
				s.Parents = append(s.Parents, all[p].Name)
				node.Needs = append(node.Needs, own[p])
			}
		}
		for _, p := range catchers[i] {
			node.Catches, node.Needs = append(node.Catches, own[p]), append(node.Needs, own[p])
		}
		slices.Sort(node.Needs)
		chance.Shuffle(len(s.Parents), func(a, b int) { s.Parents[a], s.Parents[b] = s.Parents[b], s.Parents[a] })
		g.flow.Nodes = append(g.flow.Nodes, node)
		s.End = []rune("SSSSFFK")[draw(7)]
		switch kind {
		case flow.KindScope:
			if g.asks != nil && g.asks.IntN(3) == 0 {
				g.flow.Nodes[own[i]].When = "true"
				s.When = []rune{reference.Success, reference.Success, reference.Success, reference.Skip, reference.Failure}[g.asks.IntN(5)]
				s.Code = "expression" // which it fails of by itself
			}
			s.Inside = drawGraph(chance, depth+1, g, own[i], prefix+s.Name+"/")
			body := &flow.Scope{}
			for j := own[i] + 1; j < len(g.flow.Nodes); j++ {
				if g.flow.Nodes[j].Scope == own[i] {
					body.Steps = append(body.Steps, j)
				}
			}
			g.flow.Nodes[own[i]].Body = body
		case flow.KindPass:
			s.End = reference.Success
		case flow.KindFail:
			s.End = reference.Failure
		case flow.KindSwitch:
			s.Code = "expression"
			s.End = []rune("SSSSF")[draw(5)]
			s.Choices = map[string]bool{}
			for j := i + 1; j < n; j++ {
				if switches[j] == flow.None && catchers[j] == nil && draw(2) == 0 {
					switches[j] = i
					s.Choices[name(j)] = true
					if s.Chosen == "" || draw(2) == 0 {
						s.Chosen = name(j)
					}
				}
			}
			switch {
			case len(s.Choices) == 0: // a switch leads somewhere
				g.flow.Nodes[own[i]].Kind, s.End = flow.KindPass, reference.Success
			case draw(5) == 0:
				s.Chosen = ""
			}
		}
		if s.Code == "" {
			s.Code = failureCodes[draw(len(failureCodes))]
		}
		if kind == flow.KindFail {
			g.flow.Nodes[own[i]].Fail = &flow.Fail{Code: s.Code}
		}
		if kind == flow.KindTask || kind == flow.KindScope {
			drawCatch(chance, s, i, n, switches, catchers)
		}
		g.by[prefix+s.Name] = *s
	}
	for i := range n {
		for _, c := range all[i].Catch {
			to := slices.IndexFunc(all, func(s reference.Step) bool { return s.Name == c.To })
			g.flow.Nodes[own[i]].Catch = append(g.flow.Nodes[own[i]].Catch, flow.Clause{Codes: c.Codes, To: own[to]})
		}
	}
	if scope == flow.None {
		g.flow.Top = own
	}
	return all
}

// failureCodes are of what steps under test fail, and clauseCodes those that clauses name.
var (
	failureCodes = []string{"handler", "handler:stock", "timeout", "panic", "crash"}
	clauseCodes  = [][]string{{"handler:stock"}, {"handler"}, {"timeout", "panic"}, {"crash"}}
)

// drawCatch draws who handles the failures of a step: siblings behind it that no switch leads to.
func drawCatch(chance *rand.Rand, s *reference.Step, i, n int, switches []int, catchers [][]int) {
	if chance.IntN(3) != 0 {
		return
	}
	var free []int
	for j := i + 1; j < n; j++ {
		if switches[j] == flow.None {
			free = append(free, j)
		}
	}
	if len(free) == 0 {
		return
	}
	clauses := chance.Perm(len(clauseCodes))[:chance.IntN(3)]
	slices.Sort(clauses) // the narrower one first
	add := func(codes []string) {
		to := free[chance.IntN(len(free))]
		s.Catch = append(s.Catch, reference.Clause{Codes: codes, To: fmt.Sprintf("%s%d", strings.TrimRight(s.Name, "0123456789"), to)})
		if !slices.Contains(catchers[to], i) {
			catchers[to] = append(catchers[to], i)
		}
	}
	for _, k := range clauses {
		add(clauseCodes[k])
	}
	if len(s.Catch) == 0 || !s.Allowed && chance.IntN(2) == 0 {
		s.Allowed = false
		add(nil)
	}
}

func draw(seed uint64) (*graph, *rand.Rand) { return drawWith(seed, rand.New(rand.NewPCG(seed, 40))) }

func drawWith(seed uint64, asks *rand.Rand) (*graph, *rand.Rand) {
	chance := rand.New(rand.NewPCG(seed, 33))
	g := &graph{flow: &flow.Workflow{}, by: map[string]reference.Step{}, kind: map[string]flow.Kind{}, asks: asks}
	g.steps = drawGraph(chance, 1, g, flow.None, "")
	for _, n := range g.flow.Nodes {
		g.kind[n.Name] = n.Kind
	}
	return g, chance
}

// fact is how a node that runs comes out.
func (g *graph) fact(i int, chance *rand.Rand) flow.Fact {
	n := g.flow.Nodes[i]
	s := g.by[n.Path]
	if n.Kind == flow.KindScope {
		return flow.Fact{State: map[rune]flow.State{reference.Success: flow.Running, reference.Skip: flow.Skipped, reference.Failure: flow.Failed}[s.When], To: flow.None, Code: s.Code}
	}
	f := flow.Fact{State: letters[byte(s.End)][chance.IntN(len(letters[byte(s.End)]))], To: flow.None}
	if f.State.Failure() {
		f.Code = s.Code
	}
	for j := range g.flow.Nodes {
		if s.Chosen != "" && g.flow.Nodes[j].Scope == n.Scope && g.flow.Nodes[j].Name == s.Chosen {
			f.To = j
		}
	}
	return f
}

// agree holds that what is said of ends is what the evaluator says.
func (g *graph) agree(t *testing.T, d flow.Decisions, want reference.Outcome) {
	t.Helper()
	for i, s := range d.States {
		path := g.flow.Nodes[i].Path
		if end := want.Ends[path]; s.Ended() && !slices.Contains(letters[byte(end)], s) {
			t.Errorf("%s is %s, want %c", path, s, end)
		}
	}
	for _, i := range slices.Concat(d.Release, d.Ask) {
		if path := g.flow.Nodes[i].Path; !want.Ran[path] {
			t.Errorf("%s is released, and its rule says %c", path, want.Ends[path])
		}
	}
	for i, c := range d.Caught {
		if path := g.flow.Nodes[i].Path; g.flow.Nodes[c.To].Name != want.Caught[path] || c.Code != want.Codes[path] {
			t.Errorf("%s has failed of %s, which %s handles; want %s and %q", path, c.Code, g.flow.Nodes[c.To].Path, want.Codes[path], want.Caught[path])
		}
	}
	if d.End != "" {
		for path, to := range want.Caught {
			if i := slices.IndexFunc(g.flow.Nodes, func(n flow.Node) bool { return n.Path == path }); g.flow.Nodes[d.Caught[i].To].Name != to {
				t.Errorf("nobody handles the failure of %s, want %s", path, to)
			}
		}
	}
	if d.End != "" && !slices.Contains(letters[byte(want.End)], d.End) {
		t.Errorf("the workflow is %s, want %c", d.End, want.End)
	}
}

// awaited holds that a node which was not released names what it waits for, and that nobody else does.
func (g *graph) awaited(t *testing.T, d flow.Decisions) {
	t.Helper()
	for i, s := range d.States {
		n := &g.flow.Nodes[i]
		if s.Ended() || s == flow.Queued && !slices.Contains(d.Release, i) && !slices.Contains(d.Ask, i) {
			continue // what was released waits for nothing here
		}
		if slices.ContainsFunc(d.Ask, func(scope int) bool { return g.flow.Within(i, scope) }) {
			continue // it waits for an answer, and for no step
		}
		holder, open := g.flow.Awaits(i, d.Counted())
		if waits := s == flow.Pending || s == flow.Running; waits != (holder != flow.None) || waits != (len(open) > 0) {
			t.Errorf("%s is %s, and waits for %v of %d", n.Path, s, open, holder)
		}
		for _, o := range open {
			if d.States[o].Ended() {
				t.Errorf("%s is %s, and waits for %s, which has ended", n.Path, s, g.flow.Nodes[o].Path)
			}
		}
	}
}

// history lets the tasks of a graph end in random order, seen late or only in part, and holds that each step is released once if the evaluator
// says that it runs, else never, and that all ends are the evaluator's.
func (g *graph) history(t *testing.T, chance *rand.Rand) {
	t.Helper()
	want := reference.Evaluate(g.steps)
	facts := make([]flow.Fact, len(g.flow.Nodes))
	ran := map[string]bool{}
	for steps := 0; ; steps++ {
		d := g.flow.Plan(facts)
		if again := g.flow.Plan(facts); !reflect.DeepEqual(d, again) {
			t.Fatalf("planned twice, got %v and %v", d, again)
		}
		g.agree(t, d, want)
		g.awaited(t, d)

		// Whoever knows less decides less, and nothing else.
		part := slices.Clone(facts)
		for i := range part {
			if chance.IntN(3) == 0 {
				part[i] = flow.Fact{}
			}
		}
		partial := g.flow.Plan(part)
		g.agree(t, partial, want)
		for i, s := range partial.States {
			if s.Ended() && s != d.States[i] {
				t.Errorf("%s is %s by some of the facts and %s by all", g.flow.Nodes[i].Path, s, d.States[i])
			}
		}

		if d.End != "" {
			for i, s := range d.States {
				if !s.Ended() {
					t.Errorf("the workflow has ended, and %s is %s", g.flow.Nodes[i].Path, s)
				}
			}
			break
		}
		for _, i := range d.Release {
			if chance.IntN(4) == 0 {
				continue // put later
			}
			if path := g.flow.Nodes[i].Path; ran[path] {
				t.Errorf("%s is released twice", path)
			}
			ran[g.flow.Nodes[i].Path] = true
			facts[i] = flow.Fact{State: flow.Queued}
		}
		for _, i := range d.Ask {
			if chance.IntN(2) == 0 {
				ran[g.flow.Nodes[i].Path] = true
				facts[i] = g.fact(i, chance)
			}
		}
		for i := range facts {
			if facts[i].State == flow.Queued && chance.IntN(4) == 0 {
				facts[i] = g.fact(i, chance)
			}
		}
		if steps > 10_000 {
			t.Fatalf("it never ends: %v", d.States)
		}
	}
	for _, n := range g.flow.Nodes {
		if (n.Kind == flow.KindTask || n.Kind == flow.KindSwitch) && ran[n.Path] != want.Ran[n.Path] {
			t.Errorf("%s ran: %v, want %v", n.Path, ran[n.Path], want.Ran[n.Path])
		}
	}
}

// seeds is how many random graphs are tried.
func seeds() uint64 {
	if testing.Short() {
		return 800
	}
	return 4000
}

func TestW1_W2_RandomGraphsComeOutAsTheEvaluatorSays(t *testing.T) {
	for seed := range seeds() {
		g, chance := draw(seed)
		g.history(t, chance)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// definition writes steps as a user would.
func (g *graph) definition(steps []reference.Step) map[string]any {
	leads := map[string]string{} // by which switch to a step
	for _, s := range steps {
		for to := range s.Choices {
			leads[to] = s.Name
		}
	}
	all := map[string]any{}
	for _, s := range steps {
		needs := slices.DeleteFunc(slices.Clone(s.Parents), func(p string) bool { return p == leads[s.Name] })
		step := map[string]any{}
		if len(needs) > 0 {
			step["needs"] = needs
		}
		if len(s.Parents) > 0 {
			step["rule"] = s.Rule
		}
		if s.Allowed {
			step["allow_failure"] = true
		}
		if s.Catch != nil {
			var clauses []any
			for _, c := range s.Catch {
				clause := map[string]any{"to": c.To}
				if c.Codes != nil {
					clause["codes"] = c.Codes
				}
				clauses = append(clauses, clause)
			}
			step["catch"] = clauses
		}
		switch g.kind[s.Name] {
		case flow.KindScope:
			step["steps"] = g.definition(s.Inside)
			if s.When != 0 {
				step["when"] = ".input.a"
			}
		case flow.KindPass:
			step["pass"] = map[string]any{}
		case flow.KindFail:
			step["fail"] = map[string]any{"code": s.Code}
		case flow.KindSwitch:
			var ways []any
			for _, to := range slices.Sorted(maps.Keys(s.Choices)) {
				ways = append(ways, map[string]any{"when": ".input.a", "to": to})
			}
			step["switch"] = ways
		default:
			step["handler"] = map[string]any{"name": "x"}
		}
		all[s.Name] = step
	}
	return all
}

// The same from the text of a definition on. Where one is refused because a step can never run, the evaluator knows no ends by which it runs.
func TestW2_DefinitionsComeOutAsTheEvaluatorSays(t *testing.T) {
	unfailing := regexp.MustCompile(`^steps\.(.*)\.catch(?:: want none: nothing in this scope can fail|\[.\]\.codes\[.\]: got "(.*)", want a code that \S+ can fail with: )`)
	taken, never := 0, regexp.MustCompile(`^steps\.(.*)\.(rule|needs|to|pass|fail|handler|switch|steps).*nothing can reach`)
	for seed := range seeds() {
		g, chance := draw(seed)
		text, err := json.Marshal(map[string]any{"steps": g.definition(g.steps)})
		if err != nil {
			t.Fatal(err)
		}
		w, err := flow.Read(text)
		if err == nil {
			taken++
			(&graph{g.steps, w, g.by, g.kind, nil}).history(t, chance)
		}
		for _, wrong := range invalid.All(err) {
			at := never.FindStringSubmatch(wrong.Error())
			if catch := unfailing.FindStringSubmatch(wrong.Error()); catch != nil {
				path := strings.ReplaceAll(catch[1], ".steps.", "/")
				for range 200 {
					g.shuffle(g.steps, chance)
					if code := reference.Evaluate(g.steps).Codes[path]; code != "" && (catch[2] == "" || code == catch[2]) {
						t.Errorf("%s: %v, and it failed of that\n%s", path, wrong, text)
						break
					}
				}
				continue
			}
			if at == nil {
				t.Errorf("%s: %v", text, wrong)
				continue
			}
			path := strings.ReplaceAll(at[1], ".steps.", "/")
			for range 200 {
				g.shuffle(g.steps, chance)
				if reference.Evaluate(g.steps).Ran[path] {
					t.Errorf("%s: %v, and it ran\n%s", path, wrong, text)
					break
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d of %d definitions were taken", taken, seeds())
	if taken < int(seeds())/4 {
		t.Errorf("%d of %d definitions were taken", taken, seeds())
	}
}

// shuffle draws how the steps come out anew.
func (g *graph) shuffle(steps []reference.Step, chance *rand.Rand) {
	for i := range steps {
		s := &steps[i]
		g.shuffle(s.Inside, chance)
		switch {
		case len(s.Choices) > 0:
			s.End = []rune("SSF")[chance.IntN(3)]
			names := append(slices.Sorted(maps.Keys(s.Choices)), "")
			s.Chosen = names[chance.IntN(len(names))]
		case s.When != 0:
			s.When = []rune{reference.Success, reference.Skip, reference.Failure}[chance.IntN(3)]
		case g.kind[s.Name] == flow.KindTask:
			s.End = []rune("SF")[chance.IntN(2)]
		}
	}
}

// BenchmarkPlan plans a workflow of as many steps as there may be, half of which have ended.
func BenchmarkPlan(b *testing.B) {
	steps := map[string]any{}
	chance := rand.New(rand.NewPCG(1, 300))
	for i := range flow.MaxNodes {
		needs := []string{}
		for k := range min(i, 4) {
			needs = append(needs, fmt.Sprintf("s%d", i-1-k*chance.IntN(max(i/4, 1))))
		}
		slices.Sort(needs)
		steps[fmt.Sprintf("s%d", i)] = map[string]any{"pass": map[string]any{}, "needs": slices.Compact(needs)}
	}
	text, err := json.Marshal(map[string]any{"steps": steps})
	if err != nil {
		b.Fatal(err)
	}
	w := workflow(b, string(text))
	for i := range w.Nodes {
		w.Nodes[i].Kind = flow.KindTask
	}
	facts := make([]flow.Fact, len(w.Nodes))
	for i := range len(facts) / 2 {
		facts[i].State = flow.Succeeded
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Plan(facts)
	}
}

const nested = `{"steps": {
	"a": {"handler": {"name": "x"}},
	"s": {"needs": ["a"], "steps": {"b": {"handler": {"name": "x"}}, "t": {"steps": {"c": {"handler": {"name": "x"}}, "d": {"needs": ["c"], "handler": {"name": "x"}}}}}},
	"e": {"needs": ["s"], "handler": {"name": "x"}}}}`

// planned plans facts by path, and gives the states of all nodes, and what is to be released.
func planned(t *testing.T, w *flow.Workflow, facts map[string]flow.State) (states map[string]flow.State, release []string, d flow.Decisions) {
	t.Helper()
	all := make([]flow.Fact, len(w.Nodes))
	for path, s := range facts {
		n, ok := w.Node(path)
		if !ok {
			t.Fatalf("there is no %s", path)
		}
		all[n.Index] = flow.Fact{State: s, To: flow.None}
	}
	d = w.Plan(all)
	states = map[string]flow.State{}
	for i, s := range d.States {
		states[w.Nodes[i].Path] = s
	}
	for _, i := range d.Release {
		release = append(release, w.Nodes[i].Path)
	}
	return states, release, d
}

// Scopes need no fact of their own, and are believed where they have one.
func TestPlanOfScopes(t *testing.T) {
	w := workflow(t, nested)
	for name, c := range map[string]struct {
		facts   map[string]flow.State
		release []string
		states  map[string]flow.State
		end     flow.State
	}{
		"nothing is known": {nil, []string{"a"}, map[string]flow.State{"a": flow.Queued, "s": flow.Pending, "s/t/c": flow.Pending, "e": flow.Pending}, ""},
		"a scope begins": {map[string]flow.State{"a": flow.Succeeded}, []string{"s/b", "s/t/c"},
			map[string]flow.State{"s": flow.Running, "s/t": flow.Running, "s/t/d": flow.Pending}, ""},
		"a scope inside fails": {map[string]flow.State{"a": flow.Succeeded, "s/b": flow.Running, "s/t/c": flow.Dead}, nil,
			map[string]flow.State{"s": flow.Running, "s/t": flow.Failed, "s/t/d": flow.UpstreamFailed, "e": flow.Pending}, ""},
		"and with it the scope around it": {map[string]flow.State{"a": flow.Succeeded, "s/b": flow.Succeeded, "s/t/c": flow.Dead}, nil,
			map[string]flow.State{"s": flow.Failed, "e": flow.UpstreamFailed}, flow.Failed},
		"a scope is blocked as a whole": {map[string]flow.State{"a": flow.Failed}, nil,
			map[string]flow.State{"s": flow.UpstreamFailed, "s/b": flow.UpstreamFailed, "s/t/d": flow.UpstreamFailed, "e": flow.UpstreamFailed}, flow.Failed},
		"a scope is skipped as a whole": {map[string]flow.State{"a": flow.Skipped}, nil,
			map[string]flow.State{"s": flow.Skipped, "s/t": flow.Skipped, "s/t/c": flow.Skipped, "e": flow.Skipped}, flow.Succeeded},
		"a scope was released by whoever read its parents": {map[string]flow.State{"s": flow.Running, "s/b": flow.Queued}, []string{"a", "s/t/c"},
			map[string]flow.State{"s": flow.Running}, ""},
		"a scope has ended, says its own fact": {map[string]flow.State{"a": flow.Succeeded, "s": flow.Succeeded}, []string{"e"},
			map[string]flow.State{"s": flow.Succeeded, "s/b": flow.Pending, "s/t/c": flow.Pending}, ""},
		"a scope was cancelled": {map[string]flow.State{"a": flow.Succeeded, "s": flow.Cancelled}, nil,
			map[string]flow.State{"s/b": flow.UpstreamFailed, "s/t": flow.UpstreamFailed, "s/t/c": flow.UpstreamFailed, "e": flow.UpstreamFailed}, flow.Failed},
		"all ended": {map[string]flow.State{"a": flow.Succeeded, "s/b": flow.Succeeded, "s/t/c": flow.Succeeded, "s/t/d": flow.Succeeded, "e": flow.Succeeded}, nil,
			map[string]flow.State{"s": flow.Succeeded, "s/t": flow.Succeeded}, flow.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			states, release, d := planned(t, w, c.facts)
			if !slices.Equal(release, c.release) {
				t.Errorf("releases %v, want %v", release, c.release)
			}
			for path, want := range c.states {
				if states[path] != want {
					t.Errorf("%s is %s, want %s", path, states[path], want)
				}
			}
			if d.End != c.end {
				t.Errorf("the end is %q, want %q", d.End, c.end)
			}
		})
	}
}

func TestCauseIsTheFirstStepThatFailedByItself(t *testing.T) {
	w := workflow(t, nested)
	for want, facts := range map[string]map[string]flow.State{
		"":      {"a": flow.Succeeded, "s/b": flow.Succeeded},
		"a":     {"a": flow.Unknown},
		"s/t/d": {"a": flow.Succeeded, "s/b": flow.Succeeded, "s/t/c": flow.Succeeded, "s/t/d": flow.Dead},
		"s/b":   {"a": flow.Succeeded, "s/b": flow.Failed, "s/t/c": flow.Dead},
		"s":     {"a": flow.Succeeded, "s": flow.Cancelled},
	} {
		_, _, d := planned(t, w, facts)
		got := ""
		if i := w.Cause(flow.None, &d); i != flow.None {
			got = w.Nodes[i].Path
		}
		if got != want {
			t.Errorf("%v: got %q, want %q", facts, got, want)
		}
	}
}

// A step waits for its parents, or for those of the scope around it; a scope that has begun for what is in it.
func TestAwaits(t *testing.T) {
	w, err := flow.Read([]byte(`{"steps": {"a": {"handler": {"name": "f"}}, "b": {"handler": {"name": "f"}}, "early": {"needs": ["a", "b"], "rule": "one_success", "pass": {}},
		"always": {"needs": ["a"], "rule": "always", "pass": {}}, "both": {"needs": ["a", "b"], "pass": {}},
		"s": {"needs": ["a"], "steps": {"x": {"handler": {"name": "f"}}, "y": {"needs": ["x"], "handler": {"name": "f"}}, "in": {"needs": ["x"], "rule": "always", "steps": {"z": {"pass": {}}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ended map[string]flow.State
		want  map[string]string // by path: of whom, and for what
	}{
		{nil, map[string]string{"a": "", "always": "", "early": "early: a b", "both": "both: a b", "s": "s: a", "s/x": "s: a", "s/y": "s/y: s/x", "s/in": "s: a", "s/in/z": "s: a"}},
		{map[string]flow.State{"a": flow.Succeeded}, map[string]string{"b": "", "early": "", "both": "both: b", "s": "s: s/x s/in s/y", "s/x": "", "s/y": "s/y: s/x", "s/in/z": ""}},
		{map[string]flow.State{"a": flow.Failed}, map[string]string{"early": "early: b"}},
		{map[string]flow.State{"a": flow.Succeeded, "s/in": flow.Succeeded, "s/x": flow.Succeeded}, map[string]string{"s": "s: s/y", "s/y": ""}},
	} {
		states := make([]flow.State, len(w.Nodes))
		for i := range states {
			if states[i] = flow.Pending; c.ended[w.Nodes[i].Path] != "" {
				states[i] = c.ended[w.Nodes[i].Path]
			}
		}
		for path, want := range c.want {
			n, _ := w.Node(path)
			holder, open := w.Awaits(n.Index, states)
			got := ""
			if holder != flow.None {
				got = w.Nodes[holder].Path + ":"
				for _, i := range open {
					got += " " + w.Nodes[i].Path
				}
			}
			if got != want {
				t.Errorf("with %v, %s waits for %q, want %q", c.ended, path, got, want)
			}
		}
	}
}

// What a step follows from is before it, in scopes and around them, and nothing beside it is.
func TestBefore(t *testing.T) {
	w, err := flow.Read([]byte(`{"steps": {"a": {"handler": {"name": "f"}}, "beside": {"handler": {"name": "f"}},
		"s": {"needs": ["a"], "steps": {"x": {"handler": {"name": "f"}}, "y": {"needs": ["x"], "pass": {}}, "aside": {"handler": {"name": "f"}}}},
		"b": {"needs": ["s"], "handler": {"name": "f"}}, "c": {"needs": ["b", "a"], "handler": {"name": "f"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{"a": nil, "beside": nil, "s": {"a"}, "s/x": {"a"}, "s/y": {"a", "s/x"},
		"b": {"a", "s", "s/aside", "s/x", "s/y"}, "c": {"a", "b", "s", "s/aside", "s/x", "s/y"}} {
		n, _ := w.Node(path)
		var got []string
		for _, i := range w.Before(n.Index) {
			got = append(got, w.Nodes[i].Path)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("before %s: %v, want %v", path, got, want)
		}
	}
}
