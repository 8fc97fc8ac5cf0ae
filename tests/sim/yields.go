package sim

import (
	"runtime"
	"sync/atomic"
)

// yields let goroutines that are awake at one instant go on in another order, as a busy machine does, which preempts any of them anywhere.
// The zero value lets them be.
type yields struct {
	on    bool
	count atomic.Uint64
}

// yield stands wherever Belfry's code asks the world for anything, and where it goes on with what it was given.
func (y *yields) yield() {
	if !y.on {
		return
	}
	stream := idStream{state: y.count.Add(1)}  // not a seed's: goroutines that are awake together draw from it
	for range max(0, int(stream.next()%6)-2) { // half of the time none, else one to three
		runtime.Gosched()
	}
}
