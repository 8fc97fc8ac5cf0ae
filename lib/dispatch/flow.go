package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// EditionOf gives what attempts of a run go by: the definition of its generation, or of a step its task in that. Errors are those of
// job.Book.Edition, and flow.ErrDefinition.
func (d *Dispatcher) EditionOf(ctx context.Context, r run.Run) (*job.Edition, error) {
	e, err := d.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if err != nil || !r.ID.IsStep() {
		return e, err
	}
	return flow.StepOf(e, r.ID.Step)
}

// Usable is EditionOf for whoever is to bring a run on: of the run of a workflow, that is usable, too.
func (d *Dispatcher) Usable(ctx context.Context, r run.Run) (*job.Edition, error) {
	e, err := d.EditionOf(ctx, r)
	if err == nil && e.Def.Target.Workflow != nil {
		_, err = flow.Of(e)
	}
	return e, err
}

// Unreadable tells of an error of EditionOf or Usable that it is of the definition, which is gone, damaged, or of a newer version: whoever asks again is told the same.
func Unreadable(err error) bool {
	return lost(err) || errors.Is(err, record.ErrNewer) || errors.Is(err, job.ErrSchedule) || errors.Is(err, flow.ErrDefinition)
}

// lost tells of such an error that no version can read the definition.
func lost(err error) bool { return errors.Is(err, job.ErrNotFound) || errors.Is(err, record.ErrBroken) }

// TellUnreadable tells of a run that is left as it is since what it goes by is Unreadable, in the log and among the metrics.
func (d *Dispatcher) TellUnreadable(ctx context.Context, r run.Run, err error) {
	d.Metrics.Unreadable.Inc()
	d.Log.ErrorContext(ctx, "a run stands still: its definition cannot be read here", "tenant", r.Tenant, "run", r.ID.String(), "generation", r.Generation, "error", err)
}

// Open begins the run of a workflow, which is queued, due and past the gate of its job, as a run that nobody holds: no attempt is made of it. It
// gives the run as opened, or a *store.Conflict.
//
// Durable afterwards: that it is under way, and before that a check for when its time is over, where the run's other checks would come too late for that. Its
// first steps are released by Follow; a crash in between leaves that to the run's message, which comes again, or to its check.
func (d *Dispatcher) Open(ctx context.Context, r run.Run, e *job.Edition, now int64) (run.Run, error) {
	w, err := flow.Of(e)
	if err != nil {
		return run.Run{}, err
	}
	next := r.Open(now)
	next.Placed = r.Gated(&e.Def)
	if check, early := d.overdueBefore(next, w, now+d.Directly().Milliseconds()); early {
		if err := d.Arm(ctx, check); err != nil {
			return run.Run{}, err
		}
	}
	return d.PutRun(ctx, next, e.Def.On, now)
}

// Follow brings a workflow's run on from where it stands: it releases the steps whose rules let them run, ends those of a run that was cancelled or
// whose time is over, and ends the run when all of its steps have ended. id may be that of a step. It is called when the run was opened or
// cancelled, when a step has ended and before the message of that goes, and by checks. Whoever calls it decides the same, so any number may at
// once.
//
// again tells that one who called before may have died before it sent what it had released: whatever has not started is sent once more.
//
// Durable afterwards: every step that follows from what had ended. Each step is put where nothing stands, so it is released once. Nobody is missed:
// who ends a step reads the others behind its own end, so of two that end at once the later sees both.
func (d *Dispatcher) Follow(ctx context.Context, tenant string, id run.ID, again bool) error {
	return d.follow(ctx, tenant, id, func(f *following) error { return f.step(ctx, again) })
}

// followFrom is Follow for a check of a run, which goes by the time at which it has found steps that are due, 0 for none: no later check is there for these.
func (d *Dispatcher) followFrom(ctx context.Context, head run.Run, due int64) error {
	return d.follow(ctx, head.Tenant, head.ID, func(f *following) error {
		f.now = max(f.now, due)
		return f.step(ctx, false)
	})
}

