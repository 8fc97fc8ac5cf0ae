package linear

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// jobState is what stands under the name of a job. The generation of an edit whose answer was lost, and of a delete, is not told: it
// is one of lo to hi.
type jobState struct {
	exists  bool
	lo, hi  int64
	base    string // the definition, but for paused
	paused  bool
	reason  string
	created int64 // Unix ms, 0 where nobody has told
}

type jobVerb string

const (
	putJob    jobVerb = "put"
	deleteJob jobVerb = "delete"
	pauseJob  jobVerb = "pause"
	resumeJob jobVerb = "resume"
	lookAtJob jobVerb = "look"
)

// jobStep is a request for a job and its answer. The answer of an edit tells the newest state, which may be that of a later edit: so
// it bounds the edit's own generation, and what it shows is a look of its own, at some moment of the same request.
type jobStep struct {
	verb   jobVerb
	base   string
	paused bool
	reason string
	match  string // If-Match, "" for none
	etag   int64  // the generation that match stands for
	absent bool   // If-None-Match: *

	stepped bool // clocks are, so what changes nothing may still be written again

	status int // 0: not known
	code   string
	upTo   int64    // of an edit's answer
	seen   jobState // of a look that found the job
}

var jobModel = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{jobState{}} },
	Step:  func(state, in, _ any) []any { return states(in.(jobStep).on(state.(jobState))) },
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, _ any) string {
		return in.(jobStep).String()
	},
	DescribeState: func(state any) string { return state.(jobState).String() },
}

// jobs is jobModel without the states that others cover. Each of many lost edits may have happened or not, and each that has raises the
// lowest generation that there can be: states would be as many as definitions times edits.
func jobs() porcupine.Model {
	model := jobModel.ToModel()
	step := model.Step
	model.Step = func(state, in, out any) (bool, any) {
		ok, next := step(state, in, out)
		return ok, uncovered(next.([]any))
	}
	return model
}

// uncovered gives the states that no other covers.
func uncovered(all []any) []any {
	var left []any
	for _, one := range all {
		s := one.(jobState)
		if slices.ContainsFunc(left, func(other any) bool { return other.(jobState).covers(s) }) {
			continue
		}
		left = append(slices.DeleteFunc(left, func(other any) bool { return s.covers(other.(jobState)) }), one)
	}
	return left
}

// covers tells whether s is what other is, with every generation that other may have: then each answer that can come from other can come
// from s, and what s becomes by it covers what other becomes.
func (s jobState) covers(other jobState) bool {
	if s.lo > other.lo || s.hi < other.hi {
		return false
	}
	s.lo, s.hi = other.lo, other.hi
	return s == other
}

func states[S any](of []S) []any {
	all := make([]any, len(of))
	for i, s := range of {
		all[i] = s
	}
	return all
}

// on gives the states in which the step can leave s, none where its answer cannot come from s.
func (in jobStep) on(s jobState) []jobState {
	switch in.verb {
	case lookAtJob:
		return in.look(s)
	case putJob:
		if s.exists && s.base == in.base && s.paused == in.paused {
			return in.unchanged(s, 200)
		}
		to := jobState{exists: true, base: in.base, paused: in.paused}
		if s.exists {
			return in.change(s, to, 200, 412)
		}
		return in.change(s, to, 201, 412)
	case deleteJob:
		if !s.exists {
			return in.unchanged(s, 404)
		}
		return in.change(s, jobState{}, 204, 412)
	}
	if !s.exists {
		return in.unchanged(s, 404)
	}
	paused := in.verb == pauseJob
	if s.paused == paused && (!paused || s.reason == in.reason) {
		return in.unchanged(s, 200)
	}
	return in.change(s, jobState{exists: true, base: s.base, paused: paused, reason: in.reason}, 200, 412)
}

