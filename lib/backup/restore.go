package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Options say what a restored copy does about the past. The zero value: nothing.
type Options struct {
	Now   time.Time     // of the restore: what lies before it is the past
	NewID func() uint64 // random, never 0

	// CatchUp leaves the fires between the backup and now to each job's catch_up, as after a downtime. Those that the original
	// ran after the backup run once more.
	CatchUp bool
	// Resume lets runs that had not ended go on. Those that the original ended after the backup run once more.
	Resume bool

	Told func(Count) // hears how far the reading is; nil for nobody
}

// Step is by how much versions of runs are raised, and with them the fences that targets see: more than any run's writes since
// its backup, and still a number that JSON holds exactly after thousands of restores.
const Step = 1 << 32

// soon is how long after a restore the run of a workflow is looked at, in ms: ticks begin at now, so it is ahead of these.
const soon = int64(time.Minute / time.Millisecond)

// listed is how many runs of each kind and faults a report names.
const listed = 20

// Report says what was restored, and what the copy does about the past.
type Report struct {
	About   About
	Count   Count
	Jobs    int       // that will fire
	Next    time.Time // the first fire to come; zero where there is none
	NextJob string

	Skipped     int // fires between the backup and now that were recorded as skipped
	SkippedJobs int // of how many jobs

	Unended int      // runs that had not ended
	Ended   int      // of those, how many are unknown now
	Runs    []string // the first of these
	Ahead   int      // requested for a time to come: they run then
	Lines   int      // of jobs under overlap strict that stand still, each until its run is retried and succeeds, or somebody opens the gate of the job
	Behind  []string // the first of the runs behind which they do
	Faults  []string // jobs that will not fire, with the reason
}

