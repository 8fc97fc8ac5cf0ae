package picture_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/picture"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

func read(t testing.TB, definition any) *flow.Workflow {
	t.Helper()
	text, ok := definition.([]byte)
	if !ok {
		var err error
		if text, err = json.Marshal(definition); err != nil {
			t.Fatal(err)
		}
	}
	w, err := flow.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

type steps map[string]any

// drawn is a graph of n steps by chance: each needs up to three of those before it, more often near ones, and some are scopes.
func drawn(chance *rand.Rand, n, depth int) steps {
	all := steps{}
	var names []string
	for len(names) < n {
		name := fmt.Sprintf("%c%d_%d", 'a'+chance.IntN(26), len(names), chance.IntN(1_000_000)) // in scopes, too, each name once
		step := steps{}
		var needs []string
		for range min(chance.IntN(4), len(names)) {
			near := min(int(chance.ExpFloat64()*float64(n)/8), len(names)-1)
			if name := names[len(names)-1-near]; !strings.Contains(strings.Join(needs, " ")+" ", name+" ") {
				needs = append(needs, name)
			}
		}
		if needs != nil {
			step["needs"] = needs
		}
		switch kind := chance.IntN(10); {
		case kind < 2 && depth > 0:
			step["steps"] = drawn(chance, 1+chance.IntN(8), depth-1)
		case kind == 2:
			step["pass"] = steps{}
		default:
			step["handler"] = steps{"name": strings.Repeat("h", 1+chance.IntN(60))}
		}
		all[name] = step
		names = append(names, name)
	}
	return all
}

// checkPlaces holds that boxes lie beside or inside of each other, and that lines lead from box to box and run through none.
func checkPlaces(t *testing.T, w *flow.Workflow, p picture.Picture) {
	t.Helper()
	within := func(i, scope int) bool {
		for ; i != flow.None; i = w.Nodes[i].Scope {
			if i == scope {
				return true
			}
		}
		return false
	}
	for i, a := range p.Boxes {
		if a.X < 0 || a.Y < 0 || a.X+a.Width > p.Width || a.Y+a.Height > p.Height || a.Width <= 0 || a.Height <= 0 {
			t.Errorf("%s lies outside of the picture: %+v", w.Nodes[i].Path, a)
		}
		for j, b := range p.Boxes[:i] {
			switch apart := a.X+a.Width <= b.X || b.X+b.Width <= a.X || a.Y+a.Height <= b.Y || b.Y+b.Height <= a.Y; {
			case within(i, j):
				if a.X <= b.X || a.X+a.Width >= b.X+b.Width || a.Y <= b.Y || a.Y+a.Height >= b.Y+b.Height {
					t.Errorf("%s lies not within its scope %s", w.Nodes[i].Path, w.Nodes[j].Path)
				}
			case !apart:
				t.Errorf("%s lies over %s", w.Nodes[i].Path, w.Nodes[j].Path)
			}
		}
	}
	clear := func(from int, points []picture.Point) {
		for k := 1; k < len(points); k++ {
			a, b := points[k-1], points[k]
			if b.Y < a.Y {
				t.Errorf("a line of %s goes up", w.Nodes[from].Path)
			}
			low, high := min(a.X, b.X), max(a.X, b.X)
			for i, box := range p.Boxes {
				if within(from, i) && i != from || within(i, from) && i != from {
					continue // what is around it; what is in it lies above its lower side
				}
				// A curve stays within the rectangle of its ends.
				if low < box.X+box.Width && high > box.X && a.Y < box.Y+box.Height && b.Y > box.Y {
					t.Errorf("a line of %s runs through %s", w.Nodes[from].Path, w.Nodes[i].Path)
				}
			}
		}
	}
	on := map[int]map[picture.Point]bool{} // where lines of a node may begin
	for i, b := range p.Boxes {
		on[i] = map[picture.Point]bool{{X: b.X + b.Width/2, Y: b.Y + b.Height}: true}
	}
	for _, lane := range p.Lanes {
		if !on[lane.From][lane.Points[0]] {
			t.Errorf("a lane of %s begins somewhere else", w.Nodes[lane.From].Path)
		}
		for _, point := range lane.Points[1:] {
			on[lane.From][point] = true
		}
		clear(lane.From, lane.Points)
	}
	drawn := map[[2]int]int{}
	for _, e := range p.Edges {
		drawn[[2]int{e.From, e.To}]++
		to := p.Boxes[e.To]
		if end := e.Points[len(e.Points)-1]; end != (picture.Point{X: to.X + to.Width/2, Y: to.Y}) {
			t.Errorf("the edge from %s to %s ends at %v", w.Nodes[e.From].Path, w.Nodes[e.To].Path, end)
		}
		if !on[e.From][e.Points[0]] {
			t.Errorf("the edge from %s to %s begins somewhere else", w.Nodes[e.From].Path, w.Nodes[e.To].Path)
		}
		if e.Chosen != (w.Nodes[e.To].Switch == e.From) {
			t.Errorf("the edge from %s to %s: chosen is %v", w.Nodes[e.From].Path, w.Nodes[e.To].Path, e.Chosen)
		}
		clear(e.From, e.Points)
	}
	needs := 0
	for _, n := range w.Nodes {
		for _, need := range n.Needs {
			needs++
			if drawn[[2]int{need, n.Index}] != 1 {
				t.Errorf("%d edges from %s to %s", drawn[[2]int{need, n.Index}], w.Nodes[need].Path, n.Path)
			}
		}
	}
	if needs != len(p.Edges) {
		t.Errorf("%d edges, want %d", len(p.Edges), needs)
	}
}

func chain(n int) steps {
	all := steps{}
	for i := range n {
		step := steps{"pass": steps{}}
		if i > 0 {
			step["needs"] = []string{fmt.Sprintf("s%d", i-1)}
		}
		all[fmt.Sprintf("s%d", i)] = step
	}
	return all
}

// dense needs everything before it, as far as a definition has room for: most edges pass many layers.
func dense(n int) steps {
	all := steps{}
	var names []string
	for i := range n {
		name := fmt.Sprintf("%d", i)
		all[name] = steps{"pass": steps{}, "needs": names}
		names = append(names[:len(names):len(names)], name)
	}
	delete(all["0"].(steps), "needs")
	return all
}

func nested(depth int) steps {
	if depth == 1 {
		return steps{"leaf": steps{"pass": steps{}}}
	}
	return steps{fmt.Sprintf("in%d", depth): steps{"steps": nested(depth - 1)}, fmt.Sprintf("beside%d", depth): steps{"pass": steps{}}}
}

func fan(n int) steps {
	all := steps{"start": steps{"pass": steps{}}}
	var names []string
	for i := range n {
		name := fmt.Sprintf("w%d", i)
		all[name] = steps{"pass": steps{}, "needs": []string{"start"}}
		names = append(names, name)
	}
	all["end"] = steps{"pass": steps{}, "needs": append(names, "start")}
	return all
}

func TestNothingLiesOverAnything(t *testing.T) {
	etl, err := os.ReadFile("testdata/etl.json")
	if err != nil {
		t.Fatal(err)
	}
	graphs := map[string]*flow.Workflow{
		"of one step":    read(t, steps{"steps": chain(1)}),
		"deep":           read(t, steps{"steps": chain(300)}),
		"wide":           read(t, steps{"steps": fan(298)}),
		"dense":          read(t, steps{"steps": dense(100)}),
		"nested":         read(t, steps{"steps": nested(10)}),
		"with a switch":  read(t, etl),
		"with a catch":   caught(t),
		"of 300, drawn":  read(t, steps{"steps": drawn(rand.New(rand.NewPCG(1, 300)), 300, 0)}),
		"without an end": read(t, steps{"steps": steps{"a": steps{"pass": steps{}}, "b": steps{"pass": steps{}}}}),
	}
	for seed := range uint64(60) {
		chance := rand.New(rand.NewPCG(seed, 34))
		graphs[fmt.Sprintf("of seed %d", seed)] = read(t, steps{"steps": drawn(chance, 1+chance.IntN(24), 2)})
	}
	for name, w := range graphs {
		t.Run(name, func(t *testing.T) { checkPlaces(t, w, picture.Of(w, nil)) })
	}
}

// The same workflow gives the same bytes, however it was written down and however often it is drawn.
func TestTheSameBytesTwice(t *testing.T) {
	definition := steps{"steps": drawn(rand.New(rand.NewPCG(1, 300)), 300, 0)}
	for name, draw := range map[string]func(*flow.Workflow, picture.Marks) string{"SVG": picture.SVG, "Mermaid": picture.Mermaid, "text": picture.Text} {
		first := draw(read(t, definition), nil)
		for range 3 {
			if again := draw(read(t, definition), nil); again != first {
				t.Errorf("%s differs when it is drawn again", name)
			}
		}
	}
}

// caught is a workflow in which failures are caught.
func caught(t *testing.T) *flow.Workflow {
	t.Helper()
	definition, err := os.ReadFile("testdata/caught.json")
	if err != nil {
		t.Fatal(err)
	}
	return read(t, definition)
}

// The pictures of one workflow with all kinds of nodes, and of one in which failures are caught, as people see them.
func TestPicturesOfAWorkflow(t *testing.T) {
	definition, err := os.ReadFile("testdata/etl.json")
	if err != nil {
		t.Fatal(err)
	}
	w := read(t, definition)
	marks := make(picture.Marks, len(w.Nodes)) // of a run
	for i := range marks {
		marks[i] = []picture.Mark{{State: flow.Succeeded, Note: "4ms"}, {State: flow.Dead, Note: "3 attempts"}, {State: flow.Running}, {State: flow.UpstreamFailed}, {State: flow.Skipped}, {State: flow.Pending}}[i%6]
	}
	for name, got := range map[string]string{"etl.txt": picture.Text(w, nil), "etl.mmd": picture.Mermaid(w, nil), "etl.svg": picture.SVG(w, nil),
		"run.txt": picture.Text(w, marks), "run.mmd": picture.Mermaid(w, marks), "run.svg": picture.SVG(w, marks),
		"caught.txt": picture.Text(caught(t), nil), "caught.mmd": picture.Mermaid(caught(t), nil), "caught.svg": picture.SVG(caught(t), nil)} {
		file := "testdata/" + name
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nIf that is meant: go test ./lib/flow/picture -update, and look at the picture in light and dark", file, got)
		}
	}
}

