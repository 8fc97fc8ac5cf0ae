package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	storefaulty "github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Faults. Each hits the first attempt.
const (
	faultNone   = "none"
	faultTwice  = "message_twice" // the queue has the message twice
	faultBefore = "dies_before"   // the worker dies before it calls the target
	faultAfter  = "dies_after"    // the worker dies after the effect, and before the target's answer
	faultAnswer = "answer_lost"   // the target's answer is lost
	faultWrite  = "write_lost"    // the store writes the end of the attempt, and its answer is lost
	faultZombie = "zombie"        // the worker stands still before its call, until another worker has made its own
	faultFirst  = "zombie_first"  // the worker stands still until another has taken over, and makes its call before that one does
	faultClocks = "clocks_jump"   // the clocks of all hosts jump ahead during the attempt, and its message comes again
)

// Guards: what the target heeds.
const (
	guardNone  = "none"
	guardKey   = "key"
	guardFence = "fence"
	guardBoth  = "both"
)

// Places of events, beside the workers' own.
const (
	laneScheduler = "scheduler"
	laneStore     = "store"
	laneQueue     = "queue"
	laneTarget    = "target"
)

// Events beside those of messages and workers in events.go, and the states of the run's record.
const (
	eventTimer      = "timer_set"
	eventRenewed    = "renewed"
	eventAgain      = "written_again"
	eventWriteLost  = "write_lost"
	eventCalled     = "called"
	eventEffect     = "effect"
	eventRepeated   = "repeated" // the target answers a call under a key under which it has had its effect
	eventStale      = "stale"    // the target refuses a call with an older fence than it has seen
	eventAnswered   = "answered"
	eventAnswerLost = "answer_lost"
	eventRefused    = "refused" // Belfry refuses a worker
	eventFroze      = "worker_froze"
	eventWoke       = "worker_woke"
	eventClockSet   = "clock_set"
)

// Values of the fields of a question. The first of each is the default.
var (
	OnceGuarantees = []string{string(job.AtLeastOnce), string(job.AtMostOnce)}
	OnceFaults     = []string{faultNone, faultTwice, faultBefore, faultAfter, faultAnswer, faultWrite, faultZombie, faultFirst, faultClocks}
	OnceGuards     = []string{guardNone, guardKey, guardFence, guardBoth}
)

// Times and bounds of a demonstration. Most attempts end before they renew their lease for the first time, after a third of it.
const (
	onceCalls   = time.Second                           // from the start of an attempt to its call
	onceBreaks  = time.Second                           // from the call to the death of the worker, with dies_after
	onceAnswers = 2 * time.Second                       // from the call to its answer
	onceWorks   = 20 * time.Second                      // the same, with clocks_jump, and of a zombie's successor: the answer comes after the jump, or after the zombie's call
	onceTimeout = 10 * time.Second                      // of an attempt
	onceRetries = 2 * time.Second                       // from a failure to the next attempt
	onceSleeps  = 45 * time.Second                      // how long a zombie stands still: beyond the end of its lease, until its successor has called and waits for the answer
	onceFirst   = 29*time.Second + 500*time.Millisecond // the same with zombie_first: until its successor has started, and has not called
	onceJumps   = time.Hour                             // how far the clocks jump
	onceJumpsIn = 7 * time.Second                       // from the call to the jump: before the lease is renewed
	onceAgain   = time.Second                           // from the jump until the queue has the message again, so that a worker looks at the lease
	onceLasts   = time.Hour                             // at most, in virtual time
	onceRounds  = 1000                                  // at most; a round is what is done at an instant before the next look at what is due
	onceEvents  = 500                                   // at most
)

// onceBegins is when a demonstration begins, by the clocks of its hosts.
var onceBegins = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// once plays one demonstration: the scheduler of a house, two workers that follow a script, and a payment service that counts.
type once struct {
	*player
	question wire.OnceQuestion
	plan     wire.OncePlan
	service  service
	workers  []*hand

	doer     string                      // the place of whoever does what is noted next
	last     run.Run                     // as it was written last
	sent     int                         // messages that were sent
	live     int                         // messages that were sent and not deleted
	letter   func(context.Context) error // has the queue make the first message again; nil before that was sent
	settled  bool                        // a message was deleted after the run had ended
	jumped   bool                        // the clocks have jumped
	lost     bool                        // the answer of a write was lost
	losing   bool                        // the answer of the write under way is about to be lost
	renewing bool                        // a lease is being renewed
	doubling bool                        // the queue is making a message again
	actions  []action                    // to be done, in their order
	order    int                         // of the newest action
	rounds   int                         // so far, at all instants
}

// errEndless ends a demonstration that goes on and on: the scheduler has a bug, or its script has.
var errEndless = errors.New("the demonstration does not end")

// action is what somebody does at an instant.
type action struct {
	at    int64 // Unix ms, as they pass
	order int
	do    func(context.Context) error
}

