package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// FireTimer is a fire timer with what was read after it: the job, and the definition of the timer's generation.
type FireTimer struct {
	Timer   timer.Timer
	Edition *job.Edition
	Until   int64 // the last instant at which the generation is in force; Forever for the current one
	Gone    bool  // the job was deleted: what would be claimed ends as cancelled
}

// Forever is the Until of a generation that no edit has ended.
const Forever = never

// Tally counts what a pass did.
type Tally struct {
	Timers  int // read and handled
	Claimed int // runs
	Resent  int // claims found standing
	Skipped int // fires dropped by catch-up
	Sent    int
	Unsent  int // left to a check timer
	Parked  int // jobs whose next fire does not advance
}

// Add sums up.
func (t *Tally) Add(o Tally) {
	t.Timers += o.Timers
	t.Claimed += o.Claimed
	t.Resent += o.Resent
	t.Skipped += o.Skipped
	t.Sent += o.Sent
	t.Unsent += o.Unsent
	t.Parked += o.Parked
}

// firing is one timer on its way through the steps.
type firing struct {
	FireTimer
	tracer      *trace.Tracer
	from, known int64
	plan        plan
	head        *wish
	rest        []*wish
	owed        *timer.Timer // to be armed now that the head stands
	decided     run.Run      // a decision that its first fire lies within
	stands      bool         // it owes a single fire, at which a run stands that was claimed
}

// Fires claims and sends what fire timers ask for up to a published horizon. The order is the protocol's: To, successor,
// claim, send; only then may the caller's cursor move. Whatever a crash leaves behind, the timer is read again and every
// step finds its own traces: To only grows, a successor stands already, a claim is found Standing and sent again.
//
// An error leaves the cursor where it is. What failed for single runs only is put off by a timer of its own, so that one
// throttled partition makes nothing late elsewhere.
func (d *Dispatcher) Fires(ctx context.Context, epoch uint64, b Bounds, timers []FireTimer) (Tally, error) {
	tally := Tally{Timers: len(timers)}
	var send []Outgoing
	var late []timer.Timer
	open := make([]*firing, 0, len(timers))
	for _, t := range timers {
		open = append(open, &firing{FireTimer: t, tracer: d.Tracer, from: t.Timer.Nominal})
	}
	if err := d.lookBack(ctx, b, open); err != nil {
		return tally, err
	}
	open, passed, err := d.passOver(ctx, b, open)
	if err != nil {
		return tally, err
	}
	for len(open) > 0 || len(passed) > 0 {
		planned := open[:0]
		for _, f := range open {
			var err error
			f.plan, err = planFires(f.Timer, f.from, f.known, f.Edition, f.Until, b, f.places(b))
			switch {
			case errors.Is(err, errNoPace):
				again := timer.NewFire(f.Timer.Tenant, f.Timer.Job, f.Timer.Generation, f.from, b.Resume)
				again.Owed = f.Timer.Owed
				late = append(late, again)
			case errors.Is(err, ErrStuck):
				tally.Parked++
				if err := d.Park(ctx, f.Timer, err); err != nil {
					return tally, err
				}
			case err != nil:
				return tally, err
			case len(f.plan.Fires) > 0 || f.plan.Skip != nil:
				planned = append(planned, f)
			}
		}
		if err := d.covered(ctx, b, planned); err != nil {
			return tally, err
		}
		planned, open = inTurn(planned)
		if err := d.prepare(ctx, planned); err != nil {
			return tally, err
		}
		d.countOnce(ctx, planned)
		if err := b.Pace.keep(ctx, planned); err != nil {
			return tally, err
		}
		if err := d.awake(b); err != nil {
			return tally, err
		}
		if err := d.claimHeads(ctx, epoch, b, planned); err != nil {
			return tally, err
		}
		var rest []*wish
		for _, f := range planned {
			others := f.known > 0 || f.Timer.Owed != 0 || d.Stale(b.Horizon, b.Now)
			again := f.adopt(b, epoch, d.HorizonAt)
			if others {
				if err := d.heed(ctx, f); err != nil {
					return tally, err
				}
			}
			if again {
				open = append(open, f)
			}
			rest = append(rest, f.rest...)
			if beside := f.beside(); beside != nil {
				open = append(open, beside)
			}
		}
		// Not before the head is durable, which is the decision that they are to run.
		if err := d.Arm(ctx, owing(b, planned, passed)...); err != nil {
			return tally, err
		}
		passed = nil
		if err := d.awake(b); err != nil {
			return tally, err
		}
		if err := d.grant(ctx, rest); err != nil {
			return tally, err
		}
		for _, f := range planned {
			out, failed := f.collect(ctx, b, &tally)
			send, late = append(send, out...), append(late, failed...)
			d.makeRoom(ctx, f)
		}
	}
	if b.Watch {
		for _, o := range send {
			late = append(late, d.Wakeup(ctx, o.Run, b.Reach))
		}
	}
	// Durable now: every claim. A crash here leaves them unsent; the next pass over the same timers sends them.
	unsent, err := d.Send(ctx, send)
	endClaims(send)
	if err != nil {
		return tally, fmt.Errorf("send: %w", err)
	}
	tally.Sent, tally.Unsent = len(send)-len(unsent), len(unsent)
	for _, o := range unsent {
		late = append(late, timer.NewCheck(o.Run.Tenant, o.Run.ID, b.Resume))
	}
	return tally, d.Arm(ctx, late...)
}

