package lease

import (
	"maps"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// afar are the attempts of workers elsewhere that hold their leases by this server, where others are on its store: what their last renewal wrote, by
// which a touch is seen in the next. All of it is memory, and what is lost with it is a touch or two. An attempt that has not renewed here for two
// leases is forgotten.
type afar struct {
	mu      sync.Mutex
	held    map[reading]*far
	cleared time.Duration // when those were last left out that had not renewed for two leases
}

// far is one of them.
type far struct {
	*showing
	last run.Run       // no more of it than Touched asks for
	at   time.Duration // of that renewal, by the process's own clock
}

// of gives an attempt that holds a run; nil where it has not renewed here for so long.
func (a *afar) of(which reading, fence uint64, now, within time.Duration) *far {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.held[which]
	if one == nil || one.last.Fence != fence || now-one.at > within {
		return nil
	}
	return one
}

// join has a held attempt show its log as it did at its last renewal, and tells it of a touch since.
func (a *afar) join(which reading, h *Held) {
	standing := h.standing()
	one := a.of(which, standing.Fence, h.desk.Dispatch.Elapsed(), 2*h.desk.Dispatch.Lease)
	if one == nil {
		return
	}
	h.showing = one.showing
	a.mu.Lock()
	touched := standing.Touched(one.last)
	a.mu.Unlock()
	if touched {
		h.showing.touched()
	}
}

// holds keeps what a start or a renewal has written.
func (a *afar) holds(which reading, h *Held) {
	now, lease := h.desk.Dispatch.Elapsed(), h.desk.Dispatch.Lease
	standing := h.standing()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[reading]*far{}
	}
	if now-a.cleared > lease {
		maps.DeleteFunc(a.held, func(_ reading, one *far) bool { return now-one.at > 2*lease })
		a.cleared = now
	}
	a.held[which] = &far{h.showing, run.Run{Version: standing.Version, Fence: standing.Fence, Lease: standing.Lease, Cancel: standing.Cancel}, now}
}

// ended forgets an attempt.
func (a *afar) ended(which reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.held, which)
}
