package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

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
	Look    Look                                                            // into a queue; default: no /v1/queues/{queue}/messages
	Metrics http.Handler                                                    // default: no /metrics
	Backup  func(context.Context, io.Writer) error                          // writes one of all tenants; default: no /v1/backup
	Secrets *secret.Vault                                                   // default: no /v1/secrets
	Remote  *lease.Remote                                                   // serves workers in other processes; default: no /v1/work

	Simulator Simulator // default: no /v1/simulate
	Planner   Planner   // default: no /v1/plan
	Changes   *Changes  // default: no /v1/changes

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
	*description
	mux *http.ServeMux
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
	parts := partsOf(cfg)
	made, whole := descriptions.Load(parts)
	if whole {
		a.description = made.(*description)
	} else {
		a.description = newDescription(cfg.Version)
	}
	if a.Who == nil {
		a.Who = a.byToken
	}
	a.jobs()
	a.calendars()
	a.runs()
	a.stats()
	a.deadLetters()
	a.gates()
	a.system()
	a.workflows()
	a.tokens()
	a.sessions()
	if cfg.Backup != nil {
		a.backups()
	}
	if cfg.Secrets != nil {
		a.secrets()
	}
	if cfg.Remote != nil {
		a.work()
	}
	if cfg.Simulator != nil {
		a.simulations()
	}
	if cfg.Planner != nil {
		a.plans()
	}
	if cfg.Look != nil {
		a.looks()
	}
	if cfg.Changes != nil {
		a.following()
	}

	if !whole {
		a.finish()
		descriptions.Store(parts, a.description)
	}
	a.mux.Handle("GET /openapi.json", a.reading(false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := a.text()
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
	a.guarded(w, r, func(w http.ResponseWriter, r *http.Request) {
		defer a.caught(w, &r) // before guarded does, which does not know the caller
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
	})
}

// guarded passes on what is not for the console, and nothing that a web page of elsewhere has made a browser send.
func (a *api) guarded(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	r = a.named(w, r)
	defer a.caught(w, &r)
	if refused := a.guard(r); refused != nil {
		refused.write(w)
		return
	}
	if !a.shown(w, r) {
		next(w, r)
	}
}

// caught answers a request whose handler panicked. It is to be deferred itself.
func (a *api) caught(w http.ResponseWriter, r **http.Request) {
	if cause := recover(); cause != nil {
		a.Log.ErrorContext((*r).Context(), "request panicked", "method", (*r).Method, "path", (*r).URL.Path, "cause", cause, "stack", string(debug.Stack()))
		newProblem(codeInternal, "Belfry made an error. Its log has the details.").write(w)
	}
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