// prepare writes To where a timer stands for several fires, then the successors.
func (d *Dispatcher) prepare(ctx context.Context, planned []*firing) error {
	var ops []store.Op
	var grown []*firing
	for _, f := range planned {
		if f.plan.To > f.Timer.To {
			f.Timer.To = f.plan.To
			op, err := f.Timer.Put(d.NewID())
			if err != nil {
				return err
			}
			ops, grown = append(ops, op), append(grown, f)
		}
	}
	verdicts, err := d.WriteEach(ctx, ops)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		f := grown[i]
		if v.Err == nil {
			f.Timer.Version = v.Version
			continue
		}
		if err := d.grow(ctx, &f.Timer, v.Err); err != nil {
			return fmt.Errorf("timer %s: %w", f.Timer.Key(), err)
		}
	}
	// Durable now: what each timer stands for. A crash here: the sweep misses the fires up to To, and makes them.
	var successors []timer.Timer
	for _, f := range planned {
		if f.plan.Successor != nil {
			successors = append(successors, *f.plan.Successor)
		}
	}
	return d.Arm(ctx, successors...)
}

// grow raises a timer's To over what another tick wrote in between.
func (d *Dispatcher) grow(ctx context.Context, t *timer.Timer, failed error) error {
	for round := 0; round < maxRounds; round++ {
		conflict := store.AsConflict(failed)
		if conflict == nil {
			return failed
		}
		if !conflict.Standing.Exists() {
			return nil // cleaned up long ago: a stopped tick has woken, and everything here is done
		}
		standing, err := timer.FromItem(conflict.Standing)
		if err != nil {
			return err
		}
		t.Version = standing.Version
		if standing.To >= t.To {
			t.To = standing.To
			return nil
		}
		standing.To = t.To
		op, err := standing.Put(d.NewID())
		if err != nil {
			return err
		}
		var versions []uint64
		if versions, failed = d.Write(ctx, op); failed == nil {
			t.Version = versions[0]
			return nil
		}
	}
	return failed
}

