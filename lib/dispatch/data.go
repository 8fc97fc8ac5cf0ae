package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// This file has what the expressions of a workflow's run read. All of it has ended, and nothing that has ended is written again: so whoever evaluates the
// same expression, at whatever attempt, gets the same. What had not ended when a step was released is noted in its row, and stays open for it.

// reading is what expressions of a run read, as it stands.
type reading struct {
	*Dispatcher
	head run.Run
	def  job.Definition
	w    *flow.Workflow
	rows map[int]run.Run // by the index of the node
	plan flow.Decisions
	open nodeSet // of a step: what had not ended when it was released

	once  bool        // nobody tries again what takes too long
	input *room.Place // what is read is handed to an attempt as a whole, and is to have room
	texts *flow.Evaluation
	at    run.ID      // whose text is evaluated
	blobs *room.Place // taken while it holds any
	away  error       // of the first blob that could not be read for now: no other is asked for
}

var _ flow.Facts = (*reading)(nil)

// FactOf is what is known of a node by its row. That of a scope says what came of its condition: one that has succeeded lets it run, and its end follows from its
// steps.
func FactOf(w *flow.Workflow, row run.Run) flow.Fact {
	fact := flow.Fact{State: FlowState(row.Stage()), To: flow.None, Code: row.Code()}
	if n, ok := w.Node(row.ID.Step); ok && n.Kind == flow.KindScope && row.State == run.Succeeded {
		fact.State = flow.Running
	}
	if row.Chose != "" {
		if to, ok := w.Node(row.Chose); ok {
			fact.To = to.Index
		}
	}
	return fact
}

// FactsOf is what is known of the nodes of a workflow by rows of its run, and by what the run says of scopes that were stopped.
func FactsOf(w *flow.Workflow, head run.Run, rows []run.Run) []flow.Fact {
	facts := make([]flow.Fact, len(w.Nodes))
	factsOf(w, head, rows, facts)
	return facts
}

// factsOf fills in FactsOf among facts of others.
func factsOf(w *flow.Workflow, head run.Run, rows []run.Run, facts []flow.Fact) {
	for _, row := range rows {
		if n, ok := w.Node(row.ID.Step); ok && row.State != 0 {
			facts[n.Index] = FactOf(w, row)
		}
	}
	for _, s := range head.Stops() {
		if s.Scope < len(facts) {
			facts[s.Scope].Stopped, facts[s.Scope].By = true, s.By
		}
	}
}

func (f *following) reading(steps []run.Run, plan flow.Decisions) *reading {
	return read(f.Dispatcher, f.head, f.def, f.workflow, steps, plan)
}

func read(d *Dispatcher, head run.Run, def job.Definition, w *flow.Workflow, steps []run.Run, plan flow.Decisions) *reading {
	r := &reading{Dispatcher: d, head: head, def: def, w: w, rows: map[int]run.Run{}, plan: plan, blobs: d.evaluations.readers.Place(head.Tenant)}
	for _, s := range steps {
		if n, ok := w.Node(s.ID.Step); ok && s.Version != 0 {
			r.rows[n.Index] = s
		}
	}
	r.texts = w.Evaluate(r, func(ctx context.Context, f func(context.Context) error) error {
		return d.Evaluating(ctx, head.Tenant, r.at, f)
	})
	return r
}

// Payload is what the run brings, or what its job has for all.
func (r *reading) Payload(ctx context.Context) ([]byte, error) {
	return payloadOf(r.head, r.def, func(key, what string) ([]byte, error) { return r.blob(ctx, key, what) })
}

// blob reads what is kept when there is room for it. Once one could not be read for now, no other is asked for.
func (r *reading) blob(ctx context.Context, key, what string) ([]byte, error) {
	if r.away != nil {
		return nil, r.away
	}
	most := blob.MaxBytes
	if r.input != nil && !r.input.Taken() {
		most = largeInput
	}
	data, size, err := r.get(ctx, key, what, most)
	if err == nil && size > int64(most) {
		r.blobs.Give() // who holds blobs waits for no attempt to end: that may take a day
		if err = takeWithin(ctx, r.input, r.Lease/3); err != nil {
			return nil, fmt.Errorf("wait for room for %s: %w", what, err)
		}
		data, _, err = r.get(ctx, key, what, blob.MaxBytes)
	}
	var gone *expression.Failure
	if err != nil && !errors.As(err, &gone) {
		r.away = err
	}
	return data, err
}

