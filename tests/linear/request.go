package linear

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// asked is a request for which there is a model; told its answer, of status 0 where none came.
type asked struct {
	route   *route
	tenant  string
	request *http.Request
	body    []byte
	at      int64 // Unix ms
}

type told struct {
	status int
	header http.Header
	body   []byte
}

// part is what a request did to one thing.
type part struct {
	on         thing
	what       any
	open       bool
	everywhere bool // to any thing of this kind and tenant

	tag        string // an ETag that the answer tells, of this generation
	generation int64
}

type route struct {
	method string
	path   *regexp.Regexp
	parts  func(asked, told, string) []part
}

func routed(method, path string, parts func(asked, told, string) []part) route {
	return route{method, regexp.MustCompile("^/v1/" + path + "$"), parts}
}

// routes are the requests that are checked. The name in the path is what the parentheses hold.
var routes = []route{
	routed(http.MethodPost, "jobs/batch", batchOfJobs),
	routed(http.MethodGet, "jobs()", listOfJobs),
	routed(http.MethodGet, "jobs/([^/]+)", oneJob(lookAtJob)),
	routed(http.MethodPut, "jobs/([^/]+)", oneJob(putJob)),
	routed(http.MethodDelete, "jobs/([^/]+)", oneJob(deleteJob)),
	routed(http.MethodPost, "jobs/([^/]+)/pause", oneJob(pauseJob)),
	routed(http.MethodPost, "jobs/([^/]+)/resume", oneJob(resumeJob)),
	routed(http.MethodPost, "jobs/([^/]+)/runs", trigger),
	routed(http.MethodPost, "runs/batch", batchOfRuns),
	routed(http.MethodGet, "runs/([^/]+)", oneRun(lookAtRun)),
	routed(http.MethodPost, "runs/([^/]+)/cancel", oneRun(cancelRun)),
	routed(http.MethodPost, "runs/([^/]+)/retry", oneRun(retryRun)),
	routed(http.MethodPost, "runs/cancel", manyRuns(cancelRun)),
	routed(http.MethodPost, "runs/retry", manyRuns(retryRun)),
	routed(http.MethodPost, "dead-letters/redrive", manyRuns(retryRun)),
}

func routeOf(r *http.Request) *route {
	if r.URL.Query().Get("dry_run") == "true" {
		return nil
	}
	for i := range routes {
		if r.Method == routes[i].method && routes[i].path.MatchString(r.URL.EscapedPath()) {
			return &routes[i]
		}
	}
	return nil
}

func (a asked) operations(answer told) []part {
	name := ""
	if found := a.route.path.FindStringSubmatch(a.request.URL.EscapedPath()); len(found) > 1 {
		name, _ = url.PathUnescape(found[1]) // a path that was sent can be read
	}
	return a.route.parts(a, answer, name)
}

func (a asked) open(answer told) bool { return outcomeOf(answer.status, codeIn(answer)) == unsettled }

// outcome is what an answer says of what was asked for.
type outcome uint8

const (
	settled   outcome = iota // done, or refused for what stands there
	nothing                  // refused, and nothing was done
	unsettled                // nobody knows
)

func outcomeOf(status int, code string) outcome {
	switch {
	case status >= 200 && status < 300, status == http.StatusNotFound, status == http.StatusConflict && code != "job_deleted",
		status == http.StatusPreconditionFailed:
		return settled
	case status >= 400 && status < 500, code == "throttled", code == "clock_skewed", code == "not_ready", code == "stopping":
		return nothing
	}
	return unsettled
}

func codeIn(answer told) string {
	if answer.status < 300 {
		return ""
	}
	var p wire.Problem
	_ = json.Unmarshal(answer.body, &p) // what is no problem document has no code
	return p.Code
}

// formOf is what identifies a definition, paused or not. Requests leave out what has a default, and answers do not.
func formOf(d job.Definition) (base string, paused bool) {
	d = d.WithDefaults()
	paused, d.Paused = d.Paused, false
	raw, err := record.Encode(d)
	if err != nil {
		return "unreadable: " + err.Error(), paused
	}
	return short(raw), paused
}

// noForm is that of no definition: what an edit shows of a job that was deleted meanwhile.
var noForm, _ = formOf(job.Definition{})

func short(data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%x", sum[:5])
}

func jobLook(on thing, shown wire.Job) part {
	if shown.Status == nil {
		return part{on: on, what: jobStep{verb: lookAtJob, status: 200}}
	}
	s := jobState{exists: true, lo: shown.Status.Generation, hi: shown.Status.Generation, reason: shown.Status.PausedReason}
	if !shown.Status.CreatedAt.IsZero() {
		s.created = shown.Status.CreatedAt.UnixMilli()
	}
	if s.base, s.paused = formOf(shown.Definition); s.base == noForm {
		s = jobState{lo: s.lo, hi: s.hi}
	}
	return part{on: on, what: jobStep{verb: lookAtJob, status: 200, seen: s}, tag: shown.Status.ETag, generation: s.lo}
}

