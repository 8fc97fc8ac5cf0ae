package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Host is what a benchmark is given by the program that runs it. All fields are required.
type Host struct {
	Folder  string               // to work in: empty, or absent
	Version string               // of this program
	Now     func() time.Time     // the clock of the scheduler
	Elapsed func() time.Duration // since some start, never stepped: all times are taken by it
	NewID   func() uint64        // random, never 0
	Random  io.Reader            // of secrets
	Log     *slog.Logger         // what the scheduler warns of

	// Tell begins to tell of a part of the work, of which total is how much there is. add counts what was done, end must be called.
	Tell func(what string, total int) (add func(n int), end func())
}

func (h Host) check() error {
	if h.Folder == "" || h.Now == nil || h.Elapsed == nil || h.NewID == nil || h.Random == nil || h.Log == nil || h.Tell == nil {
		return errors.New("bench: Folder, Now, Elapsed, NewID, Random, Log and Tell are required")
	}
	return nil
}

// in works in the folder, and leaves it as it was found.
func (h Host) in(work func() error) (err error) {
	if err := h.check(); err != nil {
		return err
	}
	entries, err := os.ReadDir(h.Folder)
	made := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !made:
		return fmt.Errorf("folder: %w", err)
	case len(entries) > 0:
		return invalid.Field("data", h.Folder, "a folder that is empty or not there: a benchmark measures nothing of yours, and removes what it wrote")
	}
	if err := os.MkdirAll(h.Folder, 0o700); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	defer func() {
		if made {
			err = errors.Join(err, os.RemoveAll(h.Folder))
			return
		}
		written, failed := os.ReadDir(h.Folder)
		err = errors.Join(err, failed)
		for _, entry := range written {
			err = errors.Join(err, os.RemoveAll(filepath.Join(h.Folder, entry.Name())))
		}
	}()
	return work()
}

func (h Host) path(name string) string { return filepath.Join(h.Folder, name) }

// tenant owns what benchmarks make, where they need but one.
const tenant = "default"

// rig is a scheduler under measurement.
type rig struct {
	host    Host
	folder  string
	data    *embed.Data
	node    *node.Node
	store   *counted
	metrics *metrics.Registry

	stop   context.CancelFunc // of the work; nil while nothing works
	worked chan error
}

// setup is how a rig differs from `belfry dev`.
type setup struct {
	workers  int
	room     int // messages that the queue holds of each priority; 0: as many as it does
	handlers *target.Registry
	elapsed  func() time.Duration // the scheduler's own; default: the host's
}

// open opens a scheduler in a folder below the host's. Nothing runs before start.
func (h Host) open(ctx context.Context, name string, s setup) (*rig, error) {
	r := &rig{host: h, folder: h.path(name), metrics: metrics.New()}
	targets, err := target.New(target.Config{Now: h.Now, Handlers: s.handlers})
	if err != nil {
		return nil, err
	}
	if r.data, err = embed.Open(ctx, r.folder, h.Log); err != nil {
		return nil, err
	}
	r.store = &counted{Engine: r.data.Store}
	r.data.Store = r.store
	if s.elapsed == nil {
		s.elapsed = h.Elapsed
	}
	waiting := local.Config{Now: h.Now}
	if s.room > local.DefaultCapacity {
		waiting.Capacity, waiting.Bytes = s.room, int64(s.room)*messageBytes
	}
	r.node, err = r.data.Node(ctx, node.Config{
		Targets: targets, Metrics: r.metrics, Now: h.Now, Elapsed: s.elapsed, NewID: h.NewID, Log: h.Log, Concurrency: s.workers,
		Queues: map[string]queue.Queue{job.DefaultQueue: local.New(waiting)},
	})
	if err != nil {
		return nil, errors.Join(err, r.data.Close())
	}
	return r, nil
}

// messageBytes is more than a message of a benchmark's run has.
const messageBytes = 2 << 10

