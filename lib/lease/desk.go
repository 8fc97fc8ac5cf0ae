package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// Config is what a Desk stands on. Fields without a default are required.
type Config struct {
	Dispatch *dispatch.Dispatcher
	Queue    string // the pool whose runs it hands out
	Blobs    *blob.Bucket
	Metrics  *metrics.Registry
	Name     string       // of the worker of this process, in its leases, up to LongestName bytes; unique over all starts of all workers
	Log      *slog.Logger // default: discards

	// From is where the pool's messages come from, and where what becomes of them is told. Default: the pool's own queue.
	From queue.Queue

	// MaxReceives is how often the queue hands out a message before it takes it away to its dead letters. Default: it never does.
	MaxReceives int
}

// Desk hands out the runs of a pool under leases, and takes back what came of them.
type Desk struct {
	Config
	polls bool // the pool's own queue, which others serve too
	ends  ends

	mu     sync.Mutex
	under  map[name]*Held  // the attempts of this process
	unsure map[name]uint64 // the fence of a start that may have been written and was not begun
}

var _ worker.Source = (*Desk)(nil)

// LongestName bounds a worker's name: it stands in every running run.
const LongestName = 100

// New checks the configuration.
func New(cfg Config) (*Desk, error) {
	if cfg.Dispatch == nil || cfg.Blobs == nil || cfg.Metrics == nil || cfg.Name == "" {
		return nil, errors.New("lease: Dispatch, Blobs, Metrics and Name are required")
	}
	if len(cfg.Name) > LongestName || IsRemote(cfg.Name) {
		return nil, fmt.Errorf("lease: the name %q, want at most %d bytes without %q: it stands in every running run", cfg.Name, LongestName, remoteMark)
	}
	if cfg.Dispatch.Queues[cfg.Queue] == nil {
		return nil, fmt.Errorf("lease: there is no queue %q", cfg.Queue)
	}
	polls := cfg.From == nil
	if polls {
		cfg.From = cfg.Dispatch.Queues[cfg.Queue]
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{Config: cfg, polls: polls, under: map[name]*Held{}, unsure: map[name]uint64{}}, nil
}

// Take receives messages and gives the runs among them that may be started now, or within a moment. What becomes of the others
// is settled.
func (d *Desk) Take(ctx context.Context, max int, wait time.Duration) ([]worker.Offer, error) {
	offers, err := d.take(ctx, max, wait, d.Dispatch.Lease)
	out := make([]worker.Offer, len(offers))
	for i, o := range offers {
		out[i] = o
	}
	return out, err
}

func (d *Desk) take(ctx context.Context, max int, wait, reserved time.Duration) ([]*Offer, error) {
	if d.polls {
		if err := d.fit(ctx); err != nil {
			return nil, err
		}
	}
	messages, err := d.From.Receive(ctx, max, wait, reserved)
	if err != nil {
		return nil, fmt.Errorf("queue %s gives nothing: %w", d.Queue, err)
	}
	looked := make([]*Offer, len(messages))
	var looks sync.WaitGroup
	now, _ := d.Dispatch.Clock() // without it nothing is started, which each look finds
	beside := looks.Go
	if len(messages) == 1 {
		beside = func(f func()) { f() } // there is nobody who would wait for it
	}
	for i, m := range messages {
		l := d.read(m)
		if !d.plain(&l, now) {
			beside(func() { d.ask(ctx, l, &looked[i]) })
			continue
		}
		var v verdict
		if looked[i], v = d.open(ctx, &l); looked[i] == nil {
			again := l.delivery
			beside(func() { again.settle(ctx, v) })
		}
	}
	looks.Wait()
	return slices.DeleteFunc(looked, func(o *Offer) bool { return o == nil }), nil
}

// ask opens a message; others may be opened meanwhile.
func (d *Desk) ask(ctx context.Context, l letter, offer **Offer) {
	if l.err == nil {
		ctx = l.run.Tell(ctx)
	}
	var v verdict
	if *offer, v = d.open(ctx, &l); *offer == nil {
		l.settle(ctx, v)
	}
}

// fit tells whether this host may start anything. One whose clock is off would only hold messages back from those that may, and wear
// them out: each taking counts as a delivery. What it last heard of the store's time may be old, if it has nothing else to ask: it asks.
func (d *Desk) fit(ctx context.Context) error {
	if _, err := d.Dispatch.Clock(); err == nil {
		return nil
	}
	if _, err := d.Dispatch.Store.Get(ctx, timer.LayoutKey); err != nil {
		return fmt.Errorf("ask the store for the time: %w", err)
	}
	_, err := d.Dispatch.Clock()
	return err
}

// verdict is what becomes of a message.
type verdict struct {
	done  bool          // nothing more to do for it
	again time.Duration // else: handed out again after this time
}

var (
	drop      = verdict{done: true}
	handBack  = verdict{}                        // to another worker, at once
	later     = verdict{again: 5 * time.Second}  // to another worker, or to the same when it can again
	elsewhere = verdict{again: 15 * time.Second} // to another worker, since this one cannot
	shortly   = verdict{again: 2 * time.Second}  // the store or the clock is unwell
)

// incapable is the verdict of a worker that cannot call the target: another is to try, soon at first, and then so that the message
// is still there when one comes that can, until the run's check sends the next. After that many deliveries it goes, so that
// messages do not add up.
func (m delivery) incapable() verdict {
	switch {
	case m.message.Receives >= offered, m.worn():
		return drop
	case m.message.Receives > 4:
		return verdict{again: 75 * time.Second}
	}
	return elsewhere
}

// name is a run's own among those of all tenants.
type name struct {
	tenant string
	id     run.ID
}

func nameOf(r *run.Run) name { return name{r.Tenant, r.ID} }

// maxUnsure bounds what is remembered of starts whose answer was lost; what is forgotten waits for its lease.
const maxUnsure = 1000

// notBegun remembers that the start of a run may have been written, and that its target was not called.
func (d *Desk) notBegun(r run.Run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unsure) >= maxUnsure {
		clear(d.unsure)
	}
	d.unsure[nameOf(&r)] = r.Version + 1
}

// register remembers an attempt of this process until it is closed. A run may have two here, an old one that was frozen past its
// lease and its successor.
func (d *Desk) register(h *Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.under[nameOf(h.started)] = h
}

func (d *Desk) forget(h *Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name := nameOf(h.started); d.under[name] == h {
		delete(d.under, name)
	}
}

// ownership is what this process knows of the attempt that holds a run.
type ownership uint8

const (
	unknown ownership = iota // another's, or of an earlier life
	under                    // ours, and under way
	never                    // ours, and never begun
)

func (d *Desk) own(r run.Run) ownership {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := nameOf(&r)
	if h := d.under[name]; h != nil && h.started.Fence == r.Fence {
		return under
	}
	if fence, ok := d.unsure[name]; ok && fence == r.Fence && r.Worker == d.Name {
		delete(d.unsure, name)
		return never
	}
	return unknown
}

// count adds the end of an attempt to the metrics. The end of its run was counted when it was written.
func count(to *metrics.Registry, r run.Run, outcome run.Outcome) {
	to.Attempts.Inc(outcome.String())
	if r.State == run.Retrying {
		to.Retries.Inc()
	}
}
