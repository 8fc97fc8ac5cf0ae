package flow

// State is where a step of a workflow stands, or a whole workflow.
type State string

// The states of a step: those of a run, and Pending, Suspended and UpstreamFailed.
const (
	Pending        State = "pending" // not released: its rule waits for a parent
	Scheduled      State = "scheduled"
	Queued         State = "queued"
	Running        State = "running"
	Retrying       State = "retrying"
	Suspended      State = "suspended" // waits for a time, a signal or a callback
	Succeeded      State = "succeeded"
	Failed         State = "failed" // failed for good
	Cancelled      State = "cancelled"
	Skipped        State = "skipped"
	Dead           State = "dead"            // attempts spent
	Unknown        State = "unknown"         // at most once, and its worker died in it
	UpstreamFailed State = "upstream_failed" // never released: its rule can no longer be met, because a step before it failed
)

// Ended reports whether the state is final. A state that this version does not know is none.
func (s State) Ended() bool { return s.seen() != 0 }

// Failure reports whether rules count the state as a failure of the step itself.
func (s State) Failure() bool { return s.seen() == failures }

// outcomes is a set of ends, as rules tell them apart.
type outcomes uint8

const (
	successes outcomes = 1 << iota
	failures
	upstreamFailures
	skips
	everyOutcome outcomes = 1<<iota - 1
)

func (s State) seen() outcomes {
	switch s {
	case Succeeded:
		return successes
	case Failed, Dead, Unknown, Cancelled:
		return failures
	case UpstreamFailed:
		return upstreamFailures
	case Skipped:
		return skips
	default:
		return 0
	}
}
