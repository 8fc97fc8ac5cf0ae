package store

import "time"

// Decide is what every engine does with a Write, given what stands under the key of each op (Version 0 where nothing
// does): it sets versions, one per op, to the new ones, and tells whether they are still to be written, or gives a
// *Conflict. Of what stands, it needs version and attempt; the conflict carries what it was given.
//
// apply is false, without a conflict, when an earlier try of this very call has done it already. A Write happens whole or
// not at all, so one put that finds itself standing proves it for all: without that rule, a Write with a delete in it
// could never be repeated, since the delete finds nothing the second time.
func Decide(versions []uint64, ops []Op, standing []Item) (apply bool, conflict *Conflict) {
	failed, done := -1, false
	for i := range ops {
		if ops[i].If.Holds(standing[i].Version) {
			continue
		}
		if ops[i].isStanding(standing[i]) {
			done = true
		} else if failed < 0 {
			failed = i
		}
	}
	if failed >= 0 && !done {
		at := standing[failed]
		at.Key = ops[failed].Key
		return false, &Conflict{Op: failed, Cond: ops[failed].If, Standing: at}
	}
	for i := range ops {
		versions[i] = 0
		if ops[i].Kind == Put {
			versions[i] = ops[i].gives(standing[i], done)
		}
	}
	return !done, nil
}

// isStanding tells whether what stands is the op's own work, and nobody has written after it.
func (op *Op) isStanding(standing Item) bool {
	return op.Kind == Put && op.Attempt != 0 && op.Attempt == standing.Attempt && standing.Version == op.If.version+1
}

// gives is the version that a put leaves behind. For a put under Any that an earlier try did (done), only the item can
// tell, and only while nobody wrote it since; else it is 0.
func (op *Op) gives(standing Item, done bool) uint64 {
	switch {
	case !op.If.IsAny():
		return op.If.version + 1
	case !done:
		return standing.Version + 1
	case op.Attempt != 0 && op.Attempt == standing.Attempt:
		return standing.Version
	default:
		return 0
	}
}

// ExpirySeconds is Expires as engines keep it: Unix seconds, rounded up so that nothing goes early, 0 for never.
func ExpirySeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	s := t.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return max(s, 1)
}

// ExpiryTime is the opposite of ExpirySeconds.
func ExpiryTime(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
