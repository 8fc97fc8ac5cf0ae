package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func runPath(id string, more ...string) string {
	path := "/v1/runs/" + url.PathEscape(id)
	for _, part := range more {
		path += "/" + part
	}
	return path
}

func (c *Client) run(ctx context.Context, r call) (wire.Run, error) {
	var shown wire.Run
	_, _, err := c.do(ctx, r, &shown)
	return shown, err
}

// Trigger asks for a run. key is the idempotency key, under which the same request gives the same run for at least 24 h;
// with "" one is made for this call, so that its own repetitions make one run.
func (c *Client) Trigger(ctx context.Context, job string, t wire.Trigger, key string) (wire.Run, error) {
	if key == "" {
		key = c.cfg.NewKey()
	}
	return c.run(ctx, call{method: http.MethodPost, path: jobPath(job, "runs"), body: t, repeatable: true,
		header: http.Header{"Idempotency-Key": {key}}})
}

// TriggerMany asks for up to 1000 runs, with a verdict for each. Those without a key get one each, as in Trigger.
func (c *Client) TriggerMany(ctx context.Context, runs []wire.JobTrigger) ([]wire.RunVerdict, error) {
	keyed := append([]wire.JobTrigger(nil), runs...)
	for i := range keyed {
		if keyed[i].IdempotencyKey == "" {
			keyed[i].IdempotencyKey = c.cfg.NewKey()
		}
	}
	var verdicts wire.RunVerdicts
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/runs/batch", body: wire.RunBatch{Runs: keyed}, repeatable: true}, &verdicts)
	return verdicts.Items, err
}

// TriggerDocuments is TriggerMany for requests that are JSON already, each an object with its "job": the server judges every field of them. Those
// without an "idempotency_key" get one each, so that repetitions of this call make one run. What has not the form that the API asks for makes it refuse the whole
// request, with fields that begin with "runs[i]".
func (c *Client) TriggerDocuments(ctx context.Context, runs []json.RawMessage) ([]wire.RunVerdict, error) {
	keyed := make([]json.RawMessage, len(runs))
	for i, text := range runs {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil || members == nil {
			return nil, fmt.Errorf("runs[%d]: want a JSON object", i)
		}
		keyed[i] = text
		if _, has := members["idempotency_key"]; !has {
			with := `{"idempotency_key":"` + c.cfg.NewKey() + `"`
			if len(members) > 0 {
				with += ","
			}
			keyed[i] = append([]byte(with), bytes.TrimSpace(text)[1:]...)
		}
	}
	var verdicts wire.RunVerdicts
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/runs/batch", body: map[string][]json.RawMessage{"runs": keyed}, repeatable: true}, &verdicts)
	return verdicts.Items, err
}

// Run gives a run with its result.
func (c *Client) Run(ctx context.Context, id string) (wire.Run, error) {
	return c.run(ctx, call{method: http.MethodGet, path: runPath(id), repeatable: true})
}

// Cancel cancels a run that has not ended. Repeating it may tell that the run has ended, so it is sent once.
func (c *Client) Cancel(ctx context.Context, id, reason string) (wire.Run, error) {
	return c.run(ctx, call{method: http.MethodPost, path: runPath(id, "cancel"), body: wire.CancelRequest{Reason: reason}})
}

// Release lets a run that waits at a gate go to the front of the line.
func (c *Client) Release(ctx context.Context, id, reason string) (wire.Run, error) {
	return c.run(ctx, call{method: http.MethodPost, path: runPath(id, "release"), body: wire.ReleaseRequest{Reason: reason}})
}

// Retry runs an ended run again.
func (c *Client) Retry(ctx context.Context, id string, r wire.RetryRequest) (wire.Run, error) {
	return c.run(ctx, call{method: http.MethodPost, path: runPath(id, "retry"), body: r})
}

// Logs gives what the newest attempt wrote: the beginning and the end of it, with a line that says what is between.
func (c *Client) Logs(ctx context.Context, id string) ([]byte, error) {
	var text []byte
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: runPath(id, "logs"), repeatable: true}, &text)
	return text, err
}

