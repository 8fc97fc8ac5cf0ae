package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// sample is a right body of an operation, and values that it may not have although their form is right: each is merged into the body, and is
// refused under a field.
type sample struct {
	body string
	bad  map[string]string // by field, what is merged
}

const (
	runOfA   = `"run": "a~0mi4lf3k0", "ticket": "t", "worker": "w", "start": "1"`
	fullHTTP = `{"url": "https://example.org/", "method": "PUT", "headers": {"X-A": "b", "X-B": {"secret": "s"}}, "sign": {"secret": "s", "previous": "p"}, "permanent_status": [404], "retry_status": [429]}`
	fullRest = `"description": "d", "payload": {"a": [1, null]}, "queue": "far", "priority": "high", "guarantee": "at_least_once", "timeout": "5s", "retention": "3d",
		"retry": {"max_attempts": 3, "initial": "1ms", "max": "2ms", "factor": 1.5}, "catch_up": {"mode": "all", "window": "1h"}, "labels": {"team": "x"}, "paused": true`
)

// badJob are values that no definition may have.
var badJob = map[string]string{
	"schedule.cron":     `{"schedule": {"cron": "61 * * * *", "timezone": "UTC", "start": null, "end": null, "jitter": null, "every": null, "phase": null, "at": null}}`,
	"schedule.timezone": `{"schedule": {"cron": "0 0 * * *", "timezone": "Mars/Base", "start": null, "end": null, "jitter": null, "every": null, "phase": null, "at": null}}`,
	"timeout":           `{"timeout": "25h"}`,
	"retention":         `{"retention": "1h"}`,
	"queue":             `{"queue": "nowhere"}`,
	"retry.max":         `{"retry": {"initial": "2s", "max": "1s"}}`,
	"catch_up.window":   `{"catch_up": {"window": "1s"}}`,
	"labels":            `{"labels": {"-": "x"}}`,
}

