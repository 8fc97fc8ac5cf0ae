package process

import (
	"os"
	"strconv"
	"testing"
)

// Number reads a variable of the environment: how much a test is to do, or the seed of an earlier run's choices.
func Number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s=%q: want a number", variable, text)
	}
	return n
}