// Arm puts new timers. One that stands already is as good as armed.
func (d *Dispatcher) Arm(ctx context.Context, timers ...timer.Timer) error {
	errs, err := d.ArmEach(ctx, timers)
	if err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ArmEach is Arm with an error for each timer. With an error of the whole call, any of them may have been put. A timer without an Attempt
// gets one.
func (d *Dispatcher) ArmEach(ctx context.Context, timers []timer.Timer) ([]error, error) {
	ops := make([]store.Op, len(timers))
	oweAll(timers)
	for i := range timers {
		t := &timers[i]
		attempt := t.Attempt
		if attempt == 0 {
			attempt = d.NewID()
		}
		var err error
		if ops[i], err = t.Put(attempt); err != nil {
			return nil, err
		}
	}
	ops, at := store.Once(ops)
	verdicts, err := d.WriteEach(ctx, ops)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(timers))
	for i, n := range at {
		switch conflict := store.AsConflict(verdicts[n].Err); {
		case conflict != nil && (timers[i].Owed != 0 || timers[i].Kind == timer.Fire && !timers[i].Direct && leftToSweeps(conflict.Standing)):
			errs[i] = d.armBeside(ctx, timers[i], conflict)
		case conflict == nil && verdicts[n].Err != nil:
			errs[i] = fmt.Errorf("arm timer %s: %w", ops[n].Key, verdicts[n].Err)
		}
	}
	return errs, nil
}

// oweAll has timers of owed fires that are to stand at one place stand for what each of them owes.
func oweAll(timers []timer.Timer) {
	var most map[store.Key]int64
	for i := range timers {
		if t := &timers[i]; t.Owed != 0 {
			if most == nil {
				most = map[store.Key]int64{}
			}
			most[t.Key()] = max(most[t.Key()], t.Owed)
		}
	}
	for i := range timers {
		if t := &timers[i]; t.Owed != 0 {
			t.Owed = most[t.Key()]
		}
	}
}

// armBeside arms a fire timer where another one stands at its place, a moment later if that one stands for less: it may ask for the place of a single run,
// or be left to the sweeps.
func (d *Dispatcher) armBeside(ctx context.Context, t timer.Timer, conflict *store.Conflict) error {
	standing, err := timer.FromItem(conflict.Standing)
	if err != nil || standing.Owed >= t.Owed && !standing.Direct {
		return err
	}
	t.Wake++
	return d.Arm(ctx, t)
}

// leftToSweeps tells of what stands at a timer's place whether no pass comes upon it but the sweeps.
func leftToSweeps(item store.Item) bool {
	standing, err := timer.FromItem(item)
	return err == nil && standing.Direct
}

// claimHeads puts the first claim of each timer, or the decision over its missed fires. It goes before the others: a tick
// that was stopped before it finds here what was decided meanwhile.
func (d *Dispatcher) claimHeads(ctx context.Context, epoch uint64, b Bounds, planned []*firing) error {
	heads := make([]*wish, 0, len(planned))
	for _, f := range planned {
		if s := f.plan.Skip; s != nil {
			if s.failed != nil {
				f.head = &wish{run: f.blank(s.From), err: s.failed}
				continue
			}
			stretch := run.Stretch{Generation: f.Edition.Generation, Through: s.Through, Upto: s.Upto, Count: s.Count, Reason: s.Reason}
			retention := f.Edition.Def.Retention.Std()
			f.head = &wish{run: f.blank(s.From), on: d.Callbacks.Over(f.blank(s.From), f.Edition.Def.On), callAt: b.Resume, decide: func(r run.Run) (run.Run, run.ClaimVerdict) {
				return r.Skip(stretch, b.Now, retention)
			}}
		} else {
			f.head = f.claim(f.plan.Fires[0], epoch, b)
		}
		heads = append(heads, f.head)
	}
	return d.grant(ctx, heads)
}

// bounded tells whether the job's definition bounds how many of the runs are in progress.
func (f *firing) bounded() bool { return f.Edition.Def.Gated() }

func (f *firing) blank(nominal int64) run.Run {
	return run.Run{ID: run.FireID(f.Timer.Job, nominal), Tenant: f.Timer.Tenant}
}

