package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/internal/virtual"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Options bound a simulation, and say what it draws. Zero fields have their defaults.
type Options struct {
	// Seed draws jitter and the waits between attempts. Default: nil, where each is as long as it may be
	Seed *uint64

	Runs     int           // how many runs there may be, skipped ones included, and steps of those that have begun. Default: DefaultRuns
	Attempts int           // how many attempts there may be. Default: DefaultAttempts
	Events   int           // how many events there may be, of a scenario that asks for them. Default: DefaultEvents
	Data     int64         // bytes of results and of inputs of steps that there may be. Default: DefaultData
	Span     time.Duration // how long a scenario without Until lasts. Default: OpenSpan

	// Cut kills and recovers the server behind every so many writes, LeastCut or more: what becomes of runs stays the same, though some may start
	// a moment later. Default: 0, never
	Cut int

	// Progress is told now and then how far the simulation is, on the goroutine of Play. Default: nobody is
	Progress func(now time.Time, runs int)
}

// The defaults of Options.
const (
	DefaultRuns     = 1_000_000
	DefaultAttempts = 2_000_000
	DefaultEvents   = 10_000_000
	DefaultData     = 4 << 30
)

// LeastCut is the least that Options.Cut may be: a pass of a tick has some writes that it makes again each time, and is to come further than these.
const LeastCut = 10

// never stands for an instant that does not come.
const never = int64(math.MaxInt64)

// longestAfter is how long after the end of the schedules' time a simulation goes on at most. Who waits for longer was asked for years ahead.
const longestAfter = 6 * 366 * 24 * time.Hour

// player plays one scenario. All its times are Unix ms as they pass, not as the hosts' clocks show them.
type player struct {
	*house
	scenario Scenario
	options  Options
	limit    int64 // the schedules fire up to here
	now      int64
	instants int

	busy  busy
	taken map[branch]int // how many outcomes were taken
	most  int            // of busy

	workers int // attempts at once
	turn    int // of the pools, for the next offer
	starts  int

	script []Line // in the order of their times, and of the document where these are equal
	names  map[string]run.ID
	as     map[run.ID]string

	workflows map[edition]*flow.Workflow // of runs that have begun

	down   int64       // until when there is no tick, no worker and no API; 0: there are
	passed int64       // when ticks made their last pass, by the hosts' clocks; 0: a moment ago
	owed   bool        // a pass is to be made, whatever is due
	left   virtual.Due // of a pass that a kill has ended

	again   bool // the line is repeated whose answer was lost
	refused []Refusal
	looks   map[string]*Report
}

// Play simulates a scenario. A bound of Options that is hit ends it, and stands in the report; the error is that of ctx, or of a simulation
// that went wrong by itself.
func Play(ctx context.Context, s Scenario, o Options) (Report, error) {
	if o.Runs == 0 {
		o.Runs = DefaultRuns
	}
	if o.Attempts == 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Events == 0 {
		o.Events = DefaultEvents
	}
	if o.Data == 0 {
		o.Data = DefaultData
	}
	if o.Span == 0 {
		o.Span = OpenSpan
	}
	if o.Cut != 0 && o.Cut < LeastCut {
		return Report{}, invalid.Field("cut", strconv.Itoa(o.Cut), fmt.Sprintf("at least %d writes, or 0 for no kill", LeastCut))
	}
	until := s.Until
	if until.IsZero() {
		until = s.Start.Add(o.Span)
	}
	p := &player{scenario: s, options: o, limit: until.UnixMilli(), now: s.Start.UnixMilli(), workers: s.Workers, taken: map[branch]int{},
		names: map[string]run.ID{}, as: map[run.ID]string{}, workflows: map[edition]*flow.Workflow{}, looks: map[string]*Report{}, refused: []Refusal{}}
	p.busy.init()
	p.script = slices.Clone(s.Script)
	slices.SortStableFunc(p.script, func(a, b Line) int { return a.At.Compare(b.At) })
	var err error
	if p.house, err = build(ctx, s, o.Seed, until, o.Cut, p.renewed, seams{}); err != nil {
		return Report{}, fmt.Errorf("simulate: %w", err)
	}
	defer p.house.close()
	stopped, err := p.play(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("simulate: at %s: %w", p.clock.Passed().Format(time.RFC3339), err)
	}
	report, err := p.report(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("simulate: %w", err)
	}
	report.Looks, report.Stopped = p.looks, stopped
	return report, nil
}

// play goes from one instant at which something is due to the next.
func (p *player) play(ctx context.Context) (*Stopped, error) {
	for _, g := range p.scenario.Gates {
		if err := p.line(ctx, Line{Do: SetGate, Gate: g.Name, Limits: &g.Definition}); err != nil {
			return nil, err
		}
	}
	for _, j := range p.scenario.Jobs {
		if err := p.line(ctx, Line{Do: Put, Job: j.Name, Definition: j.Definition}); err != nil {
			return nil, err
		}
	}
	for {
		if err := p.instant(ctx); err != nil {
			return nil, err
		}
		if stopped := p.bounded(); stopped != nil {
			return stopped, nil
		}
		next := p.next()
		if next == never || p.finished() {
			return p.cutOff(ctx)
		}
		if next > p.limit+longestAfter.Milliseconds() {
			return p.stop(BoundSpan, schedule.Duration(longestAfter).String()), nil
		}
		p.now = max(p.now, next)
		p.clock.Set(time.UnixMilli(p.now))
		if p.instants++; p.instants%1024 == 0 && p.options.Progress != nil {
			p.options.Progress(p.clock.Passed(), p.ledger.count())
		}
	}
}

