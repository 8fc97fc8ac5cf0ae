package lease

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// MessageLife is how old a message may be that starts a run. Runs are kept at least twice as long, so that no message outlives
// its run; what is refused here is sent again by the run's check timer.
const MessageLife = 12 * time.Hour

// patience is how long a start waits for a run that is not due yet; what has longer goes back to the queue.
const patience = time.Second

// offered is how often a message is handed out to workers that cannot run it.
const offered = 12

// maxRounds bounds how often a run may be overtaken while it is being looked at or started.
const maxRounds = 8

// letter is a delivery whose message has been read.
type letter struct {
	delivery
	run  run.Run // as the message says that it stands
	sent int64
	err  error // why the message cannot be read
}

func (d *Desk) read(m queue.Message) letter {
	message, err := run.DecodeMessage(m.Body)
	return letter{delivery: d.delivery(m), run: message.Run, sent: message.Sent, err: err}
}

// plain tells that nobody needs to be asked about a message before its run is started at now (Unix ms): it is new, the run's definition is known, and the run is not too late.
func (d *Desk) plain(l *letter, now int64) bool {
	if l.err != nil || l.message.Receives > 1 || l.run.State != run.Queued && l.run.State != run.Retrying || l.run.ID.IsStep() {
		return false
	}
	edition := d.Dispatch.Book.Remembered(l.run.Tenant, l.run.ID.Job, l.run.Generation)
	return edition != nil && edition.Def.Target.Workflow == nil && !d.Dispatch.Tardy(l.run) && !l.run.TooLate(now)
}

// open tells whether a message's run may be started: its offer, or nil and what becomes of the message. A message is a hint; the run
// as it stands decides. Messages that are doubled, late or stale find it started or ended, and are dropped.
func (d *Desk) open(ctx context.Context, l *letter) (*Offer, verdict) {
	switch {
	case errors.Is(l.err, record.ErrNewer):
		d.Log.WarnContext(ctx, "a message for a newer worker", "error", l.err)
		return nil, elsewhere
	case l.err != nil:
		// It names no run that could be told; the run it was meant for has its check timer.
		if err := (lost{d.Dispatch, d.Blobs, d.Metrics, d.Log}).keep(ctx, l.message, l.err); err != nil {
			d.Log.ErrorContext(ctx, "a message is unreadable, and waits to be kept", "error", err)
			return nil, elsewhere
		}
		return nil, drop
	}
	now, err := d.Dispatch.Clock()
	if err != nil {
		d.Log.ErrorContext(ctx, "nothing is started", "error", err)
		return nil, shortly
	}
	if time.Duration(now-l.sent)*time.Millisecond > MessageLife {
		return nil, drop
	}
	r := l.run
	if l.message.Receives > 1 {
		// Something happened under an earlier delivery: look first, instead of losing a write to find out.
		standing, err := d.Dispatch.ReadRuns(ctx, []run.Run{r})
		if err != nil {
			return nil, d.unwell(ctx, r, "read", err)
		}
		r = standing[0]
	}
	return d.decide(ctx, r, l.delivery)
}

// decide does what a run as believed to stand asks for, until it may be started or the message has its verdict.
func (d *Desk) decide(ctx context.Context, r run.Run, m delivery) (*Offer, verdict) {
	for range maxRounds {
		o, next, v := d.step(ctx, r, m)
		if next == nil {
			return o, v
		}
		r = *next
	}
	return nil, shortly
}

