package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/emf"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Host is what a function stands on: opened once a cold start, and kept for as long as Lambda keeps the process.
type Host struct {
	Settings
	Data    *cloud.Data
	Node    *node.Node // it does not run; its parts do what an invocation asks for
	Vault   *secret.Vault
	Metrics *metrics.Registry
	Tracer  *trace.Tracer // nil records nothing
	Log     *slog.Logger
	Now     func() time.Time
	Elapsed func() time.Duration
	NewID   func() uint64
	Random  io.Reader

	ends []func(context.Context) error
}

// Open opens what a function stands on, by the variables of its environment; it writes its log and its metrics to out, a JSON object a
// line. It makes one request, which reads the layout of the table.
func Open(ctx context.Context, getenv func(string) string, out io.Writer) (*Host, error) {
	settings, err := Read(getenv)
	if err != nil {
		return nil, fmt.Errorf("the function's environment: %w", err)
	}
	h := &Host{Settings: settings, Metrics: metrics.New(), Now: clock, Elapsed: elapsed(), NewID: newID, Random: random,
		Log: slog.New(trace.Log(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: settings.LogLevel})))}
	if h.Data, err = cloud.Open(ctx, cloud.Config{Store: h.Store, Queue: h.Queue, Blob: h.Blob, Queues: h.Pools,
		Account: cloud.Environment, Now: h.Now, NewID: h.NewID, Metrics: h.Metrics, Log: h.Log}); err != nil {
		return nil, err
	}
	var keys func() (*secret.Ring, error)
	if h.Keys != "" {
		keys = func() (*secret.Ring, error) { return secret.ParseRing(h.Keys) }
	}
	if h.Vault, err = secret.New(secret.Config{Store: h.Data.Store, Now: h.Now, Random: h.Random, NewID: h.NewID, Keys: keys}); err != nil {
		return nil, err
	}
	nothing, err := target.New(target.Config{Now: h.Now}) // the node itself calls no target
	if err != nil {
		return nil, err
	}
	if h.Stack != "" {
		emitter, err := emf.New(emf.Config{Registry: h.Metrics, Out: out, Stack: h.Stack, Now: h.Now})
		if err != nil {
			return nil, err
		}
		h.AtEnd(func(context.Context) error { return emitter.Flush() })
	}
	if h.Tracer, err = h.tracer(ctx, h); err != nil {
		return nil, fmt.Errorf("BELFRY_TRACE %s: %w", h.Trace, err)
	}
	h.Node, err = h.Data.Node(ctx, node.Config{Targets: nothing, Elapsed: h.Elapsed, Shards: h.Shards, LookAhead: h.LookAhead, CatchUpRate: h.CatchUpRate, Callbacks: h.Callbacks, Tracer: h.Tracer,
		NoTicks: true, Can: h.Can})
	return h, err
}

// Can tells whether functions can run a target: they work on the default queue, and others on the rest.
func (s Settings) Can(queue string, spec target.Spec) error {
	switch {
	case queue != job.DefaultQueue:
		return nil
	case spec.Email != nil:
		return errors.New("functions send no mail; name an SNS topic with subscribers by e-mail as an aws target, or a queue whose workers are elsewhere")
	case spec.Exec != nil, spec.Handler != nil:
		return errors.New("functions call http and aws targets only; name a queue whose workers are elsewhere")
	case spec.AWS == nil:
		return nil
	case s.own(spec.AWS.ARN):
		return errOwn(spec.AWS.ARN)
	}
	for _, arn := range []string{spec.AWS.ARN, spec.AWS.RoleARN} {
		// Whose the job is, the worker looks at: a pattern may be for one tenant alone.
		if arn != "" && !slices.ContainsFunc(s.ARNs, func(p target.ARNPattern) bool { return p.Allows(arn, "*") }) {
			return fmt.Errorf("the stack does not let jobs name %s: add it to the parameter TargetArns or RoleArns (BELFRY_TARGET_ARNS)", arn)
		}
	}
	return nil
}

// AtEnd has a function called at the end of every invocation, before it is answered: what is written later may be lost, since the
// process is frozen then.
func (h *Host) AtEnd(end func(context.Context) error) { h.ends = append(h.ends, end) }

// flushFor bounds what is done at the end of an invocation.
const flushFor = 2 * time.Second

// Ending gives a handler with what is to be done at the end of each invocation. It fails none.
func Ending[In, Out any](h *Host, handle func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		if about, ok := lambdacontext.FromContext(ctx); ok {
			ctx = trace.Tell(ctx, slog.String("request_id", about.AwsRequestID))
		}
		defer h.end(ctx)
		return handle(ctx, in)
	}
}

func (h *Host) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushFor)
	defer cancel()
	var errs []error
	for _, end := range h.ends {
		errs = append(errs, end(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		h.Log.WarnContext(ctx, "metrics or traces of an invocation were lost", "error", err)
	}
}

// SQSHandler answers events of an event source mapping that reports batch item failures.
type SQSHandler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
