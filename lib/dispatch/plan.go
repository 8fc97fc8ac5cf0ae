package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// ErrStuck says that a schedule's next fire does not advance. No schedule that Belfry accepts does this; should one, its job
// is parked with the error instead of holding up the tick that computes it (node-cron issue 492).
var ErrStuck = errors.New("the next fire does not advance")

// maxFires bounds the fires of one timer in one pass: a horizon of minutes at one fire a second, and what catch-up in full may
// claim of a long downtime before others have their turn.
const maxFires = 1000

// maxCatchUp is how many missed fires a pass claims for one timer.
const maxCatchUp = 100

// maxCounted is up to where skipped fires are counted; a record that holds it means "at least".
const maxCounted = 100_000

// plan is what a fire timer asks for. All times are Unix ms.
type plan struct {
	Skip      *stretch
	Fires     []int64      // to be claimed, oldest first
	To        int64        // the last fire that the timer stands for
	Rest      int64        // the first fire that needs a decision of its own, or never
	Successor *timer.Timer // nil when the generation has no further fire

	Places map[int64]int64 // of those to be claimed that were missed: when each is to start
	Owed   *timer.Timer    // of further such fires, which come in a later pass; nil for none
	Known  int64           // what it was planned with
	Beside bool            // the successor's first fires are to be claimed now: they come behind those owed, and wait for none of them

	all bool // whatever was missed from here on runs
}

// places gives missed fires their places, in turn. The first of a plan has one, however far ahead; the others only such as the pass would claim a
// live fire at.
type places func(fire int64, first bool) (place int64, ok bool)

// Later is the wake-up for what is not going to be better in the next pass: a record that this build cannot read.
func (b Bounds) Later() int64 { return b.Resume + 60_000 }

// stretch is missed fires that the catch-up policy drops. Next is not 0 where another decision among them has the say over what comes
// after: the next round begins there, and claims up to Known however late.
type stretch struct {
	From, Through, Upto int64
	Count               int
	Reason              string
	Next, Known         int64
	failed              error // what stands among them could not be read
}

// Bounds is what a pass knows of time: it reads the clock once.
type Bounds struct {
	Now     int64       // the pass's clock, read before the horizon was published
	Horizon int64       // fires up to it are claimed
	Reach   int64       // up to it ticks under way may have passed the places of timers: see Dispatcher.Reach
	Resume  int64       // wake-up for what must wait for a later pass: beyond what this one reads
	Next    int64       // wake-up for what the next pass is to go on with: just beyond what this one reads
	Pace    *Pace       // gives missed fires their places; nil leaves them to a pass that has one
	Watch   bool        // arm a check for each claim: the timer that led to it lies behind the first sweep
	Settled int64       // until then no lease is judged: living workers may have been unable to renew theirs
	Mark    uint64      // the Attempt of the next checks, by which the pass knows them again; 0 for none
	Gaps    []timer.Gap // in which fires were found late
	Back    int64       // before it nobody may have been there to start what had its place
	Doubt   int64       // fires up to it that have no run may have had one that has expired since: they are not made again
}

// ResumeAfter is how far beyond the reach of ticks a timer goes that puts something off to a later pass.
const ResumeAfter = 2 * time.Second

// Forgotten is after how long it says nothing any more that a run is not there: it may have ended and been cleaned up. Less than
// the shortest retention.
const Forgotten = job.MinRetention - time.Hour

// doubts tells of a fire whether an earlier pass may have claimed it so long ago that its run is gone. It had to have read the timer.
func (b Bounds) doubts(t timer.Timer, fire int64) bool { return t.Wake <= b.Doubt && fire <= b.Doubt }

// late tells whether a fire was found late by the pass that first published a horizon beyond it. That one's clock counts, and not ours, so
// that all passes take it for the same. What nobody has claimed for so long that it would not be spared as the newest is late whoever had found it.
func (b Bounds) late(fire int64) bool { return b.lateUntil(fire) >= fire }

