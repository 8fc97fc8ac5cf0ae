package process

import (
	"os"
	"strconv"
	"testing"
)

// Seed is what a test's choices are drawn from: BELFRY_SEED, which make test-deep draws anew, else always the same, so that the verdict of
// a commit is the same on any day.
func Seed(t *testing.T) uint64 {
	t.Helper()
	return Number(t, "BELFRY_SEED", 1)
}

// Drawn tells whether somebody has drawn a seed, for tests that then look further than those of always.
func Drawn() bool { return os.Getenv("BELFRY_SEED") != "" }

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
