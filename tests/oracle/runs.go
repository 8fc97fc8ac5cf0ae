package oracle

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// runState is what is known of a run.
type runState struct {
	job     *jobState
	head    *runState  // of a step: the run that it is of
	flow    *flowState // of a workflow's run, once it was opened
	shard   int        // of its checks
	run     run.Run    // as last written; Version 0 where it does not stand
	left    *run.Run   // as it was when it had been kept for long enough
	past    []sight    // as it stood, the oldest first
	starts  []begun
	written int64  // of a skipped one, Unix ms
	fired   int64  // the generation that it was claimed for; one that is opened again runs under the newest
	period  int    // grows with each time that it is opened again: what a start belongs to
	called  uint64 // the highest fence that its target was called with

	given      []byte // of a step, what it was handed that expressions say
	givenSince int    // the event that opened its run then

	places []place
	named  map[gate.ID][]place // the same at gates that its job names
	waits  []place             // in which it waited in line
	held   []place             // in which it held up the line of a strict job
	still  standstill
	byHand bool   // it was opened by hand, and no claim has come over it since
	wake   int64  // of the furthest check or request that was armed for it
	batch  *armed // the timer that it shares with others, where that lies in another shard
	late   bool   // that one was armed behind the sweeps that should have come upon it
	ahead  bool   // a clock made it that was further ahead than clocks may be, so it may be due by that

	cancels  int       // how often its cancel was asked for
	consents []*asking // that it be opened again
	used     []int     // the requests by which it was
	byKey    string    // the idempotency key of the request whose answer named it
	byAsk    int       // its number, where it had none; 0 while no answer named it
}

// sight is a run as it stood from an event on.
type sight struct {
	since      int
	state      run.State // nothing: it was not there
	cancel     bool
	generation int64
	attempt    int
	fence      uint64
	ended      int64
	discarded  bool
}

// begun is an attempt that was started.
type begun struct {
	fence    uint64
	attempt  int
	period   int
	due      int64
	edition  *edition
	payload  []byte // that its target is to be given; nil where it lies in a blob
	orphan   bool   // begun after the answer to a delete of its job
	called   bool
	returned bool
	ok       bool
	result   []byte
}

func (rs *runState) id() string { return rs.run.ID.String() }

func (rs *runState) stands() bool { return rs.run.Version != 0 && rs.run.State != run.Fenced }

func (j *Judge) storedRun(at time.Time, key store.Key, rest string, before, after store.Item) {
	rs := j.runs[key]
	if rs == nil {
		tenant, rest, _ := strings.Cut(rest, "#")
		jobName, _, _ := strings.Cut(rest, "#")
		id, err := run.IDFromSort(jobName, key.Sort)
		if err != nil {
			j.violate("P1", "%s: %v", key, err)
			return
		}
		rs = j.newRun(key, tenant, id)
	}
	j.changedRun(at, key, rs, before, after)
}

