// Package local is the queue in the memory of one process, for the laptop, the small server and tests.
//
// It promises nothing over a crash and needs to: the store is the truth, and what a start finds unfinished there is sent
// again. What it holds is bounded by Config, each priority apart, so that a flood of low work refuses no urgent work. A
// message that was taken keeps its place: handing it back, or the end of its visibility, never needs room that new work
// could have used up, and a full queue drains itself.
//
// Of 16 messages taken in a row, 3 slots prefer normal and 1 prefers low; all others, and those whose choice has nothing
// waiting, go to the highest priority that has. Within a priority the groups (tenants) take turns, and a group's messages
// go in the order in which they became ready.
//
// Waiting uses the timers of package time, and deadlines the clock that Config gives; the two should run at one speed. A
// clock that steps back counts as one that stood still: nothing waits longer for it than it had still to wait.
package local

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

// What a Config that says nothing gets: room for a million runs that wait, in some 300 MB. A message takes 72 bytes,
// 24 more while it is delayed or taken, and a block of 64 for each 60 bytes of its body. That memory goes back when the queue is empty.
const (
	DefaultCapacity = 1_000_000
	DefaultBytes    = 256 << 20
)

// Config bounds a queue. The zero value is usable.
type Config struct {
	Now      func() time.Time // default time.Now; should carry a monotonic reading
	Capacity int              // messages of each priority, in any state; default DefaultCapacity
	Bytes    int64            // bodies of each priority, together; default DefaultBytes
}

// Queue is a queue.Queue in memory.
type Queue struct {
	now      func() time.Time
	capacity int
	bytes    int64
	origin   time.Time // instants inside are durations since it
	life     string    // begins every receipt: one of an earlier life of this queue names nothing here

	mu         sync.Mutex
	closed     bool
	elapsed    time.Duration // the latest instant seen
	stepped    time.Duration // how much the clock stepped back, in sum
	lanes      [3]lane       // by rank of priority
	turn       uint8         // position in queue.Turns
	hidden     heap          // delayed and taken messages, by the instant at which they can be received
	messages   slab[message]
	blocks     slab[block]
	groups     names
	held       int
	deliveries map[uint64]ref
	last       uint64  // number of the newest delivery
	arrivals   uint64  // number of the newest message
	waiters    waiters // receivers that found nothing
	alarm      *time.Timer
	alarmAt    time.Duration // for which the alarm is set; 0 when it is not
}

// message is in exactly one place: in a lane, ready, or in the heap, delayed or taken. It has no pointers: see slab.
type message struct {
	self       ref
	body       ref // the first of its blocks
	size       int32
	group      uint32
	index      int32 // in the heap, -1 outside
	receives   int32
	prev, next ref // in the line of its group while it is ready, and else among those of its group, rank and state
	rank       uint8
	taken      bool   // received; false while delayed
	readyHigh  uint16 // while it is ready: since which instant, in whole µs, in 48 bits that would else be empty
	readyLow   uint32
	sent       int64         // Unix ns
	delivery   uint64        // the newest; 0 before the first
	since      time.Duration // instant of the newest delivery
	seq        uint64
}

var _ queue.Queue = (*Queue)(nil)

// New makes an empty queue.
func New(cfg Config) *Queue {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Capacity <= 0 {
		cfg.Capacity = DefaultCapacity
	}
	if cfg.Bytes <= 0 {
		cfg.Bytes = DefaultBytes
	}
	origin := cfg.Now()
	return &Queue{
		now:        cfg.Now,
		capacity:   cfg.Capacity,
		bytes:      cfg.Bytes,
		origin:     origin,
		life:       strconv.FormatUint(uint64(origin.UnixNano()), 36) + "-",
		deliveries: map[uint64]ref{},
	}
}

// Send puts messages in; see queue.Queue. Messages over the bounds get ErrFull one by one, and leave the others be.
func (q *Queue) Send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckSend(priority, batch); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	errs := make([]error, len(batch))
	rank := uint8(priority.Rank())
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, queue.ErrClosed
	}
	sent := q.now()
	now := q.instant(sent)
	q.ripen(now) // they became ready before these, whether or not anybody looked meanwhile
	lane := &q.lanes[rank]
	for i, out := range batch {
		if lane.held >= q.capacity || lane.bytes+int64(len(out.Body)) > q.bytes {
			errs[i] = fmt.Errorf("%s holds %d messages of %d bytes: %w", priority, lane.held, lane.bytes, queue.ErrFull)
			continue
		}
		lane.held++
		lane.bytes += int64(len(out.Body))
		q.arrivals++
		m := q.keep(out.Body, out.Group)
		m.sent, m.rank, m.seq = sent.UnixNano(), rank, q.arrivals
		if out.Delay > 0 {
			q.hide(m, now+out.Delay)
		} else {
			m.ripens(now)
			lane.push(&q.messages, m)
		}
	}
	q.settle(now)
	return errs, nil
}

