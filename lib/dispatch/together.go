package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// A callback with a window waits as a timer of its own, written with the end or the record that it tells of. Whoever comes upon such timers when their window is
// over has one of them stand for all, in one write that takes the others away: so what is told of is told once, and nothing is left out, wherever a crash
// comes. From there on it is a request like others.

// settles is how long after its window a callback's timer wakes, in ms: so long that no pass has read its place when it is written, though the end was in the
// window's last moment, and that it lies beyond what a pass leaves to a later one.
func (d *Dispatcher) settles() int64 { return (d.Ahead() + 2*MaxSkew + ResumeAfter).Milliseconds() }

// toWait is the timer of a callback with a window, which wakes at least at an instant (Unix ms). Its run is due when the pass that its timer wakes in has come by,
// where passes are not late themselves.
func (d *Dispatcher) toWait(ended run.Run, e job.Event, to job.Callback, wake int64) timer.Timer {
	wakes := to.Until(ended.Ended) + d.settles()
	due := wakes - d.LookAhead.Milliseconds()/2
	return timer.NewWaiting(ended.CallAt(e, to.Job, due), to.Window.Std(), max(wake, wakes))
}

// waits is the timer of a callback that waits for others, as it is put, and which op puts it.
type waits struct {
	timer timer.Timer
	op    int
}

// putOff wakes callbacks later whose timers came to stand long after their wake, since the process was stopped between the decision and its write: perhaps no
// sweep comes by there any more. What fails is left to one that does.
func (d *Dispatcher) putOff(ctx context.Context, waiting []waits, versions []uint64) {
	for _, w := range waiting {
		now, err := d.Clock()
		if err == nil && now <= w.timer.Wake+lateCall {
			continue
		}
		if err == nil {
			err = d.wakeLater(ctx, w.timer, versions[w.op], now+d.settles())
		}
		if err != nil {
			d.Log.WarnContext(ctx, "a callback that waits for others is left to a sweep", "run", w.timer.Run.String(), "of", w.timer.Create.Callback.Run, "error", err)
		}
	}
}

func (d *Dispatcher) wakeLater(ctx context.Context, late timer.Timer, version uint64, wake int64) error {
	later, id := late, d.NewID()
	later.Wake = wake
	put, err := later.Put(id)
	if err != nil {
		return err
	}
	if _, err = d.Write(ctx, put, store.Op{Kind: store.Delete, Key: late.Key(), If: store.Version(version), Attempt: id}); store.AsConflict(err) == nil {
		return err
	}
	return nil // it is told of by now
}

// window is what callbacks have in common that are told of together.
type window struct {
	tenant, job, event string
	due, length        int64
}

// MaxTogether is about how many callbacks are told of together at the most.
const MaxTogether = 1000

// byWindow gives of timers those that wait for no others, and the rest by what they have in common: at most MaxTogether in each group, the one that is to stand for all of
// them first. That is one which stands for several already, and else the first to have ended.
func byWindow(timers []timer.Timer) (alone []timer.Timer, groups [][]timer.Timer) {
	at := map[window]int{}
	for _, t := range timers {
		if !t.Waits() {
			alone = append(alone, t)
			continue
		}
		w := window{t.Tenant, t.Run.Job, t.Create.Callback.Event, t.Nominal, t.Window}
		n, found := at[w]
		if !found || len(groups[n]) == MaxTogether {
			n = len(groups)
			at[w], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], t)
	}
	for _, group := range groups {
		slices.SortFunc(group, func(a, b timer.Timer) int {
			return cmp.Or(cmp.Compare(b.Create.Callback.Count, a.Create.Callback.Count), cmp.Compare(a.Create.Created, b.Create.Created),
				strings.Compare(a.Create.Callback.Run, b.Create.Callback.Run), cmp.Compare(a.Wake, b.Wake))
		})
	}
	return alone, groups
}

// Together has the callbacks among timers of requests that wait for others told of together, and gives the timers that are to be gone on with.
func (d *Dispatcher) Together(ctx context.Context, timers []timer.Timer) ([]timer.Timer, error) {
	if !slices.ContainsFunc(timers, func(t timer.Timer) bool { return t.Waits() }) {
		return timers, nil
	}
	ready, groups := byWindow(timers)
	for round := 0; len(groups) > 0; round++ {
		var met []timer.Timer // of groups that others are at
		for _, group := range groups {
			one, err := d.gather(ctx, group)
			switch {
			case err == nil:
				ready = append(ready, one)
			case store.AsConflict(err) == nil:
				return nil, fmt.Errorf("tell of several ends together: %w", err)
			default:
				met = append(met, group...)
			}
		}
		if len(met) > 0 && round == maxRounds {
			return nil, fmt.Errorf("tell of several ends together: overtaken %d times: %w", maxRounds, store.ErrThrottled)
		}
		standing, err := d.readTimers(ctx, met)
		if err != nil {
			return nil, err
		}
		var joined []timer.Timer
		joined, groups = byWindow(standing)
		ready = append(ready, joined...)
	}
	return ready, nil
}

// gather has the first of a group stand for all of it, as many at a time as a write takes.
//
// Durable with each write: that it tells of those whose timers are gone. A crash in between leaves one that tells of some, and waits for the others still.
func (d *Dispatcher) gather(ctx context.Context, group []timer.Timer) (timer.Timer, error) {
	first, rest := group[0], group[1:]
	for {
		some := rest[:min(len(rest), store.MaxOps-1)]
		rest = rest[len(some):]
		calls := make([]run.Run, 0, 1+len(some))
		id := d.NewID()
		ops := make([]store.Op, 1, 1+len(some))
		calls = append(calls, *first.Create)
		for _, t := range some {
			calls = append(calls, *t.Create)
			ops = append(ops, store.Op{Kind: store.Delete, Key: t.Key(), If: store.Version(t.Version), Attempt: id})
		}
		together := run.Together(calls, time.Duration(first.Window)*time.Millisecond)
		first.Create, first.Joined = &together, len(rest) == 0
		var err error
		if ops[0], err = first.Put(id); err != nil {
			return timer.Timer{}, err
		}
		versions, err := d.Write(ctx, ops...)
		if err != nil {
			return timer.Timer{}, err
		}
		if first.Version, first.Attempt = versions[0], id; first.Joined {
			return first, nil
		}
	}
}

// readTimers reads timers as they stand now, without those that are gone.
func (d *Dispatcher) readTimers(ctx context.Context, timers []timer.Timer) (standing []timer.Timer, err error) {
	for some := range slices.Chunk(timers, store.MaxKeys) {
		keys := make([]store.Key, len(some))
		for i := range some {
			keys[i] = some[i].Key()
		}
		items, err := d.Store.Get(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("read timers: %w", err)
		}
		for _, item := range items {
			if !item.Exists() {
				continue
			}
			t, err := timer.FromItem(item)
			if err != nil {
				return nil, err
			}
			standing = append(standing, t)
		}
	}
	return standing, nil
}
