package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// beside is what a process without an API stands on: engines that others use too, and what shows its work.
type beside struct {
	log    *slog.Logger
	tracer *trace.Tracer
	data   *cloud.Data

	untraced, hidden func()
}

// beside opens it; whoever got no error calls close.
func (e *engineFlags) beside(ctx context.Context, stderr io.Writer, pools []cloud.Pool, l logFlags, t traceFlags, s scrapeFlags) (*beside, error) {
	log, err := newLog(stderr, l.format, l.level)
	if err != nil {
		return nil, err
	}
	o := &beside{log: log}
	if o.tracer, o.untraced, err = t.open(ctx, log); err != nil {
		return nil, err
	}
	registry := metrics.New()
	if o.hidden, err = s.open(ctx, registry, log); err != nil {
		o.untraced()
		return nil, err
	}
	if o.data, err = e.open(ctx, pools, registry, log); err != nil {
		o.hidden()
		o.untraced()
		return nil, err
	}
	return o, nil
}

// close ends the parts in the order in which they need each other.
func (o *beside) close() error {
	err := o.data.Close()
	o.hidden()
	o.untraced()
	return err
}
