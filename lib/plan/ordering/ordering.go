// Package ordering plays made-up load through the queue of one process, in virtual time, and tells what becomes of each message: when it is sent,
// when it is ready, which worker takes it and in which order, and when its run has ended.
//
// The queue is the real one, lib/queue/local: what is told of the order is what it did. It has no ageing by how long a message has waited. What
// keeps low priority from starving are the turns of queue.Turns, and each message that is taken says which priority had the turn. A worker is a slot of
// a server's worker: it takes one message at a time.
//
// Left out are retries, leases, the time that a queue and a store take, and tenants, which take turns within a priority.
package ordering

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Bounds of what is played. They bound the answer: four events a message at most.
const (
	MostMessages = 1000
	MostWorkers  = 100
	longestMean  = time.Hour
)

// Usual is what a question has that says no more than how many workers there are and how many messages come.
var Usual = wire.OrderQuestion{Messages: 100, Delay: schedule.Duration(10 * time.Second),
	Service: queueing.Usual.Service, Seed: 1}

func settled(q wire.OrderQuestion) wire.OrderQuestion {
	q.Messages, q.Delay, q.Seed = cmp.Or(q.Messages, Usual.Messages), cmp.Or(q.Delay, Usual.Delay), cmp.Or(q.Seed, Usual.Seed)
	q.Service.Kind, q.Service.Mean = cmp.Or(q.Service.Kind, Usual.Service.Kind), cmp.Or(q.Service.Mean, Usual.Service.Mean)
	q.Shares[1] = max(0, 1-q.Shares[0]-q.Shares[2]) // 0.9 and 0.1 leave a little less than nothing
	return q
}

// slack is how far from another a number may be that is meant to be the same.
const slack = 1e-9

// check tells what is wrong with a settled question and what would be right, by the names that the API has: those of the flags of `belfry plan order`,
// with an underscore for a hyphen.
func check(q wire.OrderQuestion) error {
	var errs []error
	refuse := func(field, got, want string) { errs = append(errs, invalid.Field(field, got, want)) }
	whole := func(field string, n, most int) {
		if n < 1 || n > most {
			refuse(field, fmt.Sprint(n), fmt.Sprintf("1 to %d", most))
		}
	}
	whole("workers", q.Workers, MostWorkers)
	whole("messages", q.Messages, MostMessages)
	if !(q.Rate >= 0.001 && q.Rate <= 1_000_000) {
		refuse("arrivals", fmt.Sprint(q.Rate), "0.001 to 1M a second, such as 20 or 0.5")
	}
	share := func(field string, v float64) bool {
		ok := v >= 0 && v <= 1
		if !ok {
			refuse(field, fmt.Sprint(v), "a share from 0 to 1, such as 0.2")
		}
		return ok
	}
	share("delayed", q.Delayed)
	high, low := q.Shares[0], q.Shares[2]
	if first, last := share("high", high), share("low", low); first && last && high+low > 1+slack {
		refuse("high", fmt.Sprint(high), fmt.Sprintf("a share that with that of low, %g, is at most 1; what is left is normal", low))
	}
	if d := q.Delay.Std(); d <= 0 || d > queue.MaxDelay {
		refuse("longest_delay", q.Delay.String(), fmt.Sprintf("more than 0s and at most %s, as long as a queue can hold a message back", schedule.Duration(queue.MaxDelay)))
	}
	if err := queueing.CheckService(q.Service); err != nil {
		errs = append(errs, err)
	} else if q.Service.Mean.Std() > longestMean {
		refuse("duration", q.Service.Mean.String(), "more than 0s and at most "+schedule.Duration(longestMean).String())
	}
	return errors.Join(errs...)
}

// event is what becomes due at an instant: a message that is ready, or a run that ends.
type event struct {
	at     time.Duration
	number int // of the message
	worker int
	taken  queue.Message
}

// events come by their instants, and of one instant by the number of the message, as in the queue.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// due tells whether the first of them is due.
func (e events) due(now time.Duration) bool { return len(e) > 0 && e[0].at <= now }

// player is a play under way. Instants are durations from its beginning.
type player struct {
	wire.OrderPlan
	queue *local.Queue
	now   time.Duration

	next     time.Duration // when the next message is sent
	sent     int
	gaps     *rand.Rand
	choices  *rand.Rand
	duration func() float64

	ready []time.Duration // when each message was, by its number
	away  events          // messages that are delayed
	under events          // runs
	busy  []bool          // whether each worker has a run under way
	takes int
}

