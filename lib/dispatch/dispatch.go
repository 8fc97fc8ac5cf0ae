package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Config is what a Dispatcher stands on. Fields without a default are required.
type Config struct {
	Store  store.Store
	Book   *job.Book
	Queues map[string]queue.Queue // the pools of workers, by name
	Owners map[string]string      // of pools that are one tenant's: by name, whose. All others are everybody's

	// Longest is the longest timeout that the workers of a pool can run, by name. Default: any that a job may have.
	Longest map[string]time.Duration

	Layout timer.Layout
	Now    func() time.Time
	NewID  func() uint64 // random, never 0

	// Elapsed is the time since some start, by a clock that is never stepped and goes on while the process is frozen.
	Elapsed func() time.Duration

	// Blobs hold results and payloads that expressions of workflows and keys read, and the outputs of workflows' runs. Default: none, where no workflow has
	// expressions and no key reads a payload that is kept apart.
	Blobs *blob.Bucket

	Log     *slog.Logger      // default: discards
	Metrics *metrics.Registry // default: new
	Tracer  *trace.Tracer     // default: traces nothing

	// Still tells that the clocks stand until they are set, as in a simulation. Then nobody waits in real time for what they are to show, or for
	// others that would come meanwhile.
	Still bool

	// LookAhead is how far beyond its clock a tick claims: more than the longest time between two ticks, so that a run is sent
	// before it is due. Default 2s.
	LookAhead time.Duration

	// CatchUpRate is how many missed fires are started a second at the most, by all ticks of the store together, which all have the same. Up to
	// MaxCatchUpRate; default DefaultCatchUpRate.
	CatchUpRate int

	// Lease is how long a worker holds a run without renewing; all hosts have the same. Default 30s.
	Lease time.Duration

	// Cancelled is told of runs under way that were ended or asked to stop, by whomever: a worker of this process stops at once then, and need not wait for its next
	// heartbeat. A hint: it may be lost. Default: nobody is told.
	Cancelled func(tenant string, id run.ID)

	// Callbacks are those of jobs that name none themselves; all hosts have the same. Default: none.
	Callbacks DefaultCallbacks

	// PauseJob pauses the job of runs that say that it is to be paused for them, all of one job, unless it was edited since their generations. The control plane
	// sets it before anything runs; without it such a job goes on, and its checks say so.
	PauseJob func(ctx context.Context, ended ...run.Run) error
}

// Dispatcher turns timers and requests into claimed and sent runs. It holds no state but caches; any number of processes may
// have one over the same store.
type Dispatcher struct {
	Config
	steady   steadiness
	entering entering
	lines    linesSeen
	ends     ends
	absent   absences

	evaluations evaluating

	fullMu    sync.Mutex
	fullUntil map[string]time.Time // by queue
}

// New checks the configuration.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil || cfg.Book == nil || len(cfg.Queues) == 0 || cfg.Now == nil || cfg.Elapsed == nil || cfg.NewID == nil {
		return nil, errors.New("dispatch: Store, Book, Queues, Now, Elapsed and NewID are required")
	}
	if !cfg.Layout.Valid() {
		return nil, fmt.Errorf("dispatch: a layout of %d shards, want a power of two up to %d", cfg.Layout.Shards, timer.Buckets)
	}
	if cfg.LookAhead == 0 {
		cfg.LookAhead = 2 * time.Second
	}
	if cfg.Lease == 0 {
		cfg.Lease = 30 * time.Second
	}
	if cfg.CatchUpRate == 0 {
		cfg.CatchUpRate = DefaultCatchUpRate
	}
	if cfg.CatchUpRate < 1 || cfg.CatchUpRate > MaxCatchUpRate {
		return nil, fmt.Errorf("dispatch: a catch-up rate of %d a second, want 1 to %d", cfg.CatchUpRate, MaxCatchUpRate)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Cancelled == nil {
		cfg.Cancelled = func(string, run.ID) {}
	}
	return &Dispatcher{Config: cfg, evaluations: newEvaluating(), entering: entering{at: map[gate.ID]*atGate{}}, lines: linesSeen{of: map[string]*valuesSeen{}}, ends: ends{of: map[store.Key][]*end{}}, fullUntil: map[string]time.Time{}}, nil
}

