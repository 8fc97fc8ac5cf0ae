package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Stored is a job as the server has it.
type Stored struct {
	wire.Job
	ETag    string // for Condition
	Created bool   // by this call
}

// Condition guards a write. The zero value lets it pass.
type Condition struct {
	ETag   string // only if the job's ETag is this; "*" if it exists
	Absent bool   // only if there is no such job
}

// Unchanged is the condition that a job is still what a listing gave.
func Unchanged(j wire.Job) Condition {
	if j.Status == nil {
		return Condition{}
	}
	return Condition{ETag: j.Status.ETag}
}

func (c Condition) header() http.Header {
	h := http.Header{}
	if c.ETag != "" {
		h.Set("If-Match", c.ETag)
	}
	if c.Absent {
		h.Set("If-None-Match", "*")
	}
	return h
}

func jobPath(name string, more ...string) string {
	path := "/v1/jobs/" + url.PathEscape(name)
	for _, part := range more {
		path += "/" + part
	}
	return path
}

func (c *Client) job(ctx context.Context, r call) (Stored, error) {
	var s Stored
	header, status, err := c.do(ctx, r, &s.Job)
	if err != nil {
		return Stored{}, err
	}
	s.ETag, s.Created = header.Get("ETag"), status == http.StatusCreated
	return s, nil
}

// PutJob creates or replaces a job. Its Status is ignored.
func (c *Client) PutJob(ctx context.Context, name string, j wire.Job, only Condition) (Stored, error) {
	return c.job(ctx, call{method: http.MethodPut, path: jobPath(name), header: only.header(), body: j, repeatable: true})
}

// Job gives a job.
func (c *Client) Job(ctx context.Context, name string) (Stored, error) {
	return c.job(ctx, call{method: http.MethodGet, path: jobPath(name), repeatable: true})
}

// JobFires gives up to count fires of a job after an instant, now where it is zero.
func (c *Client) JobFires(ctx context.Context, name string, from time.Time, count int) (wire.JobFires, error) {
	query := url.Values{"count": {strconv.Itoa(count)}}
	setTime(query, "from", from)
	var fires wire.JobFires
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: jobPath(name, "fires"), query: query, repeatable: true}, &fires)
	return fires, err
}

// JobCalendar counts a job's runs by day, and its fires to come. from and to are days such as 2026-03-29, "" for the server's choice, and so is
// the zone.
func (c *Client) JobCalendar(ctx context.Context, name, from, to, zone string) (wire.JobCalendar, error) {
	query := url.Values{}
	for field, text := range map[string]string{"from": from, "to": to, "timezone": zone} {
		if text != "" {
			query.Set(field, text)
		}
	}
	var days wire.JobCalendar
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: jobPath(name, "calendar"), query: query, repeatable: true}, &days)
	return days, err
}

// Generations gives the definitions that a job has had, newest first, page after page, up to the first error; most of them, 0 for all.
func (c *Client) Generations(ctx context.Context, name string, most int) iter.Seq2[wire.Generation, error] {
	return pages(ctx, c, jobPath(name, "generations"), url.Values{}, most, func(p wire.GenerationPage) ([]wire.Generation, string) { return p.Items, p.Next })
}

// ScheduleLoad counts when the runs of all jobs are due. Zero arguments leave the choice to the server.
func (c *Client) ScheduleLoad(ctx context.Context, from, to time.Time, step time.Duration) (wire.ScheduleLoad, error) {
	query := url.Values{}
	setTime(query, "from", from)
	setTime(query, "to", to)
	if step != 0 {
		query.Set("step", step.String())
	}
	var load wire.ScheduleLoad
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/schedule/load", query: query, repeatable: true}, &load)
	return load, err
}

// DeleteJob deletes a job; its runs stay until they expire.
func (c *Client) DeleteJob(ctx context.Context, name string, only Condition) error {
	_, _, err := c.do(ctx, call{method: http.MethodDelete, path: jobPath(name), header: only.header(), repeatable: true}, nil)
	return err
}

// PauseJob stops a job from making runs.
func (c *Client) PauseJob(ctx context.Context, name, reason string) (Stored, error) {
	return c.job(ctx, call{method: http.MethodPost, path: jobPath(name, "pause"), body: wire.PauseRequest{Reason: reason}, repeatable: true})
}

// ResumeJob lets a paused job make runs again.
func (c *Client) ResumeJob(ctx context.Context, name string) (Stored, error) {
	return c.job(ctx, call{method: http.MethodPost, path: jobPath(name, "resume"), body: wire.Nothing{}, repeatable: true})
}

// PutJobs creates or replaces up to 1000 jobs, with a verdict for each.
func (c *Client) PutJobs(ctx context.Context, jobs []wire.NamedJob) ([]wire.JobVerdict, error) {
	return c.putJobs(ctx, wire.JobBatch{Jobs: jobs}, nil)
}

func (c *Client) putJobs(ctx context.Context, batch any, query url.Values) ([]wire.JobVerdict, error) {
	var verdicts wire.JobVerdicts
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/jobs/batch", query: query, body: batch, repeatable: true}, &verdicts)
	return verdicts.Items, err
}

