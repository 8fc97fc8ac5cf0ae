package run

import (
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// maxRecord is how large a run's item may be without its result: what DynamoDB writes for one unit.
const maxRecord = 1024

// perItem is what DynamoDB counts of an item beside its keys and its value: the names of its six attributes, a letter each,
// and version, expiry and attempt ID as numbers.
const perItem = 42

// encode gives the record of a run that stays within maxRecord, but for one case: where tenant and job have the longest names that there are, and the payload is as long as MaxInline, a
// run that waits at a named gate with a long name, or at one of a long key, takes up to some 110 bytes more; and each gate with a name that it passes by a key of a long value up to 46, where
// names, payload and keys leave no room. It has as much of the attempts and their errors as keeps the item within maxRecord, or so much above
// it as its data is above MaxInline, and as the discard of a dead letter, what was said of a release, and the scopes that were stopped take. What is left out leaves r too.
func (r *Run) encode(key store.Key) []byte {
	r.Payload.Blob, r.Result.Blob, r.Log = r.shortKey(r.Payload.Blob), r.shortKey(r.Result.Blob), r.shortKey(r.Log)
	r.Why, r.Wait = r.Why.without(r.ID.Job), r.Wait.without(r.ID.Job)
	most := maxRecord + max(0, len(r.Payload.Inline)+len(r.Result.Inline)+len(r.Callback.Run)+r.Callees.size()-MaxInline) + r.Discarded.size() + r.Releasing.size() + len(r.Stopped)
	for {
		value := r.record()
		over := perItem + len(key.Partition) + len(key.Sort) + len(value) - most
		if over <= 0 || !r.fit(over) {
			return value
		}
	}
}

// size is about how many bytes it takes in a record.
func (d Discarded) size() int {
	if d.IsZero() {
		return 0
	}
	return 20 + len(d.By) + len(d.Note)
}

// size is about how many bytes it takes in a record.
func (l Releasing) size() int {
	if l.IsZero() {
		return 0
	}
	return 10 + len(l.By) + len(l.Reason)
}

// size is about how many bytes they take in a record.
func (c Callees) size() int {
	if c.IsZero() {
		return 0
	}
	return 10 + len(c.Succeeded) + len(c.Failed)
}

// fit sheds what is missed least until about so many bytes are saved: the errors of older attempts, the longer part of the
// newest error, the oldest attempts, most of the last error and the reason. False where nothing is left to shed.
func (r *Run) fit(over int) bool {
	began := over
	shorten := func(text *string, least int) {
		if over > 0 && len(*text) > least {
			shorter := cut(*text, max(least, len(*text)-over))
			over -= len(*text) - len(shorter)
			*text = shorter
		}
	}
	attempts := slices.Clone(r.Attempts)
	newest := len(attempts) - 1
	for i := range newest {
		shorten(&attempts[i].Error, 0)
	}
	if newest >= 0 {
		shorten(&attempts[newest].Error, newestError/2)
	}
	for over > 0 && len(attempts) > 1 {
		attempts = attempts[1:]
		over -= attemptBytes
	}
	if n := len(attempts); n > 0 {
		shorten(&attempts[n-1].Error, leastError)
	}
	shorten(&r.Reason, maxReasonSize/3)
	for n := len(r.Why.InTheWay); over > 0 && n > 1; n-- {
		over -= len(r.Why.InTheWay[n-1]) + 1
		r.Why.InTheWay = r.Why.InTheWay[:n-1]
	}
	r.Attempts = attempts
	return over < began
}

// attemptBytes is the least that an ended attempt takes.
const attemptBytes = 26

// The keys of a run's blobs repeat its tenant and ID, which may be long. In the record they are left out: no key holds these
// characters.
const (
	tenantMark = "\x01"
	idMark     = "\x02"
)

func (r *Run) shortKey(key string) string {
	if key == "" {
		return ""
	}
	return strings.Replace(strings.Replace(key, r.ID.Whole().String(), idMark, 1), "/"+r.Tenant+"/", "/"+tenantMark+"/", 1)
}

func (r *Run) longKey(key string) string {
	if key == "" {
		return ""
	}
	return strings.Replace(strings.Replace(key, tenantMark, r.Tenant, 1), idMark, r.ID.Whole().String(), 1)
}

// without leaves out the name of the run's own job, which gate and runs in the way begin with in most records; with gives it back. No name of a
// gate ends with a colon, and no ID of a run begins with "~".
func (y Why) without(job string) Why {
	if y.Gate == ownGate+job {
		y.Gate = ownGate
	}
	y.InTheWay = slices.Clone(y.InTheWay)
	for i, id := range y.InTheWay {
		if strings.HasPrefix(id, job+"~") {
			y.InTheWay[i] = id[len(job):]
		}
	}
	return y
}

func (y Why) with(job string) Why {
	if y.Gate == ownGate {
		y.Gate += job
	}
	for i, id := range y.InTheWay {
		if strings.HasPrefix(id, "~") {
			y.InTheWay[i] = job + id
		}
	}
	return y
}

func (w Wait) without(job string) Wait {
	if w.Gate == ownGate+job {
		w.Gate = ownGate
	}
	return w
}

func (w Wait) with(job string) Wait {
	if w.Gate == ownGate {
		w.Gate += job
	}
	return w
}

// ownGate is what the name of a job's own gate begins with.
const ownGate = "job:"