// Payload gives what a run hands to its target, or the step of that path, "" for none, of a workflow's run; as it was given, nil where it has none.
func (c *Client) Payload(ctx context.Context, id, step string) ([]byte, error) {
	data, _, err := c.whole(ctx, runPath(id, "payload"), step)
	return data, err
}

// Result gives what the target of a run answered, or that of the step of that path, "" for none, of a workflow's run; to the byte, nil where it has none. Its
// media type is application/octet-stream where the target named none.
func (c *Client) Result(ctx context.Context, id, step string) (data []byte, mediaType string, err error) {
	return c.whole(ctx, runPath(id, "result"), step)
}

// Bounds of a part of what is asked for in parts, in bytes: what stands between may pass on less than the server would answer with, by a measure of its own.
const (
	largestPart  = 4 << 20
	smallestPart = 64 << 10
)

// whole gives what is at a path that gives bytes, part by part. A server checks no part of what it keeps, so all of it is checked here.
func (c *Client) whole(ctx context.Context, path, step string) (data []byte, mediaType string, err error) {
	query := url.Values{}
	if step != "" {
		query.Set("step", step)
	}
	tag := ""
	for size := largestPart; ; {
		header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", len(data), len(data)+size-1)}}
		var part []byte
		answered, status, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, header: header, repeatable: true}, &part)
		if HasCode(err, "too_large") && size > smallestPart {
			size /= 2
			continue
		}
		if err != nil {
			return nil, "", err
		}
		mediaType = answered.Get("Content-Type")
		if status != http.StatusPartialContent {
			return part, mediaType, nil // there is nothing, or an older server gives all at once
		}
		if now := answered.Get("ETag"); tag == "" {
			tag = now
		} else if now != tag {
			return nil, "", fmt.Errorf("%s: it was made anew while it was read; ask again", path)
		}
		data = append(data, part...)
		_, total, _ := strings.Cut(answered.Get("Content-Range"), "/")
		most, err := strconv.Atoi(total)
		if err != nil || len(part) == 0 || len(data) > most {
			return nil, "", fmt.Errorf("%s: the answer is not Belfry's: %d bytes more as %q", path, len(part), answered.Get("Content-Range"))
		}
		if len(data) < most {
			continue
		}
		if tag != "" && tag != tagOf(data) { // an older server has none
			return nil, "", fmt.Errorf("%s: what came is not what was kept: it was damaged where it is stored, or on its way", path)
		}
		return data, mediaType, nil
	}
}

// tagOf is the ETag of bytes that a server keeps.
func tagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// LogView says what of a log is asked for. Of Offset and the others one at most is given.
type LogView struct {
	Step    string    // of the step of this path, of a workflow's run
	Attempt int       // whose; 0 for the newest of which there is a log
	Offset  int64     // what stands behind so many bytes: Next of the part before
	Bytes   int       // only the last so many at most, from the beginning of a line
	Lines   int       // only the last so many lines
	Since   time.Time // only lines that came at this time or later
	Times   bool      // each line with the time at which it came
}

// LogPart is a part of what an attempt wrote.
type LogPart struct {
	Attempt int   // which one; 0 where none has written yet
	Next    int64 // Offset of what follows
	Size    int64 // how much the attempt has written so far; more than Next where the rest was too much for one answer
	Text    []byte
}

