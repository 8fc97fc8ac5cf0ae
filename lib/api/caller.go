package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/access"
)

type callerKey struct{}

// callerOf is who makes the request, as admit found.
func callerOf(ctx context.Context) access.Caller {
	c, _ := ctx.Value(callerKey{}).(access.Caller)
	return c
}

// open tells the paths that ask nobody who they are: those that a load balancer looks at.
func open(path string) bool { return path == "/healthz" || path == "/readyz" }

// admit finds out who calls, before anything else is said: who gives no token learns of no path whether it is there.
func (a *api) admit(r *http.Request) (*http.Request, *problem) {
	if open(r.URL.Path) {
		return r, nil
	}
	caller, err := a.Who(r)
	if err != nil {
		return r, a.problemOf(r.Context(), err)
	}
	ctx := context.WithValue(r.Context(), callerKey{}, caller)
	if a.ofPage(r) {
		ctx = context.WithValue(ctx, keepsKey{}, true)
	}
	return r.WithContext(ctx), nil
}

// byToken is the caller whose token a request brings: in the header, or else in the cookie of a session.
func (a *api) byToken(r *http.Request) (access.Caller, error) {
	text, refused := bearer(r)
	if text == "" && refused == nil {
		text, refused = a.byCookie(r)
	}
	if refused != nil {
		return access.Caller{}, refused
	}
	return a.Gate.Admit(r.Context(), text, a.from(r))
}

// bearer is the token that a request brings, "" for none.
func bearer(r *http.Request) (string, *problem) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return "", nil
	}
	scheme, text, found := strings.Cut(given[0], " ")
	text = strings.TrimSpace(text)
	if len(given) > 1 || !found || text == "" || !strings.EqualFold(scheme, "Bearer") {
		return "", unauthenticated("The Authorization header must be one, of the form Bearer bel_…", false)
	}
	return text, nil
}

// from is the address of the caller, the zero Addr where it is not known. What a proxy says of it counts only where there is
// one: else callers could say of themselves that they are somebody else. Of several addresses the last is the one that the
// proxy saw; those before it are what the caller claims.
func (a *api) from(r *http.Request) netip.Addr {
	if forwarded := r.Header.Values("X-Forwarded-For"); a.BehindProxy && len(forwarded) > 0 {
		last := forwarded[len(forwarded)-1]
		last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		if seen, err := netip.ParseAddr(last); err == nil {
			return seen
		}
		if seen, err := netip.ParseAddrPort(last); err == nil {
			return seen.Addr()
		}
	}
	seen, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return seen.Addr()
}

// gate lets an operation begin: its caller may do it, and there is room for it. leave gives the room back.
func (a *api) gate(ctx context.Context, op operation) (leave func(), refused *problem) {
	if op.scope == access.Open {
		return func() {}, nil
	}
	caller := callerOf(ctx)
	switch {
	case !caller.May(op.scope):
		return nil, forbidden(op.scope, fmt.Sprintf("The %s has %s, and this asks for %s.", named(caller), scopesOf(caller), op.scope))
	case op.host && !caller.Host:
		return nil, forbidden(op.scope, fmt.Sprintf("This concerns the server as a whole and is for callers of the tenant %s; the %s is one of %s.",
			a.Gate.Tenant, named(caller), caller.Tenant))
	}
	var err error
	switch {
	case op.waits:
		leave, err = a.Gate.Wait(caller)
	case op.batch:
		leave, err = a.Gate.Enter(caller, access.BatchPlaces)
	default:
		leave, err = a.Gate.Enter(caller, 1)
	}
	if err != nil {
		return nil, a.problemOf(ctx, err)
	}
	return leave, nil
}

func named(c access.Caller) string {
	switch {
	case c.Token == "":
		return "caller " + shown(c.Name)
	case c.Name == "":
		return "token " + c.Token
	}
	return "token " + c.Token + " (" + shown(c.Name) + ")"
}

func scopesOf(c access.Caller) string {
	if len(c.Scopes) == 0 {
		return "no scope"
	}
	names := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		names[i] = string(s)
	}
	return "the scope " + strings.Join(names, " and ")
}

// reading is gate in front of what is no operation of the document.
func (a *api) reading(host bool, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, refused := a.gate(r.Context(), operation{scope: access.Read, host: host})
		if refused != nil {
			refused.write(w)
			return
		}
		defer leave()
		handler.ServeHTTP(w, r)
	})
}

func unauthenticated(detail string, given bool) *problem {
	p := newProblem(codeUnauthenticated, detail)
	p.challenge = `Bearer realm="belfry"`
	if given {
		p.challenge += `, error="invalid_token"`
	}
	return p
}

func forbidden(scope access.Scope, detail string) *problem {
	p := newProblem(codeForbidden, detail)
	p.challenge = fmt.Sprintf(`Bearer realm="belfry", error="insufficient_scope", scope="%s"`, scope)
	return p
}
