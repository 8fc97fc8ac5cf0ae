package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What was given is told from what was left out: a zero of a request is refused under the name of its field, wherever the field is
// one of those below whose zero is a value. A field that is added is tried too.
func TestNoZeroOfARequestIsTakenForNothing(t *testing.T) {
	s := start(t, 0, everything(t))
	d := s.surface()
	meant := []string{"schedule.phase", "schedule.jitter", "delay", "wait", "failure.retry_after", "running", "offset", "takes", "stops_after", "n", "max_waiting", "/v1/plan/retry?duration", "/v1/plan/queue?from", "grow", "at_once", "delayed", "p99", "high", "low", "warm", "schedules", "on_demand", "ahead", "retry_rate", "payload", "/v1/plan/capacity?result", "hot_job", "helpers"}
	// An empty text is a text like any other, or says as little as none.
	texts := regexp.MustCompile(`(^|\.)(description|reason|note|name|key|labels\.x|set\.x|headers\.x|env\.x|argv\[0\]|cause|content_type|message|log|result|value|ticket|fails)$`)
	inScenario := regexp.MustCompile(`^(jobs\.x|gates\.x|definition)\.`)
	met := map[string]bool{}
	zeros := func(schema *schemaText) []string {
		switch {
		case strings.Contains(schema.Pattern, "(ms|s|m|h)"):
			return []string{`"0s"`, `"0d"`, `"0.0h0ms"`, `"0"`}
		case schema.Format == "date-time":
			return []string{`"0001-01-01T00:00:00Z"`, `"0001-01-01T02:00:00+02:00"`, `"1969-12-31T23:59:59Z"`}
		case schema.Type == "integer" || schema.Type == "number":
			return []string{"0", "0.0", "-0"}
		case schema.Type == "string":
			return []string{`""`}
		}
		return nil
	}
	refused := func(what, field string, r reply) {
		t.Helper()
		leaf := field[strings.LastIndexByte(field, ']')+1:]
		fields := map[string]string{}
		if r.status == 400 || r.status == 422 {
			fields = r.refused(r.status, map[int]string{400: "malformed", 422: "invalid"}[r.status])
		}
		name := inScenario.ReplaceAllString(strings.TrimPrefix(leaf, "."), "")
		if parameter, _, _ := strings.Cut(what, "="); slices.Contains(meant, parameter) { // one path alone means it
			name = parameter
		}
		if slices.Contains(meant, name) {
			met[name] = true
			if strings.Contains(what, "0.0") {
				return // a form of zero that some fields do not take
			}
			if fields[field] != "" {
				t.Errorf("%s: %s, want it taken as zero", what, fields[field])
			}
		} else if fields[field] == "" {
			t.Errorf("%s: %d %.200s, want %s refused", what, r.status, r.body, field)
		}
	}
	d.bodies(func(method, path string, schema *schemaText) {
		d.walk(schema, "", func(value string) string { return value }, func(field string, schema *schemaText, in func(string) string) {
			if strings.Contains(field, "status.") { // what only Belfry writes: ignored in requests
				return
			}
			if strings.HasSuffix(field, "overlap.max_waiting") { // 0 is a value, which wants a limit beside it; tests of overlap try both
				return
			}
			for _, zero := range zeros(schema) {
				if zero == `""` && texts.MatchString(field) {
					continue
				}
				refused(method+" "+path+" with "+in(zero), field, s.send(method, path, in(zero)))
			}
		})
	})
	for _, path := range sorted(d.Paths) {
		for method, op := range d.Paths[path] {
			for _, p := range op.Parameters {
				if p.In != "query" {
					continue
				}
				for _, zero := range zeros(p.Schema) {
					at := strings.NewReplacer("{job}", "a", "{run}", "a~0mi4lf3k0", "{queue}", "default").Replace(path) + "?" + p.Name + "=" + url.QueryEscape(strings.Trim(zero, `"`))
					refused(at, p.Name, s.send(strings.ToUpper(method), at, map[bool]string{true: "{}"}[op.RequestBody != nil]))
				}
			}
		}
	}
	for _, field := range meant {
		if !met[field] {
			t.Errorf("no request has %s any more", field)
		}
	}
}

// A zero that would have chosen everything, or lasted for ever, changes nothing.
func TestAZeroChangesNothing(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	s.send("POST", "/v1/jobs/a/runs", `{"delay": "1h"}`).is(202)
	for what, c := range map[string][3]string{
		"a token for ever":   {"/v1/tokens", `{"scopes": ["read"], "expires_in": "0s"}`, "expires_in"},
		"a session for ever": {"/v1/session", `{"expires_in": "0s"}`, "expires_in"},
		"a cancel of all":    {"/v1/runs/cancel", `{"matching": {"to": "0001-01-01T00:00:00Z"}}`, "matching.to"},
	} {
		if fields := s.send("POST", c[0], c[1]).refused(422, "invalid"); fields[c[2]] == "" {
			t.Errorf("%s: %v, want %s named", what, fields, c[2])
		}
	}
	if list := string(s.send("GET", "/v1/runs?state=scheduled", "").is(200).body); !strings.Contains(list, `"scheduled"`) {
		t.Errorf("the run was cancelled: %s", list)
	}
}

