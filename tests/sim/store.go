package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/store"
)

var (
	errReset = errors.New("the connection was reset")
	errAway  = errors.New("the store is away")
)

// shelf is the store of a world as one host sees it: each call is a step, or several where the port promises nothing of them together.
type shelf struct {
	host *host
}

var _ store.Store = shelf{}

func (s shelf) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return s.read(ctx, "get", keys)
}

func (s shelf) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return s.read(ctx, "peek", keys)
}

func (s shelf) read(ctx context.Context, what string, keys []store.Key) ([]store.Item, error) {
	w, h := s.host.World, s.host
	if err := store.CheckKeys(keys); err != nil || len(keys) == 0 {
		return nil, err
	}
	items := make([]store.Item, len(keys))
	c := &pending{}
	get := func(from, to int) func() string {
		return func() string {
			outcome, err := w.fails(h, false)
			if err != nil {
				c.err = err
				return outcome
			}
			got, err := w.store.Get(w.ctx, keys[from:to]...)
			if err != nil {
				c.err = err
				return "failed"
			}
			for i, item := range got {
				if what == "peek" {
					item = w.stale(item)
				}
				items[from+i] = item
			}
			w.record(Recorded{Method: what, Keys: keys[from:to], Items: items[from:to]})
			return outcome
		}
	}
	var err error
	if w.Mix.Shape.Whole || len(keys) == 1 {
		err = w.sched.ask(ctx, c, h.op(what, keys[0].Partition, keys[0].Sort, byStore, get(0, len(keys))))
	} else {
		ops := make([]*op, len(keys))
		for i, k := range keys {
			ops[i] = h.op(what, k.Partition, k.Sort, byStore, get(i, i+1))
		}
		err = w.sched.ask(ctx, c, ops...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return items, nil
}

func (s shelf) Query(ctx context.Context, r store.Range) (store.Page, error) {
	w, h := s.host.World, s.host
	if w.idle(r) && ctx.Err() == nil {
		w.sched.yield()
		return w.store.Query(ctx, r)
	}
	var page store.Page
	c := &pending{}
	err := w.sched.ask(ctx, c, h.op("query", r.Partition, r.From, byStore, func() string {
		outcome, err := w.fails(h, false)
		if err != nil {
			c.err = err
			return outcome
		}
		if w.luck.strikes(StoreShort, w.Faults.Short) {
			most := 1 + w.luck.streams[StoreShort].IntN(4)
			if r.Limit == 0 || most < r.Limit {
				r.Limit = most
			}
			outcome = "short"
		}
		page, c.err = w.store.Query(w.ctx, r)
		w.record(Recorded{Method: "query", Range: r, Items: page.Items, Cursor: page.Cursor, Err: c.err})
		if n := len(page.Items); outcome == "short" && n > 0 && n == r.Limit && page.Cursor == "" {
			page.Cursor = r.After(page.Items[n-1].Sort) // the end is behind an empty page, as DynamoDB may have it
		}
		return outcome
	}))
	if err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	return page, nil
}

// idle tells whether a query looks into a bucket of timers where none was ever put: nobody's state can be seen in it. A tick makes 64 of
// them. Some seeds have some of them granted like any other call.
func (w *World) idle(r store.Range) bool {
	if !strings.HasPrefix(r.Partition, "due#") || w.written[r.Partition] {
		return false
	}
	return w.Mix.Shape.Idle == 0 || float64(xxhash.Sum64String(r.Partition)%1000)/1000 >= w.Mix.Shape.Idle
}

func (s shelf) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	w, h := s.host.World, s.host
	if err := store.CheckWrite(ops); err != nil || len(ops) == 0 {
		return nil, err
	}
	var versions []uint64
	c, done := w.sent(ctx, ops)
	defer done()
	err := w.sched.ask(ctx, c, h.op("write", ops[0].Key.Partition, ops[0].Key.Sort, byStore, func() (outcome string) {
		outcome, c.err = w.write(h, c, ops, func(ops []store.Op) (err error) {
			versions, err = w.put(ops)
			return err
		})
		return outcome
	}))
	if err != nil {
		if c.gone {
			ops = kept(ops)
		}
		return nil, fmt.Errorf("write: %w", err)
	}
	return versions, nil
}

func (s shelf) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	w, h := s.host.World, s.host
	if err := store.CheckEach(ops); err != nil || len(ops) == 0 {
		return nil, err
	}
	verdicts := make([]store.Verdict, len(ops))
	c, done := w.sent(ctx, ops)
	defer done()
	each := func(i int) string {
		outcome, err := w.write(h, c, ops[i:i+1], func(ops []store.Op) error {
			versions, err := w.put(ops)
			if err == nil {
				verdicts[i].Version = versions[0]
			} else if conflict := store.AsConflict(err); conflict != nil {
				conflict.Op = i
			}
			return err
		})
		if err != nil {
			verdicts[i] = store.Verdict{Err: err}
		}
		return outcome
	}
	var steps []*op
	if w.Mix.Shape.Whole {
		steps = append(steps, h.op("each", ops[0].Key.Partition, ops[0].Key.Sort, byStore, func() (outcome string) {
			for i := range ops {
				if one := each(i); one != "" {
					outcome = one
				}
			}
			return outcome
		}))
	} else {
		for i, o := range ops {
			steps = append(steps, h.op("each", o.Key.Partition, o.Key.Sort, byStore, func() string { return each(i) }))
		}
	}
	if err := w.sched.ask(ctx, c, steps...); err != nil {
		if c.gone {
			ops = kept(ops)
		}
		return nil, fmt.Errorf("write each: %w", err)
	}
	return verdicts, nil
}

