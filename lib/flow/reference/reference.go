// Package reference says how a workflow must come out, by the plainest means: whole truth tables, and every way in which open steps could
// still end. Tests hold lib/flow against it, so it shares nothing with it: no code, no types, no tables. It is slow.
package reference

import (
	"strings"
	"time"
)

// The ends of a step, as rules tell them apart, and Open for one that has not ended.
const (
	Success  = 'S'
	Failure  = 'F'
	Upstream = 'U' // upstream_failed
	Skip     = 'K'
	Open     = '-'
)

// Run is the verdict that the step is to run. The others are Skip, Upstream and Open.
const Run = 'R'

// Final gives the verdict of a rule over the ends of all parents, at least one letter.
func Final(rule, ends string) rune {
	n := len(ends)
	s, f, u, k := strings.Count(ends, "S"), strings.Count(ends, "F"), strings.Count(ends, "U"), strings.Count(ends, "K")
	choose := func(run bool, otherwise rune) rune {
		if run {
			return Run
		}
		return otherwise
	}
	switch rule {
	case "always", "all_done":
		return Run
	case "all_success":
		if f+u > 0 {
			return Upstream
		}
		return choose(s == n, Skip)
	case "all_failed":
		return choose(f+u == n, Skip)
	case "all_skipped":
		return choose(k == n, Skip)
	case "none_skipped":
		return choose(k == 0, Skip)
	case "one_failed":
		return choose(f+u >= 1, Skip)
	case "one_done":
		return choose(s+f >= 1, Skip)
	case "none_failed":
		return choose(f+u == 0, Upstream)
	case "one_success":
		if k == n {
			return Skip
		}
		return choose(s >= 1, Upstream)
	case "none_failed_min_one_success":
		if k == n {
			return Skip
		}
		return choose(f+u == 0 && s >= 1, Upstream)
	case "all_done_min_one_success":
		if k > 0 {
			return Skip
		}
		return choose(s >= 1, Upstream)
	}
	panic("no rule " + rule)
}

// Decide gives the verdict of a rule while parents may still be open: the one that all of their possible ends agree on, else Open. A final verdict goes by how
// many ended how, so of those that are open each way to share them among the ends is tried once.
func Decide(rule, ends string) rune {
	open := strings.Count(ends, string(Open))
	switch {
	case rule == "always" || ends == "":
		return Run
	case open == 0:
		return Final(rule, ends)
	case rule == "all_done":
		return Open
	}
	known := strings.ReplaceAll(ends, string(Open), "")
	var verdict rune
	for s := range open + 1 {
		for f := range open - s + 1 {
			for u := range open - s - f + 1 {
				end := strings.Repeat("S", s) + strings.Repeat("F", f) + strings.Repeat("U", u) + strings.Repeat("K", open-s-f-u)
				v := Final(rule, known+end)
				if verdict != 0 && v != verdict {
					return Open
				}
				verdict = v
			}
		}
	}
	return verdict
}

// Step is a step of a workflow together with how it comes out if it runs.
type Step struct {
	Name    string
	Rule    string
	Parents []string      // siblings, of which some may be switches that name the step
	Inside  []Step        // of a scope
	Allowed bool          // its failure counts as a success for others
	Stopped string        // of a scope that was stopped before all in it had ended by itself: what it fails of for that; "": it was not
	Stops   bool          // of a scope, as its definition says it: a failure in it stops it. What was stopped is said by Stopped alone
	Limit   time.Duration // the same: how long it may take
	When    rune          // of a scope that asks whether it runs: Success where it does, Skip where it does not, Failure where that cannot be told; else 0

	End     rune            // of what has no steps inside: Success, Failure or Skip
	Choices map[string]bool // of a switch: the siblings that it may choose
	Chosen  string          // of a switch: the one that it chooses if it runs, or ""
	Reads   []string        // what its input reads, or the output of a scope, as expressions name it
	Pass    bool            // it calls nothing, and its result is its input
	Fails   int             // attempts of a task that fail before the one that ends it
	Again   time.Duration   // the shortest wait behind those
	Code    string          // what it fails of, where its End is Failure
	Catch   []Clause        // who handles its failure
}

// Clause has failures of some codes handled by a sibling; of no codes, all.
type Clause struct {
	Codes []string
	To    string
}

