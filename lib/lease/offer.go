package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// Offer is a run that may be started, with its message held back meanwhile.
type Offer struct {
	desk     *Desk
	delivery delivery
	run      run.Run
	name     string // the run's ID
	edition  *job.Edition
	first    *beginning // of a start that was tried together with others
	looked   bool       // at its job, since the start was durable
	gone     bool       // the job was deleted
	blind    error      // the job could not be read
}

var _ worker.Offer = (*Offer)(nil)

// About is what a worker decides by.
func (o *Offer) About() worker.About {
	return worker.About{Run: o.name, Target: o.edition.Def.Target, Timeout: o.edition.Def.Timeout.Std(), Suspect: o.suspect(), First: o.delivery.message.Receives == 1}
}

func (o *Offer) suspect() bool { return o.run.Crashes >= dispatch.MaxCrashes-1 }

// due is when the run may start, Unix ms.
func (o *Offer) due() int64 {
	if o.run.ID.OnDemand() {
		return max(o.run.NextAt, o.run.ID.Nominal)
	}
	return max(o.run.NextAt, o.edition.Due(o.run.Tenant, o.run.ID.Job, o.run.ID.Nominal))
}

// wait is how long the run has until it is due.
func (o *Offer) wait(now int64) time.Duration {
	return time.Duration(o.due()-now) * time.Millisecond
}

// prompt tells, of a start that has become durable, whether it was by a time at which no look at the job is needed. A step goes on though its job
// was deleted: its run has begun.
func (o *Offer) prompt(b *beginning) bool {
	return o.run.ID.IsStep() || o.desk.Dispatch.Prompt(o.run, o.due(), b.now+(o.desk.Dispatch.Elapsed()-b.since).Milliseconds())
}

// Leave gives the message to another worker.
func (o *Offer) Leave(ctx context.Context, why worker.Leaving) {
	switch why {
	case worker.Stopping:
		o.delivery.settle(ctx, handBack)
	case worker.Incapable:
		o.delivery.settle(ctx, o.delivery.incapable())
	default:
		o.delivery.settle(ctx, elsewhere)
	}
}

// beginning is a start on its way.
type beginning struct {
	put   *dispatch.Put
	now   int64         // Unix ms, from which the lease counts
	since time.Duration // the same, by the clock that is never stepped
	letIn int64         // Unix ms, when the run was let in from the line of its gate; 0 where it never waited
}

// Start begins attempts of this process's worker: those of runs that are due are one call of the store, and the others go on by
// themselves meanwhile.
func (d *Desk) Start(taking, attempts context.Context, offers []worker.Offer, begun func(i int, started worker.Attempt, err error)) {
	var first run.Run // that has a deadline
	if i := slices.IndexFunc(offers, func(o worker.Offer) bool { return o.(*Offer).run.EndBy != 0 }); i >= 0 {
		first = offers[i].(*Offer).run
	}
	now, err := d.Dispatch.ClockFor(taking, first)
	fit := err == nil && taking.Err() == nil
	var alone sync.WaitGroup
	start := func(i int) {
		o := offers[i].(*Offer)
		h, err := o.start(taking, attempts, d.Name)
		if err != nil {
			begun(i, nil, err)
			return
		}
		d.register(h)
		begun(i, h, nil)
	}
	puts := make([]*dispatch.Put, 0, len(offers))
	var together, apart []int
	type double struct{ first, i int }
	var doubles []double // of those that are apart
	for i, offer := range offers {
		o := offer.(*Offer) // of Take
		first := o.among(offers[:i])
		if slices.Contains(apart, first) {
			doubles = append(doubles, double{first, i})
			continue
		}
		doubled := first >= 0
		if fit && !doubled && !o.bounded() && !o.run.TooLate(now) && !o.run.ID.IsStep() && o.wait(now) <= 0 && o.run.Payload.Blob == "" {
			if o.first, err = o.prepare(taking, d.Name, now); err == nil {
				puts = append(puts, o.first.put)
			}
		}
		if o.first != nil || doubled { // the other message's start goes first
			together = append(together, i)
		} else {
			apart = append(apart, i)
		}
	}
	for _, i := range apart { // nothing looks at them from here on
		alone.Go(func() {
			start(i)
			for _, d := range doubles { // the other message's start goes first here too
				if d.first == i {
					start(d.i)
				}
			}
		})
	}
	// Durable with this write: each attempt whose op is done, as in start.
	d.Dispatch.TryEach(context.WithoutCancel(taking), puts)
	var late []int
	for _, i := range together {
		switch o := offers[i].(*Offer); {
		case o.first == nil || !o.first.put.Won():
			alone.Go(func() { start(i) })
		case o.prompt(o.first):
			start(i) // it has nothing to wait for
		default:
			late = append(late, i)
		}
	}
	for tenant, mine := range dispatch.GroupBy(late, func(i int) string { return offers[i].(*Offer).run.Tenant }) {
		alone.Go(func() {
			started := make([]*Offer, len(mine))
			for k, i := range mine {
				started[k] = offers[i].(*Offer)
			}
			d.look(taking, tenant, started...)
			for _, i := range mine {
				alone.Go(func() { start(i) })
			}
		})
	}
	alone.Wait()
}

