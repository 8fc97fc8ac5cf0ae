package simulate

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// attempt is one that a worker has under way. Instants are Unix ms as they pass.
type attempt struct {
	task    worker.Task
	claim   lease.Claim
	outcome Outcome
	stopped bool // a cancel was heard of
	timeout bool // it ends by its timeout

	pool    int
	started int64
	renewed int64 // when its lease was renewed for the last time
	renews  int64 // when it is renewed next, whoever looks at it; or never
	ends    int64

	due   int64 // the first of both, or when the server is there again
	order int   // in which attempts started
	place int   // in the heap
}

// busy are the attempts under way, the one that is due next first.
type busy struct {
	order []*attempt
	byRun map[run.ID]*attempt
	steps map[run.ID][]*attempt // of workflows' runs, those of their steps in the order in which they started
}

func (b *busy) init() { b.byRun, b.steps = map[run.ID]*attempt{}, map[run.ID][]*attempt{} }

// first is when the next one is due, or never.
func (b *busy) first() int64 {
	if len(b.order) == 0 {
		return never
	}
	return b.order[0].due
}

// due gives an attempt for which something is to be done by now, nil for none.
func (b *busy) due(now int64) *attempt {
	if b.first() > now {
		return nil
	}
	return b.order[0]
}

func (b *busy) add(a *attempt) {
	a.due = min(a.ends, a.renews)
	heap.Push((*attempts)(&b.order), a)
	b.byRun[a.claim.Run] = a
	if id := a.claim.Run; id.IsStep() {
		b.steps[id.Whole()] = append(b.steps[id.Whole()], a)
	}
}

func (b *busy) moved(a *attempt, due int64) {
	a.due = due
	heap.Fix((*attempts)(&b.order), a.place)
}

func (b *busy) remove(a *attempt) {
	heap.Remove((*attempts)(&b.order), a.place)
	if b.byRun[a.claim.Run] == a {
		delete(b.byRun, a.claim.Run)
	}
	if id := a.claim.Run; id.IsStep() {
		left := slices.DeleteFunc(b.steps[id.Whole()], func(other *attempt) bool { return other == a })
		if b.steps[id.Whole()] = left; len(left) == 0 {
			delete(b.steps, id.Whole())
		}
	}
}

// hasten has the attempt of a run renew its lease at once: a cancel waits for it.
func (b *busy) hasten(id run.ID) {
	if a := b.byRun[id]; a != nil {
		a.renews = 0
		b.moved(a, 0)
	}
}

// attempts is the heap. Ends of one instant go in the order in which the attempts ended by themselves, and then of their starts.
type attempts []*attempt

func (h attempts) Len() int { return len(h) }

func (h attempts) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.due != b.due:
		return a.due < b.due
	case a.ends != b.ends:
		return a.ends < b.ends
	}
	return a.order < b.order
}

func (h attempts) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *attempts) Push(x any) {
	a := x.(*attempt)
	a.place = len(*h)
	*h = append(*h, a)
}

func (h *attempts) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}

// branch names outcomes of a job, or of a step as JOB/PATH, of which each attempt takes the next.
type branch struct{ of, name string }

// outcome takes the outcome of an attempt that starts.
func (p *player) outcome(ctx context.Context, id run.ID, t worker.Task) (Outcome, error) {
	named := id.Job
	if id.IsStep() {
		named += "/" + id.Step
	}
	of, ok := p.scenario.Outcomes[named]
	for _, wider := range []string{id.Job, "*"} {
		if !ok {
			of, ok = p.scenario.Outcomes[wider]
		}
	}
	called := Called{Payload: t.Payload, Input: t.Payload, Attempt: t.Attempt}
	if id.IsStep() && of.By.of == "payload" {
		var err error
		if called.Payload, err = p.payload(ctx, id.Whole()); err != nil {
			return Outcome{}, err
		}
	}
	name, all := of.Branch(called)
	if len(all) == 0 {
		return Outcome{}, nil
	}
	b := branch{named, name}
	n := p.taken[b]
	p.taken[b]++
	return all[min(n, len(all)-1)], nil
}

// payload is what a workflow's run brings.
func (p *player) payload(ctx context.Context, id run.ID) (json.RawMessage, error) {
	whole, err := p.dispatch.ReadRuns(ctx, []run.Run{{ID: id, Tenant: tenant}})
	if err != nil {
		return nil, fmt.Errorf("read the payload of run %s: %w", id, err)
	}
	ref, _, err := p.control.Payload(ctx, whole[0])
	if err != nil {
		return nil, fmt.Errorf("read the payload of run %s: %w", id, err)
	}
	return p.text(ctx, ref)
}

