package control

import (
	"container/heap"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/internal/opaque"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// examined bounds how many items one call of a listing looks at: with a filter that few match, a page comes back short, with
// a cursor to go on from.
const examined = 5000

// fanOut is how many partitions are read at once.
const fanOut = 16

// maxHeld is how many bytes a merge holds of all its ranges together, about: large items would fill the memory with what no page has
// room for. What ordinary pages read is far below it.
const maxHeld = 32 << 20

// stream is one range on its way through a merge: what was read of it and not yet given.
type stream struct {
	next  store.Range
	items []store.Item
	more  bool // the store has further pages
	rank  int  // breaks ties between streams with the same sort key
	most  int  // bytes of items that it holds at once, or one item
	page  int  // items that its owner asked for at once, 0 for as many as come
}

func (s *stream) fill(ctx context.Context, from store.Store) error {
	for len(s.items) == 0 && s.more {
		page, err := from.Query(ctx, s.next)
		if err != nil {
			return err
		}
		s.items, s.next.Cursor = page.Items, page.Cursor
		if !s.cut() {
			s.widen()
		}
		s.more = s.next.Cursor != ""
	}
	return nil
}

// cut forgets the items beyond the bound, and tells whether there were any. They are read again when it is their turn, as many at once as there
// is room for.
func (s *stream) cut() bool {
	bytes := 0
	for n, item := range s.items {
		if bytes += item.Size(); n > 0 && bytes > s.most {
			s.items = slices.Clone(s.items[:n]) // so that the others can go
			s.next.Cursor, s.next.Limit = s.next.After(s.items[n-1].Sort), n
			return true
		}
	}
	return false
}

// widen lets the next page be larger after one that has fitted: those that were cut may have been the only large ones.
func (s *stream) widen() {
	s.next.Limit = min(2*s.next.Limit, s.page)
}

// streams is a heap by the sort key of each one's first item.
type streams []*stream

func (h streams) Len() int { return len(h) }
func (h streams) Less(i, j int) bool {
	a, b := h[i].items[0].Sort, h[j].items[0].Sort
	if a == b {
		return (h[i].rank < h[j].rank) != h[i].next.Backward
	}
	return (a < b) != h[i].next.Backward
}
func (h streams) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *streams) Push(x any)   { *h = append(*h, x.(*stream)) }
func (h *streams) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// merge visits the items of several ranges, all of one direction, as if they were one range ordered by sort key, then by the
// place of the range in the list. It ends when visit returns false.
func (s *Service) merge(ctx context.Context, ranges []store.Range, visit func(rank int, item store.Item) (bool, error)) error {
	all := make([]*stream, len(ranges))
	var group errgroup.Group
	group.SetLimit(fanOut)
	for i, r := range ranges {
		all[i] = &stream{next: r, more: true, rank: i, most: maxHeld / len(ranges), page: r.Limit}
		group.Go(func() error { return all[i].fill(ctx, s.Store) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var open streams
	for _, one := range all {
		if len(one.items) > 0 {
			open = append(open, one)
		}
	}
	heap.Init(&open)
	for len(open) > 0 {
		first := open[0]
		item := first.items[0]
		if more, err := visit(first.rank, item); err != nil || !more {
			return err
		}
		first.items = first.items[1:]
		if err := first.fill(ctx, s.Store); err != nil {
			return err
		}
		if len(first.items) == 0 {
			heap.Pop(&open)
		} else {
			heap.Fix(&open, 0)
		}
	}
	return nil
}

// A cursor is where the page before ended, opaque to users.
func cursorAfter(last string) string {
	return opaque.Text([]byte("1" + last))
}

// readCursor gives where to go on. valid tells whether a listing of this kind could have ended there: a cursor of another one,
// or one that was made up, is refused.
func readCursor(cursor string, valid func(after string) bool) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, ok := opaque.Bytes(cursor)
	if !ok || len(raw) < 2 || raw[0] != '1' || !valid(string(raw[1:])) {
		return "", fmt.Errorf("%.60q: %w", cursor, store.ErrBadCursor)
	}
	return string(raw[1:]), nil
}

// earlier is the lower one of two exclusive bounds, "" being none.
func earlier(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// unreadable tells of a record that a listing leaves out: one that is broken, or of a newer version, must not hide the others.
func (s *Service) unreadable(tenant string, item store.Item, err error) {
	s.Log.Error("a record is unreadable and left out of a listing", "tenant", tenant, "key", item.Key.String(), "error", err)
}

func pageLimit(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}

// pageOf is how many items to read of each of n ranges at first, for a page of limit.
func pageOf(limit, n int) int { return min(limit+1, 2*limit/n+4) }
