package expression

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Fields are what an expression may read of a step.
var Fields = []string{"state", "result", "error", "attempt", "started_at", "ended_at"}

// Caught is the name of the failures that a step handles. Only expressions of such steps may read it, and who checks a workflow sees to that.
const Caught = "caught"

// Reads is what an expression reads of its input.
type Reads struct {
	Input bool // the payload of the run, as .input of a workflow or .payload of a key
	Run   bool
	Steps map[string][]string // names of steps, each with the fields that are read of it, in the order of Fields

	Caught bool // the failures that a step of a workflow handles
}

// Names lists the steps that are read, in the order of their names.
func (r Reads) Names() []string { return slices.Sorted(maps.Keys(r.Steps)) }

// Result tells whether the result of a step is read.
func (r Reads) Result(step string) bool { return slices.Contains(r.Steps[step], "result") }

// List says it in the words of expressions: ".input", ".run", ".steps.NAME.FIELD", and ".steps.NAME" for all of a step.
func (r Reads) List() []string {
	all := []string{}
	if r.Input {
		all = append(all, ".input")
	}
	if r.Run {
		all = append(all, ".run")
	}
	if r.Caught {
		all = append(all, ".caught")
	}
	for _, name := range r.Names() {
		step := ".steps." + name
		if strings.Contains(name, "-") || name[0] >= '0' && name[0] <= '9' {
			step = `.steps["` + name + `"]`
		}
		if len(r.Steps[name]) == len(Fields) {
			all = append(all, step)
			continue
		}
		for _, field := range r.Steps[name] {
			all = append(all, step+"."+field)
		}
	}
	return all
}

// with adds what another reads.
func (r Reads) with(o Reads) Reads {
	all := Reads{Input: r.Input || o.Input, Run: r.Run || o.Run, Caught: r.Caught || o.Caught, Steps: map[string][]string{}}
	for _, steps := range []map[string][]string{r.Steps, o.Steps} {
		for name, fields := range steps {
			all.Steps[name] = inOrder(append(slices.Clone(all.Steps[name]), fields...))
		}
	}
	return all
}

func inOrder(some []string) []string {
	return slices.DeleteFunc(slices.Clone(Fields), func(field string) bool { return !slices.Contains(some, field) })
}

// place is a part of an expression's input: all of it, all its steps, or one of these.
type place struct {
	steps bool
	step  string
}

// origin says which parts of the input a value may be, other than those that are read once they are named. Most values are none.
type origin []place

var whole = origin{{}}

func join(a, b origin) origin {
	all := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// scope is what an expression may read by name.
type scope struct {
	names []string
	steps bool // "steps" leads to the steps of a workflow, each with its Fields
}

var (
	ofWorkflow = scope{[]string{"input", "run", "steps"}, true}
	ofKey      = scope{[]string{"payload", "job", "labels", "nominal_time"}, false}
)

// whole says what an expression is to read in place of all there is.
func (s scope) whole() string {
	var names []string
	for _, name := range s.names {
		if s.steps && name == "steps" {
			name = "steps.NAME"
		}
		names = append(names, "."+name)
	}
	return "the name of what is read: " + listOf(names)
}

func (s scope) example() string {
	if s.steps {
		return ".input or .steps.NAME.result"
	}
	return ".payload.customer"
}

func (s scope) one() string {
	last := len(s.names) - 1
	return "one of " + strings.Join(s.names[:last], ", ") + " and " + s.names[last]
}

// field is what a name leads to.
func (f *fence) field(is origin, name string) origin {
	var all origin
	for _, p := range is {
		switch {
		case p.step != "":
			if !slices.Contains(Fields, name) {
				f.refuseField(name, "a field of a step: "+listOf(Fields)+guess(name, Fields))
			}
			f.read(p.step, name)
		case p.steps:
			all = join(all, origin{{steps: true, step: name}})
			f.read(name)
		case f.scope.steps && name == Caught:
			f.reads.Caught = true
		case !slices.Contains(f.scope.names, name):
			f.refuseField(name, f.scope.one()+guess(name, f.scope.names))
		case f.scope.steps && name == "steps":
			all = join(all, origin{{steps: true}})
		case name == "input", name == "payload":
			f.reads.Input = true
		case name == "run":
			f.reads.Run = true
		}
	}
	return all
}

// use is for a value that is wanted itself, and not only a part of it.
func (f *fence) use(is origin) {
	for _, p := range is {
		switch {
		case p.step != "":
			f.read(p.step, Fields...)
		case p.steps:
			f.refuseField("steps", "the name of a step behind it, such as .steps.NAME")
		default:
			f.refuse(".", f.scope.whole())
		}
	}
}

func (f *fence) read(step string, fields ...string) {
	if f.reads.Steps == nil {
		f.reads.Steps = map[string][]string{}
	}
	f.reads.Steps[step] = inOrder(append(slices.Clone(f.reads.Steps[step]), fields...))
}

func guess(name string, among []string) string {
	if near := invalid.Nearest(name, among); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

func listOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// ofSteps is what stands before the name of a step, and ofAnything what does before that of any field.
var (
	ofSteps    = []string{`steps.`, `steps["`, `steps."`, `steps.["`}
	ofAnything = []string{`.`, `."`, `.["`}
)

// find tells where a name or sign stands in the text of an expression, in characters from 1; 0 where it does not, or is all of it. That is where it is no
// part of a longer name and stands behind what is named, or else outside of texts and comments, or else anywhere: the first of such places.
func find(text, what string, behind []string) int {
	if what == text {
		return 0
	}
	first, _ := utf8.DecodeRuneInString(what)
	var open nesting
	next, begun := 0, 0 // where the next sign stands, and what is in the last text that was begun
	best, fit := 0, 0
	for i := range len(text) {
		outside := false
		if i == next {
			inText := open.inText()
			outside = !inText && text[i] != '#'
			next += open.step(text[i:])
			if !inText && open.inText() {
				begun = next
			}
		}
		if !strings.HasPrefix(text[i:], what) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(what):])
		if named(first) && (named(before) || named(after)) {
			continue
		}
		fits := 1
		switch {
		case (outside || i == begun) && slices.ContainsFunc(behind, func(one string) bool { return strings.HasSuffix(text[:i], one) }):
			fits = 3
		case outside:
			fits = 2
		}
		if fits > fit {
			best, fit = utf8.RuneCountInString(text[:i])+1, fits
		}
	}
	return best
}

func named(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// sorted lists the names of an object, in their order: what is wrong first is then the same each time.
func sorted(v map[string]any) []string { return slices.Sorted(maps.Keys(v)) }
