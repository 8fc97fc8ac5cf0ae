package run

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// This file is the state graph: pure decisions from a run as read and what happened, to the run as it is to be written
// under the version read. Whoever writes first wins; the others read again and decide anew.

// Claim is a tick's, an edit's or a request's wish to queue a run.
type Claim struct {
	Generation int64
	Trigger    Trigger
	Epoch      uint64
	Now        int64
	Run        Run       // what a run on demand was created with; zero for a fire
	NotBefore  int64     // of a missed fire: its place
	Times      job.Times // how long after its time it may start, and is to have ended
	Reason     string    // of a missed fire
}

// ClaimVerdict is what stood where a claim wanted to go.
type ClaimVerdict uint8

// The verdicts.
const (
	Claimed  ClaimVerdict = iota + 1 // write the run, then send it
	Standing                         // the same claim stands and has not started: send it again
	Taken                            // another fate stands: nothing to do
	Placed                           // write the run, then send it: the same claim stands, and its place has lapsed
)

// Claim decides over what stands at the run's key. A run is queued where there is nothing, or a fence of this generation or
// lower, or a queued claim of a lower generation, or a fire that a lower one has dropped; on demand also where it is scheduled,
// under a mark no higher, since such runs bind to the definition at claim. A higher mark or claim means that an edit has ended
// the generation before this nominal time. A run that has had an attempt keeps its definition, though it may be queued again.
func (r Run) Claim(c Claim) (Run, ClaimVerdict) {
	switch {
	case r.Version == 0, (r.State == Fenced || r.State == Scheduled) && r.Generation <= c.Generation:
	case r.State == Queued && r.Generation < c.Generation && r.Attempt == 0:
	case r.State == Queued && r.Generation == c.Generation:
		return r, Standing
	case r.droppedBefore(c.Generation):
	default:
		return r, Taken
	}
	next := r
	if r.Version == 0 || r.State == Fenced || r.State == Skipped {
		next = c.Run
		next.ID, next.Tenant, next.Version = r.ID, r.Tenant, r.Version
		next.Trigger = c.Trigger
		if next.Created == 0 {
			next.Created = c.Now
		}
	}
	next.State, next.Generation, next.Epoch, next.Expires = Queued, c.Generation, c.Epoch, 0
	next.Priority = c.Run.Priority
	if !r.ID.OnDemand() {
		next.NextAt, next.Reason = c.NotBefore, c.Reason
	}
	timed := r.Timed(c.Times) // as what stood, not as what it becomes: that has a reason of the claim
	next.StartBy, next.EndBy = timed.StartBy, timed.EndBy
	next.Wait, next.Placed, next.GateKey = next.Wait.ranked(), false, next.keptKey()
	next.Released, next.Releasing, next.NamedGates, next.NamedKeys = 0, Releasing{}, false, nil
	return next, Claimed
}

// Timed gives a run the times that a claim gives it, for a job that says so: those from its own time. Whoever was opened again keeps those from then on.
func (r Run) Timed(t job.Times) Run {
	if r.Spared() {
		return r
	}
	return r.Lasting(r.ID.Nominal, t)
}

// Expired tells whether the run has not started, and may not any more: its time to start is over, and was so before its deadline and its time in line.
func (r Run) Expired(now int64) bool { return r.startsFirst() && now > r.StartBy }

// startsFirst tells whether the run has a time to start, which is over before its deadline, and before its time in line.
func (r Run) startsFirst() bool {
	return r.State == Queued && r.StartBy != 0 && (r.EndBy == 0 || r.StartBy < r.EndBy) && (r.Wait.Until == 0 || r.StartBy <= r.Wait.Until)
}

// PastDeadline tells whether the run has not ended, and its deadline is over. One that is being stopped already has nothing more to be told.
func (r Run) PastDeadline(now int64) bool {
	return r.EndBy != 0 && now >= r.EndBy && !r.State.Ended() && !(r.State == Running && r.Cancel)
}

// TooLate tells whether the run waits for an attempt that it is not to have any more.
func (r Run) TooLate(now int64) bool {
	return r.Outwaited(now) || r.Expired(now) || (r.State == Queued || r.State == Retrying) && r.PastDeadline(now)
}

