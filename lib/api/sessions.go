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
		example: map[string]any{"name": "console"}}, func(in input[wire.SessionRequest]) error { _, err := a.sessionOf(in.body); return err }, a.createSession)
	register(a, operation{id: "end-session", method: http.MethodDelete, path: "/v1/session", tag: "tokens", scope: access.Read, status: http.StatusNoContent,
		summary: "End the session that asks, and nothing else",
		codes:   []control.Code{codeNoSession}}, a.endSession)
}

func (a *api) sessionOf(b wire.SessionRequest) (access.Request, error) {
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

func (a *api) createSession(ctx context.Context, _ *struct{}, in input[wire.SessionRequest]) (*answer[wire.NewToken], error) {
	want, err := a.sessionOf(in.body)
	if err != nil {
		return nil, err
	}
	text, t, err := a.Gate.Open(ctx, callerOf(ctx), want)
	if err != nil {
		return nil, err
	}
	return &answer[wire.NewToken]{wire.NewToken{Token: TokenForm(t), Secret: text}}, nil
}

func (a *api) endSession(ctx context.Context, _ *struct{}, in input[noBody]) (*struct{}, error) {
	caller := callerOf(ctx)
	if caller.Parent == "" {
		return nil, newProblem(codeNoSession, "The caller is no session. A token of its own is revoked by another one.")
	}
	return nil, a.Gate.Tokens.Revoke(ctx, in.tenant, caller.Token)
}
