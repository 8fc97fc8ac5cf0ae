package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/semaphore"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// This file has what the expressions of a workflow's run read. All of it has ended, and nothing that has ended is written again: so whoever evaluates the
// same expression, at whatever attempt, gets the same. What had not ended when a step was released is noted in its row, and stays open for it.

const (
	// evaluations is how many texts of runs a process evaluates at once, beside one of a simulation. Each may hold some 200 MB for a moment: 64 MiB of values that
	// were read, as many of copies that it makes, and what it was made of.
	evaluations = 2

	// evaluationTime is the longest that one may take, without what it reads. Who is cut off has failed of nothing, and tries again.
	evaluationTime = 5 * time.Second

	// evaluationTries is how often one is tried that takes longer. What it may cost is bounded, so this is rare.
	evaluationTries = 5

	// blobReaders is how many evaluations hold blobs at once, each up to 24 MiB.
	blobReaders = 8

	// largeInputs is how many inputs over largeInput bytes that are a result as a whole, of up to 16 MiB, the attempts of a process hold at once.
	largeInputs = 4
	largeInput  = 256 << 10
)

// evaluating is the room for evaluations in a process. Who comes first goes first, and comes anew for each text.
type evaluating struct {
	turns   *semaphore.Weighted
	playing *semaphore.Weighted // of simulations
	readers *semaphore.Weighted
	inputs  *semaphore.Weighted

	mu   sync.Mutex
	slow map[store.Key]int // how often what becomes of a node has taken too long
}

func newEvaluating() evaluating {
	return evaluating{turns: semaphore.NewWeighted(evaluations), playing: semaphore.NewWeighted(1), readers: semaphore.NewWeighted(blobReaders),
		inputs: semaphore.NewWeighted(largeInputs), slow: map[store.Key]int{}}
}

// ErrSlow says that an evaluation was cut off.
var ErrSlow = fmt.Errorf("expressions took longer than %s: %w", evaluationTime, context.DeadlineExceeded)

// ErrNoRoom says that others took all the room there is, for as long as the caller would wait. It has evaluated nothing.
var ErrNoRoom = errors.New("no room for it at once")

// Evaluating has f evaluate expressions when there is room for that, with a context that ends when it has taken too long. Then its error is
// ErrSlow, which is a context.DeadlineExceeded.
func (d *Dispatcher) Evaluating(ctx context.Context, f func(context.Context) error) error {
	return withTurn(ctx, d.evaluations.turns, f)
}

// Simulating is Evaluating for what anybody may ask for who may read: with a turn of its own, so that no run waits for it.
func (d *Dispatcher) Simulating(ctx context.Context, f func(context.Context) error) error {
	return withTurn(ctx, d.evaluations.playing, f)
}

func withTurn(ctx context.Context, turns *semaphore.Weighted, f func(context.Context) error) error {
	if err := turns.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for room for an evaluation: %w: %w", ErrNoRoom, err)
	}
	defer turns.Release(1)
	within, cancel := context.WithTimeoutCause(ctx, evaluationTime, ErrSlow)
	defer cancel()
	err := f(within)
	if err != nil && errors.Is(context.Cause(within), ErrSlow) && errors.Is(err, context.DeadlineExceeded) {
		return ErrSlow
	}
	return err
}

// evaluate has f evaluate a text of the run, which says what becomes of a node, or is its output where that is nil. It tells what fails of itself, and would again,
// from all else.
func (r *reading) evaluate(n *flow.Node, f func(*flow.Evaluation) error) (failed *target.Failure, err error) {
	defer r.leave()
	var wrong *expression.Failure
	if err = f(r.texts); errors.As(err, &wrong) {
		return &target.Failure{Kind: target.KindExpression, Permanent: true, Message: wrong.Message}, nil
	}
	if r.once {
		return nil, err
	}
	of, at := "the output of the run", r.head.ID
	if n != nil {
		of, at = "step "+n.Path, r.head.ID.At(n.Path)
	}
	if tries := r.evaluations.tried(at.Key(r.head.Tenant), errors.Is(err, ErrSlow)); tries >= evaluationTries {
		return &target.Failure{Kind: target.KindTooSlow, Permanent: true, Message: fmt.Sprintf("%s: its expressions took longer than %s, %d times", of, evaluationTime, tries)}, nil
	}
	return nil, err
}