// follow has step done for a run that is under way, as it was read, and again by its newest state where that was overtaken.
func (d *Dispatcher) follow(ctx context.Context, tenant string, id run.ID, step func(*following) error) error {
	for range maxRounds {
		f, err := d.following(ctx, tenant, id.Whole())
		if err != nil {
			return fmt.Errorf("bring workflow run %s on: %w", id.Whole(), err)
		}
		if f == nil {
			return nil
		}
		err = step(f)
		if store.AsConflict(err) == nil {
			if err != nil {
				return fmt.Errorf("bring workflow run %s on: %w", id.Whole(), err)
			}
			return nil
		}
	}
	return fmt.Errorf("workflow run %s: overtaken %d times: %w", id.Whole(), maxRounds, store.ErrThrottled)
}

// following is a workflow's run that is under way, as it was read.
type following struct {
	*Dispatcher
	head     run.Run
	def      job.Definition
	workflow *flow.Workflow
	now      int64
}

// following reads a run; nil where it is not under way. Who waits for its end is let in once more, since whoever wrote the end may have died before.
func (d *Dispatcher) following(ctx context.Context, tenant string, id run.ID) (*following, error) {
	standing, err := d.ReadRuns(ctx, []run.Run{{ID: id, Tenant: tenant}})
	if err != nil {
		return nil, err
	}
	head := standing[0]
	if !head.Heads() {
		if head.State.Ended() && (head.Placed || head.Pauses) {
			return nil, d.Left(ctx, head)
		}
		return nil, nil
	}
	f := &following{Dispatcher: d, head: head}
	edition, err := d.Book.Edition(ctx, tenant, id.Job, head.Generation)
	if err == nil {
		f.def = edition.Def
		f.workflow, err = flow.Of(edition)
	}
	switch {
	case err != nil && head.Cancel && lost(err): // to end it needs no more than its rows, and nobody will have more
		f.workflow = &flow.Workflow{}
	case err != nil:
		return nil, err
	}
	f.now, err = d.SureClock(ctx, f.head)
	return f, err
}

// step does what the run asks for. A *store.Conflict says that it stands otherwise by now.
func (f *following) step(ctx context.Context, again bool) error {
	if f.head.PastDeadline(f.now) && f.head.EndBy <= over(f.head, f.workflow) {
		// Durable before any step is looked up: nothing starts that is put behind it. A crash here leaves the steps to the next check of the run.
		var err error
		if f.head, err = f.PutRun(ctx, f.head.StopAtDeadline(f.now, f.def.Kept()), f.def.On, f.now); err != nil {
			return err
		}
	}
	if !f.head.Cancel && f.now >= over(f.head, f.workflow) {
		var err error
		if f.head, err = f.PutRun(ctx, f.head.LateFor(fmt.Sprintf("timeout: the run was not over after %s", f.workflow.Timeout)), f.def.On, f.now); err != nil {
			return err
		}
	}
	steps, err := f.Steps(ctx, f.head)
	if err != nil {
		return err
	}
	if len(steps) == 0 && !f.head.Cancel && !f.Prompt(run.Run{Reason: f.head.Reason}, f.head.ID.Nominal, f.now) {
		if steps, err = f.orphaned(ctx); err != nil {
			return err
		}
	}
	if f.head.Cancel {
		return f.stop(ctx, steps)
	}
	if steps, err = f.endStopped(ctx, steps); err != nil {
		return err
	}
	if steps, err = f.endWaits(ctx, steps); err != nil {
		return err
	}
	var waiting []run.Run // for a worker, and never started
	for _, s := range steps {
		if _, ok := f.workflow.Node(s.ID.Step); !ok {
			continue // of a newer version of Belfry
		}
		if s.State == 0 {
			return fmt.Errorf("step %s cannot be read here: %w", s.ID.Step, store.ErrUnknown)
		}
		if s.Stage() == run.Queued && s.Attempt == 0 {
			waiting = append(waiting, s)
		}
	}
	plan, err := f.plan(steps)
	var asked []run.Run // tasks that were released since what they ask holds
	for err == nil && f.stopping(plan, steps) == nil && len(plan.Ask)+len(plan.Cancel) > 0 {
		var released []run.Run
		if steps, err = f.cancel(ctx, plan.Cancel, steps); err == nil {
			steps, released, err = f.ask(ctx, plan.Ask, plan, steps)
			asked = append(asked, released...)
		}
		next, early := f.plan(steps)
		if plan = next; early != nil {
			err = early
		}
	}
	if store.AsConflict(err) != nil {
		return errors.Join(err, f.send(ctx, asked))
	}
	if stops := f.stopping(plan, steps); stops != nil {
		return errors.Join(f.send(ctx, asked), f.stopScopes(ctx, stops, again))
	}
	if plan.End != "" {
		return f.end(ctx, plan, steps)
	}
	if plan.Stop != flow.None {
		// Durable before any step is looked up again: nothing starts that is put behind it. A crash here leaves the others to the check of the run, and to the message of
		// who has ended.
		if f.head, err = f.PutRun(ctx, f.head.LateFor(f.failed(plan, plan.Stop, steps)), f.def.On, f.now); err != nil {
			return err
		}
		if steps, err = f.Steps(ctx, f.head); err != nil {
			return err
		}
		return f.stop(ctx, steps)
	}
	released, failed := f.release(ctx, plan.Release, steps, plan.States) // also where an answer is wanting: they do not wait for it
	released = append(released, asked...)
	if again {
		released = append(released, waiting...)
	}
	return errors.Join(err, failed, f.send(ctx, released))
}

