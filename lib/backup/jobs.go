package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// maxCounted is up to where skipped fires are counted, as ticks do: a record that holds it means "at least".
const maxCounted = 100_000

// jobs goes through the jobs of the copy: the fires between the backup and now become one skipped run, and the next one gets
// its timer.
func (c *copier) jobs(ctx context.Context) error {
	layout, err := c.layout(ctx)
	if err != nil {
		return err
	}
	if err := c.eachJob(ctx, layout); err != nil {
		return err
	}
	return c.to.flush(ctx)
}

func (c *copier) eachJob(ctx context.Context, layout timer.Layout) error {
	return c.to.Store.Export(ctx, func(item store.Item) error {
		parts := strings.Split(item.Partition, "#")
		if parts[0] != "job" || len(parts) != 3 {
			return nil
		}
		j, err := job.FromItem(parts[1], item.Sort, item)
		if errors.Is(err, record.ErrBroken) {
			c.fault(item.Sort, err.Error())
			return nil
		}
		if err == nil {
			err = c.job(ctx, layout, j)
		}
		if err != nil {
			return fmt.Errorf("job %s: %w", item.Sort, err)
		}
		return nil
	})
}

func (c *copier) layout(ctx context.Context) (timer.Layout, error) {
	items, err := c.to.Store.Get(ctx, timer.LayoutKey)
	if err != nil {
		return timer.Layout{}, err
	}
	var layout timer.Layout
	if !items[0].Exists() {
		return layout, fmt.Errorf("%w: it holds no layout, as every store has one", ErrDamaged)
	}
	if err := record.Decode(items[0].Value, &layout); err != nil {
		return layout, fmt.Errorf("the layout: %w", err)
	}
	if !layout.Valid() {
		return layout, fmt.Errorf("%w: a layout of %d shards", ErrDamaged, layout.Shards)
	}
	return layout, nil
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
		return c.to.put(ctx, Entry{Item: itemOf(items[0].Version+1, op)})
	}
}