// LogPart gives a part of what an attempt has written so far. Following a log is to ask again for what stands behind.
func (c *Client) LogPart(ctx context.Context, id string, v LogView) (LogPart, error) {
	query := url.Values{}
	number := func(name string, n int64) {
		if n > 0 {
			query.Set(name, strconv.FormatInt(n, 10))
		}
	}
	number("attempt", int64(v.Attempt))
	number("offset", v.Offset)
	number("tail", int64(v.Bytes))
	number("lines", int64(v.Lines))
	if v.Step != "" {
		query.Set("step", v.Step)
	}
	if !v.Since.IsZero() {
		query.Set("since", v.Since.UTC().Format(time.RFC3339Nano))
	}
	if v.Times {
		query.Set("timestamps", "true")
	}
	var part LogPart
	header, _, err := c.do(ctx, call{method: http.MethodGet, path: runPath(id, "logs"), query: query, repeatable: true}, &part.Text)
	if err != nil {
		return LogPart{}, err
	}
	part.Attempt, _ = strconv.Atoi(header.Get("Belfry-Attempt")) // none is 0
	var from int64
	for name, to := range map[string]*int64{"Belfry-Log-Offset": &from, "Belfry-Log-Next": &part.Next, "Belfry-Log-Size": &part.Size} {
		*to, _ = strconv.ParseInt(header.Get(name), 10, 64)
	}
	if header.Get("Belfry-Log-Next") == "" { // of a server that keeps the beginning alone
		part.Next = from + int64(len(part.Text))
		part.Size = part.Next
	}
	part.Next = max(part.Next, v.Offset) // an attempt that has only just ended has no log for a moment
	return part, nil
}

// RunFilter chooses runs. Zero fields choose all.
type RunFilter struct {
	Job    string
	States []string
	Labels map[string]string // all of them, by the definition that the run has
	Error  string            // part of the last error, in any letter case
	From   time.Time         // nominal time, inclusive
	To     time.Time         // nominal time, exclusive
	Due    bool              // none whose time has not come
	Oldest bool              // the oldest nominal time first; else the newest
	Most   int               // how many are given, and read; 0 for all
}

// Runs gives runs, newest nominal time first or the oldest, page after page, up to the first error.
func (c *Client) Runs(ctx context.Context, f RunFilter) iter.Seq2[wire.Run, error] {
	return pages(ctx, c, "/v1/runs", f.query(), f.Most, func(p wire.RunPage) ([]wire.Run, string) { return p.Items, p.Next })
}

// RunsByChange gives runs, those first that changed last: up to f.Most of the 1,000 newest by nominal time that match, all of these for 0.
func (c *Client) RunsByChange(ctx context.Context, f RunFilter) (wire.RunPage, error) {
	query := f.query()
	query.Set("sort", "changed")
	most := f.Most
	if most <= 0 || most > maxLimit {
		most = maxLimit
	}
	query.Set("limit", strconv.Itoa(most))
	var page wire.RunPage
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/runs", query: query, repeatable: true}, &page)
	return page, err
}

func (f RunFilter) query() url.Values {
	query := url.Values{}
	if f.Job != "" {
		query.Set("job", f.Job)
	}
	if len(f.States) > 0 {
		query.Set("state", strings.Join(f.States, ","))
	}
	for name, value := range f.Labels {
		query.Add("label", wire.JoinLabel(name, value))
	}
	if f.Error != "" {
		query.Set("error", f.Error)
	}
	setTime(query, "from", f.From)
	setTime(query, "to", f.To)
	if f.Due {
		query.Set("due", "true")
	}
	if f.Oldest {
		query.Set("sort", "oldest")
	}
	return query
}

// LastRuns gives the newest runs of up to 100 jobs whose time has come, up to limit of each, in the order of the names.
func (c *Client) LastRuns(ctx context.Context, jobs []string, limit int) ([]wire.LastRuns, error) {
	var list wire.LastRunsList
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/runs/last", body: wire.LastRunsRequest{Jobs: jobs, Limit: limit}, repeatable: true}, &list)
	return list.Items, err
}

// DeadLetters gives the dead letters that match, page after page, up to the first error.
func (c *Client) DeadLetters(ctx context.Context, f wire.DeadFilter) iter.Seq2[wire.DeadLetter, error] {
	return pages(ctx, c, "/v1/dead-letters", deadQuery(f), 0, func(p wire.DeadLetterPage) ([]wire.DeadLetter, string) { return p.Items, p.Next })
}

