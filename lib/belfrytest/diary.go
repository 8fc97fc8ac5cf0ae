package belfrytest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// clock stands where it was set.
type clock struct {
	mu         sync.Mutex
	begin, now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Elapsed() time.Duration { return c.Now().Sub(c.begin) }

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// diary knows each instant at which there may be something to do, in Unix ms: from what is written to the store and the queue.
type diary struct {
	clock *clock

	mu       sync.Mutex
	wakes    instants // of timers that no pass has read
	minutes  instants // begins of minutes that hold timers and were not swept
	messages instants // when a message can be received
}

// instants are in order, each once.
type instants []int64

func (s *instants) add(at int64) {
	if i, found := slices.BinarySearch(*s, at); !found {
		*s = slices.Insert(*s, i, at)
	}
}

// take removes all up to now, and gives the first of them.
func (s *instants) take(now int64) (first int64, any bool) {
	n, found := slices.BinarySearch(*s, now)
	if found {
		n++
	}
	if n == 0 {
		return 0, false
	}
	first = (*s)[0]
	*s = slices.Delete(*s, 0, n)
	return first, true
}

// swept is when the first sweep looks at a minute.
func swept(minute int64) int64 { return minute + 60_000 + timer.Lags[0].Milliseconds() }

// next is the next instant, at most until, at which there may be something to do.
func (d *diary) next(until int64) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := until + 1
	if len(d.wakes) > 0 {
		at = min(at, d.wakes[0])
	}
	if len(d.minutes) > 0 {
		at = min(at, swept(d.minutes[0]))
	}
	if len(d.messages) > 0 {
		at = min(at, d.messages[0])
	}
	return at, at <= until
}

// due is what a pass is to look at.
type due struct {
	timers bool
	wake   int64 // the first of them
	sweeps bool
	minute int64 // the first of them
}

// due takes what is due at now out of the diary.
func (d *diary) due(now int64) due {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found due
	d.messages.take(now)
	found.wake, found.timers = d.wakes.take(now)
	found.minute, found.sweeps = d.minutes.take(now - swept(0))
	return found
}

// watchedStore notes when timers wake.
type watchedStore struct {
	store.Store
	diary *diary
}

func (s watchedStore) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	s.diary.timers(ops)
	return s.Store.Write(ctx, ops...)
}

func (s watchedStore) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	s.diary.timers(ops)
	return s.Store.WriteEach(ctx, ops...)
}

func (d *diary) timers(ops []store.Op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range ops {
		if op.Kind != store.Put {
			continue
		}
		if t, err := timer.FromItem(store.Item{Key: op.Key, Value: op.Value}); err == nil {
			d.wakes.add(t.Wake)
			d.minutes.add(minuteOf(t.Wake))
		}
	}
}

// watchedQueue notes when messages can be received.
type watchedQueue struct {
	queue.Queue
	diary *diary
}

func (q watchedQueue) Send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	for _, m := range batch {
		q.diary.message(m.Delay)
	}
	return q.Queue.Send(ctx, priority, batch...)
}

func (q watchedQueue) Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]queue.Message, error) {
	messages, err := q.Queue.Receive(ctx, max, wait, visibility)
	if len(messages) > 0 {
		q.diary.message(visibility)
	}
	return messages, err
}

func (q watchedQueue) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	q.diary.message(visibility)
	return q.Queue.Extend(ctx, visibility, batch...)
}

func (d *diary) message(in time.Duration) {
	at := d.clock.Now().Add(in + time.Millisecond - 1).UnixMilli() // upwards to the whole millisecond
	d.mu.Lock()
	defer d.mu.Unlock()
	d.messages.add(at)
}
