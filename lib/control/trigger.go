package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// What a request may ask for.
const (
	MaxRunPayload = 1 << 20 // bytes
	MaxAhead      = 5 * 365 * 24 * time.Hour
	MaxKey        = 255                 // bytes of an idempotency key
	keepKey       = 7 * 24 * time.Hour  // counted from when the run is due
	keepPayload   = 60 * 24 * time.Hour // beyond the retention: the run may be retried for long before it ends
)

// Asked is a request for a run of a job.
type Asked struct {
	Job string
	Request
}

// Answer is what became of one. Repeated says that the idempotency key was used before, with the same request: the run is that one, as
// it stands.
type Answer struct {
	Run      run.Run
	Repeated bool
	Err      error
}

// Trigger asks for a run of a job; see TriggerMany.
func (s *Service) Trigger(ctx context.Context, tenant, name string, req Request) (r run.Run, repeated bool, err error) {
	answer := s.TriggerMany(ctx, tenant, []Asked{{name, req}})[0]
	return answer.Run, answer.Repeated, answer.Err
}

// TriggerMany asks for runs, with an answer for each. What they have in common they share: the items that list them, and the requests
// to the queue. The keys of all are one write of many, and so are their timers, and then their runs.
//
// Order of writes: key, index (of what is due later), timer, run, then the answer. A crash after the key leaves a promise that
// the same request keeps when it is repeated; after the index, an item that names no run; after the timer, a run that a tick or sweep makes of it; after the run, one that they send.
func (s *Service) TriggerMany(ctx context.Context, tenant string, asked []Asked) []Answer {
	answers, room, orders := make([]Answer, len(asked)), make([]order, len(asked)), make([]*order, len(asked))
	for i := range asked {
		room[i] = order{asked: &asked[i], Answer: &answers[i]}
		orders[i] = &room[i]
	}
	s.accept(ctx, tenant, orders)
	s.listLater(ctx, tenant, orders)
	s.place(ctx, orders)
	s.sendDirect(ctx, tenant, orders)
	s.armAgain(ctx, orders)
	for _, o := range orders {
		if o.begun {
			o.Err = halfDone(o.Err)
		}
	}
	return answers
}

// order is a request on its way.
type order struct {
	asked  *Asked
	job    *job.Job
	now    int64 // when it was taken: its bucket is chosen by that
	direct bool  // due so soon that whoever takes the request sends the run
	stood  bool  // the run of a repeated request was there already
	begun  bool  // something of it is durable
	put    bool  // its run may be
	unfit  error // its job takes no such run, unless it was promised before
	*Answer
}

// settled tells whether nothing more is to be done for it.
func (o *order) settled() bool { return o.Err != nil || o.stood }

// unsettled are the orders for which something is still to be done, of those that are chosen.
func unsettled(orders []*order, chosen func(o *order) bool) []*order {
	var left []*order
	for _, o := range orders {
		if !o.settled() && chosen(o) {
			left = append(left, o)
		}
	}
	return left
}

// accept checks requests and says which run each is to be.
func (s *Service) accept(ctx context.Context, tenant string, orders []*order) {
	jobs := s.seek(ctx, tenant, orders)
	// Behind the jobs: the store's answer may tell that this clock was stepped.
	now, err := s.Dispatch.Clock()
	if err != nil {
		for _, o := range orders {
			o.Err = skewed(err)
		}
		return
	}
	for _, o := range orders {
		o.now = now
		o.Err = s.acceptOne(ctx, tenant, o, jobs)
	}
	s.seekCallees(ctx, tenant, unsettled(orders, func(o *order) bool { return !o.asked.Callees.IsZero() }))
	s.bindKeys(ctx, tenant, unsettled(orders, func(o *order) bool { return o.asked.Key != "" }))
	for _, o := range orders {
		o.direct = o.Run.ID.Nominal < now+s.Dispatch.Directly().Milliseconds()
	}
	dispatch.Parallel(unsettled(orders, func(o *order) bool { return len(o.asked.Payload) > run.MaxInline }), fanOut, func(_ int, o *order) {
		o.Run.Payload, o.Err = s.keepPayload(ctx, o.job, o.Run, o.asked.Payload)
	})
}

// sought is a job that runs are asked for, and why it takes none.
type sought struct {
	name string
	own  []job.OwnOverlap // that runs are to bring
	job  job.Job
	err  error
}

