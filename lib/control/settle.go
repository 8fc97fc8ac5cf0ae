package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// settle makes an edit hold inside the horizon: it fences what older generations may have claimed there, and claims the new
// one's own fires. The horizon is read after the edit was written, and the job again after that: a tick that does not see the
// edit has published its horizon before; one that publishes later sees the edit. Where a newer edit stands by then, it is
// that one which is settled, so that this answer holds whether or not the other is ever finished.
//
// A repeated edit finds the horizon far beyond where it stood at the first try. What older generations can have claimed lies
// below reach.
func (s *Service) settle(ctx context.Context, j job.Job, repeated bool) (job.Job, error) {
	since := j.Updated // of the earliest of the edits that it settles
	for range maxRounds {
		shard, err := s.shard(ctx, j)
		if err != nil {
			return job.Job{}, err
		}
		newest, err := s.Dispatch.Book.Job(ctx, j.Tenant, j.Name)
		if err != nil {
			return job.Job{}, err
		}
		if newest.Generation != j.Generation {
			// The newer edit looks no further back than its own instant: what was claimed of older generations between the two is ours to
			// fence, under our generation, which is in force there.
			if err := s.fence(ctx, j, j.Updated, min(s.reach(j, shard, repeated), newest.Updated)); err != nil {
				return job.Job{}, fmt.Errorf("fence older generations of %s: %w", j.Name, err)
			}
			if err := s.withdraw(ctx, j); err != nil {
				return job.Job{}, err
			}
			j, since = newest, min(since, newest.Updated)
			continue
		}
		if newest.Generation == 0 {
			return newest, nil
		}
		t := newest.Updated
		if t < shard.Oldest()-dispatch.Lateness.Milliseconds() && s.age(shard.Oldest()) > 0 {
			// Every sweep has passed it, and no cursor is ahead of a clock that was stepped back: what older generations had
			// claimed has long been settled. What was asked of a deleted job may be due much later, and would bind to the next job of the name.
			if newest.Deleted {
				if err := s.rebind(ctx, newest, since, shard.Horizon); err != nil {
					return job.Job{}, fmt.Errorf("bind the runs of %s: %w", j.Name, err)
				}
			}
			return newest, nil
		}
		if err := s.fence(ctx, newest, t, s.reach(newest, shard, repeated)); err != nil {
			return job.Job{}, fmt.Errorf("fence older generations of %s: %w", j.Name, err)
		}
		if err := s.withdraw(ctx, newest); err != nil {
			return job.Job{}, err
		}
		overtaken, err := s.claimAll(ctx, newest, t, shard)
		if err != nil {
			return job.Job{}, fmt.Errorf("claim the fires of %s: %w", j.Name, err)
		}
		if overtaken {
			continue
		}
		if err := s.rebind(ctx, newest, since, shard.Horizon); err != nil {
			return job.Job{}, fmt.Errorf("bind the runs of %s: %w", j.Name, err)
		}
		return newest, nil
	}
	return job.Job{}, &Refusal{Code: CodeBusy, Message: "job " + j.Name + " is being edited by many at once; try again", RetryAfter: time.Second}
}

// reach is up to where older generations than this one may have been claimed. A repeated edit knows a bound of its own.
func (s *Service) reach(j job.Job, shard timer.Shard, repeated bool) int64 {
	if repeated {
		return min(shard.Horizon, max(j.Horizon, s.usual(j.Updated)))
	}
	return shard.Horizon
}

// usual is up to where ticks may claim that have not seen an edit of that time: further only by a clock that has been set back since.
func (s *Service) usual(updated int64) int64 {
	return updated + (dispatch.Lateness + s.Dispatch.Ahead() + dispatch.MaxSkew).Milliseconds()
}

// fence marks the fires of all past generations in (t, horizon], where nothing has started.
func (s *Service) fence(ctx context.Context, j job.Job, t, horizon int64) error {
	if horizon <= t {
		return nil
	}
	expires := s.Now().Add(job.KeepPast).UnixMilli()
	seen := map[int64]bool{}
	var ids []run.Run
	for _, past := range j.Past {
		edition, err := s.Dispatch.Book.Edition(ctx, j.Tenant, j.Name, past.Generation)
		if err != nil {
			return err
		}
		if edition.Schedule == nil || edition.Def.Paused {
			continue
		}
		for from := t + 1; from <= horizon; {
			fires := dispatch.FiresBetween(edition.Schedule, from, horizon, store.MaxKeys)
			for _, f := range fires {
				if !seen[f] {
					seen[f] = true
					ids = append(ids, run.Run{ID: run.FireID(j.Name, f), Tenant: j.Tenant})
				}
			}
			if len(fires) < store.MaxKeys {
				break
			}
			from = fires[len(fires)-1] + 1
		}
	}
	return s.Dispatch.Change(ctx, ids, func(r run.Run) (run.Run, bool) { return r.FenceOff(j.Generation, expires) })
}

