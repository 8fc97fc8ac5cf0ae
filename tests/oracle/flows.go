package oracle

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A run whose job is a workflow is opened, not started: it goes from Queued to Running without a lease, and nobody holds it. Its steps are runs in
// a partition of its own, each put there once, when its needs let it run. They are no job's runs: no fire is theirs, no list has them, and no timer
// need wake them, since the checks of their run do.

// flowState is what is known of a workflow's run from when it was opened.
type flowState struct {
	workflow  *flow.Workflow
	since     int                  // the event that opened it
	steps     map[string]*runState // that were released, by path
	orphan    bool                 // opened after the answer to a delete of its job
	cancelled int                  // the event that asked it to stop; 0 for none
	stopped   bool                 // a cancel was answered that found it under way

	stops map[int]stop // its scopes that were stopped, by index
}

// stepEdges are the ways of a step's row: those of any run between its release and its end.
var stepEdges = func() map[[2]run.State]edge {
	ways := map[[2]run.State]edge{{nothing, run.Queued}: {births&^payload | expires, all(born, released)}}
	for _, state := range []run.State{run.Succeeded, run.Skipped, run.Failed, run.Cancelled} { // what came of the condition of a scope, or of one that was stopped
		ways[[2]run.State{nothing, state}] = edge{births&^payload | ended | expires | why, answersOnce}
	}
	for from, to := range map[run.State][]run.State{
		run.Queued:   {run.Running, run.Cancelled, run.Dead},
		run.Running:  {run.Running, run.Succeeded, run.Failed, run.Dead, run.Unknown, run.Cancelled, run.Retrying, run.Queued},
		run.Retrying: {run.Running, run.Cancelled, run.Dead},
	} {
		for _, state := range to {
			ways[[2]run.State{from, state}] = edges[[2]run.State{from, state}]
		}
	}
	return ways
}()

// headEdges are the ways of a workflow's run while it is under way.
var headEdges = map[[2]run.State]edge{
	{run.Queued, run.Running}:    {started | nextAt | wait | placed | gateKey, openedHead},
	{run.Running, run.Running}:   {cancel | scopes | why, all(asksToStop, stopsMore)},
	{run.Running, run.Succeeded}: {ends, over},
	{run.Running, run.Failed}:    {ends, over},
	{run.Running, run.Cancelled}: {ends | why, over},
}

// edgesOf are the ways that a run may go.
func edgesOf(b, a *run.Run) map[[2]run.State]edge {
	switch {
	case a.ID.IsStep():
		return stepEdges
	case b.Heads() || a.Heads():
		return headEdges
	}
	return edges
}

func released(_, a *run.Run) string {
	return unless(a.Attempt == 0 && a.Expires > a.Created && a.Payload.IsZero(), "a step is put without an attempt, and for as long as its run is kept")
}

func openedHead(b, a *run.Run) string {
	return unless(a.Started > 0 && a.Worker == "" && a.NextAt == 0 && len(a.Attempts) == len(b.Attempts), "opening a workflow is no attempt, and nobody holds it")
}

// once is the promise of at most once.
func (rs *runState) once() string {
	if rs.head != nil {
		return "W13"
	}
	return "P5"
}

// edition is what attempts of a run of that generation go by; nil where there is none.
func (rs *runState) edition(generation int64) *edition {
	e := rs.job.byGeneration[generation]
	if rs.head == nil || e == nil || e.Def.Target.Workflow == nil {
		return e
	}
	step, err := flow.StepOf(&e.Edition, rs.run.ID.Step)
	if err != nil {
		return nil
	}
	return &edition{Edition: job.Edition{Generation: step.Generation, Def: step.Def, Own: step.Own, Computed: step.Computed}}
}

// brought is what the target of an attempt is to be given; nil where it lies in a blob, or is computed.
func (rs *runState) brought(e *edition) []byte {
	of := &rs.run
	if rs.head != nil {
		of = &rs.head.run
	}
	switch {
	case e.Computed:
		return nil
	case e.Own:
	case of.Payload.Blob != "":
		return nil
	case len(of.Payload.Inline) > 0:
		return of.Payload.Inline
	}
	return e.Def.Payload
}

