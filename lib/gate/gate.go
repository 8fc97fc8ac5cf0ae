package gate

import (
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Gate is a gate as it stands in the store: who was let in, and whether others wait.
type Gate struct {
	Tenant  string `cbor:"-"`
	Job     string `cbor:"-"` // whose own gate it is
	Version uint64 `cbor:"-"` // of its item: grows with every write; 0 where nobody has entered yet

	Entries []Entry `cbor:"1,keyasint,omitempty"` // in the order in which they were let in, at most one of a run

	// Waiting is how many places stand in its line. Nobody enters past them. Every write of a place is one of the gate too, so it is never too low.
	// What older versions gave twice to one run makes it too high, until the line has been seen to its end.
	Waiting int   `cbor:"2,keyasint,omitempty"`
	Front   int64 `cbor:"3,keyasint,omitempty"` // no place has a lower rank
}

// Entry is a place that a run was given in one of its openings, claimed for one generation.
type Entry struct {
	Nominal int64  `cbor:"1,keyasint"`           // of the run, Unix ms
	Random  string `cbor:"2,keyasint,omitempty"` // of the run's ID, "" for a fire's
	Opening uint64 `cbor:"3,keyasint,omitempty"` // run.Run.Opening as it was when it entered

	// Generation is the run's when it entered. An edit may take the claim of a run that has not started, and give it again in the same opening:
	// whoever saw it taken has left this entry out, or is about to, so the run enters anew.
	Generation int64 `cbor:"4,keyasint,omitempty"`
}

// Name is how a job's own gate is called wherever a gate is named.
func Name(job string) string { return "job:" + job }

// Key is where a job's own gate stands.
func Key(tenant, job string) store.Key {
	return store.Key{Partition: "gate#" + tenant + "#" + Name(job), Sort: "-"}
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"gate": Gate{}, "line": standing{}} }

// FromItem reads a job's own gate. An item that is not there gives one without entries, of version 0.
func FromItem(tenant, job string, item store.Item) (Gate, error) {
	g := Gate{Tenant: tenant, Job: job}
	if !item.Exists() {
		return g, nil
	}
	if err := record.Decode(item.Value, &g); err != nil {
		return Gate{}, fmt.Errorf("gate %s: %w", Name(job), err)
	}
	g.Tenant, g.Job, g.Version = tenant, job, item.Version
	return g, nil
}

// Keep is how long a gate is kept that nobody enters any more: longer than a run may be under way whose entry it holds. Who waits longer than
// that finds its line gone at a check, and enters anew.
const Keep = job.MaxUnderWay + job.KeptBeyond

// Put gives the write of the gate at now, under the condition that what was read (g.Version) still stands.
func (g Gate) Put(now time.Time, attempt uint64) (store.Op, error) {
	value, err := record.Encode(g)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: Key(g.Tenant, g.Job), If: store.At(store.Item{Version: g.Version}), Value: value,
		Expires: now.Add(Keep), Attempt: attempt}, nil
}

// Run is the ID of the run that an entry is of.
func (g Gate) Run(e Entry) run.ID { return run.ID{Job: g.Job, Nominal: e.Nominal, Random: e.Random} }