// StopAtDeadline ends a run that is PastDeadline, or asks the attempt that is under way to stop, or the steps of a workflow.
func (r Run) StopAtDeadline(now int64, retention time.Duration) Run {
	reason := r.deadlineReason()
	r, _ = r.AskCancel(now, reason, retention)
	r.Why = Why{Code: WhyDeadline}
	return r
}

func (r Run) deadlineReason() string {
	return "deadline: it had not ended by " + time.UnixMilli(r.EndBy).UTC().Format(time.RFC3339)
}

// Expire ends a run that is TooLate, and has not Outwaited its time in line.
func (r Run) Expire(now int64, retention time.Duration) Run {
	if !r.startsFirst() {
		return r.StopAtDeadline(now, retention)
	}
	reason := "it had not started by " + time.UnixMilli(r.StartBy).UTC().Format(time.RFC3339)
	r.Why = Why{Code: WhyExpired}
	return r.end(Skipped, now, reason, Limits{Retention: retention})
}

// Lapsed tells of a run that makes up for a missed fire whether its place, Unix ms, is over and it has not started. One that has joined a line since its
// place did come at its time, and starts in its turn.
func (r Run) Lapsed(now int64) bool {
	return r.State == Queued && r.Attempt == 0 && r.Reason == CaughtUp && r.NextAt != 0 && r.NextAt < now && r.Wait.Rank < r.NextAt
}

// PlacedAnew gives a run whose place has lapsed another one, Unix ms. Where its job bounds how many runs are in progress, that is an opening: a worker may have
// taken a place at the gate for it and died, or may be about to, by a message of before.
func (r Run) PlacedAnew(place int64, bounded bool) Run {
	r.NextAt = place
	if bounded {
		r.Opening = r.Version + 1
	}
	return r
}

// droppedBefore tells of a fire that a lower generation has dropped it as missed. Where it lies in this one's time, the clock that dropped it
// was ahead of the edit, and the decision is none of this generation's.
func (r Run) droppedBefore(generation int64) bool {
	return r.Missed() && r.Generation < generation && !r.ID.OnDemand() && r.Attempt == 0
}

// FenceOff decides whether an edit marks what stands at a fire of an older generation: where there is nothing, a lower fence, a queued claim
// of a lower generation, or a fire that one has dropped. What has started is left alone. expires is when the mark may be cleaned up.
func (r Run) FenceOff(generation, expires int64) (Run, bool) {
	open := r.Version == 0 || (r.State == Fenced || r.State == Queued && r.Attempt == 0) && r.Generation < generation || r.droppedBefore(generation)
	if !open || r.ID.OnDemand() {
		return r, false
	}
	return Run{ID: r.ID, Tenant: r.Tenant, Version: r.Version, State: Fenced, Generation: generation, Expires: expires}, true
}

// Unbind puts an on-demand run that has not started back to Scheduled, under the mark of an edit: no claim of a generation
// below it passes any more, and the run binds when it is claimed again.
func (r Run) Unbind(generation int64) (Run, bool) {
	open := r.State == Scheduled || r.State == Queued && r.Attempt == 0
	if !open || !r.ID.OnDemand() || r.Generation >= generation {
		return r, false
	}
	r.State, r.Generation, r.Epoch = Scheduled, generation, 0
	r.Wait, r.Placed, r.GateKey = r.Wait.ranked(), false, r.keptKey()
	r.Released, r.Releasing, r.NamedGates, r.NamedKeys = 0, Releasing{}, false, nil
	if !r.Spared() { // its next claim gives it another
		r.EndBy = 0
	}
	return r, true
}

// Hold is Unbind for a job that is paused: a claim of the paused generation itself gives way too. A run that ignores the pause is not held.
func (r Run) Hold(generation int64) (Run, bool) {
	if r.State == Scheduled || r.IgnorePause {
		return r, false
	}
	return r.Unbind(max(generation, r.Generation+1))
}

// Limits is what a run's definition allows it.
type Limits struct {
	AtMostOnce  bool
	MaxFailures int           // failed attempts until the run is dead
	MaxCrashes  int           // killed workers until the run is dead
	Retention   time.Duration // of the ended run
}