// step gives an offer, or the run as it stands now, to be looked at again, or else a verdict.
func (d *Desk) step(ctx context.Context, r run.Run, m delivery) (*Offer, *run.Run, verdict) {
	now, err := d.Dispatch.Clock()
	if err != nil {
		return nil, nil, shortly
	}
	if r.Version != 0 && r.State == 0 {
		return nil, nil, elsewhere // a record that this process cannot read: a newer one may
	}
	if r.Waits() && r.Wait.Asks != "" && d.Dispatch.LetIn(ctx, gate.Of(r)) != nil { // whoever had it join may have died before it asked others to stop
		return nil, nil, shortly
	}
	if err := found(ctx, d.Dispatch, r); dispatch.Unreadable(err) { // whoever wrote this may have died before
		return nil, nil, d.unreadable(ctx, r, m, err)
	} else if err != nil {
		return nil, nil, shortly
	}
	if r.Version == 0 || r.Waits() || r.Suspended() || r.Heads() || r.State != run.Queued && r.State != run.Retrying && r.State != run.Running {
		return nil, nil, drop // ended, fenced off, held, in line, opened as a workflow, or gone
	}
	edition, err := d.Dispatch.Usable(ctx, r)
	if dispatch.Unreadable(err) {
		return nil, nil, d.unreadable(ctx, r, m, err)
	}
	if err != nil {
		return nil, nil, d.unwell(ctx, r, "read the job", err)
	}
	if r.State == run.Running {
		next, v := d.takeOver(ctx, r, edition, now)
		return nil, next, v
	}
	if r.TooLate(now) {
		if now, err = d.Dispatch.SureClock(ctx, r); err != nil {
			return nil, nil, shortly
		}
	}
	if r.TooLate(now) {
		switch _, err := d.Dispatch.Expire(ctx, r, now); {
		case store.AsConflict(err) != nil:
			return nil, nil, handBack // it stands otherwise than its message says: whoever gets that next reads the run
		case err != nil:
			return nil, nil, d.unwell(ctx, r, "end a run that is too late", err)
		}
		return nil, nil, drop
	}
	o := &Offer{desk: d, delivery: m, run: r, name: r.ID.String(), edition: edition}
	if wait := o.wait(now); wait > patience || wait > 0 && (o.suspect() || d.Dispatch.Still) { // a suspect's turn is not for waiting
		return nil, nil, verdict{again: wait}
	}
	if d.Dispatch.Tardy(r) {
		switch placed, err := d.Dispatch.PlaceAnew(ctx, r); {
		case err != nil:
			return nil, nil, d.unwell(ctx, r, "ask for another place", err)
		case placed:
			return nil, nil, drop
		}
	}
	if edition.Def.Target.Workflow != nil {
		next, v := o.branch(ctx)
		return nil, next, v
	}
	return o, nil, verdict{}
}

func (d *Desk) unwell(ctx context.Context, r run.Run, doing string, err error) verdict {
	d.Log.WarnContext(ctx, "the store is unwell", "doing", doing, "run", r.ID.String(), "error", err)
	return shortly
}

// unreadable tells of a run whose definition cannot be read here. Its message is for one who can; where there is none, the check of the run sends the next.
func (d *Desk) unreadable(ctx context.Context, r run.Run, m delivery, err error) verdict {
	d.Dispatch.TellUnreadable(ctx, r, err)
	return m.incapable()
}

// takeOver looks at a run that another attempt holds, and gives it as it stands then, or a verdict.
func (d *Desk) takeOver(ctx context.Context, r run.Run, edition *job.Edition, now int64) (*run.Run, verdict) {
	limits := dispatch.Limits(edition.Def)
	outcome := run.OutcomeCrashed
	change := func(r run.Run) run.Run { return r.Crash(now, "its lease ran out", limits) }
	switch d.own(r) {
	case under:
		return nil, verdict{again: d.Dispatch.Lease} // whatever its lease says: it is alive, and renews as soon as it can
	case never:
		if !limits.AtMostOnce {
			// The answer of its start was lost, and nothing was called. No worker died of it, so none is counted.
			outcome = run.OutcomeHandedBack
			change = func(r run.Run) run.Run { return r.HandBack(now, "", "", limits) }
			break
		}
		fallthrough
	default:
		if !d.Dispatch.LeaseOver(r.Lease, now) {
			return nil, verdict{again: time.Duration(max(r.Lease-now, 0))*time.Millisecond + time.Second}
		}
	}
	next, err := d.Dispatch.PutRun(ctx, change(r), edition.Def.On, now)
	if conflict := store.AsConflict(err); conflict != nil {
		standing, _, err := run.FromItem(r.Tenant, r.ID, conflict.Standing)
		if err != nil {
			return nil, d.unwell(ctx, r, "read", err)
		}
		return &standing, verdict{}
	}
	if err != nil {
		return nil, d.unwell(ctx, r, "end a lease", err)
	}
	count(d.Metrics, next, outcome)
	return &next, verdict{} // which lets in whoever waits, if it has ended
}
