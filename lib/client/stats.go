package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Stats counts the runs that were due in [from, to) by minutes or hours, step "1m" or "1h". What is left out, times zero and step "", the server chooses.
func (c *Client) Stats(ctx context.Context, from, to time.Time, step string) (wire.Stats, error) {
	query := url.Values{}
	setTime(query, "from", from)
	setTime(query, "to", to)
	if step != "" {
		query.Set("step", step)
	}
	var found wire.Stats
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/stats", query: query, repeatable: true}, &found)
	return found, err
}
