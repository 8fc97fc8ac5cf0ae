package dispatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// MaxCrashes is how many workers a run may kill before it is dead.
const MaxCrashes = 3

// Limits gives what a run's definition allows it.
func Limits(def job.Definition) run.Limits {
	return run.Limits{
		AtMostOnce:  def.Guarantee == job.AtMostOnce,
		MaxFailures: def.Retry.MaxAttempts,
		MaxCrashes:  MaxCrashes,
		Retention:   def.Kept(),
	}
}

// Repairs counts what second looks mended.
type Repairs struct {
	Claimed int // fires and requests without their run
	Resent  int // queued runs whose message may be lost
	Expired int // attempts whose lease had run out
	Watched int // unended runs that got a check timer
}

// Add sums up.
func (r *Repairs) Add(o Repairs) {
	r.Claimed += o.Claimed
	r.Resent += o.Resent
	r.Expired += o.Expired
	r.Watched += o.Watched
}

// crowded is from how many ready messages on a queue's depth explains why a run is still waiting, and patience is how long.
// Below it a lost message is the likelier cause, and a doubled one costs a worker one look.
const (
	crowded  = 1000
	patience = int64(60 * 60_000)
)

// Check looks after runs that have not ended: the next check first, then what is needed. What has ended is dropped. runs need
// hold only ID and tenant; dead tells that a worker's leases are void although they have not run out, nil for none.
func (d *Dispatcher) Check(ctx context.Context, epoch uint64, b Bounds, runs []run.Run, dead func(worker string) bool) (Repairs, error) {
	var repairs Repairs
	runs = distinct(runs)
	for start := 0; start < len(runs); start += store.MaxKeys {
		one, err := d.check(ctx, epoch, b, runs[start:min(start+store.MaxKeys, len(runs))], dead)
		repairs.Add(one)
		if err != nil {
			return repairs, err
		}
	}
	return repairs, nil
}

