package api

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// requestHeader names a request, for whoever asks what became of it: the lines of the log have it.
const requestHeader = "X-Request-Id"

// named gives the request its name, that of the caller where he brings one.
func (a *api) named(w http.ResponseWriter, r *http.Request) *http.Request {
	name := r.Header.Get(requestHeader)
	if !isName(name) {
		if a.NewID == nil {
			return r
		}
		name = strconv.FormatUint(a.NewID(), 36)
	}
	w.Header().Set(requestHeader, name)
	return r.WithContext(trace.Tell(r.Context(), slog.String("request_id", name)))
}

// isName tells whether a text can stand in headers and logs as a request's name.
func isName(text string) bool {
	if text == "" || len(text) > 128 {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) < 0
}

// traced begins the span of a request, when it is known whose it is: strangers have nothing recorded. What asks again and again,
// workers for work and monitors for a look, has none. A caller's own trace goes on here; AWS's header, which services on the way
// write, counts where there is no other.
func (a *api) traced(r *http.Request) (*http.Request, *trace.Span) {
	ctx := r.Context()
	if caller := callerOf(ctx); caller.Tenant != "" {
		ctx = trace.Tell(ctx, slog.String("tenant", caller.Tenant))
	}
	if a.Tracer == nil || open(r.URL.Path) || r.URL.Path == "/metrics" || r.URL.Path == "/openapi.json" || strings.HasPrefix(r.URL.Path, "/v1/work/") {
		return r.WithContext(ctx), nil
	}
	from, ok := trace.Parse(r.Header.Get("Traceparent"))
	if !ok {
		from, ok = trace.ParseXRay(r.Header.Get("X-Amzn-Trace-Id"))
	}
	if ok {
		ctx = trace.With(ctx, from)
	}
	ctx, span := a.Tracer.Begin(ctx, trace.Server, r.Method)
	if span != nil {
		if _, pattern := a.mux.Handler(r); pattern != "" {
			span.Rename(pattern)
			if _, route, found := strings.Cut(pattern, " "); found {
				span.Set("http.route", route)
			}
		}
		span.Set("http.request.method", r.Method)
		span.Set("url.path", r.URL.Path)
		span.Set("belfry.tenant", callerOf(ctx).Tenant)
	}
	return r.WithContext(ctx), span
}