// changedRun is told of a change of a run, or of a step of one.
func (j *Judge) changedRun(at time.Time, key store.Key, rs *runState, before, after store.Item) {
	b := rs.run
	j.follow(key, b.Version, before)
	if !after.Exists() {
		j.goneRun(at, rs)
		return
	}
	a, _, err := run.FromItem(rs.job.tenant, b.ID, after)
	if err != nil {
		j.violate("P1", "%s: %v", key, err)
		rs.run.Version = after.Version
		return
	}
	if key != a.ID.Key(a.Tenant) {
		j.violate("P12", "run %s of %s is kept at %s", a.ID, a.Tenant, key)
	}
	if promise, wrong := along(&b, &a); wrong != "" {
		j.violate(promise, "run %s of %s went from %s to %s in version %d: %s", a.ID, a.Tenant, stateName(b.Stage()), stateName(a.Stage()), a.Version, wrong)
	}
	rs.run = a
	rs.past = append(rs.past, sight{since: j.event, state: a.Stage(), cancel: a.Cancel, generation: a.Generation, attempt: a.Attempt, fence: a.Fence, ended: a.Ended, discarded: !a.Discarded.IsZero()})
	if b.Version == 0 {
		rs.left = nil // it may come again: a callback does, after an outage that is longer than it was kept
		rs.ahead = a.Created > ms(at)+j.cfg.Clocks.Milliseconds()
	}
	if a.Cancel && !b.Cancel && !j.mayStop(rs) {
		j.violate("P2", "run %s of %s is to be cancelled, and nobody asked for it", a.ID, a.Tenant)
	}
	if atDeadline(&a) && !atDeadline(&b) {
		j.overdue(at, rs, &b)
	}
	if a.State != run.Skipped && displaces(&a) && !displaces(&b) {
		j.gaveWay(at, rs, &b)
	}
	rs.holdsUp(at)
	if !sameStay(&b, &a) && !rs.staysKept(&b) {
		rs.leaves(ms(at))
	}
	rs.leavesGates(&b, ms(at))
	j.waitsAtItsOwn(rs)
	j.joinedNamed(rs, &b)
	rs.lines(at, &b)
	j.comes(rs)
	switch {
	case rs.head != nil:
		j.stepped(at, rs, &b)
	case b.Heads() || a.Heads():
		j.branched(at, rs, &b)
	case a.State == run.Running && b.State != run.Running:
		j.started(at, rs, &b)
	case a.State == run.Skipped && !a.Missed():
		j.overlapped(at, rs, &b, len(after.Value))
	case b.State == run.Skipped && a.State == run.Fenced:
	case b.State.Ended() && !a.State.Ended() && !b.Missed():
		j.reopened(rs, &b)
	case a.State == run.Queued && b.State == run.Queued && a.Generation == b.Generation: // it joins a line, or leaves it
	case a.State == run.Queued && b.State == run.Running, a.State == run.Retrying:
		j.again(rs, &b)
	case a.State == run.Queued, a.State == run.Scheduled, a.State == run.Skipped:
		j.bounded(rs)
		rs.written = ms(at)
		j.claimed(rs, &b)
	case a.Discarded != b.Discarded:
		if !j.mayDiscard(rs) {
			j.violate("P7", "run %s of %s was discarded, and nobody asked for it", a.ID, a.Tenant)
		}
	case a.State.Ended() && !b.State.Ended(), b.State == run.Skipped && a.State == run.Cancelled:
		if b.State == run.Queued && a.State == run.Failed {
			j.keyless(rs)
		}
		j.ended(rs, &b)
	}
}

// lastWake is when the last of its timers wakes, Unix ms.
func (rs *runState) lastWake() int64 {
	if rs.batch != nil {
		return max(rs.wake, rs.batch.Wake)
	}
	return rs.wake
}

func (j *Judge) newRun(key store.Key, tenant string, id run.ID) *runState {
	js := j.job(tenant, id.Job)
	if len(js.editions) == 0 && !j.calling(tenant, id) {
		j.violate("P12", "run %s of %s is of no job of that tenant", id, tenant)
	}
	rs := &runState{job: js, shard: j.layout.ShardOf(timer.NewCheck(tenant, id, 0).Bucket()), run: run.Run{ID: id, Tenant: tenant}}
	j.runs[key] = rs
	if id.IsStep() {
		rs.head = j.headOf(tenant, id)
	} else {
		js.runs = append(js.runs, rs)
	}
	return rs
}