func (d *Dispatcher) check(ctx context.Context, epoch uint64, b Bounds, runs []run.Run, dead func(string) bool) (Repairs, error) {
	var repairs Repairs
	standing, err := d.ReadRuns(ctx, runs)
	if err != nil {
		return repairs, fmt.Errorf("read runs: %w", err)
	}
	var next []timer.Timer
	var open, heads, over []run.Run // over: workflows' runs that gave way at once, whose steps may go on
	var pausing []run.Run           // their ends are to pause their jobs
	var looks []waking              // at each of heads
	for _, r := range standing {
		if r.GaveWay() && r.Headed() {
			over = append(over, r)
		}
		if r.Pauses {
			pausing = append(pausing, r)
		}
		if r.Version == 0 || r.State == run.Fenced || r.State.Ended() {
			continue
		}
		if r.Heads() {
			heads = append(heads, r)
		} else {
			open = append(open, r)
		}
		if r.ID.IsStep() && r.NextAt <= b.Reach || r.Suspended() {
			continue // the checks of its run look after it
		}
		check := d.wakeup(ctx, r, b.Reach, true)
		if check.quiet != 0 {
			if err := d.listQuiet(ctx, r, check.quiet); err != nil {
				return repairs, fmt.Errorf("list a run that waits: %w", err)
			}
		}
		if r.Heads() {
			looks = append(looks, check)
		}
		check.Attempt = b.Mark
		next = append(next, check.Timer)
	}
	if err := d.Arm(ctx, next...); err != nil {
		return repairs, err
	}
	for _, head := range over {
		if err := d.stopStepsOf(ctx, head); err != nil {
			return repairs, err
		}
	}
	// Durable now: every run here has a later wake-up, whatever becomes of the rest.
	// The pass's own clock is older than the leases that were renewed since: they are judged by the time of their reading.
	now, err := d.Clock()
	if err != nil {
		return repairs, err
	}
	for i, head := range heads {
		steps := looks[i].steps // as old as what was read of runs that are no workflow's
		if !looks[i].read {
			if steps, err = d.Steps(ctx, head); err != nil {
				return repairs, err
			}
		}
		open = append(open, branch(steps)...)
	}
	var send []Outgoing
	var soon []timer.Timer // looks again when leases are judged
	var requests, waiting, gone, late []run.Run
	crowds := map[lane]bool{}
	for _, r := range open {
		if r.TooLate(now) {
			late = append(late, r)
			continue
		}
		if r.Waits() { // no message helps it before it is let in
			waiting = append(waiting, r)
			continue
		}
		if r.State == run.Scheduled {
			if r.ID.Nominal <= b.Horizon { // what is due later has a timer of its own: claimed now, an edit would not look for it
				requests = append(requests, r)
			}
			continue
		}
		edition, err := d.EditionOf(ctx, r)
		unbound := Unbound(r)
		if errors.Is(err, job.ErrNotFound) && unbound {
			// Its job was deleted between the acceptance and the claim, and whoever was to send it died: it is of the delete's generation, which
			// has no definition. Binding it ends it.
			requests = append(requests, r)
			continue
		}
		switch {
		case (r.Cancel || r.PastDeadline(now)) && lost(err): // it ends when its lease has, or its worker has stopped, by no more than its record
			edition = &job.Edition{}
		case Unreadable(err):
			d.TellUnreadable(ctx, r, err)
			continue
		case err != nil:
			return repairs, err
		}
		switch r.State {
		case run.Running:
			void := dead != nil && dead(r.Worker)
			over := d.LeaseOver(r.Lease, now)
			if over && !void && now < b.Settled {
				soon = append(soon, timer.NewCheck(r.Tenant, r.ID, max(b.Resume, b.Settled)))
				continue
			}
			if void || over {
				ended, err := d.PutRun(ctx, r.Crash(now, "its lease ran out", Limits(edition.Def)), edition.Def.On, now)
				if store.AsConflict(err) != nil {
					continue // the worker renewed or finished meanwhile, and has won
				}
				if errors.Is(err, errCrowded) { // and nobody else is to wait for those
					d.Log.WarnContext(ctx, "a run whose lease ran out is not ended yet", "tenant", r.Tenant, "run", r.ID.String(), "error", err)
					soon = append(soon, timer.NewCheck(r.Tenant, r.ID, b.Resume))
					continue
				}
				if err != nil {
					return repairs, err
				}
				repairs.Expired++
				if ended.Pauses {
					pausing, ended.Pauses = append(pausing, ended), false
				}
				if ended.State == run.Queued {
					send = append(send, Outgoing{Run: ended, Queue: edition.Def.Queue})
				} else if ended.Placed || ended.ID.IsStep() {
					gone = append(gone, ended)
				}
				continue
			}
			if r.PastDeadline(now) {
				// Durable with the write: its worker finds the word at its next heartbeat. A crash before it leaves it to the next check.
				r, err = d.PutRun(ctx, r.StopAtDeadline(now, edition.Def.Kept()), edition.Def.On, now)
				if store.AsConflict(err) != nil {
					continue // renewed or finished meanwhile: the next check looks again
				}
				if err != nil {
					return repairs, err
				}
				d.Cancelled(r.Tenant, r.ID)
			}
			if dead != nil {
				// Its worker lives elsewhere, and its message went with the queue: another looks at it when the lease is over.
				send = append(send, Outgoing{Run: r, Queue: edition.Def.Queue, Due: max(r.Lease, now+d.Lease.Milliseconds()) + 1000})
			}
		case run.Queued, run.Retrying:
			due := max(edition.Due(r.Tenant, r.ID.Job, r.ID.Nominal), r.NextAt)
			if r.ID.OnDemand() {
				due = max(r.ID.Nominal, r.NextAt)
			}
			if due > max(b.Horizon, now) && dead == nil {
				continue // its message waits with it; after a start there is none
			}
			explained, err := d.explained(ctx, lane{edition.Def.Queue, r.Priority}, crowds, now-startable(r, due), dead != nil)
			switch {
			case err != nil:
				return repairs, err
			case explained:
			case unbound:
				// An edit may have come between its claim and now: it binds again before it is sent.
				repairs.Resent++
				requests = append(requests, r)
			default:
				repairs.Resent++
				send = append(send, Outgoing{Run: r, Queue: edition.Def.Queue, Due: due})
			}
		}
	}
	for _, r := range d.pauseEach(ctx, pausing) { // whoever wrote its end has died before, or could not
		soon = append(soon, timer.NextCheck(r.Tenant, r.ID, b.Reach))
	}
	if err := d.Arm(ctx, soon...); err != nil {
		return repairs, err
	}
	d.expireEach(ctx, late, now)
	for _, r := range gone {
		if err := d.Left(ctx, r); err != nil { // then the checks of those that wait do it
			return repairs, err
		}
	}
	for i, head := range heads {
		if err := d.followFrom(ctx, head, looks[i].due); err != nil {
			if ctx.Err() != nil {
				return repairs, err
			}
			if Unreadable(err) {
				d.TellUnreadable(ctx, head, err)
				continue
			}
			d.Log.ErrorContext(ctx, "a workflow's run waits for its next check", "tenant", head.Tenant, "run", head.ID.String(), "error", err)
		}
	}
	anew, err := d.tend(ctx, waiting)
	if err != nil {
		return repairs, err
	}
	d.refresh(ctx, slices.Concat(heads, open), now)
	repairs.Resent += len(anew)
	send = append(send, anew...)
	if _, err := d.Send(ctx, send); err != nil { // what is not sent has its next check
		return repairs, err
	}
	for tenant, mine := range GroupBy(requests, func(r run.Run) string { return r.Tenant }) {
		tally, err := d.Requests(ctx, tenant, epoch, b, mine)
		repairs.Claimed += tally.Claimed
		if err != nil {
			return repairs, err
		}
	}
	return repairs, nil
}

// Unbound tells of a run that an edit may bind to another definition before it starts. One without any, since its job was deleted meanwhile, ends then.
func Unbound(r run.Run) bool {
	return r.State == run.Queued && r.ID.OnDemand() && r.Attempt == 0 && !r.ID.IsStep()
}

// explained tells whether the queue's depth is reason enough for a run to be waiting: sending again would only add to it.
// After patience it is sent anyway, since its message may be lost among the many. crowds remembers what was asked before.
func (d *Dispatcher) explained(ctx context.Context, l lane, crowds map[lane]bool, waited int64, restart bool) (bool, error) {
	q := d.Queues[l.queue]
	if restart || q == nil || waited > patience {
		return false, nil
	}
	if known, ok := crowds[l]; ok {
		return known, nil
	}
	depth, err := q.Depth(ctx)
	if err != nil {
		return false, fmt.Errorf("depth of queue %s: %w", l.queue, err)
	}
	for priority, one := range depth {
		crowds[lane{l.queue, priority}] = one.Ready >= crowded
	}
	return crowds[l], nil
}

// GroupBy groups runs or timers by what they have in common, in the order in which groups come first. By tenants, no call works for two of them at once.
func GroupBy[K comparable, T any](all []T, of func(T) K) iter.Seq2[K, []T] {
	groups := map[K][]T{}
	var order []K
	for _, one := range all {
		key := of(one)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], one)
	}
	return func(yield func(K, []T) bool) {
		for _, key := range order {
			if !yield(key, groups[key]) {
				return
			}
		}
	}
}
