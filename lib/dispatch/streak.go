package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// The end of a run whose job is paused after so many bad ones is written together with how many there are in a row, under the version of that. So each end
// is counted once, wherever a crash comes, and the runs that end at once are counted one after the other, up to the number that pauses the job. The end that is one too many says
// so itself, in the same write, and so does each behind it: whoever writes it, whoever is given its message again, and its check find that, and pause the job. A crash in
// between leaves the job going on until then.

// streak has the end of a run counted; changed tells that op is to be written with it.
func (d *Dispatcher) streak(ctx context.Context, r run.Run, most int, attempt uint64) (counted run.Run, op store.Op, changed bool, err error) {
	r.Pauses = false
	if _, ends := r.Ends(); most == 0 || !ends || r.ID.IsStep() {
		return r, store.Op{}, false, nil
	}
	key := run.StreakKey(r.Tenant, r.ID.Job)
	items, err := d.Store.Get(ctx, key)
	if err != nil {
		return r, store.Op{}, false, fmt.Errorf("read how the last runs of %s ended: %w", r.ID.Job, err)
	}
	items[0].Key = key
	before, err := run.StreakFromItem(items[0])
	switch {
	case errors.Is(err, record.ErrNewer): // no end waits for a newer process, and what that has counted stays
		d.Log.WarnContext(ctx, "how the last runs of a job ended is for a newer process to read, and an end is not counted", "tenant", r.Tenant, "job", r.ID.Job, "run", r.ID.String(), "error", err)
		return r, store.Op{}, false, nil
	case err != nil:
		d.Log.WarnContext(ctx, "how the last runs of a job ended cannot be read, and is counted anew", "tenant", r.Tenant, "job", r.ID.Job, "error", err)
	}
	next, changed := before.Next(r, most)
	r.Pauses = next.Pauses(r, most)
	if !changed && err == nil {
		return r, store.Op{}, false, nil
	}
	op, err = next.Op(items[0], r.Ended, attempt)
	return r, op, true, err
}

// errNoPauses is of a process that was put together without what pauses jobs.
var errNoPauses = errors.New("nobody here pauses jobs")

// pausedAtOnce bounds how many jobs one look pauses at once.
const pausedAtOnce = 8

// pauseEach pauses the jobs of runs that say so, each once, and gives the runs that another look is to ask for again.
func (d *Dispatcher) pauseEach(ctx context.Context, ended []run.Run) (again []run.Run) {
	type name struct{ tenant, job string }
	var jobs [][]run.Run
	for _, ended := range GroupBy(ended, func(r run.Run) name { return name{r.Tenant, r.ID.Job} }) {
		jobs = append(jobs, ended)
	}
	later := make([]bool, len(jobs))
	Parallel(jobs, pausedAtOnce, func(i int, ended []run.Run) {
		var err error
		if later[i], err = d.pauseFor(ctx, ended...); err != nil {
			d.Log.WarnContext(ctx, "a job is to be paused, and is not yet", "tenant", ended[0].Tenant, "run", ended[0].ID.String(), "error", err)
		}
	})
	for i, ended := range jobs {
		if later[i] {
			again = append(again, ended...)
		}
	}
	return again
}

// pauseFor pauses the job of runs that say so, all of one. A job that cannot be read here is told of, and nobody's work waits for that: with an error it is not known
// whether it is paused, and later says that another look at the runs is to ask again.
func (d *Dispatcher) pauseFor(ctx context.Context, ended ...run.Run) (later bool, err error) {
	first := ended[0].ID
	if d.PauseJob == nil {
		return true, fmt.Errorf("pause job %s: %w", first.Job, errNoPauses)
	}
	err = d.PauseJob(ctx, ended...)
	switch {
	case err == nil:
		return false, nil
	case Unreadable(err):
		d.Metrics.Unreadable.Inc()
		d.Log.ErrorContext(ctx, "a job is to be paused, and cannot be read here", "tenant", ended[0].Tenant, "run", first.String(), "error", err)
		return errors.Is(err, record.ErrNewer), nil // of what is gone or damaged each look would be told the same
	}
	return true, fmt.Errorf("pause job %s: %w", first.Job, err)
}
