package main

import "testing"

func TestAHeapHasRoom(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, mostGarbage}, {1 << 20, mostGarbage}, {160 << 20, 100}, {heapRoom, leastGarbage}, {4 << 30, leastGarbage}} {
		if got := garbage(c.live); got != c.want {
			t.Errorf("with %d bytes in use, %d%% of garbage may gather, want %d%%", c.live, got, c.want)
		}
	}
}
