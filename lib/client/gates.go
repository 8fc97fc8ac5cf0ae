package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func gatePath(name string, more ...string) string {
	path := "/v1/gates/" + url.PathEscape(name)
	for _, part := range more {
		path += "/" + part
	}
	return path
}

// Gates gives the gates that have names of their own, by their names, and those of jobs that bound their overlap, by the names of the jobs.
func (c *Client) Gates(ctx context.Context) iter.Seq2[wire.Gate, error] {
	return pages(ctx, c, "/v1/gates", nil, 0, func(p wire.GatePage) ([]wire.Gate, string) { return p.Items, p.Next })
}

// Gate gives a gate. job:NAME is the own gate of a job.
func (c *Client) Gate(ctx context.Context, name string) (wire.Gate, error) {
	return c.gate(ctx, call{method: http.MethodGet, path: gatePath(name), repeatable: true})
}

// PutGate creates or replaces a gate.
func (c *Client) PutGate(ctx context.Context, name string, d wire.GateDefinition, only Condition) (wire.Gate, error) {
	return c.gate(ctx, call{method: http.MethodPut, path: gatePath(name), header: only.header(), body: d, repeatable: true})
}

// PutGateDocument creates or replaces a gate that is JSON already: the server judges every field of it, those unknown to this package too.
func (c *Client) PutGateDocument(ctx context.Context, name string, definition json.RawMessage, only Condition) (wire.Gate, error) {
	return c.gate(ctx, call{method: http.MethodPut, path: gatePath(name), header: only.header(), body: definition, repeatable: true})
}

// DeleteGate deletes a gate; runs that wait at it are let in.
func (c *Client) DeleteGate(ctx context.Context, name string, only Condition) error {
	_, _, err := c.do(ctx, call{method: http.MethodDelete, path: gatePath(name), header: only.header(), repeatable: true}, nil)
	return err
}

// CloseGate has a gate let nobody in until it is opened.
func (c *Client) CloseGate(ctx context.Context, name, reason string) (wire.Gate, error) {
	return c.gate(ctx, call{method: http.MethodPost, path: gatePath(name, "close"), body: wire.CloseRequest{Reason: reason}, repeatable: true})
}

// OpenGate opens a gate that was closed, or lets the line of a job's own gate, job:NAME, go on that stands still. Of a job's own gate it is sent once only where o does not
// name a run and when that ended: should its answer be lost, the line may stand still by then behind another run, or another end of that one, which nobody has seen.
func (c *Client) OpenGate(ctx context.Context, name string, o wire.OpenRequest) (wire.Gate, error) {
	own := strings.HasPrefix(name, "job:")
	return c.gate(ctx, call{method: http.MethodPost, path: gatePath(name, "open"), body: o, repeatable: !own || o.Run != "" && !o.Since.IsZero()})
}

func (c *Client) gate(ctx context.Context, r call) (wire.Gate, error) {
	var g wire.Gate
	_, _, err := c.do(ctx, r, &g)
	return g, err
}

// Line gives the runs that wait at a gate, from the front of its line on, at most so many; 0 for all. Where a job has a gate for each value of a key, key
// is one of them, or "" for all.
func (c *Client) Line(ctx context.Context, gate, key string, most int) iter.Seq2[wire.InLine, error] {
	var query url.Values
	if key != "" {
		query = url.Values{"key": {key}}
	}
	return pages(ctx, c, gatePath(gate, "line"), query, most, func(p wire.LinePage) ([]wire.InLine, string) { return p.Items, p.Next })
}
