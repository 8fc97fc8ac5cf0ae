package cost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	blobs "github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/emf"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// rig is a stack: a table, the queues of the pool default, and what the functions do when they are called.
type rig struct {
	*node.Node
	ctx     context.Context
	meter   *meter
	till    *till
	bucket  *blob.Bucket
	desk    lease.Config
	targets *target.Set
	began   time.Time
	batch   int // messages of an event
	events  int // invocations of the worker
	ticks   int // and of the tick
	fetched atomic.Int64
	logs    *logs
	flush   map[string]*emf.Emitter // of the functions, at the end of an invocation
}

// logs takes what the functions write, and keeps which metrics CloudWatch makes of it.
type logs struct {
	mu      sync.Mutex
	bytes   int
	metrics map[string]bool
}

func (l *logs) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(text) {
		l.bytes += len(line) + perEvent
		var found struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		members := map[string]any{}
		if json.Unmarshal(line, &found) != nil || json.Unmarshal(line, &members) != nil {
			continue
		}
		for _, directive := range found.AWS.CloudWatchMetrics {
			for _, names := range directive.Dimensions {
				for _, metric := range directive.Metrics {
					key := metric.Name
					for _, name := range names {
						key += fmt.Sprintf(" %s=%v", name, members[name])
					}
					l.metrics[key] = true
				}
			}
		}
	}
	return len(text), nil
}

// perEvent is what CloudWatch Logs adds to each event that it takes in.
const perEvent = 26

// visibility is the queues' in template.yaml: six times the worker's timeout, up to SQS's own limit.
const visibility = 90 * time.Minute

// newRig makes one in which handler is the target of every job. It belongs into a synctest bubble. over is the store, nil for one in memory.
func newRig(t *testing.T, over store.Store, batch int, handler target.Func) *rig {
	t.Helper()
	r := &rig{ctx: t.Context(), batch: batch, bucket: memblob.OpenBucket(nil), began: time.Now()}
	handlers := new(target.Registry)
	if err := handlers.Register("h", func(ctx context.Context, call target.Call) (target.Result, error) {
		if len(call.Payload) > run.MaxInline { // it was fetched for this attempt
			r.fetched.Add(1)
		}
		return handler(ctx, call)
	}); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	if over == nil {
		over = memory.New(memory.Config{})
	}
	r.targets = targets
	r.meter = newMeter(over, time.Now)
	r.till = &till{Queue: queuelocal.New(queuelocal.Config{Now: time.Now}), now: time.Now}
	bucket := blobs.New(r.bucket)
	r.logs = &logs{metrics: map[string]bool{}}
	log := slog.New(slog.NewJSONHandler(r.logs, nil))
	r.flush = map[string]*emf.Emitter{}
	registry := map[string]*metrics.Registry{}
	for _, function := range []string{"tick", "worker"} { // requests are counted as the tick's: they are in its process here
		registry[function] = metrics.New()
		if r.flush[function], err = emf.New(emf.Config{Registry: registry[function], Out: r.logs, Stack: "belfry", Now: time.Now}); err != nil {
			t.Fatal(err)
		}
	}
	if r.Node, err = node.New(r.ctx, node.Config{
		Store: r.meter, Queues: map[string]queue.Queue{"default": r.till}, Blobs: bucket, Targets: targets, Metrics: registry["tick"], Log: log,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(r.began) }, NewID: ids(), Name: "tick", Shared: true, NoTicks: true,
	}); err != nil {
		t.Fatal(err)
	}
	workers := r.Dispatch.Config
	workers.Metrics = registry["worker"]
	d, err := dispatch.New(workers)
	if err != nil {
		t.Fatal(err)
	}
	r.desk = lease.Config{Dispatch: d, Queue: "default", Blobs: bucket, Metrics: registry["worker"], Name: "worker", MaxReceives: 10, Log: log}
	return r
}

// ids are the same in every run of the test.
func ids() func() uint64 {
	var mu sync.Mutex
	source := rand.NewPCG(1, 2)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return max(1, source.Uint64())
	}
}

// minutes lets time pass: a tick in each minute, and an event for each batch of messages that are due. each is called at the end of a minute.
func (r *rig) minutes(n int, each func(minute int) error) error {
	for minute := range n {
		if err := r.tick(); err != nil {
			return err
		}
		for range 60 {
			if err := r.deliver(); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
		if each != nil {
			if err := each(minute); err != nil {
				return err
			}
		}
	}
	return nil
}

// tick is what one event of the schedule does: passes until nothing is left.
func (r *rig) tick() error {
	r.ticks++
	for {
		report, err := r.Ticker.Tick(r.ctx)
		if err != nil {
			return err
		}
		if !report.Behind {
			return r.flush["tick"].Flush()
		}
	}
}

// deliver has the worker called with what is due, one event after the other.
func (r *rig) deliver() error {
	for {
		e, err := r.till.receive(r.ctx, r.batch, visibility)
		if err != nil || e == nil {
			return err
		}
		r.events++
		desk := r.desk
		desk.From = e
		made, err := lease.New(desk)
		if err != nil {
			return err
		}
		w, err := worker.New(worker.Config{Source: made, Targets: r.targets, Elapsed: func() time.Duration { return time.Since(r.began) }, Log: desk.Log})
		if err != nil {
			return err
		}
		if err := w.Pass(r.ctx, 14*time.Minute); err != nil {
			return err
		}
		if err := errors.Join(e.end(r.ctx), r.flush["worker"].Flush()); err != nil {
			return err
		}
	}
}

// objects is how many blobs there are, and how many bytes for how many months, at 30 days each, they lie there: by the day in their keys.
func (r *rig) objects() (n int, byteMonths float64, err error) {
	for list := r.bucket.List(nil); ; n++ {
		object, err := list.Next(r.ctx)
		if errors.Is(err, io.EOF) {
			return n, byteMonths, nil
		} else if err != nil {
			return 0, 0, fmt.Errorf("list blobs: %w", err)
		}
		day, err := time.Parse(time.DateOnly, strings.Split(object.Key, "/")[1])
		if err != nil {
			return 0, 0, fmt.Errorf("blob %s: %w", object.Key, err)
		}
		byteMonths += float64(object.Size) * day.Sub(object.ModTime).Hours() / month.Hours()
	}
}