// jobParts are an edit and the look that its answer is.
func jobParts(on thing, step jobStep, status int, code string, shown *wire.Job) []part {
	switch outcomeOf(status, code) {
	case nothing:
		return nil
	case unsettled:
		return []part{{on: on, what: step, open: true}}
	}
	step.status, step.code = status, code
	if shown == nil || shown.Status == nil {
		return []part{{on: on, what: step}}
	}
	look := jobLook(on, *shown)
	if step.verb == lookAtJob {
		return []part{look}
	}
	step.upTo = shown.Status.Generation
	return []part{{on: on, what: step}, look}
}

func oneJob(verb jobVerb) func(asked, told, string) []part {
	return func(a asked, answer told, name string) []part {
		on := thing{aJob, a.tenant, name}
		step := jobStep{verb: verb, match: a.request.Header.Get("If-Match"), absent: a.request.Header.Get("If-None-Match") != ""}
		switch verb {
		case lookAtJob:
			if answer.status == 0 || answer.status >= 500 {
				return nil // a look that told nothing
			}
		case putJob:
			var sent wire.Job
			if json.Unmarshal(a.body, &sent) != nil {
				return nil // no job: it is refused
			}
			step.base, step.paused = formOf(sent.Definition)
		case pauseJob:
			var sent wire.PauseRequest
			if json.Unmarshal(a.body, &sent) != nil {
				return nil
			}
			step.reason = sent.Reason
		}
		var shown *wire.Job
		if answer.status >= 200 && answer.status < 300 && len(answer.body) > 0 {
			shown = new(wire.Job)
			if err := json.Unmarshal(answer.body, shown); err != nil {
				return []part{unreadable(on, err)}
			}
		}
		return jobParts(on, step, answer.status, codeIn(answer), shown)
	}
}

// unreadable is an answer that Belfry does not give: no history explains it.
func unreadable(on thing, err error) part {
	switch on.kind {
	case aJob:
		return part{on: on, what: jobStep{verb: lookAtJob, status: 200, seen: jobState{exists: true, lo: -1, hi: -1, base: err.Error()}}}
	case aRun:
		return part{on: on, what: runStep{verb: cancelRun, seen: runState{born: true, state: "unreadable: " + err.Error()}}}
	}
	return part{on: on, what: keyStep{reused: true, body: err.Error()}}
}

func batchOfJobs(a asked, answer told, _ string) (parts []part) {
	var sent wire.JobBatch
	if json.Unmarshal(a.body, &sent) != nil {
		return nil
	}
	var given wire.JobVerdicts
	if answer.status == 200 && json.Unmarshal(answer.body, &given) != nil {
		answer.status = 0
	}
	for i, entry := range sent.Jobs {
		step := jobStep{verb: putJob}
		step.base, step.paused = formOf(entry.Definition)
		on := thing{aJob, a.tenant, entry.Name}
		if answer.status != 200 || i >= len(given.Items) {
			parts = append(parts, jobParts(on, step, answer.status, codeIn(answer), nil)...)
			continue
		}
		v := given.Items[i]
		for _, p := range jobParts(on, step, v.Status, codeOf(v.Problem), nil) {
			if v.ETag != "" {
				edit := p.what.(jobStep)
				edit.upTo = generationOf(v.ETag)
				p.what, p.tag, p.generation = edit, v.ETag, edit.upTo
			}
			parts = append(parts, p)
		}
	}
	return parts
}

// generationOf is the generation whose tag is told where the job itself is not, 0 for what is no tag.
func generationOf(etag string) int64 {
	generation, err := strconv.ParseInt(strings.Trim(etag, `"g`), 36, 64)
	if err != nil || (job.Job{Generation: generation}).ETag() != etag {
		return 0
	}
	return generation
}

func codeOf(p *wire.Problem) string {
	if p == nil {
		return ""
	}
	return p.Code
}