// goneRun: what is accepted stays until it has ended and been kept as long as its job says.
func (j *Judge) goneRun(at time.Time, rs *runState) {
	r := rs.run
	if !r.State.Ended() && r.State != run.Fenced || r.Expires == 0 || ms(at) < r.Expires-j.cfg.Clocks.Milliseconds() {
		j.violate("P1", "run %s of %s is gone as it was %s, to be kept until %s", r.ID, r.Tenant, r.State, instant(r.Expires))
	}
	rs.leaves(ms(at))
	rs.goesOn(ms(at))
	for name := range rs.named {
		rs.leavesNamed(name, ms(at))
	}
	rs.lines(at, &r)
	rs.left, rs.run = &r, run.Run{ID: r.ID, Tenant: r.Tenant}
	rs.past = append(rs.past, sight{since: j.event})
}

// claimed: a claim is of a generation that has a say at the fire, and lies where an edit would look for it.
func (j *Judge) claimed(rs *runState, b *run.Run) {
	a := &rs.run
	if a.ID.OnDemand() {
		if b.Version == 0 {
			j.requested(rs)
		}
		return // it binds again before it is sent: what counts is what it starts under
	}
	rs.fired, rs.byHand = a.Generation, false
	e := rs.job.byGeneration[a.Generation]
	if e == nil || e.Schedule == nil {
		j.violate("P8", "run %s of %s was claimed for generation %d, which has no fires", a.ID, a.Tenant, a.Generation)
		return
	}
	if next, ok := e.Schedule.Next(time.UnixMilli(a.ID.Nominal - 1)); !ok || next.UnixMilli() != a.ID.Nominal {
		j.violate("P2", "run %s of %s was claimed for generation %d, which does not fire then", a.ID, a.Tenant, a.Generation)
	}
	if a.ID.Nominal <= e.from {
		j.violate("P8", "run %s of %s was claimed for generation %d, which begins at %s", a.ID, a.Tenant, a.Generation, instant(e.from))
	}
	if s := j.shards[j.shardOf(rs.job)]; s != nil && a.ID.Nominal > s.shard.Horizon {
		j.violate("P8", "run %s of %s was claimed beyond the horizon of %s", a.ID, a.Tenant, instant(s.shard.Horizon))
	}
	j.replaced(rs, "was claimed")
	switch {
	case a.State == run.Skipped:
		j.skipped(rs, e)
		j.calls(rs, e)
		j.counts(rs, e)
	case b.Version == 0:
		j.caughtUp(rs, e)
	}
	if a.State == run.Queued {
		j.paced(rs, e, b)
	}
}

// replaced holds a run that has not started against the edits that were answered (P8).
func (j *Judge) replaced(rs *runState, what string) {
	a := &rs.run
	for i := len(rs.job.answered) - 1; i >= 0 && rs.job.answered[i].generation > a.Generation; i-- {
		if edit := rs.job.answered[i]; a.ID.Nominal > edit.at {
			j.violate("P8", "run %s of %s %s under generation %d, after the answer to the edit of %s that made generation %d", a.ID, a.Tenant, what,
				a.Generation, instant(edit.at), edit.generation)
			return
		}
	}
}

// started: not early (P3), not twice (P5), not under an ended definition (P8).
func (j *Judge) started(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	e := rs.edition(a.Generation)
	switch {
	case e == nil:
		j.violate("P8", "run %s of %s started under generation %d, which never was", a.ID, a.Tenant, a.Generation)
		return
	case e.Def.Target.Workflow != nil:
		j.violate("W8", "run %s of %s started as an attempt, and generation %d of its job is a workflow", a.ID, a.Tenant, a.Generation)
		return
	}
	due := rs.due(b)
	if a.Started < due {
		j.violate("P3", "attempt %d of run %s of %s started %d ms early, by its worker's clock", a.Attempt, a.ID, a.Tenant, due-a.Started)
	}
	j.early(at, due, rs, a.Attempt, "started")
	if rs.head != nil {
		j.mayStart(rs)
	} else {
		if a.Attempt == 1 {
			j.replaced(rs, "started")
		}
		j.letIn(rs)
		j.inAtAll(rs)
	}
	if a.ID.OnDemand() && e.Def.Paused && !a.IgnorePause && !rs.byHand {
		j.violate("P8", "run %s of %s started under generation %d, by which its job is paused", a.ID, a.Tenant, a.Generation)
	}
	if e.Def.Guarantee == job.AtMostOnce {
		for _, s := range rs.starts {
			if s.period == rs.period && s.called {
				j.violate(rs.once(), "at-most-once run %s of %s started as attempt %d, after its target was called in attempt %d", a.ID, a.Tenant, a.Attempt, s.attempt)
			}
		}
	}
	rs.starts = append(rs.starts, begun{fence: a.Fence, attempt: a.Attempt, period: rs.period, due: due, edition: e, payload: rs.brought(e), orphan: rs.orphaned()})
}

