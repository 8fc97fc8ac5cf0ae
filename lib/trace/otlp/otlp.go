// Package otlp sends spans to a collector of OpenTelemetry, by OTLP over HTTP with protobuf. Where it is, what it is told about this
// process and how much waits for it say the variables that OpenTelemetry has for that: OTEL_EXPORTER_OTLP_ENDPOINT,
// OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*, and so on.
//
// Spans are sent in batches, aside. What the collector does not take in time is dropped when the queue is full; nobody waits for it.
package otlp

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Config is for Open.
type Config struct {
	Service string       // how this process is called, unless OTEL_SERVICE_NAME says
	Version string       // of Belfry
	Log     *slog.Logger // default: discards
}

// Open prepares to send. It asks nobody: a collector that is away drops spans and nothing else.
func Open(ctx context.Context, cfg Config) (trace.Exporter, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	// The SDK has one place for all of a process, and would print there.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Log.Warn("spans were not sent", "error", err) }))
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", cfg.Service), attribute.String("service.version", cfg.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // last: what the operator says counts
	)
	if err != nil {
		return nil, fmt.Errorf("what OTEL_RESOURCE_ATTRIBUTES says: %w", err)
	}
	sender, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("what OTEL_EXPORTER_OTLP_… say: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(sender), sdktrace.WithResource(about), sdktrace.WithIDGenerator(given{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // what comes here was chosen
	)
	return &exporter{provider: provider, tracer: provider.Tracer("github.com/belfry-scheduler/belfry", oteltrace.WithInstrumentationVersion(cfg.Version))}, nil
}

type exporter struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
}

var kinds = map[trace.Kind]oteltrace.SpanKind{
	trace.Internal: oteltrace.SpanKindInternal, trace.Server: oteltrace.SpanKindServer, trace.Client: oteltrace.SpanKindClient,
	trace.Producer: oteltrace.SpanKindProducer, trace.Consumer: oteltrace.SpanKindConsumer,
}

// Export queues a span. The SDK begins and ends it at once, with the times and names that it had.
func (e *exporter) Export(d trace.Data) {
	ctx := context.WithValue(context.Background(), names{}, d.Context)
	if d.Above != [8]byte{} {
		above := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: d.Trace, SpanID: d.Above, TraceFlags: oteltrace.FlagsSampled, Remote: !d.Local})
		ctx = oteltrace.ContextWithSpanContext(ctx, above)
	}
	attributes := make([]attribute.KeyValue, len(d.Attrs), len(d.Attrs)+1)
	for i, a := range d.Attrs {
		attributes[i] = attribute.String(a.Key, a.Value)
	}
	if d.Missed > 0 {
		attributes = append(attributes, attribute.Int("belfry.missed_spans", d.Missed))
	}
	links := make([]oteltrace.Link, len(d.Links))
	for i, l := range d.Links {
		links[i].SpanContext = oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: l.Trace, SpanID: l.Span, TraceFlags: oteltrace.FlagsSampled, Remote: true})
	}
	_, span := e.tracer.Start(ctx, d.Name, oteltrace.WithSpanKind(kinds[d.Kind]), oteltrace.WithTimestamp(d.Start),
		oteltrace.WithAttributes(attributes...), oteltrace.WithLinks(links...))
	if d.Error != "" {
		span.SetStatus(codes.Error, d.Error)
	}
	span.End(oteltrace.WithTimestamp(d.End))
}

// Flush sends what waits.
func (e *exporter) Flush(ctx context.Context) error { return e.provider.ForceFlush(ctx) }

// Close sends what waits, and ends.
func (e *exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }

// given names spans as they were named when they began.
type given struct{}

type names struct{}

func (given) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	c, _ := ctx.Value(names{}).(trace.Context)
	return c.Trace, c.Span
}

func (given) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	c, _ := ctx.Value(names{}).(trace.Context)
	return c.Span
}
