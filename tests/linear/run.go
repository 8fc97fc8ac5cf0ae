package linear

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// runState is what is known of a run at a moment. Belfry goes on with it by itself (reaches says how far), so of a run that has not
// ended these are lower bounds.
type runState struct {
	born       bool
	state      string
	onDemand   bool
	generation int64
	attempt    int
	fence      uint64
	ended      int64 // Unix ms
	reason     string
	result     string // hash of it; "" where it was not shown
	headed     bool   // it was opened as a workflow's, which is no attempt
	seen       int64  // Unix ms, when this was first known

	cancelled bool // a cancel of the attempt under way was accepted
	over      bool // it has ended, and nobody has told how
	reopened  bool // perhaps: it was opened again, and has had no attempt since
	unsure    bool // it was opened again, and nobody has told how many attempts it had before
}

type runVerb string

const (
	lookAtRun runVerb = "look"
	cancelRun runVerb = "cancel"
	retryRun  runVerb = "retry"
)

// runStep is a request for a run and its answer.
type runStep struct {
	verb  runVerb
	force bool
	at    int64 // Unix ms

	open bool     // not known
	code string   // of a refusal
	seen runState // of an answer; of a verdict on one of many its state alone, and it is not born
}

// runsStay is for how long an ended run is kept at the least.
const runsStay = int64(24 * time.Hour / time.Millisecond)

var runModel = porcupine.NondeterministicModel{
	Init:              func() []any { return []any{runState{}} },
	Step:              func(state, in, _ any) []any { return states(in.(runStep).on(state.(runState))) },
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, _ any) string { return in.(runStep).String() },
	DescribeState:     func(state any) string { return state.(runState).String() },
}

func ended(state string) bool {
	switch state {
	case "succeeded", "failed", "cancelled", "skipped", "dead", "unknown":
		return true
	}
	return false
}

// unbegun tells whether a run of the state waits for its time, its turn or its worker.
func unbegun(state string) bool {
	return state == "scheduled" || state == "queued" || state == "waiting"
}

func (in runStep) on(s runState) []runState {
	switch {
	case in.open && in.verb == retryRun && s.born:
		return []runState{s, s.again()}
	case in.open:
		// What a lost cancel may have done, Belfry may have done by itself.
		return []runState{s}
	case in.code != "":
		return in.refused(s)
	case !in.seen.born && in.verb != lookAtRun:
		return in.told(s)
	case in.verb == cancelRun:
		return in.cancel(s)
	case in.verb == retryRun:
		return in.retry(s)
	case !s.reaches(in.seen):
		return nil
	}
	return []runState{s.then(in.seen)}
}

// again is s after it was opened again, where nobody has told how it stood then. What had not ended may have had more attempts.
func (s runState) again() runState {
	s.unsure = s.unsure || !ended(s.state) || s.over
	if s.state != "" {
		s.state = "queued"
	}
	s.ended, s.result, s.reason = 0, "", ""
	s.cancelled, s.over, s.reopened = false, false, true
	return s
}

// then is s as it is after it was seen, where it was reached by itself.
func (s runState) then(seen runState) runState {
	seen.cancelled = s.cancelled && !ended(seen.state)
	unheard := !s.born || s.state == "" // of what was done to it before
	seen.reopened = unbegun(seen.state) && (unheard || s.reopened && (s.unsure || seen.attempt == s.attempt))
	if s.born && s.state == seen.state && s.attempt == seen.attempt && !s.over {
		seen.seen = s.seen
	}
	if seen.result == "" {
		seen.result = s.result
	}
	return seen
}

func (in runStep) refused(s runState) []runState {
	over := s
	over.born, over.over = true, s.over || !ended(s.state)
	switch in.code {
	case "run_not_found":
		since := s.seen
		if s.ended != 0 {
			since = s.ended
		}
		// A claim of a fire that an edit takes back was no run, and may be one again. Before it is due it is shown as scheduled.
		fenced := !s.onDemand && unbegun(s.state) && s.attempt == 0
		if s.born && !fenced && in.at-since < runsStay {
			return nil
		}
		return []runState{{}}
	case "run_ended", "workflow_begun":
		return []runState{over}
	case "run_not_ended":
		if ended(s.state) || s.over {
			return nil
		}
		return []runState{s}
	case "needs_force":
		if ended(s.state) && s.state != "succeeded" && s.state != "unknown" {
			return nil
		}
		return []runState{over}
	case "run_skipped":
		if ended(s.state) && (s.state != "skipped" || atGate(s.reason)) || s.attempt > 0 {
			return nil
		}
		return []runState{over}
	}
	return []runState{s}
}

// told is cancel and retry where a verdict tells the state alone.
func (in runStep) told(s runState) []runState {
	over := ended(s.state) && !s.over
	switch {
	case !s.born:
		return []runState{s}
	case in.verb == cancelRun && (over || s.over), in.verb == retryRun && over && (s.state == "skipped" && !atGate(s.reason) || !in.force && (s.state == "succeeded" || s.state == "unknown")):
		return nil
	case in.verb == cancelRun:
		s.over = in.seen.state == "cancelled"
		return []runState{s}
	}
	return []runState{s.again()}
}

// cancel ends what has not started, and asks the attempt under way to stop.
func (in runStep) cancel(s runState) []runState {
	before := in.seen
	before.ended, before.reason, before.result = 0, "", ""
	switch in.seen.state {
	case "running":
		if !s.reaches(before) {
			return nil
		}
		after := s.then(in.seen)
		after.cancelled = true
		return []runState{after}
	case "cancelled", "failed":
		before.state = "running"
		// None of its steps was open, or its time was over; of two cancels at once both tell of the end that either brought.
		if in.seen.headed && (s.reaches(before) || ended(s.state) && s.reaches(in.seen)) {
			return []runState{s.then(in.seen)}
		}
		if in.seen.state == "failed" {
			return nil
		}
		for _, state := range []string{"scheduled", "queued", "waiting", "retrying"} {
			if before.state = state; s.reaches(before) {
				return []runState{s.then(in.seen)}
			}
		}
	}
	return nil
}

