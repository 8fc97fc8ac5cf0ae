package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// StepFilter says which steps of a run are asked for.
type StepFilter struct {
	States []string // any of these; all by default
	Under  string   // in the scope of this path, and in scopes in it
}

// Steps gives steps of a workflow's run, in the order of the workflow, page after page, up to the first error.
func (c *Client) Steps(ctx context.Context, id string, f StepFilter) iter.Seq2[wire.Step, error] {
	query := url.Values{}
	if len(f.States) > 0 {
		query.Set("state", strings.Join(f.States, ","))
	}
	if f.Under != "" {
		query.Set("under", f.Under)
	}
	return pages(ctx, c, runPath(id, "steps"), query, 0, func(p wire.StepPage) ([]wire.Step, string) { return p.Items, p.Next })
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
