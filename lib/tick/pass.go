package tick

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// stint is what bounds a pass.
type stint struct {
	until time.Duration // on the elapsed clock: nothing is begun after it; 0 for no end
	work  int           // queries and timers together: no page is begun beyond
	help  *Help         // a shard that has nothing left of it is passed over; nil for none
}

// pass is one pass over one shard.
type pass struct {
	*Ticker
	bounds dispatch.Bounds
	stint
	used   atomic.Int64  // queries and timers
	spare  time.Duration // on the elapsed clock: what can wait is kept short behind it, since the next fires are to be claimed
	behind bool          // something is left that a further pass may do at once
	under  underWay      // sweeps

	counted time.Duration // for so long it has been at its counts

	// saving has room for the one who writes the shard, which is under the version of the write before. It is no mutex, which is not to be
	// held over a request.
	saving chan struct{}

	mu     sync.Mutex
	report *Report
	shard  timer.Shard
	at     []string      // by bucket: the lowest sort key that was not handled
	busy   bool          // there were timers: what was done is worth a write
	wrote  timer.Shard   // as it stands in the store
	when   time.Duration // of that write, on the elapsed clock
	taken  bool          // another tick has the shard
}

// pass is one pass over a shard: lease and horizon, due timers, watermark, sweeps. It tells whether something is left.
func (t *Ticker) pass(ctx context.Context, n int, stint stint, report *Report) (behind bool, err error) {
	s, under, now, paced, err := t.take(ctx, n, stint.help)
	t.noteTaken(n, err == nil || errors.Is(err, errHeld) || errors.Is(err, errDone))
	if err != nil {
		return false, err
	}
	report.Passes++
	first, end := t.Dispatch.Layout.BucketsOf(n)
	// Not to the horizon: after a step back of the clock that lies far ahead, and what is put in between must still be read.
	to := min(s.Horizon, t.Dispatch.HorizonAt(now))
	began := t.Dispatch.Elapsed()
	p := &pass{Ticker: t, stint: stint, report: report, shard: s, wrote: s, when: began, spare: began + t.Dispatch.LookAhead/4, under: under,
		at: s.Positions(first, end), saving: make(chan struct{}, 1),
		bounds: dispatch.Bounds{Now: now, Horizon: s.Horizon, Reach: t.Dispatch.Reach(s.Horizon, now), Resume: to + dispatch.ResumeAfter.Milliseconds(), Next: to + 1,
			Settled: s.Settled, Gaps: s.Gaps, Back: t.Dispatch.Back(s, now), Doubt: min(s.Doubt, now-dispatch.Forgotten.Milliseconds())}}
	// What has come to pass meanwhile is no place any more. It is no look at the clock: nothing is claimed by it.
	floor := func() int64 { return max(paced, now+(t.Dispatch.Elapsed()-began).Milliseconds()) }
	p.bounds.Pace = t.Dispatch.NewPace(n, to, floor, s.Paced, func(ctx context.Context) error { return p.save(ctx, false) })
	stop := p.renewing(ctx)
	err = p.through(ctx, to)
	stop()
	if !errors.Is(err, errHeld) {
		err = errors.Join(err, p.leave(ctx))
	}
	if errors.Is(err, errHeld) {
		return false, err
	}
	report.Behind = report.Behind || p.behind
	if report.Oldest == 0 || p.shard.Watermark < report.Oldest {
		report.Oldest = p.shard.Watermark
	}
	if swept := p.wrote.Oldest(); report.Swept == 0 || swept < report.Swept {
		report.Swept = swept
	}
	return p.behind, err
}

// through does what is due, and looks again at what was.
func (p *pass) through(ctx context.Context, to int64) error {
	dueErr := p.due(ctx, to)
	if errors.Is(dueErr, errHeld) {
		return dueErr
	}
	p.behind = dueErr == nil && p.shard.Watermark < to
	return errors.Join(dueErr, p.sweeps(ctx))
}

