package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func secretPath(name string) string { return "/v1/secrets/" + url.PathEscape(name) }

// PutSecret sets a secret. created tells that there was none of that name.
func (c *Client) PutSecret(ctx context.Context, name, value string) (s wire.Secret, created bool, err error) {
	_, status, err := c.do(ctx, call{method: http.MethodPut, path: secretPath(name), body: wire.SecretRequest{Value: value}, repeatable: true}, &s)
	return s, status == http.StatusCreated, err
}

// Secrets lists the secrets that the server keeps, by name, without their values.
func (c *Client) Secrets(ctx context.Context) iter.Seq2[wire.Secret, error] {
	return pages(ctx, c, "/v1/secrets", nil, 0, func(p wire.SecretPage) ([]wire.Secret, string) { return p.Items, p.Next })
}

// DeleteSecret deletes a secret.
func (c *Client) DeleteSecret(ctx context.Context, name string) error {
	_, _, err := c.do(ctx, call{method: http.MethodDelete, path: secretPath(name), repeatable: true}, nil)
	return err
}

// RotateSecretKeys makes the server read its keys anew and encrypt all secrets under the newest.
func (c *Client) RotateSecretKeys(ctx context.Context) (wire.KeyRotation, error) {
	var done wire.KeyRotation
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/secret-keys/rotate", body: wire.Nothing{}, repeatable: true}, &done)
	return done, err
}