// onceRows are the outcomes of all questions, which are always the same. They are played once in a process, whoever asks first: each of them is bounded.
var onceRows = sync.OnceValues(func() ([]wire.OnceRow, error) {
	var rows []wire.OnceRow
	for _, guarantee := range OnceGuarantees {
		for _, fault := range OnceFaults {
			for _, guard := range OnceGuards {
				q := wire.OnceQuestion{Guarantee: guarantee, Fault: fault, Guard: guard}
				made, err := playOnce(context.Background(), q)
				if err != nil {
					return nil, err
				}
				rows = append(rows, wire.OnceRow{Question: q, Outcome: made.Outcome})
			}
		}
	}
	return rows, nil
})

// DemonstrateOnce plays one run to which something goes wrong, and has the outcomes of all other questions beside it. The error joins an *invalid.Error for each
// field that is wrong; or it is that of the context, or of a demonstration that went wrong by itself. The same question has the same answer.
func DemonstrateOnce(ctx context.Context, q wire.OnceQuestion) (wire.OncePlan, error) {
	q.Guarantee, q.Fault, q.Guard = cmp.Or(q.Guarantee, OnceGuarantees[0]), cmp.Or(q.Fault, OnceFaults[0]), cmp.Or(q.Guard, OnceGuards[0])
	var wrong []error
	for _, f := range []struct {
		name, got string
		want      []string
	}{{"guarantee", q.Guarantee, OnceGuarantees}, {"fault", q.Fault, OnceFaults}, {"guard", q.Guard, OnceGuards}} {
		if !slices.Contains(f.want, f.got) {
			wrong = append(wrong, invalid.Field(f.name, f.got, "one of "+strings.Join(f.want, ", ")))
		}
	}
	if len(wrong) > 0 {
		return wire.OncePlan{}, errors.Join(wrong...)
	}
	made, err := playOnce(ctx, q)
	if err != nil {
		return wire.OncePlan{}, err
	}
	rows, err := onceRows()
	if err != nil {
		return wire.OncePlan{}, err
	}
	made.Compare = slices.Clone(rows)
	return made, nil
}

// playOnce plays one question that was checked.
func playOnce(ctx context.Context, q wire.OnceQuestion) (wire.OncePlan, error) {
	o := stageOnce(q)
	if err := o.run(ctx, o.between()); err != nil {
		return wire.OncePlan{}, fmt.Errorf("demonstrate %s, %s, %s: %w", q.Guarantee, q.Fault, q.Guard, err)
	}
	o.plan.Outcome.State = o.last.State.String()
	o.plan.Outcome.Calls, o.plan.Outcome.Effects, o.plan.Outcome.RepeatedCalls, o.plan.Outcome.RefusedCalls = o.service.calls, o.service.effects, o.service.repeated, o.service.refused
	if n := len(o.plan.Events); n > 0 {
		o.plan.Lasts = o.plan.Events[n-1].At
	}
	o.plan.Says = says(o.plan)
	return o.plan, nil
}

// stageOnce prepares the demonstration of a question, without its house.
func stageOnce(q wire.OnceQuestion) *once {
	timeout := onceTimeout
	if q.Fault == faultClocks || q.Fault == faultZombie {
		timeout += onceWorks
	}
	s := Scenario{Start: onceBegins, Workers: 2, Jobs: []Job{{Name: "invoice", Definition: job.Definition{
		Target: target.Spec{Handler: &target.Handler{Name: "pay"}}, Guarantee: job.Guarantee(q.Guarantee), Timeout: schedule.Duration(timeout),
		Retry: onceRetry(q),
	}}}}
	o := &once{question: q, plan: wire.OncePlan{Question: q, Events: []wire.OnceEvent{}}, service: service{guard: q.Guard, keys: map[string]bool{}, highest: map[string]uint64{}},
		workers: []*hand{{place: "worker_1"}, {place: "worker_2"}}, doer: laneScheduler}
	o.player = &player{scenario: s, now: s.Start.UnixMilli(), names: map[string]run.ID{}, as: map[run.ID]string{}, refused: []Refusal{}}
	o.busy.init()
	return o
}

// between are the faults of the question, and what looks on.
func (o *once) between() seams {
	return seams{store: o.faultyStore, queue: o.faultyQueue, wrote: o.wrote, message: o.message}
}

// run builds the house and plays until nothing more is to happen. The house is closed then.
func (o *once) run(ctx context.Context, between seams) (err error) {
	quiet := func(context.Context, run.ID) error { return nil } // these workers renew their leases themselves
	if o.house, err = build(ctx, o.scenario, nil, o.scenario.Start.Add(onceLasts), 0, quiet, between); err != nil {
		return err
	}
	defer o.close()
	if err := o.play(ctx); err != nil {
		return fmt.Errorf("at %s: %w", o.clock.Passed().Format(time.RFC3339), err)
	}
	return nil
}

