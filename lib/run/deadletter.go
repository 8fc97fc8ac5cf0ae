package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// DeadLetter lists a run that failed for good or is dead; it is written with the run's end and removed when it is reopened. One that was
// discarded stays, so that runs are found by their state as before.
type DeadLetter struct {
	Run   ID     `cbor:"-"`
	Ended int64  `cbor:"-"` // Unix ms, in the key
	State State  `cbor:"1,keyasint"`
	Error string `cbor:"2,keyasint,omitempty"` // of the last attempt; without one, why the run is dead

	Discarded bool `cbor:"3,keyasint,omitempty"`
}

// DeadSpread is over how many partitions the dead letters of a tenant lie: everything may fail at once.
const DeadSpread = 8

// DeadPartition is the n-th of them.
func DeadPartition(tenant string, n int) string { return deadPrefix + tenant + "#" + strconv.Itoa(n) }

const deadPrefix = "dead#"

// DeadFromKey tells whose dead letter stands at a key; not ok for any other key.
func DeadFromKey(k store.Key) (tenant string, ok bool) {
	rest, ok := strings.CutPrefix(k.Partition, deadPrefix)
	tenant, _, _ = strings.Cut(rest, "#")
	return tenant, ok
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any {
	return map[string]any{"run": Run{}, "step": Run{}, "dead": DeadLetter{}, "ran": index{}, "down": Down{}, "streak": Streak{}}
}

// DeadKey is where an ended run is listed.
func (r Run) DeadKey() store.Key {
	id := r.ID.String()
	return store.Key{
		Partition: DeadPartition(r.Tenant, int(xxhash.Sum64String(id)%DeadSpread)),
		Sort:      SortFrom(r.Ended) + id,
	}
}

// LastError is that of the newest attempt, "" for none; of a dead letter without an attempt, why it was given up.
func (r Run) LastError() string {
	if n := len(r.Attempts); n > 0 {
		return r.Attempts[n-1].Error
	}
	if r.State.DeadLetter() {
		return r.Reason
	}
	return ""
}

// DeadLetterOp gives the write that lists an ended run; it goes into one Write with the run.
func (r Run) DeadLetterOp(attempt uint64) (store.Op, error) {
	value, err := record.Encode(DeadLetter{State: r.State, Error: r.LastError(), Discarded: !r.Discarded.IsZero()})
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: r.DeadKey(), Value: value, Expires: time.UnixMilli(r.Expires), Attempt: attempt}, nil
}

// DeadLetterFromItem reads one.
func DeadLetterFromItem(item store.Item) (DeadLetter, error) {
	var letter DeadLetter
	if err := record.Decode(item.Value, &letter); err != nil {
		return DeadLetter{}, fmt.Errorf("dead letter %s: %w", item.Key, err)
	}
	var err error
	if letter.Ended, letter.Run, err = ParseDeadSort(item.Sort); err != nil {
		return DeadLetter{}, fmt.Errorf("dead letter %s: %w", item.Key, err)
	}
	return letter, nil
}

// ParseDeadSort reads the sort key of a dead letter: when its run ended, Unix ms, and which run it is.
func ParseDeadSort(sort string) (ended int64, id ID, err error) {
	digits, text, _ := strings.Cut(sort, "#")
	if ended, err = strconv.ParseInt(digits, 10, 64); err != nil {
		return 0, ID{}, fmt.Errorf("%q: %w", sort, record.ErrBroken)
	}
	if id, err = ParseID(text); err != nil {
		return 0, ID{}, fmt.Errorf("%w: %w", record.ErrBroken, err)
	}
	return ended, id, nil
}