// take asks each pool in turn for one run that may be started, and starts it. It tells whether there was a message.
func (p *player) take(ctx context.Context) (took bool, err error) {
	for range p.mail {
		p.turn = (p.turn + 1) % len(p.mail)
		if at, ok := p.mail[p.turn].Next(); !ok || at.After(p.clock.Passed()) {
			continue
		}
		offers, err := p.remote.Take(ctx, tenant, p.announced[p.turn], 1, 0)
		if p.ledger.killed() {
			return true, p.restart(ctx)
		}
		if err != nil {
			return false, fmt.Errorf("take a run: %w", err)
		}
		for _, o := range offers {
			if err := p.start(ctx, o); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// start begins an attempt of what was offered, unless the run goes another way: at its gate, say.
func (p *player) start(ctx context.Context, o lease.Offered) error {
	id, err := run.ParseID(o.Run)
	if err != nil {
		return err
	}
	p.starts++
	holder := lease.Holder{Worker: "worker", Start: strconv.Itoa(p.starts)}
	var task worker.Task
	var ticket string
	err = p.survive(ctx, func() (err error) {
		p.mail[p.turn].forget()
		task, ticket, err = p.remote.Start(ctx, tenant, id, o.Ticket, holder)
		return err
	})
	if errors.Is(err, worker.ErrGone) {
		p.starts--
		return nil
	}
	if err != nil {
		return fmt.Errorf("start run %s: %w", o.Run, err)
	}
	outcome, err := p.outcome(ctx, id, task)
	if err != nil {
		return err
	}
	a := &attempt{task: task, claim: lease.Claim{Run: id, Fence: task.Fence, Holder: holder, Ticket: ticket}, outcome: outcome, order: p.starts,
		pool: p.turn, started: p.now, renewed: p.now}
	if id.IsStep() && task.Failure == nil {
		p.ledger.handed(id, task.Payload)
	}
	takes := wholeMilliseconds(a.outcome.Takes)
	if a.outcome.Never || takes > task.Timeout {
		takes, a.timeout = task.Timeout, true
	}
	a.ends = p.now + takes.Milliseconds()
	if task.Failure != nil {
		a.ends = p.now // there is nothing to call
	}
	a.plan()
	if err := p.keep(ctx, a); err != nil {
		return err
	}
	p.busy.add(a)
	p.most = max(p.most, len(p.busy.order))
	return nil
}

func wholeMilliseconds(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// plan says when the lease is renewed next though nobody looks at it. Workers do so after each third of it; but what nobody looks at nobody
// notices, so it is made up for when somebody does (renewed), or is about to get the message. A worker that dies has renewed the lease when it
// would have for the last time: others have the run when it is over.
func (a *attempt) plan() {
	a.renews = never
	if !a.crashes() {
		return
	}
	third := a.task.Lease.Milliseconds() / 3
	if last := a.started + (a.ends-1-a.started)/third*third; last > a.renewed {
		a.renews = last
	}
}

// keep keeps an attempt's message back for as long as a queue can, unless it is to come when the lease is over.
func (p *player) keep(ctx context.Context, a *attempt) error {
	if a.crashes() && a.renews == never {
		return nil
	}
	return p.mail[a.pool].keep(ctx, queue.MaxVisibility-time.Duration(p.now-a.started)*time.Millisecond)
}

// renewed has the leases of a run's attempt, and those of its steps, be what their workers have made them by now, before somebody looks at the run.
func (p *player) renewed(ctx context.Context, id run.ID) error {
	if a := p.busy.byRun[id]; a != nil {
		return p.renewedBy(ctx, a)
	}
	for _, a := range slices.Clone(p.busy.steps[id]) {
		if err := p.renewedBy(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) renewedBy(ctx context.Context, a *attempt) error {
	if !p.up() || p.now-a.renewed < a.task.Lease.Milliseconds()/3 || a.crashes() && a.renews == never {
		return nil
	}
	if err := p.renew(ctx, a); err != nil {
		return err
	}
	return p.keep(ctx, a)
}

// leave has the workers that are going to die while the server is away renew their leases for the last time that it hears.
func (p *player) leave(ctx context.Context) error {
	all := slices.Clone(p.busy.order)
	slices.SortFunc(all, func(a, b *attempt) int { return a.order - b.order })
	for _, a := range all {
		if a.crashes() && a.renews != never {
			if err := p.renew(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *attempt) crashes() bool {
	return a.outcome.Crashes && !a.timeout && !a.stopped && a.task.Failure == nil
}

// attend does what is due for an attempt.
func (p *player) attend(ctx context.Context, a *attempt) error {
	over := a.ends <= p.now
	switch {
	case over && a.crashes():
		p.busy.remove(a) // nobody hears of it any more, until its lease is over
		p.ledger.died(a.claim.Run)
		return nil
	case !p.up():
		p.busy.moved(a, p.down) // the worker asks until the server is there again
		return nil
	case over:
		return p.finish(ctx, a)
	}
	if err := p.renew(ctx, a); err != nil {
		return err
	}
	return p.keep(ctx, a)
}

// renew renews the lease of an attempt, which hears of a cancel by it.
func (p *player) renew(ctx context.Context, a *attempt) error {
	var renewed worker.Renewed
	err := p.survive(ctx, func() (err error) {
		p.mail[a.pool].forget()
		renewed, err = p.remote.Renew(ctx, tenant, a.claim)
		return err
	})
	if errors.Is(err, worker.ErrFenced) {
		p.busy.remove(a)
		return nil
	}
	if err != nil {
		return fmt.Errorf("renew the lease of run %s: %w", a.claim.Run, err)
	}
	a.renewed = p.now
	if renewed.Cancel && !a.stopped {
		a.stopped = true
		a.ends = p.now + wholeMilliseconds(a.outcome.StopsAfter).Milliseconds()
	}
	a.plan()
	p.busy.moved(a, min(a.ends, a.renews))
	return nil
}

// finish reports how an attempt ended.
func (p *player) finish(ctx context.Context, a *attempt) error {
	p.busy.remove(a)
	end, err := p.end(ctx, a)
	if err != nil {
		return err
	}
	err = p.survive(ctx, func() error {
		_, err := p.remote.Finish(ctx, tenant, a.claim, end)
		return err
	})
	if err != nil && !errors.Is(err, worker.ErrFenced) {
		return fmt.Errorf("finish run %s: %w", a.claim.Run, err)
	}
	if err == nil && end.Outcome == run.OutcomeFailed {
		switch {
		case a.claim.Run.IsStep():
			p.ledger.code(a.claim.Run, a.task.Attempt, end.Failure.Kind)
		case a.outcome.Fails && !a.timeout:
			p.ledger.code(a.claim.Run, a.task.Attempt, a.outcome.Code)
		}
	}
	return nil
}

// end says it as a worker does.
func (p *player) end(ctx context.Context, a *attempt) (worker.End, error) {
	failure := a.task.Failure
	switch {
	case failure != nil:
	case a.stopped:
		return worker.End{Outcome: run.OutcomeCancelled}, nil
	case a.timeout:
		failure = &target.Failure{Kind: target.KindTimeout, Message: "the attempt ran into its timeout"}
	case a.outcome.Fails:
		failure = target.Reported(failureKind(a.task.Target, a.outcome.Code), a.outcome.Error, a.outcome.Permanent, 0)
	default:
		return worker.End{Outcome: run.OutcomeSucceeded, Result: a.result()}, nil
	}
	if !p.drawn {
		wait, err := p.longestWait(ctx, a.claim.Run)
		if err != nil {
			return worker.End{}, err
		}
		failure.RetryAfter = wait
	}
	return worker.End{Outcome: run.OutcomeFailed, Failure: failure}, nil
}

// result is what the target of an attempt answers. What steps behind a program read is what that has written: text.
func (a *attempt) result() target.Result {
	var written string
	switch given := a.outcome.Result; {
	case !a.claim.Run.IsStep() || a.task.Target.Exec == nil:
		return target.Result{Body: given, ContentType: "application/json"}
	case json.Unmarshal(given, &written) == nil:
		return target.Result{Body: []byte(written)}
	default:
		return target.Result{Body: given}
	}
}

// failureKind is how a failure begins: with the code that the scenario gives it, or else as those of the target in general do.
func failureKind(spec target.Spec, code string) string {
	switch {
	case code != "":
		return code
	case spec.HTTP != nil:
		return target.KindHTTPStatus
	case spec.Exec != nil:
		return target.KindExit
	case spec.AWS != nil:
		return target.KindAWS
	case spec.Email != nil:
		return target.KindSMTP
	}
	return target.KindHandler
}

// longestWait is the upper bound of the wait behind the failure of a run's attempt.
func (p *player) longestWait(ctx context.Context, id run.ID) (time.Duration, error) {
	generation, failures := p.ledger.failures(id)
	edition, err := p.dispatch.EditionOf(ctx, run.Run{ID: id, Tenant: tenant, Generation: generation})
	if errors.Is(err, job.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, most := edition.Def.Retry.Wait(failures + 1)
	return wholeMilliseconds(most), nil
}