// unchanged is a step that does nothing in s, and says so with a status. Where clocks are stepped it may make a generation of the same.
func (in jobStep) unchanged(s jobState, status int) []jobState {
	if in.status != 0 && (in.status != status || in.upTo != 0 && s.lo > in.upTo) {
		return nil
	}
	after := []jobState{s}
	again := s
	if again.lo, again.hi = s.lo+1, in.highest(); in.stepped && again.lo <= again.hi {
		after = append(after, again)
	}
	return after
}

// highest is what the generation may be that the step makes.
func (in jobStep) highest() int64 {
	if in.upTo != 0 {
		return in.upTo
	}
	return math.MaxInt64
}

// change is a step that makes s another state, unless its condition does not hold.
func (in jobStep) change(s, to jobState, done, refused int) []jobState {
	holds, may, mayNot := in.holds(s)
	var after []jobState
	if in.status == 0 || in.status == refused && mayNot && (in.code == "job_exists") == (in.absent && s.exists) {
		after = append(after, s)
	}
	if may && (in.status == 0 || in.status == done) {
		to.lo, to.hi = holds.lo+1, in.highest()
		if s.exists && to.exists {
			to.created = s.created
		}
		if to.lo <= to.hi {
			after = append(after, to)
		}
	}
	return after
}

// holds tells whether the step's condition may hold in s, with what is then known of s, and whether it may not.
func (in jobStep) holds(s jobState) (known jobState, may, mayNot bool) {
	switch {
	case in.absent:
		return s, !s.exists, s.exists
	case in.match == "":
		return s, true, false
	case in.match == "*":
		return s, s.exists, !s.exists
	case !s.exists || in.etag < s.lo || in.etag > s.hi:
		return s, false, true
	}
	known = s
	known.lo, known.hi = in.etag, in.etag
	return known, true, s.lo != s.hi
}

func (in jobStep) look(s jobState) []jobState {
	switch {
	case in.status == 404:
		if s.exists {
			return nil
		}
		return []jobState{s}
	case !in.seen.exists: // an edit's answer that tells of a delete
		if s.exists || in.seen.lo < s.lo || in.seen.lo > s.hi {
			return nil
		}
		s.lo, s.hi = in.seen.lo, in.seen.lo
		return []jobState{s}
	case !s.exists || in.seen.lo < s.lo || in.seen.lo > s.hi || s.base != in.seen.base || s.paused != in.seen.paused || s.reason != in.seen.reason ||
		s.created != 0 && s.created != in.seen.created:
		return nil
	}
	return []jobState{in.seen}
}

func (s jobState) String() string {
	generation := fmt.Sprint("generation ", s.lo)
	switch {
	case s.hi == math.MaxInt64 && s.lo == 0:
		generation = "no generation known"
	case s.hi == math.MaxInt64:
		generation = fmt.Sprint("generation ", s.lo, " or higher")
	case s.lo != s.hi:
		generation = fmt.Sprint("generation ", s.lo, " to ", s.hi)
	}
	if !s.exists {
		return "no job, " + generation
	}
	text := fmt.Sprintf("definition %s, %s", s.base, generation)
	if s.paused {
		text += fmt.Sprintf(", paused %q", s.reason)
	}
	return text
}

func (in jobStep) String() string {
	text := string(in.verb)
	switch in.verb {
	case putJob:
		text += " definition " + in.base
		if in.paused {
			text += ", paused"
		}
	case pauseJob:
		text += fmt.Sprintf(" %q", in.reason)
	}
	if in.match != "" {
		text += " if " + in.match
		if in.etag > 0 {
			text += fmt.Sprint(" (generation ", in.etag, ")")
		}
	}
	if in.absent {
		text += " if absent"
	}
	switch {
	case in.status == 0:
		return text + ": not known"
	case in.verb == lookAtJob && in.status < 300:
		return text + ": " + in.seen.String()
	case in.upTo != 0:
		return fmt.Sprintf("%s: %d, by generation %d", text, in.status, in.upTo)
	}
	return fmt.Sprintf("%s: %d %s", text, in.status, in.code)
}
