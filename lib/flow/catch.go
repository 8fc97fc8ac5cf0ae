package flow

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// This file has what becomes of the failures that a catch takes. Of a failed node all that counts is how it ended, and of what: its code. Both stand in its
// row, or in those of the steps of a scope, and do not change. So whoever decides who handles a failure decides the same.

// Clause is one clause of a catch.
type Clause struct {
	Codes []string // of the failures that it takes; nil: all
	To    int      // the node that handles them, a sibling
}

// Failure is what a node has failed of.
type Failure struct {
	State State
	Code  string // as target.CodeOf has it, or that of a fail node; "" is DefaultCode
}

// is tells whether a code of a clause stands for the failure: it has that code, or one that begins with it and has more behind a colon, or it stands for all
// statuses of one hundred. Of a step that ended as Unknown so does that word, whatever it failed of.
func (f Failure) is(code string) bool {
	has := f.Code
	if has == "" {
		has = DefaultCode
	}
	if hundred, all := strings.CutSuffix(code, hundreds); all && strings.HasPrefix(code, statusCode) {
		return len(has) == len(code) && strings.HasPrefix(has, hundred)
	}
	return has == code || strings.HasPrefix(has, code+":") || code == string(Unknown) && f.State == Unknown
}

const (
	statusCode = target.KindHTTPStatus + ":"
	hundreds   = "xx" // of any status of one hundred
)

// takes gives the node that handles a failure of this one, or None.
func (n *Node) takes(f Failure) int {
	for _, c := range n.Catch {
		if c.Codes == nil || slices.ContainsFunc(c.Codes, f.is) {
			return c.To
		}
	}
	return None
}

// handles tells whether the node handles failures of another.
func (n *Node) handles(index int) bool { return slices.Contains(n.Catches, index) }

// judged lists the nodes whose states the rule judges, by index, ascending.
func (n *Node) judged() []int {
	if len(n.Catches) == 0 {
		return n.Needs
	}
	return slices.DeleteFunc(slices.Clone(n.Needs), n.handles)
}

// catchesAll tells whether no failure of the node goes by all of its clauses.
func (n *Node) catchesAll() bool {
	return slices.ContainsFunc(n.Catch, func(c Clause) bool { return c.Codes == nil })
}

// Caught is a failure that was caught.
type Caught struct {
	To   int    // the node that handles it
	Of   int    // what has failed: the node itself, or of a scope the first in it that did
	Code string // what of
}

// counted is what the state of a node counts as, for rules and for the whole: the failure that was caught is none, and what needs the node sees that it was
// skipped.
func (d *Decisions) counted(n *Node) State {
	if _, caught := d.Caught[n.Index]; caught {
		return Skipped
	}
	return n.counts(d.States[n.Index])
}

// Counted gives the states with those of which the failure was caught as Skipped, which is what others see: for Cause and Awaits.
func (d *Decisions) Counted() []State {
	if len(d.Caught) == 0 {
		return d.States
	}
	states := slices.Clone(d.States)
	for i := range d.Caught {
		states[i] = Skipped
	}
	return states
}

// catch notes who handles the failure of a node that has one.
func (p *planner) catch(n *Node) {
	if len(n.Catch) == 0 || !p.States[n.Index].Failure() {
		return
	}
	of := p.itself(n.Index)
	f := Failure{State: p.States[of], Code: p.w.CodeOf(p.facts, p.Decisions, of)}
	if to := n.takes(f); to != None {
		if p.Caught == nil {
			p.Caught = map[int]Caught{}
		}
		p.Caught[n.Index] = Caught{To: to, Of: of, Code: f.Code}
	}
}

// CodeOf is what a node has failed of by itself: of a scope, its time.
func (w *Workflow) CodeOf(facts []Fact, d Decisions, index int) string {
	if fail := w.Nodes[index].Fail; fail != nil {
		return fail.Code
	}
	if _, stopped := d.Stopped[index]; stopped {
		return target.KindTimeout
	}
	return cmp.Or(facts[index].Code, DefaultCode)
}

// caughtInto says of a node that handles failures, and whose rule lets it run, whether it does.
func (p *planner) caughtInto(n *Node) Verdict {
	verdict := Skip
	for _, i := range n.Catches {
		if !p.States[i].Ended() {
			return Wait
		}
		if c, caught := p.Caught[i]; caught && c.To == n.Index {
			verdict = Run
		}
	}
	return verdict
}

// Handled is a failure as the step that handles it reads it.
type Handled struct {
	Step, Error, Code string
}

// Handled lists the failures that a node handles, in the order of the nodes that have failed. seen tells what is known of a node.
func (w *Workflow) Handled(handler int, d *Decisions, seen func(index int) Seen) []Handled {
	var all []Handled
	for _, i := range w.Nodes[handler].Catches {
		if c, caught := d.Caught[i]; caught && c.To == handler {
			all = append(all, Handled{w.Nodes[i].Name, seen(c.Of).Error, c.Code})
		}
	}
	return all
}

// handler is the node whose failures a node reads as .caught: itself, or the innermost scope around it that handles any; None where there is none.
func (w *Workflow) handler(n *Node) int {
	for n != nil {
		switch {
		case len(n.Catches) > 0:
			return n.Index
		case n.Scope == None:
			return None
		}
		n = &w.Nodes[n.Scope]
	}
	return None
}

