package dispatch

import (
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// lookPast finds out which runs of a group go past the line, or to the front of it: those that ignore a pause that stands. The job is read for these alone, after
// the gate. One that is paused behind the read has its run join as any other, until its check looks again.
func (d *Dispatcher) lookPast(group []*wanting) error {
	ignoring := slices.ContainsFunc(group, func(w *wanting) bool { return w.run.IgnorePause })
	if !ignoring || group[0].at.IsNamed() { // where those that a pause holds are passed over
		return nil
	}
	paused, err := d.paused(group[0].run)
	for _, w := range group {
		w.past = paused && w.run.IgnorePause
	}
	return err
}

// paused tells whether the job of a run is paused.
func (d *Dispatcher) paused(of run.Run) (bool, error) {
	ctx, cancel := d.brief()
	defer cancel()
	j, err := d.Book.Job(ctx, of.Tenant, of.ID.Job)
	if err != nil {
		return false, fmt.Errorf("read job %s, whose pause a run ignores: %w", of.ID.Job, err)
	}
	return j.Def.Paused, nil
}