func (j *Judge) early(at time.Time, due int64, rs *runState, attempt int, what string) {
	if by := due - j.cfg.Clocks.Milliseconds() - ms(at); by > 0 {
		j.violate("P3", "attempt %d of run %s of %s was %s %d ms early, beyond what clocks may be apart", attempt, rs.id(), rs.job.tenant, what, by)
	}
}

// again: a run goes on after an attempt only as its guarantee and its budget allow.
func (j *Judge) again(rs *runState, b *run.Run) {
	a := &rs.run
	e := rs.edition(a.Generation)
	if e == nil {
		return
	}
	outcome := run.OutcomeRunning
	if n := len(a.Attempts); n > 0 {
		outcome = a.Attempts[n-1].Outcome
	}
	switch {
	case e.Def.Guarantee == job.AtMostOnce && outcome != run.OutcomeHandedBack:
		j.violate(rs.once(), "at-most-once run %s of %s goes on as %s after an attempt that %s", a.ID, a.Tenant, a.State, outcome)
	case a.Failures >= e.Def.Retry.MaxAttempts:
		j.violate("P7", "run %s of %s is tried again after %d failures of %d", a.ID, a.Tenant, a.Failures, e.Def.Retry.MaxAttempts)
	case a.Crashes >= maxCrashes:
		j.violate("P7", "run %s of %s is tried again after it killed %d workers", a.ID, a.Tenant, a.Crashes)
	case a.State == run.Queued && b.Cancel:
		j.violate("P7", "run %s of %s is tried again, and was to be cancelled", a.ID, a.Tenant)
	}
}

// ended: an end has its reason.
func (j *Judge) ended(rs *runState, b *run.Run) {
	a := &rs.run
	e := rs.edition(a.Generation)
	if rs.head == nil { // nothing tells of the end of a step
		j.calls(rs, e)
		j.counts(rs, e)
	}
	switch a.State {
	case run.Succeeded:
		j.succeeded(rs)
	case run.Cancelled:
		if rs.head != nil {
			if !j.mayStop(rs) {
				j.violate("W2", "step %s of %s was cancelled as it was %s, and its run goes on: %s", a.ID, a.Tenant, b.State, a.Reason)
			}
			return
		}
		if (b.State != run.Running || !b.Cancel) && !displaces(a) && !atDeadline(a) && !j.mayCancel(rs) {
			j.violate("P2", "run %s of %s was cancelled as it was %s, and nobody asked for it: %s", a.ID, a.Tenant, b.State, a.Reason)
		}
		if !a.ID.OnDemand() && (b.Version == 0 || b.State == run.Fenced || b.State == run.Skipped) {
			j.withdrawn(rs, e)
		}
	case run.Dead:
		spent := e != nil && a.Failures > b.Failures && a.Failures >= e.Def.Retry.MaxAttempts && e.Def.Guarantee != job.AtMostOnce
		killed := a.Crashes > b.Crashes && a.Crashes >= maxCrashes
		if b.State == run.Running && !spent && !killed {
			j.violate("P2", "run %s of %s is dead after %d failures and %d crashes: %s", a.ID, a.Tenant, a.Failures, a.Crashes, a.Reason)
		}
	case run.Unknown:
		if e == nil || e.Def.Guarantee != job.AtMostOnce {
			j.violate("P2", "at-least-once run %s of %s is unknown: %s", a.ID, a.Tenant, a.Reason)
		}
	}
}

