package awstarget

import (
	"context"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// traceHeader is where all services of AWS look for the trace that a request is part of. They hand it on: in a function's context, a
// message's AWSTraceHeader, an event, an execution.
const traceHeader = "X-Amzn-Trace-Id"

// traced has requests say which span they are below.
func traced(stack *middleware.Stack) error {
	say := func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			if header := trace.From(ctx).XRay(); header != "" {
				r.Header.Set(traceHeader, header)
			}
		}
		return next.HandleBuild(ctx, in)
	}
	return stack.Build.Add(middleware.BuildMiddlewareFunc("Trace", say), middleware.After)
}
