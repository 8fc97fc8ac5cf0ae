package simulate_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Worlds are small and many: collected as often as the heap of a server is, they take a sixth more of the processor.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