// withdrawn: what a delete ends before anything was claimed is a fire that would have run.
func (j *Judge) withdrawn(rs *runState, e *edition) {
	a := &rs.run
	rs.fired = a.Generation
	if e == nil || e.Schedule == nil {
		j.violate("P8", "run %s of %s was cancelled for generation %d, which has no fires", a.ID, a.Tenant, a.Generation)
		return
	}
	if next, ok := e.Schedule.Next(time.UnixMilli(a.ID.Nominal - 1)); !ok || next.UnixMilli() != a.ID.Nominal || !rs.job.inForce(e, a.ID.Nominal) {
		j.violate("P2", "run %s of %s was cancelled for generation %d, which does not fire then", a.ID, a.Tenant, a.Generation)
	}
}

// unkept is what a run says that succeeded, and whose result was lost.
const unkept = "the result could not be kept"

// succeeded: the result is what the target answered under the fence that ended the run.
func (j *Judge) succeeded(rs *runState) {
	a := &rs.run
	s := rs.start(a.Fence)
	switch {
	case s == nil || !s.ok:
		j.violate("P1", "run %s of %s succeeded under fence %d, and no target said so", a.ID, a.Tenant, a.Fence)
	case a.Result.IsZero() && a.Reason == unkept && len(s.result) > run.MaxResult: // no blob could be written; small ones need none
	case a.Result.Blob == "" && !a.Result.Cut && !bytes.Equal(a.Result.Inline, s.result):
		j.violate("P6", "run %s of %s succeeded under fence %d with the result %.80q, and its target said %.80q", a.ID, a.Tenant, a.Fence, a.Result.Inline, s.result)
	}
}

func (rs *runState) start(fence uint64) *begun {
	for i := len(rs.starts) - 1; i >= 0; i-- {
		if rs.starts[i].fence == fence {
			return &rs.starts[i]
		}
	}
	return nil
}

// reopened: only on request, each time on one of its own (P7, P5).
func (j *Judge) reopened(rs *runState, b *run.Run) {
	a := &rs.run
	rs.period++
	rs.byHand = true
	if rs.flow != nil {
		j.violate("W4", "run %s of %s is that of a workflow that was begun, and is opened again", a.ID, a.Tenant)
	}
	if n := j.consent(rs, b); n == 0 {
		promise := "P7"
		if e := rs.job.byGeneration[b.Generation]; e != nil && e.Def.Guarantee == job.AtMostOnce {
			promise = "P5"
		}
		j.violate(promise, "run %s of %s had ended as %s, and is %s without a request of its own", a.ID, a.Tenant, b.State, a.State)
	} else {
		rs.used = append(rs.used, n)
	}
	if bounded := rs.job.bounds(a.Generation) || rs.job.bounds(b.Generation) || b.Opening != 0; bounded && a.Opening != a.Version {
		j.violate("G1", "run %s of %s is opened again in version %d, and the number of its opening is %d", a.ID, a.Tenant, a.Version, a.Opening)
	}
	held := a.State == run.Scheduled && a.Generation == b.Generation // under the mark of the pause that held it before
	if e := rs.job.newest(); e != nil && a.Generation > e.Generation && !held {
		j.violate("P8", "run %s of %s was opened again under generation %d, and the newest is %d", a.ID, a.Tenant, a.Generation, e.Generation)
	}
}

// maxCrashes is how many workers a run may kill before it is dead.
const maxCrashes = 3

func stateName(s run.State) string {
	if s == nothing {
		return "nothing"
	}
	return s.String()
}

func instant(ms int64) string {
	switch ms {
	case 0:
		return "never"
	case forever:
		return "ever"
	}
	return fmt.Sprint(time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z"))
}
