package tick

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// errHeld says that another tick has the shard, or took it over.
var errHeld = errors.New("the shard is held by another tick")

// errDone says that a shard has nothing left of what a helper was asked for.
var errDone = errors.New("the shard has nothing left")

// setBack is how far the watermark may be ahead of where this clock would have it. Below it the first sweep, which is further
// behind, comes upon whatever is put behind the watermark.
const setBack = time.Minute

// take leases a shard and publishes the horizon. Durable afterwards: that this pass will claim nothing beyond it. Only then
// is anything read. The clock is not read again: however long the pass is stopped, it stays below what it published.
//
// The cursors are written with it that this process has moved over nothing in its last pass, unless another tick came between.
//
// paced is up to where passes before this one have given missed fires their places.
func (t *Ticker) take(ctx context.Context, n int, help *Help) (s timer.Shard, under underWay, now, paced int64, err error) {
	items, err := t.store.Get(ctx, timer.ShardKey(n))
	if err != nil {
		return s, under, 0, 0, err
	}
	if s, err = timer.ShardFromItem(n, items[0]); err != nil {
		return s, under, 0, 0, err
	}
	if s.Version == 0 {
		return s, under, 0, 0, fmt.Errorf("shard %d was never set up: %w", n, record.ErrBroken)
	}
	if help.done(s) {
		return s, under, 0, 0, errDone
	}
	s, under = t.recall(s)
	if now, err = t.Dispatch.Clock(); err != nil {
		return s, under, 0, 0, err
	}
	t.Dispatch.Published(s.Horizon, now)
	if s.Watermark > now+(t.Dispatch.Ahead()+setBack).Milliseconds() {
		// What is asked for now would lie behind all cursors. Reading again is harmless: every step finds its own traces.
		t.Log.WarnContext(ctx, "the clock is behind the watermark, which is set back", "shard", s.Number, "watermark", time.UnixMilli(s.Watermark))
		s.Watermark, s.Reached, under = now, nil, underWay{}
		for k := range s.Swept {
			begin := now - timer.Lags[timer.Sweeps-1].Milliseconds()
			s.Swept[k] = min(s.Swept[k], begin-begin%60_000)
		}
	}
	length := t.Lease.Milliseconds()
	// A lease further away than its length was written before the clock was stepped back: void.
	if s.Owner != t.Owner && s.Lease > now && s.Lease <= now+length {
		return s, under, 0, 0, errHeld
	}
	t.note(&s, now)
	if paced = s.Horizon; t.Dispatch.Stale(s.Horizon, now) { // by a clock that was ahead: its places are not waited for
		paced = t.Dispatch.HorizonAt(s.Passed)
		if s.Passed > now {
			paced, s.Paced = 0, nil
		}
	}
	s.Epoch++
	s.Owner, s.Lease, s.Passed = t.Owner, now+length, now
	s.Horizon = max(s.Horizon, t.Dispatch.HorizonAt(now))
	err = t.write(ctx, &s)
	return s, under, now, paced, err
}

// note draws what follows from how long ago the last pass was. A process that ticks once a minute, and perhaps in another place each
// time, knows it from nowhere else.
func (t *Ticker) note(s *timer.Shard, now int64) {
	if t.missed(s.Number) || t.Dispatch.Overdue(*s, now, t.Every) {
		s.Settled = now + t.Dispatch.Lease.Milliseconds()
	}
	if s.Settled > now+(t.Dispatch.Lease+dispatch.MaxSkew).Milliseconds() { // by a clock that was ahead: nobody waits for that time
		s.Settled = now + t.Dispatch.Lease.Milliseconds()
	}
	s.Gaps = t.Dispatch.Gaps(*s, now)
	if now-s.Since >= dispatch.Forgotten.Milliseconds() {
		s.Since, s.Doubt = now, s.Horizon
	}
}

func (t *Ticker) write(ctx context.Context, s *timer.Shard) error {
	op, err := s.Put(t.Dispatch.NewID())
	if err != nil {
		return err
	}
	versions, err := t.Dispatch.Write(ctx, op)
	if store.AsConflict(err) != nil {
		return errHeld
	}
	if err != nil {
		return err
	}
	s.Version = versions[0]
	return nil
}

// recall gives a shard with its cursors as this process has left them, where nobody has written it since.
func (t *Ticker) recall(s timer.Shard) (timer.Shard, underWay) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := t.left[s.Number]; left.Version == s.Version {
		return left.Shard, left.under
	}
	return s, underWay{}
}

func (t *Ticker) keep(s timer.Shard, under underWay) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left[s.Number] = left{s, under}
}

// missed tells whether this process failed to take a shard when it last tried.
func (t *Ticker) missed(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed[n]
}

// unowned counts the shards that this process could not take, and that no other tick had.
func (t *Ticker) unowned() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failed)
}

func (t *Ticker) noteTaken(n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ok {
		delete(t.failed, n)
	} else {
		t.failed[n] = true
	}
}