// lateUntil gives how far a time goes that a fire is late in, or less than the fire where it is in time.
func (b Bounds) lateUntil(fire int64) int64 {
	if old := b.Now - job.NewestWithin.Milliseconds(); fire < old {
		return old - 1
	}
	for _, g := range b.Gaps {
		end := g.Before
		if late := b.Now - job.Grace.Milliseconds(); end > late+2*MaxSkew.Milliseconds() {
			// Two clocks of now are no further apart, so this one was ahead, and has been set back: of what fires since it tells nothing.
			end = late
		}
		if g.After < fire && fire < end {
			return end - 1
		}
	}
	return fire - 1
}

// reached is up to where fires from one on can have been claimed in time by somebody whose horizon is no further than that: where a gap begins behind the first of
// them, no horizon reached into it in time.
func (b Bounds) reached(from, horizon int64) int64 {
	for _, g := range b.Gaps {
		if from <= g.After {
			horizon = min(horizon, g.After)
		}
	}
	return horizon
}

// planFires decides what a timer asks for, from one of its fires on. until ends the generation: a past one's last instant,
// or never for the current one. Fires up to known are claimed however late: another tick may have claimed some of them in
// time. A second round, with its own decision, begins at Rest where it is not never.
func planFires(t timer.Timer, from, known int64, e *job.Edition, until int64, b Bounds, places places) (plan, error) {
	limit := min(b.Horizon, until)
	if t.Owed != 0 {
		limit = min(limit, t.Owed)
	}
	p := plan{To: t.Nominal, Known: known, Rest: never}
	if from > limit || e.Schedule == nil {
		return p, nil
	}
	f, free, newest := from, known, never
	switch {
	case t.Owed != 0 && !b.doubts(t, from):
		free = t.Owed // that they are to run was decided when they were found
	case from > known && b.late(from):
		var err error
		if f, free, newest, err = p.catchUp(t, from, limit, e, until, b); err != nil {
			return plan{}, err
		}
	case known > 0:
		newest = b.spared(e.Schedule, from, until)
	}
	for f <= limit {
		late := f != newest && b.late(f)
		if f > free && late {
			p.Rest = f
			p.To, _ = lastFire(e.Schedule, f, limit)
			if p.Skip != nil {
				p.Skip.Upto = f - 1
			}
			break
		}
		if late && e.Def.CatchUp.Mode != job.CatchUpNone || t.Owed != 0 {
			if places == nil {
				return plan{}, errNoPace
			}
			place, ok := places(f, len(p.Places) == 0)
			if !ok || len(p.Places) == maxCatchUp {
				return p, p.owe(t, f, min(free, limit), newest, limit, e, until, b)
			}
			if p.Places == nil {
				p.Places = map[int64]int64{}
			}
			p.Places[f] = place
		}
		if len(p.Fires) >= maxFires {
			// What is left is for a later pass: the same timer again, with its own nominal time, in a bucket still to come.
			p.finish(t, f, max(b.Resume, f))
			return p, nil
		}
		p.Fires = append(p.Fires, f)
		var err error
		if f, err = nextAfter(e.Schedule, f); err != nil {
			return plan{}, err
		}
	}
	if t.Owed != 0 {
		p.To = p.last()
		return p, nil
	}
	return p, p.succeed(t, e.Schedule, until, b)
}

// succeed ends a plan with the first fire that no pass has come to.
func (p *plan) succeed(t timer.Timer, s job.Fires, until int64, b Bounds) error {
	after, err := nextAfter(s, max(b.Horizon, p.last()))
	if err != nil {
		return err
	}
	if after > until {
		after = never
	}
	p.finish(t, after, after)
	return nil
}

