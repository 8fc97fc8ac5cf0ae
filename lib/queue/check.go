package queue

import (
	"fmt"
	"time"
)

// CheckSend gives an error that wraps ErrLimit and names what is over which limit, nil where a Send may be tried. Engines
// call it first, so that what works on a laptop works in the cloud.
func CheckSend(priority Priority, batch []Outgoing) error {
	if priority.Rank() < 0 {
		return fmt.Errorf("priority: got %q, want one of %q: %w", priority, Priorities, ErrLimit)
	}
	if len(batch) > MaxBatch {
		return fmt.Errorf("batch: got %d messages, want at most %d: %w", len(batch), MaxBatch, ErrLimit)
	}
	bytes := 0
	for i, m := range batch {
		if len(m.Body) == 0 {
			return fmt.Errorf("message %d: body: want at least 1 byte: %w", i, ErrLimit)
		}
		if m.Delay < 0 || m.Delay > MaxDelay {
			return fmt.Errorf("message %d: delay: got %v, want 0s to %v: %w", i, m.Delay, MaxDelay, ErrLimit)
		}
		bytes += len(m.Body)
	}
	if bytes > MaxBodyBytes {
		return fmt.Errorf("bodies: got %d bytes, want at most %d together: %w", bytes, MaxBodyBytes, ErrLimit)
	}
	return nil
}

// CheckReceive is CheckSend for a Receive.
func CheckReceive(max int, wait, visibility time.Duration) error {
	if max < 1 || max > MaxBatch {
		return fmt.Errorf("max: got %d messages, want 1 to %d: %w", max, MaxBatch, ErrLimit)
	}
	if wait < 0 || wait > MaxWait {
		return fmt.Errorf("wait: got %v, want 0s to %v: %w", wait, MaxWait, ErrLimit)
	}
	return checkVisibility(visibility)
}

// CheckDelete is CheckSend for a Delete.
func CheckDelete(batch []Message) error {
	if len(batch) > MaxBatch {
		return fmt.Errorf("batch: got %d messages, want at most %d: %w", len(batch), MaxBatch, ErrLimit)
	}
	return nil
}

// CheckExtend is CheckSend for an Extend.
func CheckExtend(visibility time.Duration, batch []Message) error {
	if err := checkVisibility(visibility); err != nil {
		return err
	}
	return CheckDelete(batch)
}

func checkVisibility(visibility time.Duration) error {
	if visibility < 0 || visibility > MaxVisibility {
		return fmt.Errorf("visibility: got %v, want 0s to %v: %w", visibility, MaxVisibility, ErrLimit)
	}
	return nil
}

// Rank is the place among Priorities, 0 for the highest, -1 for a priority that is none.
func (p Priority) Rank() int {
	for i, known := range Priorities {
		if p == known {
			return i
		}
	}
	return -1
}
