package run_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// TestAStateIsInOneClass, and in the open one as long as it has not ended.
func TestAStateIsInOneClass(t *testing.T) {
	seen := map[run.State]run.Class{}
	for _, c := range run.Classes() {
		for _, s := range c.States() {
			if was, twice := seen[s]; twice {
				t.Errorf("%s is %s and %s", s, was, c)
			}
			seen[s] = c
		}
	}
	for _, s := range run.States() {
		if c, ok := seen[s]; !ok || c != s.Class() || (c == run.ClassOpen) == s.Ended() || s.DeadLetter() && c != run.ClassFailed {
			t.Errorf("%s is counted as %s, %t", s, c, ok)
		}
	}
}
