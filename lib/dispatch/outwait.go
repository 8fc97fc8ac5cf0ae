package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// A gate may bound how long a run waits in its line. Until when that is stands in the run since it joined. Its check, which lies at that time, ends it, and says who was in
// the way then. Until it does, nobody lets the run in, and others pass it.

// armOutwaits arms the checks that find the time of runs over which are about to join a line, where their other checks would come too late for that.
//
// Durable afterwards: the checks. A crash behind them leaves checks that find nothing to do.
func (d *Dispatcher) armOutwaits(joining []run.Run, now int64) error {
	var checks []timer.Timer
	for _, r := range joining {
		if r.Wait.Until == 0 {
			continue
		}
		check := timer.NewCheck(r.Tenant, r.ID, max(d.pastEnd(r.Wait.Until), d.HorizonAt(now+d.late().Milliseconds()))+1)
		if check.Wake < timer.NextCheck(r.Tenant, r.ID, now+d.Directly().Milliseconds()-1).Wake { // else that one finds it ahead
			checks = append(checks, check)
		}
	}
	if len(checks) == 0 {
		return nil
	}
	ctx, cancel := d.brief()
	defer cancel()
	return d.Arm(ctx, checks...)
}

// fronts remembers gates as they were read for the runs of one check that have waited there for too long.
type fronts map[gate.ID]*front

// front is who is in progress at a gate, and who waits at the front of its line.
type front struct {
	*letting
	waiting []gate.Place
}

// outwait decides the end of a run that has waited in line for as long as it may, of a definition that keeps ended runs for so long: with the gate, and what was in the way: others, or the pause of its job.
func (d *Dispatcher) outwait(ctx context.Context, r run.Run, now int64, kept time.Duration, seen fronts) (run.Run, error) {
	at := gate.Of(r)
	if seen[at] == nil {
		f, err := d.frontOf(ctx, at)
		if err != nil {
			return run.Run{}, err
		}
		seen[at] = f
	}
	f, stands := seen[at], gate.PlaceOf(r)
	var ahead []run.ID
	for _, p := range f.waiting {
		if p.Compare(stands) < 0 {
			ahead = append(ahead, p.Run)
		}
	}
	if err := f.learn(ctx, []gate.Place{stands}); err != nil {
		return run.Run{}, err
	}
	why, closed, paused := f.round.WhyOutwaited(ahead), f.round.Closed(), f.of(r).Def.Paused && !r.IgnorePause
	if paused && !closed && f.round.Fits(r.Wait.Units, f.round.Limit()) {
		why.InTheWay = nil // there was room beside all of them
	}
	return r.Outwait(why, closed, paused, now, kept), nil
}

// frontOf reads a gate, the runs that hold places there until it knows as many as a record names, and the front of its line.
func (d *Dispatcher) frontOf(ctx context.Context, at gate.ID) (*front, error) {
	step, places, standing, _, err := d.front(at, run.MaxInTheWay)
	if err != nil {
		return nil, err
	}
	f := &front{letting: step}
	for i, p := range places {
		if p.Named(standing[i]) {
			f.waiting = append(f.waiting, p)
		}
	}
	for f.round.Known() < run.MaxInTheWay {
		var unsure []run.Run
		for _, id := range f.round.Unsure(run.MaxInTheWay) {
			unsure = append(unsure, run.Run{ID: id, Tenant: at.Tenant})
		}
		if len(unsure) == 0 {
			break
		}
		holders, err := d.ReadRuns(ctx, unsure)
		if err != nil {
			return nil, fmt.Errorf("read the runs at gate %s: %w", at, err)
		}
		f.round.Learn(holders)
	}
	return f, nil
}

// countOutwaited counts a run that was skipped since it had waited at a gate for as long as it might.
func (d *Dispatcher) countOutwaited(r run.Run) {
	if r.Why.Code == run.WhyMaxWait {
		d.Metrics.GateSkipped.Inc(d.Metrics.Gate(gate.ID{Tenant: r.Tenant, Name: r.Why.Gate}.Series(), true))
	}
}
