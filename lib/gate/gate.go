package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Gate is a gate as it stands in the store: who was let in, and whether others wait.
type Gate struct {
	Tenant  string    `cbor:"-"`
	Name    string    `cbor:"-"` // job:NAME for a job's own
	Key     string    `cbor:"-"` // as KeyOf gives it, where the job has a gate for each value of a key
	Version uint64    `cbor:"-"` // of its item: grows with every write; 0 where nobody has entered yet
	Expires time.Time `cbor:"-"` // when its item may be cleaned up, unless it is written before

	Entries []Entry `cbor:"1,keyasint,omitempty"` // in the order in which they were let in, at most one of a run

	// Waiting is how many places stand in its line. Nobody enters past them. Every write of a place is one of the gate too, so it is never too low.
	// What older versions gave twice to one run makes it too high, until the line has been seen to its end.
	Waiting int   `cbor:"2,keyasint,omitempty"`
	Front   int64 `cbor:"3,keyasint,omitempty"` // no place has a lower rank

	Jobs  []string `cbor:"4,keyasint,omitempty"` // of a named gate: the names that its entries refer to
	Under int64    `cbor:"5,keyasint,omitempty"` // of a named gate: the generation of the definition under which it was last written, 0 for none

	Asks bool `cbor:"6,keyasint,omitempty"` // one that waits has earlier runs asked to stop; never said where nobody waits

	LetGo LetGo `cbor:"7,keyasint,omitzero"` // who has let a line go on last that stood still behind a run which ended badly

	// Shift is of a named gate how far behind their keys those stand who join its line now: see Round.Orders. 0 where nobody waits.
	Shift int64 `cbor:"13,keyasint,omitempty"`

	ByDeadline bool `cbor:"14,keyasint,omitempty"` // of a named gate where any wait: those that joined last stand by their deadlines

	Def Named `cbor:"-"` // of a named gate: as it was read; Version 0 where there is none
}

// Entry is a place that a run was given in one of its openings, claimed for one generation.
type Entry struct {
	Nominal int64  `cbor:"1,keyasint"`           // of the run, Unix ms
	Random  string `cbor:"2,keyasint,omitempty"` // of the run's ID, "" for a fire's
	Opening uint64 `cbor:"3,keyasint,omitempty"` // run.Run.Opening as it was when it entered

	// Generation is the run's when it entered. An edit may take the claim of a run that has not started, and give it again in the same opening:
	// whoever saw it taken has left this entry out, or is about to, so the run enters anew.
	Generation int64 `cbor:"4,keyasint,omitempty"`

	Of    int `cbor:"5,keyasint,omitempty"` // at a named gate: which of Gate.Jobs the run is of, counted from 1
	Units int `cbor:"6,keyasint,omitempty"` // how much of the limit it takes; 0 stands for 1

	// Rank is that of the run in the order of the line, where a policy has earlier runs give way to later ones; 0 where none was asked about when the run was let in.
	Rank int64 `cbor:"7,keyasint,omitempty"`

	// Strict is job.Overlap.StrictSince of the job that let the run in. Should the run end badly, it holds its place on for as long as the job is strict since then.
	Strict int64 `cbor:"8,keyasint,omitempty"`

	// Kept says that the run had ended badly under strict, and was opened again: it kept its place by the write that opened it, and holds it in that opening until it
	// has ended, whatever becomes of its claim.
	Kept bool `cbor:"9,keyasint,omitempty"`

	Job string `cbor:"-"` // that name; "" at a job's own gate
}

// units is how much of the limit the entry takes.
func (e Entry) units() int { return max(1, e.Units) }

// Name is how a job's own gate is called wherever a gate is named.
func Name(job string) string { return ownPrefix + job }

// Key is where the gate of all runs of a job stands.
func Key(tenant, job string) store.Key { return Own(tenant, job).Item() }

// ID names the gate.
func (g Gate) ID() ID { return ID{g.Tenant, g.Name, g.Key} }

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any {
	return map[string]any{"gate": Gate{}, "line": standing{}, "gates": Named{}}
}

// FromItem reads a gate of that name. An item that is not there gives one without entries, of version 0.
func FromItem(tenant, name string, item store.Item) (Gate, error) {
	g := Gate{Tenant: tenant, Name: name, Key: KeyAt(item.Sort)}
	if !item.Exists() {
		return g, nil
	}
	if err := record.Decode(item.Value, &g); err != nil {
		return Gate{}, fmt.Errorf("gate %s: %w", ID{tenant, name, KeyAt(item.Sort)}, err)
	}
	g.Tenant, g.Name, g.Key, g.Version, g.Expires = tenant, name, KeyAt(item.Sort), item.Version, item.Expires
	if err := g.unpack(); err != nil {
		return Gate{}, fmt.Errorf("gate %s: %w", ID{tenant, name, KeyAt(item.Sort)}, err)
	}
	return g, nil
}

// Keep is how long the gate of all runs is kept that nobody enters any more: longer than a run may be under way whose entry it holds. Who waits longer than
// that finds its line gone at a check, and enters anew.
const Keep = job.MaxUnderWay + job.KeptBeyond

// KeepKey is how long the gate of a value is kept after its last write, since values come and go. A run that is in progress there for longer, or waits, has it
// written anew by a check once less than KeepAhead is left. Versions begin with 1 again where it was gone. No write of before is on its way by then: the store
// knows of none after ten minutes.
const (
	KeepKey   = 30 * 24 * time.Hour
	KeepAhead = KeepKey / 2
)

// keep is how long the gate is kept after a write.
func (g Gate) keep() time.Duration {
	if g.Key != "" && !slices.ContainsFunc(g.Entries, func(e Entry) bool { return e.Strict != 0 }) {
		return KeepKey
	}
	return Keep // a line that stands still does so for as long as the run is kept that it stands still behind
}

// Fades tells whether the gate is to be written anew, as it stands, for the sake of who is in progress or waits there.
func (g Gate) Fades(now time.Time) bool {
	return g.Version != 0 && g.Key != "" && g.Expires.Before(now.Add(KeepAhead))
}

// Ages is from when on the gate of a run may fade that entered or joined at an instant or later, both Unix ms: before that nobody need look.
func Ages(entered int64) int64 { return entered + (KeepKey - KeepAhead).Milliseconds() }

// Put gives the write of the gate at now, under the condition that what was read (g.Version) still stands.
func (g Gate) Put(now time.Time, attempt uint64) (store.Op, error) {
	g.pack()
	value, err := record.Encode(g)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: g.ID().Item(), If: store.At(store.Item{Version: g.Version}), Value: value,
		Expires: now.Add(g.keep()), Attempt: attempt}, nil
}

// Run is the ID of the run that an entry is of.
func (g Gate) Run(e Entry) run.ID {
	name := e.Job
	if own, ok := OwnOf(g.Name); ok {
		name = own
	}
	return run.ID{Job: name, Nominal: e.Nominal, Random: e.Random}
}
