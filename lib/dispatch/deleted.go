package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Deleted is the reason of a run that was cancelled since its job was deleted.
const Deleted = "the job was deleted"

// NoJob is the reason of a callback that was cancelled since there never was the job that the operator names.
const NoJob = "there is no such job"

// Promptness is how long after it was due a run may start without a look at its job. A delete itself ends every run that was due since Recent.
// What was due before reads its job when its start is durable, and so does each attempt that is not its run's first; it calls nothing where the
// job was deleted. So an ordinary run reads nothing for it, and a delete searches for nothing.
const Promptness = 10 * time.Second

// Prompt tells whether a start that was durable at now needs no look at the job. r is the run before it, due in Unix ms. Where a clock that was ahead
// has been set back, a run may be in time once more, after a delete by that clock: then each start looks.
func (d *Dispatcher) Prompt(r run.Run, due, now int64) bool {
	return r.Attempt == 0 && r.Reason == "" && now <= due+Promptness.Milliseconds() && !d.again(now)
}

// Recent is from when on (Unix ms) a delete at t ends what is due. What was due before and has started without a look did so before the delete, by
// any clock that may start something.
func Recent(t int64) int64 { return t - (Promptness + 2*MaxSkew).Milliseconds() }

// RecentFires gives the runs of a deleted job's fires that lie before the delete at t, and may be started yet without a look at the job.
// Those of each generation are in force up to its end, and behind the end of the one before. What lies behind its end, a tick may have claimed, and
// the edit that was to fence it died: these are the strays.
func RecentFires(j job.Job, t int64, editions []*job.Edition) (fires, strays []run.Run) {
	after := j.Created // what the job forgets of its past was over long before
	for i, past := range j.Past {
		from, e := after, editions[i]
		after = past.Until
		if e.Schedule == nil || e.Def.Paused {
			continue
		}
		from = max(from+1, Recent(t)-e.Def.Schedule.Jitter.Std().Milliseconds())
		for _, f := range FiresBetween(e.Schedule, from, t, maxRecent) {
			fire := run.Run{ID: run.FireID(j.Name, f), Tenant: j.Tenant, Generation: past.Generation, Priority: e.Def.Priority}
			switch {
			case e.Due(j.Tenant, j.Name, f) < Recent(t):
			case f <= past.Until:
				fires = append(fires, fire)
			case !slices.ContainsFunc(strays, func(other run.Run) bool { return other.ID == fire.ID }):
				strays = append(strays, fire)
			}
		}
	}
	return fires, strays
}

// maxRecent bounds the fires of a generation that are looked at: more than the most frequent schedule has within the largest jitter.
const maxRecent = 1000

// Withdraw ends fires of a deleted job that have not started, at most store.MaxKeys, as of now. Each says which generation it is of; those of
// one generation stand together, in their order. What a decision over missed fires has dropped stays dropped.
//
// Durable afterwards: their ends, and before that what lists those that nobody had claimed. A crash in between leaves some to be claimed; nobody
// was told of the delete, and a repeated one ends them.
func (d *Dispatcher) Withdraw(ctx context.Context, now int64, fires []run.Run) error {
	standing, err := d.ReadRuns(ctx, fires)
	if err != nil {
		return err
	}
	var wishes []*wish
	var listings []run.Listing
	var generation, through int64 // up to where that one's fires are dropped
	for i, fire := range fires {
		r := standing[i]
		open := r.Version == 0 || r.State == run.Fenced
		if open && fire.Generation != generation {
			before, found, err := d.nearestOf(ctx, fire.Tenant, fire.ID.Job, fire.Generation,
				store.Range{Partition: fire.ID.Key(fire.Tenant).Partition, To: run.SortFrom(fire.ID.Nominal), Backward: true})
			if err != nil {
				return err
			}
			generation, through = fire.Generation, 0
			if found && dropped(before, generation) {
				through = before.Through
			}
		} else if dropped(r, fire.Generation) {
			generation, through = fire.Generation, r.Through
		}
		if open && fire.ID.Nominal <= through {
			continue
		}
		if open { // no timer need stand for it: an edit that made this generation may have died
			listing, err := d.Listing(ctx, fire, now)
			if err != nil {
				return err
			}
			listings = append(listings, listing)
		}
		c := run.Claim{Generation: fire.Generation, Trigger: run.BySchedule, Now: now, Run: run.Run{Priority: fire.Priority}}
		wishes = append(wishes, &wish{run: r, decide: func(r run.Run) (run.Run, run.ClaimVerdict) { return r.Withdraw(c, Deleted, job.DefaultRetention) }})
	}
	if len(listings) > 0 {
		ops, err := run.IndexAhead(fires[0].Tenant, listings, d.NewID())
		if err != nil {
			return err
		}
		verdicts, err := d.WriteEach(ctx, ops)
		for _, v := range verdicts {
			err = errors.Join(err, v.Err)
		}
		if err != nil {
			return err
		}
	}
	return d.granted(ctx, wishes)
}
