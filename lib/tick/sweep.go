package tick

import (
	"context"
	"errors"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// sighting is a run that a sweep came upon, and is to list.
type sighting struct {
	run.Run
	due bool // a timer of the page stands for it, and was claimed by: it is counted where that timer is swept and nowhere else
}

// again looks after a page of timers behind the watermark: fires and requests without their run are claimed and sent as the
// main pass does, unended runs get a check timer ahead of the horizon. seen are the runs that the page's timers stand for, which
// are to be listed, and others that are to be listed anew.
func (p *pass) again(ctx context.Context, pg page) (repairs dispatch.Repairs, seen []sighting, err error) {
	checked, err := p.readOpen(ctx, runsOf(pg.checks))
	if err != nil {
		return repairs, nil, err
	}
	var open []run.Run
	for i, r := range checked {
		if ended(r) {
			continue
		}
		open = append(open, r)
		if dispatch.ListedAnew(r, pg.checks[i].Wake) {
			seen = append(seen, sighting{Run: r})
		}
	}
	for tenant, mine := range byTenant(pg.fires) {
		stand, unended, err := p.againFires(ctx, tenant, mine, &repairs)
		if err != nil {
			return repairs, nil, err
		}
		seen, open = append(seen, stand...), append(open, unended...)
	}
	timers, err := p.Dispatch.Together(ctx, pg.requests)
	if err != nil {
		return repairs, nil, err
	}
	var requests []run.Run
	for _, t := range timers {
		if t.Create != nil {
			requests = append(requests, *t.Create)
		}
	}
	standing, err := p.readOpen(ctx, requests)
	if err != nil {
		return repairs, nil, err
	}
	var absent []run.Run
	for i, r := range standing {
		switch {
		case r.Version != 0:
			seen = append(seen, sighting{r, true})
			if unfinished(r) {
				open = append(open, r)
			}
		case !requests[i].Callback.IsZero(), !p.tooOld(max(requests[i].Created, r.ID.Nominal)):
			absent = append(absent, requests[i])
		}
	}
	if absent, err = p.Dispatch.Anew(ctx, p.bounds, absent); err != nil {
		return repairs, nil, err
	}
	for _, r := range absent {
		seen = append(seen, sighting{r, true})
	}
	if err := p.watch(ctx, append(open, absent...), &repairs); err != nil {
		return repairs, nil, err
	}
	for tenant, mine := range dispatch.GroupBy(absent, func(r run.Run) string { return r.Tenant }) {
		tally, err := p.Dispatch.Requests(ctx, tenant, p.shard.Epoch, p.bounds, mine)
		repairs.Claimed += tally.Claimed
		if err != nil {
			return repairs, nil, err
		}
	}
	return repairs, seen, nil
}

// ended tells whether nothing needs to be done for a run that was read.
func ended(r run.Run) bool { return r.Version == 0 || r.State == run.Fenced || r.State.Ended() }

// unfinished tells whether a run is to be looked after that a fire or a request stands for. One that has ended is where its job is to be paused for that: whoever wrote
// the end may have died before, and no check was armed yet where it came soon.
func unfinished(r run.Run) bool { return !ended(r) || r.Pauses }

// againFires looks after fire timers of one tenant, and gives the runs that stand for them; open are those that had not ended.
func (p *pass) againFires(ctx context.Context, tenant string, timers []timer.Timer, repairs *dispatch.Repairs) (seen []sighting, open []run.Run, err error) {
	looks, err := p.looks(ctx, timers)
	if err != nil {
		return nil, nil, err
	}
	if err := p.lookAll(ctx, looks); err != nil {
		return nil, nil, err
	}
	for _, l := range looks {
		seen, open = append(seen, l.seen...), append(open, l.open...)
	}
	lost, err := p.lost(ctx, tenant, looks)
	if err != nil || len(lost) == 0 {
		return seen, open, err
	}
	// What is claimed here is looked after by checks from now on: its own timer is swept, and the later sweeps pass it over.
	b := p.bounds
	b.Watch = true
	tally, err := p.Dispatch.Fires(ctx, p.shard.Epoch, b, lost)
	repairs.Claimed += tally.Claimed
	if err != nil {
		return nil, nil, err
	}
	made, err := p.made(ctx, lost)
	return append(seen, made...), open, err
}

// made gives the runs of fire timers that were handled just now. They are read again, since they may stand for more fires by now.
func (p *pass) made(ctx context.Context, handled []dispatch.FireTimer) (seen []sighting, err error) {
	for start := 0; start < len(handled); start += store.MaxKeys {
		some := handled[start:min(start+store.MaxKeys, len(handled))]
		keys := make([]store.Key, len(some))
		for i, t := range some {
			keys[i] = t.Timer.Key()
		}
		items, err := p.store.Get(ctx, keys...)
		if err != nil {
			return nil, err
		}
		pg, err := p.sort(slices.DeleteFunc(items, func(i store.Item) bool { return !i.Exists() }))
		if err != nil {
			return nil, err
		}
		looks, err := p.looks(ctx, pg.fires)
		if err != nil {
			return nil, err
		}
		if err := p.lookAll(ctx, looks); err != nil {
			return nil, err
		}
		for _, l := range looks {
			seen = append(seen, l.seen...)
		}
	}
	return seen, nil
}

func (p *pass) watch(ctx context.Context, runs []run.Run, repairs *dispatch.Repairs) error {
	heads := slices.DeleteFunc(slices.Clone(runs), func(r run.Run) bool { return !r.Heads() })
	for tenant, mine := range dispatch.GroupBy(heads, func(r run.Run) string { return r.Tenant }) {
		refs := make([]job.Ref, len(mine))
		for i, r := range mine {
			refs[i] = job.Ref{Name: r.ID.Job, Generation: r.Generation}
		}
		if err := p.Dispatch.Book.Foresee(ctx, tenant, refs...); err != nil { // when their time is over stands there
			return err
		}
	}
	checks := make([]timer.Timer, 0, len(runs))
	for _, r := range runs {
		check, err := p.Dispatch.Unwatched(ctx, r, p.bounds.Reach)
		if err != nil {
			return err
		}
		checks = append(checks, check...)
	}
	repairs.Watched += len(checks)
	return p.Dispatch.Arm(ctx, checks...)
}

// tooOld tells whether a run of that time may have ended and been cleaned up since, so that its absence shows nothing: after an
// outage longer than the shortest retention a sweep must not take it for lost and run it again.
func (p *pass) tooOld(at int64) bool { return at < p.bounds.Now-dispatch.Forgotten.Milliseconds() }

// look is a fire timer on its way through a second look at all fires that it stands for.
type look struct {
	timer   timer.Timer
	edition *job.Edition
	from    int64      // the next fire to be looked at lies here or after it
	through int64      // up to here a decision has skipped
	missing []run.Run  // fires without a run
	foreign bool       // a fire holds another generation's run: nothing shows that this one's successor was ever armed
	seen    []sighting // that stand
	open    []run.Run  // unfinished
}

// looks joins fire timers with the definitions of their generations, which are remembered: whether a generation still has a say
// matters only where something is missing.
func (p *pass) looks(ctx context.Context, timers []timer.Timer) ([]*look, error) {
	var looks []*look
	for tenant, mine := range byTenant(timers) {
		refs := make([]job.Ref, len(mine))
		for i, t := range mine {
			refs[i] = job.Ref{Name: t.Job, Generation: t.Generation}
		}
		if err := p.Dispatch.Book.Foresee(ctx, tenant, refs...); err != nil {
			return nil, err
		}
	}
	for _, t := range timers {
		edition, err := p.Dispatch.Book.Edition(ctx, t.Tenant, t.Job, t.Generation)
		switch {
		case errors.Is(err, job.ErrNotFound), errors.Is(err, job.ErrSchedule), err == nil && edition.Schedule == nil:
		case errors.Is(err, record.ErrBroken), errors.Is(err, record.ErrNewer):
			p.Log.ErrorContext(ctx, "a job is unreadable and not swept", "tenant", t.Tenant, "job", t.Job, "error", err)
		case err != nil:
			return nil, err
		default:
			looks = append(looks, &look{timer: t, edition: edition, from: t.Nominal})
		}
	}
	return looks, nil
}

// lost gives the timers that must be handled again. The jobs are read now, strongly, as the main
// pass does: a fire is lost only where its generation is in force.
func (p *pass) lost(ctx context.Context, tenant string, looks []*look) (again []dispatch.FireTimer, err error) {
	var doubtful []timer.Timer
	for _, l := range looks {
		if len(l.missing) > 0 || l.foreign {
			doubtful = append(doubtful, l.timer)
		}
	}
	if len(doubtful) == 0 {
		return nil, nil
	}
	jobs, err := p.jobs(ctx, tenant, doubtful)
	if err != nil {
		return nil, err
	}
	for _, l := range looks {
		if len(l.missing) == 0 && !l.foreign {
			continue
		}
		ft, ok, err := p.inForce(ctx, l.timer, jobs[l.timer.Job])
		if errors.Is(err, record.ErrBroken) || errors.Is(err, record.ErrNewer) {
			p.Log.ErrorContext(ctx, "a job is unreadable and not swept", "tenant", tenant, "job", l.timer.Job, "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		l.missing = slices.DeleteFunc(l.missing, func(r run.Run) bool { return r.ID.Nominal > ft.Until })
		if ok && (len(l.missing) > 0 || l.foreign) {
			again = append(again, ft)
		}
	}
	return again, nil
}

// lookAll reads the runs of all timers' fires, in as few reads as there are pages of them.
func (p *pass) lookAll(ctx context.Context, looks []*look) error {
	for open := looks; len(open) > 0; {
		var runs []run.Run
		counts := make([]int, len(open))
		for i, l := range open {
			fires := dispatch.FiresBetween(l.edition.Schedule, l.from, l.timer.To, PageSize)
			for _, f := range fires {
				runs = append(runs, run.Run{ID: run.FireID(l.timer.Job, f), Tenant: l.timer.Tenant})
			}
			counts[i] = len(fires)
			l.from = dispatch.Forever
			if len(fires) == PageSize {
				l.from = fires[PageSize-1] + 1
			}
		}
		standing, err := p.readOpen(ctx, runs)
		if err != nil {
			return err
		}
		var further []*look
		for i, l := range open {
			for _, r := range standing[:counts[i]] {
				l.see(r, p)
			}
			standing = standing[counts[i]:]
			if l.from != dispatch.Forever {
				l.from = max(l.from, l.through+1)
				further = append(further, l)
			}
		}
		open = further
	}
	return nil
}

// see judges what stands at one fire.
func (l *look) see(r run.Run, p *pass) {
	generation := l.timer.Generation
	switch {
	case r.ID.Nominal <= l.through && (r.Version == 0 || r.State == run.Fenced): // dropped by the decision before it
	case r.Version == 0 && p.tooOld(r.ID.Nominal):
		p.Log.Warn("a fire too old to tell whether it ran is left alone", "tenant", r.Tenant, "run", r.ID.String())
	case r.Version == 0, r.State == run.Fenced && r.Generation <= generation,
		r.State == run.Queued && r.Attempt == 0 && r.Generation < generation:
		l.missing = append(l.missing, r)
	case r.State == run.Fenced: // a newer edit has ended the generation before it
	case r.Missed() && r.Generation < generation: // by a clock that was ahead of the edit
		l.missing = append(l.missing, r)
	default:
		l.foreign = l.foreign || r.ClaimedFor() != generation
		l.through = max(l.through, r.Through)
		if unfinished(r) {
			l.open = append(l.open, r)
		}
	}
	if r.Version != 0 && r.State != run.Fenced {
		l.seen = append(l.seen, sighting{r, r.ClaimedFor() == generation})
	}
}

// readOpen reads runs, the cheap way first: an ended run stays ended, so a stale read of it is as good. What is not ended by
// that is read again, strongly.
func (p *pass) readOpen(ctx context.Context, runs []run.Run) ([]run.Run, error) {
	standing := make([]run.Run, 0, len(runs))
	for start := 0; start < len(runs); start += store.MaxKeys {
		some := runs[start:min(start+store.MaxKeys, len(runs))]
		cheap, err := p.Dispatch.PeekRuns(ctx, some)
		if err != nil {
			return nil, err
		}
		var unsure []run.Run
		for _, r := range cheap {
			if !r.State.Ended() {
				unsure = append(unsure, r)
			}
		}
		sure, err := p.Dispatch.ReadRuns(ctx, unsure)
		if err != nil {
			return nil, err
		}
		for _, r := range cheap {
			if !r.State.Ended() {
				r, sure = sure[0], sure[1:]
			}
			standing = append(standing, r)
		}
	}
	return standing, nil
}

func runsOf(timers []timer.Timer) []run.Run {
	runs := make([]run.Run, len(timers))
	for i, t := range timers {
		runs[i] = run.Run{ID: t.Run, Tenant: t.Tenant}
	}
	return runs
}