// DeadLetterGroups gives the newest dead letters that match by the pattern of their errors.
func (c *Client) DeadLetterGroups(ctx context.Context, f wire.DeadFilter) (wire.DeadLetterGroups, error) {
	var groups wire.DeadLetterGroups
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/dead-letters/groups", query: deadQuery(f), repeatable: true}, &groups)
	return groups, err
}

func deadQuery(f wire.DeadFilter) url.Values {
	query := url.Values{}
	if f.Job != "" {
		query.Set("job", f.Job)
	}
	if f.Error != "" {
		query.Set("error", f.Error)
	}
	if f.Pattern != "" {
		query.Set("pattern", f.Pattern)
	}
	if f.From != nil {
		setTime(query, "from", *f.From)
	}
	if f.To != nil {
		setTime(query, "to", *f.To)
	}
	return query
}

// Redrive queues dead letters again, with a verdict for each.
func (c *Client) Redrive(ctx context.Context, r wire.Redrive) (wire.BulkVerdicts, error) {
	return many[wire.BulkVerdicts](ctx, c, "/v1/dead-letters/redrive", r)
}

// Discard settles dead letters without running them again, with a verdict for each.
func (c *Client) Discard(ctx context.Context, r wire.Discard) (wire.BulkVerdicts, error) {
	return many[wire.BulkVerdicts](ctx, c, "/v1/dead-letters/discard", r)
}

// CancelMany cancels runs by ID or by filter, with a verdict for each. What it did not come to in its time is told by Next and
// Remaining.
func (c *Client) CancelMany(ctx context.Context, r wire.CancelRuns) (wire.BulkVerdicts, error) {
	return many[wire.BulkVerdicts](ctx, c, "/v1/runs/cancel", r)
}

// RetryMany runs ended runs again, by ID or by filter, with a verdict for each. What it did not come to in its time is told by
// Next and Remaining.
func (c *Client) RetryMany(ctx context.Context, r wire.RetryRuns) (wire.BulkVerdicts, error) {
	return many[wire.BulkVerdicts](ctx, c, "/v1/runs/retry", r)
}

// Cron previews an expression: count fires after from, in a zone ("" for UTC).
func (c *Client) Cron(ctx context.Context, expr, zone string, from time.Time, count int) (wire.Cron, error) {
	query := url.Values{"expr": {expr}, "count": {strconv.Itoa(count)}}
	if zone != "" {
		query.Set("timezone", zone)
	}
	setTime(query, "from", from)
	var preview wire.Cron
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/cron", query: query, repeatable: true}, &preview)
	return preview, err
}

// Queues gives the pools of workers and what waits for them, by name.
func (c *Client) Queues(ctx context.Context) ([]wire.Queue, error) {
	return all(pages(ctx, c, "/v1/queues", nil, 0, func(p wire.QueuePage) ([]wire.Queue, string) { return p.Items, p.Next }))
}

// Messages gives what the tenant has in a queue of the server's own memory, at most so many of each priority and state; 0 for the server's default.
// Where the queue is in SQS, the error has the code messages_not_listed.
func (c *Client) Messages(ctx context.Context, queue string, most int) (wire.QueueMessages, error) {
	query := url.Values{}
	if most > 0 {
		query.Set("limit", strconv.Itoa(most))
	}
	var messages wire.QueueMessages
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/queues/" + url.PathEscape(queue) + "/messages", query: query, repeatable: true}, &messages)
	return messages, err
}

// Workers gives the workers of the process that answers and those elsewhere that take runs from it, by queue and ID.
func (c *Client) Workers(ctx context.Context) ([]wire.Worker, error) {
	return all(pages(ctx, c, "/v1/workers", nil, 0, func(p wire.WorkerPage) ([]wire.Worker, string) { return p.Items, p.Next }))
}

// Ready tells whether the server can do its work, nil where it can, and its version. It is asked once.
func (c *Client) Ready(ctx context.Context) (wire.Readiness, error) {
	var health wire.Readiness
	_, _, err := c.do(ctx, call{method: http.MethodGet, path: "/readyz"}, &health)
	return health, err
}
