package client

import (
	"context"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// PauseJobs pauses jobs by name or by filter, with a verdict for each. What it did not come to in its time is told by Next and Remaining.
func (c *Client) PauseJobs(ctx context.Context, r wire.PauseJobs) (wire.BulkJobVerdicts, error) {
	return many[wire.BulkJobVerdicts](ctx, c, "/v1/jobs/batch/pause", r)
}

// ResumeJobs resumes jobs, as PauseJobs pauses them.
func (c *Client) ResumeJobs(ctx context.Context, r wire.ResumeJobs) (wire.BulkJobVerdicts, error) {
	return many[wire.BulkJobVerdicts](ctx, c, "/v1/jobs/batch/resume", r)
}

// DeleteJobs deletes jobs, as PauseJobs pauses them.
func (c *Client) DeleteJobs(ctx context.Context, r wire.DeleteJobs) (wire.BulkJobVerdicts, error) {
	return many[wire.BulkJobVerdicts](ctx, c, "/v1/jobs/batch/delete", r)
}

// LabelJobs gives jobs labels and takes others from them, as PauseJobs pauses them.
func (c *Client) LabelJobs(ctx context.Context, r wire.LabelJobs) (wire.BulkJobVerdicts, error) {
	return many[wire.BulkJobVerdicts](ctx, c, "/v1/jobs/batch/label", r)
}

// many sends a request over many, once: another try would find some of them done.
func many[V any](ctx context.Context, c *Client, path string, body any) (verdicts V, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: path, body: body}, &verdicts)
	return verdicts, err
}

// ExportJobs gives the definitions of jobs as files have them. What the answer had no room for is told by Next and Remaining.
func (c *Client) ExportJobs(ctx context.Context, r wire.ExportJobs) (wire.ExportedJobs, error) {
	var part wire.ExportedJobs
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/jobs/batch/export", body: r, repeatable: true}, &part)
	return part, err
}
