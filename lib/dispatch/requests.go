package dispatch

import (
	"context"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Requests claims and sends on-demand runs of one tenant, under the newest generation of their jobs: such a run binds when it
// is claimed. A paused job's runs are held, under a check timer, but for those that ignore the pause; a deleted one's are cancelled. A run that was not read
// (Version 0) is believed to stand as it was first put, and is put where it does not: its request stopped in between.
func (d *Dispatcher) Requests(ctx context.Context, tenant string, epoch uint64, b Bounds, runs []run.Run) (Tally, error) {
	runs = distinct(runs)
	tally := Tally{Timers: len(runs)}
	late, missing, err := d.bind(ctx, tenant, epoch, b, runs, &tally)
	if err != nil {
		return tally, err
	}
	if len(missing) > 0 {
		// Put as Scheduled, and only then read the job again and claim: an edit that we do not see then will see the run.
		if missing, err = d.ensure(ctx, tenant, missing); err != nil {
			return tally, err
		}
		more, _, err := d.bind(ctx, tenant, epoch, b, missing, &tally)
		if err != nil {
			return tally, err
		}
		late = append(late, more...)
	}
	return tally, d.Arm(ctx, late...)
}

// forgets tells of a request whose run is not there that it is to stay so: the run has ended and been cleaned up, or was never put, and
// then its request was never answered. A younger one can only have stopped between its timer and its run. A callback was never answered and is to run
// all the same: once more, rather than never. Where its job promises never twice, it is left alone too.
func (b Bounds) forgets(r run.Run, j *job.Job) bool {
	return r.ID.Nominal < b.Now-Forgotten.Milliseconds() && (r.Callback.IsZero() || j.Def.Guarantee == job.AtMostOnce)
}

// leaves is forgets, and tells of a callback that nobody will be called by.
func (d *Dispatcher) leaves(ctx context.Context, b Bounds, r run.Run, j *job.Job) bool {
	if !b.forgets(r, j) {
		return false
	}
	if !r.Callback.IsZero() {
		d.Log.WarnContext(ctx, "a callback too old to tell whether it ran is left alone, since its job runs at most once", "tenant", r.Tenant, "run", r.ID.String(),
			"event", r.Callback.Event, "of", r.Callback.Run)
	}
	return true
}

// Anew leaves out of requests whose runs are not there the callbacks that are to stay so.
func (d *Dispatcher) Anew(ctx context.Context, b Bounds, absent []run.Run) ([]run.Run, error) {
	var old []run.Run
	for _, r := range absent {
		if !r.Callback.IsZero() && r.ID.Nominal < b.Now-Forgotten.Milliseconds() {
			old = append(old, r)
		}
	}
	left := map[store.Key]bool{}
	for tenant, mine := range GroupBy(old, func(r run.Run) string { return r.Tenant }) {
		jobs, err := d.newest(ctx, tenant, mine)
		if err != nil {
			return nil, err
		}
		for _, r := range mine {
			if d.leaves(ctx, b, r, jobs[r.ID.Job]) {
				left[r.ID.Key(tenant)] = true
			}
		}
	}
	if len(left) == 0 {
		return absent, nil
	}
	return slices.DeleteFunc(absent, func(r run.Run) bool { return left[r.ID.Key(r.Tenant)] }), nil
}

// bind claims and sends; late are the timers that it still owes, missing the runs that do not stand, or have to be read.
func (d *Dispatcher) bind(ctx context.Context, tenant string, epoch uint64, b Bounds, runs []run.Run, tally *Tally) (late []timer.Timer, missing []run.Run, err error) {
	jobs, err := d.newest(ctx, tenant, runs)
	if err != nil {
		return nil, nil, err
	}
	var wishes []*wish
	var asked []*run.Run // of each wish: the run as it was given
	var held []*wish
	send := make([]Outgoing, 0, len(runs))
	claims := map[*job.Job]*run.Claim{}
	lost := func(r run.Run) {
		if !d.leaves(ctx, b, r, jobs[r.ID.Job]) {
			missing = append(missing, r)
		}
	}
	for i := range runs {
		read := &runs[i]
		j := jobs[read.ID.Job]
		c := claims[j]
		if c == nil {
			c = &run.Claim{Generation: j.Generation, Trigger: run.ByRequest, Epoch: epoch, Now: b.Now, Times: j.Def.Times(), Run: run.Run{Priority: j.Def.Priority}}
			claims[j] = c
		}
		believed := *read
		if read.Callback.IsZero() { // of a callback nothing but its timer was put: what stands there by now is another tick's
			believed.Version = max(1, read.Version)
		}
		gone := DeletedFor(*j, believed)
		if gone && !read.Callback.IsZero() && d.absent.news(tenant, read.ID.Job, d.Now()) {
			d.Log.WarnContext(ctx, "a job that is called does not exist: its callbacks end as cancelled until there is one; this is said once an hour",
				"tenant", tenant, "job", read.ID.Job, "event", read.Callback.Event, "of", read.Callback.Run)
		}
		switch {
		case j.Broken != nil:
			late = append(late, timer.NewCheck(tenant, read.ID, b.Later()))
			continue
		case gone && read.Version == 0: // its mark decides, which its timer need not have
			lost(*read)
			continue
		case j.Def.Paused && !gone && !read.IgnorePause:
			held = append(held, hold(*read, j, b))
			late = append(late, timer.NextCheck(tenant, read.ID, b.Reach))
			continue
		case !gone:
			// Whoever asks for a run puts it as claimed: then there is nothing to wish for.
			if _, verdict := believed.Claim(*c); verdict == run.Standing {
				if believed.Waits() {
					continue // it is sent when it is let in
				}
				tally.Resent++
				send = append(send, Outgoing{Run: believed, Queue: j.Def.Queue, Due: read.ID.Nominal})
				continue
			}
		}
		w := &wish{run: believed, span: d.Tracer.Of(ctx, read.Trace, trace.Producer, "claim")}
		w.decide = func(r run.Run) (run.Run, run.ClaimVerdict) {
			switch {
			case r.Version == 0:
				return r, run.Taken
			case !DeletedFor(*j, r):
				return r.Claim(*c)
			case r.State == run.Scheduled, r.State == run.Queued:
				why := Deleted
				if j.Generation == 0 {
					why = NoJob
				}
				next, _ := r.AskCancel(b.Now, why, job.DefaultRetention)
				return next, run.Claimed
			}
			return r, run.Taken
		}
		wishes, asked = append(wishes, w), append(asked, read)
	}
	if err := d.grant(ctx, append(slices.Clone(wishes), held...)); err != nil {
		return nil, nil, err
	}
	for _, w := range held {
		if w.err != nil {
			return nil, nil, w.err
		}
	}
	for i, w := range wishes {
		claim := w.traced(ctx)
		switch {
		case w.err != nil:
			late = append(late, timer.NewCheck(tenant, w.run.ID, b.Resume))
		case w.verdict == run.Claimed && w.run.State.Ended() && jobs[w.run.ID.Job].Def.Gated():
			if err := d.Left(ctx, w.run); err != nil { // then the checks of those that wait do it
				d.Log.WarnContext(ctx, "who waits for a run's end is not let in yet", "run", w.run.ID.String(), "error", err)
			}
		case w.run.Version == 0: // and nothing of what was wished for it happened
			lost(*asked[i])
		case w.run.State != run.Queued || w.verdict == run.Taken || w.run.Waits():
		default:
			if w.verdict == run.Claimed {
				tally.Claimed++
			} else {
				tally.Resent++
			}
			send = append(send, Outgoing{Run: w.run, Queue: jobs[w.run.ID.Job].Def.Queue, Due: w.run.ID.Nominal, claim: claim})
		}
	}
	unsent, err := d.Send(ctx, send)
	endClaims(send)
	if err != nil {
		return nil, nil, err
	}
	tally.Sent += len(send) - len(unsent)
	tally.Unsent += len(unsent)
	for _, o := range unsent {
		late = append(late, timer.NewCheck(tenant, o.Run.ID, b.Resume))
	}
	return late, missing, nil
}

// DeletedFor tells whether the job that a run on demand was asked of is deleted, though another may have its name by now. A run whose mark is of a
// generation since then is of the job that stands. One that nobody has marked yet, since a pause held it or its claim was put off, and one under a
// generation that somebody remembered, are of the job that stood when they were made: a delete ends all that was due since Recent, so what it has
// left to others was made long before the name had a job again.
func DeletedFor(j job.Job, r run.Run) bool {
	return j.Generation == 0 || j.Deleted || j.Gone(r.Generation) && r.Created < Recent(j.Created)+2*MaxSkew.Milliseconds()
}

// hold wishes a run of a paused job to wait. One that was not read is put where nothing stands: nobody binds it, and so finds that it
// does not.
func hold(r run.Run, j *job.Job, b Bounds) *wish {
	return &wish{run: r, decide: func(r run.Run) (run.Run, run.ClaimVerdict) {
		if r.Version == 0 {
			if b.forgets(r, j) {
				return r, run.Taken
			}
			r.State, r.Generation, r.Trigger = run.Scheduled, j.Generation, run.ByRequest
			return r, run.Claimed
		}
		if next, ok := r.Hold(j.Generation); ok {
			return next, run.Claimed
		}
		return r, run.Taken
	}}
}

// ensure puts runs as Scheduled where nothing stands, and gives what stands. Nobody was told of such a run, so it is of the job that stands.
func (d *Dispatcher) ensure(ctx context.Context, tenant string, runs []run.Run) ([]run.Run, error) {
	jobs, err := d.newest(ctx, tenant, runs)
	if err != nil {
		return nil, err
	}
	wishes := make([]*wish, len(runs))
	for i, r := range runs {
		generation := jobs[r.ID.Job].Generation
		r.Version = 0
		wishes[i] = &wish{run: r, decide: func(r run.Run) (run.Run, run.ClaimVerdict) {
			if r.Version != 0 {
				return r, run.Taken
			}
			r.State, r.Generation, r.Trigger = run.Scheduled, generation, run.ByRequest
			return r, run.Claimed
		}}
	}
	if err := d.grant(ctx, wishes); err != nil {
		return nil, err
	}
	standing := make([]run.Run, len(runs))
	for i, w := range wishes {
		if w.err != nil {
			return nil, w.err
		}
		standing[i] = w.run
	}
	return standing, nil
}

// ReadRuns reads runs as they stand now, at most store.MaxKeys. One that does not exist has Version 0; one that cannot be read
// has its Version and no State.
func (d *Dispatcher) ReadRuns(ctx context.Context, runs []run.Run) ([]run.Run, error) {
	return d.readRuns(ctx, runs, d.Store.Get)
}

// PeekRuns is ReadRuns at half the price, and may show an older state.
func (d *Dispatcher) PeekRuns(ctx context.Context, runs []run.Run) ([]run.Run, error) {
	return d.readRuns(ctx, runs, d.Store.Peek)
}

func (d *Dispatcher) readRuns(ctx context.Context, runs []run.Run, read func(context.Context, ...store.Key) ([]store.Item, error)) ([]run.Run, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	keys := make([]store.Key, len(runs))
	for i, r := range runs {
		keys[i] = r.ID.Key(r.Tenant)
	}
	items, err := read(ctx, keys...)
	if err != nil {
		return nil, err
	}
	standing := make([]run.Run, len(runs))
	for i, item := range items {
		if standing[i], _, err = run.FromItem(runs[i].Tenant, runs[i].ID, item); err != nil {
			d.Log.ErrorContext(ctx, "a run is unreadable", "tenant", runs[i].Tenant, "run", runs[i].ID.String(), "error", err)
			standing[i] = run.Run{ID: runs[i].ID, Tenant: runs[i].Tenant, Version: item.Version}
		}
	}
	return standing, nil
}

// distinct leaves each run once: two timers may stand for one.
func distinct(runs []run.Run) []run.Run {
	type name struct {
		tenant string
		id     run.ID
	}
	seen := make(map[name]bool, len(runs))
	for i := range runs {
		seen[name{runs[i].Tenant, runs[i].ID}] = true
	}
	if len(seen) == len(runs) {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r run.Run) bool {
		at := name{r.Tenant, r.ID}
		first := seen[at]
		delete(seen, at)
		return !first
	})
}

// newest reads the jobs of some runs, by name.
func (d *Dispatcher) newest(ctx context.Context, tenant string, runs []run.Run) (map[string]*job.Job, error) {
	jobs := map[string]*job.Job{}
	var names []string
	for i := range runs {
		name := runs[i].ID.Job
		if i > 0 && name == runs[i-1].ID.Job {
			continue
		}
		if _, seen := jobs[name]; !seen {
			jobs[name] = nil
			names = append(names, name)
		}
	}
	for some := range slices.Chunk(names, store.MaxKeys) {
		read, err := d.Book.Jobs(ctx, tenant, some...)
		if err != nil {
			return nil, err
		}
		for i := range read {
			jobs[read[i].Name] = &read[i]
		}
	}
	return jobs, nil
}