// PutDocuments is PutJobs for jobs that are JSON already, each with its "name": the server judges every field of them, those
// unknown to this package too. What has not the form that the API asks for makes it refuse the whole request, with fields that
// begin with "jobs[i]".
func (c *Client) PutDocuments(ctx context.Context, jobs []json.RawMessage) ([]wire.JobVerdict, error) {
	return c.putJobs(ctx, map[string][]json.RawMessage{"jobs": jobs}, nil)
}

// TryDocuments tells what PutDocuments would do, and stores nothing; TryDocument tells how a job would stand. beside names jobs that count as if
// they stood, since other requests of the same change put them.
func (c *Client) TryDocuments(ctx context.Context, jobs []json.RawMessage, beside []string) ([]wire.JobVerdict, error) {
	return c.putJobs(ctx, map[string][]json.RawMessage{"jobs": jobs}, trying(beside))
}

func trying(beside []string) url.Values {
	query := url.Values{"dry_run": {"true"}}
	if len(beside) > 0 {
		query.Set("beside", strings.Join(beside, ","))
	}
	return query
}

// JobFilter chooses jobs. Zero fields choose all.
type JobFilter struct {
	Prefix   string
	Contains string // part of the name, in any letter case
	Labels   map[string]string
	Paused   *bool
}

// Jobs gives the jobs by name, page after page, up to the first error.
func (c *Client) Jobs(ctx context.Context, f JobFilter) iter.Seq2[wire.Job, error] {
	query := url.Values{}
	if f.Prefix != "" {
		query.Set("prefix", f.Prefix)
	}
	if f.Contains != "" {
		query.Set("contains", f.Contains)
	}
	for name, value := range f.Labels {
		query.Add("label", wire.JoinLabel(name, value))
	}
	if f.Paused != nil {
		query.Set("paused", strconv.FormatBool(*f.Paused))
	}
	return pages(ctx, c, "/v1/jobs", query, 0, func(p wire.JobPage) ([]wire.Job, string) { return p.Items, p.Next })
}

// pageSize is how many items one request of a listing asks for.
const pageSize = 200

// maxLimit is how many items one request of a listing may ask for.
const maxLimit = 1000

// pages walks over a listing, up to most items, 0 for all.
func pages[P, T any](ctx context.Context, c *Client, path string, query url.Values, most int, open func(P) (items []T, next string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		asked := url.Values{}
		for name, values := range query {
			asked[name] = values
		}
		left := most
		for {
			size := pageSize
			if most > 0 {
				size = min(left, pageSize)
			}
			asked.Set("limit", strconv.Itoa(size))
			var page P
			if _, _, err := c.do(ctx, call{method: http.MethodGet, path: path, query: asked, repeatable: true}, &page); err != nil {
				var none T
				yield(none, err)
				return
			}
			items, next := open(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if next == "" {
				return
			}
			asked.Set("cursor", next)
		}
	}
}

// all gathers a listing, or gives its first error.
func all[T any](listing iter.Seq2[T, error]) ([]T, error) {
	var items []T
	for item, err := range listing {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// setTime adds a time to a query, unless it is none.
func setTime(query url.Values, name string, t time.Time) {
	if !t.IsZero() {
		query.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

// PutDocument is PutJob for a job that is JSON already. The server judges every field of it, those unknown to this package
// too.
func (c *Client) PutDocument(ctx context.Context, name string, document json.RawMessage, only Condition) (Stored, error) {
	return c.job(ctx, call{method: http.MethodPut, path: jobPath(name), header: only.header(), body: document, repeatable: true})
}

// PatchJob changes the fields of a job that a merge patch (RFC 7396) names: null takes one back to its default.
func (c *Client) PatchJob(ctx context.Context, name string, patch json.RawMessage, only Condition) (Stored, error) {
	return c.patchJob(ctx, name, patch, only, nil)
}

// TryPatch gives the job as PatchJob would leave it, and stores nothing. Its errors are those of PatchJob. beside is as of TryDocuments.
func (c *Client) TryPatch(ctx context.Context, name string, patch json.RawMessage, beside []string) (wire.Job, error) {
	tried, err := c.patchJob(ctx, name, patch, Condition{}, trying(beside))
	return tried.Job, err
}

func (c *Client) patchJob(ctx context.Context, name string, patch json.RawMessage, only Condition, query url.Values) (Stored, error) {
	return c.job(ctx, call{method: http.MethodPatch, path: jobPath(name), query: query, header: only.header(), body: patch, media: "application/merge-patch+json", repeatable: true})
}

// TryDocument gives the job as PutDocument would leave it, and stores nothing. Its errors are those of PutDocument. beside is as of TryDocuments.
func (c *Client) TryDocument(ctx context.Context, name string, document json.RawMessage, beside []string) (wire.Job, error) {
	tried, err := c.job(ctx, call{method: http.MethodPut, path: jobPath(name), query: trying(beside), body: document, repeatable: true})
	return tried.Job, err
}
