package belfry

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/internal/seam"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// tested is an engine whose work somebody else does: belfrytest, in its own time.
type tested struct {
	desk
	parts seam.Parts
}

func (e tested) work(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (e tested) hurry()                          { e.parts.Hurry() }
func (e tested) close() error                    { return e.parts.Close() }
func (e tested) ready(ctx context.Context) error { return e.parts.Ready(ctx) }

func init() {
	seam.Over = func(p seam.Parts) (any, func() bool) {
		b := over(tested{desk{p.Control}, p}, p.Handlers, p.Now, config{queue: job.DefaultQueue, log: p.Log})
		return b, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.phase == stopped
		}
	}
}
