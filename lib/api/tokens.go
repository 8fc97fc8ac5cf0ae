package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type tokenPath struct {
	Token string `path:"token" minLength:"16" maxLength:"16" pattern:"^[0-9a-f]{16}$" example:"0f3a5b7c9d1e2f40" doc:"the token's ID"`
}

type tokenList struct{ page }

func (a *api) tokens() {
	accept(a, operation{id: "create-token", method: http.MethodPost, path: "/v1/tokens", tag: "tokens", scope: access.Admin, status: http.StatusCreated,
		summary: "Make a token of the caller's tenant; its secret is shown this once",
		example: map[string]any{"name": "deploys", "scopes": []string{"read", "run"}, "expires_in": "90d"}}, a.tokenOf, a.createToken)
	register(a, operation{id: "list-tokens", method: http.MethodGet, path: "/v1/tokens", tag: "tokens", tagged: true, scope: access.Admin,
		summary: "List the tokens of the caller's tenant, those included that ended in the last 30 days"}, a.listTokens)
	register(a, operation{id: "revoke-token", method: http.MethodDelete, path: "/v1/tokens/{token}", tag: "tokens", scope: access.Admin, status: http.StatusNoContent,
		summary: "Revoke a token: within seconds no server lets it in",
		codes:   []control.Code{codeTokenNotFound, codeOwnToken}}, a.revokeToken)
}

// longestToken keeps the expiry of a token in the times that RFC 3339 can write.
const longestToken = 100 * 365 * 24 * time.Hour

func (a *api) createToken(ctx context.Context, _ *struct{}, in input[wire.TokenRequest], want access.Request) (*answer[wire.NewToken], error) {
	text, t, err := a.Gate.Tokens.Create(ctx, in.tenant, want)
	if err != nil {
		return nil, err
	}
	return &answer[wire.NewToken]{wire.NewToken{Token: TokenForm(t), Secret: text}}, nil
}

func (a *api) tokenOf(in input[wire.TokenRequest]) (access.Request, error) {
	b := in.body
	want := access.Request{Name: b.Name}
	for _, s := range b.Scopes {
		want.Scopes = append(want.Scopes, access.Scope(s))
	}
	var wrong error
	if d := b.ExpiresIn.Std(); d > longestToken {
		wrong = invalid.Field("expires_in", b.ExpiresIn.String(), "at most 36500d; leave it out for a token that does not expire")
	} else if d != 0 {
		want.Expires = a.Now().Add(d)
	}
	return want, errors.Join(want.Check(a.Now()), wrong)
}

// TokenForm shows a token.
func TokenForm(t access.Token) wire.Token {
	shown := wire.Token{ID: t.ID, Name: t.Name, Tenant: t.Tenant, Parent: t.Parent, CreatedAt: t.Created, ExpiresAt: t.Expires, RevokedAt: t.Revoked, UsedAt: t.Used,
		Scopes: make([]string, len(t.Scopes))}
	for i, s := range t.Scopes {
		shown.Scopes[i] = string(s)
	}
	return shown
}

func (a *api) listTokens(ctx context.Context, p *tokenList, in input[noBody]) (*answer[wire.TokenPage], error) {
	tokens, next, err := a.Gate.Tokens.List(ctx, in.tenant, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, tokens, next, TokenForm, access.After)
	return &answer[wire.TokenPage]{wire.TokenPage{Items: items, Next: next}}, nil
}

func (a *api) revokeToken(ctx context.Context, p *tokenPath, in input[noBody]) (*struct{}, error) {
	if p.Token == callerOf(ctx).Token {
		return nil, newProblem(codeOwnToken, "This is the token that asks. Revoke it by another one: so nobody locks himself out.")
	}
	return nil, a.Gate.Tokens.Revoke(ctx, in.tenant, p.Token)
}
