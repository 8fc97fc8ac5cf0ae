// Package room bounds how many hold something at once, and is fair to tenants.
package room

import (
	"context"
	"slices"
	"sync"
)

// Room has places for so many at once. Where all are taken, tenants have their turns one after the other, and those of one tenant go in the order of their coming:
// however many wait of another, a tenant is let in once between two of that one.
type Room struct {
	mu    sync.Mutex
	free  int                   // above 0 only while nobody waits
	lines map[string][]*waiting // by tenant
	round []string              // the tenants that wait, in the order of their turns
}

// Of makes a room of so many places.
func Of(places int) *Room { return &Room{free: places, lines: map[string][]*waiting{}} }

type waiting struct {
	place *Place
	in    chan struct{} // is closed when he is let in
}

// Place is what one has of a room: a place or none. Its methods may be called concurrently; those of nil take nothing and give nothing back.
type Place struct {
	of     *Room
	tenant string
	taken  bool // under the room's mu
}

// Place is for somebody of a tenant. He has none yet.
func (r *Room) Place(tenant string) *Place { return &Place{of: r, tenant: tenant} }

// Try takes a place where one is free, unless he has one. It tells whether he has.
func (p *Place) Try() bool {
	if p == nil {
		return false
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.try()
}

func (p *Place) try() bool {
	if !p.taken && p.of.free > 0 {
		p.of.free--
		p.taken = true
	}
	return p.taken
}

// Take waits for a place, unless he has one. An error is that of ctx, and he has none then.
func (p *Place) Take(ctx context.Context) error {
	if p == nil {
		return nil
	}
	r := p.of
	r.mu.Lock()
	if p.try() {
		r.mu.Unlock()
		return nil
	}
	w := &waiting{place: p, in: make(chan struct{})}
	if len(r.lines[p.tenant]) == 0 {
		r.round = append(r.round, p.tenant)
	}
	r.lines[p.tenant] = append(r.lines[p.tenant], w)
	r.mu.Unlock()
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.taken { // in the same moment
		p.give()
	} else {
		r.leave(w)
	}
	return ctx.Err()
}

// leave has somebody wait no more.
func (r *Room) leave(w *waiting) {
	line := without(r.lines[w.place.tenant], w)
	if r.lines[w.place.tenant] = line; len(line) == 0 {
		delete(r.lines, w.place.tenant)
		r.round = without(r.round, w.place.tenant)
	}
}

func without[T comparable](list []T, one T) []T {
	return slices.DeleteFunc(list, func(each T) bool { return each == one })
}

// Give gives back what was taken, to whose turn it is. Once more changes nothing.
func (p *Place) Give() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.taken {
		p.give()
	}
}

func (p *Place) give() {
	r := p.of
	p.taken = false
	if len(r.round) == 0 {
		r.free++
		return
	}
	tenant := r.round[0]
	next := r.lines[tenant][0]
	r.leave(next)
	if len(r.lines[tenant]) > 0 { // behind all others
		r.round = append(without(r.round, tenant), tenant)
	}
	next.place.taken = true
	close(next.in)
}

// Taken tells whether he has a place.
func (p *Place) Taken() bool {
	if p == nil {
		return false
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.taken
}
