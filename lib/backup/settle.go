package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// maxCounted is up to where skipped fires are counted, as ticks do: a record that holds it means "at least".
const maxCounted = 100_000

// settle goes through the copy. Of each job the fires between the backup and now become one skipped run, and the next one gets
// its timer. The runs that no sweep has listed yet are listed by time: none will come by any more. The lines that stand still are counted.
func (c *copier) settle(ctx context.Context) error {
	layout, begun, err := c.layout(ctx)
	if err != nil || !begun {
		return err
	}
	err = c.to.Store.Export(ctx, func(item store.Item) error {
		var err error
		parts := strings.Split(item.Partition, "#")
		switch {
		case parts[0] == "job" && len(parts) == 3:
			var j job.Job
			j, err = job.FromItem(parts[1], item.Sort, item)
			if errors.Is(err, record.ErrBroken) {
				c.fault(item.Sort, err.Error())
				return nil
			}
			if err == nil {
				err = c.job(ctx, layout, j)
			}
		case parts[0] == "gate" && len(parts) == 3:
			err = c.line(ctx, parts[1], parts[2], item)
		case parts[0] == "run" && !c.CatchUp:
			var r run.Run
			var ok bool
			if r, ok, err = runOf(item); ok && r.State != run.Fenced {
				err = c.list(ctx, r)
			}
		}
		if err != nil {
			return fmt.Errorf("item %s: %w", item.Key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for tenant := range c.unnamed {
		if err := c.flushList(ctx, tenant); err != nil {
			return err
		}
	}
	return c.to.flush(ctx)
}

// line counts the line of a gate that stands still behind a run which ended badly, as those do who let runs in. Of a gate, or a job, that cannot be read nobody can tell.
func (c *copier) line(ctx context.Context, tenant, name string, item store.Item) error {
	g, err := gate.FromItem(tenant, name, item)
	of, own := gate.OwnOf(name)
	if errors.Is(err, record.ErrBroken) || err == nil && !own {
		return nil
	}
	if err != nil {
		return err
	}
	jobs, err := c.books.Jobs(ctx, tenant, of)
	if err != nil {
		return err
	}
	strict := jobs[0].StrictSince()
	if strict == 0 { // so it is of one that cannot be read
		return nil
	}
	round := g.Begin()
	for ids := round.Unsure(store.MaxKeys); len(ids) > 0; ids = round.Unsure(store.MaxKeys) {
		standing, err := c.standing(ctx, tenant, ids)
		if err != nil {
			return err
		}
		round.Learn(standing)
	}
	round.Settle(strict)
	if behind := round.Blockers(); len(behind) > 0 {
		c.report.Lines++
		if len(c.report.Behind) < listed {
			c.report.Behind = append(c.report.Behind, behind[0].ID.String())
		}
	}
	return nil
}

// standing reads runs of the copy. One that cannot be read has no state.
func (c *copier) standing(ctx context.Context, tenant string, ids []run.ID) ([]run.Run, error) {
	keys := make([]store.Key, len(ids))
	for i, id := range ids {
		keys[i] = id.Key(tenant)
	}
	items, err := c.to.Store.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	runs := make([]run.Run, len(ids))
	for i, item := range items {
		runs[i], _, err = run.FromItem(tenant, ids[i], item)
		if errors.Is(err, record.ErrBroken) {
			runs[i], err = run.Run{ID: ids[i], Tenant: tenant, Version: item.Version}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// listedAtOnce bounds the runs that are held before they are listed.
const listedAtOnce = 4096

// list has a run listed by time that no sweep has come to.
func (c *copier) list(ctx context.Context, r run.Run) error {
	if r.ID.Nominal < c.listed || r.ID.Nominal > c.now {
		return nil // listed, or to be listed when it is due
	}
	retention := job.DefaultRetention
	if e, err := c.books.Edition(ctx, r.Tenant, r.ID.Job, r.Generation); err == nil {
		retention = e.Def.Retention.Std()
	}
	expires := time.UnixMilli(max(r.Expires, c.now+retention.Milliseconds()))
	c.unnamed[r.Tenant] = append(c.unnamed[r.Tenant], run.Listing{ID: r.ID, Expires: expires})
	if len(c.unnamed[r.Tenant]) < listedAtOnce {
		return nil
	}
	return c.flushList(ctx, r.Tenant)
}

func (c *copier) flushList(ctx context.Context, tenant string) error {
	ops, err := run.Index(tenant, c.unnamed[tenant], c.NewID())
	if err != nil {
		return err
	}
	c.unnamed[tenant] = c.unnamed[tenant][:0]
	for _, op := range ops {
		if err := c.to.put(ctx, Entry{Item: itemOf(1, op)}); err != nil {
			return err
		}
	}
	return nil
}

// layout is how the store is cut into shards; false for one in which no server has ever run, which owes nothing.
func (c *copier) layout(ctx context.Context) (layout timer.Layout, begun bool, err error) {
	items, err := c.to.Store.Get(ctx, timer.LayoutKey)
	if err != nil || !items[0].Exists() {
		return layout, false, err
	}
	if err := record.Decode(items[0].Value, &layout); err != nil {
		return layout, false, fmt.Errorf("the layout: %w", err)
	}
	if !layout.Valid() {
		return layout, false, fmt.Errorf("%w: a layout of %d shards", ErrDamaged, layout.Shards)
	}
	return layout, true, nil
}

func (c *copier) job(ctx context.Context, layout timer.Layout, j job.Job) error {
	if !j.Active() {
		return nil
	}
	fires, err := job.Compile(*j.Def.Schedule)
	if err != nil {
		c.fault(j.Name, err.Error())
		return nil
	}
	next, ok := fires.Next(time.UnixMilli(c.now))
	if ok && !next.After(time.UnixMilli(c.now)) {
		c.fault(j.Name, "its next fire does not advance")
		return nil
	}
	if ok {
		c.report.Jobs++
		if c.report.Next.IsZero() || next.Before(c.report.Next) {
			c.report.Next, c.report.NextJob = next, j.Name
		}
	}
	if c.CatchUp {
		return nil // its timer stands where it stood, and the ticks go on from there
	}
	if ok {
		nominal := next.UnixMilli()
		op, err := timer.NewFire(j.Tenant, j.Name, j.Generation, nominal, nominal).Put(c.NewID())
		if err != nil {
			return err
		}
		if err := c.to.put(ctx, Entry{Item: itemOf(1, op)}); err != nil { // where it stands already, it is the same
			return err
		}
	}
	reached := c.reached[layout.ShardOf(timer.BucketOf(j.Tenant, j.Name))]
	return c.skip(ctx, j, fires, max(reached, j.Updated))
}

func (c *copier) fault(name, why string) {
	if len(c.report.Faults) < listed {
		c.report.Faults = append(c.report.Faults, name+": "+why)
	}
}

// skip records the fires after an instant that have no run: at the first of them, as ticks record what they missed.
func (c *copier) skip(ctx context.Context, j job.Job, fires job.Fires, after int64) error {
	for {
		first, ok := fires.Next(time.UnixMilli(after))
		if !ok || first.UnixMilli() > c.now || first.UnixMilli() <= after {
			return nil
		}
		id := run.FireID(j.Name, first.UnixMilli())
		items, err := c.to.Store.Get(ctx, id.Key(j.Tenant))
		if err != nil {
			return err
		}
		r, _, err := run.FromItem(j.Tenant, id, items[0])
		if errors.Is(err, record.ErrBroken) {
			after = id.Nominal
			continue
		}
		if err != nil {
			return err
		}
		last, _ := fires.Last(first, time.UnixMilli(c.now))
		count, _ := fires.Count(first, last, maxCounted)
		missed := run.Stretch{Generation: j.Generation, Through: last.UnixMilli(), Upto: c.now, Count: count, Reason: c.reason}
		skipped, verdict := r.Skip(missed, c.now, j.Def.Retention.Std())
		if verdict != run.Claimed {
			after = max(id.Nominal, r.Through) // it was claimed ahead of the watermark, or skipped
			continue
		}
		op, err := skipped.Item(c.NewID())
		if err != nil {
			return err
		}
		c.report.Skipped += count
		c.report.SkippedJobs++
		if err := c.list(ctx, skipped); err != nil {
			return err
		}
		return c.to.put(ctx, Entry{Item: itemOf(items[0].Version+1, op)})
	}
}
