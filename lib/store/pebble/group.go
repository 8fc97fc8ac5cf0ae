package pebble

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// groupRequests and groupBytes bound what gathers for one group.
const (
	groupRequests = 512
	groupBytes    = 4 << 20
)

// group is the requests that gathered while those before them were on their way to the disk. It is decided, written and synced as
// one, and answered at once.
type group struct {
	commit
	requests []*request
	bytes    int
	taken    chan struct{} // closed when it takes no more
	batches  []*pebble.Batch
}

func newGroup(room int) *group {
	return &group{commit: commit{done: make(chan struct{})}, taken: make(chan struct{}), requests: make([]*request, 0, room)}
}

// add is false where there is no room.
func (g *group) add(r *request) bool {
	if len(g.requests) > 0 && (len(g.requests) >= groupRequests || g.bytes+len(r.buf) > groupBytes) {
		return false
	}
	g.requests = append(g.requests, r)
	g.bytes += len(r.buf)
	return true
}

// take closes the group that gathers, and begins the next.
func (s *Store) take() *group {
	s.queue.Lock()
	defer s.queue.Unlock()
	g := s.gathering
	s.gathering = newGroup(len(g.requests))
	close(g.taken)
	return g
}

// decideAll is the one goroutine that decides and applies, in the order in which requests come: so what it reads cannot
// change before it writes, and the order of decisions is the order of the log. While one group is on its way to the disk it
// applies the next, and then waits: so groups grow as large as the disk is slow.
func (s *Store) decideAll(d *decider) {
	defer close(s.acks)
	for range s.wake {
		g := s.take()
		if s.broken() == nil {
			d.decide(g)
		}
		if err := s.broken(); err != nil {
			g.lose(err)
			continue
		}
		// A group that changes nothing goes the same way: its verdicts tell of what they saw, which must be synced as well.
		s.acks <- g
	}
}

// awaitAll answers groups in the order of the log, each when the disk has it.
func (s *Store) awaitAll() {
	for g := range s.acks {
		for _, batch := range g.batches {
			if err := batch.SyncWait(); err != nil {
				s.fail(fmt.Errorf("sync the log: %w", err))
			}
		}
		if err := s.broken(); err != nil {
			g.lose(err)
			continue
		}
		for _, batch := range g.batches {
			must(batch.Close()) // after a good sync nothing refers to it any more
		}
		s.synced.Store(g.n)
		g.answer()
	}
}

// answer lets the callers go on, to whom the requests belong from here on.
func (g *group) answer() {
	g.requests, g.batches = nil, nil
	close(g.done)
}

// lose answers a group of which nobody knows whether the disk has it. Its batches are left to the garbage collector, since
// Pebble may still hold them.
func (g *group) lose(cause error) {
	g.err = unknown(cause)
	g.answer()
}
