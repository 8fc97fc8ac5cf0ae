package run

import (
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Streak is how many runs of a job have ended badly in a row. Only a job that is paused after so many has one, and only while its last run has ended so.
type Streak struct {
	Generation int64 `cbor:"1,keyasint"` // of the runs that it counts: an edit of the job begins anew
	Count      int   `cbor:"2,keyasint"`
}

// StreakKey is where that of a job stands.
func StreakKey(tenant, job string) store.Key {
	return store.Key{Partition: "streak#" + tenant + "#" + job, Sort: "-"}
}

// Next is the streak behind a run's end, and whether that changes it. A run of an older generation than it counts is none of its own. It counts no further than
// most, which pause the job: what ends badly behind that has nothing to write of it.
func (s Streak) Next(r Run, most int) (next Streak, changed bool) {
	e, ends := r.Ends()
	switch {
	case !ends || r.State == Cancelled || r.Generation < s.Generation: // what a deadline has stopped tells of no fault of the job
		return s, false
	case e == job.OnSucceeded:
		return Streak{}, s != Streak{}
	case r.Generation > s.Generation:
		return Streak{Generation: r.Generation, Count: 1}, true
	case s.Count >= most:
		return s, false
	}
	s.Count++
	return s, true
}

// Pauses tells of the streak behind a run's end whether that is to pause the job, which as many bad ends in a row as most do.
func (s Streak) Pauses(r Run, most int) bool {
	e, _ := r.Ends()
	return e == job.OnFailed && r.State != Cancelled && s.Generation == r.Generation && s.Count >= most
}

// Op writes the streak over the item that was read, at the end of a run (Unix ms). One that counts nothing is none.
func (s Streak) Op(over store.Item, ended int64, attempt uint64) (store.Op, error) {
	op := store.Op{Kind: store.Delete, Key: over.Key, If: store.At(over), Attempt: attempt}
	if s.Count == 0 {
		return op, nil
	}
	value, err := record.Encode(s)
	if err != nil {
		return store.Op{}, err
	}
	op.Kind, op.Value, op.Expires = store.Put, value, time.UnixMilli(ended).Add(job.KeepPast)
	return op, nil
}

// StreakFromItem reads a streak; of an item that is not there it is one of none.
func StreakFromItem(item store.Item) (s Streak, err error) {
	if !item.Exists() {
		return Streak{}, nil
	}
	if err = record.Decode(item.Value, &s); err != nil {
		return Streak{}, fmt.Errorf("%s: %w", item.Key, err)
	}
	return s, nil
}
