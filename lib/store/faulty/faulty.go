// Package faulty wraps a store for tests and demonstrations: a hook sees every call before it is done and says what goes wrong with it, and
// every call is counted. What it can do to a call is what a real store does: refuse it, do it and lose the answer, do it
// later than it was answered, be slow.
//
//	s := faulty.New(memory.New(memory.Config{}), func(ctx context.Context, c faulty.Call) faulty.Fault {
//		if c.Method == faulty.Write && c.N == 3 {
//			return faulty.Fault{Lose: store.ErrUnknown} // it happened, and nobody was told
//		}
//		return faulty.Fault{}
//	})
package faulty

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Method is a method of the store.
type Method string

const (
	Get       Method = "Get"
	Peek      Method = "Peek"
	Query     Method = "Query"
	Write     Method = "Write"
	WriteEach Method = "WriteEach"
)

// Call is what the hook sees. Of a WriteEach it sees each op on its own.
type Call struct {
	Method Method
	N      int         // counts the calls of this method, from 1
	Keys   []store.Key // of a Get or Peek
	Range  store.Range // of a Query
	Ops    []store.Op  // of a Write all, of a WriteEach one
}

// Touches tells whether the call names a key for which the function is true; a Query is asked with its lower bound.
func (c Call) Touches(is func(store.Key) bool) bool {
	for _, k := range c.Keys {
		if is(k) {
			return true
		}
	}
	for i := range c.Ops {
		if is(c.Ops[i].Key) {
			return true
		}
	}
	return c.Method == Query && is(store.Key{Partition: c.Range.Partition, Sort: c.Range.From})
}

// Fault is what goes wrong. The zero value is nothing. One field is set, or none.
type Fault struct {
	// Refuse: nothing is done, the call gives this error. To be true to the port it wraps store.ErrThrottled, or
	// store.ErrUnknown for a write that was lost on its way.
	Refuse error
	// Lose: it is done, and the call gives this error in place of the answer; store.ErrUnknown, for a write.
	Lose error
	// Late: a write gives store.ErrUnknown at once, and is done when the channel is closed; if it is still open when the
	// store closes, never.
	Late <-chan struct{}
}

// Hook decides on a call before it is done. It may be called concurrently. It may wait, which makes the call slow; it must
// then obey the context.
type Hook func(ctx context.Context, c Call) Fault

// Counts is what was asked of a method, faults included.
type Counts struct {
	Calls int
	Items int // keys of a Get or Peek, ops of a Write or WriteEach, items that a Query gave
}

// Store is a store.Store with faults.
type Store struct {
	inner store.Store
	hook  Hook

	mu      sync.Mutex
	tallies map[Method]*tally
	skew    time.Duration
	skewSet bool

	closing chan struct{}
	once    sync.Once
	late    sync.WaitGroup
}

// tally is what is counted of a method.
type tally struct {
	Counts
	asked int // how often the hook was
}

var _ store.Store = (*Store)(nil)

// New wraps a store, which Close closes too. A nil hook only counts.
func New(inner store.Store, hook Hook) *Store {
	if hook == nil {
		hook = func(context.Context, Call) Fault { return Fault{} }
	}
	tallies := map[Method]*tally{Get: {}, Peek: {}, Query: {}, Write: {}, WriteEach: {}}
	return &Store{inner: inner, hook: hook, tallies: tallies, closing: make(chan struct{})}
}

// Count gives what was asked of a method so far.
func (s *Store) Count(m Method) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tallies[m].Counts
}

// SetSkew makes the store's clock differ from this host's.
func (s *Store) SetSkew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew, s.skewSet = d, true
}

// Skew is what SetSkew set, else the inner store's.
func (s *Store) Skew() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skewSet {
		return s.skew
	}
	return s.inner.Skew()
}

func (s *Store) count(m Method, items int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tallies[m]
	c.Calls++
	c.Items += items
}

func (s *Store) ask(ctx context.Context, c Call) Fault {
	s.mu.Lock()
	counted := s.tallies[c.Method]
	counted.asked++
	c.N = counted.asked
	s.mu.Unlock()
	return s.hook(ctx, c)
}

