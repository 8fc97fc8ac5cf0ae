package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// CreateToken makes a token of the caller's tenant. It is sent once: the secret of another try would be lost with its answer.
func (c *Client) CreateToken(ctx context.Context, r wire.TokenRequest) (wire.NewToken, error) {
	var made wire.NewToken
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/tokens", body: r}, &made)
	return made, err
}

// Tokens gives the tokens of the caller's tenant, page after page, up to the first error.
func (c *Client) Tokens(ctx context.Context) iter.Seq2[wire.Token, error] {
	return pages(ctx, c, "/v1/tokens", url.Values{}, 0, func(p wire.TokenPage) ([]wire.Token, string) { return p.Items, p.Next })
}

// RevokeToken ends a token for good.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, _, err := c.do(ctx, call{method: http.MethodDelete, path: "/v1/tokens/" + url.PathEscape(id), repeatable: true}, nil)
	return err
}