// Lateness is the protocol's stated assumption: no write lands later than this after it was sent.
const Lateness = 10 * time.Minute

// KnowsQueue tells whether there is a pool of that name for a tenant's jobs.
func (d *Dispatcher) KnowsQueue(tenant, name string) bool {
	owner := d.Owners[name]
	return d.Queues[name] != nil && (owner == "" || owner == tenant)
}

// Overlong tells that the workers of a pool cannot run a timeout, and the longest that they can.
func (d *Dispatcher) Overlong(queue string, timeout time.Duration) (longest time.Duration, over bool) {
	longest = d.Longest[queue]
	return longest, longest > 0 && timeout > longest
}

// tries is how often a write or send that was throttled, or whose outcome is unknown, is tried in one pass.
const tries = 4

// WriteEach does independent writes, however many, and tries those again that were throttled or whose outcome is unknown;
// their attempt IDs make the second try of what had happened a success. What still fails has its error in its verdict.
func (d *Dispatcher) WriteEach(ctx context.Context, ops []store.Op) ([]store.Verdict, error) {
	if len(ops) > store.MaxEach {
		verdicts := make([]store.Verdict, 0, len(ops))
		for some := range slices.Chunk(ops, store.MaxEach) {
			part, err := d.writeEach(ctx, some)
			if err != nil {
				return nil, err
			}
			verdicts = append(verdicts, part...)
		}
		return verdicts, nil
	}
	return d.writeEach(ctx, ops)
}

// writeEach is WriteEach for what one call takes.
func (d *Dispatcher) writeEach(ctx context.Context, ops []store.Op) ([]store.Verdict, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	verdicts, err := d.Store.WriteEach(ctx, ops...)
	if err != nil {
		return nil, err
	}
	for try := 1; try < tries; try++ {
		var again []int
		var some []store.Op
		for i := range verdicts {
			if passing(verdicts[i].Err) {
				again, some = append(again, i), append(some, ops[i])
			}
		}
		if len(again) == 0 {
			break
		}
		if err := d.pause(ctx, try); err != nil {
			return nil, err
		}
		results, err := d.Store.WriteEach(ctx, some...)
		if err != nil {
			return nil, err
		}
		for i, at := range again {
			if errors.Is(results[i].Err, store.ErrThrottled) && errors.Is(verdicts[at].Err, store.ErrUnknown) {
				results[i].Err = verdicts[at].Err // an earlier try may have been done
			}
			verdicts[at] = results[i]
		}
	}
	return verdicts, nil
}

// Write is all or nothing, and tried again as WriteEach does. A try whose outcome is unknown may have been done, and written over before
// the next one: then that one meets a conflict. Such an error is a *store.Conflict and store.ErrUnknown as well. Who decides anew on it
// may do a second time what was asked for once.
func (d *Dispatcher) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	return d.write(ctx, nil, ops)
}

// write is Write where the first try was made, and failed with that error; nil where none was.
func (d *Dispatcher) write(ctx context.Context, first error, ops []store.Op) ([]uint64, error) {
	var unknown error
	for try := 1; ; try++ {
		err := first
		if try > 1 || first == nil {
			var versions []uint64
			if versions, err = d.Store.Write(ctx, ops...); err == nil {
				return versions, nil
			}
		}
		if errors.Is(err, store.ErrUnknown) {
			unknown = err
		}
		if passing(err) && try < tries {
			if err = d.pause(ctx, try); err == nil {
				continue
			}
		}
		switch {
		case unknown == nil:
			return nil, err
		case passing(err): // also when it was throttled in the end: an earlier try was not
			return nil, unknown
		}
		return nil, errors.Join(unknown, err)
	}
}

func passing(err error) bool {
	return (errors.Is(err, store.ErrThrottled) || errors.Is(err, store.ErrUnknown)) && !errors.Is(err, store.ErrDamaged)
}

// unlessOvertaken is the error of a write, nil where another has written first what it was about: then nothing is left to do.
func unlessOvertaken(err error) error {
	if store.AsConflict(err) != nil {
		err = nil
	}
	return err
}

// pause waits before a further try: 25 ms, doubling, with full jitter.
func (d *Dispatcher) pause(ctx context.Context, try int) error {
	longest := 25 * time.Millisecond << min(try, 6)
	wait := time.NewTimer(time.Duration(d.NewID() % uint64(longest)))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