// seek looks at each job once, however many runs of it are asked for.
func (s *Service) seek(ctx context.Context, tenant string, orders []*order) map[string]*sought {
	jobs := map[string]*sought{}
	var all []*sought
	for _, o := range orders {
		w := jobs[o.asked.Job]
		if w == nil {
			w = &sought{name: o.asked.Job}
			jobs[w.name], all = w, append(all, w)
		}
		if !o.asked.Overlap.IsZero() {
			w.own = append(w.own, o.asked.Overlap)
		}
	}
	dispatch.Parallel(all, fanOut, func(_ int, w *sought) { w.err = s.takes(ctx, tenant, w) })
	return jobs
}

// takes reads a job, and tells whether it takes runs.
func (s *Service) takes(ctx context.Context, tenant string, w *sought) (err error) {
	if err := job.ValidName(w.name); err != nil {
		return err
	}
	// A remembered job will do to tell that it exists and whether its queue takes work; the run binds to it as it stands when
	// it is claimed. It will not do to refuse the policy that a run is to bring.
	w.job, err = s.Dispatch.Book.Known(ctx, tenant, w.name, s.Now())
	if err == nil && slices.ContainsFunc(w.own, func(own job.OwnOverlap) bool { return own.Fits(w.job.Def.Overlap) != nil }) {
		w.job, err = s.Dispatch.Book.Job(ctx, tenant, w.name)
	}
	if err != nil {
		return err
	}
	if err := existing(&w.job); err != nil {
		return err
	}
	if wait, full := s.Dispatch.Full(w.job.Def.Queue); full {
		return &Refusal{Code: CodeBusy, Message: "queue " + w.job.Def.Queue + " is full; try again", RetryAfter: wait}
	}
	return nil
}

// acceptOne checks a request without asking the store.
func (s *Service) acceptOne(ctx context.Context, tenant string, o *order, jobs map[string]*sought) error {
	due, err := o.asked.due(o.now)
	if err != nil {
		return err
	}
	w := jobs[o.asked.Job]
	if w.err != nil {
		return w.err
	}
	o.job = &w.job
	if o.unfit = o.asked.Overlap.Fits(w.job.Def.Overlap); o.unfit != nil && o.asked.Key == "" {
		return o.unfit
	}
	o.Run = run.Run{ID: run.RequestID(o.asked.Job, due, s.NewID()), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest,
		Priority: o.job.Def.Priority, Created: o.now, Trace: trace.From(ctx), Callees: o.asked.Callees, IgnorePause: o.asked.IgnorePause, Overlap: o.asked.Overlap.Kept().Own()}
	if len(o.asked.Payload) <= run.MaxInline {
		o.Run.Payload.Inline = o.asked.Payload
	}
	return nil
}

// CheckRequest gives what Trigger refuses of a request whatever its job is: joined *invalid.Error.
func (s *Service) CheckRequest(req Request) error {
	_, err := req.due(s.Now().UnixMilli())
	return err
}

// delay is how long from now the run is asked for, 0 where nothing was said.
func (req *Request) delay() time.Duration {
	if req.Delay == nil {
		return 0
	}
	return *req.Delay
}

// due is when the run is to start, Unix ms.
func (req *Request) due(now int64) (int64, error) {
	var wrong []error
	refuse := func(field, got, want string) { wrong = append(wrong, invalid.Field(field, got, want)) }
	switch {
	case len(req.Payload) > MaxRunPayload:
		refuse("payload", fmt.Sprintf("%d bytes", len(req.Payload)), fmt.Sprintf("at most %d", MaxRunPayload))
	case len(req.Payload) > 0 && !json.Valid(req.Payload):
		refuse("payload", string(req.Payload), "JSON")
	}
	if err := req.Overlap.Check(); err != nil {
		wrong = append(wrong, err)
	}
	for _, e := range job.Events() {
		if name := req.Callees.Of(e); name != "" && job.ValidName(name) != nil {
			refuse("on."+string(e)+".job", name, "the name of a job")
		}
	}
	if len(req.Key) > MaxKey {
		refuse("Idempotency-Key", req.Key, fmt.Sprintf("at most %d bytes", MaxKey))
	}
	due, from := now+req.delay().Milliseconds(), "delay"
	switch {
	case req.At != nil && req.Delay != nil:
		refuse("delay", req.Delay.String(), "either at or delay, not both")
	case req.delay() < 0:
		refuse("delay", req.Delay.String(), "a duration that is not negative")
	case req.At != nil:
		due, from = max(now, req.At.UnixMilli()), "at"
	}
	if due > now+MaxAhead.Milliseconds() {
		refuse(from, time.UnixMilli(due).UTC().Format(time.RFC3339), "a time within the next five years")
	}
	return due, errors.Join(wrong...)
}