// get reads what is kept, of at most so many bytes, when there is room for blobs.
func (r *reading) get(ctx context.Context, key, what string, most int) (data []byte, size int64, err error) {
	if err := r.blobs.Take(ctx); err != nil {
		return nil, 0, fmt.Errorf("wait for room for %s: %w", what, err)
	}
	return r.kept(ctx, r.head.Tenant, key, what, most)
}

// kept reads what is kept, of at most so many bytes; what is gone for good is a *expression.Failure.
func (d *Dispatcher) kept(ctx context.Context, tenant, key, what string, most int) (data []byte, size int64, err error) {
	if d.Blobs == nil {
		return nil, 0, fmt.Errorf("read %s: %w", what, blob.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, d.Lease/3)
	defer cancel()
	data, size, err = d.Blobs.GetWithin(ctx, tenant, key, most)
	switch {
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrCorrupt):
		return nil, 0, &expression.Failure{Message: what + " cannot be read any more: " + err.Error()}
	case err != nil:
		return nil, 0, fmt.Errorf("read %s: %w", what, err)
	}
	return data, size, nil
}

// Run is what is told of the run itself.
func (r *reading) Run() map[string]any {
	return flow.RunFacts(r.head.ID.Whole().String(), r.head.ID.Job, timeShown(r.head.ID), r.head.Trigger.String())
}

// Seen is what is known of a node.
func (r *reading) Seen(index int) flow.Seen {
	if r.open.has(index) {
		return flow.Seen{State: flow.Open}
	}
	row, ok := r.rows[index]
	if n := &r.w.Nodes[index]; n.Kind == flow.KindScope {
		return ended(r.scope(n))
	}
	if !ok {
		seen := flow.Seen{State: r.plan.States[index]}
		if n := &r.w.Nodes[index]; n.Kind == flow.KindFail && seen.State == flow.Failed {
			seen.Error = n.Fail.Message
		}
		return ended(seen)
	}
	seen := flow.Seen{State: FlowState(row.State), Attempt: row.Attempt, Started: moment(row.Started), Ended: moment(row.Ended)}
	if seen.State.Failure() {
		seen.Error = row.Fault()
	}
	return ended(seen)
}

// Caught lists the failures that a node handles. Which these are follows from the ends of all steps.
func (r *reading) Caught(index int) []flow.Handled { return r.w.Handled(index, &r.plan, r.Seen) }

// ended is what is seen of a node: nothing but that it is open, before it has ended.
func ended(seen flow.Seen) flow.Seen {
	if !seen.State.Ended() {
		return flow.Seen{State: flow.Open}
	}
	return seen
}

func moment(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at)
}

// Result is what a task has given.
func (r *reading) Result(ctx context.Context, index int) (data []byte, mediaType string, err error) {
	row, what := r.rows[index], "the result of step "+r.w.Nodes[index].Path
	switch {
	case row.Result.Cut:
		return nil, "", &expression.Failure{Message: what + " was kept in part only, by an older version of Belfry"}
	case row.Result.Blob == "":
		return row.Result.Inline, row.Result.Type, nil
	}
	data, err = r.blob(ctx, row.Result.Blob, what)
	return data, row.Result.Type, err
}

