package sqs

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

const (
	// grace is how long a priority may take to answer before it counts as empty. Beyond it a lower one is asked, which then
	// may go first once.
	grace = 200 * time.Millisecond
	// hold is how long messages that came while nobody waited are kept for the next call, and fresh how long they may be given away
	// with what is left of their visibility.
	hold  = 2 * time.Second
	fresh = 250 * time.Millisecond
	// A priority that cannot be asked is left alone for about a second, and twice as long each time, up to longestRest.
	firstRest   = time.Second
	longestRest = 30 * time.Second
)

// lane is one priority: a queue of SQS.
type lane struct {
	q        *Queue
	priority queue.Priority
	name     string
	url      atomic.Pointer[string] // once it is known

	deletes, extends gathering

	// Under the queue's mu:
	poll *poll       // under way, nil for none
	held *held       // what the last one brought and nobody took yet, nil for nothing
	err  error       // why it can't be asked
	fell int         // how often in a row it couldn't
	rest *time.Timer // until it is asked again
}

// poll is a request for messages under way.
type poll struct {
	ripe   bool // it has taken so long that the queue counts as empty
	cancel context.CancelFunc
}

// held are messages that arrived.
type held struct {
	messages []queue.Message
	seconds  int32         // the visibility that they were asked for with
	stale    bool          // too much of it is over
	gone     chan struct{} // closed when all are taken
}

// announce tells those who wait that something is new. The caller holds mu.
func (q *Queue) announce() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Receive takes messages; see queue.Queue. An error of one priority is told when the others have nothing either.
func (q *Queue) Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckReceive(max, wait, visibility); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	over := wait == 0
	for {
		taken, changed, err := q.look(ctx, max, seconds(visibility), over)
		if len(taken) > 0 {
			if got := q.renew(ctx, taken, seconds(visibility)); len(got) > 0 {
				return got, nil
			}
			continue
		}
		if err != nil || changed == nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-timeout.C:
			over = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// portion is what one lane gave to a call.
type portion struct {
	lane     *lane
	messages []queue.Message
	stale    bool // their visibility is not what was asked for
}

// look takes what has arrived; or else sees to it that something is under way and gives what announces news; or gives neither where
// there is nothing to wait for.
func (q *Queue) look(ctx context.Context, max int, seconds int32, over bool) ([]portion, <-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, nil, queue.ErrClosed
	}
	if taken := q.take(max, seconds); len(taken) > 0 {
		q.turn = (q.turn + 1) % len(queue.Turns)
		return taken, nil, nil
	}
	empty := q.ask(ctx, max, seconds, over)
	failing, err := 0, error(nil)
	for _, l := range q.lanes {
		if l.err != nil {
			failing++
			err = cmp.Or(err, l.err)
		}
	}
	if over && empty || failing == len(q.lanes) {
		return nil, nil, err
	}
	return nil, q.changed, nil
}

// take takes what has arrived, the one whose turn it is first. The caller holds mu.
func (q *Queue) take(max int, seconds int32) []portion {
	var taken []portion
	from := func(l *lane) {
		h := l.held
		if h == nil || max == 0 {
			return
		}
		n := min(max, len(h.messages))
		taken = append(taken, portion{lane: l, messages: h.messages[:n], stale: h.stale || h.seconds != seconds})
		h.messages = h.messages[n:]
		max -= n
		if len(h.messages) == 0 {
			l.held = nil
			close(h.gone)
		}
	}
	from(q.lanes[queue.Turns[q.turn]])
	for _, l := range q.lanes {
		from(l)
	}
	return taken
}

// ask begins polls: of the one whose turn it is, and of each whose higher ones have nothing. It tells whether all count as empty.
// The caller holds mu.
func (q *Queue) ask(ctx context.Context, max int, seconds int32, over bool) bool {
	empty := true
	q.lanes[queue.Turns[q.turn]].begin(ctx, max, seconds)
	for _, l := range q.lanes {
		l.begin(ctx, max, seconds)
		if l.poll != nil && !l.poll.ripe {
			empty = false
			if !over {
				break
			}
		}
	}
	return empty
}

// begin begins a poll where there is none. The caller holds mu.
func (l *lane) begin(ctx context.Context, most int, seconds int32) {
	if l.poll != nil || l.held != nil || l.err != nil {
		return
	}
	// It serves whoever waits when it is answered, so it outlives the call that begins it. Its time is enough for one long poll, and
	// for a few tries of one that is refused at once.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.MaxWait+2*answering)
	p := &poll{cancel: cancel}
	if !l.q.spawn(func() { l.run(ctx, p, most, max(seconds, 1)) }) { // the SDK takes a visibility of 0 for none given
		cancel()
		return
	}
	l.poll = p
}

