package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestWrongFormsAreRefusedAndNamed(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	job := func(more string) string { return `{"target": {"handler": {"name": "echo"}}, ` + more + `}` }
	for name, c := range map[string]struct{ method, path, body, field, want string }{
		"unknown field":               {"PUT", "/v1/jobs/x", job(`"shedule": {}`), "shedule", "schedule"},
		"unknown nested field":        {"PUT", "/v1/jobs/x", job(`"retry": {"max_attemps": 1}`), "retry.max_attemps", "max_attempts"},
		"unknown field in the target": {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b", "verb": "GET"}}}`, "target.http.verb", "method"},
		"letter case counts":          {"PUT", "/v1/jobs/x", job(`"Timeout": "5s"`), "Timeout", "timeout"},
		"field given twice":           {"PUT", "/v1/jobs/x", job(`"timeout": "5s", "timeout": "6s"`), "timeout", "twice"},
		"null":                        {"PUT", "/v1/jobs/x", job(`"timeout": null`), "timeout", "duration"},
		"null for a list":             {"PUT", "/v1/jobs/x", `{"target": {"exec": {"argv": null}}}`, "target.exec.argv", "array"},
		"number for a duration":       {"PUT", "/v1/jobs/x", job(`"timeout": 5`), "timeout", `"90s"`},
		"text that is no duration":    {"PUT", "/v1/jobs/x", job(`"timeout": "5 seconds"`), "timeout", `"90s"`},
		"value of no list":            {"PUT", "/v1/jobs/x", job(`"priority": "urgent"`), "priority", "high, normal or low"},
		"too many attempts":           {"PUT", "/v1/jobs/x", job(`"retry": {"max_attempts": 101}`), "retry.max_attempts", "at most 100"},
		"broken number":               {"PUT", "/v1/jobs/x", job(`"retry": {"max_attempts": 1.5}`), "retry.max_attempts", "whole number"},
		"entry of a list":             {"PUT", "/v1/jobs/x", `{"target": {"exec": {"argv": ["a", 1]}}}`, "target.exec.argv[1]", "text"},
		"value of a map":              {"PUT", "/v1/jobs/x", job(`"labels": {"team": 1}`), "labels.team", "text"},
		"a fragment in a URL":         {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b/c#d"}}}`, "target.http.url", "never sent"},
		"a blank in a URL":            {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b/c d"}}}`, "target.http.url", "a URL without blanks; %20 stands for one"},
		"another scheme":              {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "ftp://a.b/c"}}}`, "target.http.url", "ftp is not called"},
		"no scheme":                   {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "a.b/c"}}}`, "target.http.url", "it begins with http:// or https://"},
		"no host":                     {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http:c"}}}`, "target.http.url", "it names no host"},
		"number for a header":         {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b", "headers": {"X-A": 1}}}}`, "target.http.headers.X-A", `{"secret": "name"}`},
		"no name of a secret":         {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b", "headers": {"X-A": {}}}}}`, "target.http.headers.X-A.secret", "missing"},
		"empty name of a secret":      {"PUT", "/v1/jobs/x", `{"target": {"exec": {"argv": ["a"], "env": {"A": {"secret": ""}}}}}`, "target.exec.env.A.secret", "letters"},
		"more than a secret's name":   {"PUT", "/v1/jobs/x", `{"target": {"exec": {"argv": ["a"], "env": {"A": {"secret": "a", "text": "b"}}}}}`, "target.exec.env.A.text", "secret"},
		"no key to sign with":         {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b", "sign": {}}}}`, "target.http.sign.secret", "missing"},
		"no target":                   {"PUT", "/v1/jobs/x", `{}`, "target", "missing"},
		"ARN of no form":              {"PUT", "/v1/jobs/x", `{"target": {"aws": {"arn": "report"}}}`, "target.aws.arn", "an ARN such as"},
		"mail to nobody":              {"PUT", "/v1/jobs/x", `{"target": {"email": {"to": []}}}`, "target.email.to", "at least 1"},
		"mail to text":                {"PUT", "/v1/jobs/x", `{"target": {"email": {"to": "ops@example.org"}}}`, "target.email.to", "array"},
		"mail of another form":        {"PUT", "/v1/jobs/x", `{"target": {"email": {"to": ["a@example.org"], "cc": []}}}`, "target.email.cc", "want from, subject or to"},
		"way to invoke":               {"PUT", "/v1/jobs/x", `{"target": {"aws": {"arn": "arn:aws:lambda:eu-west-1:123456789012:function:f", "invoke": "Event"}}}`, "target.aws.invoke", "sync or async"},
		"two targets":                 {"PUT", "/v1/jobs/x", `{"target": {"handler": {"name": "a"}, "exec": {"argv": ["a"]}}}`, "target", "exactly one"},
		"no kind of schedule":         {"PUT", "/v1/jobs/x", job(`"schedule": {"timezone": "UTC"}`), "schedule", "exactly one"},
		"no object":                   {"PUT", "/v1/jobs/x", `[]`, "", "object"},
		"no JSON":                     {"PUT", "/v1/jobs/x", `{"target"`, "", "JSON"},
		"two documents":               {"PUT", "/v1/jobs/x", echo + echo, "", "JSON"},
		"no UTF-8":                    {"PUT", "/v1/jobs/x", job(`"description": "` + "\xff" + `"`), "description", "UTF-8"},
		"no UTF-8 in a query":         {"GET", "/v1/dead-letters?error=%FF", "", "error", "UTF-8"},
		"no UTF-8 in a list":          {"GET", "/v1/jobs?label=a=b&label=a=%C3", "", "label", "UTF-8"},
		"no UTF-8 outside of text":    {"PUT", "/v1/jobs/x", job("\xff"), "", "UTF-8"},
		"no UTF-8 in a payload":       {"POST", "/v1/jobs/a/runs", `{"payload": {"a": ["` + "\xed\xa0\x80" + `"]}}`, "payload.a[0]", "UTF-8"},
		"half a pair":                 {"PUT", "/v1/jobs/x", job(`"description": "\ud800"`), "description", `got \ud800, want whole characters`},
		"the other half":              {"PUT", "/v1/jobs/x", job(`"description": "\uDC00\ud800"`), "description", `got \uDC00`},
		"half a pair in a label":      {"PUT", "/v1/jobs/x", job(`"labels": {"team": "\ud83d"}`), "labels.team", `got \ud83d`},
		"half a pair as a name":       {"PUT", "/v1/jobs/x", job(`"labels": {"\ud83d": "x"}`), `labels.\ud83d`, `got \ud83d`},
		"half a pair in a header":     {"PUT", "/v1/jobs/x", `{"target": {"http": {"url": "http://a.b", "headers": {"X-A": "a\ud83db"}}}}`, "target.http.headers.X-A", `got \ud83d`},
		"half a pair in an argument":  {"PUT", "/v1/jobs/x", `{"target": {"exec": {"argv": ["a", "\udfff"]}}}`, "target.exec.argv[1]", `got \udfff`},
		"half a pair in a payload":    {"PUT", "/v1/jobs/x", job(`"payload": {"a": [1, {"b": "\ud800\u0041"}]}`), "payload.a[1].b", `got \ud800`},
		"half a pair for one run":     {"POST", "/v1/jobs/a/runs", `{"payload": "\ud800"}`, "payload", `got \ud800`},
		"half a pair for many runs":   {"POST", "/v1/runs/batch", `{"runs": [{"job": "a"}, {"job": "a", "payload": {"\ud800": 1}}]}`, `runs[1].payload.\ud800`, `got \ud800`},
		"half a pair in many jobs":    {"POST", "/v1/jobs/batch", `{"jobs": [{"name": "a", "description": "\ud800", "target": {"handler": {"name": "echo"}}}]}`, "jobs[0].description", `got \ud800`},
		"half a pair in a reason":     {"POST", "/v1/jobs/a/pause", `{"reason": "\ud800"}`, "reason", `got \ud800`},
		"name of a job":               {"PUT", "/v1/jobs/-x", echo, "job", "letters"},
		"name with a slash":           {"PUT", "/v1/jobs/a%2Fb", echo, "job", "letters"},
		"name too long":               {"PUT", "/v1/jobs/" + strings.Repeat("x", 129), echo, "job", "at most 128"},
		"ID of a run":                 {"GET", "/v1/runs/a~1", "", "run", "as Belfry gave it"},
		"unknown parameter":           {"GET", "/v1/jobs?prefixx=a", "", "prefixx", "prefix"},
		"parameter without a use":     {"GET", "/v1/jobs/a?x=1", "", "x", "unknown"},
		"parameter given twice":       {"GET", "/v1/jobs?limit=1&limit=2", "", "limit", "more than once"},
		"empty parameter":             {"GET", "/v1/jobs?prefix=", "", "prefix", "at least 1"},
		"limit too low":               {"GET", "/v1/jobs?limit=0", "", "limit", "at least 1"},
		"limit too high":              {"GET", "/v1/jobs?limit=1001", "", "limit", "at most 1000"},
		"limit no number":             {"GET", "/v1/jobs?limit=ten", "", "limit", "whole number"},
		"state of no run":             {"GET", "/v1/runs?state=dead,gone", "", "state[1]", "succeeded"},
		"label without a value":       {"GET", "/v1/jobs?label=team", "", "label[0]", "name=value"},
		"neither true nor false":      {"GET", "/v1/jobs?paused=1", "", "paused", "true or false"},
		"broken query":                {"GET", "/v1/jobs?a;b", "", "", "query"},
		"missing parameter":           {"GET", "/v1/cron", "", "expr", "missing"},
		"key with a blank":            {"POST", "/v1/jobs/a/runs", `{}`, "Idempotency-Key", "visible"},
		"reason too long":             {"POST", "/v1/jobs/a/pause", `{"reason": "` + strings.Repeat("x", 1025) + `"}`, "reason", "at most 1024"},
		"body where nothing is said":  {"POST", "/v1/jobs/a/resume", `{"reason": "x"}`, "reason", "no fields"},
	} {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if c.field == "Idempotency-Key" {
				headers = []string{"Idempotency-Key", "a b"}
			}
			sub := &server{t: t, handler: s.handler}
			fields := sub.send(c.method, c.path, c.body, headers...).refused(400, "malformed")
			if got, ok := fields[c.field]; !ok || !strings.Contains(got, c.want) {
				t.Errorf("fields %v, want %q saying %q", fields, c.field, c.want)
			}
		})
	}
	if jobs := into[wire.JobPage](s.send("GET", "/v1/jobs", "")).Items; len(jobs) != 1 {
		t.Errorf("%d jobs after all of it, want the one from before", len(jobs))
	}
}

func TestRightFormsThatMeanNothingAreRefusedAndNamed(t *testing.T) {
	s := start(t, 0, nil)
	for body, field := range map[string]string{
		`"schedule": {"cron": "0 0 30 2 *"}`:                         "schedule.cron",
		`"schedule": {"cron": "0 9 * * *", "timezone": "Mars/Base"}`: "schedule.timezone",
		`"schedule": {"at": "2001-01-01T00:00:00Z"}`:                 "schedule.at",
		`"schedule": {"at": "yesterday"}`:                            "schedule.at",
		`"queue": "nowhere"`:                                         "queue",
		`"timeout": "25h"`:                                           "timeout",
		`"timeout": "999999d"`:                                       "timeout",
		`"retry": {"max_attempts": 5.0}`:                             "retry.max_attempts",
		`"guarantee": "at_most_once", "retry": {"max_attempts": 2}`:  "retry.max_attempts",
	} {
		fields := s.send("PUT", "/v1/jobs/x", `{"target": {"handler": {"name": "echo"}}, `+body+`}`).refused(422, "invalid")
		if fields[field] == "" {
			t.Errorf("%s: fields %v, want %s", body, fields, field)
		}
	}
	s.send("GET", "/v1/jobs/x", "").refused(404, "job_not_found")
}

func TestEveryWrongFieldIsNamedAtOnce(t *testing.T) {
	s := start(t, 0, nil)
	fields := s.send("PUT", "/v1/jobs/x?dry=1", `{"timeout": 1, "queue": [], "retry": {"factor": "2"}}`).refused(400, "malformed")
	for _, want := range []string{"dry", "timeout", "queue", "retry.factor", "target"} {
		if fields[want] == "" {
			t.Errorf("fields %v, want %s among them", fields, want)
		}
	}
}

func TestP11_bodies_are_bounded(t *testing.T) {
	s := start(t, 0, nil)
	body := `{"target": {"handler": {"name": "echo"}}, "description": "` + strings.Repeat("x", 1<<20) + `"}`
	s.send("PUT", "/v1/jobs/x", body).refused(413, "too_large")
	deep := `{"target": {"handler": {"name": "echo"}}, "payload": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`
	s.send("PUT", "/v1/jobs/x", deep).refused(400, "malformed")
	var runs strings.Builder
	for range 1000 {
		fmt.Fprintf(&runs, `{"job": "none", "payload": %q},`, strings.Repeat("x", 2000))
	}
	s.send("POST", "/v1/runs/batch", `{"runs": [`+strings.TrimSuffix(runs.String(), ",")+`]}`).is(200)
}
