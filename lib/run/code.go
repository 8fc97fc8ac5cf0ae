package run

import "github.com/belfry-scheduler/belfry/lib/target"

// Code is what a step that has failed is told apart by from others, as target.CodeOf has it: by its last attempt, or by why there was none. "" of one that has
// not failed, and where nothing is known. It is a function of the ended record.
func (r Run) Code() string {
	switch r.State {
	case Failed, Dead, Unknown:
	case Cancelled:
		return r.State.String()
	default:
		return ""
	}
	n := len(r.Attempts)
	switch {
	case n == 0 && r.State == Failed: // what it asked could not be told
		return target.CodeOf(r.Reason)
	case n > 0 && r.Attempts[n-1].Outcome == OutcomeFailed:
		return target.CodeOf(r.Attempts[n-1].Error)
	}
	return target.CodeCrash // of its worker, at the last attempt or before there was any
}
