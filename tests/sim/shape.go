package sim

// Shape is which processes there are.
type Shape struct {
	// Alone is one process on its own store, as `belfry dev`: a tick each second, a queue in its memory. Else Hosts processes share
	// store and queue.
	Alone bool
	Hosts int // with Alone 1
}