// maxSlow bounds what is remembered of evaluations that took too long; what is forgotten is tried more often.
const maxSlow = 1000

// tried counts how often in a row what is evaluated under a key has taken too long.
func (e *evaluating) tried(key store.Key, slow bool) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.slow[key] + 1
	if delete(e.slow, key); !slow {
		return 0
	}
	if n < evaluationTries {
		if len(e.slow) >= maxSlow {
			clear(e.slow)
		}
		e.slow[key] = n
	}
	return n
}

// reading is what expressions of a run read, as it stands.
type reading struct {
	*Dispatcher
	head   run.Run
	def    job.Definition
	w      *flow.Workflow
	rows   map[int]run.Run // by the index of the node
	states []flow.State
	open   nodeSet // of a step: what had not ended when it was released

	once  bool       // nobody tries again what takes too long
	input *InputRoom // what is read is handed to an attempt as a whole, and is to have room
	texts *flow.Evaluation
	holds bool  // blobs, of what is evaluated now
	away  error // of the first blob that could not be read for now: no other is asked for
}

var _ flow.Facts = (*reading)(nil)

// FactOf is what is known of a node by its row.
func FactOf(w *flow.Workflow, row run.Run) flow.Fact {
	fact := flow.Fact{State: FlowState(row.State), To: flow.None}
	if row.Chose != "" {
		if to, ok := w.Node(row.Chose); ok {
			fact.To = to.Index
		}
	}
	return fact
}

func (f *following) reading(steps []run.Run, states []flow.State) *reading {
	return read(f.Dispatcher, f.head, f.def, f.workflow, steps, states)
}

