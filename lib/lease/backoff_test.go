package lease_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func TestBackoffIsDrawnEvenlyBetweenItsBounds(t *testing.T) {
	retry := job.Retry{Initial: schedule.Duration(time.Second), Factor: 3, Max: schedule.Duration(time.Minute)}
	for n, longest := range map[int]time.Duration{1: 2 * time.Second, 2: 6 * time.Second, 3: 18 * time.Second, 4: 54 * time.Second, 5: time.Minute, 100: time.Minute, 100_000: time.Minute} {
		if got := lease.Backoff(retry, n, 0); got != longest/2 {
			t.Errorf("lowest draw for failure %d: %s, want %s", n, got, longest/2)
		}
		if got := lease.Backoff(retry, n, 1<<64-1); got > longest || got < longest-time.Millisecond {
			t.Errorf("highest draw for failure %d: %s, want %s", n, got, longest)
		}
		if got := lease.Backoff(retry, n, 1<<63); got < longest*3/4-time.Millisecond || got > longest*3/4 {
			t.Errorf("middle draw for failure %d: %s, want %s", n, got, longest*3/4)
		}
	}
}

// A run's time of its next attempt is in whole milliseconds, rounded down. A wait is what that makes of it.
func TestBackoffIsInWholeMilliseconds(t *testing.T) {
	retry := job.Retry{Initial: schedule.Duration(time.Millisecond), Factor: 2, Max: schedule.Duration(time.Second)}
	for n := 1; n < 12; n++ {
		for draw := uint64(0); draw < 1<<63; draw += 1<<58 + 12345 {
			least, most := retry.Wait(n)
			if got := lease.Backoff(retry, n, draw); got%time.Millisecond != 0 || got < least.Truncate(time.Millisecond) || got > most {
				t.Errorf("wait %d: %s, want whole milliseconds from %s to %s", n, got, least, most)
			}
		}
	}
}