// Start begins an attempt under a lease: Version+1 is the fence, as the put will give it. The run must be Queued or
// Retrying; the caller has waited for its time.
func (r Run) Start(worker string, now int64, lease time.Duration) Run {
	r.State, r.Worker, r.Started, r.NextAt, r.StartBy = Running, worker, now, 0, 0
	r.Wait = Wait{}
	r.Lease = now + lease.Milliseconds()
	r.Attempt++
	r.Fence = r.Version + 1
	attempts := make([]Attempt, 0, maxAttempts)
	attempts = append(attempts, r.Attempts[max(0, len(r.Attempts)-maxAttempts+1):]...)
	for i := range attempts {
		attempts[i].Error = OlderError(attempts[i].Error)
	}
	r.Attempts = append(attempts, Attempt{Number: r.Attempt, Started: now})
	return r
}

// Extend moves the lease of the running attempt.
func (r Run) Extend(now int64, lease time.Duration) Run {
	r.Lease = now + lease.Milliseconds()
	return r
}

// Touched tells that somebody else has written the running attempt's record since before, and has left it as it was: its log is read elsewhere. A
// touch is a write like any other, under the version that was read; whoever holds the lease finds it in the way of its next write, and decides
// again. No version before knows a touch, and each withstands one.
func (r Run) Touched(before Run) bool {
	return r.Version > before.Version && r.Holds(before.Fence) && r.Lease == before.Lease && r.Cancel == before.Cancel
}

// MayTouch tells whether the record of the attempt that started under fence may be touched: not while it stands as the attempt's start wrote it. Until a
// later write shows that the start is known to have been done, its writer may make it again, and is to find it standing.
func (r Run) MayTouch(fence uint64) bool { return r.Holds(fence) && r.Version > fence }

// Holds tells whether the attempt that started under fence still holds the run: the question of every late worker.
func (r Run) Holds(fence uint64) bool { return r.State == Running && r.Fence == fence }

// Closed is how the attempt that started under fence has ended; false while it is under way, and where a later one has started.
// It tells a writer whose answer was lost that its write stands.
func (r Run) Closed(fence uint64) (Outcome, bool) {
	if n := len(r.Attempts); r.Fence == fence && r.State != Running && n > 0 {
		return r.Attempts[n-1].Outcome, true
	}
	return 0, false
}

// HeldBy names the worker that holds the run, "" for none. Worker has behind a slash which start of that worker it is, where the worker is in another process.
func (r Run) HeldBy() string {
	name, _, _ := strings.Cut(r.Worker, "/")
	return name
}

// Logged has the run name the log of the attempt that ends. Of one that wrote nothing, key "", the log of an attempt before stays: a log says
// itself which attempt wrote it, and where that of the attempt before lies.
func (r Run) Logged(key string) Run {
	if key != "" {
		r.Log = key
	}
	return r
}

// OlderError is as much of an attempt's error as is kept when it is not the newest any more.
func OlderError(text string) string { return cut(text, olderError) }

// Succeed ends the run with its result.
func (r Run) Succeed(now int64, result Ref, log string, l Limits) Run {
	r.Result = result
	r.Why = Why{} // it was asked to give way, and was done before
	return r.Logged(log).closeAttempt(now, OutcomeSucceeded, "").end(Succeeded, now, "", l)
}

// Failure is a failed attempt.
type Failure struct {
	Error     string
	Permanent bool  // do not try again
	Unsure    bool  // the target may have done its work all the same
	NextAt    int64 // when to try again, should the budget allow it; drawn by the caller
	Log       string
}

// Fail counts a failed attempt: tried again at NextAt, dead when the budget is spent, failed when it is permanent. Where a
// cancel was asked for, or its deadline is over, the run ends cancelled.
func (r Run) Fail(now int64, f Failure, l Limits) Run {
	r = r.Logged(f.Log)
	r.Failures++
	r = r.closeAttempt(now, OutcomeFailed, f.Error)
	switch {
	case r.Cancel:
		return r.stopped(now, f.Unsure, l)
	case r.PastDeadline(now): // what it ran into may be no more than that
		r.Why, r.Reason = Why{Code: WhyDeadline}, r.deadlineReason()
		return r.stopped(now, f.Unsure, l)
	case l.AtMostOnce && f.Unsure:
		return r.end(Unknown, now, "at most once: the effect may have happened", l)
	case f.Permanent:
		return r.end(Failed, now, "permanent failure", l)
	case l.AtMostOnce:
		return r.end(Failed, now, "at most once: not tried again", l)
	case r.Failures >= l.MaxFailures:
		return r.end(Dead, now, "attempts spent", l)
	}
	r.State, r.NextAt, r.Worker, r.Lease = Retrying, f.NextAt, "", 0
	return r
}