// listLater lists runs that are due later. What is due soon is found in the buckets until the first sweep lists it. A run that a clock ahead
// has put, whose request is repeated now, was due soon by that clock only.
func (s *Service) listLater(ctx context.Context, tenant string, orders []*order) {
	var later []*order
	var listings []run.Listing
	for _, o := range orders {
		astray := o.stood && o.Err == nil && o.Run.Created > o.now+dispatch.MaxSkew.Milliseconds()
		if o.settled() && !astray || o.direct {
			continue
		}
		listing, err := s.Dispatch.Listing(ctx, o.Run, o.Run.ID.Nominal)
		if o.Err = err; err == nil {
			later, listings = append(later, o), append(listings, listing)
		}
	}
	if len(later) == 0 {
		return
	}
	ops, err := run.IndexAhead(tenant, listings, s.NewID())
	if err == nil {
		err = s.writeAll(ctx, ops)
	}
	if err != nil {
		for _, o := range later {
			o.Err = fmt.Errorf("list run %s: %w", o.Run.ID, err)
		}
	}
}

// writeAll does all ops, each by itself, or gives the first error.
func (s *Service) writeAll(ctx context.Context, ops []store.Op) error {
	verdicts, err := s.Dispatch.WriteEach(ctx, ops)
	for _, v := range verdicts {
		if err == nil {
			err = v.Err
		}
	}
	return err
}

// place arms the timers, and then puts the runs. The timer before the run: whatever happens from here on, a tick or sweep comes upon it.
func (s *Service) place(ctx context.Context, orders []*order) {
	open := slices.DeleteFunc(slices.Clone(orders), (*order).settled)
	timers, at := s.timers(open)
	errs, err := s.Dispatch.ArmEach(ctx, timers)
	for i, o := range open {
		if o.Err = err; err == nil {
			o.Err = errs[at[i]]
		}
		if o.Err != nil {
			continue
		}
		o.begun = true
		o.Err = s.mark(ctx, o)
	}
	// Durable now: a timer for each of the others. A crash here leaves them to the sweep, which makes their runs.
	s.putNew(ctx, slices.DeleteFunc(open, (*order).settled))
}

// mark says of a run that is to be put which generation it is of, where that is not left to its claim. What is put long after it was asked for, or
// by a clock that is behind the one that made the job, would be taken for a run of a job that had the name before. For these the job counts as it
// stands: what is remembered may be the one before.
func (s *Service) mark(ctx context.Context, o *order) error {
	j := o.job
	mistaken := s.Dispatch.Astray(o.Run.Created, o.now+(s.age(o.now)+dispatch.Promptness).Milliseconds()) || dispatch.DeletedFor(*j, o.Run)
	if mistaken {
		newest, err := s.Dispatch.Book.Job(ctx, o.Run.Tenant, o.Run.ID.Job)
		if err != nil {
			return err
		}
		j = &newest
	}
	direct := o.direct && (!j.Def.Paused || o.Run.IgnorePause)
	if direct {
		o.Run.State = run.Queued
		o.Run = o.Run.Lasting(o.Run.ID.Nominal, j.Def.Times())
	}
	if direct || mistaken {
		o.Run.Generation = j.Generation
	}
	return nil
}

// timers gives the timers of requests, and which one is of each: a few of those that wake together share one. Whose run may stand already,
// under a key, has its own.
func (s *Service) timers(orders []*order) (timers []timer.Timer, at []int) {
	type instant struct {
		wake   int64
		direct bool
	}
	gathering := map[instant]int{} // the timer that others of that instant may share
	var runs [][]*run.Run          // of each timer
	var when []instant
	at = make([]int, len(orders))
	for i, o := range orders {
		wake := instant{max(o.Run.ID.Nominal, o.now), o.direct}
		n, known := gathering[wake]
		if !known || o.Repeated || len(runs[n]) == timer.Together {
			n = len(runs)
			runs, when = append(runs, nil), append(when, wake)
			if !o.Repeated {
				gathering[wake] = n
			}
		}
		runs[n], at[i] = append(runs[n], &o.Run), n
	}
	timers = make([]timer.Timer, len(runs))
	for n, w := range when {
		if len(runs[n]) == 1 {
			timers[n] = timer.NewRequest(*runs[n][0], w.wake, w.direct)
		} else {
			timers[n] = timer.NewBatch(runs[n], w.wake, w.direct, s.NewID())
		}
	}
	return timers, at
}