// A field that another one excludes is refused by its name whatever it holds, a zero too: wherever every other value is refused beside
// something, so is the zero, and is not dropped without a word.
func TestNoZeroIsDroppedBesideWhatExcludesIt(t *testing.T) {
	s := start(t, 0, everything(t))
	d := s.surface()
	arn := func(service, resource string) string {
		return `{"aws": {"arn": "arn:aws:` + service + ":eu-west-1:123456789012:" + resource + `"}}`
	}
	s.send("PUT", "/v1/gates/x", `{"limit": 1}`).is(201) // which a list of gates may name
	targets := []string{`{"http": {"url": "https://example.org/"}}`, `{"exec": {"argv": ["a"]}}`, `{"handler": {"name": "echo"}}`, arn("lambda", "function:f"), arn("sqs", "q"),
		arn("sqs", "q.fifo"), arn("sns", "t"), arn("events", "event-bus/b"), arn("states", "stateMachine:m")}
	schedules := []string{`null`, `{"cron": "0 0 * * *"}`, `{"every": "1h"}`, `{"at": "2099-01-01T00:00:00Z"}`}
	var bodies []any // what a field may stand beside
	for _, at := range schedules {
		for _, guarantee := range []string{`"at_most_once"`, `"at_least_once"`} {
			bodies = append(bodies, merged(map[string]any{}, parsed(t, `{"schedule": `+at+`, "target": `+targets[0]+`, "guarantee": `+guarantee+`}`)))
		}
	}
	for _, to := range targets {
		bodies = append(bodies, parsed(t, `{"target": `+to+`, "queue": "far"}`))
	}
	values := func(schema *schemaText) (zeros, others []string) {
		quoted := func(values []any) (all []string) {
			for _, v := range values {
				all = append(all, fmt.Sprintf("%q", v))
			}
			return all
		}
		switch {
		case strings.Contains(schema.Pattern, "(ms|s|m|h)"):
			return []string{`"0s"`, `"0"`}, []string{`"1ms"`, `"1m"`, `"2h"`, `"40h"`}
		case schema.Format == "date-time":
			return []string{`"0001-01-01T00:00:00Z"`, `"1970-01-01T00:00:00Z"`}, []string{`"2001-01-01T00:00:00Z"`, `"2099-01-01T00:00:01Z"`}
		case schema.Type == "integer" || schema.Type == "number":
			return []string{"0"}, []string{"1", "2", "1.5", "404"}
		case schema.Type == "boolean":
			return []string{"false"}, []string{"true"}
		case schema.Type == "array":
			return []string{"[]"}, []string{"[1]", "[404]", `["x"]`}
		case schema.Type == "string":
			return []string{`""`}, append(quoted(schema.Enum), `"x"`, `"/x"`, `"UTC"`, `"0 0 * * *"`, `"https://example.org/x"`, `"arn:aws:iam::123456789012:role/r"`)
		case schema.free() != nil:
			return []string{"{}"}, []string{`{"x": "y"}`}
		}
		return nil, nil
	}
	tell := func(body any, field, value string) (r reply, named bool) {
		in := value
		path := strings.Split(field, ".")
		for i := len(path) - 1; i >= 0; i-- {
			in = fmt.Sprintf("{%q: %s}", path[i], in)
		}
		text, _ := json.Marshal(merged(body, parsed(t, in)))
		r = s.send("PUT", "/v1/jobs/x?dry_run=true", string(text))
		if r.status >= 400 {
			for _, e := range into[wire.Problem](r).Errors {
				named = named || e.Field == field || strings.HasPrefix(e.Field, field+"[") || strings.HasPrefix(e.Field, field+".")
			}
		}
		return r, named
	}
	excluded := map[string]bool{}
	d.bodies(func(method, path string, schema *schemaText) {
		if method+" "+path != "PUT /v1/jobs/a" {
			return
		}
		d.walk(schema, "", func(value string) string { return value }, func(field string, schema *schemaText, _ func(string) string) {
			zeros, others := values(schema)
			if len(zeros) == 0 || strings.HasPrefix(field, "status") || strings.Contains(field, "[") || strings.HasSuffix(field, ".x") {
				return
			}
			for _, body := range bodies {
				parent := field[:max(0, strings.LastIndexByte(field, '.'))]
				if parent == "schedule" && body.(map[string]any)["schedule"] == nil || strings.HasPrefix(parent, "target.") && !strings.Contains(fmt.Sprint(body), strings.TrimPrefix(parent, "target.")+":map") {
					continue // another way to say when or what, as a whole
				}
				taken := false
				for _, value := range others {
					r, named := tell(body, field, value)
					taken = taken || r.status < 400 || !named
				}
				if taken {
					continue
				}
				excluded[field] = true
				for _, zero := range zeros {
					if r, named := tell(body, field, zero); !named {
						t.Errorf("%s %s beside %v: %d %.300s, want it refused like every other value", field, zero, body, r.status, r.body)
					}
				}
			}
		})
	})
	for _, field := range []string{"schedule.phase", "schedule.timezone", "target.aws.source", "target.aws.message_group", "target.aws.invoke"} {
		if !excluded[field] {
			t.Errorf("nothing excludes %s; excluded are %v", field, sorted(excluded))
		}
	}
}