// HandBack returns a run whose attempt has come to nothing by no fault of it, since its worker is being stopped, or could not begin the call: it
// is queued again, and the attempt counts neither as a failure nor as a crash. At most once only where its target was not called. Where a cancel was asked for, no
// attempt follows. why is for people, "" where the worker is being stopped.
func (r Run) HandBack(now int64, why, log string, l Limits) Run {
	if why == "" {
		why = "worker stopped"
	}
	r = r.Logged(log).closeAttempt(now, OutcomeHandedBack, why)
	if r.Cancel {
		return r.end(Cancelled, now, r.Reason, l)
	}
	r.State, r.Worker, r.Lease = Queued, "", 0
	return r
}

// Crash ends an attempt whose lease ran out or whose worker is known to be dead. The job's own failures are not touched.
func (r Run) Crash(now int64, cause string, l Limits) Run {
	r.Crashes++
	r = r.closeAttempt(now, OutcomeCrashed, cause)
	switch {
	case l.AtMostOnce:
		return r.end(Unknown, now, cause, l)
	case r.Cancel:
		return r.end(Cancelled, now, r.Reason, l)
	case r.Crashes >= l.MaxCrashes:
		return r.end(Dead, now, "killed its worker: "+cause, l)
	}
	r.State, r.Worker, r.Lease = Queued, "", 0
	return r
}

// GiveUp ends a run that waits for a worker, where every message of it was given up: none survives being handed it.
func (r Run) GiveUp(now int64, cause string, l Limits) Run { return r.end(Dead, now, cause, l) }

// AskCancel cancels at once what has not started; for a running attempt it leaves word that its worker finds at the next
// heartbeat. False where the run has ended.
func (r Run) AskCancel(now int64, reason string, retention time.Duration) (Run, bool) {
	switch r.State {
	case Scheduled, Queued, Retrying:
		return r.end(Cancelled, now, reason, Limits{Retention: retention}), true
	case Running:
		switch { // why it ends may be known by then
		case r.Cancel && r.Why.Code == WhyDeadline:
		case r.Overdue:
			r.Why = Why{}
		default:
			r.Reason, r.Why = cut(reason, maxReasonSize), Why{}
		}
		r.Cancel = true
		return r, true
	}
	return r, false
}

// Cancelled ends an attempt that was stopped because a cancel was asked for.
func (r Run) Cancelled(now int64, log string, l Limits) Run {
	return r.Logged(log).closeAttempt(now, OutcomeCancelled, "").stopped(now, true, l)
}

// stopped ends a run that was cancelled or is past its deadline. At most once its attempt may have had its effect, where that is unsure: somebody who cancels
// knows that, and a deadline does not.
func (r Run) stopped(now int64, unsure bool, l Limits) Run {
	state := Cancelled
	if unsure && l.AtMostOnce && r.Why.Code == WhyDeadline {
		state = Unknown
	}
	return r.end(state, now, r.Reason, l)
}

// Lasting gives a run that is queued without a claim, or was just opened again, at now, its times from then on or from its own time.
func (r Run) Lasting(now int64, t job.Times) Run {
	from := max(now, r.ID.Nominal)
	by := func(lasts int64) int64 {
		if lasts == 0 {
			return 0
		}
		return from + lasts
	}
	r.StartBy, r.EndBy = by(t.Start), by(t.End)
	return r
}

// Reopen queues an ended run again, on request: a new attempt budget, under the job's newest generation.
func (r Run) Reopen(generation int64, epoch uint64, reason string) Run {
	if r.Fired == 0 && r.Trigger == BySchedule && r.Generation != generation {
		r.Fired = r.Generation
	}
	r.State, r.Generation, r.Epoch = Queued, generation, epoch
	r.Failures, r.Crashes, r.Cancel = 0, 0, false
	r.Ended, r.Expires, r.NextAt = 0, 0, 0
	r.Through, r.Upto, r.Count = 0, 0, 0
	r.Result, r.Reason = Ref{}, cut(reason, maxReasonSize)
	r.Why, r.Wait, r.Placed, r.GateKey, r.Keeps, r.Discarded = Why{}, Wait{}, false, "", false, Discarded{}
	r.Released, r.Releasing, r.NamedGates, r.NamedKeys = 0, Releasing{}, false, nil
	r.Stopped, r.Pauses = nil, false
	return r
}