// sendDirect claims and sends the runs that are due soon, those of several requests together. The jobs are read after the runs are
// there: an edit that is not seen here sees the runs, and raises their generation.
func (s *Service) sendDirect(ctx context.Context, tenant string, orders []*order) {
	for _, o := range orders {
		o.direct = o.direct && !o.settled() && !o.Run.State.Ended()
	}
	direct := slices.DeleteFunc(slices.Clone(orders), func(o *order) bool { return !o.direct })
	for some := range slices.Chunk(direct, store.MaxEach) {
		runs := make([]run.Run, len(some))
		for i, o := range some {
			runs[i] = o.Run
		}
		now, err := s.Dispatch.Clock()
		if err != nil {
			err = skewed(err)
		} else {
			upTo := some[len(some)-1].now + s.Dispatch.Directly().Milliseconds()
			b := dispatch.Bounds{Now: now, Horizon: upTo, Reach: upTo, Resume: upTo + dispatch.ResumeAfter.Milliseconds()}
			_, err = s.Dispatch.Requests(ctx, tenant, 0, b, runs)
		}
		if err != nil {
			for _, o := range some {
				o.Err = err
			}
		}
	}
}

// armAgain arms another timer for requests that took so long that the last sweep of their bucket may be near, in a bucket to come. A clock
// that was set back before anything was asked of the store is as if it took that long. It does so whatever failed behind the write of the run:
// nothing else would wake that.
func (s *Service) armAgain(ctx context.Context, orders []*order) {
	late := slices.DeleteFunc(slices.Clone(orders), func(o *order) bool { return !o.put || o.stood || s.age(o.now) <= stale })
	dispatch.Parallel(late, fanOut, func(_ int, o *order) {
		err := s.Dispatch.Arm(ctx, timer.NewRequest(o.Run, max(o.Run.ID.Nominal, o.now+s.age(o.now).Milliseconds()), o.direct))
		if o.Err == nil {
			o.Err = err
		}
	})
}

// putNew puts runs where nothing stands, and gives what stands. Two requests under one key may ask for one run.
func (s *Service) putNew(ctx context.Context, orders []*order) {
	ops := make([]store.Op, len(orders))
	for i, o := range orders {
		var err error
		if ops[i], err = o.Run.Item(s.NewID()); err != nil {
			o.Err = err
		}
		o.put = true
	}
	ops, at := store.Once(ops)
	verdicts, err := s.Dispatch.WriteEach(ctx, ops)
	for i, o := range orders {
		if err != nil {
			o.Err = err
			continue
		}
		v := verdicts[at[i]]
		conflict := store.AsConflict(v.Err)
		switch {
		case v.Err == nil:
			o.Run.Version = v.Version
		case conflict != nil:
			o.Run, _, o.Err = run.FromItem(o.Run.Tenant, o.Run.ID, conflict.Standing)
		default:
			o.Err = v.Err
		}
	}
}

// payloadKept is for how long a payload is kept from when its run is due.
func payloadKept(def job.Definition) time.Duration {
	return def.Kept() + max(keepPayload, flow.Longest(def))
}

// keepPayload puts the payload where the run finds it: in the run while it is small, else in a blob that lasts as long.
func (s *Service) keepPayload(ctx context.Context, j *job.Job, r run.Run, payload []byte) (run.Ref, error) {
	expires := r.ID.Time().Add(payloadKept(j.Def))
	key, err := s.Blobs.Put(ctx, blob.Ref{Tenant: r.Tenant, Kind: blob.Payload, ID: r.ID.String(), Expires: expires}, payload)
	if err != nil {
		return run.Ref{}, fmt.Errorf("keep the payload: %w", err)
	}
	return run.Ref{Blob: key}, nil
}
