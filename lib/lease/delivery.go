package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// delivery is one delivery of a message, to be settled once.
type delivery struct {
	message queue.Message
	queue   queue.Queue
	most    int // how often the queue hands a message out; 0: as often as it takes
	log     *slog.Logger
}

func (d *Desk) delivery(m queue.Message) delivery {
	return delivery{message: m, queue: d.From, most: d.MaxReceives, log: d.Log}
}

// worn tells that a queue which gives up what it has handed out too often is about to. What is kept for is that workers die of the run:
// each takes one delivery with it, and the last of them is to be counted by whoever comes after it.
func (m delivery) worn() bool {
	return m.most > 0 && m.message.Receives >= max(1, m.most-dispatch.MaxCrashes)
}

// settleWithin bounds what is asked of the queue for a message.
const settleWithin = 10 * time.Second

// settle carries a verdict out, within the bound that ctx has, or else within one of its own. What cannot be carried out is harmless: the
// message comes again, and finds the run further on.
func (m delivery) settle(ctx context.Context, v verdict) {
	if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
		defer cancel()
		ctx = within
	}
	if !v.done && m.worn() {
		// The queue counts deliveries, and a run may have many of them and be well: each retry is one. A fresh message is sent, and then
		// the old one deleted. A crash in between leaves both: one start wins, and the other message finds it and is dropped (P10). The
		// other way round, the run would wait for its check.
		if err := m.again(ctx, v.again); err != nil {
			m.log.WarnContext(ctx, "a message was not replaced that is handed out too often", "receives", m.message.Receives, "error", err)
		} else {
			v = drop
		}
	}
	var errs []error
	var err error
	if v.done {
		errs, err = m.queue.Delete(ctx, m.message)
	} else {
		errs, err = m.queue.Extend(ctx, min(v.again, queue.MaxVisibility), m.message)
	}
	unsettled(ctx, m.log, errors.Join(append(errs, err)...))
}

// unsettled tells of a message that was not settled, unless err is nil.
func unsettled(ctx context.Context, log *slog.Logger, err error) {
	if err != nil && !errors.Is(err, queue.ErrClosed) {
		log.WarnContext(ctx, "a message was not settled", "error", err)
	}
}

// again sends the message's body as a new message. It is as old as it was, so that nothing goes round for longer than MessageLife.
func (m delivery) again(ctx context.Context, after time.Duration) error {
	message, err := run.DecodeMessage(m.message.Body)
	if err != nil {
		return fmt.Errorf("left to the queue's dead letters: %w", err) // nobody here can tell how old it is
	}
	return resend(ctx, m.queue, m.message.Priority, message, after)
}

// resend puts a message into a queue.
func resend(ctx context.Context, q queue.Queue, p queue.Priority, message run.Message, after time.Duration) error {
	body, err := message.Encode()
	if err != nil {
		return err
	}
	errs, err := q.Send(ctx, p, queue.Outgoing{Body: body, Delay: min(max(after, 0), queue.MaxDelay), Group: message.Run.Tenant,
		Trace: message.Run.Trace, Fence: message.Run.Version + 1})
	return errors.Join(append(errs, err)...)
}
