package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Wanted is a job as it is to be.
type Wanted struct {
	Name string
	Def  job.Definition
}

// Placed is what became of one.
type Placed struct {
	Job    job.Job
	Change Change
	Err    error
}

// together is how many new jobs share a write: as many as it takes, each with its first timer.
const together = store.MaxOps / 2

// PutMany puts jobs, each as Put does without a condition, and each with its own verdict. New jobs share what they have in common:
// reads, and one write for many. All others are edited one by one.
func (s *Service) PutMany(ctx context.Context, tenant string, wanted []Wanted) []Placed {
	placed := make([]Placed, len(wanted))
	valid := make([]*placing, 0, len(wanted))
	seen := make(map[string]bool, len(wanted))
	for i, w := range wanted {
		if seen[w.Name] {
			placed[i].Err = invalid.Field("name", w.Name, "each job once in a batch")
			continue
		}
		seen[w.Name] = true
		p := &placing{Placed: &placed[i], name: w.Name}
		if p.put, p.Err = s.draft(tenant, w.Name, w.Def, Match{}); p.Err == nil {
			valid = append(valid, p)
		}
	}
	drafts, beside := make([]*put, len(valid)), make(map[string]bool, len(valid))
	for i, p := range valid {
		drafts[i], beside[p.name] = p.put, true
	}
	if err := s.look(ctx, tenant, beside, drafts...); err != nil {
		for _, p := range valid {
			p.Err = err
		}
		return placed
	}
	dispatch.Parallel(slices.Collect(slices.Chunk(valid, together)), fanOut, func(_ int, some []*placing) {
		dispatch.Parallel(s.create(ctx, tenant, some), fanOut, func(_ int, p *placing) {
			p.Job, p.Err = s.edit(ctx, tenant, p.name, p.apply)
			p.Change = p.change
		})
	})
	return placed
}

// placing is a job of a batch on its way.
type placing struct {
	*put
	*Placed
	name string
	ops  []store.Op
}

// create makes the jobs of which nothing stands, in one write, and gives those that it did nothing about: they stand, or somebody
// made one of them meanwhile.
func (s *Service) create(ctx context.Context, tenant string, some []*placing) (left []*placing) {
	now, fresh, left, err := s.fresh(ctx, tenant, some)
	if err == nil && len(fresh) > 0 {
		err = s.writeNew(ctx, now, fresh)
	}
	if errors.Is(err, errAgain) {
		return append(left, fresh...)
	}
	if err == nil {
		err = halfDone(s.settleNew(ctx, fresh))
	}
	for _, p := range fresh {
		if p.Err == nil {
			p.Err = err
		}
		if p.Err == nil {
			p.Change = Created
		}
	}
	return left
}

// fresh tells the jobs of which nothing stands from the others, and decides what is to be written of them at now.
func (s *Service) fresh(ctx context.Context, tenant string, some []*placing) (now int64, fresh, left []*placing, err error) {
	if now, err = s.Dispatch.Clock(); err != nil {
		return 0, some, nil, skewed(err)
	}
	names := make([]string, len(some))
	for i, p := range some {
		names[i] = p.name
	}
	jobs, err := s.Dispatch.Book.Jobs(ctx, tenant, names...)
	if err != nil {
		return 0, some, nil, err
	}
	for i, p := range some {
		if jobs[i].Version != 0 {
			left = append(left, p)
			continue
		}
		p.Job = jobs[i]
		if _, p.Err = p.apply(&p.Job); p.Err == nil {
			// Nothing came before, so the shard's cursors, which tell what of that is settled, are not needed.
			p.Job, p.ops, p.Err = s.renew(jobs[i], p.Job, now, timer.Shard{})
		}
		if p.Err == nil {
			fresh = append(fresh, p)
		}
	}
	return now, fresh, left, nil
}

// writeNew writes new jobs with their first timers, as a whole; errAgain where nothing was written and one by one may do.
func (s *Service) writeNew(ctx context.Context, now int64, fresh []*placing) error {
	var ops []store.Op
	for _, p := range fresh {
		ops = append(ops, p.ops...)
	}
	if s.outdated(now) || store.CheckWrite(ops) != nil {
		return errAgain
	}
	versions, err := s.Dispatch.Write(ctx, ops...)
	switch {
	case store.AsConflict(err) != nil && !errors.Is(err, store.ErrUnknown):
		return errAgain
	case err != nil:
		return fmt.Errorf("write %d jobs: %w", len(fresh), err)
	}
	for _, p := range fresh {
		p.Job.Version, versions = versions[0], versions[len(p.ops):]
		s.Dispatch.Book.Saw(p.Job)
	}
	return nil
}

// settleNew is settle for jobs that were just made: it reads the horizons. There are no older generations, so there is nothing of theirs
// to be fenced or bound again, and no newer edit leaves anything to this one. What fires inside the horizon is settled as any other.
func (s *Service) settleNew(ctx context.Context, fresh []*placing) error {
	shards, err := s.shards(ctx)
	if err != nil {
		return err
	}
	soon := slices.DeleteFunc(slices.Clone(fresh), func(p *placing) bool {
		horizon := shards[s.Dispatch.Layout.ShardOf(timer.BucketOf(p.Job.Tenant, p.name))].Horizon
		return !p.Job.Active() || !p.fires(p.Job.Updated, horizon)
	})
	dispatch.Parallel(soon, fanOut, func(_ int, p *placing) {
		settled, err := s.settle(ctx, p.Job, false)
		if err == nil && !settled.Deleted {
			p.Job = settled
		}
		p.Err = halfDone(err)
	})
	return nil
}

// fires tells whether the definition fires in (from, to], Unix ms.
func (p *placing) fires(from, to int64) bool {
	next, ok := p.compiled.Next(time.UnixMilli(from))
	return ok && next.UnixMilli() <= to
}