// kept is a copy of ops that may yet be done when their caller has had his answer, and his values back.
func kept(ops []store.Op) []store.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Value = slices.Clone(ops[i].Value)
	}
	return ops
}

// Skew is what the host has learned of the store's clock. Where it is alone they are one clock.
func (s shelf) Skew() time.Duration { return s.host.skewed() }

// Close does nothing: the store is the world's.
func (s shelf) Close() error { return nil }

// fails draws whether a call of the store fails before it does anything. With an error nothing was done.
func (w *World) fails(h *host, writes bool) (outcome string, err error) {
	h.learn()
	lost := errReset
	if writes {
		lost = fmt.Errorf("%w: %w", store.ErrUnknown, errReset)
	}
	switch {
	case w.away:
		w.luck.counts[StoreAway]++
		if writes {
			return "away", fmt.Errorf("%w: %w", store.ErrUnknown, errAway)
		}
		return "away", errAway
	case w.luck.strikes(StoreRefused, w.Faults.Refused):
		return "refused", lost
	case w.luck.strikes(StoreThrottled, w.Faults.Throttled):
		return "throttled", store.ErrThrottled
	}
	return "", nil
}

// write does ops with what goes wrong with them.
func (w *World) write(h *host, c *pending, ops []store.Op, do func([]store.Op) error) (outcome string, err error) {
	if c.gone && w.luck.streams[StoreGone].IntN(2) == 0 {
		return "given up", c.err
	}
	if outcome, err = w.fails(h, true); err != nil {
		return outcome, err
	}
	if c.gone {
		w.luck.counts[StoreGone]++
	}
	if w.luck.strikes(StoreLate, w.Faults.Late) {
		w.later(h, c, ops, w.luck.upTo(StoreLate, dispatch.Lateness-time.Second))
		return "late", fmt.Errorf("late: %w", store.ErrUnknown)
	}
	err = do(ops)
	switch {
	case w.luck.strikes(StoreLost, w.Faults.Lost):
		return "lost", fmt.Errorf("the answer was lost: %w", store.ErrUnknown)
	case err != nil && store.AsConflict(err) != nil:
		return "conflict", err
	case err != nil:
		return "failed", err
	}
	return "", nil
}

// later does a write after its caller has been answered.
func (w *World) later(h *host, c *pending, ops []store.Op, after time.Duration) {
	ops = kept(ops)
	w.sched.leave(&op{call: &pending{gone: true, landed: true, open: 1, of: c.of}, who: h.id, what: "late write", key: ops[0].Key.Partition, sort: ops[0].Key.Sort, do: func() string {
		if _, err := w.put(ops); err != nil {
			return "conflict"
		}
		return ""
	}}, after)
}

// put is where the store changes: every write of anybody comes here.
func (w *World) put(ops []store.Op) ([]uint64, error) {
	keys := make([]store.Key, len(ops))
	for i := range ops {
		keys[i] = ops[i].Key
	}
	ctx := context.WithoutCancel(w.ctx) // what was begun is done
	before, err := w.store.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	versions, err := w.store.Write(ctx, ops...)
	w.record(Recorded{Method: "write", Ops: ops, Versions: versions, Err: err})
	if err != nil {
		return nil, err
	}
	after, err := w.store.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i := range ops {
		if before[i].Version != after[i].Version {
			w.changed(before[i], after[i])
		}
	}
	return versions, nil
}

// changed is told of every item that has changed.
func (w *World) changed(before, after store.Item) {
	if strings.HasPrefix(after.Partition, "due#") {
		w.written[after.Partition] = true
	}
	w.sched.mix(after.Version)
	w.sched.mix(xxhash.Sum64(after.Value))
	w.past.note(w.sched.elapsed(), before)
	if !after.Expires.IsZero() {
		w.expiries.add(after)
	}
	if w.onChange != nil {
		w.onChange(before, after)
	}
	w.Judge.Stored(w.Now(), before, after)
}

// stale is what a cheap read may give instead of what stands.
func (w *World) stale(item store.Item) store.Item {
	if w.Faults.Stale == 0 {
		return item
	}
	old, ok := w.past.find(w.sched.elapsed(), item.Key)
	if !ok || !w.luck.strikes(StoreStale, w.Faults.Stale) {
		return item
	}
	return old
}

// staleFor is how long a cheap read may be behind.
const staleFor = 2 * time.Second

// past is what stood before recent changes.
type past struct {
	byKey map[store.Key]store.Item
	order []passed
}

type passed struct {
	at      time.Duration
	key     store.Key
	version uint64
}

func (p *past) note(now time.Duration, before store.Item) {
	p.forget(now)
	p.byKey[before.Key] = before
	p.order = append(p.order, passed{now, before.Key, before.Version})
}

func (p *past) forget(now time.Duration) {
	n := 0
	for n < len(p.order) && p.order[n].at+staleFor < now {
		if old := p.order[n]; p.byKey[old.key].Version == old.version {
			delete(p.byKey, old.key)
		}
		n++
	}
	if n > 64 {
		p.order = slices.Delete(p.order, 0, n)
	}
}

func (p *past) find(now time.Duration, k store.Key) (store.Item, bool) {
	p.forget(now)
	item, ok := p.byKey[k]
	return item, ok
}
