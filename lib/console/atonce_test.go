package console

import "testing"

// However many texts come, the server that shows the pages keeps half of its processors for its own work.
func TestConversionsLeaveHalfOfTheProcessors(t *testing.T) {
	for threads, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 6: 3, 8: 4, 64: 4} {
		if got := atOnce(threads); got != want {
			t.Errorf("%d threads: %d at once, want %d", threads, got, want)
		}
	}
}
