package api_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A thing has its own name or ID: what it is called by stands in "name", or in "id" where Belfry made it. What speaks of another thing calls
// that by its kind: "job", "run", "gate". A new shape with one of these belongs to one of the lists.
var (
	things = map[string]string{ // and what each is called by
		"Job": "name", "NamedJob": "name", "JobVerdict": "name", "SeenJob": "name", "Gate": "name", "GateDefinition": "name", "Queue": "name", "Secret": "name", "Check": "name",
		"Run": "id", "LastRun": "id", "InLine": "id", "RunVerdict": "id", "DeadLetter": "id", "SimulatedRun": "id", "RunGraph": "id",
		"Token": "id", "NewToken": "id", "Session": "id", "Caller": "id", "Worker": "id",
	}
	// Tokens have a name for people beside their ID, and a formula has that of the field.
	named = []string{"CapacityGate", "CapacityGateLoad", "CapacityLimit", "CapacityNeed", "CapacityParameter", "CapacityQuota", "QueueTheory", "ScenarioLine", "Token", "NewToken", "TokenRequest", "SessionRequest", "Session", "Caller", "HandlerTarget"}
	// A group of dead letters speaks of one of its runs, and a scenario of runs by names of its own. Offers, attempts and what is said of them
	// are the work of workers, each on a run. A line stands still behind a run. A callback is a run of one job that tells of a run of another.
	ofRuns = []string{"DeadLetterGroup", "ScenarioLine", "Offer", "WorkTask", "WorkStart", "WorkLeave", "WorkClaim", "WorkLog", "WorkEnd", "CallbackOf", "QueueMessage", "OpenRequest", "BlockedBy"}
	ofGate = []string{"GateUse", "ScenarioLine", "Waiting", "Why", "SimulatedWait", "CapacityPass"}
	ofJobs = []string{"Run", "DeadLetter", "SimulatedRun", "Gate", "LastRuns", "JobTrigger", "RunFilter", "DeadFilter", "WorkTask", "ScenarioLine", "ScenarioTrigger", "SimulationMissed", "Callback", "Callee", "JobShare"}
)

func TestEveryShapeIsCalledByItsNameOrID(t *testing.T) {
	s := start(t, 0, everything(t))
	var d struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Pattern, Description string }
			}
		}
	}
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "").is(200).body, &d); err != nil {
		t.Fatal(err)
	}
	schemas := d.Components.Schemas
	for shape, field := range things {
		if _, ok := schemas[shape].Properties[field]; !ok {
			t.Errorf("%s has no %s; it has %v", shape, field, slices.Sorted(maps.Keys(schemas[shape].Properties)))
		}
	}
	runID := regexp.MustCompile(`(?i)\b(id|ids) of (the |a )?runs?\b|names the run|run's id`)
	for shape, schema := range schemas {
		for field, property := range schema.Properties {
			allowed := map[string][]string{"run": ofRuns, "gate": ofGate, "job": ofJobs, "name": append(of("name"), named...), "id": of("id")}[field]
			if allowed != nil && !slices.Contains(allowed, shape) {
				t.Errorf("%s.%s: a thing is called by its own name or id, and another by its kind; see the lists of this test", shape, field)
			}
			if runID.MatchString(property.Description) && !slices.Contains([]string{"id", "run", "runs", "in_the_way", "remaining"}, field) {
				t.Errorf("%s.%s: %q is the ID of a run under another name than id", shape, field, property.Description)
			}
		}
	}
}

