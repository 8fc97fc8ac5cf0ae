package tick

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Lags is how long after a minute's end each sweep looks at it again. The longest is beyond the time in which a write may
// still land (ten minutes) and any clock skew, so nothing can come into a minute after it was swept last.
var Lags = [timer.Sweeps]time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour}

// sweeps takes the second looks that are due: whole minutes, each once per sweep, none skipped however late.
func (p *pass) sweeps(ctx context.Context) error {
	for k := range timer.Sweeps {
		end := min(p.bounds.Now-Lags[k].Milliseconds(), p.shard.Watermark)
		end -= end % 60_000 // the first instant of the first minute that is not over
		swept := p.shard.Swept[k]
		work := p.Work / 4
		for swept < end && work > 0 {
			minute := timer.Minute(swept)
			left := p.left
			if err := p.sweep(ctx, k, minute); err != nil {
				return fmt.Errorf("sweep %d of minute %d: %w", k+1, minute, err)
			}
			work -= left - p.left
			swept = (minute + 1) * 60_000
		}
		if swept > p.shard.Swept[k] {
			p.report.Behind = p.report.Behind || swept < end
			// Durable before: every run of these minutes has ended or has a check timer ahead of the horizon. A crash before this
			// write sweeps them again.
			p.shard.Swept[k] = swept
			if err := p.save(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// print is what the first sweep remembers of a minute: for each bucket a hash over its timers, 0 for none. A later sweep that
// finds the same need not look at the runs: each had ended, or had a check timer.
type print struct {
	Buckets [timer.Buckets]uint64 `cbor:"1,keyasint"`
}

func printKey(shard int, minute int64) store.Key {
	return store.Key{Partition: fmt.Sprintf("swept#%02d", shard), Sort: fmt.Sprintf("%010d", minute)}
}

// sweep looks at one minute again.
func (p *pass) sweep(ctx context.Context, k int, minute int64) error {
	var known print
	if k > 0 {
		items, err := p.store.Get(ctx, printKey(p.shard.Number, minute))
		if err != nil {
			return err
		}
		p.left--
		if items[0].Exists() {
			if err := record.Decode(items[0].Value, &known); err != nil {
				return err
			}
		}
	}
	var mu sync.Mutex
	var seen print
	any := false
	lo, hi := minute*60_000, minute*60_000+59_999
	err := p.buckets(ctx, minute, lo, hi, func(p *pass, ctx context.Context, pg page) (Report, error) {
		mu.Lock()
		any = true
		sum := pg.hash()
		seen.Buckets[pg.bucket] = seen.Buckets[pg.bucket]*31 + sum
		mu.Unlock()
		if pg.only && sum == known.Buckets[pg.bucket] {
			return Report{}, nil
		}
		repairs, err := p.again(ctx, pg)
		return Report{Repairs: repairs}, err
	})
	if err != nil || k > 0 || !any {
		return err
	}
	value, err := record.Encode(seen)
	if err != nil {
		return err
	}
	_, err = p.Dispatch.Write(ctx, store.Op{Kind: store.Put, Key: printKey(p.shard.Number, minute), Value: value,
		Expires: time.UnixMilli(hi).Add(2 * Lags[timer.Sweeps-1]), Attempt: p.Dispatch.NewID()})
	return err
}

// hash covers what the sweep acts on: which timers there are, and what they stand for.
func (pg page) hash() uint64 {
	sum := xxhash.New()
	for _, timers := range [][]timer.Timer{pg.fires, pg.requests, pg.checks} {
		for _, t := range timers {
			_, _ = sum.WriteString(t.Key().Sort)
			_ = binary.Write(sum, binary.LittleEndian, t.To)
		}
	}
	return max(1, sum.Sum64())
}

// again looks after a page of timers behind the watermark: fires and requests without their run are claimed and sent as the
// main pass does, unended runs get a check timer ahead of the horizon.
func (p *pass) again(ctx context.Context, pg page) (repairs dispatch.Repairs, err error) {
	_, open, err := p.read(ctx, runsOf(pg.checks))
	if err != nil {
		return repairs, err
	}
	for tenant, mine := range byTenant(pg.fires) {
		jobs, err := p.jobs(ctx, tenant, mine)
		if err != nil {
			return repairs, err
		}
		var lost []dispatch.FireTimer
		for _, t := range mine {
			missing, some, err := p.inspectTimer(ctx, t, jobs[t.Job])
			if err != nil {
				return repairs, err
			}
			open = append(open, some...)
			if missing != nil {
				lost = append(lost, *missing)
			}
		}
		tally, err := p.Dispatch.Fires(ctx, p.shard.Epoch, p.bounds, lost)
		repairs.Claimed += tally.Claimed
		if err != nil {
			return repairs, err
		}
	}
	var requests []run.Run
	for _, t := range pg.requests {
		if t.Create != nil {
			requests = append(requests, *t.Create)
		}
	}
	absent, some, err := p.read(ctx, requests)
	if err != nil {
		return repairs, err
	}
	for tenant, mine := range dispatch.ByTenant(absent) {
		tally, err := p.Dispatch.Requests(ctx, tenant, p.shard.Epoch, p.bounds, mine)
		repairs.Claimed += tally.Claimed
		if err != nil {
			return repairs, err
		}
	}
	open = append(open, some...)
	checks := make([]timer.Timer, len(open))
	for i, r := range open {
		checks[i] = dispatch.Wakeup(r, p.bounds.Horizon)
	}
	repairs.Watched = len(checks)
	return repairs, p.Dispatch.Arm(ctx, checks...)
}

// inspectTimer gives the timer where it must be handled again, and the unended runs at its fires.
func (p *pass) inspectTimer(ctx context.Context, t timer.Timer, j job.Job) (*dispatch.FireTimer, []run.Run, error) {
	ft, ok, err := p.inForce(ctx, t, j)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		// The generation has no say any more, but what it claimed may stand.
		edition, err := p.Dispatch.Book.Edition(ctx, t.Tenant, t.Job, t.Generation)
		if errors.Is(err, job.ErrNotFound) || err == nil && edition.Schedule == nil {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		_, open, err := p.inspect(ctx, dispatch.FireTimer{Timer: t, Edition: edition, Until: dispatch.Forever})
		return nil, open, err
	}
	missing, open, err := p.inspect(ctx, ft)
	if err != nil || !missing {
		return nil, open, err
	}
	return &ft, open, nil
}

// inspect looks at the runs of all fires that a timer stands for. It is missing something where a fire has no run, or where all
// it has are another generation's: then nothing shows that this one's successor was ever armed.
func (p *pass) inspect(ctx context.Context, ft dispatch.FireTimer) (missing bool, open []run.Run, err error) {
	t := ft.Timer
	foreign := false
	for from := t.Nominal; from <= min(t.To, ft.Until); {
		fires, err := dispatch.FiresBetween(ft.Edition.Schedule, from, min(t.To, ft.Until), pageSize)
		if err != nil {
			return false, nil, err
		}
		runs := make([]run.Run, len(fires))
		for i, f := range fires {
			runs[i] = run.Run{ID: run.FireID(t.Job, f), Tenant: t.Tenant}
		}
		standing, err := p.readOpen(ctx, runs)
		if err != nil {
			return false, nil, err
		}
		if len(fires) == 0 {
			break
		}
		from = fires[len(fires)-1] + 1
		through := int64(0)
		for _, r := range standing {
			switch {
			case r.ID.Nominal <= through: // dropped by the decision before it
			case r.Version == 0, r.State == run.Fenced && r.Generation <= t.Generation, r.State == run.Queued && r.Generation < t.Generation:
				missing = true
			case r.State == run.Fenced:
			default:
				foreign = foreign || r.Generation != t.Generation
				if r.Through > through {
					through = r.Through
				}
				if !r.State.Ended() {
					open = append(open, r)
				}
			}
		}
		from = max(from, through+1)
	}
	return missing || foreign, open, nil
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

// read tells runs that do not stand from those that stand and have not ended.
func (p *pass) read(ctx context.Context, runs []run.Run) (absent, open []run.Run, err error) {
	standing, err := p.readOpen(ctx, runs)
	if err != nil {
		return nil, nil, err
	}
	for i, r := range standing {
		switch {
		case r.Version == 0:
			absent = append(absent, runs[i])
		case r.State != run.Fenced && !r.State.Ended():
			open = append(open, r)
		}
	}
	return absent, open, nil
}

func runsOf(timers []timer.Timer) []run.Run {
	runs := make([]run.Run, len(timers))
	for i, t := range timers {
		runs[i] = run.Run{ID: t.Run, Tenant: t.Tenant}
	}
	return runs
}
