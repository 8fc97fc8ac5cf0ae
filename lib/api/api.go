package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Config is what the API stands on. Fields without a default are required.
type Config struct {
	Control *control.Service
	Gate    *access.Gate // who may call, and as which tenant; and how much at once

	// Who tells who calls, where something in front of the handler has found it out already; an *access.Unauthenticated says that
	// it did not. Default: the gate, by the request's token.
	Who func(*http.Request) (access.Caller, error)

	Now     func() time.Time
	Version string
	Log     *slog.Logger      // default: discards
	NewID   func() uint64     // random, names requests in the log. Default: those alone have a name that bring one
	Counts  *metrics.Registry // what is refused for load. Default: new
	Tracer  *trace.Tracer     // default: traces nothing

	Ready   func(context.Context) []wire.Check                              // what the process needs to do its work
	Queues  func(ctx context.Context, tenant string) ([]wire.Queue, error)  // what waits, by pool that the tenant may see
	Workers func(ctx context.Context, tenant string) ([]wire.Worker, error) // of this process, and of the tenant elsewhere
	Metrics http.Handler                                                    // default: no /metrics
	Backup  func(context.Context, io.Writer) error                          // writes one of all tenants; default: no /v1/backup
	Secrets *secret.Vault                                                   // default: no /v1/secrets
	Remote  *lease.Remote                                                   // serves workers in other processes; default: no /v1/work

	// Console is what /console shows, to anybody who may reach the server: pages for browsers, which say nothing of what the API has.
	// "/" leads browsers there. Default: none
	Console http.Handler

	// PageBytes bounds the answer to a listing, by Measure, which tells how much a part of it counts for. Default: MaxPage, by
	// length. Less is for what stands in front of the handler and passes less on.
	PageBytes int
	Measure   func(text []byte) int

	// Local refuses requests whose Host is neither a loopback name or address nor one of Hosts: for a server that only this
	// machine is to reach. Requests of web pages from elsewhere are refused in any case.
	Local bool
	Hosts []string

	// BehindProxy believes the last address in X-Forwarded-For to be the caller's.
	BehindProxy bool
}

type api struct {
	Config
	huma  huma.API
	mux   *http.ServeMux
	later later
}

// New builds the handler. It answers everything below "/".
func New(cfg Config) (http.Handler, error) {
	if cfg.Control == nil || cfg.Gate == nil || cfg.Now == nil || cfg.Ready == nil || cfg.Queues == nil || cfg.Workers == nil {
		return nil, errors.New("api: Control, Gate, Now, Ready, Queues and Workers are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Counts == nil {
		cfg.Counts = metrics.New()
	}
	if cfg.PageBytes == 0 {
		cfg.PageBytes = MaxPage
	}
	if cfg.Measure == nil {
		cfg.Measure = func(text []byte) int { return len(text) }
	}
	a := &api{Config: cfg, mux: http.NewServeMux()}
	if a.Who == nil {
		a.Who = a.byToken
	}
	a.huma = humago.New(a.mux, a.document())
	a.jobs()
	a.runs()
	a.deadLetters()
	a.system()
	a.tokens()
	if cfg.Backup != nil {
		a.backups()
	}
	if cfg.Secrets != nil {
		a.secrets()
	}
	if cfg.Remote != nil {
		a.work()
	}

	a.finish()
	// Written when it is first asked for: that takes as long as all the rest of a start, and a function starts often.
	document := sync.OnceValues(func() ([]byte, error) { return json.Marshal(a.huma.OpenAPI()) })
	a.mux.Handle("GET /openapi.json", a.reading(false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := document()
		if err != nil {
			a.problemOf(r.Context(), fmt.Errorf("OpenAPI document: %w", err)).write(w)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		w.Write(text)
	})))
	if cfg.Metrics != nil {
		a.mux.Handle("GET /metrics", a.reading(true, cfg.Metrics))
	}
	return http.HandlerFunc(a.serve), nil
}

