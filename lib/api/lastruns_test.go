package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestLastRunsOfManyJobsInOneAnswer(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/well", echo).is(201)
		s.send("PUT", "/v1/jobs/ill", strings.Replace(echo, "echo", "fail", 1)).is(201)
		for range 3 {
			s.send("POST", "/v1/jobs/well/runs", `{}`).is(202)
			s.send("POST", "/v1/jobs/ill/runs", `{}`).is(202)
			settle()
		}
		s.send("POST", "/v1/jobs/well/runs", `{"delay": "1h"}`).is(202)
		list := into[wire.LastRunsList](s.send("POST", "/v1/runs/last", `{"jobs": ["well", "nobody", "ill"], "limit": 2}`).is(200))
		if len(list.Items) != 3 || list.Items[0].Job != "well" || list.Items[1].Job != "nobody" || list.Items[2].Job != "ill" {
			t.Fatalf("got %+v, want them in the order of the request", list)
		}
		for _, i := range []int{0, 2} {
			runs := list.Items[i].Runs
			if len(runs) != 2 || !runs[0].NominalTime.After(runs[1].NominalTime) || runs[0].Attempt != 1 || runs[0].EndedAt.IsZero() || runs[0].NominalTime.After(time.Now()) {
				t.Errorf("%s: %+v, want the newest two that had their time, newest first", list.Items[i].Job, runs)
			}
			s.send("GET", "/v1/runs/"+runs[0].ID, "").is(200)
		}
		if ill := list.Items[2].Runs[0]; ill.State != "failed" || !strings.Contains(ill.Error, "no such account") {
			t.Errorf("the run that failed is shown as %+v", ill)
		}
		if list.Items[1].Runs == nil || len(list.Items[1].Runs) != 0 || list.Items[1].Partial {
			t.Errorf("a job that is not there has %+v, want an empty list", list.Items[1])
		}
		if all := into[wire.LastRunsList](s.send("POST", "/v1/runs/last", `{"jobs": ["well"]}`).is(200)); len(all.Items[0].Runs) != 3 {
			t.Errorf("without a limit: %+v, want the three that had their time", all)
		}
	})
}

func TestLastRunsRefuseWhatIsWrong(t *testing.T) {
	s := start(t, 0, nil)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"j%d"`, i)
	}
	for body, field := range map[string]string{
		`{}`:                           "jobs",
		`{"jobs": []}`:                 "jobs",
		`{"jobs": ["a/b"]}`:            "jobs[0]",
		`{"jobs": ["a"], "limit": 21}`: "limit",
		`{"jobs": ["a"], "limit": 0}`:  "limit",
		`{"jobs": [` + strings.Join(many, ",") + `]}`: "jobs",
	} {
		if fields := s.send("POST", "/v1/runs/last", body).refused(400, "malformed"); fields[field] == "" {
			t.Errorf("%.60s: fields %v, want %s", body, fields, field)
		}
	}
	if fields := s.send("POST", "/v1/runs/last", `{"jobs": ["a", "b", "a"]}`).refused(422, "invalid"); fields["jobs[2]"] == "" {
		t.Errorf("a job twice: fields %v, want jobs[2]", fields)
	}
	s.send("GET", "/v1/runs/last", "").refused(405, "method_not_allowed")
}