// start has ticks and workers begin.
func (r *rig) start(ctx context.Context) {
	working, stop := context.WithCancel(ctx)
	r.stop, r.worked = stop, make(chan error, 1)
	go func() { r.worked <- r.node.Run(working) }()
}

// rest has ticks and workers end what they are at.
func (r *rig) rest() error {
	if r.stop == nil {
		return nil
	}
	r.stop()
	r.stop = nil
	return <-r.worked
}

// close gives everything back. Of a rig that was not opened there is nothing.
func (r *rig) close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.rest(), r.data.Close())
}

// put stores a job without a schedule, whose handler is called as it is.
func (r *rig) put(ctx context.Context, name string, def job.Definition) error {
	_, _, err := r.node.Control.Put(ctx, tenant, name, def, anyMatch)
	return err
}

// limit defines a gate that jobs name.
func (r *rig) limit(ctx context.Context, n gate.Named) error {
	op, err := n.Put(r.host.NewID())
	if err != nil {
		return err
	}
	versions, err := r.node.Dispatch.Store.Write(ctx, op)
	if err != nil {
		return err
	}
	return r.node.Dispatch.Redefined(ctx, n.Written(versions[0]))
}

// ended waits until so many more runs have succeeded than had, and tells of it. A run that ends otherwise is an error.
func (r *rig) ended(ctx context.Context, had uint64, more int, add func(int)) error {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for told := 0; ; {
		done := int(r.metrics.Runs.Value("succeeded") - had)
		add(done - told)
		told = done
		if done >= more {
			return nil
		}
		for _, state := range []string{"failed", "cancelled", "skipped", "dead", "unknown"} {
			if n := r.metrics.Runs.Value(state); n > 0 {
				return fmt.Errorf("%d runs ended as %s", n, state)
			}
		}
		if err := r.wait(ctx, poll.C); err != nil {
			return err
		}
	}
}

// wait waits for a timer, or gives why there is nothing to wait for any more.
func (r *rig) wait(ctx context.Context, timer <-chan time.Time) error {
	select {
	case <-timer:
		return nil
	case <-r.data.Failed():
		return errors.New("the disk failed")
	case err := <-r.worked:
		r.worked <- err
		return errors.Join(errors.New("the scheduler ended unasked"), err, ctx.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mark is where a rig's counts stand at some moment.
type mark struct {
	at    time.Duration
	cpu   time.Duration
	calls Calls
	disk  pebble.Disk
}

func (r *rig) mark() mark { return mark{r.host.Elapsed(), processor(), r.store.calls(), r.data.Disk()} }

// processor is the time of processors that this process has taken, 0 where the system does not tell.
func processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Synced is what a part of a benchmark made durable, and what it took of the processors.
type Synced struct {
	Syncs    int64   `json:"syncs"`        // of the log; all that was acknowledged waited for one
	Ops      int64   `json:"ops"`          // of the store that they made durable
	PerSync  float64 `json:"ops_per_sync"` // the size of a group that one sync serves
	PerRun   float64 `json:"ops_per_run"`
	Bytes    int64   `json:"log_bytes"`
	BytesRun float64 `json:"log_bytes_per_run"`
	CPURun   float64 `json:"cpu_us_per_run"` // of this whole process; other work on the machine hardly changes it
}

func (m mark) synced(before mark, runs int) Synced {
	calls, disk := m.calls.Since(before.calls), m.disk.Since(before.disk)
	return Synced{Syncs: disk.Syncs, Ops: calls.Ops, PerSync: ratio(float64(calls.Ops), float64(disk.Syncs)), PerRun: ratio(float64(calls.Ops), float64(runs)),
		Bytes: disk.Bytes, BytesRun: ratio(float64(disk.Bytes), float64(runs)), CPURun: ratio(float64((m.cpu-before.cpu).Nanoseconds())/1000, float64(runs))}
}

// sizeOf is what the files below a folder take. One that goes while it looks does not count.
func sizeOf(folder string) (bytes int64, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil && !entry.IsDir() {
			if info, err = entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if path != folder && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return bytes, err
}
