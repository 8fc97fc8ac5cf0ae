package gate

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Order says in which order the runs that wait at a gate are let in.
type Order string

// The orders.
const (
	OrderPriority Order = "priority" // the default, which is stored as nothing: high ones 10 minutes ahead of their time, low ones 10 minutes behind it
	OrderFIFO     Order = "fifo"     // by when they were due
	OrderDeadline Order = "deadline" // by their deadlines, and those that have none behind those that have one
)

// OrdersToCome are the orders that a later version has.
var OrdersToCome = []Order{"shortest", "fair"}

// What a definition may hold.
const (
	MaxLimit   = job.MaxUnits
	MaxWaiting = job.MaxMaxWaiting
	MaxReason  = 256 // bytes, of a Change

	MinMaxWait = time.Second
	MaxMaxWait = job.MaxRetention
)

// Definition is what a user says of a gate that has a name of its own. Any job of the tenant may name it.
type Definition struct {
	Limit int `json:"limit" cbor:"1,keyasint" minimum:"1" maximum:"1000" example:"10" doc:"how many units may be in progress at once, of the runs of all jobs that name the gate"`

	// MaxWaiting is how many may wait before the next is skipped; nil: any number.
	MaxWaiting *int `json:"max_waiting,omitempty" cbor:"2,keyasint,omitempty" minimum:"0" maximum:"100000" doc:"how many runs may wait, the next one being skipped; without it, any number"`

	Order Order `json:"order,omitempty" cbor:"3,keyasint,omitempty" enum:"priority,fifo,deadline" doc:"who is let in first: under priority, the default, whoever was due first, where a run of high priority counts as due 10 minutes earlier and one of low priority 10 minutes later; under fifo whoever was due first; under deadline whoever has to have ended first by the field deadline of its job, and behind those whoever has no deadline and was due first"`

	// MaxWait is how long a run may wait before it is skipped; 0: for ever.
	MaxWait schedule.Duration `json:"max_wait,omitempty" cbor:"4,keyasint,omitempty" example:"1h" doc:"how long a run may wait, 1s to 1825d: one that has waited for longer is skipped. It holds for runs that join the line from then on. Without it, they wait for as long as it takes"`
}

// WithDefaults gives the form that is stored.
func (d Definition) WithDefaults() Definition {
	if d.Order == OrderPriority {
		d.Order = ""
	}
	return d
}

// Shown gives the form that is shown, which says everything.
func (d Definition) Shown() Definition {
	if d.Order == "" {
		d.Order = OrderPriority
	}
	return d
}

// Equal tells whether two definitions, in the form that is stored, say the same.
func (d Definition) Equal(o Definition) bool {
	if (d.MaxWaiting == nil) != (o.MaxWaiting == nil) || d.MaxWaiting != nil && *d.MaxWaiting != *o.MaxWaiting {
		return false
	}
	return d.Limit == o.Limit && d.Order == o.Order && d.MaxWait == o.MaxWait
}

// Validate checks a definition: joined *invalid.Error.
func (d Definition) Validate() error {
	var wrong []error
	switch {
	case d.Limit == 0:
		wrong = append(wrong, invalid.Field("limit", "0", fmt.Sprintf("1 to %d; to let nobody in, close the gate", MaxLimit)))
	case d.Limit < 1 || d.Limit > MaxLimit:
		wrong = append(wrong, invalid.Field("limit", strconv.Itoa(d.Limit), fmt.Sprintf("1 to %d", MaxLimit)))
	}
	if d.MaxWaiting != nil && (*d.MaxWaiting < 0 || *d.MaxWaiting > MaxWaiting) {
		wrong = append(wrong, invalid.Field("max_waiting", strconv.Itoa(*d.MaxWaiting), fmt.Sprintf("0 to %d", MaxWaiting)))
	}
	switch d.Order {
	case "", OrderPriority, OrderFIFO, OrderDeadline:
	default:
		want := "priority, fifo or deadline"
		for _, o := range OrdersToCome {
			if d.Order == o {
				want += "; this one is not available yet"
			}
		}
		wrong = append(wrong, invalid.Field("order", string(d.Order), want))
	}
	if w := d.MaxWait.Std(); w != 0 && (w < MinMaxWait || w > MaxMaxWait) {
		wrong = append(wrong, invalid.Field("max_wait", d.MaxWait.String(),
			fmt.Sprintf("%s to %s; where nobody is to wait, max_waiting: 0", schedule.Duration(MinMaxWait), schedule.Duration(MaxMaxWait))))
	}
	return errors.Join(wrong...)
}

