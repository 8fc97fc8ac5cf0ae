package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// maxPast bounds the replaced generations that a job carries; they leave it when the last sweep has passed their end.
const maxPast = 500

// stale is how old an edit's instant may be when it is written: the first timer after it must not lie far behind the ticks.
const stale = 30 * time.Second

// maxRounds bounds how often an edit may be overtaken before it gives up.
const maxRounds = 16

// Put creates or replaces a job. The same definition again changes nothing, and finishes what an earlier try left unfinished,
// so that a Put whose answer was lost can be repeated, with its old Match too. Errors: joined *invalid.Error, *Refusal.
func (s *Service) Put(ctx context.Context, tenant, name string, def job.Definition, match Match) (job.Job, Change, error) {
	p, err := s.draft(tenant, name, def, match)
	if err == nil {
		err = s.look(ctx, tenant, nil, p)
	}
	if err != nil {
		return job.Job{}, 0, err
	}
	j, err := s.edit(ctx, tenant, name, p.apply)
	return j, p.change, err
}

// Patch changes the definition of a job that stands, as change says; it may be called again where somebody else edits the job meanwhile. What
// stands so already stays unchanged, whatever match says, so that a Patch whose answer was lost can be repeated. Errors: those of change, joined
// *invalid.Error, *Refusal.
func (s *Service) Patch(ctx context.Context, tenant, name string, change func(job.Definition) (job.Definition, error), match Match) (job.Job, Change, error) {
	if err := job.ValidName(name); err != nil {
		return job.Job{}, 0, err
	}
	p := &patch{service: s, change: change, match: match}
	j, err := s.edit(ctx, tenant, name, p.applier(ctx))
	return j, p.did, err
}

// PreviewPatch tells what Patch would do, and stores nothing, as Preview does of Put.
func (s *Service) PreviewPatch(ctx context.Context, tenant, name string, change func(job.Definition) (job.Definition, error), match Match, beside map[string]bool) (before, after job.Job, did Change, err error) {
	if err := job.ValidName(name); err != nil {
		return before, after, 0, err
	}
	p := &patch{service: s, change: change, match: match, beside: beside}
	before, after, err = s.preview(ctx, tenant, name, p.applier(ctx))
	return before, after, p.did, err
}

// patch is a change on its way into a job that stands.
type patch struct {
	service *Service
	change  func(job.Definition) (job.Definition, error)
	match   Match
	beside  map[string]bool // jobs that count as standing
	did     Change          // as of the last apply
}

func (p *patch) applier(ctx context.Context) func(*job.Job) (bool, error) {
	return func(j *job.Job) (bool, error) { return p.apply(ctx, j) }
}

func (p *patch) apply(ctx context.Context, j *job.Job) (bool, error) {
	if err := existing(j); err != nil {
		return false, err
	}
	def, err := p.change(j.Def)
	if err != nil {
		return false, err
	}
	put, err := p.service.draft(j.Tenant, j.Name, def, p.match)
	if err == nil {
		err = p.service.look(ctx, j.Tenant, p.beside, put)
	}
	if err != nil {
		return false, err
	}
	reason := j.Reason
	changed, err := put.apply(j)
	if j.Def.Paused {
		j.Reason = reason // the pause goes on
	}
	p.did = put.change
	return changed, err
}

// Preview tells what Put would do, and stores nothing: the job as it stands, of Generation 0 where there is none, and as Put
// would leave it, of Generation 0 where that would be a new one. Its errors are those of Put, where jobs of the names in beside are put with it.
func (s *Service) Preview(ctx context.Context, tenant, name string, def job.Definition, match Match, beside map[string]bool) (before, after job.Job, change Change, err error) {
	p, err := s.draft(tenant, name, def, match)
	if err == nil {
		err = s.look(ctx, tenant, beside, p)
	}
	if err != nil {
		return before, after, 0, err
	}
	before, after, err = s.preview(ctx, tenant, name, p.apply)
	return before, after, p.change, err
}

func (s *Service) preview(ctx context.Context, tenant, name string, apply func(*job.Job) (bool, error)) (before, after job.Job, err error) {
	if before, err = s.Dispatch.Book.Job(ctx, tenant, name); err != nil {
		return before, after, err
	}
	after = before
	changed, err := apply(&after)
	if err != nil {
		return before, after, err
	}
	if changed {
		after.Generation, after.Updated = 0, 0
		after.Def = s.counted(after.Def, s.Now())
	}
	if before.Deleted {
		before = job.Job{Tenant: tenant, Name: name}
	}
	return before, after, nil
}

