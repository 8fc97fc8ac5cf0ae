package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// decider holds the conditions of requests against what stands, and makes one batch of what they write. What it has decided but not
// yet applied it must find itself: that stands in heads, and where heads has no room, the batch is applied before anything else
// is decided.
type decider struct {
	s     *Store
	heads *heads
	round uint32 // grows with each batch that is applied; after 2³² of them, some weeks, it begins again

	group   *group
	batch   *pebble.Batch // nil: nothing to apply
	groups  uint64        // decided so far
	stripes []uint32      // of what the batch writes
	slots   []uint32      // the same, by key
	entries []entry       // that the batch is still to have
	full    bool          // heads does not hold all that the batch writes

	// Used again for each request.
	standing []store.Item
	before   []header
	missing  []*part
	end      []byte
}

// decide sets the verdicts of the group's requests and applies what they write.
func (d *decider) decide(g *group) {
	d.groups++
	d.group, g.n = g, d.groups
	d.look()
	for _, r := range g.requests {
		switch {
		case r.entries != nil:
			d.decideExpired(r)
		case r.imported:
			d.decideImport(r)
		case r.each:
			d.decideEach(r)
		default:
			d.decideWrite(r)
		}
		if d.full {
			d.apply()
		}
	}
	d.apply()
}

// look reads what stands under all keys that heads does not know. What cannot be read is met again, and told, where it is decided.
func (d *decider) look() {
	d.missing = d.missing[:0]
	for _, r := range d.group.requests {
		for i := range r.parts {
			p := &r.parts[i]
			switch {
			case d.heads.find(p.hash, p.key) >= 0:
			case d.heads.floors.above(p):
				p.seen, p.round = header{}, d.round
			default:
				d.missing = append(d.missing, p)
			}
		}
	}
	if len(d.missing) >= someKeys {
		_ = d.scan() // the error is of one item, and the others are read one by one
	}
	clear(d.missing)
}

// someKeys is from where reading in order pays: runs that are made together, and those that start together, stand together.
const someKeys = 4

// scan reads the missing keys in their order.
func (d *decider) scan() (err error) {
	slices.SortFunc(d.missing, func(a, b *part) int { return bytes.Compare(a.key, b.key) })
	iter, err := d.s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	for _, p := range d.missing {
		h, err := d.seek(iter, p)
		if err != nil {
			return err
		}
		p.seen, p.round = h, d.round
	}
	return nil
}

// seek reads what stands under a key, and the first time that something new comes to a partition, whether anything stands above.
func (d *decider) seek(iter *pebble.Iterator, p *part) (header, error) {
	if d.heads.floors.above(p) {
		return header{}, nil // by what was seen under the key before
	}
	var found bool
	if p.fresh && !d.heads.floors.asked(p) {
		prefix := p.key[:prefixLen(p.key)]
		d.end = end(append(d.end[:0], prefix...))
		above := iter.SeekGEWithLimit(p.key, d.end) == pebble.IterValid && bytes.HasPrefix(iter.Key(), prefix)
		if iter.Error() == nil {
			d.heads.floors.set(p, !above)
		}
		found = above && bytes.Equal(iter.Key(), p.key)
	} else {
		found = iter.SeekPrefixGE(p.key)
	}
	if !found {
		return header{}, iter.Error()
	}
	raw, err := iter.ValueAndErr()
	if err != nil {
		return header{}, err
	}
	h, _, err := decode(raw)
	return h, err
}

// read finds what stands under the key of an op.
func (d *decider) read(r *request, i int) (header, error) {
	p := &r.parts[i]
	if h, ok := d.heads.get(p.hash, p.key); ok {
		return h, nil
	}
	if p.round == d.round {
		return p.seen, nil
	}
	h, _, err := d.s.load(p.key, false)
	if err != nil {
		return header{}, damaged(r.ops[i].Key, err)
	}
	return h, nil
}

// stand reads what stands under the key of an op as far as decisions need it.
func (d *decider) stand(r *request, i int) error {
	h, err := d.read(r, i)
	d.before[i], d.standing[i] = h, store.Item{Version: h.version, Attempt: h.attempt}
	return err
}

func (d *decider) grow(n int) {
	d.standing = slices.Grow(d.standing[:0], n)[:n]
	d.before = slices.Grow(d.before[:0], n)[:n]
}

func (d *decider) decideWrite(r *request) {
	d.grow(len(r.ops))
	for i := range r.ops {
		if err := d.stand(r, i); err != nil {
			r.err = fmt.Errorf("read what stands: %w", err)
			return
		}
	}
	apply, conflict := store.Decide(r.versions, r.ops, d.standing)
	if conflict != nil {
		r.err = d.whole(r, conflict)
		return
	}
	for i := range r.ops {
		if apply {
			d.write(r, i)
		}
	}
}

