package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Settle leaves out of a gate the runs that ended badly and hold up nobody any more, as its job says now, whatever it said when a run was claimed. The job is read where there
// are any, behind the gate. It tells whether there was any. Of a job whose record is unreadable nobody can tell: its line stands still until it can be read.
func (d *Dispatcher) Settle(round *gate.Round) (changed bool, err error) {
	if len(round.Blockers()) == 0 {
		return false, nil
	}
	name, _ := gate.OwnOf(round.ID().Name)
	ctx, cancel := d.brief()
	defer cancel()
	switch strict, err := d.strictSince(ctx, round.Tenant(), name); {
	case errors.Is(err, errUnreadableJob):
		return false, nil
	case err != nil:
		return false, err
	default:
		return round.Settle(strict), nil
	}
}

// errUnreadableJob says of a job that its record is broken, or of a newer version of Belfry.
var errUnreadableJob = errors.New("the job cannot be read")

// strictSince reads since when a job is strict, 0 for one that is not, or that was deleted. Errors: errUnreadableJob.
func (d *Dispatcher) strictSince(ctx context.Context, tenant, name string) (int64, error) {
	jobs, err := d.Book.Jobs(ctx, tenant, name)
	if err != nil {
		return 0, fmt.Errorf("read job %s, behind whose runs a line may stand still: %w", name, err)
	}
	if jobs[0].Broken != nil {
		return 0, fmt.Errorf("%w: %w", errUnreadableJob, jobs[0].Broken)
	}
	return jobs[0].StrictSince(), nil
}

// KeepPlace has a run that is opened again keep its place at its job's own gate, where the line stands still behind it: it gives the run as it is to be opened, which says at which
// gate, and the write of that; next and none where the line does not. was is how the run stood, next how it is opened, and j its job. The write is to be done with the run: so nobody
// is let in between its end and what follows from its retry.
func (d *Dispatcher) KeepPlace(ctx context.Context, was, next run.Run, j job.Job) (run.Run, []store.Op, error) {
	if !was.State.Bad() && !was.RanOut() {
		return next, nil, nil
	}
	strict := j.StrictSince()
	if was.Generation > j.Generation { // the job was edited since it was read, and the run has started and ended by that
		var err error
		if strict, err = d.strictSince(ctx, was.Tenant, was.ID.Job); err != nil {
			return next, nil, err
		}
	}
	if strict == 0 {
		return next, nil, nil
	}
	if !was.Placed { // it may have been let in, and never started
		edition, err := d.EditionOf(ctx, was)
		if Unreadable(err) {
			return next, nil, nil
		}
		if err != nil {
			return next, nil, err
		}
		was = d.MayHold(ctx, was, edition)
	}
	g, _, err := d.gateItem(ctx, gate.OwnGate(was))
	if err != nil {
		return next, nil, err
	}
	round := g.Begin()
	if !round.Keep(was, next, strict) {
		return next, nil, nil
	}
	op, err := round.Gate().Put(d.Now(), d.NewID())
	return next.Keeping(round.ID().Key), []store.Op{op}, err
}

// ErrNotStanding says of a gate that no line stands still there, ErrNotBlocking of a run that it is another one behind which it does, ErrInProgress that it, or its retry, is in
// progress, and ErrEndedAnew that it was retried, and has ended badly again.
var (
	ErrNotStanding = errors.New("the line does not stand still")
	ErrNotBlocking = errors.New("the line stands still behind another run")
	ErrInProgress  = errors.New("the run is in progress")
	ErrEndedAnew   = errors.New("the run has ended anew")
)

// standsStill reads a job's own gate, and the runs of its entries.
func (d *Dispatcher) standsStill(ctx context.Context, at gate.ID) (*gate.Round, error) {
	g, _, err := d.gateItem(ctx, at)
	if err != nil {
		return nil, err
	}
	round := g.Begin()
	return round, d.lookAtAll(ctx, round)
}

// GoOn lets the line of a job's own gate go on that stands still behind runs which ended badly, and gives these; where of is not the zero ID, only if that run is one of them, and
// where since is not 0, only if it ended then, Unix ms. The gate says by whom. Errors: ErrNotStanding, ErrInProgress, ErrEndedAnew with that run as it stands, and ErrNotBlocking
// with those that are.
//
// Durable with the write: that these runs are in nobody's way any more. A crash behind it leaves letting in to whoever makes room, or to the checks of those that wait.
func (d *Dispatcher) GoOn(ctx context.Context, at gate.ID, of run.ID, since int64, by, reason string) (let []run.Run, err error) {
	err = d.changeGate(ctx, at, func() error {
		round, err := d.standsStill(ctx, at)
		if err != nil {
			return err
		}
		let = round.Blockers()
		if of != (run.ID{}) && round.IsInProgress(of) { // whoever let the line go on behind it before has meant an earlier end
			return ErrInProgress
		}
		found := slices.IndexFunc(let, func(r run.Run) bool { return r.ID == of })
		named := of == run.ID{} || found >= 0
		switch {
		case found >= 0 && since != 0 && let[found].Ended != since: // nobody who asks has seen this end
			let = let[found : found+1]
			return ErrEndedAnew
		case !named && slices.Contains(round.Gate().LetGo.Runs, of.String()): // the answer to an earlier one was lost
			let = nil
			return nil
		case len(let) == 0:
			return ErrNotStanding
		case !named:
			return ErrNotBlocking
		}
		now, err := d.Clock()
		if err != nil {
			return err
		}
		round.GoOn(gate.Change{At: now, Reason: reason, By: by})
		return d.writeGate(round)
	})
	if err != nil && !errors.Is(err, ErrNotStanding) {
		return let, err
	}
	// Durable now: here, or by an earlier one whose answer was lost, or that has died before it let anybody in. So it lets in whatever it has found.
	if err := d.LetIn(ctx, at); err != nil {
		d.Log.WarnContext(ctx, "a line that somebody has let go on is left to the checks of those that wait", "gate", at.String(), "error", err)
	}
	return let, err
}