// Discard settles a dead letter: the run stays ended as it is. False where it is none, or was discarded before, which stays as it was said first.
func (r Run) Discard(now int64, by, note string) (Run, bool) {
	if !r.State.DeadLetter() || !r.Discarded.IsZero() {
		return r, false
	}
	r.Discarded = Discarded{At: now, By: cut(by, MaxBy), Note: note}
	return r, true
}

// Reopened tells a run that was just opened again, at now, from what it was before, where its job bounds how many runs are in progress: a place
// that it had in an earlier opening is not its own any more, and in a line it comes behind those that were due before now.
func (r Run) Reopened(now int64) Run {
	r.Opening = r.Version + 1
	r.Wait.Rank = now
	return r
}

// Join has a run that is due wait in the line of a gate.
func (r Run) Join(gate string, rank, now int64) Run {
	r.Wait = Wait{Gate: gate, Since: now, Rank: rank}
	return r
}

// LetIn ends a wait in line: the run holds its place, and may start.
func (r Run) LetIn(now int64) Run {
	r.Wait.Gate, r.Wait.LetIn, r.Placed = "", now, true
	r.Wait.Ahead, r.Wait.Units, r.Wait.Key, r.Wait.Asks, r.Wait.Until = 0, 0, "", "", 0
	return r
}

// Unjoin ends a wait in a line that has no place of the run any more: it has to enter anew, by its rank.
func (r Run) Unjoin() Run {
	r.Wait, r.GateKey, r.NamedKeys = r.Wait.ranked(), r.keptKey(), nil
	return r
}

// JoinNamed is Join at a named gate, or where that has one for each value of a key, at that of this one, where the run wants so many units and stands so far ahead of its rank, in ms. It keeps the places that it has been given at
// narrower gates: placed says that there are any.
func (r Run) JoinNamed(gate, key string, rank, ahead int64, units int, placed bool, now int64) Run {
	r = r.Join(gate, rank, now)
	r.Wait.Key = key
	r.Placed, r.NamedGates = r.Placed || placed, true
	r.Wait.Ahead = ahead
	if units > 1 {
		r.Wait.Units = units
	}
	return r
}

// ToFront has a run that waits in line stand so far ahead of its rank, in ms, since somebody lets it go to the front. It may wait there for ever: whoever let it go wants it to run.
func (r Run) ToFront(ahead, now int64, by, reason string) Run {
	r.Wait.Ahead, r.Wait.Until, r.Released, r.Releasing = ahead, 0, now, Releasing{By: cut(by, MaxBy), Reason: reason}
	return r
}

// Restored ends a run in a copy of the past: whoever made the copy cannot know how the run went on where it was copied from.
// False where it has ended.
func (r Run) Restored(now int64, reason string, retention time.Duration) (Run, bool) {
	if r.State == Fenced || r.State.Ended() {
		return r, false
	}
	if r.State == Running && !r.Heads() {
		r = r.closeAttempt(now, OutcomeCrashed, reason)
	}
	return r.end(Unknown, now, reason, Limits{Retention: retention}), true
}

// Stretch is missed fires that the catch-up policy drops: Count of them from the run's own up to Through.
type Stretch struct {
	Generation int64
	Through    int64
	Upto       int64
	Count      int
	Reason     string
}

// Skip writes a decision over a stretch of missed fires at the first of them, where a claim could be written. Where anything
// else stands, that is what all adopt.
func (r Run) Skip(s Stretch, now int64, retention time.Duration) (Run, ClaimVerdict) {
	next, verdict := r.Claim(Claim{Generation: s.Generation, Trigger: BySchedule, Now: now})
	if verdict != Claimed {
		return r, Taken
	}
	next.Through, next.Upto, next.Count = s.Through, s.Upto, s.Count
	return next.end(Skipped, now, s.Reason, Limits{Retention: retention}), Claimed
}