// onceRetry waits for as long after each failure. At most once has none.
func onceRetry(q wire.OnceQuestion) job.Retry {
	if q.Guarantee == string(job.AtMostOnce) {
		return job.Retry{}
	}
	return job.Retry{MaxAttempts: 3, Initial: schedule.Duration(onceRetries), Factor: 1, Max: schedule.Duration(onceRetries)}
}

// faultyQueue has the first message of the run twice.
func (o *once) faultyQueue(q queue.Queue) queue.Queue {
	return queuefaulty.Wrap(q, queuefaulty.Hooks{Send: func(priority queue.Priority, m queue.Outgoing) queuefaulty.Fate {
		if o.letter == nil {
			o.letter = func(ctx context.Context) error {
				o.doubling = true
				errs, err := q.Send(ctx, priority, m)
				o.doubling = false
				return errors.Join(append(errs, err)...)
			}
		}
		return queuefaulty.Fate{Double: o.question.Fault == faultTwice && o.sent == 0}
	}})
}

// faultyStore does the first write that ends the run, and loses its answer.
func (o *once) faultyStore(s store.Store) store.Store {
	return storefaulty.New(s, func(_ context.Context, c storefaulty.Call) storefaulty.Fault {
		if o.question.Fault != faultWrite || o.lost || c.Method != storefaulty.Write && c.Method != storefaulty.WriteEach {
			return storefaulty.Fault{}
		}
		for i := range c.Ops {
			if r, ok := recordOf(&c.Ops[i]); ok && r.State.Ended() {
				o.lost, o.losing = true, true
				return storefaulty.Fault{Lose: store.ErrUnknown}
			}
		}
		return storefaulty.Fault{}
	})
}

// play goes from one instant to the next, until nothing more is to happen to the run.
func (o *once) play(ctx context.Context) error {
	for _, l := range []Line{{Do: Put, Job: o.scenario.Jobs[0].Name, Definition: o.scenario.Jobs[0].Definition},
		{Do: Trigger, Triggers: []Triggered{{As: "invoice", Asked: control.Asked{Job: o.scenario.Jobs[0].Name}}}}} {
		if err := o.line(ctx, l); err != nil {
			return err
		}
	}
	if len(o.refused) > 0 {
		return errors.New(o.refused[0].Detail)
	}
	limit := o.now + onceLasts.Milliseconds()
	for {
		if err := o.instant(ctx); err != nil {
			return err
		}
		if o.over() {
			return nil
		}
		next := o.next()
		if next > limit {
			return fmt.Errorf("the run has not ended after %s: it is %s", schedule.Duration(onceLasts), o.last.State)
		}
		o.now = max(o.now, next)
		o.clock.Set(time.UnixMilli(o.now))
	}
}

// over tells whether the run has ended, and nobody has anything left to do with it.
func (o *once) over() bool {
	_, message := o.mail[0].Next()
	return o.last.State.Ended() && len(o.actions) == 0 && !message
}

// next is the next instant at which there is something to do, or never.
func (o *once) next() int64 {
	o.player.workers = 0
	for _, w := range o.workers {
		if w.idle() {
			o.player.workers++
		}
	}
	at := o.player.next()
	for _, a := range o.actions {
		at = min(at, a.at)
	}
	return at
}

// instant does all that is due at one: what workers and the target do, then what ticks find, then what idle workers take. Each round counts, over all
// instants: a scheduler that hands the same message out again and again would never come to the end of one.
func (o *once) instant(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.rounds++; o.rounds > onceRounds {
			return fmt.Errorf("%w: more than %d rounds", errEndless, onceRounds)
		}
		if len(o.plan.Events) > onceEvents {
			return fmt.Errorf("%w: more than %d events", errEndless, onceEvents)
		}
		if len(o.actions) > 0 && o.actions[0].at <= o.now {
			a := o.actions[0]
			o.actions = o.actions[1:]
			if err := a.do(ctx); err != nil {
				return err
			}
			continue
		}
		o.doer = laneScheduler
		made, err := o.pass(ctx)
		if err != nil {
			return err
		}
		if !made {
			o.fresh = time.Time{}
		}
		took, err := o.take(ctx)
		if err != nil {
			return err
		}
		if !made && !took {
			return nil
		}
	}
}

// after has something done a while later. What is due at one instant is done in the order in which it was asked for.
func (o *once) after(wait time.Duration, do func(context.Context) error) {
	o.order++
	o.actions = append(o.actions, action{at: o.now + wait.Milliseconds(), order: o.order, do: do})
	slices.SortFunc(o.actions, func(a, b action) int { return cmp.Or(cmp.Compare(a.at, b.at), a.order-b.order) })
}

// tell adds what happened. Its time is from when the run was asked for.
func (o *once) tell(e wire.OnceEvent) {
	e.At = o.clock.Passed().Sub(onceBegins).Seconds()
	o.plan.Events = append(o.plan.Events, e)
}