func (f *firing) claim(nominal int64, epoch uint64, b Bounds) *wish {
	// The run's trace begins here. What stands already has its own.
	span := f.tracer.Apart(trace.Producer, "claim")
	times := f.Edition.Def.Times().Later(f.Edition.Due(f.Timer.Tenant, f.Timer.Job, nominal) - nominal) // its jitter makes no run too late
	c := run.Claim{Generation: f.Edition.Generation, Trigger: run.BySchedule, Epoch: epoch, Now: b.Now, Times: times,
		Run: run.Run{Priority: f.Edition.Def.Priority, Trace: span.Context()}}
	if c.NotBefore = f.plan.Places[nominal]; c.NotBefore != 0 {
		c.Reason = run.CaughtUp
	}
	doubtful := b.doubts(f.Timer, nominal)
	return &wish{run: f.blank(nominal), span: span, decide: func(r run.Run) (run.Run, run.ClaimVerdict) {
		switch {
		case doubtful && r.Version == 0:
			return r, run.Taken
		case f.Gone:
			return r.Withdraw(c, Deleted, job.DefaultRetention)
		}
		next, verdict := r.Claim(c)
		if verdict == run.Standing && c.NotBefore > r.NextAt && b.lapsed(r) {
			return r.PlacedAnew(c.NotBefore, f.bounded()), run.Placed
		}
		return next, verdict
	}}
}

// adopt looks at what stands at the head, gives the rest of this round's claims, and tells whether another round is needed.
func (f *firing) adopt(b Bounds, epoch uint64, horizonAt func(int64) int64) (again bool) {
	f.rest, f.owed = nil, nil
	fires, owed := f.plan.Fires, f.plan.Owed
	standing := f.head.run
	switch {
	case f.head.err != nil:
		return false
	case f.plan.Skip == nil:
		fires = fires[1:]
		if f.head.verdict == run.Taken && dropped(standing, f.Edition.Generation) {
			for len(fires) > 0 && fires[0] <= standing.Through {
				fires = fires[1:]
			}
			owed = behind(owed, f.Edition.Schedule, standing.Through)
		}
	case f.head.verdict == run.Claimed && f.plan.Skip.Next != 0:
		f.from, f.known = f.plan.Skip.Next, f.plan.Skip.Known
		return f.from != never
	case f.head.verdict == run.Claimed:
	case dropped(standing, f.Edition.Generation):
		// Another tick decided: what it skipped is skipped, what it saw as in time is claimed, the rest is decided anew.
		next, err := nextAfter(f.Edition.Schedule, standing.Through)
		if err != nil || next == never {
			return false
		}
		f.from, f.known = next, standing.Upto
		return true
	default:
		late := standing.Created - job.Grace.Milliseconds()
		if next, err := nextAfter(f.Edition.Schedule, standing.ID.Nominal); err == nil && standing.ID.Nominal < late && next < late {
			// It was claimed late, by another timer that stands for these fires too, and which decides over the next ones before it
			// claims any of them: so do we. What was to run by then, and is too old by now, is to run still: it is owed, or was about to be.
			f.from, f.known = next, 0
			if f.runsAll(next, standing.Created) && !f.runsAll(next, b.Now) {
				f.known = min(late, b.Now) - 1
			}
			return true
		}
		// A run stands at the head: whoever claimed it, at Created, found it in time, and may have been stopped among its claims. They lie below the horizon that
		// a tick may have published at that time. An edit publishes none: it claims up to one that stood before, and a gap may begin there. Beyond that we decide.
		f.known = max(f.from, b.reached(f.from, horizonAt(standing.Created+MaxSkew.Milliseconds())))
		return true
	}
	for _, nominal := range fires {
		f.rest = append(f.rest, f.claim(nominal, epoch, b))
	}
	f.owed = owed
	f.from, f.known = f.plan.Rest, 0
	return f.plan.Rest != never
}

// runsAll tells whether all missed fires from one on run by a decision of an instant, Unix ms.
func (f *firing) runsAll(from, at int64) bool {
	policy := f.Edition.Def.CatchUp
	return policy.Mode == job.CatchUpAll && from >= at-policy.Window.Std().Milliseconds() && !tooLate(f.Timer, f.Edition, from, at)
}