// orphaned tells of what starts now whether it does so behind the answer to a delete of its job, and so may call nothing.
func (rs *runState) orphaned() bool {
	a := &rs.run
	if rs.head != nil {
		return rs.head.flow != nil && rs.head.flow.orphan // a delete leaves alone what has begun
	}
	return rs.job.deletedSince(a.Generation) || a.ID.OnDemand() && rs.period == 0 && rs.job.deletedBehind(rs.past[0].since)
}

func (j *Judge) storedStep(at time.Time, key store.Key, rest string, before, after store.Item) {
	rs := j.runs[key]
	if rs == nil {
		tenant, of, _ := strings.Cut(rest, "#")
		id, err := run.ParseID(of + "/" + key.Sort)
		if err != nil {
			j.violate("P1", "%s: %v", key, err)
			return
		}
		rs = j.newRun(key, tenant, id)
	}
	j.changedRun(at, key, rs, before, after)
}

// headOf gives the run that a step is of.
func (j *Judge) headOf(tenant string, id run.ID) *runState {
	whole := id.Whole()
	key := whole.Key(tenant)
	if head := j.runs[key]; head != nil {
		return head
	}
	return j.newRun(key, tenant, whole)
}

// mayStop tells whether somebody wants a run to stop: whoever was asked for it, its workflow's run for a step, and for that one its time, or a delete.
func (j *Judge) mayStop(rs *runState) bool {
	a := &rs.run
	switch {
	case rs.head != nil:
		return rs.head.run.Cancel || rs.head.run.State.Ended() || rs.head.left != nil || rs.head.flow != nil && rs.head.flow.cutBy(rs.run.ID.Step) != flow.None
	case a.Heads():
		return a.Overdue || rs.cancels > 0 || displaces(a) || atDeadline(a) || a.Reason == deletedJob && j.mayCancel(rs)
	}
	return rs.cancels > 0 || displaces(a) || atDeadline(a)
}

// stepped is told of a change of a step. b is the step before.
func (j *Judge) stepped(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	switch {
	case rs.head.flow == nil:
		j.violate("W1", "step %s of %s stands, and its run was never opened", a.ID, a.Tenant)
	case b.Version == 0:
		j.released(rs)
	case b.Suspended():
		j.waited(at, rs, b)
	case a.State == run.Running && b.State != run.Running:
		j.started(at, rs, b)
	case a.State == run.Retrying, a.State == run.Queued:
		j.again(rs, b)
	case a.State.Ended() && !b.State.Ended():
		j.ended(rs, b)
	}
}

// released: a step is put once (W1), of its run's definition (W8), and when its needs let it run, whatever becomes of what is open (W2).
func (j *Judge) released(rs *runState) {
	a, f := &rs.run, rs.head.flow
	if slices.ContainsFunc(rs.past[:len(rs.past)-1], func(s sight) bool { return s.state != nothing && s.since >= f.since }) {
		j.violate("W1", "step %s of %s was released before, and is again", a.ID, a.Tenant)
	}
	f.steps[a.ID.Step] = rs
	if head := rs.head.last(); a.Generation != head.Generation {
		j.violate("W8", "step %s of %s is of generation %d, and its run of %d", a.ID, a.Tenant, a.Generation, head.Generation)
	}
	n, ok := f.workflow.Node(a.ID.Step)
	switch wait := ok && mayWait(n, a); {
	case ok && a.State == run.Cancelled:
		j.cutOff(rs)
	case wait:
		j.waits(rs, n)
	case !ok || n.Kind != flow.KindTask && !asks(n):
		j.violate("W8", "step %s of %s is no task of its workflow, no wait, and no scope that asks whether it runs", a.ID, a.Tenant)
		return
	case asks(n) != a.State.Ended() || !asks(n) && a.Stage() != run.Queued:
		j.violate("W8", "step %s of %s is put as %s, and it is a %s", a.ID, a.Tenant, a.State, n.Kind)
	}
	if l := f.look(); !l.may[n.Index] {
		j.violate("W2", "step %s of %s was released, and its needs do not let it run: %s", a.ID, a.Tenant, l.text(f.workflow))
	}
}

