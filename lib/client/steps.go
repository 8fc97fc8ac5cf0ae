package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Steps gives the steps of a workflow's run, in the order of the workflow, page after page, up to the first error.
func (c *Client) Steps(ctx context.Context, id string) iter.Seq2[wire.Step, error] {
	return pages(ctx, c, runPath(id, "steps"), nil, 0, func(p wire.StepPage) ([]wire.Step, string) { return p.Items, p.Next })
}

// Step gives one step of a workflow's run, by its path, with its result.
func (c *Client) Step(ctx context.Context, id, path string) (wire.Step, error) {
	var page wire.StepPage
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: runPath(id, "steps"), query: url.Values{"path": {path}}, repeatable: true}, &page)
	if err == nil && len(page.Items) != 1 {
		return wire.Step{}, fmt.Errorf("step %s of run %s: the server answered with %d steps", path, id, len(page.Items))
	}
	if err != nil {
		return wire.Step{}, err
	}
	return page.Items[0], nil
}

// Graph gives the workflow of a run, and where each step of it stands.
func (c *Client) Graph(ctx context.Context, id string) (wire.RunGraph, error) {
	var graph wire.RunGraph
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: runPath(id, "graph"), repeatable: true}, &graph)
	return graph, err
}