// samples are of every operation with a body.
func samples() map[string][]sample {
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	jobs := []sample{
		{`{"schedule": {"cron": "30 9 * * 1-5", "timezone": "Europe/Berlin", "start": "2000-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z", "jitter": "5s"}, "target": {"http": ` + fullHTTP + `}, ` + fullRest + `}`, badJob},
		{`{"schedule": {"every": "1h", "phase": "1m"}, "target": {"exec": {"argv": ["a/b", "-x"], "env": {"A": "b"}, "dir": "/", "permanent_exit_codes": [3]}}, ` + fullRest + `}`,
			map[string]string{"schedule.phase": `{"schedule": {"phase": "2h"}}`, "target.exec.env": `{"target": {"exec": {"env": {"=": ""}}}}`, "timeout": badJob["timeout"]}},
		{`{"schedule": {"at": "2099-01-01T00:00:00Z", "start": "2000-01-01T00:00:00Z"}, "target": {"aws": {"arn": "arn:aws:sqs:eu-west-1:123456789012:q.fifo", "role_arn": "arn:aws:iam::123456789012:role/r", "message_group": "g"}}, ` + fullRest + `}`,
			map[string]string{"target.aws.source": `{"target": {"aws": {"source": "s"}}}`}},
		{`{"target": {"handler": {"name": "echo"}}}`, map[string]string{"payload": `{"payload": "` + strings.Repeat("x", 9000) + `"}`}},
	}
	inBatch := func(list string, of []sample, more string) (all []sample) {
		for _, s := range of {
			bad := map[string]string{}
			for field, change := range s.bad {
				bad[fmt.Sprintf("%s[1].%s", list, field)] = fmt.Sprintf(`{%q: [{}, %s]}`, list, change)
			}
			entry := strings.TrimPrefix(s.body, "{")
			all = append(all, sample{fmt.Sprintf(`{%q: [{%s %s, {%s %s]}`, list, fmt.Sprintf(more, "b"), entry, fmt.Sprintf(more, "c"), entry), bad})
		}
		return all
	}
	puts := inBatch("jobs", jobs, `"name": "%s",`)
	puts[0].bad["jobs[1].name"] = `{"jobs": [{}, {"name": "b"}]}`
	triggers := []sample{
		{`{"delay": "1m", "payload": {"a": 1}}`, map[string]string{"delay": `{"delay": "3000d"}`}},
		{`{"at": "` + soon + `", "payload": 1}`, map[string]string{"at": `{"at": "2999-01-01T00:00:00Z"}`, "delay": `{"delay": "1s"}`}},
	}
	runs := `"runs": ["a~0mi4lf3k0"]`
	seenJobs := `"jobs": [{"name": "a", "etag": "\"1\""}, {"name": "b"}]`
	chosenJobs := `"matching": {"prefix": "a", "labels": {"team": "x"}, "paused": false}, "cursor": "c", "max": 5, "unchanged_since": "2026-01-01T00:00:00Z"`
	workflow := `"workflow": {"steps": {"a": {"handler": {"name": "echo"}}, "b": {"needs": ["a"], "pass": {}}}}`
	matching := `"matching": {"job": "a", "labels": {"team": "x"}, "error": "e", "from": "2000-01-01T00:00:00Z", "to": "2001-01-01T00:00:00Z"`
	return map[string][]sample{
		"PUT /v1/jobs/a":      jobs,
		"PATCH /v1/jobs/a":    {{`{"description": "d", "timeout": "1m", "labels": {"a": "b"}}`, map[string]string{"schedule.cron": `{"schedule": {"cron": "0 25 * * *"}}`}}},
		"POST /v1/jobs/batch": puts,
		"POST /v1/jobs/batch/pause": {
			{`{` + chosenJobs + `, "dry_run": true, "reason": "r"}`, map[string]string{"matching.labels": `{"matching": {"labels": {"": "x"}}}`}},
			{`{` + seenJobs + `}`, map[string]string{"jobs[1].name": `{"jobs": [{}, {"name": "a"}]}`, "max": `{"max": 1}`, "cursor": `{"cursor": "c"}`}}},
		"POST /v1/jobs/batch/resume": {
			{`{` + chosenJobs + `, "dry_run": false, "per_second": 100}`, map[string]string{"matching.labels": `{"matching": {"labels": {"": "x"}}}`, "max": `{"max": 5, "per_second": 0.1}`}},
			{`{` + seenJobs + `, "per_second": 2}`, map[string]string{"per_second": `{"per_second": 0.1}`, "max": `{"max": 1}`}}},
		"POST /v1/jobs/batch/delete": {
			{`{` + chosenJobs + `, "dry_run": true}`, map[string]string{"matching.labels": `{"matching": {"labels": {"": "x"}}}`}},
			{`{` + seenJobs + `}`, map[string]string{"cursor": `{"cursor": "c"}`}}},
		"POST /v1/jobs/batch/label": {
			{`{` + chosenJobs + `, "set": {"team": "y"}, "remove": ["old", "older"]}`,
				map[string]string{"set": `{"set": {"-": "x"}}`, "set.team": `{"set": {"team": "` + strings.Repeat("x", 129) + `"}}`}},
			{`{` + seenJobs + `, "remove": ["old"]}`, map[string]string{"cursor": `{"cursor": "c"}`, "set": `{"set": {"-": "x"}}`}}},
		"POST /v1/jobs/batch/export": {
			{`{"matching": {"prefix": "a", "labels": {"team": "x"}, "paused": true}, "cursor": "c"}`, map[string]string{"matching.labels": `{"matching": {"labels": {"": "x"}}}`}},
			{`{"jobs": ["a", "b"]}`, map[string]string{"jobs[1]": `{"jobs": ["a", "a"]}`, "cursor": `{"cursor": "c"}`}}},
		"POST /v1/jobs/a/pause":  {{`{"reason": "r"}`, nil}},
		"POST /v1/jobs/a/resume": {{`{}`, nil}},
		"POST /v1/jobs/a/runs":   triggers,
		"POST /v1/runs/batch":    inBatch("runs", triggers, `"job": "%s", "idempotency_key": "k",`),
		"POST /v1/runs/last":     {{`{"jobs": ["a", "b"], "limit": 5}`, map[string]string{"jobs[1]": `{"jobs": ["a", "a"]}`}}},
		"POST /v1/runs/cancel": {
			{`{` + matching + `, "states": ["queued"]}, "cursor": "c", "max": 5, "dry_run": true, "reason": "r"}`,
				map[string]string{"matching.states[0]": `{"matching": {"states": ["dead"]}}`, "matching.labels": `{"matching": {"labels": {"": "x"}}}`}},
			{`{` + runs + `}`, map[string]string{"max": `{"max": 1}`, "cursor": `{"cursor": "c"}`}}},
		"POST /v1/runs/retry": {
			{`{` + matching + `, "states": ["dead"]}, "cursor": "c", "max": 1000, "per_second": 100, "dry_run": false, "force": true}`,
				map[string]string{"matching.states[0]": `{"matching": {"states": ["queued"]}}`, "max": `{"per_second": 1}`}},
			{`{` + runs + `}`, map[string]string{"max": `{"max": 1}`}}},
		"PUT /v1/gates/g":                   {{`{"name": "g", "limit": 3, "max_waiting": 5, "max_wait": "1h", "order": "fifo"}`, map[string]string{"name": `{"name": "other"}`}}},
		"POST /v1/gates/g/close":            {{`{"reason": "r"}`, nil}},
		"POST /v1/gates/g/open":             {{`{}`, nil}},
		"POST /v1/runs/a~0mi4lf3k0/release": {{`{}`, nil}},
		"POST /v1/runs/a~0mi4lf3k0/cancel":  {{`{"reason": "r"}`, nil}},
		"POST /v1/runs/a~0mi4lf3k0/retry":   {{`{"force": true}`, nil}},
		"POST /v1/dead-letters/redrive": {
			{`{"matching": {"job": "a", "error": "e", "pattern": "p", "from": "2000-01-01T00:00:00Z", "to": "2001-01-01T00:00:00Z"}, "cursor": "c", "max": 1000, "per_second": 100, "dry_run": false}`,
				map[string]string{"max": `{"per_second": 1}`}},
			{`{` + runs + `}`, map[string]string{"cursor": `{"cursor": "c"}`}}},
		"POST /v1/dead-letters/discard": {
			{`{"matching": {"job": "a", "error": "e", "pattern": "p", "from": "2000-01-01T00:00:00Z", "to": "2001-01-01T00:00:00Z"}, "cursor": "c", "max": 1000, "dry_run": false, "note": "n"}`, nil},
			{`{` + runs + `}`, map[string]string{"cursor": `{"cursor": "c"}`, "max": `{"max": 1}`}}},
		"POST /v1/workflows/validate": {{`{` + workflow + `}`, map[string]string{"workflow.steps.b.needs[0]": `{"workflow": {"steps": {"b": {"needs": ["c"]}}}}`}}},
		"POST /v1/workflows/simulate": {{`{` + workflow + `, "input": {"a": 1}, "outcomes": {"a": "failed"}}`,
			map[string]string{"outcomes.a": `{"outcomes": {"a": "lost"}}`, "workflow.steps.b": `{"workflow": {"steps": {"b": {"pass": null}}}}`}}},
		"POST /v1/simulate": {
			{`{"start": "2026-01-05T00:00:00Z", "until": "1d", "workers": 3, "jobs": {"a": {"schedule": {"every": "1h"}, "target": {"handler": {"name": "x"}}}},
				"outcomes": {"a": [{"takes": "1s", "fails": "e", "permanent": true, "code": "c"}], "*": {"by": ".payload.x", "is": {"1": [{"never": true, "stops_after": "1s"}]}, "else": [{"crashes": true}]}},
				"script": [{"at": "1h", "do": "trigger", "job": "a", "as": "b", "delay": "1m", "payload": 1}, {"at": "2h", "do": "cancel", "run": "b", "reason": "r"}, {"at": "3h", "do": "workers", "n": 1}]}`,
				map[string]string{"until": `{"until": "yesterday"}`, "outcomes.b": `{"outcomes": {"b": [{}]}}`, "jobs.a.timeout": `{"jobs": {"a": {"timeout": "25h"}}}`, "script[1].run": `{"script": [{}, {"run": "c"}]}`}},
			{`{"start": "2026-01-05T00:00:00Z", "jobs": {"a": {"target": {"handler": {"name": "x"}}}}, "script": [
				{"at": "1h", "do": "put", "job": "a", "definition": {"target": {"handler": {"name": "y"}}}, "if_match": "*"}, {"at": "1h", "do": "trigger", "runs": [{"job": "a", "run_at": "2h"}]},
				{"at": "1h", "do": "down", "for": "1h"}, {"at": "1h", "do": "clock", "by": "-2s"}, {"at": "1h", "do": "retry", "run": "a@1h", "force": true}]}`,
				map[string]string{"script[3].by": `{"script": [{}, {}, {}, {"by": "x"}]}`}},
		},
		"POST /v1/tokens": {{`{"name": "n", "scopes": ["read", "run"], "expires_in": "1d"}`,
			map[string]string{"scopes[1]": `{"scopes": ["read", "read"]}`, "expires_in": `{"expires_in": "40000d"}`}}},
		"POST /v1/session": {{`{"name": "n", "scopes": ["read", "run"], "expires_in": "1h"}`,
			map[string]string{"scopes[1]": `{"scopes": ["read", "read"]}`, "expires_in": `{"expires_in": "13h"}`}}},
		"PUT /v1/secrets/s":           {{`{"value": "v"}`, map[string]string{"value": `{"value": "a\u0000b"}`}}},
		"POST /v1/secret-keys/rotate": {{`{}`, nil}},
		"POST /v1/work/take": {{`{"queue": "far", "worker": "w", "max": 1, "wait": "1s", "handlers": ["f"], "http": true, "exec": true, "aws": true, "labels": {"zone": "eu"}, "concurrency": 1, "running": 1}`,
			map[string]string{"wait": `{"wait": "21s"}`, "labels": `{"labels": {"-": ""}}`}}},
		"POST /v1/work/start": {{`{` + runOfA + `}`, nil}},
		"POST /v1/work/leave": {{`{` + runOfA + `, "reason": "busy"}`, nil}},
		"POST /v1/work/renew": {{`{` + runOfA + `, "fence": 1}`, nil}},
		"POST /v1/work/show":  {{`{` + runOfA + `, "fence": 1, "log": "eA=="}`, map[string]string{"log": `{"log": "a"}`}}},
		"POST /v1/work/finish": {{`{` + runOfA + `, "fence": 1, "outcome": "failed", "failure": {"kind": "exit", "message": "m", "permanent": true, "retry_after": "1s"}, "result": "e30=", "content_type": "a/b", "truncated": true, "cause": "c", "log": "aGkK"}`,
			map[string]string{"log": `{"log": "a"}`, "result": `{"result": "a"}`, "failure": `{"failure": null}`}}},
	}
}

