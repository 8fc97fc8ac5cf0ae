package api_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Servers are small and many: collected as often as a server's heap is, they take a fifth more of the processor.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