// Overlapping ends a run that is due, or waits in line, and was one too many by its job's policy; waited tells whether any that why names did. Only what has had no attempt, and was not opened by hand, may be
// ended so: see Spared.
func (r Run) Overlapping(why Why, waited bool, now int64, retention time.Duration) Run {
	r.Why = why
	reason := "other runs of the job were in progress"
	switch {
	case why.Code == WhyClosed:
		reason = "the gate was closed, and as many runs waited as may wait"
	case why.Code == WhyFull && !strings.HasPrefix(why.Gate, ownGate):
		reason = "as many runs waited at the gate as may wait"
	case why.Code == WhyFull:
		reason = "as many runs of the job waited as may wait"
	case why.Policy == string(job.OverlapQueueOne):
		reason = "another run of the job waited already"
	case why.Policy == string(job.OverlapQueueLatest):
		reason = "a later run of the job waits in its place"
	case job.OverlapPolicy(why.Policy).Displaces():
		reason = laterCame
	case waited && r.Overlap != 0: // others keep the text that they had: many records hold it
		reason += " or in line"
	}
	return r.end(Skipped, now, reason, Limits{Retention: retention})
}

// Spared tells whether no gate skips the run: it has had an attempt, or somebody asked for it to be opened again, which left a reason. That of a
// missed fire is another one, whether it is made up for or was dropped.
func (r Run) Spared() bool {
	return r.Attempt > 0 || r.Reason != "" && r.Reason != CaughtUp && !r.Missed()
}

// laterCame is the reason of a run that has given way to a later one of its job.
const laterCame = "a later run of the job takes its place"

// ByHand tells whether somebody asked for the run to be opened again, where its job bounds how many are in progress: whatever the policy, it gives way to nobody.
func (r Run) ByHand() bool { return r.Opening != 0 && r.Reason != CaughtUp }

// GiveWay asks the run to stop for a later one, which why names: what has not started ends at once, and a running attempt is the last one. False where the run has ended,
// or was asked to stop before.
func (r Run) GiveWay(why Why, now int64, retention time.Duration) (Run, bool) {
	if r.Cancel && r.State == Running {
		return r, false
	}
	next, ok := r.AskCancel(now, laterCame, retention)
	if ok {
		next.Why = why
	}
	return next, ok
}

// Replaced ends the run at once for a later one, which why names: nothing that its worker writes after that counts.
func (r Run) Replaced(why Why, now int64, l Limits) Run {
	state := Cancelled
	if r.State == Running && !r.Heads() {
		if l.AtMostOnce {
			state = Unknown
		}
		r = r.closeAttempt(now, OutcomeCancelled, laterCame)
	}
	r.Why = why
	return r.end(state, now, laterCame, l)
}

// GaveWay tells whether the run has ended at once for a later one of its job.
func (r Run) GaveWay() bool {
	return (r.State == Cancelled || r.State == Unknown) && r.Why.Policy == string(job.OverlapReplace)
}

// Unkeyed ends a run that is due whose key cannot be told, for good: reason says why.
func (r Run) Unkeyed(now int64, reason string, retention time.Duration) Run {
	return r.end(Failed, now, reason, Limits{Retention: retention})
}

// Withdraw ends a fire whose job is deleted, as a claim of c that was cancelled at once: where a claim could be written, and where one stands.
// Nobody claims it after that.
func (r Run) Withdraw(c Claim, reason string, retention time.Duration) (Run, ClaimVerdict) {
	next, verdict := r.Claim(c)
	if verdict == Taken {
		return r, Taken
	}
	return next.end(Cancelled, c.Now, reason, Limits{Retention: retention}), Claimed
}

func (r Run) end(state State, now int64, reason string, l Limits) Run {
	r.State, r.Ended, r.Reason = state, now, cut(reason, maxReasonSize)
	r.Worker, r.Lease, r.NextAt, r.StartBy, r.EndBy, r.Wait = "", 0, 0, 0, 0, Wait{}
	// The timer of a run that was cancelled ahead of its time is still to come, and would make it anew of nothing.
	expires := max(now, r.ID.Nominal) + l.Retention.Milliseconds()
	if r.ID.IsStep() { // it is kept as long as its run, whose end may be far
		expires = max(expires, r.Expires)
	}
	r.Expires = expires
	return r
}

func (r Run) closeAttempt(now int64, outcome Outcome, message string) Run {
	if n := len(r.Attempts); n > 0 {
		attempts := append([]Attempt(nil), r.Attempts...)
		last := &attempts[n-1]
		last.Ended, last.Outcome, last.Error = now, outcome, cut(message, newestError)
		r.Attempts = attempts
	}
	return r
}

// cutMark ends a text of which only the beginning was kept.
const cutMark = "…"

// cut shortens a text to at most size bytes, never inside a character.
func cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	end := size - len(cutMark)
	if end <= 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cutMark
}