// merged puts what a change says into a document: null takes a member out.
func merged(document, change any) any {
	switch change := change.(type) {
	case map[string]any:
		old, _ := document.(map[string]any)
		made := maps.Clone(old)
		if made == nil {
			made = map[string]any{}
		}
		for name, value := range change {
			if made[name] = merged(made[name], value); value == nil {
				delete(made, name)
			}
		}
		return made
	case []any:
		old, _ := document.([]any)
		if _, objects := change[0].(map[string]any); !objects || len(old) < len(change) {
			return change
		}
		made := slices.Clone(old)
		for i, value := range change {
			made[i] = merged(made[i], value)
		}
		return made
	}
	return change
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// places visits every value of a document with its field, and what the document is with another one there.
func places(v any, field string, with func(any) any, visit func(field string, value any, with func(any) any)) {
	if field != "" {
		visit(field, v, with)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sorted(v) {
			places(v[name], strings.TrimPrefix(field+"."+name, "."), func(other any) any {
				made := maps.Clone(v)
				made[name] = other
				return with(made)
			}, visit)
		}
	case []any:
		for i := range v {
			places(v[i], fmt.Sprintf("%s[%d]", field, i), func(other any) any {
				made := slices.Clone(v)
				made[i] = other
				return with(made)
			}, visit)
		}
	}
}

// part is the member of a body, or of an entry of a batch, that a field lies in.
func part(field string) string {
	for _, list := range []string{"jobs[0].", "jobs[1].", "runs[0].", "runs[1]."} {
		field = strings.TrimPrefix(field, list)
	}
	field, _, _ = strings.Cut(field, ".")
	field, _, _ = strings.Cut(field, "[")
	return field
}

// judges are members by which others are judged: a wrong one may hide that another is bad.
var judges = []string{"queue", "guarantee", "per_second", "dry_run", "outcome", "at"}

// anyJSON are places whose form only lib/flow knows.
var anyJSON = regexp.MustCompile(`^(workflow($|\.)|input($|\.)|outcomes\.)`)

// names gives the fields of a refusal, sorted; none is named twice.
func (s *server) names(what string, body any) []string {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	method, path, _ := strings.Cut(what, " ")
	r := s.send(method, path, string(text))
	var fields []string
	for _, e := range into[wire.Problem](r).Errors {
		if slices.Contains(fields, e.Field) {
			s.t.Errorf("%s %.200s: %s is named twice: %s", what, text, e.Field, r.body)
		}
		fields = append(fields, e.Field)
	}
	if r.status != 400 {
		s.t.Errorf("%s %.200s: %d %s, want it refused for its form", what, text, r.status, r.body)
	}
	slices.Sort(fields)
	return fields
}

// What is wrong in its form and what is wrong in its value is answered at once, for every body: all that can be read is judged, and what cannot
// be read is named once and clouds nothing else.
func TestEveryWrongFormAndValueIsNamedAtOnce(t *testing.T) {
	s := start(t, 0, everything(t))
	s.send("PUT", "/v1/jobs/a", echo).is(201) // which a patch changes
	all := samples()
	s.surface().bodies(func(method, path string, _ *schemaText) {
		what := method + " " + path
		if all[what] == nil {
			t.Errorf("%s has no sample", what)
		}
		for _, one := range all[what] {
			right := parsed(t, one.body).(map[string]any)
			unknown := merged(right, map[string]any{"nonsense": 1.0})
			if got := s.names(what, unknown); !slices.Equal(got, []string{"nonsense"}) {
				t.Errorf("%s: the sample itself is refused: %v", what, got)
				continue
			}
			for _, field := range sorted(one.bad) {
				bad := merged(unknown, parsed(t, one.bad[field]))
				want := []string{field, "nonsense"}
				slices.Sort(want)
				if got := s.names(what, bad); !slices.Equal(got, want) {
					t.Errorf("%s with %s: %v, want %v", what, one.bad[field], got, want)
				}
			}
			places(right, "", func(other any) any { return other }, func(field string, value any, with func(any) any) {
				if strings.Contains(field, "payload") || strings.HasSuffix(field, "X-B") || anyJSON.MatchString(field) { // any JSON; text or an object
					return
				}
				var wrong any = 7.0
				if _, number := value.(float64); number {
					wrong = "seven"
				}
				if got := s.names(what, with(wrong)); !slices.Equal(got, []string{field}) {
					t.Errorf("%s with a wrong %s: %v, want that alone", what, field, got)
				}
				for bad, change := range one.bad {
					both := merged(with(wrong), parsed(t, change))
					if part(field) == part(bad) || part(field) == "jobs" || part(field) == "runs" || reflect.DeepEqual(both, merged(right, parsed(t, change))) {
						continue // the one is a part of the other, or takes its place
					}
					got := s.names(what, both)
					if !slices.Contains(got, field) || !slices.Contains(got, bad) && !slices.Contains(judges, part(field)) {
						t.Errorf("%s with a wrong %s and a bad %s: %v", what, field, bad, got)
					}
				}
			})
		}
	})
}

// The same of what people write by mistake.
func TestAWrongFormHidesNoWrongValue(t *testing.T) {
	s := start(t, 0, nil)
	for body, want := range map[string][]string{
		`{"schedule": {"cron": "61 * * * *", "timezone": 5}, "target": {"handler": {"name": "echo"}}}`:                                       {"schedule.cron", "schedule.timezone"},
		`{"schedule": {"cron": "61 * * * *"}, "timeout": "25h", "target": {"handler": {"name": 5}}}`:                                         {"schedule.cron", "target.handler.name", "timeout"},
		`{"schedule": {"cron": "61 * * * *"}}`:                                                                                               {"schedule.cron", "target"},
		`{"schedule": {"evry": "5s"}, "timeout": "25h", "target": {"handler": {"name": "echo"}}}`:                                            {"schedule", "schedule.evry", "timeout"},
		`{"schedule": {"at": "yesterday"}, "retention": "1s", "target": {"handler": {"name": "echo"}}}`:                                      nil,
		`{"Timeout": "25h", "retry": {"max_attempts": 1.5}, "labels": {"-": "x"}, "target": {"handler": {"name": "echo"}}}`:                  {"Timeout", "labels", "retry.max_attempts"},
		`{"timeout": "25h", "timeout": "26h", "target": {"handler": {"name": "echo"}}}`:                                                      {"timeout"},
		`{"queue": [], "target": {"exec": {"argv": ["a"]}}}`:                                                                                 {"queue"},
		`{"target": {"http": {"url": "https://example.org/", "verb": "GET", "headers": {"Host": "a"}}}, "description": 1}`:                   {"description", "target.http.headers", "target.http.verb"},
		`{"target": {"exec": {"argv": ["a", 1], "env": {"=": ""}}}, "queue": "far"}`:                                                         {"target.exec.argv[1]", "target.exec.env"},
		`{"schedule": {"cron": "0 0 * * *", "every": "5s"}, "timeout": "25h", "payload": [1, "x"], "target": {"handler": {"name": "echo"}}}`: {"schedule", "timeout"},
	} {
		if want == nil { // a value alone, in two ways
			fields := s.send("PUT", "/v1/jobs/x", body).refused(422, "invalid")
			if fields["schedule.at"] == "" || fields["retention"] == "" {
				t.Errorf("%s: %v", body, fields)
			}
			continue
		}
		fields := s.send("PUT", "/v1/jobs/x", body).refused(400, "malformed")
		if got := sorted(fields); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", body, fields, want)
		}
		batch := `{"jobs": [{"name": "ok", "target": {"handler": {"name": "echo"}}}, {"name": "x", ` + body[1:] + `]}`
		fields = s.send("POST", "/v1/jobs/batch", batch).refused(400, "malformed")
		for i := range want {
			want[i] = "jobs[1]." + want[i]
		}
		if got := sorted(fields); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", batch, fields, want)
		}
	}
	fields := s.send("PUT", "/v1/jobs/x?dry=1", `{"timeout": "25h", "target": {"handler": {"name": "echo"}}}`).refused(400, "malformed")
	if got := sorted(fields); !slices.Equal(got, []string{"dry", "timeout"}) {
		t.Errorf("an unknown parameter: %v", fields)
	}
}