// maxCode is how long a code may be, in characters.
const maxCode = 100

// codes are those of which a node may fail.
type codes map[string]*regexp.Regexp // what may stand behind a colon, which is not said of each; nil: nothing

// The codes of every task: what a target can be called with and gives, and what becomes of the attempt.
var everyTask = []string{target.KindTimeout, target.KindExpression, target.KindTooSlow, target.KindPayload, target.KindTooLarge, target.CodeCrash}

var ofTarget = map[string][]string{
	"http":    {target.KindHTTPStatus, target.KindRedirect, target.KindConnect, target.KindLost, target.KindRefused, target.KindSecret},
	"exec":    {target.KindExit, target.KindSignal, target.KindStart, target.KindSecret},
	"handler": {target.KindHandler, target.KindPanic},
	"aws":     {target.KindAWS, target.KindFunction, target.KindConnect, target.KindLost, target.KindRefused},
	"email":   {target.KindSMTP, target.KindConnect, target.KindLost, target.KindRefused},
}

// called is the field of a step that says which kind of target it has.
func called(s target.Spec) string {
	switch {
	case s.HTTP != nil:
		return "http"
	case s.Exec != nil:
		return "exec"
	case s.AWS != nil:
		return "aws"
	case s.Email != nil:
		return "email"
	}
	return "handler"
}

// details are what may stand behind a code and a colon.
var details = map[string]*regexp.Regexp{
	target.KindHTTPStatus: regexp.MustCompile(`^[45]([0-9][0-9]|xx)$`),
	target.KindExit:       regexp.MustCompile(`^([1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$`),
	target.KindHandler:    regexp.MustCompile(target.CodePattern),
	target.KindFunction:   regexp.MustCompile(target.FunctionErrorPattern),
}

// examples are how details are told of.
var examples = map[string]string{target.KindHTTPStatus: "http_status:503, http_status:5xx", target.KindExit: "exit:3", target.KindHandler: "handler:CODE", target.KindFunction: "function:TYPE"}

// codesOf adds the codes of which a node may fail: of a scope, those of what is in it.
func (w *Workflow) codesOf(n *Node, all codes) {
	kinds := func(some ...string) {
		for _, kind := range some {
			all[kind] = details[kind]
		}
	}
	switch n.Kind {
	case KindTask:
		kinds(everyTask...)
		kinds(ofTarget[called(n.Task.Target)]...)
		if n.Task.Guarantee == job.AtMostOnce {
			kinds(string(Unknown))
		}
	case KindScope:
		for _, i := range n.Body.Steps {
			if inner := &w.Nodes[i]; !inner.AllowFailure && !inner.catchesAll() {
				w.codesOf(inner, all)
			}
		}
		if n.Timeout != 0 {
			kinds(target.KindTimeout)
		}
	case KindFail:
		kinds(n.Fail.Code)
	}
	if n.mayFail() { // a task has these anyway
		kinds(target.KindExpression, target.KindTooSlow)
	}
}

// allows tells whether a failure may have the code.
func (all codes) allows(code string) bool {
	if _, whole := all[code]; whole {
		return true
	}
	kind, detail, found := strings.Cut(code, ":")
	if found && all[kind] != nil && all[kind].MatchString(detail) {
		return true
	}
	for own := range all { // of a fail node, which may have colons
		if strings.HasPrefix(own, code+":") {
			return true
		}
	}
	return false
}

// text lists them.
func (all codes) text() string {
	var names []string
	for _, code := range slices.Sorted(maps.Keys(all)) {
		names = append(names, code)
		if example := examples[code]; example != "" {
			names = append(names, example)
		}
	}
	return strings.Join(names, ", ")
}

// catching reports codes that no failure can have, and clauses that nothing can reach.
func (c *checker) catching() {
	for i := range c.w.Nodes {
		n := &c.w.Nodes[i]
		if len(n.Catch) == 0 {
			continue
		}
		at := c.w.field(n) + ".catch"
		all := codes{}
		if c.w.codesOf(n, all); len(all) == 0 {
			want := "none: nothing in this scope can fail"
			if n.Kind == KindWait {
				want = "none: a wait without an expression cannot fail"
			}
			c.add(at, "", want)
			continue
		}
		if n.AllowFailure && n.catchesAll() {
			c.add(c.w.field(n)+".allow_failure", "", "none beside a catch without codes, which takes every failure")
		}
		before := map[string]string{} // where each code stood first
		for k, clause := range n.Catch {
			at := entry(at, k)
			if clause.Codes == nil && k < len(n.Catch)-1 {
				c.add(at, "no codes", "some, or this clause last: nothing can reach those behind it")
			}
			for l, code := range clause.Codes {
				at := entry(at+".codes", l)
				if !all.allows(code) {
					c.add(at, invalid.Quote(code), "a code that "+n.Name+" can fail with: "+all.text()+c.guess(code, slices.Sorted(maps.Keys(all))))
					continue
				}
				if first := covered(before, code); first != "" {
					c.add(at, invalid.Quote(code), "a code that no clause before takes, and "+first+" does")
				}
				before[code] = at
			}
		}
	}
}

// covered gives where a code stands that takes what another does, "" where none does.
func covered(before map[string]string, code string) string {
	for _, first := range slices.Sorted(maps.Keys(before)) {
		if (Failure{Code: code}).is(first) {
			return before[first]
		}
	}
	return ""
}
