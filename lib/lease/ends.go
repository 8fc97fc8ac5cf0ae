package lease

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Ends of attempts are written in groups: an attempt that ends waits for no answer of its own, which would wake a goroutine for each,
// and the messages of a group are deleted ten at a time. A group is what ends within a moment of its first, and while all writers
// are busy. A write that the store is slow with holds up its group, and all others once each writer has such a one, for the length of a try
// (dispatch.TryEach).
const (
	endWriters = 4                      // groups on their way at once
	endGroup   = 250                    // ends in one group
	endGather  = 200 * time.Microsecond // the moment: none where nothing else is under way
)

// ends is the attempts of a desk that have ended and wait to be written.
type ends struct {
	mu        sync.Mutex
	waiting   []*ending
	gathering bool // somebody is about to take what waits
	writers   int
}

// ending is an attempt that has ended.
type ending struct {
	held    *Held
	ctx     context.Context //nolint:containedctx // of the attempt, which goes on in another goroutine
	outcome run.Outcome
	change  func(run.Run, int64) run.Run
	put     *dispatch.Put // nil where it is not written with others
	told    func(run.State, error)
}

func (e *ends) add(d *Desk, one *ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, one)
	if !e.gathering && e.writers < endWriters {
		e.gathering = true
		e.writers++
		go d.writeEnds()
	}
}

// take takes a group of those that have waited longest. What is asked of the store for it does not depend on who of them came first.
func (e *ends) take() []*ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.waiting), endGroup)
	group := slices.Clone(e.waiting[:n])
	e.waiting = slices.Delete(e.waiting, 0, n)
	e.gathering = false
	slices.SortFunc(group, func(a, b *ending) int {
		r, s := a.held.started, b.held.started
		return cmp.Or(strings.Compare(r.Tenant, s.Tenant), strings.Compare(a.held.name, b.held.name), cmp.Compare(r.Fence, s.Fence))
	})
	return group
}

// more tells a writer whether it is to go on.
func (e *ends) more() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gathering || len(e.waiting) == 0 {
		e.writers--
		return false
	}
	e.gathering = true
	return true
}

// writeEnds writes groups until nothing waits. It is bounded by the time-outs of the writes.
func (d *Desk) writeEnds() {
	for more := true; more; more = d.ends.more() {
		if d.several() {
			<-time.After(endGather)
		}
		d.writeGroup(d.ends.take())
	}
}

// several tells whether attempts are under way beside the one that ends.
func (d *Desk) several() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.under) > 1
}

// writeGroup tries the ends of a group in one call of the store. What comes of those that this was not enough for is seen to for each
// by itself.
func (d *Desk) writeGroup(group []*ending) {
	puts := make([]*dispatch.Put, 0, len(group))
	for i, e := range group {
		standing := e.held.standing()
		if !standing.Holds(e.held.started.Fence) || i > 0 && nameOf(group[i-1].held.started) == nameOf(e.held.started) {
			continue // fenced, or an attempt that was frozen and its successor
		}
		now := e.held.now(e.ctx)
		r := e.change(standing, now)
		on := e.held.edition.Def.On
		if !d.Dispatch.Alone(r, on, now) {
			continue
		}
		if put, err := d.Dispatch.Prepare(e.ctx, r, on, now); err == nil {
			e.put = put
			puts = append(puts, put)
		}
	}
	// Durable with this write: each end whose op is done, as in conclude.
	d.Dispatch.TryEach(context.Background(), puts)
	var dropped []*ending
	for _, e := range group {
		if e.put != nil && e.put.Won() && e.held.over(e.put.Run()) {
			dropped = append(dropped, e)
		} else {
			go func() { e.told(e.held.conclude(e.ctx, e.outcome, e.change, e.put)) }()
		}
	}
	for some := range slices.Chunk(dropped, queue.MaxBatch) {
		go d.dropped(some)
	}
}

// over learns of an end that was written, and takes the message for it to be deleted with others: false where there is more to do.
func (h *Held) over(r run.Run) bool {
	h.learn(r)
	if !r.State.Ended() || r.Placed || r.Pauses || r.ID.IsStep() || !h.messages.try() { // whoever waits for its place, or its end, comes before its message
		return false
	}
	if h.delivery == nil {
		h.messages.give()
		return false
	}
	return true
}

// dropped deletes the messages of runs that have ended, and tells of their ends. What is not deleted comes again, finds the end, and is
// dropped then.
func (d *Desk) dropped(some []*ending) {
	messages := make([]queue.Message, len(some))
	for i, e := range some {
		messages[i] = e.held.delivery.message
	}
	within, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	errs, err := d.From.Delete(within, messages...)
	for i, e := range some {
		if err == nil {
			unsettled(e.ctx, d.Log, errs[i])
		} else {
			unsettled(e.ctx, d.Log, err)
		}
		e.held.delivery = nil
		e.held.messages.give()
		r := e.put.Run()
		e.held.count(r, e.outcome, true)
		e.told(r.State, nil)
	}
}
