package sim

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// function is how long an invocation of the tick may take.
const function = 55 * time.Second

// calledTicks calls the function that ticks, each minute at any moment of it: every call begins without memory, as a cold start does.
func (h *host) calledTicks(ctx context.Context) {
	r := h.Rand("calls of " + h.id)
	for {
		now := h.World.Now()
		next := now.Truncate(time.Minute).Add(time.Minute + time.Duration(r.Int64N(int64(time.Minute))))
		wait := time.NewTimer(next.Sub(now))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		// What fails is not told to anybody: the next minute's call goes on.
		_ = h.calledTick(ctx)
	}
}

func (h *host) calledTick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, function)
	defer cancel()
	nothing, err := target.New(target.Config{Now: h.clock.now})
	if err != nil {
		return err
	}
	cfg := node.Config{
		Store: shelf{h}, Queues: h.queues, Blobs: h.blobs, Targets: nothing, Metrics: metrics.New(),
		Now: h.clock.now, Elapsed: h.clock.elapsed, NewID: h.newID, Name: h.id + " function", Shared: true, Shards: h.Mix.Shape.Shards, NoTicks: true,
		Callbacks: h.Mix.Defaults,
	}
	n, err := node.New(ctx, cfg)
	if err != nil {
		return err
	}
	n.Ticker.Counts = h.Mix.Counts
	tick, err := lambda.Tick(&lambda.Host{Data: &cloud.Data{Store: cfg.Store, Queues: cfg.Queues, Blobs: cfg.Blobs}, Node: n, Metrics: cfg.Metrics,
		Log: n.Log, Now: cfg.Now, Elapsed: cfg.Elapsed, NewID: cfg.NewID})
	if err != nil {
		return err
	}
	_, err = tick(ctx, []byte(`{}`))
	return err
}
