// Package reference says how a workflow must come out, by the plainest means: whole truth tables, and every way in which open steps could
// still end. Tests hold lib/flow against it, so it shares nothing with it: no code, no types, no tables. It is slow.
package reference

import "strings"

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

// Decide gives the verdict of a rule while parents may still be open: the one that all of their possible ends agree on, else Open.
func Decide(rule, ends string) rune {
	at := strings.IndexRune(ends, Open)
	switch {
	case rule == "always" || ends == "":
		return Run
	case at < 0:
		return Final(rule, ends)
	case rule == "all_done":
		return Open
	}
	verdicts := map[rune]bool{}
	for _, end := range []string{"S", "F", "U", "K"} {
		verdicts[Decide(rule, ends[:at]+end+ends[at+1:])] = true
	}
	if len(verdicts) > 1 {
		return Open
	}
	for v := range verdicts {
		return v
	}
	return Open
}

// Step is a step of a workflow together with how it comes out if it runs.
type Step struct {
	Name    string
	Rule    string
	Parents []string // siblings, of which some may be switches that name the step
	Inside  []Step   // of a scope

	End     rune            // of what has no steps inside: Success, Failure or Skip
	Chosen  map[string]bool // of a switch: the siblings that it chooses if it runs
	Choices map[string]bool // of a switch: the siblings that it may choose
}

// Evaluate gives the end of every step by its path, "load" or "parts/load", and of the workflow at "".
func Evaluate(steps []Step) map[string]rune {
	ends := map[string]rune{}
	ends[""] = evaluate(steps, "", ends)
	return ends
}

func evaluate(steps []Step, prefix string, ends map[string]rune) rune {
	byName := map[string]Step{}
	for _, s := range steps {
		byName[s.Name] = s
	}
	var end func(s Step) rune
	end = func(s Step) rune {
		path := prefix + s.Name
		if _, known := ends[path]; !known {
			ends[path] = endOf(s, byName, end, func(s Step) rune { return evaluate(s.Inside, path+"/", ends) })
			if v := ends[path]; len(s.Inside) > 0 && v != Success && v != Failure {
				spread(s.Inside, path+"/", v, ends)
			}
		}
		return ends[path]
	}
	whole := Success
	for _, s := range steps {
		if end(s) == Failure {
			whole = Failure
		}
	}
	return whole
}

func endOf(s Step, byName map[string]Step, end func(Step) rune, scope func(Step) rune) rune {
	var parents strings.Builder
	named, chosen := false, false
	for _, p := range s.Parents {
		e := end(byName[p])
		parents.WriteRune(e)
		if byName[p].Choices[s.Name] {
			named = true
			chosen = chosen || e == Success && byName[p].Chosen[s.Name]
		}
	}
	verdict := Run
	if parents.Len() > 0 {
		verdict = Final(s.Rule, parents.String())
	}
	switch {
	case verdict != Run:
		return verdict
	case named && !chosen:
		return Skip
	case len(s.Inside) > 0:
		return scope(s)
	default:
		return s.End
	}
}

func spread(steps []Step, prefix string, end rune, ends map[string]rune) {
	for _, s := range steps {
		ends[prefix+s.Name] = end
		spread(s.Inside, prefix+s.Name+"/", end, ends)
	}
}