// last is the run as it stands, or as it was when it had been kept for long enough.
func (rs *runState) last() *run.Run {
	if rs.left != nil {
		return rs.left
	}
	return &rs.run
}

// mayStart: of a run that was told to be cancelled (W5), or has ended (W4), nothing starts.
func (j *Judge) mayStart(rs *runState) {
	a, head := &rs.run, rs.head
	switch {
	case head.last().State.Ended():
		j.violate("W4", "step %s of %s started in version %d, and its run had ended as %s", a.ID, a.Tenant, a.Version, head.last().State)
	case head.flow.cutBy(a.ID.Step) != flow.None && rs.past[0].since > head.flow.stops[head.flow.cutBy(a.ID.Step)].since:
		j.violate("W5", "step %s of %s started in version %d, and was put after a scope around it was stopped", a.ID, a.Tenant, a.Version)
	case head.flow.stopped:
		j.violate("W5", "step %s of %s started in version %d, after the answer to a cancel of its run", a.ID, a.Tenant, a.Version)
	}
}

// branched is told of a change of a run that was a workflow's before it, or is one behind it.
func (j *Judge) branched(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	switch {
	case !b.Heads():
		j.opened(at, rs, b)
	case rs.flow == nil: // it was told of
	case a.Heads():
		j.stopsScopes(at, rs, b)
		if a.Cancel && rs.flow.cancelled == 0 {
			rs.flow.cancelled = j.event
		}
		until := a.Started + rs.flow.workflow.Timeout.Std().Milliseconds()
		if a.Overdue && !b.Overdue && ms(at) < until-j.cfg.Clocks.Milliseconds() {
			if l := rs.flow.look(); !l.halts {
				j.violate("W5", "the time of run %s of %s is over, it says, and that is at %s; nor does a failure stop it: %s", a.ID, a.Tenant, instant(until), l.text(rs.flow.workflow))
			}
		}
	case a.State.Ended():
		j.closes(rs, b)
		j.calls(rs, rs.job.byGeneration[a.Generation])
		j.counts(rs, rs.job.byGeneration[a.Generation])
	}
}

// opened: the run of a workflow begins when it is due (P3), at its gate (G1), under the definition that is in force (P8).
func (j *Judge) opened(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	e := rs.job.byGeneration[a.Generation]
	if e == nil || e.Def.Target.Workflow == nil {
		j.violate("W8", "run %s of %s was opened as a workflow's, and generation %d of its job is none", a.ID, a.Tenant, a.Generation)
		return
	}
	w, err := flow.Of(&e.Edition)
	if err != nil {
		j.violate("W8", "run %s of %s was opened, and its workflow cannot be used: %v", a.ID, a.Tenant, err)
		return
	}
	due := rs.due(b)
	if a.Started < due {
		j.violate("P3", "run %s of %s was opened %d ms early, by its opener's clock", a.ID, a.Tenant, due-a.Started)
	}
	j.early(at, due, rs, a.Attempt, "opened")
	j.replaced(rs, "was opened")
	j.letIn(rs)
	// A callback that was cleaned up comes again after a long outage. Its steps may be kept for longer than it was: what they did is done.
	steps := map[string]*runState{}
	if rs.flow != nil {
		maps.Copy(steps, rs.flow.steps)
		maps.DeleteFunc(steps, func(_ string, s *runState) bool { return s.run.Version == 0 })
	}
	rs.flow = &flowState{workflow: w, since: j.event, steps: steps, orphan: rs.orphaned()}
}