// atGate tells whether a run was skipped at a gate. Other skipped runs are records of missed fires.
func atGate(reason string) bool {
	return slices.Contains(gateReasons, reason) || tooLate(reason)
}

// tooLate tells whether a run was skipped since it had not started in time: also one that had attempts before it was opened again.
func tooLate(reason string) bool { return strings.HasPrefix(reason, "it had not started by ") }

// gateReasons are those of runs that were one too many at their job's gate, or at one that jobs share.
var gateReasons = []string{"other runs of the job were in progress", "other runs of the job were in progress or in line", "as many runs of the job waited as may wait", "another run of the job waited already", "a later run of the job waits in its place",
	"as many runs waited at the gate as may wait", "the gate was closed, and as many runs waited as may wait", "a later run of the job takes its place"}

// retry opens what has ended.
func (in runStep) retry(s runState) []runState {
	if in.seen.state != "queued" && in.seen.state != "scheduled" {
		return nil
	}
	for _, state := range []string{"failed", "dead", "cancelled", "succeeded", "unknown", "skipped"} {
		if (state == "succeeded" || state == "unknown") && !in.force {
			continue
		}
		before := in.seen
		before.state = state
		if s.born && ended(s.state) && !s.over { // how it ended is known, and not told again
			if s.state != state || state == "skipped" && !atGate(s.reason) {
				continue
			}
			before.ended, before.reason, before.result, before.generation = s.ended, s.reason, s.result, s.generation
			if in.seen.generation < s.generation {
				continue
			}
		}
		if s.reaches(before) {
			in.seen.reopened = true
			return []runState{in.seen}
		}
	}
	return nil
}

// reaches tells whether Belfry may bring a run from s to what was seen by itself: along the edges of docs/run.md, and out of no end.
func (s runState) reaches(to runState) bool {
	switch {
	case !s.born:
		return true
	case ended(s.state):
		return to.state == s.state && to.attempt == s.attempt && to.fence == s.fence && to.ended == s.ended && to.reason == s.reason &&
			to.generation == s.generation && (s.result == "" || to.result == "" || to.result == s.result)
	case s.over && !ended(to.state), to.attempt < s.attempt, to.fence < s.fence, (to.attempt == s.attempt) != (to.fence == s.fence), to.generation < s.generation:
		return false
	case s.headed || to.headed && to.attempt == s.attempt:
		return s.opened(to)
	case s.state == "": // a refusal told that it has ended, and nothing more is known of it
		return true
	case to.attempt > s.attempt:
		return !s.cancelled && (to.state != "scheduled" && to.state != "skipped" || s.unsure && s.waited(to))
	}
	switch s.state {
	case "scheduled", "queued", "waiting":
		switch to.state {
		case "queued", "waiting", "cancelled", "dead":
			return true
		case "scheduled", "skipped":
			return s.waited(to)
		case "failed": // its gate could not be told
			return strings.HasPrefix(to.reason, "expression: overlap.key: ") || strings.HasPrefix(to.reason, "expression: gates[")
		}
		return false
	case "retrying":
		return to.state == "retrying" || to.state == "cancelled" || to.state == "dead"
	case "running":
		if s.cancelled {
			return to.state == "running" || to.state == "succeeded" || to.state == "cancelled" || to.state == "unknown"
		}
		return to.state != "scheduled" && to.state != "skipped"
	}
	return false
}

// waited tells whether a run may come from s to be scheduled, or skipped, with the attempts that it has had: only where it was opened again behind them.
func (s runState) waited(to runState) bool {
	switch {
	case to.attempt == 0: // its claim was taken away; it was skipped at its job's gate, or for the decision of a newer generation over missed fires
		return true
	case to.state == "skipped":
		return s.reopened && tooLate(to.reason)
	}
	return s.reopened // it was given another place in time
}

// opened tells whether a workflow's run may come from s to what was seen: it is opened once, makes no attempt, and stops where it was told to.
func (s runState) opened(to runState) bool {
	if s.state == "running" && !s.headed || s.state == "retrying" || !to.headed || to.attempt != s.attempt {
		return false
	}
	switch to.state {
	case "running", "cancelled", "failed": // though told to stop it fails where its time was over
		return true
	case "succeeded":
		return !s.cancelled
	}
	return false
}

func (s runState) String() string {
	if !s.born {
		return "no run"
	}
	state := s.state
	if s.over {
		state = "ended since it was " + state
	}
	text := fmt.Sprintf("%s, generation %d, attempt %d, fence %d", state, s.generation, s.attempt, s.fence)
	if s.ended != 0 {
		text += fmt.Sprintf(", ended at %s", time.UnixMilli(s.ended).UTC().Format("15:04:05.000"))
	}
	if s.reason != "" {
		text += fmt.Sprintf(", %q", s.reason)
	}
	if s.result != "" {
		text += ", result " + s.result
	}
	if s.cancelled {
		text += ", told to stop"
	}
	if s.unsure {
		text += ", opened again after that many attempts or more"
	}
	return text
}

func (in runStep) String() string {
	text := string(in.verb)
	if in.force {
		text += " by force"
	}
	switch {
	case in.open:
		return text + ": not known"
	case in.code != "":
		return text + ": " + in.code
	}
	return text + ": " + in.seen.String()
}
