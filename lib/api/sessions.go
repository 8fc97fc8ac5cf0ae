package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (a *api) sessions() {
	accept(a, operation{id: "create-session", method: http.MethodPost, path: "/v1/session", tag: "tokens", scope: access.Read, status: http.StatusCreated,
		summary: "Open a session: a token that ends soon and allows no more than the one that asks, for a browser to keep; its secret is shown this once",
		codes:   []control.Code{codeNoSession},
		example: map[string]any{"name": "console"}}, a.sessionOf, a.createSession)
	register(a, operation{id: "get-session", method: http.MethodGet, path: "/v1/session", tag: "tokens", scope: access.Read,
		summary: "Tell who asks: the session or the token, its tenant, and what it may do"}, a.getSession)
	register(a, operation{id: "end-session", method: http.MethodDelete, path: "/v1/session", tag: "tokens", scope: access.Read, status: http.StatusNoContent,
		summary: "End the session that asks, and nothing else",
		codes:   []control.Code{codeNoSession}}, a.endSession)
}

func (a *api) sessionOf(in input[wire.SessionRequest]) (access.Request, error) {
	b := in.body
	want := access.Request{Name: b.Name, Scopes: []access.Scope{access.Read}, Expires: a.Now().Add(access.SessionFor)}
	if b.Scopes != nil {
		want.Scopes = nil
	}
	for _, s := range b.Scopes {
		want.Scopes = append(want.Scopes, access.Scope(s))
	}
	var wrong error
	if d := b.ExpiresIn.Std(); d > access.SessionFor {
		wrong = invalid.Field("expires_in", b.ExpiresIn.String(), "at most 12h")
	} else if d != 0 {
		want.Expires = a.Now().Add(d)
	}
	return want, errors.Join(want.CheckSession(a.Now()), wrong)
}

// opened and ended have the cookie beside what is answered.
type (
	opened struct {
		SetCookie string `header:"Set-Cookie" doc:"has the secret, where a cookie was asked for and the server may give one"`
		Body      wire.Session
	}
	ended struct {
		SetCookie string `header:"Set-Cookie" doc:"takes the cookie back that carried the session"`
	}
)

func (a *api) createSession(ctx context.Context, _ *struct{}, in input[wire.SessionRequest], want access.Request) (*opened, error) {
	text, t, err := a.Gate.Open(ctx, callerOf(ctx), want)
	if err != nil {
		return nil, err
	}
	if in.body.Cookie && keepsCookie(ctx) {
		return &opened{SetCookie: sessionCookie(text, t.Expires.Sub(a.Now())), Body: wire.Session{Token: TokenForm(t)}}, nil
	}
	return &opened{Body: wire.Session{Token: TokenForm(t), Secret: text}}, nil
}

func (a *api) getSession(ctx context.Context, _ *struct{}, _ input[noBody]) (*answer[wire.Caller], error) {
	c := callerOf(ctx)
	shown := wire.Caller{ID: c.Token, Name: c.Name, Tenant: c.Tenant, Parent: c.Parent, Scopes: make([]string, len(c.Scopes)), ExpiresAt: c.Expires}
	for i, s := range c.Scopes {
		shown.Scopes[i] = string(s)
	}
	return &answer[wire.Caller]{shown}, nil
}

func (a *api) endSession(ctx context.Context, _ *struct{}, in input[noBody]) (*ended, error) {
	caller := callerOf(ctx)
	if caller.Parent == "" {
		return nil, newProblem(codeNoSession, "The caller is no session. A token of its own is revoked by another one.")
	}
	if err := a.Gate.Tokens.Revoke(ctx, in.tenant, caller.Token); err != nil {
		return nil, err
	}
	if keepsCookie(ctx) {
		return &ended{SetCookie: sessionCookie("", 0)}, nil
	}
	return &ended{}, nil
}
