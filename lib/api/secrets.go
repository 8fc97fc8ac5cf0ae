package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The codes of these operations.
const (
	codeSecretNotFound control.Code = "secret_not_found"
	codeNoSecretsKey   control.Code = "no_secrets_key"
	codeTooManySecrets control.Code = "too_many_secrets"
)

type secretPath struct {
	Secret string `path:"secret" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" example:"hook-token" doc:"the secret's name"`
}

type secretList struct{ page }

type secretAnswer struct {
	Status int
	Body   wire.Secret
}

func (a *api) secrets() {
	acceptUnread(a, operation{id: "put-secret", method: http.MethodPut, path: "/v1/secrets/{secret}", tag: "secrets", scope: access.Admin, created: true,
		summary: "Set a secret, which is kept encrypted; no answer ever shows its value",
		example: map[string]any{"value": "Bearer 0123456789abcdef"},
		codes:   []control.Code{codeNoSecretsKey, codeTooManySecrets}}, func(in input[wire.SecretRequest]) error { return secret.ValidValue(in.body.Value) }, a.putSecret)
	register(a, operation{id: "list-secrets", method: http.MethodGet, path: "/v1/secrets", tag: "secrets", tagged: true, scope: access.Admin,
		summary: "List secrets by name, without their values"}, a.listSecrets)
	register(a, operation{id: "delete-secret", method: http.MethodDelete, path: "/v1/secrets/{secret}", tag: "secrets", scope: access.Admin, status: http.StatusNoContent,
		summary: "Delete a secret: attempts that need it fail from now on",
		codes:   []control.Code{codeSecretNotFound}}, a.deleteSecret)
	acceptUnread(a, operation{id: "rotate-secret-keys", method: http.MethodPost, path: "/v1/secret-keys/rotate", tag: "secrets", scope: access.Admin,
		summary: "Read the keys anew, and encrypt all secrets of the caller's tenant under the newest",
		codes:   []control.Code{codeNoSecretsKey}}, formAlone, a.rotateSecretKeys)
}

func (a *api) putSecret(ctx context.Context, p *secretPath, in input[wire.SecretRequest]) (*secretAnswer, error) {
	info, created, err := a.Secrets.Set(ctx, in.tenant, p.Secret, in.body.Value)
	if err != nil {
		return nil, secretProblem(err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &secretAnswer{Status: status, Body: secretForm(info)}, nil
}

func (a *api) listSecrets(ctx context.Context, p *secretList, in input[noBody]) (*answer[wire.SecretPage], error) {
	if p.Cursor != "" && secret.ValidName(p.Cursor) != nil {
		return nil, store.ErrBadCursor
	}
	infos, more, err := a.Secrets.List(ctx, in.tenant, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	after := func(last secret.Info) string { return last.Name }
	next := ""
	if more {
		next = after(infos[len(infos)-1])
	}
	items, next := fill(a, infos, next, secretForm, after)
	return &answer[wire.SecretPage]{wire.SecretPage{Items: items, Next: next}}, nil
}

func (a *api) deleteSecret(ctx context.Context, p *secretPath, in input[noBody]) (*struct{}, error) {
	return nil, secretProblem(a.Secrets.Delete(ctx, in.tenant, p.Secret))
}

func (a *api) rotateSecretKeys(ctx context.Context, _ *struct{}, in input[wire.Nothing]) (*answer[wire.KeyRotation], error) {
	sealed, err := a.Secrets.Rotate(ctx, in.tenant)
	if err != nil {
		return nil, secretProblem(err)
	}
	return &answer[wire.KeyRotation]{wire.KeyRotation{Encrypted: sealed}}, nil
}

func secretForm(info secret.Info) wire.Secret {
	return wire.Secret{Name: info.Name, CreatedAt: info.Created, UpdatedAt: info.Updated, Key: info.Key, Rotated: info.Current}
}

// secretProblem tells apart what a caller decides on; the rest is left to problemOf.
func secretProblem(err error) error {
	switch {
	case errors.Is(err, secret.ErrMissing):
		return newProblem(codeSecretNotFound, "There is no such secret in Belfry's own store.")
	case errors.Is(err, secret.ErrTooMany):
		return newProblem(codeTooManySecrets, "Not kept: "+err.Error()+".")
	case errors.Is(err, secret.ErrNoKey):
		return newProblem(codeNoSecretsKey, "Belfry keeps secrets only under a key: "+err.Error()+
			". Start the server with --secrets-key-file, or give the secret to its workers by environment or --secrets-dir.")
	}
	return err
}