// orphaned has a run of which nothing was seen to be released be cancelled where its job was deleted: a delete that was answered before the run was opened
// may not have come upon it. It gives the steps as they stand then.
//
// Durable before they are read: that the run is cancelled. What another puts meanwhile finds it at its start, or is found here.
func (f *following) orphaned(ctx context.Context) ([]run.Run, error) {
	j, err := f.Book.Job(ctx, f.head.Tenant, f.head.ID.Job)
	if err != nil || !j.Gone(f.head.Generation) {
		return nil, err
	}
	next, _ := f.head.AskCancel(f.now, Deleted, f.def.Kept())
	if f.head, err = f.PutRun(ctx, next, f.def.On, f.now); err != nil {
		return nil, err
	}
	return f.Steps(ctx, f.head)
}

// FlowState is how the rules of a workflow see the state of a step.
func FlowState(s run.State) flow.State { return flow.State(s.String()) }

// Steps reads the steps of a workflow's run that were released, by their paths. One that cannot be read has State 0.
func (d *Dispatcher) Steps(ctx context.Context, of run.Run) ([]run.Run, error) {
	var steps []run.Run
	for in := (store.Range{Partition: run.StepPartition(of.Tenant, of.ID)}); ; {
		page, err := d.Store.Query(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("read the steps: %w", err)
		}
		for _, item := range page.Items {
			s, err := run.StepFromItem(of.Tenant, of.ID, item)
			if err != nil {
				d.Log.ErrorContext(ctx, "a step is unreadable", "tenant", of.Tenant, "key", item.Key.String(), "error", err)
				s = run.Run{ID: of.ID.At(item.Sort), Tenant: of.Tenant, Version: item.Version}
			}
			steps = append(steps, s)
		}
		if in.Cursor = page.Cursor; in.Cursor == "" {
			return steps, nil
		}
	}
}

// release puts steps that are to run, each where nothing stands. Those that another has put are that one's to send. steps are those that were read.
// states are those of all nodes, or nil where no input names what may still be open.
func (f *following) release(ctx context.Context, nodes []int, steps []run.Run, states []flow.State) ([]run.Run, error) {
	ended := f.ended(steps)
	puts := make([]run.Run, len(nodes))
	for i, index := range nodes {
		n := &f.workflow.Nodes[index]
		puts[i] = f.head.Release(n.Path, f.since(index, ended), f.now, f.expires())
		puts[i].Priority = n.PriorityOf(f.head.Priority)
		for _, named := range f.workflow.Unsure(index) {
			if !states[named].Ended() {
				puts[i].Unended = nodeSet(puts[i].Unended).with(named)
			}
		}
	}
	// Durable with this write: each step whose op is done. A crash here leaves it to the message of who has ended, which comes again and sends it, or to
	// the check of the run.
	return f.put(ctx, puts)
}

// ended gives when steps have ended, Unix ms, by the index of the node; 0 for those that have not.
func (f *following) ended(steps []run.Run) []int64 {
	ended := make([]int64, len(f.workflow.Nodes))
	for _, s := range steps {
		if n, ok := f.workflow.Node(s.ID.Step); ok && s.State.Ended() {
			ended[n.Index] = s.Ended
		}
	}
	return ended
}