// due handles the timers that wake up to an instant, a minute at a time, oldest first, each bucket from where it was handled to. A
// bucket that fails holds the watermark where it is, and is left alone for the rest of the pass; the others go on.
func (p *pass) due(ctx context.Context, to int64) error {
	failed := make([]bool, len(p.at))
	var errs []error
	for minute := timer.Minute(timer.FromSortTime(slices.Min(p.at))); minute <= timer.Minute(to) && !p.enough(); minute++ {
		w := walk{minute: minute, to: timer.SortFrom(min(to+1, (minute+1)*60_000)), enough: p.enough, handle: (*pass).wake,
			from: make([]string, len(p.at)), moved: p.reach}
		for i, at := range p.at {
			if !failed[i] {
				w.from[i] = at
			}
		}
		for i, err := range p.walk(ctx, &w) {
			if err != nil {
				errs = append(errs, err)
				failed[i] = true
			}
		}
	}
	// All claims up to here are durable, and sent or under a check timer: the watermark may pass them.
	p.mu.Lock()
	defer p.mu.Unlock()
	first, _ := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	p.shard.Reach(first, p.at)
	if p.taken {
		return errHeld
	}
	return errors.Join(errs...)
}

// reach notes how far a bucket was handled.
func (p *pass) reach(i int, position string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[i] = position
}

// enough tells whether the pass is to begin nothing further.
func (p *pass) enough() bool { return p.used.Load() >= int64(p.work) || p.over() }

func (p *pass) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken || p.until > 0 && p.Dispatch.Elapsed() >= p.until
}

// save writes the cursors as far as they have come, and the lease: renewed, or given up so that another may go on at once.
//
// Durable before: every claim and check timer up to here; sent: every claim. So the cursors may pass them. A crash before this
// write makes a later pass read them again.
func (p *pass) save(ctx context.Context, release bool) error {
	if err := ctx.Err(); err != nil { // of two that are ready select takes any
		return err
	}
	select {
	case p.saving <- struct{}{}:
		defer func() { <-p.saving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	first, _ := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	p.shard.Reach(first, p.at)
	p.shard.Paced = p.bounds.Pace.Given()
	s := p.shard
	p.mu.Unlock()
	if now, err := p.Dispatch.Clock(); err == nil {
		s.Lease = now + p.Lease.Milliseconds()
	}
	if release {
		s.Lease = 0
	}
	when := p.Dispatch.Elapsed()
	err := p.write(ctx, &s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.taken = p.taken || errors.Is(err, errHeld)
		return err
	}
	p.shard.Version, p.shard.Lease = s.Version, s.Lease
	p.wrote, p.when = s, when
	return nil
}

// renewing keeps the shard until it is stopped, however long its pages take: losing it would let another tick do all of it a second
// time. What was reached is written with it, so that a crash of a long pass costs a part of it.
func (p *pass) renewing(ctx context.Context) (stop func()) {
	if p.Dispatch.Still { // a pass takes no time then
		return func() {}
	}
	every := max(p.Lease/3, time.Second)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		wait := time.NewTimer(every)
		defer wait.Stop()
		for {
			select {
			case <-end:
				return
			case <-ctx.Done():
				return
			case <-wait.C:
			}
			p.mu.Lock()
			old := p.Dispatch.Elapsed()-p.when >= every
			p.mu.Unlock()
			if old {
				if err := p.save(ctx, false); err != nil && !errors.Is(err, errHeld) && ctx.Err() == nil {
					p.Log.WarnContext(ctx, "the lease of a shard was not renewed", "shard", p.shard.Number, "error", err)
				}
			}
			wait.Reset(every)
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// leave ends the pass. One that came upon no timer writes nothing: where the cursors have come to, this process writes with its next
// lease, and should it not come to that, reading so little again costs no more than the write. Where something is left, the lease is
// given up.
func (p *pass) leave(ctx context.Context) error {
	if p.behind || p.busy || p.used.Load() > int64(8*len(p.at)) {
		if err := p.save(ctx, p.behind); err != nil {
			return err
		}
	}
	p.keep(p.shard, p.under)
	return nil
}
