package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Handler answers events of a REST API, and those of its authorizer.
type Handler func(context.Context, json.RawMessage) (any, error)

// API gives the handler of the function behind API Gateway. version is that of this build.
func API(h *lambda.Host, version string) (Handler, error) {
	tokens, err := access.New(access.Config{Store: h.Data.Store, Now: h.Now, Random: h.Random, NewID: h.NewID, Log: h.Log})
	if err != nil {
		return nil, err
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: h.Now, Required: true, Tenant: h.Tenant, Log: h.Log})
	if err != nil {
		return nil, err
	}
	g := &gateway{Host: h}
	if h.Auth.Kind == lambda.AuthJWT {
		g.authorizer = newAuthorizer(h.Auth, h.Tenant, h.Now)
	}
	if g.handler, err = api.New(api.Config{Control: h.Node.Control, Gate: gate, Who: who, Now: h.Now, Version: version, Log: h.Log, NewID: h.NewID,
		Counts: h.Metrics, Tracer: h.Tracer, Ready: g.ready, Queues: g.queues, Workers: noWorkers, Secrets: h.Vault,
		PageBytes: maxAnswer, Measure: sizeOf}); err != nil {
		return nil, err
	}
	return lambda.Ending(h, g.handle), nil
}

type gateway struct {
	*lambda.Host
	handler    http.Handler
	authorizer *authorizer // nil: API Gateway finds out by itself who calls
}

func (g *gateway) handle(ctx context.Context, event json.RawMessage) (any, error) {
	if asksAuthorizer(event) {
		return g.authorize(ctx, event)
	}
	var request events.APIGatewayProxyRequest
	if err := json.Unmarshal(event, &request); err != nil || request.HTTPMethod == "" {
		return nil, errors.New("the event is neither a request of a REST API (format 1.0) nor one of its authorizer")
	}
	return g.serve(ctx, request)
}

func (g *gateway) authorize(ctx context.Context, event json.RawMessage) (any, error) {
	if g.authorizer == nil {
		return nil, fmt.Errorf("the event is one of an authorizer, and BELFRY_AUTH is %q, not %s", g.Auth.Kind, lambda.AuthJWT)
	}
	var asked events.APIGatewayCustomAuthorizerRequest
	if err := json.Unmarshal(event, &asked); err != nil {
		return nil, fmt.Errorf("the event of an authorizer: %w", err)
	}
	answer, why, err := g.authorizer.authorize(ctx, asked)
	switch {
	case errors.Is(err, errUnauthorized):
		g.Log.WarnContext(ctx, "a token was refused", "reason", why)
		return nil, err
	case err != nil:
		g.Log.ErrorContext(ctx, "a token was not verified", "error", err)
		return nil, err
	}
	return answer, nil
}

// early is how long before the invocation the request ends, so that it is still answered.
const early = 500 * time.Millisecond

type callerKey struct{}

// caller is who makes a request, or why that is not known.
type caller struct {
	access.Caller
	err error
}

func who(r *http.Request) (access.Caller, error) {
	c, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		return access.Caller{}, errors.New("a request that came past API Gateway")
	}
	return c.Caller, c.err
}

func (g *gateway) serve(ctx context.Context, event events.APIGatewayProxyRequest) (any, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-early))
		defer cancel()
	}
	var c caller
	c.Caller, c.err = g.callerOf(event.RequestContext)
	r, err := requestOf(context.WithValue(ctx, callerKey{}, c), event)
	if err != nil {
		return nil, err
	}
	if header := g.Invocation(ctx); header != "" {
		r.Header.Set("X-Amzn-Trace-Id", header)
	}
	answered := &recorder{header: http.Header{}, bytes: asksForBytes(r)}
	g.handler.ServeHTTP(answered, r)
	g.Log.DebugContext(ctx, "request", "method", r.Method, "path", r.URL.Path, "status", answered.status, "tenant", c.Tenant, "caller", c.Name)
	return answered.answer(), nil
}

// queues are the stack's, for the tenant whose it is: what waits in them is of all tenants.
func (g *gateway) queues(ctx context.Context, tenant string) ([]wire.Queue, error) {
	if tenant != g.Tenant {
		return nil, nil
	}
	pools, err := g.Node.Pools(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]wire.Queue, len(pools))
	for i, pool := range pools {
		shown[i] = wire.Queue{Name: pool.Name, Priorities: map[string]wire.Depth{}, Shared: true}
		for priority, d := range pool.Depth {
			shown[i].Priorities[string(priority)] = wire.Depth{Ready: d.Ready, Delayed: d.Delayed, Taken: d.Taken}
		}
	}
	return shown, nil
}

// noWorkers: those of a stack come and go, and nobody counts them.
func noWorkers(context.Context, string) ([]wire.Worker, error) { return nil, nil }
