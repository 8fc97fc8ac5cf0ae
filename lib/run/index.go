package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// index is an item that lists runs of one tenant, so that they are found by time, whatever their jobs are. A run may be listed
// by several items, and an item may list runs that are gone: it only says where to look.
type index struct {
	Runs []string `cbor:"1,keyasint"` // IDs, the newest nominal time first, all of one minute
}

// Listing is a run that is to be listed, and until when.
type Listing struct {
	ID      ID
	Expires time.Time
}

// IndexSpread is over how many partitions a tenant's index lies: what the sweeps list in the first, some items a minute; what is
// listed ahead of them, since it was asked for ahead of its time or opened again, in the others.
const IndexSpread = 1 + 4

// IndexPartition is the n-th of them.
func IndexPartition(tenant string, n int) string { return "ran#" + tenant + "#" + strconv.Itoa(n) }

// maxIndex is how large an item of the index is at the most: some units of DynamoDB, of which at most one is not full, and
// little to read in vain for whoever wants one run of it.
const maxIndex = 8 * maxRecord

// Place is where a run stands among all of its tenant's: by nominal time, then job, then random part.
func (id ID) Place() string { return SortFrom(id.Nominal) + id.Job + "#" + id.Random }

// IndexMinute is the lowest sort key behind all items that list runs of the nominal time's minute.
func IndexMinute(nominal int64) string { return SortFrom(nominal - nominal%60_000 + 60_000) }

// Index gives the writes that list runs of a tenant, which the sweeps do for what came due in a minute. Whoever lists the same
// runs again writes the same items; whoever lists others overwrites none, since a key names what its item holds.
func Index(tenant string, runs []Listing, attempt uint64) ([]store.Op, error) {
	return pack(func(ID) string { return IndexPartition(tenant, 0) }, runs, attempt)
}

// IndexAhead gives the writes that list runs ahead of the sweeps, those of a minute together.
func IndexAhead(tenant string, runs []Listing, attempt uint64) ([]store.Op, error) {
	return pack(func(newest ID) string {
		return IndexPartition(tenant, 1+int(xxhash.Sum64String(newest.String())%(IndexSpread-1)))
	}, runs, attempt)
}

// pack lists runs in as few items as hold them, each in the partition that goes by the newest in it.
func pack(partition func(newest ID) string, runs []Listing, attempt uint64) ([]store.Op, error) {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b Listing) int { return strings.Compare(b.ID.Place(), a.ID.Place()) })
	var ops []store.Op
	for start := 0; start < len(runs); {
		var item index
		var expires time.Time
		size := perItem + len(partition(runs[start].ID)) + len(runs[start].ID.Place()) + 32 // and the rest of the key, and the frame
		end := start
		for ; end < len(runs) && IndexMinute(runs[end].ID.Nominal) == IndexMinute(runs[start].ID.Nominal); end++ {
			text := runs[end].ID.String()
			if n := len(item.Runs); n > 0 && item.Runs[n-1] == text {
				expires = later(expires, runs[end].Expires)
				continue
			}
			if size += len(text) + 2; size > maxIndex && end > start {
				break
			}
			item.Runs = append(item.Runs, text)
			expires = later(expires, runs[end].Expires)
		}
		op, err := item.put(partition(runs[start].ID), runs[start].ID, expires, attempt)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
		start = end
	}
	return ops, nil
}

// IndexAlone gives the write that lists one run ahead of the sweeps.
func IndexAlone(tenant string, l Listing, attempt uint64) (store.Op, error) {
	ops, err := IndexAhead(tenant, []Listing{l}, attempt)
	if err != nil {
		return store.Op{}, err
	}
	return ops[0], nil
}

// WaitingPartition lists a tenant's runs that wait for a retry for so long that no timer of the next minutes stands for them, by
// when that wait ends.
func WaitingPartition(tenant string) string { return "ran#" + tenant + "#waiting" }

// WaitingOp gives the write that lists a run there. What has waited long enough is found by its timer again.
func (r Run) WaitingOp(attempt uint64) (store.Op, error) {
	value, err := record.Encode(index{Runs: []string{r.ID.String()}})
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: store.Key{Partition: WaitingPartition(r.Tenant), Sort: SortFrom(r.NextAt) + r.ID.String()},
		Value: value, Expires: time.UnixMilli(r.NextAt).Add(24 * time.Hour), Attempt: attempt}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (x index) put(partition string, newest ID, expires time.Time, attempt uint64) (store.Op, error) {
	value, err := record.Encode(x)
	if err != nil {
		return store.Op{}, err
	}
	sum := xxhash.New()
	_, _ = sum.Write(value)
	_, _ = sum.WriteString(strconv.FormatInt(expires.Unix(), 10))
	return store.Op{Kind: store.Put, Key: store.Key{Partition: partition, Sort: fmt.Sprintf("%s#%016x", newest.Place(), sum.Sum64())},
		Value: value, Expires: expires, Attempt: attempt}, nil
}

// IndexFromItem reads the IDs that an item lists, the newest nominal time first.
func IndexFromItem(item store.Item) ([]ID, error) {
	var listed index
	if err := record.Decode(item.Value, &listed); err != nil {
		return nil, fmt.Errorf("index %s: %w", item.Key, err)
	}
	ids := make([]ID, len(listed.Runs))
	for i, text := range listed.Runs {
		var err error
		if ids[i], err = ParseID(text); err != nil {
			return nil, fmt.Errorf("index %s: %w: %w", item.Key, record.ErrBroken, err)
		}
	}
	return ids, nil
}
