package lambda

import (
	"context"
	"time"
)

// margin is what an invocation keeps of its time, for attempts to stop, and their ends to be written.
const margin = 15 * time.Second

// Left is how long an invocation may go on working, 0 where it has no end.
func (h *Host) Left(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := end.Sub(h.Now())
	return max(left-min(margin, left/4), time.Millisecond)
}

// working is the context of what begins nothing new when the invocation is about to end.
func (h *Host) working(ctx context.Context) (context.Context, context.CancelFunc) {
	left := h.Left(ctx)
	if left == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, left)
}
