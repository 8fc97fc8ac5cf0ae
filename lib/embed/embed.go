package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// ErrInUse says that another process, or another Process in this one, has the data folder.
var ErrInUse = errors.New("in use by another Belfry")

// Config says where the data is and what runs it. Fields without a default are required.
type Config struct {
	Data    string // the folder, made when it is not there; "" keeps everything in memory
	Targets *target.Set
	Now     func() time.Time
	Elapsed func() time.Duration // since some start, never stepped
	NewID   func() uint64        // random, never 0
	Log     *slog.Logger         // default: discards

	Lease       time.Duration   // of a run; default as node.Config
	Concurrency int             // attempts at once; default as node.Config
	Grace       time.Duration   // for attempts when the node is stopped; default as node.Config
	Hurry       <-chan struct{} // closed: the grace is over; default as node.Config
}

// Process is the parts of a scheduler, wired, with the data open.
type Process struct {
	Node    *node.Node
	Metrics *metrics.Registry
	Name    string // of this start, in leases and logs

	store  store.Store
	blobs  *blob.Bucket
	queues map[string]queue.Queue
	failed <-chan struct{}
}

// Open opens the data and wires the parts; nothing runs until Node.Run.
func Open(ctx context.Context, cfg Config) (_ *Process, err error) {
	if cfg.Targets == nil || cfg.Now == nil || cfg.Elapsed == nil || cfg.NewID == nil {
		return nil, errors.New("embed: Targets, Now, Elapsed and NewID are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	p := &Process{
		Metrics: metrics.New(),
		Name:    fmt.Sprintf("%.60s-%d-%x", host, os.Getpid(), uint32(cfg.NewID())),
		queues:  map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{Now: cfg.Now})},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	var running atomic.Pointer[node.Node]
	if cfg.Data == "" {
		err = p.openMemory(ctx, cfg)
	} else {
		err = p.openFolder(ctx, cfg, func() time.Time {
			// What has expired goes only behind the last sweep: after a long downtime nothing is cleaned up that no tick has read.
			if n := running.Load(); n != nil {
				return n.Swept()
			}
			return time.Unix(0, 0)
		})
	}
	if err != nil {
		return nil, err
	}
	if p.Node, err = node.New(ctx, node.Config{
		Store: p.store, Queues: p.queues, Blobs: p.blobs, Targets: cfg.Targets, Metrics: p.Metrics, Log: cfg.Log, Name: p.Name,
		Now: cfg.Now, Elapsed: cfg.Elapsed, NewID: cfg.NewID,
		Lease: cfg.Lease, Concurrency: cfg.Concurrency, Grace: cfg.Grace, Hurry: cfg.Hurry,
	}); err != nil {
		return nil, err
	}
	running.Store(p.Node)
	return p, nil
}

func (p *Process) openMemory(ctx context.Context, cfg Config) (err error) {
	p.store = memory.New(memory.Config{Now: cfg.Now})
	p.blobs, err = bloblocal.Open(ctx, "mem://")
	return err
}

func (p *Process) openFolder(ctx context.Context, cfg Config, swept func() time.Time) error {
	data, err := filepath.Abs(cfg.Data)
	if err != nil {
		return fmt.Errorf("data folder %s: %w", cfg.Data, err)
	}
	// The folder's lock is the store's, so the store comes first.
	opened, err := OpenStore(data, cfg.Log, swept)
	if err != nil {
		return err
	}
	p.store, p.failed = opened, opened.Failed()
	folder := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(data, "blobs"))}
	if p.blobs, err = bloblocal.Open(ctx, folder.String()); err != nil {
		return fmt.Errorf("data folder %s: %w", cfg.Data, err)
	}
	return nil
}

// StoreFolder is where the store of a data folder lies.
func StoreFolder(data string) string { return filepath.Join(data, "store") }

// OpenStore opens the store of a data folder, both made when they are not there. now is the clock that expiry goes by. An error
// that wraps ErrInUse says that somebody else has it.
func OpenStore(data string, log *slog.Logger, now func() time.Time) (*pebble.Store, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	opened, err := pebble.Open(pebble.Config{Dir: StoreFolder(data), Logger: log, Now: now})
	if errors.Is(err, pebble.ErrLocked) {
		return nil, fmt.Errorf("data folder %s is %w", data, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	return opened, nil
}

// Failed is closed when the disk has failed; memory never does.
func (p *Process) Failed() <-chan struct{} { return p.failed }

// Close gives the data back, when nothing uses it any more.
func (p *Process) Close() error {
	var errs []error
	for _, q := range p.queues {
		errs = append(errs, q.Close())
	}
	if p.blobs != nil {
		errs = append(errs, p.blobs.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}