// Restore makes a copy of the past that goes on from now. After an error the target is good for nothing.
func Restore(ctx context.Context, in io.Reader, into Target, o Options) (Report, error) {
	r, err := Open(in)
	if err != nil {
		return Report{}, err
	}
	defer r.Close()
	c := &copier{Options: o, now: o.Now.UnixMilli(), to: sink{Target: into}, reached: map[int]int64{}, listed: math.MaxInt64,
		books: job.NewBook(into.Store, job.Compile), unnamed: map[string][]run.Listing{}}
	c.report.About = r.About
	c.reason = "restored from a backup of " + r.About.Taken.Format(time.RFC3339)
	err = r.each(ctx, o.Told, func(e Entry) error {
		if !e.Item.Exists() {
			return c.to.put(ctx, e)
		}
		items, err := c.item(e.Item)
		if err != nil {
			return fmt.Errorf("item %s: %w", e.Item.Key, err)
		}
		for _, item := range items {
			if err := c.to.put(ctx, Entry{Item: item}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = c.to.flush(ctx)
	}
	c.report.Count = r.count
	if err != nil {
		return c.report, err
	}
	return c.report, c.settle(ctx)
}

// copier turns the items of a backup into those of the copy.
type copier struct {
	Options
	now     int64
	reason  string
	to      sink
	reached map[int]int64 // by shard: its watermark in the backup
	listed  int64         // up to here runs are listed by time: the lowest cursor of a sweep
	books   *job.Book
	unnamed map[string][]run.Listing // by tenant: runs that are to be listed
	report  Report
}

// item gives what becomes of an item: itself, changed, beside another, or nothing.
func (c *copier) item(item store.Item) ([]store.Item, error) {
	if len(item.Value) > 0 && item.Value[0] > record.Format {
		return nil, fmt.Errorf("%w: restore it with that version", ErrNewer)
	}
	prefix, _, _ := strings.Cut(item.Partition, "#")
	switch prefix {
	case "shard":
		return c.shard(item)
	case "due":
		return c.timer(item), nil
	case "run":
		return c.run(item)
	case "step":
		return c.step(item)
	case "gate":
		if !c.Resume {
			return c.gate(item)
		}
	case "line":
		if !c.Resume {
			return nil, nil // of runs that have ended by now
		}
	case "swept":
		if !c.CatchUp {
			return nil, nil // of minutes that lie behind all cursors now
		}
	}
	return []store.Item{item}, nil
}

// shard puts the cursors of a shard at now: no tick looks behind them.
func (c *copier) shard(item store.Item) ([]store.Item, error) {
	var n int
	if _, err := fmt.Sscanf(item.Partition, "shard#%d", &n); err != nil {
		return nil, fmt.Errorf("%w: want a number behind shard#", ErrDamaged)
	}
	s, err := timer.ShardFromItem(n, item)
	if err != nil {
		return nil, err
	}
	c.reached[n] = s.Watermark
	c.listed = min(c.listed, s.Oldest())
	s.Owner, s.Lease = "", 0
	if !c.CatchUp {
		s.Horizon, s.Watermark, s.Reached = max(s.Horizon, c.now), c.now, nil
		for k := range s.Swept {
			s.Swept[k] = c.now - c.now%60_000
		}
	}
	op, err := s.Put(c.NewID())
	return []store.Item{itemOf(item.Version, op)}, err
}

// timer leaves out what lies in the past: what it would wake is decided here. One that cannot be read stays, as ticks have it.
func (c *copier) timer(item store.Item) []store.Item {
	t, err := timer.FromItem(item)
	if err == nil && !c.CatchUp && (t.Wake <= c.now || t.Nominal <= c.now) {
		return nil
	}
	return []store.Item{item}
}

// run raises the version, and ends what had not ended.
func (c *copier) run(item store.Item) ([]store.Item, error) {
	raised := item
	raised.Version += Step
	r, ok, err := runOf(item)
	if err != nil {
		return nil, err
	}
	if !ok || r.State == run.Fenced || r.State.Ended() {
		return []store.Item{raised}, nil
	}
	if r.ID.Nominal > c.now {
		c.report.Ahead++
		return c.watched(raised, r)
	}
	c.report.Unended++
	if c.Resume {
		return c.watched(raised, r)
	}
	r, _ = r.Restored(c.now, c.reason, job.DefaultRetention)
	c.report.Ended++
	if len(c.report.Runs) < listed {
		c.report.Runs = append(c.report.Runs, r.ID.String())
	}
	op, err := r.Item(c.NewID())
	return []store.Item{itemOf(raised.Version, op)}, err
}

// step raises the version, and ends what had not ended: the run that it is of ends, too.
func (c *copier) step(item store.Item) ([]store.Item, error) {
	raised := item
	raised.Version += Step
	tenant, of, found := strings.Cut(strings.TrimPrefix(item.Partition, "step#"), "#")
	id, err := run.ParseID(of)
	if !found || err != nil {
		return nil, fmt.Errorf("%w: want step#TENANT#RUN", ErrDamaged)
	}
	r, err := run.StepFromItem(tenant, id, raised)
	switch {
	case errors.Is(err, record.ErrBroken), err == nil && (r.State.Ended() || c.Resume):
		return []store.Item{raised}, nil
	case err != nil:
		return nil, err
	}
	r, _ = r.Restored(c.now, c.reason, job.DefaultRetention)
	op, err := r.Item(c.NewID())
	return []store.Item{itemOf(raised.Version, op)}, err
}

// gate leaves at a gate those alone that may hold up a line after their end: all others hold no place any more, since they have ended by now.
func (c *copier) gate(item store.Item) ([]store.Item, error) {
	parts := strings.Split(item.Partition, "#")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%w: want gate#TENANT#NAME", ErrDamaged)
	}
	g, err := gate.FromItem(parts[1], parts[2], item)
	if errors.Is(err, record.ErrBroken) { // nobody can tell who was let in
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	restored, some := g.Restored()
	if !some {
		return nil, nil
	}
	op, err := restored.Put(c.Now, c.NewID())
	return []store.Item{itemOf(item.Version, op)}, err
}

// runOf reads a run by its item alone; false for one that cannot be read, and could not be before.
func runOf(item store.Item) (run.Run, bool, error) {
	parts := strings.Split(item.Partition, "#")
	if len(parts) != 4 {
		return run.Run{}, false, fmt.Errorf("%w: want run#TENANT#JOB#N", ErrDamaged)
	}
	var r run.Run
	ok := false
	id, err := run.IDFromSort(parts[2], item.Sort)
	if err == nil {
		r, ok, err = run.FromItem(parts[1], id, item)
	}
	if errors.Is(err, record.ErrBroken) {
		return run.Run{}, false, nil
	}
	return r, ok, err
}

// watched gives an unended run a wake-up beyond all cursors, since those behind them are gone.
func (c *copier) watched(item store.Item, r run.Run) ([]store.Item, error) {
	if c.CatchUp {
		return []store.Item{item}, nil
	}
	wake := timer.NextCheck(r.Tenant, r.ID, c.now)
	switch {
	case r.State == run.Retrying && r.NextAt > c.now:
		wake = timer.NewCheck(r.Tenant, r.ID, r.NextAt)
	case r.Heads(): // its time may be over before the regular check
		wake = timer.NewCheck(r.Tenant, r.ID, c.now+soon)
	}
	ends := []int64{r.EndBy}
	if r.State == run.Queued {
		ends = append(ends, r.StartBy, r.Wait.Until)
	}
	for _, end := range ends {
		if end != 0 && end < wake.Wake {
			wake = timer.NewCheck(r.Tenant, r.ID, max(end, c.now+soon))
		}
	}
	op, err := wake.Put(c.NewID())
	return []store.Item{item, itemOf(1, op)}, err
}

func itemOf(version uint64, op store.Op) store.Item {
	return store.Item{Key: op.Key, Version: version, Value: op.Value, Expires: op.Expires, Attempt: op.Attempt}
}
