package flow

import "math/bits"

// Verdict is what a rule makes of the states of a step's parents.
type Verdict uint8

// The verdicts.
const (
	Wait  Verdict = iota // for a parent that has not ended
	Run                  // release the step
	Skip                 // it never runs, and ends as Skipped
	Block                // it never runs, and ends as UpstreamFailed
)

// Decide applies the rule to the states of a step's parents, in any order. A step without parents runs, whatever its rule.
//
// The verdict is a function of the parents' final states. It is given before all have ended only where every way in which the open ones can
// still end gives the same, so no order of ends and no delay changes it. Two rules say by themselves when they decide: Always at once, and
// AllDone, for which every end gives the same, when all have ended.
func (r Rule) Decide(parents ...State) Verdict {
	var seen outcomes
	open := 0
	for _, p := range parents {
		if one := p.seen(); one != 0 {
			seen |= one
		} else {
			open++
		}
	}
	switch {
	case len(parents) == 0 || r == Always:
		return Run
	case r == AllDone && open > 0:
		return Wait
	case open == 0:
		return r.final(seen)
	}
	verdict := Wait
	for more := outcomes(1); more <= everyOutcome; more++ {
		if bits.OnesCount8(uint8(more)) > open {
			continue
		}
		v := r.final(seen | more)
		if verdict != Wait && v != verdict {
			return Wait
		}
		verdict = v
	}
	return verdict
}

// final is the verdict over one parent or more that have all ended. How many ended in a way decides no rule, only whether any did.
func (r Rule) final(seen outcomes) Verdict {
	has := func(of outcomes) bool { return seen&of != 0 }
	only := func(of outcomes) bool { return seen == of }
	switch r {
	case AllFailed:
		return unless(has(successes|skips), Skip)
	case AllSkipped:
		return unless(!only(skips), Skip)
	case NoneSkipped:
		return unless(has(skips), Skip)
	case OneFailed:
		return unless(!has(failures|upstreamFailures), Skip)
	case OneDone:
		return unless(!has(successes|failures), Skip)
	case NoneFailed:
		return unless(has(failures|upstreamFailures), Block)
	case AllDone, Always:
		return Run
	case AllDoneMinOneSuccess:
		if has(skips) {
			return Skip
		}
		return unless(!has(successes), Block)
	case OneSuccess:
		if only(skips) {
			return Skip
		}
		return unless(!has(successes), Block)
	case NoneFailedMinOneSuccess:
		if only(skips) {
			return Skip
		}
		return unless(has(failures|upstreamFailures), Block)
	default: // AllSuccess
		if has(failures | upstreamFailures) {
			return Block
		}
		return unless(has(skips), Skip)
	}
}

// unless gives otherwise where bad holds, else Run.
func unless(bad bool, otherwise Verdict) Verdict {
	if bad {
		return otherwise
	}
	return Run
}
