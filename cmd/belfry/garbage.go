package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// What a server does about garbage where GOGC says nothing. Most of what it holds are the store's cache and what is not yet in its tables:
// large, of bounded size, and without pointers to follow. Go's own rule, to collect when there is as much garbage as is in use, would have
// a small heap collected all the time, which was a fifth of the processor's work of a busy server, and a large one take twice its room.
const (
	heapRoom     = 320 << 20 // bytes: up to here nothing is collected
	leastGarbage = 50        // percent of what is in use: a heap that needs more room has garbage beyond it, so that it is not collected all the time
	mostGarbage  = 1000
)

// giveRoom lets garbage gather while the heap is small. It looks at the heap after each collection; Go makes one every two minutes at
// least, so that an idle server gives back what it does not need.
func giveRoom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() == metrics.KindUint64 {
		debug.SetGCPercent(garbage(live[0].Value.Uint64()))
	}
	runtime.SetFinalizer(&collected{}, func(*collected) { giveRoom() })
}

// collected is unreachable at once: its finalizer runs after the next collection.
type collected struct{ _ *int }

// garbage is how much of it may gather, in percent of what is in use.
func garbage(live uint64) int {
	return int(min(max(100*heapRoom/max(live, 1), 100+leastGarbage), 100+mostGarbage)) - 100
}
