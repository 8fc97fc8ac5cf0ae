package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/belfry-scheduler/belfry/lib/internal/opaque"
)

// Bounds are the sort keys that this page of the range may hold, from inclusive, to exclusive ("" for no end), with the
// cursor taken into account. It refuses a malformed range and a cursor of another one.
func (r Range) Bounds() (from, to string, err error) {
	if n := len(r.Partition); n == 0 || n > MaxPartition {
		return "", "", fmt.Errorf("range: a partition key of %d bytes, want 1 to %d: %w", n, MaxPartition, ErrTooLarge)
	}
	if len(r.From) > MaxSort || len(r.To) > MaxSort {
		return "", "", fmt.Errorf("range: a bound of %d bytes, at most %d: %w", max(len(r.From), len(r.To)), MaxSort, ErrTooLarge)
	}
	if r.Limit < 0 {
		return "", "", fmt.Errorf("range: limit %d, want 0 or more: %w", r.Limit, ErrTooLarge)
	}
	if r.Cursor == "" {
		return r.From, r.To, nil
	}
	raw, ok := opaque.Bytes(r.Cursor)
	if !ok || len(raw) <= 8 {
		return "", "", fmt.Errorf("range of %q: %w", r.Partition, ErrBadCursor)
	}
	last := string(raw[8:])
	if binary.BigEndian.Uint64(raw) != r.seal(last) {
		return "", "", fmt.Errorf("range of %q: %w", r.Partition, ErrBadCursor)
	}
	if r.Backward {
		return r.From, last, nil
	}
	// The smallest key after last is last with a zero byte behind it.
	return last + "\x00", r.To, nil
}

// After is the cursor of a page whose last item has this sort key.
func (r Range) After(last string) string {
	raw := make([]byte, 8, 8+len(last))
	binary.BigEndian.PutUint64(raw, r.seal(last))
	return opaque.Text(append(raw, last...))
}

// seal binds a cursor to its range: pages read with another range's cursor would skip or repeat in silence. It is the same
// in every process, since a caller may keep a cursor over a restart. It guards against mistakes, not against forgery.
func (r Range) seal(last string) uint64 {
	h := fnv.New64a()
	var head [33]byte
	for i, s := range []string{r.Partition, r.From, r.To, last} {
		binary.BigEndian.PutUint64(head[8*i:], uint64(len(s)))
	}
	if r.Backward {
		head[32] = 1
	}
	h.Write(head[:])
	for _, s := range []string{r.Partition, r.From, r.To, last} {
		h.Write([]byte(s))
	}
	return h.Sum64()
}

// Pages gathers the items of one page and cuts it at the range's limit and at MaxPageBytes.
type Pages struct {
	Range Range
	page  Page
	bytes int
}

// Room tells whether an item of this size still fits; where it does not, the page is cut and its cursor set. So engines ask
// only when they hold a next item: a page that ends the range has no cursor. The first item always fits.
func (p *Pages) Room(size int) bool {
	n := len(p.page.Items)
	full := n > 0 && p.bytes+size > MaxPageBytes
	if p.Range.Limit > 0 && n >= p.Range.Limit {
		full = true
	}
	if full {
		p.page.Cursor = p.Range.After(p.page.Items[n-1].Sort)
	}
	return !full
}

// Add takes an item for which there was room.
func (p *Pages) Add(item Item) {
	p.page.Items = append(p.page.Items, item)
	p.bytes += item.Size()
}

// Page is what was gathered.
func (p *Pages) Page() Page { return p.page }