// since is when the end was from which the release of a node follows, Unix ms, or the opening of the run.
func (f *following) since(index int, ended []int64) int64 {
	since := f.head.Started
	for _, before := range f.workflow.Before(index) {
		since = max(since, ended[before])
	}
	return since
}

// put puts rows where nothing stands, and gives those that it has put.
func (f *following) put(ctx context.Context, puts []run.Run) ([]run.Run, error) {
	ops := make([]store.Op, len(puts))
	for i := range puts {
		var err error
		if ops[i], err = puts[i].Item(f.NewID()); err != nil {
			return nil, err
		}
	}
	verdicts, err := f.WriteEach(ctx, ops)
	if err != nil {
		return nil, err
	}
	var released []run.Run
	for i, v := range verdicts {
		switch {
		case v.Err == nil:
			puts[i].Version = v.Version
			released = append(released, puts[i])
		case store.AsConflict(v.Err) == nil:
			err = errors.Join(err, fmt.Errorf("release step %s: %w", puts[i].ID.Step, v.Err))
		}
	}
	return released, err
}

// closing is how long after its time the run of a workflow has ended at the latest, unless nobody could see to it.
const closing = 24 * time.Hour

// expires is when what belongs to a step may be cleaned up, Unix ms: with the run, if that ends as late as it can. When it ends is not known yet, and no step
// is written again for that.
func (f *following) expires() int64 {
	return over(f.head, f.workflow) + (closing + f.def.Kept()).Milliseconds()
}

// send sends steps to their queues. What is not sent waits for the check of the run.
func (f *following) send(ctx context.Context, steps []run.Run) error {
	out := make([]Outgoing, 0, len(steps))
	for _, s := range steps {
		edition, err := f.EditionOf(ctx, s)
		if err != nil {
			return err
		}
		out = append(out, Outgoing{Run: s, Queue: edition.Def.Queue})
	}
	if unsent, err := f.Send(ctx, out); err != nil || len(unsent) > 0 {
		f.Log.WarnContext(ctx, "steps wait for the check of their run", "run", f.head.ID.String(), "steps", len(unsent), "error", err)
	}
	return nil
}

// stop ends what has not started of a run that was cancelled, asks what runs to stop, and ends the run when nothing is left open. What another puts
// meanwhile reads at its start that the run is cancelled, since that was written before.
func (f *following) stop(ctx context.Context, steps []run.Run) error {
	steps, err := f.stopSteps(ctx, steps, func(run.Run) (string, bool) { return f.head.Reason, true })
	if err != nil || slices.ContainsFunc(steps, func(s run.Run) bool { return !s.State.Ended() }) {
		return err
	}
	return f.write(ctx, f.head.Close(run.Cancelled, f.behind(steps), f.head.Reason, Limits(f.def)))
}

// behind is when a run ends whose steps have ended, Unix ms: not before any of them, though these may have been written by a clock that is ahead, or since
// the time was read.
func (f *following) behind(steps []run.Run) int64 {
	now := f.now
	for _, s := range steps {
		now = max(now, s.Ended)
	}
	return now
}

// stopSteps ends those of the open steps that have not started, or asks them to stop, for which stops gives a reason. It gives all steps as they stand then.
func (f *following) stopSteps(ctx context.Context, steps []run.Run, stops func(run.Run) (reason string, stop bool)) ([]run.Run, error) {
	var stand []run.Run
	var wishes []*wish
	for _, s := range steps {
		reason, stop := stops(s)
		if s.State.Ended() || !stop {
			stand = append(stand, s)
			continue
		}
		wishes = append(wishes, &wish{run: s, decide: func(s run.Run) (run.Run, run.ClaimVerdict) {
			if next, changed := s.AskCancel(f.now, reason, f.def.Kept()); changed && !(s.State == run.Running && s.Cancel) {
				return next, run.Claimed
			}
			return s, run.Taken
		}})
	}
	if err := f.granted(ctx, wishes); err != nil {
		return nil, err
	}
	for _, w := range wishes {
		if w.verdict == run.Claimed && w.run.State == run.Running {
			f.Cancelled(w.run.Tenant, w.run.ID)
		}
		stand = append(stand, w.run)
	}
	return stand, nil
}

