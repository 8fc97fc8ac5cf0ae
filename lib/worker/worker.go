package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Config is what a Worker stands on. Fields without a default are required.
type Config struct {
	Dispatch *dispatch.Dispatcher
	Queue    string // the pool that it works for
	Targets  *target.Set
	Blobs    *blob.Bucket
	Metrics  *metrics.Registry
	Name     string       // names this process in leases, up to 100 bytes; unique over all starts of all workers
	Log      *slog.Logger // default: discards

	Concurrency int           // attempts at once. Default 50
	Grace       time.Duration // how long attempts may go on after the worker was told to stop. Default 20s
	MaxLog      int           // bytes kept of what one attempt logs. Default 256 KB
}

// Worker takes messages, starts runs under a lease, calls their targets and writes what came of it.
type Worker struct {
	Config
	queue    queue.Queue
	suspects chan struct{} // at most one run at a time whose next crash would be its last

	mu      sync.Mutex
	running map[string]*attempt // by tenant and run
	unsure  map[string]uint64   // by tenant and run: the fence of a start that may have been written and was not begun
}

// New checks the configuration.
func New(cfg Config) (*Worker, error) {
	if cfg.Dispatch == nil || cfg.Targets == nil || cfg.Blobs == nil || cfg.Metrics == nil || cfg.Name == "" {
		return nil, errors.New("worker: Dispatch, Targets, Blobs, Metrics and Name are required")
	}
	if len(cfg.Name) > longestName {
		return nil, fmt.Errorf("worker: a name of %d bytes, want at most %d: it stands in every running run", len(cfg.Name), longestName)
	}
	q := cfg.Dispatch.Queues[cfg.Queue]
	if q == nil {
		return nil, fmt.Errorf("worker: there is no queue %q", cfg.Queue)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 50
	}
	if cfg.Grace == 0 {
		cfg.Grace = 20 * time.Second
	}
	if cfg.MaxLog == 0 {
		cfg.MaxLog = 256 << 10
	}
	return &Worker{Config: cfg, queue: q, suspects: make(chan struct{}, 1), running: map[string]*attempt{}, unsure: map[string]uint64{}}, nil
}

// longestName bounds a worker's name.
const longestName = 100

// longPoll is how long one receive waits: long enough that an idle worker costs next to nothing.
const longPoll = 20 * time.Second

// Run works until ctx ends, then drains: it takes nothing more, hands back what has not started, lets attempts go on for the
// grace, and then stops and hands back what is left. It returns when nothing of it is under way any more.
func (w *Worker) Run(ctx context.Context) error {
	// Attempts outlive ctx by the grace, so they are not its children.
	attempts, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	slots := make(chan struct{}, w.Concurrency)
	var under sync.WaitGroup
	failures := 0
	for ctx.Err() == nil {
		free, err := w.reserve(ctx, slots)
		if err != nil {
			break
		}
		messages, err := w.queue.Receive(ctx, free, longPoll, w.Dispatch.Lease)
		if err != nil && ctx.Err() == nil {
			failures++
			w.Log.Error("the queue gives nothing", "queue", w.Queue, "error", err)
			w.sleep(ctx, min(time.Second<<min(failures, 5), 30*time.Second))
		} else {
			failures = 0
		}
		for range free - len(messages) {
			<-slots
		}
		for _, m := range messages {
			under.Go(func() {
				defer func() { <-slots }()
				w.deliver(ctx, attempts, m)
			})
		}
	}
	done := make(chan struct{})
	go func() { under.Wait(); close(done) }()
	grace := time.NewTimer(w.Grace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		w.Log.Warn("the grace is over: attempts are stopped and handed back", "attempts", len(slots))
		stop(errStopped)
		<-done // bounded by the targets' own grace and the time-outs of the writes
	}
	return nil
}

// reserve takes slots: one at least, up to a batch.
func (w *Worker) reserve(ctx context.Context, slots chan struct{}) (int, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for n := 1; n < queue.MaxBatch; n++ {
		select {
		case slots <- struct{}{}:
		default:
			return n, nil
		}
	}
	return queue.MaxBatch, nil
}

func (w *Worker) sleep(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// deliver handles one message and carries its verdict out. What cannot be carried out is harmless: the message comes again,
// and finds the run further on.
func (w *Worker) deliver(taking, attempts context.Context, m queue.Message) {
	verdict := w.Handle(taking, attempts, m)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(attempts), 10*time.Second)
	defer cancel()
	var errs []error
	var err error
	if verdict.Delete {
		errs, err = w.queue.Delete(ctx, m)
	} else {
		errs, err = w.queue.Extend(ctx, min(verdict.Again, queue.MaxVisibility), m)
	}
	if err = errors.Join(append(errs, err)...); err != nil && !errors.Is(err, queue.ErrClosed) {
		w.Log.Warn("a message was not settled", "error", err)
	}
}

func nameOf(r run.Run) string { return r.Tenant + "#" + r.ID.String() }

// register tells others in this process of an attempt, until the function that it gives is called. A run may have two here, an
// old one that was frozen past its lease and its successor.
func (w *Worker) register(a *attempt) (end func()) {
	name := nameOf(a.started)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[name] = a
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.running[name] == a {
			delete(w.running, name)
		}
	}
}

// maxUnsure bounds what is remembered of starts whose answer was lost; what is forgotten waits for its lease.
const maxUnsure = 1000

// notBegun remembers that the start of a run may have been written, and that its target was not called.
func (w *Worker) notBegun(r run.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unsure) >= maxUnsure {
		clear(w.unsure)
	}
	w.unsure[nameOf(r)] = r.Version + 1
}

// ownership is what this process knows of the attempt that holds a run.
type ownership uint8

const (
	unknown ownership = iota // another's, or of an earlier life
	under                    // ours, and under way
	never                    // ours, and never begun
)

func (w *Worker) own(r run.Run) ownership {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := nameOf(r)
	if a := w.running[name]; a != nil && a.started.Fence == r.Fence {
		return under
	}
	if fence, ok := w.unsure[name]; ok && fence == r.Fence && r.Worker == w.Name {
		delete(w.unsure, name)
		return never
	}
	return unknown
}

// Cancelled is a hint that a cancel was asked for: the attempt renews its lease at once, and so hears of it.
func (w *Worker) Cancelled(tenant string, id run.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.running[tenant+"#"+id.String()]; a != nil {
		select {
		case a.poke <- struct{}{}:
		default:
		}
	}
}

// Running counts the attempts under way.
func (w *Worker) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}
