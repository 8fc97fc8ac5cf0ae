package target

import (
	"context"
	"sync"
)

// largeResults is how many results over MaxResultBytes a Set holds at once: so a worker's memory stays bounded, however many attempts it makes. Who would
// hold one more waits with what it has read, as long as its attempt may take.
const largeResults = 4

// room is what one call has of a Set's room for large results.
type room struct {
	of    chan struct{}
	mu    sync.Mutex
	taken bool
}

// take waits for room, unless the call has it already. An error is that of ctx.
func (r *room) take(ctx context.Context) error {
	r.mu.Lock()
	taken := r.taken
	r.mu.Unlock()
	if taken {
		return nil
	}
	select {
	case r.of <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	return nil
}

func (r *room) give() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		r.taken = false
		<-r.of
	}
}

// Release gives back the room that a large result takes. Who has put Body away, or drops it, calls it.
func (r Result) Release() { r.room.give() }