// Receive takes messages; see queue.Queue.
func (q *Queue) Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckReceive(max, wait, visibility); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if taken, err := q.take(max, visibility); taken != nil || err != nil || wait == 0 {
		return taken, err
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	w := &waiter{wake: make(chan struct{}, 1)}
	for {
		q.waiters.add(w)
		q.settle(q.instant(q.now()))
		q.mu.Unlock()
		var err error
		over := false
		select {
		case <-w.wake:
		case <-timeout.C:
			over = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		q.waiters.remove(w)
		if err != nil {
			// The message that woke this receiver while its context ended must wake another one.
			q.settle(q.instant(q.now()))
			return nil, err
		}
		if taken, err := q.take(max, visibility); taken != nil || err != nil || over {
			return taken, err
		}
	}
}

// take hands out what can be received at this instant, nil for nothing.
func (q *Queue) take(max int, visibility time.Duration) ([]queue.Message, error) {
	if q.closed {
		return nil, queue.ErrClosed
	}
	now := q.instant(q.now())
	q.ripen(now)
	var out []queue.Message
	for len(out) < max {
		m := q.pick()
		if m == nil {
			break
		}
		if m.delivery != 0 {
			delete(q.deliveries, m.delivery)
		}
		q.last++
		m.taken, m.delivery, m.since = true, q.last, now
		m.receives++
		q.deliveries[m.delivery] = m.self
		q.hide(m, now+visibility)
		out = append(out, queue.Message{
			Body:     q.read(m),
			Priority: queue.Priorities[m.rank],
			Receipt:  q.receipt(m.delivery),
			Receives: int(m.receives),
			Sent:     time.Unix(0, m.sent),
		})
	}
	q.settle(now)
	return out, nil
}

// Delete removes messages; see queue.Queue. The newest receipt still removes a message whose visibility has ended.
func (q *Queue) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckDelete(batch); err != nil {
		return nil, fmt.Errorf("delete: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, queue.ErrClosed
	}
	errs := make([]error, len(batch))
	for i, msg := range batch {
		m, err := q.named(msg.Receipt)
		if m == nil {
			errs[i] = err
			continue
		}
		lane := &q.lanes[m.rank]
		q.pull(m)
		delete(q.deliveries, m.delivery)
		lane.held--
		lane.bytes -= int64(m.size)
		q.drop(m)
	}
	return errs, nil
}

// Extend sets visibilities anew; see queue.Queue. The newest receipt also takes back a message whose visibility has ended.
func (q *Queue) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckExtend(visibility, batch); err != nil {
		return nil, fmt.Errorf("extend: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, queue.ErrClosed
	}
	errs := make([]error, len(batch))
	now := q.instant(q.now())
	for i, msg := range batch {
		m, err := q.named(msg.Receipt)
		if m == nil {
			errs[i] = err
			continue
		}
		if now+visibility > m.since+queue.MaxVisibility {
			errs[i] = fmt.Errorf("extend: received %v ago, visibility: got %v, want at most %v in sum: %w",
				now-m.since, visibility, queue.MaxVisibility, queue.ErrLimit)
			continue
		}
		if m.taken {
			q.postpone(m, now+visibility)
			continue
		}
		q.pull(m)
		q.hide(m, now+visibility)
	}
	q.settle(now)
	return errs, nil
}

// Depth counts messages; see queue.Queue. Here it lags behind nothing.
func (q *Queue) Depth(ctx context.Context) (map[queue.Priority]queue.Depth, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, queue.ErrClosed
	}
	q.settle(q.instant(q.now()))
	depth := make(map[queue.Priority]queue.Depth, len(q.lanes))
	for rank := range q.lanes {
		l := &q.lanes[rank]
		depth[queue.Priorities[rank]] = queue.Depth{
			Ready:   int64(l.ready),
			Delayed: int64(l.held - l.ready - l.taken),
			Taken:   int64(l.taken),
		}
	}
	return depth, nil
}

// Next is when the next message can be received, by the queue's clock: now, where one can be already. It is false where nothing will be unless
// it is sent or handed back.
func (q *Queue) Next() (at time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.instant(q.now())
	q.ripen(now)
	for rank := range q.lanes {
		if q.lanes[rank].ready > 0 {
			return q.origin.Add(now - q.stepped), true
		}
	}
	if len(q.hidden) == 0 {
		return time.Time{}, false
	}
	return q.origin.Add(q.hidden[0].at - q.stepped), true
}

// Close wakes all waiting receivers and forgets the messages.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	if q.alarm != nil {
		q.alarm.Stop()
	}
	for q.waiters.wakeOne() {
	}
	q.lanes, q.hidden, q.deliveries = [3]lane{}, nil, nil
	q.messages, q.blocks, q.groups = slab[message]{}, slab[block]{}, names{}
	return nil
}

// named gives the message whose newest delivery the receipt names, nil where a newer one stands or the message is gone.
func (q *Queue) named(receipt string) (*message, error) {
	life, number, ok := strings.Cut(receipt, "-")
	delivery, err := strconv.ParseUint(number, 36, 64)
	if !ok || err != nil {
		return nil, invalid.Field("receipt", receipt, "the receipt of a received message")
	}
	if life != q.life[:len(q.life)-1] {
		return nil, nil
	}
	r := q.deliveries[delivery]
	if r == 0 {
		return nil, nil
	}
	return q.messages.at(r), nil
}

func (q *Queue) receipt(delivery uint64) string {
	return q.life + strconv.FormatUint(delivery, 36)
}

// instant turns a reading of the clock into a duration since the origin that never shrinks.
func (q *Queue) instant(reading time.Time) time.Duration {
	at := reading.Sub(q.origin) + q.stepped
	if at < q.elapsed {
		q.stepped += q.elapsed - at
		at = q.elapsed
	}
	q.elapsed = at
	return at
}
