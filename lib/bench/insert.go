package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Ways in which runs are asked for.
const (
	ViaProcess = "process" // by a call in the same process, as a program that embeds Belfry makes it
	ViaHTTP    = "http"    // from the real API server on loopback, by the Go client
)

// Insert is how runs are inserted. All fields are required.
type Insert struct {
	For   time.Duration // how long each way is tried
	Batch int           // runs that are inserted at once, where it is more than one
}

// insertCallers are how many insert at once: one run each, and batches.
var (
	singleCallers = []int{1, 16, 64}
	batchCallers  = 4
)

func (i Insert) check() error {
	switch {
	case i.For < 50*time.Millisecond || i.For > time.Hour:
		return invalid.Field("for", i.For.String(), "50ms to 1h")
	case i.Batch < 2 || i.Batch > maxBatch:
		return invalid.Field("batch", strconv.Itoa(i.Batch), fmt.Sprintf("2 to %d", maxBatch))
	}
	return nil
}

// InsertReport is what came of it.
type InsertReport struct {
	Bench   string      `json:"bench"`
	Machine Machine     `json:"machine"`
	Rows    []InsertRow `json:"rows"`
	PeakRSS int64       `json:"peak_rss_bytes,omitempty"`
}

// InsertRow is one way of inserting. Its times are of one call, which has Batch runs, until its answer: durable.
type InsertRow struct {
	Via       string  `json:"via"`
	Callers   int     `json:"callers"`
	Batch     int     `json:"batch"`
	Runs      int     `json:"runs"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"` // runs
	Spread
	Synced Synced `json:"synced"`
}

// Run measures it.
func (i Insert) Run(ctx context.Context, h Host) (report InsertReport, err error) {
	if err := i.check(); err != nil {
		return report, err
	}
	report = InsertReport{Bench: "insert", Machine: MachineOf(h.Folder, h.Version)}
	err = h.in(func() (err error) {
		handlers, err := silent(insertJob)
		if err != nil {
			return err
		}
		// Nothing works meanwhile, as where a queue is filled by one process and worked off by another.
		r, err := h.open(ctx, "insert", setup{workers: 1, room: 1 << 30, handlers: handlers})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		if err := r.put(ctx, insertJob, onDemand(insertJob)); err != nil {
			return err
		}
		door, err := r.serve(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, door.close()) }()
		report.Rows, err = i.rows(ctx, r, door)
		_, report.PeakRSS = resident()
		return err
	})
	return report, err
}

const insertJob = "insert"

func (i Insert) rows(ctx context.Context, r *rig, door *door) (rows []InsertRow, err error) {
	ways := []struct {
		via string
		do  func(ctx context.Context, first, n int) error
	}{{ViaProcess, r.ask}, {ViaHTTP, door.ask}}
	add, end := r.host.Tell("inserting in several ways", len(ways)*(1+len(singleCallers)))
	defer end()
	for _, way := range ways {
		for _, callers := range append([]int{0}, singleCallers...) {
			row := InsertRow{Via: way.via, Callers: callers, Batch: 1}
			if callers == 0 {
				row.Callers, row.Batch = batchCallers, i.Batch
			}
			if err := row.measure(ctx, r, i.For, way.do); err != nil {
				return nil, fmt.Errorf("%s, %d callers: %w", way.via, row.Callers, err)
			}
			rows = append(rows, row)
			add(1)
		}
	}
	return rows, nil
}

func (row *InsertRow) measure(ctx context.Context, r *rig, most time.Duration, ask func(ctx context.Context, first, n int) error) error {
	var took times
	var runs atomic.Int64
	before := r.mark()
	group, ctx := errgroup.WithContext(ctx)
	for range row.Callers {
		group.Go(func() error {
			for began := r.host.Elapsed(); began-before.at < most; {
				if err := ask(ctx, int(runs.Add(int64(row.Batch))), row.Batch); err != nil {
					return err
				}
				now := r.host.Elapsed()
				took.add(now - began)
				began = now
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after := r.mark()
	row.Runs, row.Seconds, row.PerSecond = int(runs.Load()), (after.at - before.at).Seconds(), rate(int(runs.Load()), after.at-before.at)
	row.Spread, row.Synced = took.spread(), after.synced(before, row.Runs)
	return nil
}

// ask asks for n runs at once.
func (r *rig) ask(ctx context.Context, first, n int) error {
	asked := make([]control.Asked, n)
	for i := range asked {
		asked[i] = control.Asked{Job: insertJob, Request: control.Request{Payload: payload(first + i)}}
	}
	return r.trigger(ctx, tenant, asked)
}

func (r *rig) trigger(ctx context.Context, tenant string, asked []control.Asked) error {
	for _, a := range r.node.Control.TriggerMany(ctx, tenant, asked) {
		if a.Err != nil {
			return a.Err
		}
	}
	return nil
}

// door is the API server over a rig on loopback, and a client of it.
type door struct {
	client *client.Client
	server *http.Server
	served chan error
}

func (r *rig) serve(ctx context.Context) (*door, error) {
	tokens, err := access.New(access.Config{Store: r.data.Store, Now: r.host.Now, Random: r.host.Random, NewID: r.host.NewID, Log: r.host.Log})
	if err != nil {
		return nil, err
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: r.host.Now, Log: r.host.Log})
	if err != nil {
		return nil, err
	}
	nothing := func(context.Context) []wire.Check { return nil }
	handler, err := api.New(api.Config{Control: r.node.Control, Gate: gate, Now: r.host.Now, Version: r.host.Version, Log: r.host.Log, NewID: r.host.NewID,
		Counts: r.metrics, Ready: nothing, Local: true,
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
	})
	if err != nil {
		return nil, err
	}
	var how net.ListenConfig
	listener, err := how.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &door{server: api.Server(handler, r.host.Log), served: make(chan error, 1)}
	go func() { d.served <- d.server.Serve(listener) }()
	d.client, err = client.New(client.Config{Address: "http://" + listener.Addr().String(), NewKey: func() string { return strconv.FormatUint(r.host.NewID(), 36) }})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *door) close() error {
	err := d.server.Close()
	if ended := <-d.served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func (d *door) ask(ctx context.Context, first, n int) error {
	if n == 1 {
		_, err := d.client.Trigger(ctx, insertJob, wire.Trigger{Payload: payload(first)}, "")
		return err
	}
	asked := make([]wire.JobTrigger, n)
	for i := range asked {
		asked[i] = wire.JobTrigger{Job: insertJob, Trigger: wire.Trigger{Payload: payload(first + i)}}
	}
	verdicts, err := d.client.TriggerMany(ctx, asked)
	for _, v := range verdicts {
		if v.Problem != nil {
			return v.Problem
		}
	}
	return err
}

// silent is a handler that does nothing.
func silent(name string) (*target.Registry, error) {
	handlers := new(target.Registry)
	return handlers, handlers.Register(name, func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil })
}

// onDemand is a job of a handler, without a schedule.
func onDemand(handler string) job.Definition {
	return job.Definition{Target: target.Spec{Handler: &target.Handler{Name: handler}}}
}