// among gives the first other message of the same run, where it was doubled and both were taken; -1 for none.
func (o *Offer) among(others []worker.Offer) int {
	return slices.IndexFunc(others, func(other worker.Offer) bool {
		return nameOf(&other.(*Offer).run) == nameOf(&o.run)
	})
}

// prepare makes the start of a run that is due.
func (o *Offer) prepare(ctx context.Context, holder string, now int64) (*beginning, error) {
	next := o.run.Start(holder, now, o.desk.Dispatch.Lease)
	next.Placed, next.NamedGates = o.run.Gated(&o.edition.Def), len(o.edition.Def.Gates) > 0
	put, err := o.desk.Dispatch.Prepare(ctx, next, o.edition.Def.On, now)
	if err != nil {
		return nil, err
	}
	return &beginning{put: put, now: now, since: o.desk.Dispatch.Elapsed(), letIn: o.run.Wait.LetIn}, nil
}

// start begins an attempt under the holder's name. Without one, what becomes of the message is settled.
func (o *Offer) start(taking, attempts context.Context, holder string) (h *Held, err error) {
	gone := func(v verdict) (*Held, error) {
		o.delivery.settle(attempts, v)
		return nil, worker.ErrGone
	}
	if o.first == nil || !o.first.put.Won() {
		taking = o.run.Tell(taking)
		if taking.Err() != nil && o.first == nil {
			return gone(handBack)
		}
	}
	// Before the clock is read: the lease counts from then. And before the start: a store of blobs that is away costs the run nothing.
	var lost *target.Failure
	brings, may, err := o.mayStart(taking)
	if !may {
		return gone(o.stopped(taking, err))
	}
	var place *room.Place
	if o.edition.Computed {
		place = o.desk.Dispatch.InputRoom(o.run.Tenant)
	}
	defer func() {
		if h == nil {
			place.Give()
		}
	}()
	payload, err := o.desk.payload(taking, o.run, brings, o.edition, place, IsRemote(holder))
	switch {
	case err == nil, errors.As(err, &lost):
	case taking.Err() != nil:
		return gone(handBack)
	case errors.Is(err, dispatch.ErrNoRoom):
		return gone(shortly)
	default:
		return gone(o.desk.unwell(taking, o.run, "read the payload", err))
	}
	for round := range maxRounds {
		b := o.first
		o.first = nil
		if round > 0 {
			if _, may, err := o.mayStart(taking); !may {
				return gone(o.stopped(taking, err))
			}
		}
		if b == nil {
			now, err := o.desk.Dispatch.ClockFor(taking, o.run)
			if err != nil {
				return gone(shortly)
			}
			if wait := o.wait(now); wait > 0 {
				if !pause(taking, wait) {
					return gone(handBack)
				}
				continue
			}
			if taking.Err() != nil {
				return gone(handBack)
			}
			if o.bounded() {
				if passed, v := o.enter(taking); !passed {
					return gone(v)
				}
				if now, err = o.desk.Dispatch.ClockFor(taking, o.run); err != nil { // the lease counts from then
					return gone(shortly)
				}
			}
			if o.run.TooLate(now) { // by now
				next, v := o.desk.decide(taking, o.run, o.delivery)
				if next != nil {
					v = shortly
				}
				return gone(v)
			}
			if b, err = o.prepare(taking, holder, now); err != nil {
				return gone(o.desk.unwell(taking, o.run, "prepare the start", err))
			}
		}
		// Durable with this write: the attempt, under its lease and fence, before its effect. A crash here leaves a running run
		// without a worker, which its lease ends; where the answer is lost, the same write again is a success.
		// It is not given up halfway when the worker is told to stop: at most once would then be unknown for nothing.
		started, err := o.desk.do(taking, b)
		if conflict := store.AsConflict(err); conflict != nil {
			standing, _, err := run.FromItem(o.run.Tenant, o.run.ID, conflict.Standing)
			if err != nil {
				return gone(o.desk.unwell(taking, o.run, "read", err))
			}
			if IsRemote(holder) && standing.State == run.Running && standing.Worker == holder {
				o.desk.look(taking, o.run.Tenant, o) // a start whose answer was lost may have died before it did
				return o.held(taking, standing, payload, place, lost)
			}
			next, v := o.desk.decide(taking, standing, o.delivery)
			if next == nil {
				return gone(v)
			}
			if next.run.Generation != o.run.Generation || next.suspect() && !o.suspect() {
				return gone(handBack) // another thing than what the worker has looked at
			}
			o.run = next.run
			continue
		}
		if err != nil {
			if !IsRemote(holder) {
				o.desk.notBegun(o.run) // it may have happened all the same
			}
			v := o.desk.unwell(taking, o.run, "start", err)
			if IsRemote(holder) {
				return nil, fmt.Errorf("start run %s: %w", o.run.ID, err) // it asks again, and the message waits as long as it is reserved
			}
			return gone(v)
		}
		if !o.looked && !o.prompt(b) {
			o.desk.look(taking, o.run.Tenant, o)
		}
		first := !o.run.Spared() // an attempt of what was opened by hand was asked for at another time than its nominal one
		h, err = o.held(taking, started, payload, place, lost)
		switch {
		case err != nil || !first:
		case o.run.ID.IsStep():
			o.desk.Metrics.StepLateness.Observe(o.run.Late(b.now))
		default:
			o.desk.Metrics.Lateness.Observe(time.Duration(b.now-max(o.run.ID.Nominal, b.letIn)) * time.Millisecond)
		}
		return h, err
	}
	return gone(shortly)
}

