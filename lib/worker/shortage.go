package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// How a worker goes on while its host is short of what calls begin with: one of those that wait tries at a time, each for so long, and then
// it is another worker's turn.
const (
	shortEvery = 100 * time.Millisecond
	shortFor   = time.Minute
	shortAfter = time.Second // nothing was short in so long: more is taken
	shortTold  = time.Minute // between two lines of the log
)

// shortage is what a worker knows of its host's being short.
type shortage struct {
	turn chan struct{} // who tries next

	mu   sync.Mutex
	last time.Duration          // when it was short of what any call begins with, 0 for never
	told map[bool]time.Duration // when that was told, and, under true, that one destination has no port left
}

// wait waits for the turn of a call that could not begin, and tells whether it is to be tried again: not where it has ended, and not where the
// worker takes nothing more.
func (w *shortage) wait(ctx context.Context, s *shift, why error) bool {
	now := s.Elapsed()
	one := errors.Is(why, target.ErrNoPort)
	w.mu.Lock()
	if !one {
		w.last = max(now, 1)
	}
	at, ever := w.told[one]
	tell := !ever || now-at >= shortTold
	if tell {
		w.told[one] = now
	}
	w.mu.Unlock()
	switch {
	case tell && one:
		s.Log.WarnContext(ctx, "calls cannot begin to one destination: they are tried again, and what waits for long is handed back", "error", why)
	case tell:
		s.Log.WarnContext(ctx, "calls cannot begin: they are tried again, no more runs are taken meanwhile, and what waits for long is handed back", "error", why)
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return false
	case <-s.taking.Done():
		return false
	}
	defer func() { <-w.turn }()
	s.sleep(s.taking, shortEvery)
	return ctx.Err() == nil && s.taking.Err() == nil
}

// over waits until nothing was short for a while, or until ctx ends.
func (w *shortage) over(s *shift) {
	for s.taking.Err() == nil {
		w.mu.Lock()
		last := w.last
		w.mu.Unlock()
		left := last + shortAfter - s.Elapsed()
		if last == 0 || left <= 0 {
			return
		}
		s.sleep(s.taking, left)
	}
}