// StepInput gives what a step is handed, of which expressions say what that is. whole is the run that the step is of. It is the same at each attempt. An
// error is a *target.Failure where it is so at each attempt. again tells that an attempt wants it, which tries again where it takes too long: not for ever. A large
// input that is a result as a whole takes a place, where one is given, of InputRoom; ErrNoRoom says that there was none in time.
func (d *Dispatcher) StepInput(ctx context.Context, whole, step run.Run, again bool, of *room.Place) ([]byte, error) {
	edition, err := d.Book.Edition(ctx, whole.Tenant, whole.ID.Job, whole.Generation)
	if err != nil {
		return nil, err
	}
	w, err := flow.Of(edition)
	if err != nil {
		return nil, err
	}
	n, ok := w.Node(step.ID.Step)
	if !ok || n.Data == nil {
		return nil, fmt.Errorf("%w: no expressions say what step %q is handed", flow.ErrDefinition, step.ID.Step)
	}
	r, err := d.read(ctx, whole, edition.Def, w, n, nodeSet(step.Unended))
	if err != nil {
		return nil, fmt.Errorf("read what the input of step %s is made of: %w", step.ID.Step, err)
	}
	if early := w.Early(n.Index, r, r.open.has); len(early) > 0 { // it had ended when the step was released, so this was read too early
		return nil, fmt.Errorf("step %s, which step %s reads, is not seen to have ended: %w", w.Nodes[early[0]].Path, n.Path, store.ErrUnknown)
	}
	var data []byte
	r.once = !again
	if n.Data.Bare() != "" {
		r.input = of
	}
	failed, err := r.evaluate(n, func(texts *flow.Evaluation) (err error) {
		data, _, err = texts.Give(ctx, n.Data)
		return err
	})
	if failed != nil {
		return nil, failed
	}
	if len(data) <= largeInput { // as where a pass is handed on that reads what is large
		of.Give()
	}
	return data, err
}

// read reads what the data of a node are made of, which runs: the rows that are named, or all where some of that follows from others. What is open stays so.
func (d *Dispatcher) read(ctx context.Context, whole run.Run, def job.Definition, w *flow.Workflow, n *flow.Node, open nodeSet) (*reading, error) {
	readBy := func(rows []run.Run, facts []flow.Fact) *reading {
		factsOf(w, whole, rows, facts)
		r := read(d, whole, def, w, rows, w.Plan(facts))
		r.open = open
		return r
	}
	named, facts, all := w.Rows(n.Index)
	if !all {
		ask := make([]run.Run, len(named))
		for k, i := range named {
			ask[k] = run.Run{ID: whole.ID.Whole().At(w.Nodes[i].Path), Tenant: whole.Tenant}
		}
		rows, err := d.ReadRuns(ctx, ask)
		if err != nil {
			return nil, err
		}
		if r := readBy(rows, facts); len(w.Early(n.Index, r, open.has)) == 0 {
			return r, nil
		}
	}
	rows, err := d.Steps(ctx, whole)
	if err != nil {
		return nil, err
	}
	return readBy(rows, make([]flow.Fact, len(w.Nodes))), nil
}

// askFor is for how long nodes are asked before what has come of it is written.
const askFor = time.Second

// ask evaluates what nodes ask, and writes down what comes of it, each where nothing stands. It gives the steps as they stand, and the tasks among them that are to be
// sent, also with an error: what cannot be told of one node for now holds up no other. Where another has written one, that is a *store.Conflict: what he has written
// counts.
func (f *following) ask(ctx context.Context, nodes []int, plan flow.Decisions, steps []run.Run) (stand, released []run.Run, err error) {
	r := f.reading(steps, plan)
	stand = steps
	var rows []run.Run
	var runs []int
	keep := func() error {
		if err := f.armWaits(ctx, rows); err != nil {
			return err
		}
		// Durable with this write: what becomes of each node whose op is done. A crash here leaves the others to whoever asks them next, who gets the same answers of the same steps.
		written, err := f.put(ctx, rows)
		for _, row := range written {
			if n, ok := f.workflow.Node(row.ID.Step); ok && (n.Kind == flow.KindTask || n.Kind == flow.KindWait) {
				f.CountEnd(row)
			}
		}
		if err != nil {
			return err
		}
		now, err := f.release(ctx, runs, steps, plan.States)
		stand, released = append(append(stand, written...), now...), append(released, now...)
		if err == nil && (len(written) < len(rows) || len(now) < len(runs)) {
			err = errElse
		}
		rows, runs = nil, nil
		return err
	}
	var errs []error
	since := f.Elapsed()
	ended := f.ended(steps)
	for _, i := range nodes {
		n := &f.workflow.Nodes[i]
		row, runsNow, err := f.answer(ctx, r, n, ended)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("ask what becomes of step %s: %w", n.Path, err))
		case runsNow:
			runs = append(runs, i)
		default:
			rows = append(rows, row)
		}
		if now := f.Elapsed(); now-since >= askFor {
			if err := keep(); err != nil {
				return stand, released, err
			}
			since = now
		}
	}
	if err := keep(); err != nil {
		return stand, released, err
	}
	return stand, released, errors.Join(errs...)
}

