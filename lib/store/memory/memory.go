// Package memory keeps a store in a process: a real engine, for tests and for programs that need nothing to outlive them.
// It promises all of the port but durability over the end of the process.
package memory

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Config is for New.
type Config struct {
	// Now is the clock that expiry goes by. nil: expired items stay, which suits tests whose clock is their own.
	Now func() time.Time
}

// Store is a store.Store in memory. One lock orders all calls, which makes it serial by construction.
type Store struct {
	now func() time.Time

	mu         sync.RWMutex
	closed     bool
	partitions map[string]*partition
	expiries   expiries
}

// partition holds its records in the order of their sort keys. A slice of pointers: most partitions are small or grow at
// their end, and moving a million pointers still costs less than a millisecond.
type partition struct {
	records []*record
}

type record struct {
	item     store.Item
	position int // in expiries, -1 when it never expires
}

var _ store.Engine = (*Store)(nil)

// New gives an empty store.
func New(cfg Config) *Store {
	return &Store{now: cfg.Now, partitions: map[string]*partition{}}
}

// Get reads items as the port says.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	if err := store.CheckKeys(keys); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	items := make([]store.Item, len(keys))
	for i, k := range keys {
		items[i] = s.standing(k)
	}
	return items, nil
}

// Peek is Get: there is nothing stale here.
func (s *Store) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return s.Get(ctx, keys...)
}

// Query reads a page as the port says.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	from, to, err := r.Bounds()
	if err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.open(ctx); err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	p := s.partitions[r.Partition]
	if p == nil {
		return store.Page{}, nil
	}
	low, high := p.at(from), len(p.records)
	if to != "" {
		high = p.at(to)
	}
	pages := store.Pages{Range: r}
	for n := range high - low {
		at := low + n
		if r.Backward {
			at = high - 1 - n
		}
		item := p.records[at].item
		if !pages.Room(item.Size()) {
			break
		}
		pages.Add(item)
	}
	return pages.Page(), nil
}

// Write does all or nothing, as the port says.
func (s *Store) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if err := store.CheckWrite(ops); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return s.write(ops)
}

// WriteEach does each op on its own, as the port says.
func (s *Store) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	if err := store.CheckEach(ops); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	verdicts := make([]store.Verdict, len(ops))
	for i := range ops {
		versions, err := s.write(ops[i : i+1])
		if err != nil {
			if c := store.AsConflict(err); c != nil {
				c.Op = i
			}
			verdicts[i].Err = err
			continue
		}
		verdicts[i].Version = versions[0]
	}
	return verdicts, nil
}

// Export gives all items as the port says.
func (s *Store) Export(ctx context.Context, each func(store.Item) error) error {
	s.mu.RLock()
	err := s.open(ctx)
	var items []store.Item
	for _, p := range s.partitions {
		for _, r := range p.records {
			items = append(items, r.item)
		}
	}
	s.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		item.Value = slices.Clone(item.Value)
		if err := each(item); err != nil {
			return err
		}
	}
	return nil
}

// Import puts items as they are, as the port says.
func (s *Store) Import(ctx context.Context, items ...store.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	for _, item := range items {
		item.Value = slices.Clone(item.Value)
		item.Expires = store.ExpiryTime(store.ExpirySeconds(item.Expires))
		s.put(item)
	}
	return nil
}

// Skew is 0: the store's clock is this host's.
func (s *Store) Skew() time.Duration { return 0 }

// Close ends the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *Store) open(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

func (s *Store) standing(k store.Key) store.Item {
	if p := s.partitions[k.Partition]; p != nil {
		if i, found := p.find(k.Sort); found {
			return p.records[i].item
		}
	}
	return store.Item{Key: k}
}

func (s *Store) write(ops []store.Op) ([]uint64, error) {
	standing := make([]store.Item, len(ops))
	for i := range ops {
		standing[i] = s.standing(ops[i].Key)
	}
	versions := make([]uint64, len(ops))
	apply, conflict := store.Decide(versions, ops, standing)
	if conflict != nil {
		return nil, conflict
	}
	if !apply {
		return versions, nil
	}
	for i, op := range ops {
		switch op.Kind {
		case store.Put:
			s.put(store.Item{
				Key: op.Key, Version: versions[i], Value: slices.Clone(op.Value),
				Expires: store.ExpiryTime(store.ExpirySeconds(op.Expires)), Attempt: op.Attempt,
			})
		case store.Delete:
			s.remove(op.Key)
		}
	}
	s.expire(len(ops) + 1)
	return versions, nil
}

func (s *Store) put(item store.Item) {
	p := s.partitions[item.Partition]
	if p == nil {
		p = &partition{}
		s.partitions[item.Partition] = p
	}
	i, found := p.find(item.Sort)
	if found {
		s.expiries.drop(p.records[i])
		p.records[i].item = item
	} else {
		p.records = slices.Insert(p.records, i, &record{item: item, position: -1})
	}
	s.expiries.add(p.records[i])
}

func (s *Store) remove(k store.Key) {
	p := s.partitions[k.Partition]
	if p == nil {
		return
	}
	i, found := p.find(k.Sort)
	if !found {
		return
	}
	s.expiries.drop(p.records[i])
	p.records = slices.Delete(p.records, i, i+1)
	if len(p.records) == 0 {
		delete(s.partitions, k.Partition)
	}
}

// expire removes up to so many items whose time is over. Each write removes more than it can add, so the store stays
// bounded by what has not expired, without a goroutine that somebody would have to stop.
func (s *Store) expire(atMost int) {
	if s.now == nil || len(s.expiries) == 0 {
		return
	}
	now := s.now()
	for range atMost {
		if len(s.expiries) == 0 || now.Before(s.expiries[0].item.Expires) {
			return
		}
		s.remove(s.expiries[0].item.Key)
	}
}

// at is the position of the first record whose sort key is k or above.
func (p *partition) at(k string) int {
	n := len(p.records)
	if n > 0 && p.records[n-1].item.Sort < k {
		return n
	}
	return sort.Search(n, func(i int) bool { return p.records[i].item.Sort >= k })
}

func (p *partition) find(k string) (int, bool) {
	i := p.at(k)
	return i, i < len(p.records) && p.records[i].item.Sort == k
}

// expiries is a heap of the records that expire, the next one first; each record knows its position.
type expiries []*record

func (e *expiries) add(r *record) {
	if !r.item.Expires.IsZero() {
		heap.Push(e, r)
	}
}

func (e *expiries) drop(r *record) {
	if r.position >= 0 {
		heap.Remove(e, r.position)
	}
}

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].item.Expires.Before(e[j].item.Expires) }
func (e expiries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].position, e[j].position = i, j
}

func (e *expiries) Push(r any) {
	r.(*record).position = len(*e)
	*e = append(*e, r.(*record))
}

func (e *expiries) Pop() any {
	last := len(*e) - 1
	r := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	r.position = -1
	return r
}