// withdraw ends the fires before a delete that may be started yet without a look at the job. Those that wait for longer, or are tried again, look.
func (s *Service) withdraw(ctx context.Context, j job.Job) error {
	if !j.Deleted {
		return nil
	}
	now, err := s.Dispatch.Clock()
	if err != nil {
		return skewed(err)
	}
	editions := make([]*job.Edition, len(j.Past))
	for i, past := range j.Past {
		if editions[i], err = s.Dispatch.Book.Edition(ctx, j.Tenant, j.Name, past.Generation); err != nil {
			return fmt.Errorf("end the fires of %s: %w", j.Name, err)
		}
	}
	// What has run is only read: most of these have.
	fires, strays := dispatch.RecentFires(j, j.Updated, editions)
	for recent := range slices.Chunk(fires, store.MaxKeys) {
		if err := s.Dispatch.Withdraw(ctx, now, recent); err != nil {
			return fmt.Errorf("end the fires of %s: %w", j.Name, err)
		}
	}
	expires := s.Now().Add(job.KeepPast).UnixMilli()
	for some := range slices.Chunk(strays, store.MaxKeys) {
		standing, err := s.Dispatch.ReadRuns(ctx, some)
		if err == nil {
			claims := slices.DeleteFunc(standing, func(r run.Run) bool { return r.State != run.Queued })
			err = s.Dispatch.Change(ctx, claims, func(r run.Run) (run.Run, bool) { return r.FenceOff(j.Generation, expires) })
		}
		if err != nil {
			return fmt.Errorf("fence the fires of %s: %w", j.Name, err)
		}
	}
	return nil
}

// claimAll claims the new generation's fires in (t, horizon], and those up to where the horizon has moved meanwhile. The last of it
// leaves a successor beyond the horizon. A tick that published a further one before the successor stood has passed over its place
// without seeing it; so the horizon is read again after it stood, until it is still beyond. Without that, only the first sweep would
// find it, minutes late.
//
// What is claimed lies below a horizon that was read before the job. Where the job has changed by then, overtaken says that the newer
// edit is to be settled: that one may have been answered already, after a look at a nearer horizon.
func (s *Service) claimAll(ctx context.Context, j job.Job, t int64, shard timer.Shard) (overtaken bool, err error) {
	for round := range maxRounds {
		first, ok, err := s.firstTimer(j, t)
		if err != nil || !ok || first.Nominal > shard.Horizon {
			return false, err
		}
		if round > 0 {
			newest, err := s.Dispatch.Book.Job(ctx, j.Tenant, j.Name)
			if err != nil || newest.Generation != j.Generation {
				return true, err
			}
		}
		if err := s.claimOwn(ctx, j, first, shard); err != nil {
			return false, err
		}
		t = shard.Horizon
		if shard, err = s.shard(ctx, j); err != nil {
			return false, err
		}
	}
	return false, nil
}

// claimOwn claims the new generation's fires from the first one up to the horizon, which the ticks have passed already.
//
// An edit that is as old as the first sweep's lag, being repeated or after a sleep, claims nothing: a sweep finds its first timer, and
// makes what is missing. Timers for what it claimed itself might lie where no sweep comes by any more.
func (s *Service) claimOwn(ctx context.Context, j job.Job, first timer.Timer, shard timer.Shard) error {
	b, err := s.bounds(shard.Horizon)
	b.Gaps = shard.Gaps
	if err != nil || b.Now-j.Updated >= timer.Lags[0].Milliseconds() {
		return err
	}
	edition, err := s.Dispatch.Book.Newest(j)
	if err != nil {
		return err
	}
	items, err := s.Store.Get(ctx, first.Key())
	if err != nil {
		return err
	}
	if items[0].Exists() {
		if first, err = timer.FromItem(items[0]); err != nil {
			return err
		}
	}
	_, err = s.Dispatch.Fires(ctx, 0, b, []dispatch.FireTimer{{Timer: first, Edition: edition, Until: dispatch.Forever}})
	return err
}