// errElse says that another has written what was to be written: all is to be read again.
var errElse = &store.Conflict{}

// answer evaluates what a node asks, of a run whose nodes have ended then. It gives the row that says what comes of it, or that its task runs.
func (f *following) answer(ctx context.Context, r *reading, n *flow.Node, ended []int64) (row run.Run, runs bool, err error) {
	var holds bool
	var to int
	var until time.Time
	failed, err := r.evaluate(n, func(texts *flow.Evaluation) (err error) {
		if n.Kind == flow.KindSwitch {
			to, err = texts.Choose(ctx, n)
			return err
		}
		if holds = n.Condition == nil; !holds {
			holds, err = texts.Holds(ctx, n.Condition)
		}
		if err == nil && holds && n.Kind == flow.KindWait {
			until, err = texts.Until(ctx, n, moment(f.since(n.Index, ended)))
		}
		return err
	})
	end := run.Answer{State: run.Succeeded}
	switch {
	case err != nil:
		return run.Run{}, false, err
	case failed != nil:
		end = run.Answer{State: run.Failed, Reason: failed.Error()}
	case n.Kind == flow.KindSwitch && to != flow.None:
		end.Chose, end.Reason = f.workflow.Nodes[to].Path, "it chose "+f.workflow.Nodes[to].Name
	case n.Kind == flow.KindSwitch:
		end.Reason = "it chose nothing"
	case !holds:
		end = run.Answer{State: run.Skipped, Reason: "its condition does not hold"}
	case n.Kind == flow.KindTask:
		return run.Run{}, true, nil
	case n.Kind == flow.KindScope && n.Timeout != 0:
		row := f.head.Answered(n.Path, end, f.now, f.expires())
		row.NextAt = f.since(n.Index, ended) + n.Timeout.Std().Milliseconds()
		return row, false, nil
	case n.Kind == flow.KindWait && until.UnixMilli() > f.now:
		return f.head.Suspend(n.Path, until.UnixMilli(), f.now, f.expires()), false, nil
	case n.Kind == flow.KindWait:
		end.Reason = run.WaitedUntil(until.UnixMilli())
	}
	return f.head.Answered(n.Path, end, f.now, f.expires()), false, nil
}

// output gives the result of the run, which has succeeded, or says why it has failed after all.
func (f *following) output(ctx context.Context, plan flow.Decisions, steps []run.Run) (result run.Ref, reason string, err error) {
	if f.workflow.Output == nil {
		return run.Ref{}, "", nil
	}
	var data []byte
	var mediaType string
	failed, err := f.reading(steps, plan).evaluate(nil, func(texts *flow.Evaluation) (err error) {
		data, mediaType, err = texts.Give(ctx, f.workflow.Output)
		return err
	})
	switch {
	case failed != nil:
		return run.Ref{}, failed.Error(), nil
	case err != nil:
		return run.Ref{}, "", fmt.Errorf("make the output: %w", err)
	case len(data) <= run.MaxResult:
		return run.Ref{Inline: data, Type: mediaType}, "", nil
	case f.Blobs == nil:
		return run.Ref{}, "", fmt.Errorf("keep the output: %w", blob.ErrUnavailable)
	}
	// Durable before the end that names it. Whoever makes it makes the same, but after an upgrade, or where a backup was restored: so another content has another name.
	expires := time.UnixMilli(f.now + f.def.Kept().Milliseconds()).Add(closing)
	key, err := f.Blobs.Put(ctx, blob.Ref{Tenant: f.head.Tenant, Kind: blob.Result, ID: fmt.Sprintf("%s~output~%016x", f.head.ID, xxhash.Sum64(data)), Expires: expires}, data)
	if err != nil {
		return run.Ref{}, "", fmt.Errorf("keep the output: %w", err)
	}
	return run.Ref{Blob: key, Type: mediaType}, "", nil
}

// nodeSet is a set of nodes, by a bit for each.
type nodeSet []byte

func (s nodeSet) has(i int) bool { return i/8 < len(s) && s[i/8]&(1<<(i%8)) != 0 }

func (s nodeSet) with(i int) nodeSet {
	for len(s) <= i/8 {
		s = append(s, 0)
	}
	s[i/8] |= 1 << (i % 8)
	return s
}
