package tick

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// fires claims what fire timers ask for. The jobs are read after the timers, strongly: a timer of a generation that an edit
// has ended is in force up to that edit, else it is dropped; an edit that comes later finds our horizon published.
func (p *pass) fires(ctx context.Context, timers []timer.Timer) (dispatch.Tally, error) {
	var tally dispatch.Tally
	timers = slices.DeleteFunc(timers, func(t timer.Timer) bool { return t.Direct })
	for tenant, mine := range byTenant(timers) {
		jobs, err := p.jobs(ctx, tenant, mine)
		if err != nil {
			return tally, err
		}
		work := make([]dispatch.FireTimer, 0, len(mine))
		var late []timer.Timer
		for _, t := range mine {
			ft, ok, err := p.inForce(ctx, t, jobs[t.Job])
			switch {
			case errors.Is(err, record.ErrBroken), errors.Is(err, record.ErrNewer):
				p.Log.ErrorContext(ctx, "a job is unreadable; its fire waits", "tenant", tenant, "job", t.Job, "error", err)
				p.Metrics.Unreadable.Inc()
				again := timer.NewFire(tenant, t.Job, t.Generation, t.Nominal, p.bounds.Later())
				again.Owed = t.Owed
				late = append(late, again)
			case err != nil:
				return tally, err
			case ok:
				work = append(work, ft)
			}
		}
		if err := p.Dispatch.Arm(ctx, late...); err != nil {
			return tally, err
		}
		one, err := p.Dispatch.Fires(ctx, p.shard.Epoch, p.bounds, work)
		tally.Add(one)
		if err != nil {
			return tally, err
		}
	}
	return tally, nil
}

// inForce joins a fire timer with its generation's definition, false where the generation has no say any more.
func (p *pass) inForce(ctx context.Context, t timer.Timer, j job.Job) (dispatch.FireTimer, bool, error) {
	until := dispatch.Forever
	var edition *job.Edition
	err := j.Broken
	switch {
	case err != nil:
	case t.Generation == j.Generation && !j.Active():
		return dispatch.FireTimer{}, false, nil
	case t.Generation == j.Generation:
		edition, err = p.Dispatch.Book.Newest(j)
	default:
		if until, err = p.Dispatch.Book.Until(ctx, j, t.Generation); err == nil && t.Nominal <= until {
			edition, err = p.Dispatch.Book.Edition(ctx, t.Tenant, t.Job, t.Generation)
		}
	}
	switch {
	case errors.Is(err, job.ErrNotFound):
		p.Log.ErrorContext(ctx, "the definition of a past generation is gone", "tenant", t.Tenant, "job", t.Job, "generation", t.Generation)
		return dispatch.FireTimer{}, false, nil
	case errors.Is(err, job.ErrSchedule):
		return dispatch.FireTimer{}, false, p.Dispatch.Park(ctx, t, err)
	case err != nil:
		return dispatch.FireTimer{}, false, err
	case edition == nil: // the fire came after the edit that ended its generation
		return dispatch.FireTimer{}, false, nil
	}
	return dispatch.FireTimer{Timer: t, Edition: edition, Until: until, Gone: j.Gone(t.Generation)}, edition.Schedule != nil, nil
}

// requests claims on-demand runs whose time has come. Those that whoever asked for them sends itself are left to the sweeps.
func (p *pass) requests(ctx context.Context, timers []timer.Timer) (dispatch.Tally, error) {
	var tally dispatch.Tally
	timers, err := p.Dispatch.Together(ctx, timers)
	if err != nil {
		return tally, err
	}
	for tenant, mine := range byTenant(timers) {
		var runs []run.Run
		for _, t := range mine {
			if !t.Direct && t.Create != nil {
				runs = append(runs, *t.Create)
			}
		}
		if len(runs) == 0 {
			continue
		}
		one, err := p.Dispatch.Requests(ctx, tenant, p.shard.Epoch, p.bounds, runs)
		tally.Add(one)
		if err != nil {
			return tally, err
		}
	}
	return tally, nil
}

// jobs reads the jobs of some timers of one tenant.
func (p *pass) jobs(ctx context.Context, tenant string, timers []timer.Timer) (map[string]job.Job, error) {
	jobs := make(map[string]job.Job, len(timers))
	var names []string
	for _, t := range timers {
		if _, seen := jobs[t.Job]; !seen {
			jobs[t.Job] = job.Job{}
			names = append(names, t.Job)
		}
	}
	for len(names) > 0 {
		n := min(len(names), store.MaxKeys)
		read, err := p.Dispatch.Book.Jobs(ctx, tenant, names[:n]...)
		if err != nil {
			return nil, fmt.Errorf("read jobs: %w", err)
		}
		for _, j := range read {
			jobs[j.Name] = j
		}
		names = names[n:]
	}
	return jobs, nil
}

func byTenant(timers []timer.Timer) iter.Seq2[string, []timer.Timer] {
	return dispatch.GroupBy(timers, func(t timer.Timer) string { return t.Tenant })
}
