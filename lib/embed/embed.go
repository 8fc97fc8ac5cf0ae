package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
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
)

// Data is what a scheduler keeps, open.
type Data struct {
	Store store.Engine
	Blobs *blob.Bucket

	disk   *pebble.Store // nil for memory
	queues map[string]queue.Queue
	node   atomic.Pointer[node.Node]
}

// Open opens a data folder, made when it is not there; "" keeps everything in memory. An error that wraps ErrInUse says that somebody
// else has the folder.
func Open(ctx context.Context, folder string, log *slog.Logger) (*Data, error) {
	d := new(Data)
	if folder == "" {
		d.Store = memory.New(memory.Config{Now: d.swept})
		var err error
		d.Blobs, err = bloblocal.Open(ctx, "mem://")
		return d, err
	}
	opened, err := OpenStore(folder, log, d.swept)
	if err != nil {
		return nil, err
	}
	d.Store, d.disk = opened, opened
	if d.Blobs, err = OpenBlobs(ctx, folder); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// swept is the clock that expiry goes by.
func (d *Data) swept() time.Time {
	if n := d.node.Load(); n != nil {
		return n.Swept()
	}
	return time.Unix(0, 0)
}

// Node wires a node over the data, once. It fills in Store and Blobs, and where they are left out one queue, Metrics, and a Name for
// this start.
func (d *Data) Node(ctx context.Context, cfg node.Config) (*node.Node, error) {
	if cfg.NewID == nil {
		return nil, errors.New("embed: NewID is required")
	}
	cfg.Store, cfg.Blobs, cfg.CleansBySwept, cfg.Damaged = d.Store, d.Blobs, true, d.Damaged
	if cfg.Queues == nil {
		cfg.Queues = map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{Now: cfg.Now})}
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	if cfg.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "host"
		}
		cfg.Name = fmt.Sprintf("%.60s-%d-%x", host, os.Getpid(), uint32(cfg.NewID()))
	}
	d.queues = cfg.Queues
	n, err := node.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	d.node.Store(n)
	return n, nil
}

// Failed is closed when the disk has failed; memory never does.
func (d *Data) Failed() <-chan struct{} {
	if d.disk == nil {
		return nil
	}
	return d.disk.Failed()
}

// Damaged names what reads have found damaged since the folder was opened, without the folder: files of the store, and the blobs as one,
// since their names say whose they are. None while all that was read was well.
func (d *Data) Damaged() []string {
	var found []string
	if d.disk != nil {
		for _, file := range d.disk.Damaged() {
			found = append(found, path.Join("store", file))
		}
	}
	switch n := d.Blobs.Damaged(); n {
	case 0:
	case 1:
		found = append(found, "blobs (1 file)")
	default:
		found = append(found, fmt.Sprintf("blobs (%d files)", n))
	}
	return found
}

// Disk tells what was synced so far; of memory nothing is.
func (d *Data) Disk() pebble.Disk {
	if d.disk == nil {
		return pebble.Disk{}
	}
	return d.disk.Disk()
}

// Expire deletes what has expired, without waiting for the next time that the disk's store does so; memory never waits.
func (d *Data) Expire(ctx context.Context) (deleted int, err error) {
	if d.disk == nil {
		return 0, nil
	}
	return d.disk.Expire(ctx)
}

// Close ends the queues of the node and gives the data back, when nothing uses them any more.
func (d *Data) Close() error {
	var errs []error
	for _, q := range d.queues {
		errs = append(errs, q.Close())
	}
	if d.Blobs != nil {
		errs = append(errs, d.Blobs.Close())
	}
	return errors.Join(append(errs, d.Store.Close())...)
}