// put is a definition on its way into a job.
type put struct {
	service  *Service
	def      job.Definition
	compiled job.Fires
	match    Match
	change   Change // as of the last apply

	uncallable []callee     // that name no job
	impassable []impassable // what it says of gates that cannot be so
}

// draft checks all that can be told of a definition without looking at the job.
func (s *Service) draft(tenant, name string, def job.Definition, match Match) (*put, error) {
	if err := job.ValidName(name); err != nil {
		return nil, err
	}
	def = def.WithDefaults()
	compiled, err := s.check(tenant, def)
	if err != nil {
		return nil, err
	}
	if err := callsNot(name, def); err != nil {
		return nil, err
	}
	return &put{service: s, def: def, compiled: compiled, match: match}, nil
}

// look notes of each draft what of the things that it names stands otherwise than it says. Jobs of the names in beside are put by the same request.
func (s *Service) look(ctx context.Context, tenant string, beside map[string]bool, drafts ...*put) error {
	if err := s.callable(ctx, tenant, beside, drafts...); err != nil {
		return err
	}
	return s.passable(ctx, tenant, drafts...)
}

// Check gives what Put refuses of a definition whatever stands under its name: joined *invalid.Error.
func (s *Service) Check(tenant string, def job.Definition) error {
	_, err := s.check(tenant, def.WithDefaults())
	return err
}

func (s *Service) check(tenant string, def job.Definition) (*schedule.Schedule, error) {
	compiled, err := def.Validate(func(queue string) bool { return s.Dispatch.KnowsQueue(tenant, queue) })
	if err != nil {
		return nil, err
	}
	if def.Target.Workflow == nil {
		return compiled, s.able(def)
	}
	_, err = flow.CheckTarget(def.Target.Workflow, def.Queue, func(task job.Definition) error { return s.Task(tenant, task) })
	return compiled, err
}

// apply makes the job what was put, and tells whether that changes it.
func (p *put) apply(j *job.Job) (bool, error) {
	exists := j.Generation != 0 && !j.Deleted
	def := p.def.WithoutCountedEnd()
	def.Overlap = def.Overlap.Following(j.StrictSince(), 0)
	if exists {
		def = def.KeepCountedEnd(j.Def)
	}
	if exists && j.Fault == "" && same(j.Def, def) {
		p.change = Unchanged
		return false, nil
	}
	if err := p.match.check(*j, exists); err != nil {
		return false, err
	}
	p.change = Updated
	var standing job.Definition
	if exists {
		standing = j.Def
	}
	if err := errors.Join(refuseNew(p.uncallable, standing), refuseGates(p.impassable, standing)); err != nil {
		return false, err
	}
	if !exists {
		p.change = Created
		j.Created = 0
		if err := p.service.fires(p.def, p.compiled); err != nil {
			return false, err
		}
	}
	j.Def, j.Deleted, j.Fault, j.Reason = def, false, "", ""
	return true, nil
}

// fires refuses a schedule that has nothing left to fire.
func (s *Service) fires(def job.Definition, compiled job.Fires) error {
	if def.Schedule == nil {
		return nil
	}
	if _, ok := compiled.Next(s.Now()); !ok {
		field := "schedule.end"
		if def.Schedule.At != nil {
			field = "schedule.at"
		}
		return invalid.Missing(field, "a time to come: the schedule has no fire after now")
	}
	return nil
}