// Get is the store's, with faults.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return s.read(ctx, Get, s.inner.Get, keys)
}

// Peek is the store's, with faults.
func (s *Store) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return s.read(ctx, Peek, s.inner.Peek, keys)
}

func (s *Store) read(
	ctx context.Context, m Method, do func(context.Context, ...store.Key) ([]store.Item, error), keys []store.Key,
) ([]store.Item, error) {
	s.count(m, len(keys))
	fault := s.ask(ctx, Call{Method: m, Keys: keys})
	if fault.Refuse != nil {
		return nil, fault.Refuse
	}
	items, err := do(ctx, keys...)
	if fault.Lose != nil {
		return nil, fault.Lose
	}
	return items, err
}

// Query is the store's, with faults.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	fault := s.ask(ctx, Call{Method: Query, Range: r})
	if fault.Refuse != nil {
		s.count(Query, 0)
		return store.Page{}, fault.Refuse
	}
	page, err := s.inner.Query(ctx, r)
	s.count(Query, len(page.Items))
	if fault.Lose != nil {
		return store.Page{}, fault.Lose
	}
	return page, err
}

// Write is the store's, with faults.
func (s *Store) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	s.count(Write, len(ops))
	fault := s.ask(ctx, Call{Method: Write, Ops: ops})
	switch {
	case fault.Refuse != nil:
		return nil, fault.Refuse
	case fault.Late != nil:
		s.later(ctx, fault.Late, ops, func(ctx context.Context, ops []store.Op) error {
			_, err := s.inner.Write(ctx, ops...)
			return err
		})
		return nil, fmt.Errorf("late: %w", store.ErrUnknown)
	}
	versions, err := s.inner.Write(ctx, ops...)
	if fault.Lose != nil {
		return nil, fault.Lose
	}
	return versions, err
}

// WriteEach is the store's, with faults for each op.
func (s *Store) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	s.count(WriteEach, len(ops))
	faults := make([]Fault, len(ops))
	var now []store.Op
	for i, op := range ops {
		faults[i] = s.ask(ctx, Call{Method: WriteEach, Ops: ops[i : i+1]})
		switch {
		case faults[i].Refuse != nil:
		case faults[i].Late != nil:
			s.later(ctx, faults[i].Late, ops[i:i+1], func(ctx context.Context, ops []store.Op) error {
				_, err := s.inner.WriteEach(ctx, ops...)
				return err
			})
		default:
			now = append(now, op)
		}
	}
	done, err := s.inner.WriteEach(ctx, now...)
	if err != nil {
		return nil, err
	}
	verdicts := make([]store.Verdict, len(ops))
	for i, fault := range faults {
		switch {
		case fault.Refuse != nil:
			verdicts[i].Err = fault.Refuse
			continue
		case fault.Late != nil:
			verdicts[i].Err = fmt.Errorf("late: %w", store.ErrUnknown)
			continue
		}
		verdicts[i], done = done[0], done[1:]
		if c := store.AsConflict(verdicts[i].Err); c != nil {
			c.Op = i
		}
		if fault.Lose != nil {
			verdicts[i] = store.Verdict{Err: fault.Lose}
		}
	}
	return verdicts, nil
}

// later does a write when its channel is closed, with copies of what the caller may change by then. Its outcome is
// nobody's: the caller has had its answer.
func (s *Store) later(
	ctx context.Context, when <-chan struct{}, ops []store.Op, do func(context.Context, []store.Op) error,
) {
	ctx, ops = context.WithoutCancel(ctx), slices.Clone(ops)
	for i := range ops {
		ops[i].Value = slices.Clone(ops[i].Value)
	}
	s.late.Go(func() {
		select {
		case <-when:
			_ = do(ctx, ops)
		case <-s.closing:
		}
	})
}

// Landed waits until each write that is late has been done. All of their channels must be closed, or it waits for that.
func (s *Store) Landed() { s.late.Wait() }

// Close drops what is still late, and closes the store.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closing) })
	s.late.Wait()
	return s.inner.Close()
}