// bounded tells of a bound of the options that is hit.
func (p *player) bounded() *Stopped {
	switch {
	case p.ledger.count() > p.options.Runs:
		return p.stop(BoundRuns, strconv.Itoa(p.options.Runs))
	case p.starts > p.options.Attempts:
		return p.stop(BoundAttempts, strconv.Itoa(p.options.Attempts))
	case p.ledger.data > p.options.Data:
		return p.stop(BoundData, strconv.FormatInt(p.options.Data, 10))
	case p.ledger.told > p.options.Events:
		return p.stop(BoundEvents, strconv.Itoa(p.options.Events))
	}
	return nil
}

func (p *player) stop(bound, limit string) *Stopped {
	return &Stopped{Bound: bound, Limit: limit, At: p.clock.Passed()}
}

// cutOff tells whether a scenario without an end would have gone on.
func (p *player) cutOff(ctx context.Context) (*Stopped, error) {
	if !p.scenario.Until.IsZero() {
		return nil, nil
	}
	more, err := p.firesLater(ctx, p.scenario)
	if err != nil || !more {
		return nil, err
	}
	return &Stopped{Bound: BoundSpan, Limit: schedule.Duration(p.options.Span).String(), At: time.UnixMilli(p.limit).UTC()}, nil
}

// up tells whether there are ticks, workers and an API.
func (p *player) up() bool { return p.down == 0 }

// wall is what the hosts' clocks show.
func (p *player) wall() int64 { return p.clock.Now().UnixMilli() }

// next is the next instant at which there may be something to do, or never.
func (p *player) next() int64 {
	at := p.busy.first()
	if len(p.script) > 0 {
		at = min(at, p.script[0].At.UnixMilli())
	}
	if !p.up() {
		return min(at, p.down)
	}
	if p.owed {
		return p.now
	}
	if p.room() > 0 {
		at = min(at, p.nextMessage())
	}
	if wake, ok := p.diary.Next(); ok {
		at = min(at, max(p.now, wake-(p.wall()-p.now)))
	}
	return at
}

// finished tells whether nothing can happen any more, though something may be looked after for ever.
func (p *player) finished() bool {
	return p.up() && len(p.busy.order) == 0 && len(p.script) == 0 && !p.owed && !p.diary.Calls() &&
		(p.ledger.going(p.workers > 0) == 0 || p.ledger.stuck(p.workers > 0))
}

// room is how many attempts may be started.
func (p *player) room() int { return p.workers - len(p.busy.order) }

// instant does all that is due at one: ends and what follows from them, then the lines of the script, then what ticks find, with what follows
// from each.
func (p *player) instant(ctx context.Context) error {
	if p.down != 0 && p.now >= p.down {
		// Workers live on while a server is away, and could not renew their leases.
		p.down, p.owed = 0, true
		p.ledger.moved = p.clock.Now()
		p.dispatch.Unsettle()
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	for len(p.script) > 0 && p.script[0].At.UnixMilli() <= p.now {
		l := p.script[0]
		p.script = p.script[1:]
		if err := p.line(ctx, l); err != nil {
			return fmt.Errorf("line %d: %w", l.Number, err)
		}
		p.ledger.moved = p.clock.Now()
		if err := p.settle(ctx); err != nil {
			return err
		}
		if p.bounded() != nil { // there may be thousands of lines at one instant
			return nil
		}
	}
	for p.up() {
		made, err := p.pass(ctx)
		if err != nil {
			return err
		}
		if !made {
			p.fresh = time.Time{}
		}
		if err := p.settle(ctx); err != nil || !made {
			return err
		}
	}
	return nil
}

// settle has what is due in attempts done, and starts what may be started, one after the other, until nothing more is to be done.
func (p *player) settle(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.heed(ctx); err != nil || p.ledger.data > p.options.Data {
			return err
		}
		if a := p.busy.due(p.now); a != nil {
			if err := p.attend(ctx, a); err != nil {
				return err
			}
			continue
		}
		if !p.up() || p.room() <= 0 {
			return nil
		}
		if took, err := p.take(ctx); err != nil || !took {
			return err
		}
	}
}

// pass has a tick look at what is due, and tells whether something was.
func (p *player) pass(ctx context.Context) (made bool, err error) {
	due := p.left.And(p.diary.Due(p.wall(), p.dispatch.HorizonAt(p.wall())))
	p.left = due // the diary has it no more: where the server dies before the pass, of a renewal, it is to recover from there
	if p.ledger.unended() == 0 {
		due.Sweeps = false // which are for those that have not ended, and for listings that nobody reads here
	}
	if !due.Any() && !p.owed {
		p.left = virtual.Due{}
		return false, nil
	}
	last := p.passed
	if last == 0 {
		last = p.wall()
	}
	for _, id := range due.Looks {
		if err := p.renewed(ctx, id); err != nil {
			return false, err
		}
	}
	p.left, p.passed, p.owed = virtual.Due{}, 0, false
	for _, m := range p.mail {
		m.hold()
	}
	err = p.ticks.Pass(ctx, due, last)
	if p.ledger.killed() {
		p.left, p.passed, p.owed = due, last, true
		return true, p.restart(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("a tick: %w", err)
	}
	for _, m := range p.mail {
		if err := m.release(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}
