package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

var (
	errCrashed = errors.New("this host has crashed")
	errStopped = errors.New("this host is stopped")
)

// machine is a place where hosts run, one life after the other: its clock goes on while none does.
type machine struct {
	*World
	name   string
	role   role
	offset time.Duration // of its clock
	lives  int
	down   bool  // it does not start
	host   *host // nil while none runs
}

// host is one life of a process, from its start to its stop or crash.
type host struct {
	*machine
	id     string // name and life
	clock  clock
	ids    *idStream
	queues map[string]queue.Queue
	blobs  *blob.Bucket

	ctx      context.Context // ends when it has stopped, or crashes
	cancel   context.CancelCauseFunc
	working  context.Context // ends when it is told to stop, or crashes
	finish   context.CancelCauseFunc
	requests sync.WaitGroup // that it handles
	dead     chan struct{}  // closed at a crash: nothing that it does has effect any more
	hurry    chan struct{}  // closed at a crash: nobody waits for its attempts

	// Changed by the scheduler or by an actor that runs alone, read by anyone.
	crashed bool
	paused  bool
	serving http.Handler // nil before it is up and after it was told to stop
	held    []*op        // while it is paused

	node *node.Node
}

// idStream is a host's random numbers.
type idStream struct{ state uint64 }

// next is splitmix64: as random as a scheduler needs, and a multiplication or two.
func (s *idStream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return max(1, z^z>>31)
}

func (h *host) nextID() uint64 { return h.ids.next() }

// newID is what the host's code draws from.
func (h *host) newID() uint64 {
	if h.crashed {
		return 1
	}
	return h.sched.draw(h)
}

func (h *host) op(what, key, sort string, by medium, do func() string) *op {
	return &op{host: h, who: h.id, what: what, key: key, sort: sort, medium: by, do: do}
}

// holds tells whether an operation waits for its host to wake. One of a dead host that nobody waits for goes on: it was on its way.
func (h *host) holds(o *op) bool {
	if h.paused {
		h.held = append(h.held, o)
		return true
	}
	return false
}

// newHost begins a new life on a machine.
func (m *machine) newHost(ctx context.Context) *host {
	h := &host{machine: m, id: fmt.Sprintf("%s.%d", m.name, m.lives), dead: make(chan struct{}), hurry: make(chan struct{})}
	h.clock = clock{world: m.World, began: m.sched.elapsed()}
	h.clock.offset.Store(int64(m.offset))
	h.ids = &idStream{state: m.Rand("ids " + h.id).Uint64()}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.working, h.finish = context.WithCancelCause(h.ctx)
	m.host = h
	return h
}

// assemble puts the process together. It may fail, as a start does when the store is away.
func (h *host) assemble() error {
	lines := h.lines
	if h.Mix.Shape.Alone {
		lines = h.newLines()
	}
	h.queues = map[string]queue.Queue{}
	for name, l := range lines {
		h.queues[name] = pool{l, h}
	}
	h.blobs = blob.New(gocloud.NewBucket(bucket{h}))
	handlers := new(target.Registry)
	for _, name := range Handlers {
		if err := handlers.Register(name, func(ctx context.Context, call target.Call) (target.Result, error) { return h.call(ctx, name, call) }); err != nil {
			return err
		}
	}
	targets, err := target.New(target.Config{Now: h.clock.now, Handlers: handlers})
	if err != nil {
		return err
	}
	cfg := node.Config{
		Store: shelf{h}, Queues: h.queues, Blobs: h.blobs, Targets: targets, Metrics: metrics.New(),
		Now: h.clock.now, Elapsed: h.clock.elapsed, NewID: h.newID, Name: h.id, Hurry: h.hurry, Callbacks: h.Mix.Defaults,
	}
	h.Mix.Shape.configure(h.role, h.Mix.Pools, &cfg)
	if h.node, err = node.New(h.ctx, cfg); err != nil {
		return err
	}
	h.node.Ticker.Counts = h.Mix.Counts
	if work := h.Mix.Shape.Work; work > 0 {
		h.node.Ticker.Work = work
	}
	serving, err := h.api()
	if err != nil {
		return err
	}
	if h.role.serves {
		h.serving = serving
	}
	return nil
}

func (h *host) api() (http.Handler, error) {
	tokens, err := access.New(access.Config{Store: shelf{h}, Now: h.clock.now, Random: unused{}, NewID: h.newID})
	if err != nil {
		return nil, err
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: h.clock.now})
	if err != nil {
		return nil, err
	}
	return api.New(api.Config{
		Control: h.node.Control, Gate: gate, Now: h.clock.now, Version: "sim",
		Who: func(r *http.Request) (access.Caller, error) {
			tenant := r.Header.Get(tenantHeader)
			return access.Caller{Tenant: tenant, Token: tenant, Scopes: access.Scopes}, nil
		},
		Ready:   func(context.Context) []wire.Check { return nil },
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
	})
}

// unused gives no random bytes: nobody makes a token here.
type unused struct{}

func (unused) Read([]byte) (int, error) { return 0, errors.New("sim: no random bytes here") }

// run works until the process is told to stop, and has drained.
func (h *host) run() error {
	var called sync.WaitGroup
	defer called.Wait()
	if h.role.called {
		called.Go(func() { h.calledTicks(h.working) })
	}
	if h.role.serves && !h.Mix.Shape.Alone {
		called.Go(func() { h.rescues(h.working) })
	}
	return h.node.Run(h.working)
}

// crash ends a life at once. What it has sent may still arrive.
func (h *host) crash() {
	if h.crashed {
		return
	}
	h.crashed, h.serving, h.paused = true, nil, false
	h.sched.forsake(h, errCrashed)
	close(h.dead)
	close(h.hurry)
	h.cancel(errCrashed)
	h.machine.host = nil
}

// stop asks for a graceful end.
func (h *host) stop() {
	h.serving = nil
	h.finish(errStopped)
}

// pause lets a process stand still: a stopped machine, a long collection of garbage.
func (h *host) pause() { h.paused = true }

func (h *host) wake() {
	h.paused = false
	h.sched.ready = append(h.sched.ready, h.held...)
	h.held = nil
	h.sched.nudge()
}

// step sets the clock of a machine.
func (m *machine) step(by time.Duration) {
	m.offset += by
	if m.host != nil {
		m.host.clock.offset.Store(int64(m.offset))
	}
}
