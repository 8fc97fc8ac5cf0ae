package run

import (
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Down is a record that stands while the last run of a job that has ended was given up. Only a job that calls another when it recovers has one.
type Down struct {
	Generation int64  `cbor:"1,keyasint"`           // of the run: below the generation a name was used again with, it tells of another job
	Run        string `cbor:"2,keyasint,omitempty"` // its ID
}

// DownKey is where that of a job stands.
func DownKey(tenant, job string) store.Key {
	return store.Key{Partition: "down#" + tenant + "#" + job, Sort: "-"}
}

// DownOp says that the run was given up, whatever was said before.
func (r Run) DownOp(attempt uint64) (store.Op, error) {
	value, err := record.Encode(Down{Generation: r.Generation, Run: r.ID.String()})
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: DownKey(r.Tenant, r.ID.Job), If: store.Any, Value: value, Expires: time.UnixMilli(r.Ended).Add(job.KeepPast), Attempt: attempt}, nil
}

// DownFromItem reads the record; it must be there.
func DownFromItem(item store.Item) (d Down, err error) {
	if err = record.Decode(item.Value, &d); err != nil {
		return Down{}, fmt.Errorf("%s: %w", item.Key, err)
	}
	return d, nil
}