func listOfJobs(a asked, answer told, _ string) (parts []part) {
	var page wire.JobPage
	if answer.status != 200 || json.Unmarshal(answer.body, &page) != nil {
		return nil
	}
	for _, shown := range page.Items {
		if shown.Status != nil {
			parts = append(parts, jobLook(thing{aJob, a.tenant, shown.Name}, shown))
		}
	}
	return parts
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func seenRun(shown wire.Run, at int64) runState {
	s := runState{born: true, state: shown.State, onDemand: shown.Trigger == "request", generation: shown.Generation, attempt: shown.Attempt,
		fence: shown.Fence, ended: ms(shown.EndedAt), headed: headed(shown), seen: at}
	if ended(s.state) {
		s.reason = shown.Reason
	}
	if len(shown.Result) > 0 {
		s.result = short(shown.Result)
	}
	return s
}

// headed tells of a run as it is shown what run.Run.Headed does of its record.
func headed(shown wire.Run) bool {
	n := len(shown.Attempts)
	return !shown.StartedAt.IsZero() && (n == 0 || !shown.Attempts[n-1].StartedAt.Equal(shown.StartedAt))
}

// asking are a request for a run: what its key says, and how the run is seen.
func (a asked) asking(jobName, key string, t wire.Trigger, status int, code, id string, shown *wire.Run) (parts []part) {
	if status == http.StatusNotFound {
		return nil // whether a job exists may be told from memory
	}
	outcome := outcomeOf(status, code)
	if key != "" && outcome != nothing {
		var at int64
		var delay schedule.Duration
		if t.At != nil {
			at = t.At.UnixMilli()
		}
		if t.Delay != nil {
			delay = *t.Delay
		}
		calls, _ := json.Marshal(t.On) // names alone
		step := keyStep{body: short(fmt.Appendf(nil, "%s\n%d\n%d\n%s\n%v\n%s\n%s", jobName, at, delay, t.Payload, t.IgnorePause, t.Overlap.Policy, calls)), at: a.at,
			open: outcome == unsettled, reused: code == "idempotency_key_reused"}
		step.run = id
		parts = append(parts, part{on: thing{aKey, a.tenant, key}, what: step, open: step.open})
	}
	if shown != nil && outcome == settled {
		parts = append(parts, part{on: thing{aRun, a.tenant, shown.ID}, what: runStep{verb: lookAtRun, at: a.at, seen: seenRun(*shown, a.at)}})
	}
	return parts
}

func trigger(a asked, answer told, name string) []part {
	var sent wire.Trigger
	if json.Unmarshal(a.body, &sent) != nil {
		return nil
	}
	var shown *wire.Run
	key := a.request.Header.Get("Idempotency-Key")
	if answer.status == http.StatusAccepted {
		shown = new(wire.Run)
		if err := json.Unmarshal(answer.body, shown); err != nil {
			return []part{unreadable(thing{aKey, a.tenant, key}, err)}
		}
	}
	id := ""
	if shown != nil {
		id = shown.ID
	}
	return a.asking(name, key, sent, answer.status, codeIn(answer), id, shown)
}

func batchOfRuns(a asked, answer told, _ string) (parts []part) {
	var sent wire.RunBatch
	if json.Unmarshal(a.body, &sent) != nil {
		return nil
	}
	var given wire.RunVerdicts
	if answer.status == 200 && json.Unmarshal(answer.body, &given) != nil {
		answer.status = 0
	}
	for i, entry := range sent.Runs {
		if answer.status != 200 || i >= len(given.Items) {
			parts = append(parts, a.asking(entry.Job, entry.IdempotencyKey, entry.Trigger, answer.status, codeIn(answer), "", nil)...)
			continue
		}
		v := given.Items[i]
		parts = append(parts, a.asking(entry.Job, entry.IdempotencyKey, entry.Trigger, v.Status, codeOf(v.Problem), v.ID, nil)...)
	}
	return parts
}

func (a asked) runPart(id string, step runStep, status int, code string, shown *wire.Run) []part {
	on := thing{aRun, a.tenant, id}
	step.at = a.at
	switch outcomeOf(status, code) {
	case nothing:
		return nil
	case unsettled:
		step.open = true
		if step.verb != retryRun {
			return nil // a look that told nothing, or what Belfry may do by itself
		}
		return []part{{on: on, what: step, open: true}}
	}
	if step.code = code; shown != nil {
		step.seen = seenRun(*shown, a.at)
	}
	return []part{{on: on, what: step}}
}

func oneRun(verb runVerb) func(asked, told, string) []part {
	return func(a asked, answer told, id string) []part {
		step := runStep{verb: verb}
		if verb == retryRun {
			var sent wire.RetryRequest
			if json.Unmarshal(a.body, &sent) != nil {
				return nil
			}
			step.force = sent.Force
		}
		var shown *wire.Run
		if answer.status == 200 {
			shown = new(wire.Run)
			if err := json.Unmarshal(answer.body, shown); err != nil {
				return []part{unreadable(thing{aRun, a.tenant, id}, err)}
			}
		}
		return a.runPart(id, step, answer.status, codeIn(answer), shown)
	}
}

func manyRuns(verb runVerb) func(asked, told, string) []part {
	return func(a asked, answer told, _ string) (parts []part) {
		var sent wire.RetryRuns // what the requests have in common is all that is needed
		if json.Unmarshal(a.body, &sent) != nil || sent.DryRun {
			return nil
		}
		step := runStep{verb: verb, force: sent.Force}
		var given wire.BulkVerdicts
		if answer.status == 200 && json.Unmarshal(answer.body, &given) != nil {
			answer.status = 0
		}
		if answer.status != 200 {
			for _, id := range sent.Runs {
				parts = append(parts, a.runPart(id, step, answer.status, codeIn(answer), nil)...)
			}
			if len(sent.Runs) == 0 && verb == retryRun && a.open(answer) {
				step.open, step.at = true, a.at
				parts = append(parts, part{on: thing{kind: aRun, tenant: a.tenant}, what: step, open: true, everywhere: true})
			}
			return parts
		}
		for _, v := range given.Items {
			step.seen.state = v.State
			parts = append(parts, a.runPart(v.ID, step, v.Status, codeOf(v.Problem), nil)...)
		}
		return parts
	}
}