// bounds is what an edit knows of time: the horizon was published.
func (s *Service) bounds(horizon int64) (dispatch.Bounds, error) {
	now, err := s.Dispatch.Clock()
	if err != nil {
		return dispatch.Bounds{}, skewed(err)
	}
	reach := s.Dispatch.Reach(horizon, now)
	return dispatch.Bounds{Now: now, Horizon: horizon, Reach: reach, Resume: reach + dispatch.ResumeAfter.Milliseconds()}, nil
}

// rebind does for on-demand runs what fences do for fires: those of older generations that are due after t lose their claim,
// under a mark that no older claim passes. Then they are claimed again, held or cancelled, as the job now stands. Requests send
// runs themselves up to Directly ahead, which is further than the horizon.
func (s *Service) rebind(ctx context.Context, j job.Job, t, horizon int64) error {
	b, err := s.bounds(horizon)
	if err != nil {
		return err
	}
	// Requests that did not see the edit were taken before now.
	from, upTo := t+1, max(horizon, b.Now+s.Dispatch.Directly().Milliseconds())+stale.Milliseconds()
	if j.HeldSince != 0 {
		from = min(from, j.HeldSince-dispatch.Lateness.Milliseconds()) // what a pause has held is due
	}
	if j.Deleted {
		// Behind the watermarks all is claimed, and looks at the job when it starts. What is not claimed yet would bind to another job of that name.
		shards, err := s.shards(ctx)
		if err != nil {
			return err
		}
		from, upTo = min(from, dispatch.Recent(min(t, b.Now))), dispatch.Forever-1
		for _, shard := range shards {
			from = min(from, shard.Watermark)
		}
	}
	for n := 1; n < run.Partitions; n++ {
		r := store.Range{Partition: run.Partition(j.Tenant, j.Name, n), From: run.SortFrom(from), To: run.SortFrom(upTo + 1), Limit: store.MaxKeys}
		for {
			page, err := s.Store.Query(ctx, r)
			if err != nil {
				return err
			}
			if j.Deleted {
				// Read behind the page: while the tombstone stands, no run there is of another job. Who makes one settles the delete before.
				newest, err := s.Dispatch.Book.Job(ctx, j.Tenant, j.Name)
				if err != nil || newest.Generation != j.Generation {
					return err
				}
			}
			if err := s.rebindPage(ctx, j, b, page.Items); err != nil {
				return err
			}
			if page.Cursor == "" {
				break
			}
			r.Cursor = page.Cursor
		}
	}
	return nil
}

func (s *Service) rebindPage(ctx context.Context, j job.Job, b dispatch.Bounds, items []store.Item) error {
	var unstarted []run.Run
	for _, item := range items {
		id, err := run.IDFromSort(j.Name, item.Sort)
		var r run.Run
		if err == nil {
			r, _, err = run.FromItem(j.Tenant, id, item)
		}
		if err != nil {
			s.Log.ErrorContext(ctx, "a run is unreadable", "tenant", j.Tenant, "key", item.Key.String(), "error", err)
			continue
		}
		if _, open := r.Unbind(j.Generation); open || r.State == run.Scheduled {
			unstarted = append(unstarted, r)
		}
	}
	if err := s.Dispatch.Change(ctx, unstarted, func(r run.Run) (run.Run, bool) {
		if !j.Deleted && dispatch.DeletedFor(j, r) && (r.State == run.Scheduled || r.State == run.Queued) {
			return r.AskCancel(b.Now, dispatch.Deleted, job.DefaultRetention) // of a job that had the name before: under a mark of this one it would be its own
		}
		return r.Unbind(j.Generation)
	}); err != nil {
		return err
	}
	var due []run.Run
	for _, r := range unstarted {
		if j.Deleted || r.ID.Nominal <= b.Now+s.Dispatch.Directly().Milliseconds() {
			due = append(due, r)
		}
	}
	standing, err := s.Dispatch.ReadRuns(ctx, due)
	if err != nil {
		return err
	}
	_, err = s.Dispatch.Requests(ctx, j.Tenant, 0, b, standing)
	return err
}
