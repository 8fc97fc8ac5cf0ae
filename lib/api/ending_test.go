package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A schedule ends behind its last fire: what it shows, what it forecasts and what runs.
func TestAScheduleEndsAfterSoManyFires(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		thrice := strings.Replace(echo, "{", `{"schedule": {"every": "1h"}, "max_runs": 3, `, 1)
		s.send("PUT", "/v1/jobs/a", thrice).is(201)
		j := into[wire.Job](s.send("GET", "/v1/jobs/a", "").is(200))
		if len(j.Status.NextRuns) != 3 || !j.Status.FinalRun.Equal(j.Status.NextRuns[2]) || j.MaxRuns != 3 || j.Schedule.End != nil {
			t.Fatalf("next are %v, the last %v, of %d", j.Status.NextRuns, j.Status.FinalRun, j.MaxRuns)
		}
		if fires := into[wire.JobFires](s.send("GET", "/v1/jobs/a/fires?count=20", "").is(200)); len(fires.Fires) != 3 {
			t.Errorf("%d fires to come", len(fires.Fires))
		}
		time.Sleep(90 * time.Minute)
		// What GET gives is taken back, and changes nothing.
		s.send("PUT", "/v1/jobs/a", string(s.send("GET", "/v1/jobs/a", "").is(200).body)).is(200)
		s.send("PATCH", "/v1/jobs/a", `{"description": "other"}`).is(200)
		s.send("POST", "/v1/jobs/a/pause", `{}`).is(200)
		time.Sleep(time.Hour) // with a fire that is none now
		s.send("POST", "/v1/jobs/a/resume", `{}`).is(200)
		s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)
		time.Sleep(10 * time.Hour)
		scheduled := 0
		for _, r := range into[wire.RunPage](s.send("GET", "/v1/runs?job=a", "").is(200)).Items {
			if r.Trigger == "schedule" {
				scheduled++
				if r.NominalTime.After(j.Status.FinalRun) {
					t.Errorf("%s is behind the last, %v", r.ID, j.Status.FinalRun)
				}
			}
		}
		if scheduled != 2 {
			t.Errorf("%d runs of the schedule, want those of two fires, since the job was paused at the other", scheduled)
		}
		if fires := into[wire.JobFires](s.send("GET", "/v1/jobs/a/fires", "").is(200)); fires.Idle != "over" {
			t.Errorf("idle is %q, want over", fires.Idle)
		}
		if fields := s.send("PUT", "/v1/jobs/b", strings.Replace(echo, "{", `{"max_runs": 3, `, 1)).refused(422, "invalid"); !strings.Contains(fields["max_runs"], "a schedule beside it") {
			t.Errorf("without a schedule: %v", fields)
		}
	})
}