// same compares definitions as they are stored, so that nil and empty are one.
func same(a, b job.Definition) bool {
	left, err1 := record.Encode(a)
	right, err2 := record.Encode(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}

func (m Match) check(j job.Job, exists bool) error {
	return m.holds("job "+j.Name, j.ETag(), exists, CodeJobExists)
}

// holds refuses an edit of a thing that stands as its ETag says, or does not exist. taken is the code for one that should not exist.
func (m Match) holds(thing, tag string, exists bool, taken Code) error {
	switch {
	case m.Absent && exists:
		return refuse(taken, "%s exists already; leave If-None-Match out to replace it", thing)
	case m.ETag == "" || exists && (m.ETag == "*" || m.ETag == tag):
		return nil
	case !exists:
		return refuse(CodeStale, "%s does not exist, so If-Match cannot hold", thing)
	default:
		return refuse(CodeStale, "%s was changed meanwhile: it is now %s; read it again", thing, tag)
	}
}

func existing(j *job.Job) error {
	if j.Generation == 0 || j.Deleted {
		return refuse(CodeJobNotFound, "there is no job %s", j.Name)
	}
	return nil
}

// Delete ends a job. When it returns nil, no further attempt of its runs calls its target: what has not started, or is to be tried again, ends
// as cancelled, at the latest when a worker comes to it. Attempts under way go on to their end. The name may be used again.
func (s *Service) Delete(ctx context.Context, tenant, name string, match Match) error {
	_, _, err := s.end(ctx, tenant, name, match, time.Time{})
	return err
}

// end is alter by deleting.
func (s *Service) end(ctx context.Context, tenant, name string, match Match, since time.Time) (j job.Job, changed bool, err error) {
	gone := false
	j, err = s.edit(ctx, tenant, name, func(j *job.Job) (bool, error) {
		changed = false
		if gone = j.Generation == 0 || j.Deleted; gone {
			return false, nil // and still settled: an earlier delete may have stopped before its fences stood
		}
		var err error
		changed, err = alterable(j, match, since, deleting)
		return changed, err
	})
	if err == nil && gone { // though it may have been made anew by now
		err = existing(&job.Job{Name: name})
	}
	return j, changed, err
}

// Pause stops a job from making runs; what has started goes on. Pausing a paused job changes only the reason. A job that match does not
// hold of is CodeStale, even where nothing would change: who is answered without an error knows that nobody else has paused it.
func (s *Service) Pause(ctx context.Context, tenant, name, reason string, match Match) (job.Job, error) {
	if err := pauseReason(reason); err != nil {
		return job.Job{}, err
	}
	j, _, err := s.alter(ctx, tenant, name, match, time.Time{}, func(j *job.Job) (bool, error) {
		if j.Def.Paused && j.Reason == reason {
			return false, nil
		}
		j.Def.Paused, j.Reason = true, reason
		return true, nil
	})
	return j, err
}

func pauseReason(reason string) error {
	if len(reason) > job.MaxDescription {
		return invalid.Field("reason", reason, fmt.Sprintf("at most %d bytes", job.MaxDescription))
	}
	return isText("reason", reason)
}

// Resume lets a paused job make runs again, from now on: fires of the time in between are not made up. On-demand runs that
// were held start. match is as of Pause.
func (s *Service) Resume(ctx context.Context, tenant, name string, match Match) (job.Job, error) {
	j, _, err := s.alter(ctx, tenant, name, match, time.Time{}, resuming)
	return j, err
}

// alteration changes a job that stands, and tells whether that changes anything.
type alteration func(j *job.Job) (bool, error)

func resuming(j *job.Job) (bool, error) {
	if !j.Def.Paused {
		return false, nil
	}
	j.Def.Paused, j.Reason = false, ""
	return true, nil
}

func deleting(j *job.Job) (bool, error) {
	j.Deleted, j.Def, j.Reason, j.Fault = true, job.Definition{}, "", ""
	return true, nil
}

// alter edits a job that stands. It refuses one that match does not hold of, and one that was changed after since, where that is given. changed tells
// whether this call has changed it.
func (s *Service) alter(ctx context.Context, tenant, name string, match Match, since time.Time, do alteration) (j job.Job, changed bool, err error) {
	j, err = s.edit(ctx, tenant, name, func(j *job.Job) (bool, error) {
		if err := existing(j); err != nil {
			return false, err
		}
		var err error
		changed, err = alterable(j, match, since, do)
		return changed, err
	})
	return j, changed, err
}

func alterable(j *job.Job, match Match, since time.Time, do alteration) (bool, error) {
	if err := match.check(*j, true); err != nil {
		return false, err
	}
	if changed := time.UnixMilli(j.Updated).UTC(); !since.IsZero() && changed.After(since) {
		return false, refuse(CodeStale, "job %s was changed at %s; look at it again", j.Name, changed.Format(time.RFC3339Nano))
	}
	return do(j)
}

// edit is the protocol's edit. change alters the job as read, or says that nothing is to be changed; it may be called again
// after a conflict. When edit returns nil, no run of an older definition with a later nominal time will start.
func (s *Service) edit(ctx context.Context, tenant, name string, change func(*job.Job) (bool, error)) (job.Job, error) {
	return s.editTelling(ctx, tenant, name, change, func() {})
}

// editTelling is edit, which tells when the job is written: whatever fails behind that, it holds.
func (s *Service) editTelling(ctx context.Context, tenant, name string, change func(*job.Job) (bool, error), written func()) (job.Job, error) {
	for range maxRounds {
		j, err := s.Dispatch.Book.Job(ctx, tenant, name)
		if err != nil {
			return job.Job{}, err
		}
		// Behind the job: what it was slow to read is not taken for ahead, and the store's answer may tell that this clock was stepped.
		now, err := s.Dispatch.Clock()
		if err != nil {
			return job.Job{}, skewed(err)
		}
		// Hosts' clocks differ a little: an edit never speaks of an earlier instant than the one that it follows, or its fences
		// would take fires from the generation before. One that is further ahead was written by a clock that was wrong: generations
		// before it would go on until then, whatever is answered now. So even an edit that changes nothing else is written again, as of now.
		astray := j.Updated > now+dispatch.MaxSkew.Milliseconds()
		if !astray {
			now = max(now, j.Updated)
		}
		old := j
		changed, err := change(&j)
		if err != nil {
			return job.Job{}, err
		}
		if changed && old.Deleted {
			// Whoever deleted it may have stopped, or be under way: what it has still to end must not live on in another job of that name.
			if _, err := s.settle(ctx, old, true); err != nil {
				return job.Job{}, err
			}
		}
		if changed = changed || astray; changed {
			if j, err = s.replace(ctx, old, j, now); errors.Is(err, errAgain) {
				continue
			} else if err != nil {
				return job.Job{}, err
			}
			written()
		}
		// Durable now: the new generation, with its first timer. What is claimed of older ones beyond now may still start: until
		// the fences stand, no answer is given. A crash here leaves an edit that nobody was told of; a repeated one finishes it.
		settled, err := s.settle(ctx, j, !changed)
		if changed {
			err = halfDone(err)
		}
		if err == nil {
			s.letIn(ctx, old, settled, changed)
		}
		if err == nil && settled.Deleted && !j.Deleted {
			return j, nil // deleted meanwhile: the answer tells of the job as it was before, and not of what a delete leaves
		}
		return settled, err
	}
	return job.Job{}, &Refusal{Code: CodeBusy, Message: "job " + name + " is being edited by many at once; try again", RetryAfter: time.Second}
}

// halfDone is for what fails after the first write of a request: no error may say any more that nothing was done.
func halfDone(err error) error {
	var refusal *Refusal
	if errors.Is(err, store.ErrThrottled) || errors.Is(err, blob.ErrUnavailable) || errors.As(err, &refusal) {
		return fmt.Errorf("%w: it was begun, and is not finished: %s", store.ErrUnknown, err.Error())
	}
	return err
}

// errAgain says that the edit was overtaken, or has become old.
var errAgain = errors.New("edit again")

// replace writes a new generation, the definition of the old one for the runs that still have it, and the first timer.
func (s *Service) replace(ctx context.Context, old, j job.Job, now int64) (job.Job, error) {
	shard, err := s.shard(ctx, j)
	if err != nil {
		return job.Job{}, err
	}
	j, ops, err := s.renew(old, j, now, shard)
	if err != nil {
		return job.Job{}, err
	}
	if s.outdated(now) {
		return job.Job{}, errAgain
	}
	versions, err := s.Dispatch.Write(ctx, ops...)
	if store.AsConflict(err) != nil && !errors.Is(err, store.ErrUnknown) {
		return job.Job{}, errAgain
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("write job %s: %w", j.Name, err)
	}
	key := job.Key(j.Tenant, j.Name)
	j.Version = versions[slices.IndexFunc(ops, func(op store.Op) bool { return op.Key == key })]
	s.Dispatch.Book.Saw(j)
	return j, nil
}

// renew gives a job its new generation, and what is to be written of it as a whole. Of one of which nothing stood, the job comes first.
func (s *Service) renew(old, j job.Job, now int64, shard timer.Shard) (job.Job, []store.Op, error) {
	id := s.NewID()
	j.Generation = max(old.Generation+1, now)
	if old.Deleted && !j.Deleted {
		j.Born = j.Generation
	}
	j.Updated, j.Horizon = now, 0
	if shard.Horizon > s.usual(now) {
		j.Horizon = shard.Horizon
	}
	switch {
	case !j.Def.Paused:
		j.HeldSince, j.PausedSince = min(old.PausedSince, now), 0
		if old.Updated > now && !old.Def.Paused {
			j.HeldSince = old.HeldSince // a resume by a wrong clock was refused before it let go what the pause had held
		}
	case !old.Def.Paused:
		j.HeldSince, j.PausedSince = 0, now
	default:
		j.PausedSince = min(old.PausedSince, now)
	}
	if j.Created == 0 {
		j.Created = now
	}
	if old.Updated > now { // by a clock that was ahead, which may have counted
		j.Def = s.recounted(j.Def, time.UnixMilli(now))
	}
	j.Def = s.counted(j.Def, time.UnixMilli(now))
	j.Def.Overlap = j.Def.Overlap.Following(old.StrictSince(), j.Generation)
	j.Keyed, j.GatesBefore = old.Keyed || j.Def.Overlap.Key != "", gatesBefore(old, j)
	ops := make([]store.Op, 0, 3)
	if old.Generation != 0 {
		// What the last sweep has passed, by more than a write may be late, has no timers and no claims left.
		// Cursors that are ahead of the clock, which was stepped back, say nothing.
		settled := min(shard.Oldest(), now) - dispatch.Lateness.Milliseconds()
		j.Past = slices.DeleteFunc(slices.Clone(old.Past), func(p job.Past) bool { return max(p.Until, p.Cut) < settled })
		if len(j.Past) >= maxPast {
			return job.Job{}, nil, &Refusal{Code: CodeBusy, RetryAfter: time.Minute,
				Message: fmt.Sprintf("job %s was edited %d times within the last hours; wait until the sweeps have caught up", j.Name, maxPast)}
		}
		j.Past = append(j.Past, job.Past{Generation: old.Generation, Until: now})
		for i, p := range j.Past { // what a clock ahead had left to older generations ends now as well
			if p.Until > now {
				j.Past[i].Until, j.Past[i].Cut = now, max(p.Cut, p.Until)
			}
		}
		past, err := old.PutPast(time.UnixMilli(now), flow.Longest(old.Def), id)
		if err != nil {
			return job.Job{}, nil, err
		}
		ops = append(ops, past)
	}
	put, err := j.Put(id)
	if err != nil {
		return job.Job{}, nil, err
	}
	ops = append(ops, put)
	if first, ok, err := s.firstTimer(j, now); err != nil {
		return job.Job{}, nil, err
	} else if ok {
		op, err := first.Put(id)
		if err != nil {
			return job.Job{}, nil, err
		}
		ops = append(ops, op)
	}
	return j, ops, nil
}

func (s *Service) age(since int64) time.Duration {
	return time.Duration(s.storeTime().UnixMilli()-since) * time.Millisecond
}

// outdated tells whether an edit may not be written any more as of now: it was slow, or the clock was stepped, as an answer of the store's has
// told since.
func (s *Service) outdated(now int64) bool {
	age := s.age(now)
	return age > stale || age < -dispatch.MaxSkew
}

// firstTimer is the timer of the generation's first fire after t.
func (s *Service) firstTimer(j job.Job, t int64) (timer.Timer, bool, error) {
	if !j.Active() {
		return timer.Timer{}, false, nil
	}
	fires, err := s.Dispatch.Book.Draft(j.Def)
	if err != nil {
		return timer.Timer{}, false, err
	}
	first, ok := fires.Next(time.UnixMilli(t))
	if !ok {
		return timer.Timer{}, false, nil
	}
	nominal := first.UnixMilli()
	return timer.NewFire(j.Tenant, j.Name, j.Generation, nominal, nominal), true, nil
}

func (s *Service) shard(ctx context.Context, j job.Job) (timer.Shard, error) {
	n := s.Dispatch.Layout.ShardOf(timer.BucketOf(j.Tenant, j.Name))
	items, err := s.Store.Get(ctx, timer.ShardKey(n))
	if err != nil {
		return timer.Shard{}, fmt.Errorf("read shard %d: %w", n, err)
	}
	return timer.ShardFromItem(n, items[0])
}

// shards reads how far the ticks have come, in all shards.
func (s *Service) shards(ctx context.Context) ([]timer.Shard, error) {
	keys := make([]store.Key, s.Dispatch.Layout.Shards)
	for n := range keys {
		keys[n] = timer.ShardKey(n)
	}
	items, err := s.Store.Get(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("read the shards: %w", err)
	}
	shards := make([]timer.Shard, len(keys))
	for n := range shards {
		if shards[n], err = timer.ShardFromItem(n, items[n]); err != nil {
			return nil, err
		}
	}
	return shards, nil
}

func skewed(err error) error {
	return &Refusal{Code: CodeClockSkewed, Message: err.Error(), RetryAfter: 10 * time.Second}
}