// owe leaves the missed fires from one on, up to where all are to run, to a timer of their own, which the next pass comes upon that can give one
// of them a place. What comes behind them waits for none of them.
func (p *plan) owe(t timer.Timer, from, decided, newest, limit int64, e *job.Edition, until int64, b Bounds) error {
	last := decided
	if t.Owed == 0 {
		var err error
		if last, err = lastLate(e.Schedule, from, min(decided, newest-1), b); err != nil {
			return err
		}
		if p.all {
			// Passes may have died meanwhile, each behind a gap of its own. All that was missed in these runs, the oldest first, and what was found in
			// time in between comes in its turn.
			if last, err = lastMissed(e.Schedule, last, min(limit, newest-1), b); err != nil {
				return err
			}
		}
	}
	wake := b.Next
	for _, place := range p.Places {
		wake = max(wake, place+1)
	}
	owed := t.Owing(from, last, wake)
	p.Owed = &owed
	if t.Owed != 0 {
		p.To = p.last()
		return nil
	}
	next, err := nextAfter(e.Schedule, last)
	if err != nil {
		return err
	}
	if next > limit {
		return p.succeed(t, e.Schedule, until, b)
	}
	p.Beside = true
	p.finish(t, next, max(b.Next, next))
	p.Successor.To, _ = lastFire(e.Schedule, next, limit)
	p.Successor.Direct = p.Successor.Wake > next // else it may be whose successor it is, too
	return nil
}

// never stands for a fire that does not come.
const never = int64(1<<63 - 1)

// spare gives a newest fire where it is not missed, else never.
func (b Bounds) spare(newest int64) int64 {
	if newest >= b.Now-job.NewestWithin.Milliseconds() {
		return newest
	}
	return never
}

// spared is the newest fire from one on where it is not missed, else never.
func (b Bounds) spared(s job.Fires, from, until int64) int64 {
	newest, ok := lastFire(s, from, max(from, min(b.Now, until)))
	if !ok {
		return never
	}
	return b.spare(newest)
}

// catchUp decides over the missed fires from one on that is late, up to the first that is not missed, and gives the first fire that is to be
// claimed. Those up to decided are, and so is the newest where it is not missed (never where it is).
func (p *plan) catchUp(t timer.Timer, from, limit int64, e *job.Edition, until int64, b Bounds) (first, decided, spared int64, err error) {
	newest, ok := lastFire(e.Schedule, from, max(from, min(b.Now, until)))
	if !ok {
		return 0, 0, 0, fmt.Errorf("no fire from %d on, where one was found: %w", from, ErrStuck)
	}
	spared = b.spare(newest)
	if from == spared {
		return from, from, spared, nil
	}
	last, err := lastLate(e.Schedule, from, min(limit, spared-1), b)
	if err != nil {
		return 0, 0, 0, err
	}
	policy := e.Def.CatchUp
	window := b.Now - policy.Window.Std().Milliseconds()
	skipTo := from // the first that is not skipped
	reason := ""
	inTime, err := firstInTime(t, e, max(from, window), last, b.Now)
	if err != nil {
		return 0, 0, 0, err
	}
	switch {
	case newest < window:
		skipTo, reason = last+1, "missed: older than the catch-up window"
	case policy.Mode == job.CatchUpNone:
		skipTo, reason = last+1, "missed: catch-up is none"
	case policy.Mode == job.CatchUpOne && spared == never && tooLate(t, e, newest, b.Now):
		skipTo, reason = last+1, tooLateFor(e)
	case policy.Mode == job.CatchUpOne:
		skipTo, reason = min(newest, last+1), "missed: only the newest fire runs"
	case inTime > max(from, window):
		skipTo, reason = min(inTime, last+1), tooLateFor(e)
	case from < window:
		skipTo, reason = min(window, last+1), "missed: older than the catch-up window"
	}
	if doubtful := min(b.Doubt, last) + 1; b.doubts(t, from) && skipTo < doubtful {
		skipTo, reason = doubtful, "missed: so long ago that nothing shows whether it ran"
	}
	first = from
	if through, ok := lastFire(e.Schedule, from, skipTo-1); ok && skipTo > from {
		count, _ := e.Schedule.Count(instant(from), instant(through), maxCounted)
		p.Skip = &stretch{From: from, Through: through, Upto: b.Horizon, Count: count, Reason: reason}
		if first, err = nextAfter(e.Schedule, through); err != nil {
			return 0, 0, 0, err
		}
	}
	p.all = policy.Mode == job.CatchUpAll && first <= last
	return first, last, spared, nil
}

