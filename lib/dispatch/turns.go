package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// What expressions read, hold and take of a process is bounded here. All of it is handed out to tenants in turns, so that none waits for all that another wants.

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

	// longWait is for how long an evaluation waits before the log says so, which it does once in each of tellWaits.
	longWait  = 10 * time.Second
	tellWaits = time.Minute
)

// evaluating is the room for evaluations in a process. Each text is a turn of its own.
type evaluating struct {
	turns, playing  *room.Room // of runs, and of simulations
	readers, inputs *room.Room

	mu   sync.Mutex
	slow map[store.Key]int // how often what becomes of a node has taken too long
	told time.Duration     // when the log said that one waits, by Elapsed; 0: never
}

func newEvaluating() evaluating {
	return evaluating{turns: room.Of(evaluations), playing: room.Of(1), readers: room.Of(blobReaders), inputs: room.Of(largeInputs), slow: map[store.Key]int{}}
}

// ErrSlow says that an evaluation was cut off.
var ErrSlow = fmt.Errorf("expressions took longer than %s: %w", evaluationTime, context.DeadlineExceeded)

// ErrNoRoom says that others took all the room there is, for as long as the caller would wait. It has evaluated nothing.
var ErrNoRoom = errors.New("no room for it at once")

// Evaluating has f evaluate expressions of a run, or of a step, when there is room for that, with a context that ends when it has taken too long. Then its error is
// ErrSlow, which is a context.DeadlineExceeded.
func (d *Dispatcher) Evaluating(ctx context.Context, tenant string, of run.ID, f func(context.Context) error) error {
	turn := d.evaluations.turns.Place(tenant)
	if turn.Try() {
		d.Metrics.ExpressionWait.Observe(0)
		return withTurn(ctx, turn, f)
	}
	since := d.Elapsed()
	long := time.AfterFunc(longWait, func() {
		if d.evaluations.tellsWait(d.Elapsed()) {
			d.Log.WarnContext(ctx, "expressions of a run wait for their turn, as those of others may", "tenant", tenant, "run", of.String(), "for", longWait)
		}
	})
	defer long.Stop()
	return withTurn(ctx, turn, func(ctx context.Context) error {
		long.Stop()
		d.Metrics.ExpressionWait.Observe(d.Elapsed() - since)
		return f(ctx)
	})
}

// Simulating is Evaluating for what anybody of a tenant may ask for who may read: with a turn of its own, so that no run waits for it.
func (d *Dispatcher) Simulating(ctx context.Context, tenant string, f func(context.Context) error) error {
	return withTurn(ctx, d.evaluations.playing.Place(tenant), f)
}

func withTurn(ctx context.Context, turn *room.Place, f func(context.Context) error) error {
	if err := turn.Take(ctx); err != nil {
		return fmt.Errorf("wait for room for an evaluation: %w: %w", ErrNoRoom, err)
	}
	defer turn.Give()
	within, cancel := context.WithTimeoutCause(ctx, evaluationTime, ErrSlow)
	defer cancel()
	err := f(within)
	if err != nil && errors.Is(context.Cause(within), ErrSlow) && errors.Is(err, context.DeadlineExceeded) {
		return ErrSlow
	}
	return err
}

// tellsWait tells whether the log is to say that an evaluation waits: one speaks for all.
func (e *evaluating) tellsWait(now time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told != 0 && now-e.told < tellWaits {
		return false
	}
	e.told = now
	return true
}

// InputRoom is for an attempt of a tenant that is to be handed its input in this process. Whoever has made the attempt gives it back when that is over.
func (d *Dispatcher) InputRoom(tenant string) *room.Place { return d.evaluations.inputs.Place(tenant) }

// takeWithin waits for room, for so long at the most: who waits longer lets others go before him, and comes again.
func takeWithin(ctx context.Context, of *room.Place, most time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := of.Take(waiting); err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return nil
}

// evaluate has f evaluate a text of the run, which says what becomes of a node, or is its output where that is nil. It tells what fails of itself, and would again,
// from all else.
func (r *reading) evaluate(n *flow.Node, f func(*flow.Evaluation) error) (failed *target.Failure, err error) {
	defer r.blobs.Give()
	of := "the output of the run"
	if r.at = r.head.ID; n != nil {
		of, r.at = "step "+n.Path, r.head.ID.At(n.Path)
	}
	var wrong *expression.Failure
	if err = f(r.texts); errors.As(err, &wrong) {
		return &target.Failure{Kind: target.KindExpression, Permanent: true, Message: wrong.Message}, nil
	}
	if r.once {
		return nil, err
	}
	if tries := r.evaluations.tried(r.at.Key(r.head.Tenant), errors.Is(err, ErrSlow)); tries >= evaluationTries {
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
