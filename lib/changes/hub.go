package changes

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// What a hint names, beside JobTopic and RunTopic.
const (
	Runs        = "runs"         // some run: lists of runs
	DeadLetters = "dead-letters" // some run was given up, or is no longer
	Jobs        = "jobs"         // some job's definition: lists of jobs
	Queues      = "queues"       // what waits
	All         = "all"          // more than a hint names
)

// JobTopic names a job: its definition, or one of its runs.
func JobTopic(name string) string { return "job:" + name }

// RunTopic names a run, by its ID; a step is of the run of its workflow.
func RunTopic(id string) string { return "run:" + id }

// Bounds of a hub.
const (
	MaxListeners       = 1000 // of all tenants
	MaxTenantListeners = 200
	maxPending         = 200 // names that wait for a listener, before they become All
)

// ErrFull says that as many listen as may.
var ErrFull = errors.New("as many listen as may")

// Hub passes on what changes to those who listen. It is safe for concurrent use; the zero Hub is ready.
type Hub struct {
	count atomic.Int64 // of listeners

	mu      sync.Mutex
	closed  bool
	tenants map[string]map[*Listener]struct{}
}

// Listen begins to keep what changes for a tenant, until the listener is closed.
func (h *Hub) Listen(tenant string) (*Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count.Load() >= MaxListeners || len(h.tenants[tenant]) >= MaxTenantListeners {
		return nil, ErrFull
	}
	l := &Listener{hub: h, tenant: tenant, ready: make(chan struct{}, 1), ended: make(chan struct{})}
	if h.closed {
		close(l.ended)
		return l, nil
	}
	if h.tenants == nil {
		h.tenants = map[string]map[*Listener]struct{}{}
	}
	if h.tenants[tenant] == nil {
		h.tenants[tenant] = map[*Listener]struct{}{}
	}
	h.tenants[tenant][l] = struct{}{}
	h.count.Add(1)
	return l, nil
}

// Listening tells whether anybody listens.
func (h *Hub) Listening() bool { return h.count.Load() > 0 }

// Listeners is how many there are.
func (h *Hub) Listeners() int { return int(h.count.Load()) }

// Close ends all listeners, those to come included: the process stops.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for _, of := range h.tenants {
		for l := range of {
			close(l.ended)
		}
	}
}

// Tell passes names on to those who listen for the tenant.
func (h *Hub) Tell(tenant string, names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.tenants[tenant] {
		l.add(names)
	}
}

// Listener keeps what has changed until it is taken.
type Listener struct {
	hub    *Hub
	tenant string
	ready  chan struct{}
	ended  chan struct{}

	// Guarded by the hub's mu.
	pending map[string]struct{}
	all     bool
}

func (l *Listener) add(names []string) {
	if l.all {
		return
	}
	if l.pending == nil {
		l.pending = map[string]struct{}{}
	}
	for _, name := range names {
		l.pending[name] = struct{}{}
	}
	if len(l.pending) > maxPending {
		l.pending, l.all = nil, true
	}
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// Ready receives when there is something to take.
func (l *Listener) Ready() <-chan struct{} { return l.ready }

// Ended is closed when the hub is.
func (l *Listener) Ended() <-chan struct{} { return l.ended }

// Take gives what has changed since the last call, each name once, in order; All alone where that is too much to name.
func (l *Listener) Take() []string {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if l.all {
		l.all = false
		return []string{All}
	}
	names := make([]string, 0, len(l.pending))
	for name := range l.pending {
		names = append(names, name)
	}
	l.pending = nil
	slices.Sort(names)
	return names
}

// Close ends the listener.
func (l *Listener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	of := l.hub.tenants[l.tenant]
	if _, there := of[l]; !there {
		return
	}
	delete(of, l)
	if len(of) == 0 {
		delete(l.hub.tenants, l.tenant)
	}
	l.hub.count.Add(-1)
}
