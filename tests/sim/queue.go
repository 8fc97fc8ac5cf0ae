package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/faulty"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
)

// line is one queue: of a host that is alone, gone with it, or of all hosts.
type line struct {
	world *World
	name  string
	local *queuelocal.Queue
	inner queue.Queue     // local with faults
	turns []time.Duration // when something hidden may be seen again, since the world began; sorted
	awake chan struct{}   // closed at each change, for receivers that wait
	dead  *line           // of what was handed out too often; nil where nothing is given up
}

func newLine(w *World, name string) *line {
	l := &line{world: w, name: name, local: queuelocal.New(queuelocal.Config{Now: w.Now}), awake: make(chan struct{})}
	l.inner = faulty.Wrap(l.local, faulty.Hooks{Send: l.sent, Receive: l.received, Delete: l.deleted, Extend: l.extended})
	return l
}

func (l *line) sent(queue.Priority, queue.Outgoing) (fate faulty.Fate) {
	w := l.world
	switch {
	case w.full:
		w.luck.counts[QueueFull]++
		return faulty.Fate{Err: queue.ErrFull, Drop: true}
	case w.luck.strikes(SendFailed, w.Faults.SendFailed):
		return faulty.Fate{Err: errReset, Drop: true}
	case w.luck.strikes(SendLost, w.Faults.SendLost):
		return faulty.Fate{Drop: true}
	case w.luck.strikes(SendUnknown, w.Faults.SendUnknown):
		fate.Err = errReset
	}
	fate.Double = w.luck.strikes(Doubled, w.Faults.Doubled)
	if w.luck.strikes(Delayed, w.Faults.Delayed) {
		fate.Delay = w.luck.upTo(Delayed, queue.MaxDelay)
	}
	return fate
}

func (l *line) received(queue.Message) (fate faulty.Fate) {
	w := l.world
	fate.Drop = w.luck.strikes(ReceiveLost, w.Faults.ReceiveLost)
	return fate
}

func (l *line) deleted(queue.Message) faulty.Fate {
	if w := l.world; w.luck.strikes(DeleteFailed, w.Faults.DeleteFailed) {
		return faulty.Fate{Err: errReset, Drop: true}
	}
	return faulty.Fate{}
}

func (l *line) extended(m queue.Message) faulty.Fate { return l.deleted(m) }

// expect notes that something hidden may be seen after d, and wakes who waits for anything.
func (l *line) expect(d time.Duration) {
	if d > 0 {
		at := l.world.sched.elapsed() + d
		i, found := slices.BinarySearch(l.turns, at)
		if !found {
			l.turns = slices.Insert(l.turns, i, at)
		}
	}
	close(l.awake)
	l.awake = make(chan struct{})
}

// due is how long it may take until there is something to receive; 0 for now.
func (l *line) due() time.Duration {
	depth, err := l.local.Depth(l.world.ctx)
	if err != nil {
		return math.MaxInt64
	}
	for _, d := range depth {
		if d.Ready > 0 {
			return 0
		}
	}
	now := l.world.sched.elapsed()
	i, _ := slices.BinarySearch(l.turns, now+1)
	if i == len(l.turns) {
		return math.MaxInt64
	}
	return l.turns[i] - now
}

// pool is a line as one host sees it: each call is a step.
type pool struct {
	line *line
	host *host
}

var _ queue.Queue = pool{}

func (p pool) Send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) (errs []error, err error) {
	if err := queue.CheckSend(priority, batch); err != nil {
		return nil, err
	}
	var sum xxhash.Digest
	sum.Reset()
	longest := time.Duration(0)
	for _, m := range batch {
		_, _ = sum.Write(m.Body)
		longest = max(longest, m.Delay)
	}
	c := &pending{}
	err = p.host.sched.ask(ctx, c, p.host.op("send", p.line.name, strconv.FormatUint(sum.Sum64(), 36), byQueue, func() string {
		errs, c.err = p.line.inner.Send(p.line.world.ctx, priority, batch...)
		for _, m := range batch {
			p.line.expect(m.Delay)
		}
		if p.line.world.Faults.Delayed > 0 {
			p.line.expect(queue.MaxDelay)
		}
		return failure(errs, c.err)
	}))
	return errs, err
}

// failure tells for the trace whether anything of a batch failed.
func failure(errs []error, err error) string {
	if err != nil {
		return err.Error()
	}
	for _, err := range errs {
		if err != nil {
			return "failed"
		}
	}
	return ""
}

// Receive asks for a grant only where there is something to receive: who waits in vain takes no step.
func (p pool) Receive(ctx context.Context, most int, wait, visibility time.Duration) (taken []queue.Message, err error) {
	l, s := p.line, p.host.sched
	until := s.elapsed() + wait
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.yield()
		due := l.due()
		if due == 0 {
			c := &pending{}
			err := s.ask(ctx, c, p.host.op("receive", l.name, "", byQueue, func() string {
				taken, c.err = l.take(most, visibility)
				return outcomeOf(taken)
			}))
			if err != nil || len(taken) > 0 {
				return taken, err
			}
			due = l.due()
		}
		left := until - s.elapsed()
		if left <= 0 {
			return nil, nil
		}
		awake, timer := l.awake, time.NewTimer(max(min(left, due), time.Millisecond))
		select {
		case <-awake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func outcomeOf(taken []queue.Message) string {
	if len(taken) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d messages", len(taken))
}

func (l *line) take(most int, visibility time.Duration) ([]queue.Message, error) {
	w := l.world
	taken, err := l.inner.Receive(w.ctx, most, 0, visibility)
	l.expect(visibility)
	if err != nil {
		return nil, err
	}
	taken = l.giveUp(taken)
	if len(taken) > 1 && w.luck.strikes(Reordered, w.Faults.Reordered) {
		w.luck.streams[Reordered].Shuffle(len(taken), func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
	}
	if n := len(taken); n > 0 && n < most && w.luck.strikes(Doubled, w.Faults.Doubled) {
		taken = append(taken, taken[w.luck.streams[Doubled].IntN(n)])
	}
	for _, m := range taken {
		if w.luck.strikes(EndedEarly, w.Faults.EndedEarly) {
			early := w.luck.upTo(EndedEarly, visibility)
			_, _ = l.local.Extend(w.ctx, early, m)
			l.expect(early)
		}
	}
	return taken, nil
}

func (p pool) Delete(ctx context.Context, batch ...queue.Message) (errs []error, err error) {
	if err := queue.CheckDelete(batch); err != nil {
		return nil, err
	}
	c := &pending{}
	err = p.host.sched.ask(ctx, c, p.host.op("delete", p.line.name, batch[0].Receipt, byQueue, func() string {
		errs, c.err = p.line.inner.Delete(p.line.world.ctx, batch...)
		return failure(errs, c.err)
	}))
	return errs, err
}

func (p pool) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) (errs []error, err error) {
	if err := queue.CheckExtend(visibility, batch); err != nil {
		return nil, err
	}
	c := &pending{}
	err = p.host.sched.ask(ctx, c, p.host.op("extend", p.line.name, batch[0].Receipt, byQueue, func() string {
		errs, c.err = p.line.inner.Extend(p.line.world.ctx, visibility, batch...)
		p.line.expect(visibility)
		return failure(errs, c.err)
	}))
	return errs, err
}

// Depth takes no step: it may be behind.
func (p pool) Depth(ctx context.Context) (map[queue.Priority]queue.Depth, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.host.sched.yield()
	return p.line.local.Depth(ctx)
}

// Close does nothing: a line of a host ends with it.
func (p pool) Close() error { return nil }
