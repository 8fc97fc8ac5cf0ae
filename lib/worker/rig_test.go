package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

const (
	tenant   = "acme"
	leaseFor = 30 * time.Second
)

// rig is a store and a queue that several worker processes share, in virtual time.
type rig struct {
	t     *testing.T
	store *memory.Store
	queue queue.Queue
	blobs *blob.Bucket
	base  *dispatch.Dispatcher // of nobody: to put runs
	jobs  int

	elsewhere bool          // workers reach store and queue through a server's API
	far       *lease.Remote // of the newest server
}

// inBubble runs a test in virtual time, for workers beside the store and for those elsewhere; every process that it started is
// stopped at its end.
func inBubble(t *testing.T, test func(t *testing.T, g *rig)) {
	t.Helper()
	t.Run("Beside", func(t *testing.T) { beside(t, test) })
	t.Run("Elsewhere", func(t *testing.T) { bubble(t, true, test) })
}

// beside runs a test for workers beside the store alone: it is about what only they have.
func beside(t *testing.T, test func(t *testing.T, g *rig)) {
	t.Helper()
	bubble(t, false, test)
}

func bubble(t *testing.T, elsewhere bool, test func(t *testing.T, g *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := queuelocal.New(queuelocal.Config{Now: time.Now})
		g := &rig{t: t, store: memory.New(memory.Config{}), queue: q, blobs: blob.New(memblob.OpenBucket(nil)), elsewhere: elsewhere}
		g.base = g.dispatcher(g.store, q, time.Now)
		test(t, g)
	})
}