// end ends the run, all of whose steps have ended or never run.
func (f *following) end(ctx context.Context, plan flow.Decisions, steps []run.Run) error {
	if plan.End == flow.Failed {
		return f.write(ctx, f.head.Close(run.Failed, f.behind(steps), f.why(plan, steps), Limits(f.def)))
	}
	result, reason, err := f.output(ctx, plan, steps)
	if err != nil {
		return err
	}
	state := run.Succeeded
	if reason != "" {
		state = run.Failed
	}
	ended := f.head.Close(state, f.behind(steps), reason, Limits(f.def))
	ended.Result = result
	return f.write(ctx, ended)
}

// why says which step a run has failed of, and its error.
func (f *following) why(plan flow.Decisions, steps []run.Run) string {
	cause := f.workflow.Cause(flow.None, &plan)
	if cause == flow.None {
		return "a step failed"
	}
	return f.failed(plan, cause, steps)
}

// failed says of a step what it has failed of.
func (f *following) failed(plan flow.Decisions, cause int, steps []run.Run) string {
	n := &f.workflow.Nodes[cause]
	if n.Kind == flow.KindFail {
		return fmt.Sprintf("step %s: %s", n.Path, n.Fail.Message)
	}
	if _, stopped := plan.Stopped[cause]; stopped {
		return fmt.Sprintf("step %s is failed: %s", n.Path, n.Overrun())
	}
	text := fmt.Sprintf("step %s is %s", n.Path, plan.States[cause])
	for _, s := range steps {
		if fault := s.Fault(); s.ID.Step == n.Path && fault != "" {
			return text + ": " + fault
		}
	}
	return text
}

// write writes the end of the run, and lets in who waits for it. Durable with it: the end, its listing among the dead letters, and what it calls. A crash here
// leaves those that wait to the message of who has ended, which finds the end, or to their own checks.
func (f *following) write(ctx context.Context, ended run.Run) error {
	ended, err := f.PutRun(ctx, ended, f.def.On, f.now)
	if err != nil {
		return err
	}
	if f.def.Watched() {
		f.Metrics.JobEnded(ended.ID.Job, ended.State == run.Succeeded, time.UnixMilli(ended.Ended))
	}
	if !ended.Placed && !ended.Pauses {
		return nil
	}
	return f.Left(ctx, ended)
}

// MayStart tells whether a step may be started, by the run that it is of as it stands now: one that was cancelled, has ended or is over its time
// starts nothing, and of a scope that was stopped no step starts, and the step ends. whole is that run.
//
// Durable with false: the step's end, and what follows from it.
func (d *Dispatcher) MayStart(ctx context.Context, step run.Run) (whole run.Run, may bool, err error) {
	f, err := d.following(ctx, step.Tenant, step.ID.Whole())
	if err != nil {
		return run.Run{}, false, err
	}
	reason, kept := "the run has ended", job.MinRetention
	if f != nil {
		stops, stopped := f.stopped(step)
		if !f.head.Cancel && f.now < lasts(f.head, f.workflow) && !stopped {
			return f.head, true, nil
		}
		if err := d.Follow(ctx, step.Tenant, step.ID, false); err != nil {
			return run.Run{}, false, err
		}
		kept = f.def.Kept()
		if reason = f.head.Reason; !f.head.Cancel && stopped {
			reason = stops
		}
	}
	now, err := d.Clock()
	if err != nil {
		return run.Run{}, false, err
	}
	// Of a run that has ended nobody looks after its steps, and one in a scope that was stopped may have been put since: by somebody who did not know.
	return run.Run{}, false, d.Change(ctx, []run.Run{step}, func(s run.Run) (run.Run, bool) {
		if s.Version == 0 || s.State != run.Queued && s.State != run.Retrying {
			return s, false
		}
		return s.AskCancel(now, reason, kept)
	})
}

// branch is what the check of a workflow's run looks at of its steps: those that have not ended, but for those that wait until a time, which nobody has to bring on.
func branch(steps []run.Run) []run.Run {
	return slices.DeleteFunc(steps, func(s run.Run) bool { return s.State == 0 || s.State.Ended() || s.Suspended() })
}

// startable is when a run could first be started, Unix ms: a step could not before it was released.
func startable(r run.Run, due int64) int64 {
	if r.ID.IsStep() {
		return max(due, r.Created)
	}
	return due
}
