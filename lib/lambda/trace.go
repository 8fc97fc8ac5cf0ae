package lambda

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/trace/otlp"
	"github.com/belfry-scheduler/belfry/lib/trace/xray"
)

// The places where traces go.
const (
	traceNone = "none"
	traceXRay = "xray"
	traceOTLP = "otlp"
)

// tracer gives what begins spans, nil for none. X-Ray's daemon is beside every function, at an address that Lambda says.
func (s Settings) tracer(ctx context.Context, h *Host) (*trace.Tracer, error) {
	var to trace.Exporter
	var err error
	switch s.Trace {
	case traceXRay:
		cfg := xray.Config{Daemon: s.xrayDaemon, Service: s.service()}
		if s.inLambda {
			cfg.Marker = xray.Marker
		}
		to, err = xray.Open(cfg)
	case traceOTLP:
		to, err = otlp.Open(ctx, otlp.Config{Service: s.service(), Log: h.Log})
	default:
		return nil, nil //nolint:nilnil // a nil Tracer records nothing
	}
	if err != nil {
		return nil, err
	}
	t, err := trace.New(trace.Config{Export: to, Now: h.Now, NewID: h.NewID, Ratio: s.TraceRatio})
	if err != nil {
		return nil, err
	}
	h.AtEnd(t.Flush)
	return t, nil
}

// Invocation is X-Ray's header for what an invocation does: below Lambda's own span, which X-Ray has. It is "" where traces go
// elsewhere: what Lambda decides about X-Ray says nothing about them.
func (s Settings) Invocation(ctx context.Context) string {
	if s.Trace != traceXRay {
		return ""
	}
	header, _ := ctx.Value("x-amzn-trace-id").(string) // where aws-lambda-go puts it
	return header
}

func (s Settings) service() string {
	if s.Stack == "" {
		return "belfry"
	}
	return s.Stack
}