// What others write stays text: in a picture no element, in Mermaid no mark, in a terminal no control.
func TestHostileTextStaysText(t *testing.T) {
	definition, err := os.ReadFile("testdata/etl.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, evil := range []string{
		`</text><script>alert(1)</script>`, `"><image href="https://example.org/x"/>`, "]]>&amp;&#x0;\x00\x1b[2J\u202e", "\ufffe\uffff \xff\xfe",
		"a\nb\"]\n  click n0 call alert()\n", "`x` **y** <br> #quot; %% --> end", strings.Repeat("漢字", 200), strings.Repeat("w", 5000), "",
	} {
		w := read(t, definition)
		for i := range w.Nodes {
			n := &w.Nodes[i]
			n.Name, n.Path = evil, n.Path+evil
			if n.Fail != nil {
				n.Fail.Code = evil
			}
			if n.Task != nil {
				switch target := &n.Task.Target; {
				case target.HTTP != nil:
					target.HTTP.URL = "https://" + evil
				case target.Exec != nil:
					target.Exec.Argv = []string{evil}
				case target.Handler != nil:
					target.Handler.Name = evil
				case target.AWS != nil:
					target.AWS.ARN = "arn:aws:" + evil + ":eu-central-1:1:" + evil
				}
			}
			for k := range n.Ways {
				n.Ways[k].When = evil
			}
			if n.Kind == flow.KindTask && len(n.Next) == 1 && n.Scope == flow.None { // what a later version may have for codes
				to := &w.Nodes[n.Next[0]]
				n.Catch, to.Catches = []flow.Clause{{Codes: []string{evil}, To: to.Index}}, []int{n.Index}
			}
		}
		marks := make(picture.Marks, len(w.Nodes))
		for i := range marks {
			marks[i] = picture.Mark{State: flow.State(evil), Note: evil}
		}
		checkPlaces(t, w, picture.Of(w, marks))

		elements := xml.NewDecoder(strings.NewReader(picture.SVG(w, marks)))
		for {
			token, err := elements.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%.40q: the picture is no XML: %v", evil, err)
			}
			if e, ok := token.(xml.StartElement); ok && !strings.Contains(" svg title style rect path g text ", " "+e.Name.Local+" ") {
				t.Errorf("%.40q: there is an element %s in the picture", evil, e.Name.Local)
			}
		}
		for kind, text := range map[string]string{"text": picture.Text(w, marks), "Mermaid": picture.Mermaid(w, marks)} {
			for _, r := range text {
				if r != '\n' && terminal.Acts(r) {
					t.Errorf("%.40q: %s has %U in it", evil, kind, r)
				}
			}
		}
		want := strings.Count(picture.Mermaid(read(t, definition), nil), "\n")
		if got := strings.Count(picture.Mermaid(w, marks), "\n"); got != want {
			t.Errorf("%.40q: Mermaid has %d lines, want %d", evil, got, want)
		}
	}
}

// A step that needs many says so in a line that can be read.
func TestTextIsShort(t *testing.T) {
	for line := range strings.Lines(picture.Text(read(t, steps{"steps": fan(298)}), nil)) {
		if len(line) > 150 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	for name, all := range map[string]steps{"drawn": drawn(rand.New(rand.NewPCG(1, 300)), 300, 0), "wide": fan(298), "deep": chain(300), "dense": dense(100)} {
		w := read(b, steps{"steps": all})
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				picture.Of(w, nil)
			}
		})
	}
}
