package api_test

import (
	"fmt"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestManyRunsAreCancelledAndRetried(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "echo"}}, "labels": {"team": "billing"}}`).is(201)
		s.send("PUT", "/v1/jobs/b", echo).is(201)
		var ids []string
		for i := range 12 {
			path := []string{"/v1/jobs/a/runs", "/v1/jobs/b/runs"}[i%2]
			ids = append(ids, into[wire.Run](s.send("POST", path, `{"delay": "2h"}`).is(202)).ID)
		}
		bulk := func(path, body string) wire.BulkVerdicts {
			t.Helper()
			return into[wire.BulkVerdicts](s.send("POST", path, body).is(200))
		}
		if dry := bulk("/v1/runs/cancel", `{"matching": {"labels": {"team": "billing"}}, "dry_run": true}`); dry.Count != 6 || len(dry.Items) != 6 ||
			dry.Items[0].Status != 200 || dry.Items[0].State != "scheduled" {
			t.Errorf("a dry run: %+v", dry)
		}
		first := bulk("/v1/runs/cancel", `{"matching": {"labels": {"team": "billing"}}, "max": 4, "reason": "wrong month"}`)
		if first.Count != 4 || first.Next == "" || first.Items[0].State != "cancelled" {
			t.Errorf("the first four: %+v", first)
		}
		rest := bulk("/v1/runs/cancel", fmt.Sprintf(`{"matching": {"labels": {"team": "billing"}}, "cursor": %q}`, first.Next))
		if rest.Count != 2 || rest.Next != "" {
			t.Errorf("the others: %+v", rest)
		}
		if shown := into[wire.RunPage](s.send("GET", "/v1/runs?label=team=billing&state=cancelled", "").is(200)).Items; len(shown) != 6 || shown[5].Reason != "wrong month" && shown[0].Reason != "wrong month" {
			t.Errorf("%d of the label are cancelled, want 6, the first four with the reason: %+v", len(shown), shown)
		}

		if dry := bulk("/v1/runs/retry", `{"matching": {"states": ["cancelled"]}, "ended_before": "2000-01-01T00:00:00Z", "dry_run": true}`); dry.Count != 0 {
			t.Errorf("%d ended before they were made", dry.Count)
		}
		s.send("POST", "/v1/runs/"+ids[0]+"/retry", `{"ended_before": "2000-01-01T00:00:00Z"}`).refused(412, "precondition_failed")

		// By ID, each with its verdict, in the order of the request.
		named := bulk("/v1/runs/retry", fmt.Sprintf(`{"runs": [%q, %q, "a~000000000"], "per_second": 1000}`, ids[1], ids[0]))
		if len(named.Items) != 3 || named.Count != 1 || named.Items[0].Problem.Code != "run_not_ended" || named.Items[1].ID != ids[0] ||
			named.Items[1].State != "scheduled" || named.Items[2].Status != 404 {
			t.Errorf("by ID: %+v", named)
		}
		matching := bulk("/v1/runs/retry", `{"matching": {"job": "a", "states": ["cancelled"]}, "per_second": 1000}`)
		if matching.Count != 5 || matching.Next != "" {
			t.Errorf("by filter: %+v", matching)
		}

		for _, path := range []string{"/v1/runs/cancel", "/v1/runs/retry"} {
			for _, body := range []string{`{}`, fmt.Sprintf(`{"runs": [%q], "matching": {}}`, ids[0])} {
				s.send("POST", path, body).refused(400, "malformed")
			}
			for field, body := range map[string]string{
				"max":                `{"runs": ["a~000000000"], "max": 1}`,
				"cursor":             `{"runs": ["a~000000000"], "cursor": "MWE"}`,
				"matching.states[0]": `{"matching": {"states": ["skipped"]}}`,
			} {
				if fields := s.send("POST", path, body).refused(422, "invalid"); fields[field] == "" {
					t.Errorf("%s %s: fields %v, want %s", path, body, fields, field)
				}
			}
			if s.send("GET", path, "").status != 405 {
				t.Errorf("GET %s is taken for a run", path)
			}
		}
		// Of another tenant nothing is counted or cancelled.
		if theirs := bulk("/v1/runs/cancel", `{"matching": {}, "dry_run": true}`); theirs.Count != 12 {
			t.Errorf("%d unended, want 12", theirs.Count)
		}
		other := into[wire.BulkVerdicts](s.send("POST", "/v1/runs/cancel", `{"matching": {}}`, s.of("bob")...).is(200))
		if other.Count != 0 || len(other.Items) != 0 {
			t.Errorf("another tenant cancels %+v", other)
		}
	})
}