// dropped tells whether a record is a decision over missed fires of a generation. What another one has dropped is its own.
func dropped(r run.Run, generation int64) bool {
	return r.Missed() && r.Through > 0 && r.Generation == generation
}

// collect gives what is to be sent, and timers for what the store refused.
func (f *firing) collect(ctx context.Context, b Bounds, tally *Tally) (send []Outgoing, late []timer.Timer) {
	wishes := f.rest
	if f.plan.Skip == nil || f.head.err != nil || f.head.verdict == run.Claimed {
		wishes = append([]*wish{f.head}, f.rest...)
	}
	for _, w := range wishes {
		claim := w.traced(ctx)
		switch {
		case w.err != nil:
			// The same fires again in a later pass, by a timer of their own: the cursor need not wait for one partition.
			again := timer.NewFire(f.Timer.Tenant, f.Timer.Job, f.Timer.Generation, w.run.ID.Nominal, b.Resume)
			switch _, paced := f.plan.Places[w.run.ID.Nominal]; {
			case w == f.head:
				again.Owed = f.Timer.Owed // it stands for what the timer does
			case paced:
				again.Owed = w.run.ID.Nominal
			}
			late = append(late, again)
			continue
		case w.verdict == run.Claimed && w.run.State == run.Cancelled:
			continue
		case w.verdict == run.Claimed && w.run.State == run.Skipped:
			tally.Skipped += w.run.Count
			continue
		case w.verdict == run.Claimed:
			tally.Claimed++
		case w.verdict == run.Placed, w.verdict == run.Standing && !w.run.Waits(): // else it is sent when it is let in
			tally.Resent++
		default:
			continue
		}
		send = append(send, Outgoing{Run: w.run, Queue: f.Edition.Def.Queue, Due: max(w.run.NextAt, f.Edition.Due(f.Timer.Tenant, f.Timer.Job, w.run.ID.Nominal)), claim: claim})
	}
	return send, late
}

// makeRoom lets in who waits for the place at a gate that a run of the timer may have held when it was given another place in time.
func (d *Dispatcher) makeRoom(ctx context.Context, f *firing) {
	if !f.bounded() {
		return
	}
	seen := map[gate.ID]bool{}
	for _, w := range append([]*wish{f.head}, f.rest...) {
		if w.verdict != run.Placed || w.err != nil {
			continue
		}
		for _, way := range waysOf(d.MayHold(ctx, w.run, f.Edition), f.Edition.Def) {
			if seen[way.at] {
				continue
			}
			seen[way.at] = true
			if err := d.LetIn(ctx, way.at); err != nil { // then the checks of those that wait do it
				d.Log.WarnContext(ctx, "who waits for a run that is given another place is not let in yet", "job", f.Timer.Job, "error", err)
			}
		}
	}
}

// Park takes a job whose schedule is broken out of the ticks' way and writes the reason where its owner sees it. The timer
// has no successor: a new definition starts the job again.
func (d *Dispatcher) Park(ctx context.Context, t timer.Timer, cause error) error {
	for round := 0; round < maxRounds; round++ {
		j, err := d.Book.Job(ctx, t.Tenant, t.Job)
		if err != nil {
			return err
		}
		if j.Generation != t.Generation || j.Fault != "" {
			return nil
		}
		j.Fault = "parked: " + cause.Error()
		d.Log.ErrorContext(ctx, "a job is parked", "tenant", t.Tenant, "job", t.Job, "error", cause)
		op, err := j.Put(d.NewID())
		if err != nil {
			return err
		}
		if _, err = d.Write(ctx, op); store.AsConflict(err) == nil {
			return err
		}
	}
	return fmt.Errorf("park job %s: overtaken %d times: %w", t.Job, maxRounds, store.ErrThrottled)
}