// run polls once, and keeps what it brings until it is taken or handed back.
func (l *lane) run(ctx context.Context, p *poll, max int, seconds int32) {
	q := l.q
	ripen := time.AfterFunc(grace, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		p.ripe = true
		q.announce()
	})
	defer p.cancel()
	messages, err := l.receive(ctx, max, seconds)
	ripen.Stop()

	h := &held{messages: messages, seconds: seconds, gone: make(chan struct{})}
	q.mu.Lock()
	l.poll = nil
	if len(messages) > 0 {
		l.held = h
	}
	if err == nil {
		l.fell = 0
	} else if !q.closed {
		l.fail(err)
	}
	q.announce()
	q.mu.Unlock()
	if len(messages) > 0 {
		l.keep(context.WithoutCancel(ctx), h)
	}
}

// fail leaves the lane alone for a while, somewhat different for each process. The caller holds mu.
func (l *lane) fail(err error) {
	long := min(firstRest<<min(l.fell, 10), longestRest)
	l.fell++
	l.err = err
	l.rest = time.AfterFunc(long/2+time.Duration(l.q.rand()*float64(long/2)), func() {
		l.q.mu.Lock()
		defer l.q.mu.Unlock()
		l.err = nil
		l.q.announce()
	})
}

// keep waits until messages are taken, and hands back what is not.
func (l *lane) keep(ctx context.Context, h *held) {
	wait := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-h.gone:
		case <-timer.C:
		case <-l.q.closing:
		}
	}
	wait(fresh)
	l.q.mu.Lock()
	h.stale = true
	l.q.mu.Unlock()
	wait(hold - fresh)
	l.q.mu.Lock()
	left := h.messages
	h.messages = nil
	if l.held == h {
		l.held = nil
	}
	l.q.mu.Unlock()
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	l.extendNow(ctx, changesOf(left, 0)) // what can't be handed back comes back when its visibility ends
}

// receive makes the request.
func (l *lane) receive(ctx context.Context, max int, seconds int32) ([]queue.Message, error) {
	url, err := l.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, l.q, queue.MaxWait+answering, func(ctx context.Context) (*sqs.ReceiveMessageOutput, error) {
		return l.q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:            url,
			MaxNumberOfMessages: int32(max),
			WaitTimeSeconds:     int32(queue.MaxWait / time.Second),
			VisibilityTimeout:   seconds,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{
				types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp},
		})
	})
	if err != nil {
		return nil, l.explain("ReceiveMessage", err)
	}
	messages := make([]queue.Message, len(out.Messages))
	for i, m := range out.Messages {
		messages[i] = Delivery(l.priority, aws.ToString(m.Body), aws.ToString(m.ReceiptHandle), m.Attributes)
	}
	return messages, nil
}

// Delivery is the message of a delivery by SQS, also where it came by an event source mapping: its body, its receipt handle, and its
// system attributes. A body that is not Belfry's is given as it is, for the worker to say so.
func Delivery(priority queue.Priority, body, receipt string, attributes map[string]string) queue.Message {
	m := queue.Message{Priority: priority, Receipt: receipt, Receives: 1}
	decoded, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		decoded = []byte(body)
	}
	m.Body = decoded
	if n, err := strconv.Atoi(attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err == nil && n > 0 {
		m.Receives = n
	}
	if ms, err := strconv.ParseInt(attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		m.Sent = time.UnixMilli(ms)
	}
	return m
}

// renew gives messages the visibility that was asked for, where they have another. A message for which that fails is not ours any
// more, or not for as long as the caller must be able to count on: it comes again.
func (q *Queue) renew(ctx context.Context, taken []portion, seconds int32) []queue.Message {
	var got []queue.Message
	for _, p := range taken {
		if !p.stale {
			got = append(got, p.messages...)
			continue
		}
		for i, err := range p.lane.extendNow(ctx, changesOf(p.messages, seconds)) {
			if err == nil {
				got = append(got, p.messages[i])
			}
		}
	}
	return got
}

func changesOf(messages []queue.Message, seconds int32) []change {
	changes := make([]change, len(messages))
	for i, m := range messages {
		changes[i] = change{receipt: m.Receipt, seconds: seconds}
	}
	return changes
}
