package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/trace/otlp"
)

// traceFlags say where traces go.
type traceFlags struct {
	to    string
	ratio float64
}

// What --trace may say.
const (
	traceNone = "none"
	traceOTLP = "otlp"
)

func (t *traceFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.to, "trace", traceNone, "`WHERE` traces go: none, or otlp for a collector of OpenTelemetry")
	f.Float64Var(&t.ratio, "trace-ratio", 0.05, "`RATIO` of the traces that begin here and are recorded, 0 to 1")
}

// sendFor is how long the last spans may take on their way when a process ends.
const sendFor = 2 * time.Second

// open gives the tracer, nil for none, and what ends it.
func (t *traceFlags) open(ctx context.Context, log *slog.Logger) (_ *trace.Tracer, end func(), err error) {
	service := os.Getenv("OTEL_SERVICE_NAME")
	if service == "" {
		service = "belfry"
	}
	if t.ratio < 0 || t.ratio > 1 {
		return nil, nil, misused("--trace-ratio %v: want 0 to 1", t.ratio)
	}
	var to trace.Exporter
	switch t.to {
	case traceNone:
		return nil, func() {}, nil
	case traceOTLP:
		to, err = otlp.Open(ctx, otlp.Config{Service: service, Version: thisBuild().Version, Log: log})
	case "xray":
		// Its SDK is linked into the functions of a stack alone, where the daemon stands beside them.
		err = misused("--trace %q: want %s; AWS's collector of OpenTelemetry passes on to X-Ray what it gets", t.to, traceOTLP)
	default:
		err = misused("--trace %q: want %s or %s", t.to, traceNone, traceOTLP)
	}
	if err != nil {
		return nil, nil, err
	}
	tracer, err := trace.New(trace.Config{Export: to, Now: time.Now, NewID: newID, Ratio: t.ratio})
	if err != nil {
		return nil, nil, err
	}
	return tracer, func() {
		ctx, cancel := context.WithTimeout(context.Background(), sendFor)
		defer cancel()
		if err := tracer.Close(ctx); err != nil {
			log.Warn("the last spans were not sent", "error", err)
		}
	}, nil
}
