package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Every listing spares a client what it has already, and tells it when anything has changed.
func TestListingsAreNotSentTwice(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "echo", "fail", 1)).is(201)
		s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)
		s.send("PUT", "/v1/jobs/w", `{"target": {"workflow": {"steps": {"x": {"handler": {"name": "echo"}}}}}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/w/runs", `{}`).is(202)).ID
		settle()
		var d answered
		if err := json.Unmarshal(s.send("GET", "/openapi.json", "").is(200).body, &d); err != nil {
			t.Fatal(err)
		}
		tagged := map[string]string{}
		for path, methods := range d.Paths {
			if op := methods["get"]; op != nil {
				if _, ok := op.Responses["304"]; ok {
					tagged[op.OperationID] = strings.NewReplacer("{job}", "a", "{run}", id, "{gate}", "job:a", "{queue}", "default").Replace(path)
				}
			}
		}
		for listing := range listings {
			if tagged[listing] == "" {
				t.Errorf("the listing %s has no 304", listing)
			}
		}
		for op, path := range tagged {
			first := s.send("GET", path, "").is(200)
			tag := first.header.Get("ETag")
			if !strings.HasPrefix(tag, `W/"`) || first.header.Get("Content-Type") != "application/json" || len(first.body) == 0 {
				t.Errorf("%s: ETag %q, %v", op, tag, first.header)
			}
			for _, given := range []string{tag, strings.TrimPrefix(tag, "W/"), `"other", ` + tag, "*"} {
				again := s.send("GET", path, "", "If-None-Match", given).is(304)
				if len(again.body) != 0 || again.header.Get("ETag") != tag || again.header.Get("Content-Type") != "" {
					t.Errorf("%s with %s: %q, %v; want no body and the tag", op, given, again.body, again.header)
				}
			}
			if other := s.send("GET", path, "", "If-None-Match", `W/"other"`).is(200); string(other.body) != string(first.body) {
				t.Errorf("%s with another tag: %s", op, other.body)
			}
		}
		// Something changes: what shows it is sent again.
		runs := s.send("GET", "/v1/runs", "").header.Get("ETag")
		groups := s.send("GET", "/v1/dead-letters/groups", "").header.Get("ETag")
		jobs := s.send("GET", "/v1/jobs", "").header.Get("ETag")
		s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)
		settle()
		s.send("GET", "/v1/runs", "", "If-None-Match", runs).is(200)
		s.send("GET", "/v1/dead-letters/groups", "", "If-None-Match", groups).is(200)
		s.send("GET", "/v1/jobs", "", "If-None-Match", jobs).is(304)
		// What is refused is told, whatever the client has; so it is to whom it is not his.
		if r := s.send("GET", "/v1/runs/a~0mi4lf3k0", "", "If-None-Match", "*"); r.header.Get("ETag") != "" {
			t.Errorf("a refusal has the tag %s", r.header.Get("ETag"))
		} else {
			r.refused(404, "run_not_found")
		}
		s.send("GET", "/v1/runs?limit=0", "", "If-None-Match", "*").refused(400, "malformed")
		s.send("GET", "/v1/runs", "", append([]string{"If-None-Match", runs}, s.of("acme")...)...).is(200)
		s.send("GET", "/v1/runs", "", "If-None-Match", strings.Repeat("x", 5000)).refused(400, "malformed")
		// A job's own ETag is that of its definition, for edits.
		if got := s.send("GET", "/v1/jobs/a", "").is(200).header.Get("ETag"); strings.HasPrefix(got, "W/") {
			t.Errorf("a job has the ETag %s", got)
		}
	})
}