// Play plays made-up load until the last run has ended. The error joins an *invalid.Error for each field that is wrong, named as the API names it; or
// it is that of the context. The same question has the same answer.
func Play(ctx context.Context, q wire.OrderQuestion) (wire.OrderPlan, error) {
	q = settled(q)
	if err := check(q); err != nil {
		return wire.OrderPlan{}, err
	}
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(q.Seed, n)) }
	p := &player{gaps: stream(2), choices: stream(3), duration: queueing.Draw(q.Service, stream(1)), ready: make([]time.Duration, q.Messages+1), busy: make([]bool, q.Workers)}
	p.Question, p.Events = q, make([]wire.OrderEvent, 0, 4*q.Messages)
	origin := time.Unix(0, 0)
	p.queue = local.New(local.Config{Now: func() time.Time { return origin.Add(p.now) }, Capacity: q.Messages})
	p.next = p.gap()
	for {
		if err := p.step(ctx); errors.Is(err, errOver) {
			break
		} else if err != nil {
			return wire.OrderPlan{}, err
		}
	}
	p.Lasts = p.now.Seconds()
	for i := range p.Ranks {
		if w := &p.Ranks[i]; w.Messages > 0 {
			w.Mean /= float64(w.Messages)
		}
	}
	return p.OrderPlan, p.queue.Close()
}

// errOver ends a play: nothing is left to happen.
var errOver = errors.New("over")

func (p *player) gap() time.Duration { return seconds(p.gaps.ExpFloat64() / p.Question.Rate) }

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// step goes to the next instant. What ends then comes first, then what is ready, then what is sent: who becomes free at an instant may take what comes at it.
func (p *player) step(ctx context.Context) error {
	at := time.Duration(-1)
	for _, e := range []events{p.away, p.under} {
		if len(e) > 0 && (at < 0 || e[0].at < at) {
			at = e[0].at
		}
	}
	if p.sent < p.Question.Messages && (at < 0 || p.next < at) {
		at = p.next
	}
	if at < 0 {
		return errOver
	}
	p.now = at
	for p.under.due(at) {
		e := heap.Pop(&p.under).(event)
		if errs, err := p.queue.Delete(ctx, e.taken); errors.Join(append(errs, err)...) != nil {
			return errors.Join(append(errs, err)...)
		}
		p.busy[e.worker] = false
		p.tell(e.number, e.taken.Priority, wire.OrderEvent{Event: wire.OrderEnded, Worker: e.worker + 1})
	}
	for p.away.due(at) {
		e := heap.Pop(&p.away).(event)
		p.tell(e.number, e.taken.Priority, wire.OrderEvent{Event: wire.OrderReady})
	}
	for p.sent < p.Question.Messages && p.next <= at {
		if err := p.send(ctx); err != nil {
			return err
		}
		p.next = at + p.gap()
	}
	return p.serve(ctx)
}

func (p *player) tell(number int, priority queue.Priority, e wire.OrderEvent) {
	e.At, e.Message, e.Priority = p.now.Seconds(), number, string(priority)
	p.Events = append(p.Events, e)
}

func (p *player) send(ctx context.Context) error {
	q := p.Question
	p.sent++
	priority := queue.Normal
	switch v := p.choices.Float64(); {
	case v < q.Shares[0]:
		priority = queue.High
	case v >= 1-q.Shares[2]:
		priority = queue.Low
	}
	var delay time.Duration
	if p.choices.Float64() < q.Delayed {
		delay = max(1, seconds(p.choices.Float64()*q.Delay.Std().Seconds()))
	}
	errs, err := p.queue.Send(ctx, priority, queue.Outgoing{Body: []byte(strconv.Itoa(p.sent)), Delay: delay})
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	e := wire.OrderEvent{Event: wire.OrderSent}
	p.ready[p.sent] = p.now + delay
	if delay > 0 {
		due := p.ready[p.sent].Seconds()
		e.Due = &due
		heap.Push(&p.away, event{at: p.ready[p.sent], number: p.sent, taken: queue.Message{Priority: priority}})
	}
	p.tell(p.sent, priority, e)
	return nil
}

// serve has workers take what is ready, the first of those that are free first.
func (p *player) serve(ctx context.Context) error {
	for w := range p.busy {
		if p.busy[w] {
			continue
		}
		taken, err := p.queue.Receive(ctx, 1, 0, queue.MaxVisibility)
		if err != nil || len(taken) == 0 {
			return err
		}
		p.busy[w] = true
		for _, m := range taken {
			number, err := strconv.Atoi(string(m.Body))
			if err != nil {
				return err
			}
			turn := queue.Priorities[queue.Turns[p.takes%len(queue.Turns)]]
			p.takes++
			p.tell(number, m.Priority, wire.OrderEvent{Event: wire.OrderTaken, Worker: w + 1, Turn: string(turn)})
			waits, waited := &p.Ranks[m.Priority.Rank()], (p.now - p.ready[number]).Seconds()
			waits.Messages, waits.Mean, waits.Max = waits.Messages+1, waits.Mean+waited, max(waits.Max, waited)
			// A message stays taken for no longer than that: it would be handed out again.
			lasts := min(seconds(p.duration()), queue.MaxVisibility-time.Second)
			heap.Push(&p.under, event{at: p.now + max(1, lasts), number: number, worker: w, taken: m})
		}
	}
	return nil
}