// look reads the jobs of one tenant's attempts whose starts are durable: a delete that was answered before is seen. Where one cannot be read, its
// attempts are blind.
func (d *Desk) look(ctx context.Context, tenant string, started ...*Offer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Dispatch.Lease/3)
	defer cancel()
	jobs := map[string]job.Job{}
	started = slices.DeleteFunc(slices.Clone(started), func(o *Offer) bool { return o.run.ID.IsStep() }) // its run was looked at when it began
	for _, o := range started {
		jobs[o.run.ID.Job] = job.Job{}
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(jobs)), store.MaxKeys) {
		read, err := d.Dispatch.Book.Jobs(ctx, tenant, names...)
		for i, name := range names {
			if err != nil {
				jobs[name] = job.Job{Broken: err}
			} else {
				jobs[name] = read[i]
			}
		}
	}
	for _, o := range started {
		j := jobs[o.run.ID.Job]
		o.looked, o.blind, o.gone = true, j.Broken, j.Broken == nil && j.Gone(o.run.Generation)
	}
}

// do does a start. All tries together take no longer than a third of the lease, since the lease goes on meanwhile: two thirds are left to
// renew it for the first time.
func (d *Desk) do(ctx context.Context, b *beginning) (run.Run, error) {
	if b.put.Won() {
		return d.Dispatch.Do(ctx, b.put)
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Dispatch.Lease/3-(d.Dispatch.Elapsed()-b.since))
	defer cancel()
	return d.Dispatch.Do(writing, b.put)
}

// held is the attempt that a start has made of the offer. Where its job was deleted it ends here, and where that cannot be told it is handed
// back; its target is called in neither case.
func (o *Offer) held(ctx context.Context, started run.Run, payload []byte, place *room.Place, lost *target.Failure) (*Held, error) {
	o.run = started
	h := &Held{desk: o.desk, name: o.name, started: &o.run, held: started, edition: o.edition, delivery: &o.delivery, payload: payload, room: place, lost: lost, showing: o.desk.showing(started)}
	if !o.gone && o.blind == nil {
		return h, nil
	}
	h.callOff(ctx, o.blind)
	return nil, worker.ErrGone
}

func pause(ctx context.Context, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxAfar is how much a worker elsewhere is handed, in bytes: with what is around it, no more than the 6 MB that Lambda passes on.
const maxAfar = 4 << 20

// payload reads what a run brings, or what its job has for all; of a step, what its input says. brings is the run itself, or the one that the step is of. Data
// that is gone for good is a *target.Failure, and so is an input that cannot be made: no attempt will find it. With any other error there is nothing to be told
// of the run yet. place is for a large input of a step; afar says that it is for a worker elsewhere.
func (d *Desk) payload(ctx context.Context, of, brings run.Run, e *job.Edition, place *room.Place, afar bool) ([]byte, error) {
	r := brings
	switch {
	case e.Computed:
		data, err := d.Dispatch.StepInput(ctx, brings, of, true, place)
		if afar && len(data) > maxAfar {
			return nil, &target.Failure{Kind: target.KindPayload, Permanent: true,
				Message: fmt.Sprintf("the input has %d bytes, and a worker elsewhere is handed at most %d", len(data), maxAfar)}
		}
		return data, err
	case e.Own:
	case r.Payload.Blob != "":
		ctx, cancel := context.WithTimeout(ctx, d.Dispatch.Lease/3)
		defer cancel()
		data, err := d.Blobs.Get(ctx, r.Tenant, r.Payload.Blob)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			return nil, &target.Failure{Kind: target.KindPayload, Permanent: true, Message: "read the payload: " + err.Error()}
		}
		return data, err
	case len(r.Payload.Inline) > 0:
		return r.Payload.Inline, nil
	}
	return e.Def.Payload, nil
}