func of(field string) (shapes []string) {
	for shape, by := range things {
		if by == field {
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

// wholeJob has each field of a job, and none that is a default.
const wholeJob = `{"description": "all of it", "schedule": {"cron": "30 9 * * 1-5", "timezone": "Europe/Berlin", "start": "2026-01-01T00:00:00Z", "jitter": "5s"},
	"target": {"http": {"url": "https://example.org/hook", "method": "PUT", "headers": {"X-Team": "billing", "Authorization": {"secret": "hook"}},
		"permanent_status": [404], "retry_status": [400], "sign": {"secret": "key", "previous": "old"}}},
	"payload": {"b": 1, "a": [9007199254740993, 1.0]}, "queue": "default", "priority": "high", "timeout": "45s", "guarantee": "at_least_once",
	"catch_up": {"mode": "all", "window": "1h"}, "retry": {"max_attempts": 3, "initial": "2s", "factor": 1.5, "max": "1m"}, "retention": "60d",
	"labels": {"team": "billing"}, "paused": true, "overlap": {"policy": "queue", "limit": 2, "max_waiting": 0}}`

// What GET gives, PUT takes, and it changes nothing: so with each path that has both.
func TestPutTakesWhatGetGives(t *testing.T) {
	bodies := map[string][]string{"/v1/jobs/{job}": {
		wholeJob, echo,
		`{"target": {"handler": {"name": "echo"}}, "schedule": {"every": "1h", "phase": "1m", "end": "2100-01-01T00:00:00Z"}, "overlap": "skip"}`,
		`{"target": {"handler": {"name": "echo"}}, "schedule": {"at": "SOON"}}`, // and over by the time of the second PUT
		`{"target": {"handler": {"name": "echo"}}, "guarantee": "at_most_once", "overlap": {"policy": "allow", "limit": 5}}`,
		`{"target": {"handler": {"name": "echo"}}, "gates": ["first", {"gate": "second", "units": 2}]}`,
		`{"target": {"handler": {"name": "echo"}}, "on": {"failed": {"job": "tell", "window": "1h"}, "missed": {"job": "tell", "window": "90m"}}}`,
	}, "/v1/gates/{gate}": {
		`{"limit": 3}`, `{"limit": 1000, "max_waiting": 0, "order": "fifo"}`, `{"limit": 2}`, // which is closed
	}}
	running(t, func(t *testing.T, s *server) {
		for path, operations := range documentOf(s).Paths {
			_, gets := operations["get"]
			_, puts := operations["put"]
			if !gets || !puts {
				continue
			}
			if bodies[path] == nil {
				t.Errorf("%s has GET and PUT, and no body here to try them with", path)
			}
			s.send("PUT", "/v1/jobs/tell", echo)
			s.send("PUT", "/v1/gates/first", `{"limit": 1}`)
			s.send("PUT", "/v1/gates/second", `{"limit": 2}`)
			for _, body := range bodies[path] {
				at := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "there")
				s.send("PUT", at, strings.Replace(body, "SOON", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), 1)).is(201)
				if strings.Contains(body, `"paused": true`) {
					s.send("POST", at+"/pause", `{"reason": "a holiday"}`).is(200)
				}
				if body == `{"limit": 2}` {
					s.send("POST", at+"/close", `{"reason": "a holiday"}`).is(200)
				}
				time.Sleep(2 * time.Minute)
				before := s.send("GET", at, "").is(200)
				after := s.send("PUT", at, string(before.body)).is(200)
				if string(after.body) != string(before.body) || after.header.Get("ETag") != before.header.Get("ETag") {
					t.Errorf("PUT of what GET gives changes it:\n%s%s", before.body, after.body)
				}
				if again := s.send("GET", at, "").is(200); string(again.body) != string(before.body) {
					t.Errorf("after a PUT of what GET gives it is another:\n%s%s", before.body, again.body)
				}
				s.send("DELETE", at, "").is(204)
			}
		}
	})
}

func TestTheNameOfAJobStandsAtItsTop(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		const body = `"target": {"handler": {"name": "echo"}}}`
		if j := into[wire.Job](s.send("PUT", "/v1/jobs/a", `{"name": "a", `+body).is(201)); j.Name != "a" {
			t.Errorf("called %q by the answer", j.Name)
		}
		s.send("POST", "/v1/jobs/batch", `{"jobs": [{"name": "b", `+body+`]}`).is(200)
		for path, was := range map[string]string{"/v1/jobs/a": "a", "/v1/jobs/b": "b"} {
			if got := s.send("GET", path, ""); !strings.HasPrefix(string(got.body), `{"name":"`+was+`",`) || strings.Contains(string(got.body), `"status":{"name"`) {
				t.Errorf("%s shows %s", path, got.body)
			}
		}
		s.send("PUT", "/v1/jobs/a", `{"name": "A", `+body).refused(422, "invalid")
		for query, fields := range map[string]map[string]string{
			"":             s.send("PUT", "/v1/jobs/a", `{"name": "b", "timeout": "25h", `+body).refused(422, "invalid"),
			"dry_run=true": s.send("PUT", "/v1/jobs/a?dry_run=true", `{"name": "b", "timeout": "25h", `+body).refused(422, "invalid"),
			"x":            s.send("PUT", "/v1/jobs/a", `{"name": "b", "timeout": "25h", "x": 1, `+body).refused(400, "malformed"),
		} {
			if !strings.Contains(fields["name"], `got "b", want "a"`) || fields["timeout"] == "" {
				t.Errorf("%s: fields %v, want name and timeout", query, fields)
			}
		}
		for _, wrong := range []string{`""`, `null`, `"a/b"`, `1`} {
			if fields := s.send("PUT", "/v1/jobs/a", `{"name": `+wrong+`, `+body).refused(400, "malformed"); fields["name"] == "" {
				t.Errorf("%s: fields %v, want name", wrong, fields)
			}
		}
		// Files of before have it under the status, which means nothing.
		s.send("PUT", "/v1/jobs/a", `{"status": {"name": "of before", "generation": 1}, `+body).is(200)
		s.send("PUT", "/v1/jobs/a", `{"status": {"nam": "a"}, `+body).refused(400, "malformed")
		if fields := s.send("POST", "/v1/simulate", `{"start": "2026-01-05T00:00:00Z", "jobs": {"a": {"name": "b", `+body+`}}`).refused(422, "invalid"); fields["jobs.a.name"] == "" {
			t.Errorf("fields %v, want jobs.a.name", fields)
		}
	})
}
