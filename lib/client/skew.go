package client

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Skew tells how far the server's clock is ahead of this host's, at the least: an answer tells its time in whole seconds and takes
// a while, so a difference that this explains is none.
func (c *Client) Skew(ctx context.Context, now func() time.Time) (time.Duration, error) {
	asked := now()
	header, _, err := c.do(ctx, call{method: http.MethodGet, path: "/healthz"}, nil)
	if err != nil {
		return 0, err
	}
	answered := now()
	told, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0, errors.New("the server's answer has no date")
	}
	if ahead := told.Sub(answered); ahead > 0 {
		return ahead, nil
	}
	return min(0, told.Add(time.Second).Sub(asked)), nil
}