func (g *rig) dispatcher(s store.Store, q queue.Queue, now func() time.Time) *dispatch.Dispatcher {
	g.t.Helper()
	began := time.Now()
	d, err := dispatch.New(dispatch.Config{Store: s, Book: job.NewBook(s, job.Compile), Queues: map[string]queue.Queue{"default": q},
		Layout: timer.Layout{Shards: 1}, Now: now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Lease: leaseFor})
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

const function = "arn:aws:lambda:eu-west-1:123456789012:function:f"

var anyARN = func() []target.ARNPattern {
	patterns, err := target.ParseARNPatterns(function)
	if err != nil {
		panic(err)
	}
	return patterns
}()

// process is one worker process, with its own way to the store and the queue.
type process struct {
	*worker.Worker
	store   *faulty.Store
	hand    *hand // of an idle process
	metrics *metrics.Registry
	dead    atomic.Bool
	offset  atomic.Int64 // of its clock, ns
	freeze  atomic.Pointer[chan struct{}]
	stop    func() // tells it to stop, and waits until it has
}

var errDead = errors.New("the process is dead")

// options of a process.
type options struct {
	worker.Config
	desk     lease.Config
	handlers *target.Registry
	aws      target.CallAWS // default: none
	hook     faulty.Hook
	blobs    *blob.Bucket
	queue    queue.Queue
	around   func(queue.Queue) queue.Queue // default: as it is
	idle     bool                          // it is not to receive by itself
	current  *atomic.Pointer[process]      // set to this process before it takes anything
}

func (g *rig) process(name string, o options) *process {
	g.t.Helper()
	p := &process{metrics: metrics.New()}
	// What a process does that is dead or frozen never happens, or happens when it is thawed.
	reach := func(ctx context.Context) error {
		if thaw := p.freeze.Load(); thaw != nil {
			<-*thaw
		}
		if p.dead.Load() {
			return fmt.Errorf("%w: %w", errDead, store.ErrUnknown)
		}
		return ctx.Err()
	}
	s := faulty.New(g.store, func(ctx context.Context, c faulty.Call) faulty.Fault {
		if !g.elsewhere { // else it is the server's
			if err := reach(ctx); err != nil {
				return faulty.Fault{Refuse: err}
			}
		}
		if o.hook != nil {
			return o.hook(ctx, c)
		}
		return faulty.Fault{}
	})
	p.store = s
	inner := g.queue
	if o.queue != nil {
		inner = o.queue
	}
	if o.idle {
		p.hand = &hand{Queue: inner, given: make(chan queue.Message, 1), settled: make(chan verdict, 1)}
		inner = p.hand
	}
	fate := func(queue.Message) queuefaulty.Fate {
		if g.elsewhere {
			return queuefaulty.Fate{}
		}
		err := reach(context.Background())
		return queuefaulty.Fate{Drop: err != nil, Err: err}
	}
	q := queuefaulty.Wrap(inner, queuefaulty.Hooks{Receive: fate, Delete: fate, Extend: fate})
	if o.around != nil {
		q = o.around(q)
	}
	d := g.dispatcher(s, q, func() time.Time { return time.Now().Add(time.Duration(p.offset.Load())) })
	o.desk = lease.Config{Dispatch: d, Queue: "default", Blobs: g.blobs, Metrics: p.metrics, Name: name, MaxReceives: o.desk.MaxReceives}
	if o.blobs != nil {
		o.desk.Blobs = o.blobs
	}
	var err error
	if o.Targets, err = target.New(target.Config{Now: time.Now, Handlers: o.handlers, AWS: o.aws, ARNs: anyARN}); err != nil {
		g.t.Fatal(err)
	}
	o.Elapsed = d.Elapsed
	if g.elsewhere {
		p.Worker = g.worker(name, o, func() error { return reach(context.Background()) })
	} else {
		if o.Source, err = lease.New(o.desk); err != nil {
			g.t.Fatal(err)
		}
		if p.Worker, err = worker.New(o.Config); err != nil {
			g.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var once sync.Once
	p.stop = func() {
		once.Do(func() {
			cancel()
			if o.idle {
				return
			}
			if err := <-done; err != nil {
				g.t.Errorf("%s: %v", name, err)
			}
		})
	}
	g.t.Cleanup(p.stop) // within the bubble
	if o.current != nil {
		o.current.Store(p)
	}
	if !o.idle {
		go func() { done <- p.Run(ctx) }()
	}
	return p
}

// verdict is what became of a message: it was deleted, or else it is handed out again after a while.
type verdict struct {
	Delete bool
	Again  time.Duration
}

// hand gives a worker one message, and tells what it made of it.
type hand struct {
	queue.Queue
	given   chan queue.Message
	settled chan verdict
}

func (h *hand) Receive(ctx context.Context, _ int, _, _ time.Duration) ([]queue.Message, error) {
	select {
	case m := <-h.given:
		return []queue.Message{m}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hand) Delete(context.Context, ...queue.Message) ([]error, error) {
	h.settled <- verdict{Delete: true}
	return []error{nil}, nil
}

func (h *hand) Extend(_ context.Context, again time.Duration, _ ...queue.Message) ([]error, error) {
	h.settled <- verdict{Again: again}
	return []error{nil}, nil
}

// handle lets an idle process work on one delivery.
func (p *process) handle(t *testing.T, body []byte, receives int) verdict {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	p.hand.given <- queue.Message{Body: body, Receives: receives}
	go func() { done <- p.Run(ctx) }()
	v := <-p.hand.settled
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return v
}

// handler makes a registry of one function, "f", and counts its calls.
func handler(t *testing.T, f target.Func) (*target.Registry, *atomic.Int64) {
	t.Helper()
	var calls atomic.Int64
	handlers := new(target.Registry)
	if err := handlers.Register("f", func(ctx context.Context, call target.Call) (target.Result, error) {
		calls.Add(1)
		return f(ctx, call)
	}); err != nil {
		t.Fatal(err)
	}
	return handlers, &calls
}

func succeed(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }

// takes gives a function that works so long, unless it is stopped.
func takes(d time.Duration) target.Func {
	return func(ctx context.Context, _ target.Call) (target.Result, error) {
		select {
		case <-time.After(d):
			return target.Result{}, nil
		case <-ctx.Done():
			return target.Result{}, ctx.Err()
		}
	}
}

func atMostOnce(d *job.Definition)  { d.Guarantee, d.Retry.MaxAttempts = job.AtMostOnce, 1 }
func atLeastOnce(d *job.Definition) {}

// job makes a job that calls "f".
func (g *rig) job(change func(*job.Definition)) job.Job {
	g.t.Helper()
	g.jobs++
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}, Timeout: schedule.Duration(time.Hour)}.WithDefaults()
	change(&def)
	j := job.Job{Tenant: tenant, Name: fmt.Sprintf("job-%d", g.jobs), Generation: int64(g.jobs), Def: def}
	op, err := j.Put(1)
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(op)
	return j
}

func (g *rig) write(ops ...store.Op) []uint64 {
	g.t.Helper()
	versions, err := g.store.Write(context.Background(), ops...)
	if err != nil {
		g.t.Fatal(err)
	}
	return versions
}

// queued puts a run of the job as a tick would have claimed it, due at the nominal time.
func (g *rig) queued(j job.Job, due time.Time, change ...func(*run.Run)) run.Run {
	g.t.Helper()
	r := run.Run{ID: run.RequestID(j.Name, due.UnixMilli(), rand.Uint64()), Tenant: j.Tenant, State: run.Queued, Trigger: run.ByRequest,
		Priority: queue.Normal, Generation: j.Generation, Created: due.UnixMilli()}
	for _, c := range change {
		c(&r)
	}
	op, err := r.Item(rand.Uint64())
	if err != nil {
		g.t.Fatal(err)
	}
	r.Version = g.write(op)[0]
	return r
}

// send hands a run to the queue.
func (g *rig) send(runs ...run.Run) {
	g.t.Helper()
	var out []dispatch.Outgoing
	for _, r := range runs {
		out = append(out, dispatch.Outgoing{Run: r, Queue: "default", Due: r.ID.Nominal})
	}
	if unsent, err := g.base.Send(context.Background(), out); err != nil || len(unsent) > 0 {
		g.t.Fatalf("%d runs were not sent: %v", len(unsent), err)
	}
}

// start makes a job and a run of it that is due, and sends it.
func (g *rig) start(changes ...func(*job.Definition)) run.Run {
	g.t.Helper()
	r := g.queued(g.job(func(d *job.Definition) {
		for _, change := range changes {
			change(d)
		}
	}), time.Now())
	g.send(r)
	return r
}

// log is what is kept of what the run's attempts wrote last.
func (g *rig) log(r run.Run) (string, error) {
	data, err := g.blobs.Get(context.Background(), r.Tenant, r.Log)
	return string(runlog.Decode(data).Text()), err
}

func (g *rig) read(r run.Run) run.Run {
	g.t.Helper()
	items, err := g.store.Get(context.Background(), r.ID.Key(r.Tenant))
	if err != nil {
		g.t.Fatal(err)
	}
	now, _, err := run.FromItem(r.Tenant, r.ID, items[0])
	if err != nil {
		g.t.Fatal(err)
	}
	return now
}

// want reads a run and checks its state and attempts.
func (g *rig) want(r run.Run, state run.State, attempts int) run.Run {
	g.t.Helper()
	now := g.read(r)
	if now.State != state || now.Attempt != attempts {
		g.t.Errorf("run %s is %s after %d attempts (%+v), want %s after %d", r.ID, now.State, now.Attempt, now.Attempts, state, attempts)
	}
	return now
}

// empty checks that no message is left.
func (g *rig) empty() {
	g.t.Helper()
	depth, err := g.queue.Depth(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	if got := depth[queue.Normal]; got != (queue.Depth{}) {
		g.t.Errorf("the queue still holds %+v", got)
	}
}

// cancel asks for the end of a run as the control plane does.
func (g *rig) cancel(r run.Run) (run.Run, bool) {
	g.t.Helper()
	now := g.read(r)
	next, ok := now.AskCancel(time.Now().UnixMilli(), "no longer needed", time.Hour)
	if !ok {
		return now, false
	}
	op, err := next.Item(rand.Uint64())
	if err != nil {
		g.t.Fatal(err)
	}
	_, err = g.store.Write(context.Background(), op)
	return next, err == nil
}

// ofRun tells a write of a run that is in the state.
func ofRun(c faulty.Call, r run.Run, state run.State) bool {
	if len(c.Ops) == 0 || c.Ops[0].Key != r.ID.Key(r.Tenant) {
		return false
	}
	written, _, err := run.FromItem(r.Tenant, r.ID, store.Item{Key: c.Ops[0].Key, Version: 1, Value: c.Ops[0].Value})
	return err == nil && written.State == state
}
