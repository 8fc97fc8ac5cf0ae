package sim

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Recorded is one operation of the store with its answer, in the order in which the store did them. Method is get, peek, query or write;
// each op of a WriteEach is a write of its own.
type Recorded struct {
	Method   string
	Keys     []store.Key  // of get and peek
	Range    store.Range  // of query; with the Limit that was asked for
	Ops      []store.Op   // of write
	Items    []store.Item // the answer of get, peek and query
	Cursor   string       // of query
	Versions []uint64     // of write
	Err      error        // of write: nil, or a *store.Conflict
}

// Recording is what happened to a store from its first operation on.
type Recording []Recorded

// record keeps an operation where somebody wants it, with copies of what callers may change.
func (w *World) record(r Recorded) {
	if w.recording == nil {
		return
	}
	r.Keys, r.Items, r.Versions, r.Ops = slices.Clone(r.Keys), slices.Clone(r.Items), slices.Clone(r.Versions), kept(r.Ops)
	if conflict := store.AsConflict(r.Err); conflict != nil {
		told := *conflict // a WriteEach will say which of its ops it was
		r.Err = &told
	}
	*w.recording = append(*w.recording, r)
}