func read(d *Dispatcher, head run.Run, def job.Definition, w *flow.Workflow, steps []run.Run, states []flow.State) *reading {
	r := &reading{Dispatcher: d, head: head, def: def, w: w, rows: map[int]run.Run{}, states: states}
	for _, s := range steps {
		if n, ok := w.Node(s.ID.Step); ok && s.Version != 0 {
			r.rows[n.Index] = s
		}
	}
	r.texts = w.Evaluate(r, d.Evaluating)
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
	if r.input != nil && !r.input.taken {
		most = largeInput
	}
	data, size, err := r.get(ctx, key, what, most)
	if err == nil && size > int64(most) {
		r.leave() // who holds blobs waits for no attempt to end: that may take a day
		if err = r.input.take(ctx, r.Lease/3); err != nil {
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
	if !r.holds {
		if err := r.evaluations.readers.Acquire(ctx, 1); err != nil {
			return nil, 0, fmt.Errorf("wait for room for %s: %w", what, err)
		}
		r.holds = true
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

// leave gives back the room for blobs.
func (r *reading) leave() {
	if r.holds {
		r.evaluations.readers.Release(1)
		r.holds = false
	}
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
	if !ok {
		seen := flow.Seen{State: r.states[index]}
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

// InputRoom is what one attempt has of a process's room for large inputs. Its methods are for one goroutine at a time.
type InputRoom struct {
	of    *semaphore.Weighted
	taken bool
}

// InputRoom is for an attempt that is to be handed its input in this process. Whoever has made the attempt gives it back when that is over.
func (d *Dispatcher) InputRoom() *InputRoom { return &InputRoom{of: d.evaluations.inputs} }

// take waits for room, for so long at the most: who waits longer lets others go before him, and comes again.
func (r *InputRoom) take(ctx context.Context, most time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := r.of.Acquire(waiting, 1); err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	r.taken = true
	return nil
}

// Give gives back what was taken. Once more changes nothing, and so does nil.
func (r *InputRoom) Give() {
	if r != nil && r.taken {
		r.taken = false
		r.of.Release(1)
	}
}

// StepInput gives what a step is handed, of which expressions say what that is. whole is the run that the step is of. It is the same at each attempt. An
// error is a *target.Failure where it is so at each attempt. again tells that an attempt wants it, which tries again where it takes too long: not for ever. A large
// input that is a result as a whole takes room, where there is one; ErrNoRoom says that there was none in time.
func (d *Dispatcher) StepInput(ctx context.Context, whole, step run.Run, again bool, room *InputRoom) ([]byte, error) {
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
	r, err := d.read(ctx, whole, edition.Def, w, n)
	if err != nil {
		return nil, fmt.Errorf("read what the input of step %s is made of: %w", step.ID.Step, err)
	}
	r.open = nodeSet(step.Unended)
	if early := w.Early(n.Index, r, r.open.has); len(early) > 0 { // it had ended when the step was released, so this was read too early
		return nil, fmt.Errorf("step %s, which step %s reads, is not seen to have ended: %w", w.Nodes[early[0]].Path, n.Path, store.ErrUnknown)
	}
	var data []byte
	r.once = !again
	if n.Data.Bare() != "" {
		r.input = room
	}
	failed, err := r.evaluate(n, func(texts *flow.Evaluation) (err error) {
		data, _, err = texts.Give(ctx, n.Data)
		return err
	})
	if failed != nil {
		return nil, failed
	}
	if len(data) <= largeInput { // as where a pass is handed on that reads what is large
		room.Give()
	}
	return data, err
}

// read reads what the data of a node are made of: the rows that it names, or all where some of that follows from others.
func (d *Dispatcher) read(ctx context.Context, whole run.Run, def job.Definition, w *flow.Workflow, n *flow.Node) (*reading, error) {
	named := n.Data.Reading().Nodes
	ask := make([]run.Run, 0, len(named))
	for _, i := range named {
		if w.Nodes[i].Kind == flow.KindTask {
			ask = append(ask, run.Run{ID: whole.ID.Whole().At(w.Nodes[i].Path), Tenant: whole.Tenant})
		}
	}
	if len(ask) == len(named) {
		rows, err := d.ReadRuns(ctx, ask)
		if err != nil {
			return nil, err
		}
		r := read(d, whole, def, w, rows, nil)
		if len(r.rows) == len(named) {
			return r, nil
		}
	}
	rows, err := d.Steps(ctx, whole)
	if err != nil {
		return nil, err
	}
	facts := make([]flow.Fact, len(w.Nodes))
	for _, row := range rows {
		if n, ok := w.Node(row.ID.Step); ok && row.State != 0 {
			facts[n.Index] = FactOf(w, row)
		}
	}
	return read(d, whole, def, w, rows, w.Plan(facts).States), nil
}

// askFor is for how long nodes are asked before what has come of it is written.
const askFor = time.Second

// ask evaluates what nodes ask, and writes down what comes of it, each where nothing stands. It gives the steps as they stand, and the tasks among them that are to be
// sent, also with an error: what cannot be told of one node for now holds up no other. Where another has written one, that is a *store.Conflict: what he has written
// counts.
func (f *following) ask(ctx context.Context, nodes []int, plan flow.Decisions, steps []run.Run) (stand, released []run.Run, err error) {
	r := f.reading(steps, plan.States)
	stand = steps
	var rows []run.Run
	var runs []int
	keep := func() error {
		// Durable with this write: what becomes of each node whose op is done. A crash here leaves the others to whoever asks them next, who gets the same answers of the same steps.
		written, err := f.put(ctx, rows)
		for _, row := range written {
			if n, ok := f.workflow.Node(row.ID.Step); ok && n.Kind == flow.KindTask {
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
	for _, i := range nodes {
		n := &f.workflow.Nodes[i]
		row, runsNow, err := f.answer(ctx, r, n)
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

// answer evaluates what a node asks. It gives the row that says what comes of it, or that its task runs.
func (f *following) answer(ctx context.Context, r *reading, n *flow.Node) (row run.Run, runs bool, err error) {
	var holds bool
	var to int
	failed, err := r.evaluate(n, func(texts *flow.Evaluation) (err error) {
		if n.Kind == flow.KindSwitch {
			to, err = texts.Choose(ctx, n)
		} else {
			holds, err = texts.Holds(ctx, n.Condition)
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
	failed, err := f.reading(steps, plan.States).evaluate(nil, func(texts *flow.Evaluation) (err error) {
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