// tooLateFor is why a fire is not made up for that is too late.
func tooLateFor(e *job.Edition) string {
	if t := e.Def.Times(); t.Start == 0 || t.End != 0 && t.End < t.Start {
		return "missed: longer ago than deadline"
	}
	return "missed: longer ago than expires_after"
}

// tooLate tells of a fire that is claimed now whether its run could not start any more, or not end in time.
func tooLate(t timer.Timer, e *job.Edition, fire, now int64) bool {
	lasts := e.Def.Times().Least()
	return lasts != 0 && now > e.Due(t.Tenant, t.Job, fire)+lasts
}

// firstInTime gives from when on fires are not too late: from itself, or else the first fire behind it that is in time, or what lies behind last. One behind another that is in time may be
// too late by its share of the jitter.
func firstInTime(t timer.Timer, e *job.Edition, from, last, now int64) (int64, error) {
	lasts := e.Def.Times().Least()
	if lasts == 0 {
		return from, nil
	}
	most := time.Duration(0)
	if e.Def.Schedule != nil {
		most = e.Def.Schedule.Jitter.Std()
	}
	surely := now - lasts - most.Milliseconds() // what is older has no time left, whatever its share
	f, err := nextAfter(e.Schedule, max(from, surely)-1)
	for err == nil && f <= last && tooLate(t, e, f, now) {
		f, err = nextAfter(e.Schedule, f)
	}
	if err != nil {
		return 0, err
	}
	if first, err := nextAfter(e.Schedule, from-1); err != nil || first == f {
		return from, err
	}
	return min(f, last+1), nil
}

// lastLate gives the last fire up to a limit such that all from one on are late, which is late itself.
func lastLate(s job.Fires, from, limit int64, b Bounds) (int64, error) {
	for f := from; ; {
		last, ok := lastFire(s, f, min(b.lateUntil(f), limit))
		if !ok {
			return 0, fmt.Errorf("no fire from %d on, where one was found: %w", f, ErrStuck)
		}
		var err error
		if f, err = nextAfter(s, last); err != nil {
			return 0, err
		}
		if f > limit || !b.late(f) {
			return last, nil
		}
	}
}

// lastMissed gives the last late fire from one that is late up to a limit, whatever lies between them.
func lastMissed(s job.Fires, last, limit int64, b Bounds) (int64, error) {
	for _, g := range b.Gaps {
		f, err := nextAfter(s, max(g.After, last))
		if err != nil {
			return 0, err
		}
		if f > limit || !b.late(f) {
			continue
		}
		if last, err = lastLate(s, f, limit, b); err != nil {
			return 0, err
		}
	}
	return last, nil
}

func (p *plan) last() int64 {
	last := p.To
	if p.Skip != nil {
		last = max(last, p.Skip.Through)
	}
	if n := len(p.Fires); n > 0 {
		last = max(last, p.Fires[n-1])
	}
	return last
}

func (p *plan) finish(t timer.Timer, nominal, wake int64) {
	p.To = p.last()
	if nominal != never {
		successor := timer.NewFire(t.Tenant, t.Job, t.Generation, nominal, wake)
		p.Successor = &successor
	}
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// nextAfter is the first fire after an instant, or never.
func nextAfter(s job.Fires, after int64) (int64, error) {
	next, ok := s.Next(instant(after))
	if !ok {
		return never, nil
	}
	if next.UnixMilli() <= after {
		return 0, fmt.Errorf("%s after %s: %w", next, instant(after), ErrStuck)
	}
	return next.UnixMilli(), nil
}

func lastFire(s job.Fires, from, upTo int64) (int64, bool) {
	if upTo < from {
		return 0, false
	}
	last, ok := s.Last(instant(from), instant(upTo))
	return last.UnixMilli(), ok
}

// FiresBetween lists the fires in [from, upTo], Unix ms, the first limit of them. Behind a fire that does not advance there is
// none: nobody can have claimed one.
func FiresBetween(s job.Fires, from, upTo int64, limit int) []int64 {
	var fires []int64
	for f, err := nextAfter(s, from-1); err == nil && f <= upTo && len(fires) < limit; f, err = nextAfter(s, f) {
		fires = append(fires, f)
	}
	return fires
}