func (d *decider) decideEach(r *request) {
	d.grow(len(r.ops))
	for i := range r.ops {
		if err := d.decideOne(r, i); err != nil {
			if r.errs == nil {
				r.errs = make([]error, len(r.ops))
			}
			r.errs[i] = err
		}
		if d.full {
			d.apply()
		}
	}
}

func (d *decider) decideOne(r *request, i int) error {
	if err := d.stand(r, i); err != nil {
		return fmt.Errorf("read what stands: %w: %w", store.ErrUnknown, err)
	}
	apply, conflict := store.Decide(r.versions[i:i+1], r.ops[i:i+1], d.standing[i:i+1])
	if conflict != nil {
		conflict.Op = i
		return d.whole(r, conflict)
	}
	if apply {
		d.write(r, i)
	}
	return nil
}

// whole puts into the conflict all of what stands, which decisions do without.
func (d *decider) whole(r *request, c *store.Conflict) error {
	p := &r.parts[c.Op]
	if d.heads.writtenIn(p.hash, p.key, d.round) {
		d.apply() // so that it can be read
	}
	h, value, err := d.s.load(p.key, true)
	if err != nil {
		return fmt.Errorf("read what stands: %w: %w", store.ErrUnknown, damaged(r.ops[c.Op].Key, err))
	}
	c.Standing = h.item(r.ops[c.Op].Key, value)
	return c
}

func (d *decider) decideImport(r *request) {
	for i := range r.ops {
		d.put(r, i, header{version: r.versions[i], expires: store.ExpirySeconds(r.ops[i].Expires), attempt: r.ops[i].Attempt}, 0)
	}
}

// write puts an op that happens into the batch.
func (d *decider) write(r *request, i int) {
	op := &r.ops[i]
	switch op.Kind {
	case store.Put:
		h := header{version: r.versions[i], expires: store.ExpirySeconds(op.Expires), attempt: op.Attempt}
		d.put(r, i, h, d.before[i].expires)
	case store.Delete:
		d.remove(&r.parts[i])
	}
}

// put adds an item to the batch, and an entry where the rule of expiry.go asks for one.
func (d *decider) put(r *request, i int, h header, expiredBefore int64) {
	value, p := r.ops[i].Value, &r.parts[i]
	var buf [maxHeader]byte
	head := appendHeader(buf[:0], h)
	o := d.writing(p).SetDeferred(len(p.key), len(head)+len(value))
	copy(o.Key, p.key)
	copy(o.Value[copy(o.Value, head):], value)
	must(o.Finish())
	if h.expires != 0 && (expiredBefore == 0 || h.expires < expiredBefore) {
		d.entries = append(d.entries, entry{second: h.expires, key: p.key})
	}
	d.remember(p, h)
}

// remove adds a delete of an item to the batch.
func (d *decider) remove(p *part) {
	must(d.writing(p).Delete(p.key, nil))
	d.remember(p, header{})
}

func (d *decider) remember(p *part, h header) {
	if !d.heads.put(p.hash, p.key, h, d.round) {
		d.full = true
	}
}

// writing is the batch for a write of this key.
func (d *decider) writing(p *part) *pebble.Batch {
	if d.batch == nil {
		d.batch = d.s.db.NewBatchWithSize(d.group.bytes + d.group.bytes/4)
	}
	d.stripes, d.slots = append(d.stripes, p.stripe), append(d.slots, slotOf(p.hash))
	return d.batch
}

// apply gives the batch to Pebble, which appends it to the log and shows it to readers.
func (d *decider) apply() {
	if d.batch == nil {
		return
	}
	d.addEntries()
	// From here on a reader may see the writes, so it must find the commit to wait for first.
	for i, stripe := range d.stripes {
		d.s.stripes[stripe].Store(&d.group.commit)
		d.s.slots[d.slots[i]].Store(d.group.n)
	}
	if err := d.s.db.ApplyNoSyncWait(d.batch, pebble.Sync); err != nil {
		d.s.fail(err)
	}
	d.group.batches = append(d.group.batches, d.batch)
	d.batch, d.stripes, d.slots, d.full = nil, d.stripes[:0], d.slots[:0], false
	d.round = after(d.round)
}

// after is the next round. 0 is none: it is what a part has that nobody has read.
func after(round uint32) uint32 { return max(round+1, 1) }