// closes: a run ends as its steps say (W2), when all have ended that were to run (W3, W4). One that was to stop ends for that, and nothing of it runs
// then.
func (j *Judge) closes(rs *runState, b *run.Run) {
	a, f := &rs.run, rs.flow
	if a.GaveWay() { // at once: its steps stop behind that
		return
	}
	for _, s := range f.steps {
		if s.run.Ended > a.Ended && (!b.Cancel || s.past[0].since < f.cancelled) { // else put by somebody who did not know
			j.violate("W4", "run %s of %s ended at %s, it says, and its step %s at %s", a.ID, a.Tenant, instant(a.Ended), s.run.ID.Step, instant(s.run.Ended))
		}
	}
	if b.Cancel {
		want := run.Cancelled
		if b.Overdue {
			want = run.Failed
		}
		if a.State != want {
			j.violate("W5", "run %s of %s was to stop, and ended as %s", a.ID, a.Tenant, a.State)
		}
		for _, s := range f.steps {
			if !s.run.State.Ended() && s.run.Version != 0 && (s.run.State != run.Queued || s.past[0].since < f.cancelled) {
				j.violate("W4", "run %s of %s was to stop and has ended, and its step %s is %s", a.ID, a.Tenant, s.run.ID.Step, s.run.State)
			}
		}
		return
	}
	l := f.look()
	switch want := map[rune]run.State{reference.Success: run.Succeeded, reference.Failure: run.Failed}[l.whole]; {
	case a.State == run.Cancelled:
		j.violate("W5", "run %s of %s was cancelled, and nobody asked its steps to stop: %s", a.ID, a.Tenant, l.text(f.workflow))
	case l.whole == reference.Open:
		j.violate("W4", "run %s of %s ended as %s, and not all has ended that is to run: %s", a.ID, a.Tenant, a.State, l.text(f.workflow))
	case a.State != want:
		j.violate("W2", "run %s of %s ended as %s, and by its steps it is %s: %s", a.ID, a.Tenant, a.State, want, l.text(f.workflow))
	}
}

// stops notes that a cancel was answered, where that found the workflow's run under way: nothing of it starts any more.
func (rs *runState) stops() {
	if rs.flow != nil && (rs.run.Heads() && rs.run.Cancel || rs.run.State.Ended()) {
		rs.flow.stopped = true
	}
}

// showsSteps: what is shown of a run's steps stood at some time since it was asked for. What never was released has a state that follows from others, and of
// a run that is over the one that does.
func (j *Judge) showsSteps(q *asking, rs *runState, shown []wire.StepSummary) {
	if rs.flow == nil {
		return
	}
	over := !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return !s.state.Ended() })
	l := rs.flow.lookShown()
	for _, one := range shown {
		n, ok := rs.flow.workflow.Node(one.Path)
		if !ok || n.Kind != flow.KindTask {
			continue
		}
		s, stood := rs.flow.steps[one.Path], []sight{{}}
		if s != nil {
			stood = s.seen(q.since, j.event)
		}
		if !slices.ContainsFunc(stood, func(s sight) bool {
			if s.state == nothing && over && one.State == string(flow.Cancelled) && rs.flow.cutBy(one.Path) != flow.None {
				return true
			}
			if s.state == nothing && over {
				return one.State == string(map[rune]flow.State{reference.Skip: flow.Skipped, reference.Upstream: flow.UpstreamFailed, reference.Open: flow.Cancelled}[l.ends[n.Index]])
			}
			if s.state == nothing {
				return slices.Contains([]flow.State{flow.Pending, flow.Skipped, flow.UpstreamFailed, flow.Cancelled}, flow.State(one.State))
			}
			return s.state.String() == one.State
		}) {
			j.violate("P1", "%s: step %s of run %s of %s is shown as %s; it was %+v meanwhile", q.Op, one.Path, rs.id(), q.Tenant, one.State, stood)
		}
	}
}

// awake is whose timers look after a run: of a step, its run's.
func (rs *runState) awake() *runState {
	if rs.head != nil {
		return rs.head
	}
	return rs
}

// open tells of a workflow's run what of it has not ended.
func (rs *runState) open() string {
	if rs.flow == nil {
		return ""
	}
	l := rs.flow.look()
	return ": " + l.text(rs.flow.workflow)
}
