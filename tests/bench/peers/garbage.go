package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// What `belfry bench` does about garbage, as `belfry serve` does it: cmd/belfry/garbage.go. River and Asynq work in this process, so it
// goes by the same rule, or they would collect their small heaps all the time where Belfry does not. A test compares the two.
const (
	heapRoom     = 320 << 20
	leastGarbage = 50
	mostGarbage  = 1000
)

const garbageRule = "garbage is collected when the heap has 320 MiB, or when a third of it is garbage, as Belfry has it"

// collector applies the rule, but while it is off.
type collector struct {
	mu  sync.Mutex
	off bool
}

// giveRoom lets garbage gather while the heap is small, and looks again after each collection.
func (c *collector) giveRoom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	c.apply()
	runtime.SetFinalizer(&collected{}, func(*collected) { c.giveRoom() })
}

func (c *collector) apply() {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if !c.off && live[0].Value.Kind() == metrics.KindUint64 {
		debug.SetGCPercent(garbage(live[0].Value.Uint64()))
	}
}

// without works under Go's own rule, with so much percent of what is in use.
func (c *collector) without(percent int, work func() error) error {
	c.mu.Lock()
	c.off = true
	debug.SetGCPercent(percent)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.off = false
		c.mu.Unlock()
		c.apply()
	}()
	return work()
}

type collected struct{ _ *int }

// garbage is how much of it may gather, in percent of what is in use.
func garbage(live uint64) int {
	return int(min(max(100*heapRoom/max(live, 1), 100+leastGarbage), 100+mostGarbage)) - 100
}
