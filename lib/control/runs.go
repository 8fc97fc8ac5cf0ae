package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Run reads a run.
func (s *Service) Run(ctx context.Context, tenant string, id run.ID) (run.Run, error) {
	items, err := s.Store.Get(ctx, id.Key(tenant))
	if err != nil {
		return run.Run{}, err
	}
	r, ok, err := run.FromItem(tenant, id, items[0])
	if err != nil {
		return run.Run{}, err
	}
	if !ok || r.State == run.Fenced {
		return run.Run{}, refuse(CodeRunNotFound, "there is no run %s", id)
	}
	return r, nil
}

// Labels are those of the definition that a run has, or is to have; none where the job is gone. Definitions are remembered, so this
// reads only what was not seen before.
func (s *Service) Labels(ctx context.Context, r run.Run) (map[string]string, error) {
	if r.Generation == 0 || r.State == run.Scheduled {
		j, err := s.Dispatch.Book.Known(ctx, r.Tenant, r.ID.Job, s.Now())
		return j.Def.Labels, err
	}
	edition, err := s.Dispatch.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if errors.Is(err, job.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return edition.Def.Labels, nil
}

// Runs lists runs, newest nominal time first, or the oldest: those of a job from its history, those of all jobs from the index over them.
// docs/listings.md says what each costs.
func (s *Service) Runs(ctx context.Context, tenant string, f RunFilter, cursor string, limit int) (runs []run.Run, next string, err error) {
	behind, err := f.behind(cursor)
	if err != nil {
		return nil, "", err
	}
	if f.Due {
		// What a host has started whose clock is ahead of this one's is within that. Beyond it there is nothing to be looked at.
		if ahead := s.storeTime().Add(2 * dispatch.MaxSkew); f.To.IsZero() || f.To.After(ahead) {
			f.To = ahead
		}
	}
	switch {
	case f.Job == "":
		runs, next, err = s.timeline(ctx, tenant, f, behind, pageLimit(limit))
	case job.ValidName(f.Job) != nil:
		return nil, "", invalid.Field("job", f.Job, "the name of a job")
	default:
		runs, next, err = s.history(ctx, tenant, f, behind, pageLimit(limit), examined)
	}
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	return runs, next, nil
}

// oldestMark stands in a cursor of runs before the ID where the oldest come first: a cursor goes on in its own order alone. No ID begins so.
const oldestMark = "+"

// behind is the run behind which a cursor goes on, the zero ID for none.
func (f RunFilter) behind(cursor string) (behind run.ID, err error) {
	_, err = readCursor(cursor, func(after string) bool {
		id, oldest := strings.CutPrefix(after, oldestMark)
		behind, err = run.ParseID(id)
		return err == nil && oldest == f.Oldest
	})
	return behind, err
}

// After is the cursor of a page that ends with this run, in place of the one that Runs gave.
func (f RunFilter) After(id run.ID) string {
	if f.Oldest {
		return cursorAfter(oldestMark + id.String())
	}
	return cursorAfter(id.String())
}

// history lists the runs of one job behind a run, the zero one for none. It looks at no more records than most.
func (s *Service) history(ctx context.Context, tenant string, f RunFilter, behind run.ID, limit, most int) (runs []run.Run, next string, err error) {
	from, to := f.bounds()
	if behind.Job != "" {
		place := behind.Key(tenant).Sort
		if f.Job < behind.Job || f.Oldest && f.Job == behind.Job {
			place += "\x00" // what stands there is older than the place
		}
		if f.Oldest {
			from = max(from, place)
		} else {
			to = earlier(to, place)
		}
	}
	ranges := make([]store.Range, run.Partitions)
	for n := range ranges {
		ranges[n] = store.Range{Partition: run.Partition(tenant, f.Job, n), From: from, To: to, Backward: !f.Oldest, Limit: pageOf(limit, run.Partitions)}
	}
	seen, last := 0, run.ID{}
	err = s.merge(ctx, ranges, func(_ int, item store.Item) (bool, error) {
		if len(runs) == limit || seen == most {
			next = f.After(last)
			return false, nil
		}
		seen++
		r, ok := s.recorded(tenant, f.Job, item)
		if r.ID.Job != "" {
			last = r.ID
		}
		if !ok {
			return true, nil
		}
		match, err := s.matches(ctx, f, r)
		if match {
			runs = append(runs, r)
		}
		return true, err
	})
	return runs, next, err
}

// recorded reads a run of a job's history; false for a record that cannot be read, of which only the ID is given, if it has one.
func (s *Service) recorded(tenant, name string, item store.Item) (run.Run, bool) {
	id, err := run.IDFromSort(name, item.Sort)
	if err != nil {
		s.unreadable(tenant, item, err)
		return run.Run{}, false
	}
	r, _, err := run.FromItem(tenant, id, item)
	if err != nil {
		s.unreadable(tenant, item, err)
		return run.Run{ID: id}, false
	}
	return r, true
}

// bounds gives the times of a filter as sort keys, "" for none.
func (f RunFilter) bounds() (from, to string) {
	if !f.From.IsZero() {
		from = run.SortFrom(max(0, f.From.UnixMilli()))
	}
	if !f.To.IsZero() {
		to = run.SortFrom(max(0, f.To.UnixMilli()))
	}
	return from, to
}

// matches tells whether a filter lets a run through, its job and times apart.
func (s *Service) matches(ctx context.Context, f RunFilter, r run.Run) (bool, error) {
	if r.State == run.Fenced || f.spare && !r.Discarded.IsZero() {
		return false, nil
	}
	if len(f.States) > 0 || f.Due {
		shown := s.Shown(ctx, r)
		if f.Due && shown == run.Scheduled || len(f.States) > 0 && !slices.Contains(f.States, shown) {
			return false, nil
		}
	}
	if endedSince(r, f.ended) || !holds(r.LastError(), f.Error) {
		return false, nil
	}
	if len(f.Labels) == 0 {
		return true, nil
	}
	labels, err := s.Labels(ctx, r)
	if dispatch.Unreadable(err) {
		return false, nil // what cannot be read must not hide the others
	}
	if err != nil {
		return false, err
	}
	for name, value := range f.Labels {
		if got, ok := labels[name]; !ok || got != value {
			return false, nil
		}
	}
	return true, nil
}

// endedSince tells whether a run has ended at this time or later; the zero time is none.
func endedSince(r run.Run, at time.Time) bool {
	return !at.IsZero() && r.Ended >= at.UnixMilli()
}

// holds tells whether a text has a part, in any letter case; every one has "".
func holds(text, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// isText refuses what no answer could show as it is.
func isText(field, text string) error {
	if !utf8.ValidString(text) {
		return invalid.Field(field, text, "text in UTF-8")
	}
	return nil
}

// Cancel ends a run that has not started, and asks the worker of a running one to stop: that run ends when its worker has
// heard of it, as cancelled, unless it has finished by then.
func (s *Service) Cancel(ctx context.Context, tenant string, id run.ID, reason string) (run.Run, error) {
	if err := isText("reason", reason); err != nil {
		return run.Run{}, err
	}
	if reason == "" {
		reason = "cancelled on request"
	}
	var was run.Run // where its end makes room at the gate of its job
	cancelled, err := s.change(ctx, tenant, id, func(r run.Run, now int64) (run.Run, []store.Op, error) {
		retention := job.DefaultRetention
		was = r
		e, err := s.Dispatch.Book.Edition(ctx, tenant, id.Job, r.Generation)
		quiet := dispatch.Unreadable(err) && r.Heads() // as another version may have left it
		if err == nil {
			retention = e.Def.Kept()
			was = s.Dispatch.MayHold(ctx, r, e) // it may have been let in, and not started
			quiet = dispatch.MayBeQuiet(r, e)
		}
		if quiet {
			// Durable before its word: a check that stops the steps, should this process die behind it.
			if err := s.Dispatch.Rouse(ctx, r); err != nil {
				return r, nil, err
			}
		}
		if err := mayCancel(r); err != nil {
			return r, nil, err
		}
		next, _ := r.AskCancel(now, reason, retention)
		return next, nil, nil
	})
	if err == nil && cancelled.Heads() {
		return s.stop(ctx, cancelled)
	}
	if err == nil && cancelled.State.Ended() && (was.Placed || was.Waits()) {
		// Durable now: the end. A crash here leaves those that wait to their checks.
		if err := s.Dispatch.Left(ctx, was); err != nil {
			s.Log.WarnContext(ctx, "who waits for a cancelled run is not let in yet", "run", id.String(), "error", err)
		}
	}
	return cancelled, err
}

// mayCancel tells whether there is something to cancel.
func mayCancel(r run.Run) error {
	if r.State.Ended() {
		return refuse(CodeRunEnded, "run %s has ended as %s", r.ID, r.State)
	}
	return nil
}

// Retry opens an ended run again, with a new attempt budget, under the newest definition of its job. Of an unknown run, whose
// effect may have happened, and of a succeeded one, only with force. One that has ended at endedBefore or later, as again since somebody asked first,
// stays as it is, CodeStale; the zero time is no such bound.
func (s *Service) Retry(ctx context.Context, tenant string, id run.ID, force bool, endedBefore time.Time) (run.Run, error) {
	return s.reopen(ctx, tenant, id, reopening{reason: retried, force: force, ended: endedBefore})
}

// retried is the reason of a run that was opened by a retry.
const retried = "retried on request"

// reopening is how runs are opened again.
type reopening struct {
	reason string
	force  bool      // also what may have had its effect
	spare  bool      // a filter has chosen them: not what was discarded since
	ended  time.Time // not what has ended at this time or later; zero: any
}

func (s *Service) reopen(ctx context.Context, tenant string, id run.ID, how reopening) (run.Run, error) {
	j, err := s.reopenable(ctx, tenant, id)
	if err != nil {
		return run.Run{}, err
	}
	r, err := s.change(ctx, tenant, id, func(r run.Run, now int64) (run.Run, []store.Op, error) {
		if err := how.may(r); err != nil {
			return r, nil, err
		}
		generation := j.Generation
		if id.OnDemand() {
			generation = max(generation, r.Generation)
		}
		next := r.Reopen(generation, 0, how.reason)
		from := now
		if spec := j.Def.Schedule; spec != nil && !id.OnDemand() {
			from = max(now, id.Nominal+spec.Jitter.Std().Milliseconds()) // it may still be in its jitter
		}
		next = next.Lasting(from, j.Def.Times())
		if next.Payload, err = s.renewPayload(ctx, j, r, now); err != nil {
			return r, nil, err
		}
		if id.OnDemand() && (id.Nominal > now || generation > j.Generation) {
			// It was cancelled ahead of its time, or a clock was set back: it binds when that comes. Or it was cancelled while a pause held it, under
			// a mark that no claim of the paused job passes: it is held again.
			next.State = run.Scheduled
		}
		// A wake-up in the same write: a reopened run is never without one.
		check, err := s.Dispatch.Wakeup(ctx, next, now+s.Dispatch.Directly().Milliseconds()).Put(s.NewID())
		if err != nil {
			return r, nil, err
		}
		check.If = store.Any
		ops := []store.Op{check}
		if r.State.DeadLetter() {
			ops = append(ops, store.Op{Kind: store.Delete, Key: r.DeadKey()})
		}
		if bounded, err := s.Dispatch.Bounded(ctx, r, j); err != nil {
			return r, nil, err
		} else if bounded || next.State == run.Scheduled && next.Attempt > 0 { // what it binds to may bound what this definition does not
			next = next.Reopened(now)
		}
		next, kept, err := s.Dispatch.KeepPlace(ctx, r, next, j)
		if err != nil {
			return r, nil, err
		}
		ops = append(ops, kept...)
		if listing, again, err := s.Dispatch.ListAgain(ctx, r, next, now); err != nil {
			return r, nil, err
		} else if again {
			op, err := run.IndexAlone(tenant, listing, s.NewID())
			if err != nil {
				return r, nil, err
			}
			ops = append(ops, op)
		}
		return next, ops, nil
	})
	if err != nil {
		return run.Run{}, err
	}
	// Durable now: the run is queued, and has a check timer. A crash here, or a queue that is full, makes it late, not lost.
	if r.State == run.Scheduled {
		return r, nil
	}
	if _, err := s.Dispatch.Send(ctx, []dispatch.Outgoing{{Run: r, Queue: j.Def.Queue}}); err != nil {
		s.Log.WarnContext(ctx, "a reopened run waits for its check timer", "run", id.String(), "error", err)
	}
	return r, nil
}

// reopenable gives the job of a run that is to be opened again.
func (s *Service) reopenable(ctx context.Context, tenant string, id run.ID) (job.Job, error) {
	j, err := s.Dispatch.Book.Job(ctx, tenant, id.Job)
	if err != nil {
		return job.Job{}, err
	}
	if existing(&j) != nil {
		if _, err := s.Run(ctx, tenant, id); err != nil {
			return job.Job{}, err
		}
		return job.Job{}, refuse(CodeJobDeleted, "job %s was deleted, so its runs cannot run again", id.Job)
	}
	return j, nil
}

// may tells whether a run may be opened so.
func (how reopening) may(r run.Run) error {
	switch {
	case !r.State.Ended():
		return refuse(CodeRunNotEnded, "run %s is %s: cancel it first, or wait until it has ended", r.ID, r.State)
	case endedSince(r, how.ended):
		return refuse(CodeStale, "run %s ended at %s, which is not before %s: it may have been retried since", r.ID, time.UnixMilli(r.Ended).UTC().Format(time.RFC3339Nano), how.ended.UTC().Format(time.RFC3339Nano))
	case r.Missed():
		return refuse(CodeRunSkipped, "run %s stands for fires that were missed and never ran: trigger the job instead", r.ID)
	case r.Headed(): // its steps stand where they ended
		return refuse(CodeBegun, "run %s is that of a workflow, and its steps have begun: to run a workflow again from where it failed is not built yet; trigger the job instead", r.ID)
	case (r.State == run.Unknown || r.State == run.Succeeded) && !how.force:
		return refuse(CodeNeedsForce, "run %s is %s, and its effect may have happened: retry it with force to run it again", r.ID, r.State)
	case !r.Discarded.IsZero() && how.spare:
		return refuse(CodeRunDiscarded, "run %s was discarded: retry it by its ID to run it again", r.ID)
	}
	return nil
}

// renewPayload keeps the payload of a run for as long as the run may need it from now on. One that is gone is left to the
// attempt, which fails for good and says so.
func (s *Service) renewPayload(ctx context.Context, j job.Job, r run.Run, now int64) (run.Ref, error) {
	if r.Payload.Blob == "" {
		return r.Payload, nil
	}
	data, err := s.Blobs.Get(ctx, r.Tenant, r.Payload.Blob)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return r.Payload, nil
	}
	if err != nil {
		return run.Ref{}, fmt.Errorf("read the payload: %w", err)
	}
	expires := time.UnixMilli(now).Add(payloadKept(j.Def))
	key, err := s.Blobs.Put(ctx, blob.Ref{Tenant: r.Tenant, Kind: blob.Payload, ID: r.ID.String(), Expires: expires}, data)
	if err != nil {
		return run.Ref{}, fmt.Errorf("keep the payload: %w", err)
	}
	r.Payload.Blob = key
	return r.Payload, nil
}

// errStands says that a run stands already as it was to be changed.
var errStands = errors.New("nothing to change")

// change writes a change of a run with what belongs to it, over whatever happens meanwhile.
func (s *Service) change(ctx context.Context, tenant string, id run.ID, decide func(run.Run, int64) (run.Run, []store.Op, error)) (run.Run, error) {
	for range maxRounds {
		r, err := s.Run(ctx, tenant, id)
		if err != nil {
			return run.Run{}, err
		}
		now, err := s.Dispatch.Clock() // behind the run: the store's answer may tell that this clock was stepped
		if err != nil {
			return run.Run{}, skewed(err)
		}
		next, ops, err := decide(r, now)
		if errors.Is(err, errStands) {
			return r, nil
		}
		if err != nil {
			return run.Run{}, err
		}
		op, err := next.Item(s.NewID())
		if err != nil {
			return run.Run{}, err
		}
		versions, err := s.Dispatch.Write(ctx, append([]store.Op{op}, ops...)...)
		if store.AsConflict(err) != nil && !errors.Is(err, store.ErrUnknown) {
			continue
		}
		if err != nil {
			return run.Run{}, fmt.Errorf("write run %s: %w", id, err)
		}
		next.Version = versions[0]
		if !r.State.Ended() {
			s.Dispatch.CountEnd(next)
		}
		if next.Cancel {
			s.Dispatch.Cancelled(tenant, id)
		}
		return next, nil
	}
	return run.Run{}, &Refusal{Code: CodeBusy, Message: "run " + id.String() + " is being changed by many at once; try again", RetryAfter: time.Second}
}

// ResultWithin gives what a run's target answered, of at most so many bytes. Of a larger one it gives how large it is, and no data.
func (s *Service) ResultWithin(ctx context.Context, r run.Run, most int) (data []byte, size int64, err error) {
	if r.Result.Blob != "" {
		return s.Blobs.GetWithin(ctx, r.Tenant, r.Result.Blob, most)
	}
	return r.Result.Inline, int64(len(r.Result.Inline)), nil // which is small
}