// Change says that somebody has closed a gate, which then lets nobody in until it is opened, or has opened it.
type Change struct {
	At     int64  `cbor:"1,keyasint"`           // Unix ms
	Reason string `cbor:"2,keyasint,omitempty"` // at most MaxReason bytes
	By     string `cbor:"3,keyasint,omitempty"` // who asked for it, "" where nobody was asked who they are
}

// Named is the definition of a gate as it stands in the store.
type Named struct {
	Tenant  string `cbor:"-"`
	Name    string `cbor:"-"`
	Version uint64 `cbor:"-"` // of its item; 0: there is none

	gone uint64 // version of what a deletion has left, where there is none

	Def Definition `cbor:"1,keyasint,omitzero"`

	// Generation grows with every change: of the definition, by a close or an open, and by a deletion. A gate that is made anew goes on from there.
	Generation int64 `cbor:"2,keyasint"`

	Closed  *Change `cbor:"3,keyasint,omitempty"` // nil: it is open
	Created int64   `cbor:"4,keyasint,omitempty"` // Unix ms
	Updated int64   `cbor:"5,keyasint,omitempty"` // Unix ms: of this generation
	Deleted bool    `cbor:"6,keyasint,omitempty"` // set in what a deletion leaves; there is no gate then, and Version is 0
	Opened  *Change `cbor:"7,keyasint,omitempty"` // nil: it is closed, or never was
}

// ValidName refuses names that a gate may not have.
func ValidName(name string) error {
	if !job.NamesGate(name) {
		return invalid.Field("gate", name, job.WantGateName)
	}
	return nil
}

// NamedKey is where the definition of a gate stands. All definitions of a tenant are in one partition.
func NamedKey(tenant, name string) store.Key {
	return store.Key{Partition: namedPrefix + tenant, Sort: name}
}

const namedPrefix = "gates#"

// AllNamed are the definitions of a tenant's gates, by their names, from a name on.
func AllNamed(tenant, from string, limit int) store.Range {
	return store.Range{Partition: namedPrefix + tenant, From: from, Limit: limit}
}

// NamedFromItem reads the definition of a gate. An item that is not there, or that a deletion has left, gives one of version 0.
func NamedFromItem(tenant string, item store.Item) (Named, error) {
	n := Named{Tenant: tenant, Name: item.Sort}
	if !item.Exists() {
		return n, nil
	}
	if err := record.Decode(item.Value, &n); err != nil {
		return Named{}, fmt.Errorf("gate %s: %w", item.Sort, err)
	}
	n.Tenant, n.Name = tenant, item.Sort
	return n.Written(item.Version), nil
}

// Written is the definition as it stands after a write that gave its item this version.
func (n Named) Written(version uint64) Named {
	n.Version, n.gone = version, 0
	if n.Deleted {
		n.Version, n.gone = 0, version
	}
	return n
}

// Put gives the write of the definition, under the condition that what was read (n.Version) still stands.
func (n Named) Put(attempt uint64) (store.Op, error) {
	value, err := record.Encode(n)
	if err != nil {
		return store.Op{}, err
	}
	op := store.Op{Kind: store.Put, Key: NamedKey(n.Tenant, n.Name), If: store.At(store.Item{Version: max(n.Version, n.gone)}), Value: value, Attempt: attempt}
	if n.Deleted {
		op.Expires = time.UnixMilli(n.Updated).Add(keepDeleted)
	}
	return op, nil
}

// keepDeleted is how long what a deletion leaves is kept: much longer than a write may be late, or the clocks of hosts differ.
const keepDeleted = 24 * time.Hour

// Next is the generation of a change at now, Unix ms.
func (n Named) Next(now int64) int64 { return max(n.Generation+1, now) }

// ETag identifies the state of the definition for If-Match.
func (n Named) ETag() string { return `"g` + strconv.FormatInt(n.Generation, 36) + `"` }
