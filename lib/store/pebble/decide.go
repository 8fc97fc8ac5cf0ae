package pebble

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// decider holds the conditions of requests against what stands; its slices are used again for each.
type decider struct {
	s        *Store
	standing []store.Item
	expires  []int64 // of what stands, in seconds
	apply    []bool
}

// decide sets the verdicts of the request, and leaves in its batch what is to be written.
func (d *decider) decide(r *request) {
	if len(r.entries) > 0 {
		d.decideExpired(r)
		return
	}
	d.standing = slices.Grow(d.standing[:0], len(r.ops))[:len(r.ops)]
	d.expires = slices.Grow(d.expires[:0], len(r.ops))[:len(r.ops)]
	if r.each {
		d.decideEach(r)
		return
	}
	for i := range r.ops {
		if err := d.read(r, i, false); err != nil {
			r.err = fmt.Errorf("read what stands: %w", err)
			return
		}
	}
	apply, conflict := store.Decide(r.versions, r.ops, d.standing)
	if conflict != nil {
		r.err = d.whole(r, conflict)
		return
	}
	r.write = apply && !r.batch.Empty()
	if r.write {
		d.finish(r, func(int) bool { return true }, r.guessed)
	}
}

func (d *decider) decideEach(r *request) {
	d.apply = slices.Grow(d.apply[:0], len(r.ops))[:len(r.ops)]
	r.errs = make([]error, len(r.ops))
	all := true
	for i := range r.ops {
		d.apply[i], r.errs[i] = d.decideOne(r, i)
		all = all && d.apply[i]
		r.write = r.write || d.apply[i]
	}
	if r.write {
		d.finish(r, func(i int) bool { return d.apply[i] }, !all || r.guessed)
	}
}

func (d *decider) decideOne(r *request, i int) (apply bool, err error) {
	if err := d.read(r, i, false); err != nil {
		return false, fmt.Errorf("read what stands: %w: %w", store.ErrUnknown, err)
	}
	apply, conflict := store.Decide(r.versions[i:i+1], r.ops[i:i+1], d.standing[i:i+1])
	if conflict != nil {
		conflict.Op = i
		return false, d.whole(r, conflict)
	}
	return apply, nil
}

// whole puts into the conflict all of what stands, which decisions do without.
func (d *decider) whole(r *request, c *store.Conflict) error {
	if err := d.read(r, c.Op, true); err != nil {
		return fmt.Errorf("read what stands: %w: %w", store.ErrUnknown, err)
	}
	c.Standing = d.standing[c.Op]
	return c
}

// read finds what stands under the key of an op: by the caller's glance, if nothing was written since.
func (d *decider) read(r *request, i int, value bool) error {
	if g := &r.seen[i]; !value && g.ok && g.mark == d.s.marks[g.group].Load() {
		d.standing[i], d.expires[i] = g.item(r.ops[i].Key, nil), g.expires
		return nil
	}
	h, v, err := d.s.load(r.keys[i], value)
	if err != nil {
		return damaged(r.ops[i].Key, err)
	}
	d.standing[i], d.expires[i] = h.item(r.ops[i].Key, v), h.expires
	return nil
}

// finish makes the batch what is to be written.
func (d *decider) finish(r *request, happens func(i int) bool, again bool) {
	if again {
		d.rebuild(r, happens)
	}
	d.addEntries(r, happens)
}

// rebuild makes the batch again with only the ops that happen, and with the versions that the caller could not know.
func (d *decider) rebuild(r *request, happens func(i int) bool) {
	batch := d.s.db.NewBatchWithSize(r.batch.Len())
	entries := r.batch.Reader()
	for i := range r.ops {
		if r.ops[i].Kind == store.Check {
			continue
		}
		kind, key, raw, _, err := entries.Next()
		must(err)
		if !happens(i) {
			continue
		}
		if kind != pebble.InternalKeyKindSet {
			must(batch.Delete(key, nil))
			continue
		}
		h, value, err := decode(raw)
		must(err)
		h.version = r.versions[i]
		must(batch.Set(key, append(appendHeader(make([]byte, 0, maxHeader+len(value)), h), value...), nil))
	}
	must(r.batch.Close())
	r.batch = batch
}