// handler is the sibling that handles a failure of a code, "" for none. A code of a clause stands for itself and for what has more behind a colon.
func (s Step) handler(code string) string {
	for _, c := range s.Catch {
		for _, one := range c.Codes {
			if code == one || strings.HasPrefix(code, one+":") {
				return c.To
			}
		}
		if len(c.Codes) == 0 {
			return c.To
		}
	}
	return ""
}

// Outcome is how a workflow comes out.
type Outcome struct {
	End  rune            // of the whole: Success or Failure
	Ends map[string]rune // of every step, by its path: "load" or "parts/load"
	Ran  map[string]bool // steps that ran, scopes and switches among them

	Codes  map[string]string // what each step that failed has failed of, by path
	Caught map[string]string // the sibling that handles a failure, by the path of what has failed
}

// Evaluate gives what becomes of every step.
func Evaluate(steps []Step) Outcome {
	o := Outcome{Ends: map[string]rune{}, Ran: map[string]bool{}, Codes: map[string]string{}, Caught: map[string]string{}}
	o.End, _ = o.graph(steps, "")
	return o
}

// graph evaluates siblings, each after its parents, and gives the end of the whole, and what it fails of: the first failure that nothing handles.
func (o Outcome) graph(steps []Step, prefix string) (end rune, code string) {
	named := map[string]Step{}
	for _, s := range steps {
		named[s.Name] = s
	}
	whole := Success
	for _, s := range steps {
		o.step(s, named, prefix)
		if o.seen(s, prefix) == Failure {
			if whole == Success {
				code = o.Codes[prefix+s.Name]
			}
			whole = Failure
		}
	}
	return whole, code
}

// seen is the end of a step as others see it that do not handle its failure.
func (o Outcome) seen(s Step, prefix string) rune {
	switch end := o.Ends[prefix+s.Name]; {
	case o.Caught[prefix+s.Name] != "":
		return Skip
	case end == Failure && s.Allowed:
		return Success
	default:
		return end
	}
}

func (o Outcome) step(s Step, named map[string]Step, prefix string) rune {
	path := prefix + s.Name
	if end, known := o.Ends[path]; known {
		return end
	}
	end := o.verdict(s, named, prefix)
	switch {
	case end != Run:
		o.spread(s.Inside, path+"/", end)
	case len(s.Inside) > 0 && s.When == Skip:
		o.Ran[path] = true // as one that was asked
		end = Skip
		o.spread(s.Inside, path+"/", Skip)
	case len(s.Inside) > 0 && s.When == Failure:
		o.Ran[path] = true
		end, o.Codes[path] = Failure, s.Code
		o.spread(s.Inside, path+"/", Upstream)
	case len(s.Inside) > 0:
		o.Ran[path] = true
		end, o.Codes[path] = o.graph(s.Inside, path+"/")
		if s.Stopped != "" {
			end, o.Codes[path] = Failure, s.Stopped
		}
	default:
		o.Ran[path] = true
		end, o.Codes[path] = s.End, s.Code
	}
	o.Ends[path] = end
	if end != Failure {
		delete(o.Codes, path)
	} else if to := s.handler(o.Codes[path]); to != "" {
		o.Caught[path] = to
	}
	return end
}

// verdict says whether a step runs, or how it ends if it does not.
func (o Outcome) verdict(s Step, named map[string]Step, prefix string) rune {
	ends := ""
	isNamed, chosen, handles, caught := false, false, false, false
	for _, sibling := range named {
		for _, c := range sibling.Catch {
			if c.To == s.Name {
				handles = true
				o.step(sibling, named, prefix)
				caught = caught || o.Caught[prefix+sibling.Name] == s.Name
			}
		}
	}
	for _, p := range s.Parents {
		parent := named[p]
		end := o.step(parent, named, prefix)
		ends += string(o.seen(parent, prefix))
		if parent.Choices[s.Name] {
			isNamed = true
			chosen = chosen || end == Success && parent.Chosen == s.Name
		}
	}
	if ends != "" && Final(s.Rule, ends) != Run {
		return Final(s.Rule, ends)
	}
	if isNamed && !chosen || handles && !caught {
		return Skip
	}
	return Run
}

// spread ends all that is inside of a scope that never ran as the scope itself ends.
func (o Outcome) spread(steps []Step, prefix string, end rune) {
	for _, s := range steps {
		o.Ends[prefix+s.Name] = end
		o.spread(s.Inside, prefix+s.Name+"/", end)
	}
}