// serve is what every request passes.
func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	r = a.named(w, r)
	defer func() {
		if cause := recover(); cause != nil {
			a.Log.ErrorContext(r.Context(), "request panicked", "method", r.Method, "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
			newProblem(codeInternal, "Belfry made an error. Its log has the details.").write(w)
		}
	}()
	if refused := a.guard(r); refused != nil {
		refused.write(w)
		return
	}
	if a.shown(w, r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	admitted, refused := a.admit(r.WithContext(ctx))
	if refused != nil {
		refused.write(w)
		return
	}
	r, span := a.traced(admitted)
	defer span.End()
	if r.Method == http.MethodOptions {
		a.options(w, r)
		return
	}
	if nowhere := lost(a.mux, w, r); nowhere != nil {
		nowhere.write(w)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// options tells which methods a path has. It grants pages of other sites nothing.
func (a *api) options(w http.ResponseWriter, r *http.Request) {
	nowhere := lost(a.mux, w, r)
	if nowhere != nil && nowhere.Status != http.StatusMethodNotAllowed {
		nowhere.write(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// input is what a handler gets beside its parameters: whose request it is, and the body, of its own type.
type input[B any] struct {
	tenant string
	body   B
}

type inputKey struct{}

// register adds an operation without a body, whose parameters are P and whose answer is JSON of type T. Their form is checked before the handler
// runs.
func register[P, T any](a *api, op operation, handle func(ctx context.Context, params *P, in input[noBody]) (*answer[T], error)) {
	add(a, op, nil, nil, handle)
}

// accept is register for an operation with a body of type B. values names what of a body cannot be, as far as that can be told without the
// store: where the form of something is wrong, what it says of the rest is answered too. The handler refuses the same.
func accept[P, B, T any](a *api, op operation, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*answer[T], error)) {
	var none B
	add(a, op, a.schemaOf(none), values, handle)
}

// registerOwn is register for an answer O of its own: one with headers, of another form, or of none.
func registerOwn[P, O any](a *api, op operation, handle func(ctx context.Context, params *P, in input[noBody]) (*O, error)) {
	addOwn(a, op, nil, nil, handle)
}

// acceptOwn is accept for an answer of its own.
func acceptOwn[P, B, O any](a *api, op operation, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*O, error)) {
	var none B
	addOwn(a, op, a.schemaOf(none), values, handle)
}

// formAlone is for bodies of which the form says all.
func formAlone[B any](input[B]) error { return nil }

// plain is what the framework is told of an answer that is JSON and nothing else: it is compiled once for each pair of parameters and
// answer, 20 KB of it, and the function behind API Gateway is to stay small.
type plain struct{ Body any }

func add[P, B, T any](a *api, op operation, schema *huma.Schema, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*answer[T], error)) {
	var none T
	described := op.describe(a, schema)
	described.Middlewares = a.checked(op, schema, judging(values))
	described.Responses[strconv.Itoa(op.success())] = &huma.Response{Content: map[string]*huma.MediaType{mediaJSON: {Schema: a.schemaOf(none)}}}
	huma.Register(a.huma, described, func(ctx context.Context, params *P) (*plain, error) {
		in, _ := ctx.Value(inputKey{}).(input[B])
		out, err := handle(ctx, params, in)
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return &plain{out.Body}, nil
	})
	op.complete(a, schema)
}

func addOwn[P, B, O any](a *api, op operation, schema *huma.Schema, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*O, error)) {
	described := op.describe(a, schema)
	described.Middlewares = a.checked(op, schema, judging(values))
	huma.Register(a.huma, described, func(ctx context.Context, params *P) (*O, error) {
		in, _ := ctx.Value(inputKey{}).(input[B])
		out, err := handle(ctx, params, in)
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return out, nil
	})
	op.complete(a, schema)
}

// judging reads a body of the right form, nil for an operation without one, and judges its values where its form is wrong elsewhere.
func judging[B any](values func(in input[B]) error) func(tenant string, right []byte, check *form) (in any, err error) {
	return func(tenant string, right []byte, check *form) (any, error) {
		in := input[B]{tenant: tenant}
		wrong := check.wrong() > 0
		if right == nil || check.full() {
			return in, nil
		}
		if err := json.Unmarshal(right, &in.body); err != nil && !wrong {
			return nil, err
		} else if err == nil && wrong {
			check.judge(values(in))
		}
		return in, nil
	}
}

// checked is what stands in front of an operation: who calls may do it, and what is asked for has the form that the document says.
func (a *api) checked(op operation, schema *huma.Schema, read func(tenant string, right []byte, check *form) (in any, err error)) huma.Middlewares {
	return huma.Middlewares{a.gated(op), func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		check := form{registry: a.huma.OpenAPI().Components.Schemas, later: a.later}
		check.parameters(ctx.Operation().Parameters, r)
		var right []byte
		if schema != nil {
			text, refused := readBody(w, r, op.bodyLimit())
			if refused != nil {
				refused.write(w)
				return
			}
			right = check.body(schema, text)
		}
		in, err := read(callerOf(ctx.Context()).Tenant, right, &check)
		if err == nil {
			err = check.problem()
		}
		if err != nil {
			a.problemOf(ctx.Context(), err).write(w)
			return
		}
		ctx = huma.WithValue(ctx, inputKey{}, in)
		if op.tagged {
			tagged(ctx, next)
			return
		}
		next(ctx)
	}}
}

// noBody is the body of operations that have none.
type noBody struct{}

// readBody takes a body of JSON. The type is asked for even of an empty one: a page of another site cannot send it
// without the browser asking first.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *problem) {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return nil, newProblem(codeNotJSON, "The body must be JSON, and the header Content-Type: application/json say so. Send {} where there is nothing to say.")
	}
	text, err := readAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, newProblem(codeTooLarge, "The body is larger than this path takes, which is "+sizeText(limit)+".")
	case err != nil:
		return nil, newProblem(codeMalformed, "The body broke off: "+err.Error())
	}
	return text, nil
}
