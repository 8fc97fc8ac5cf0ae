package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

const farAway = `{"queue": "far", "target": {"http": {"url": "https://example.org/"}}}`

// A run that no tick has claimed is too late as well: one that a request has queued at once, alone and with others, and a callback.
func TestG4_WhoWasQueuedAtOnceMayBeTooLate(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/brief", strings.Replace(farAway, "{", `{"expires_after": "3m", `, 1)).is(201)
		s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "fail"}}, "on": {"failed": {"job": "brief"}}}`).is(201)
		s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)
		s.send("POST", "/v1/jobs/brief/runs", `{}`).is(202)
		s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "brief"}, {"job": "brief"}, {"job": "brief", "delay": "30s"}]}`).is(200)
		time.Sleep(7 * time.Minute)
		runs := into[wire.RunPage](s.send("GET", "/v1/runs?job=brief", "").is(200)).Items
		for _, r := range runs {
			if r.State != "skipped" || r.Why == nil || r.Why.Code != "expired" || r.Attempt != 0 {
				t.Errorf("%s by %s is %s, since %+v", r.ID, r.Trigger, r.State, r.Why)
			}
		}
		if len(runs) != 5 {
			t.Errorf("got %d runs, want 5", len(runs))
		}
	})
}

// The jitter of a job makes its runs later than their fires, and none of them too late: not one that was cancelled and opened again meanwhile either.
func TestG4_NobodyIsTooLateByTheJitterOfItsJob(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"schedule": {"every": "15m", "jitter": "10m"}, "expires_after": "1s", `, 1)).is(201)
		time.Sleep(15*time.Minute + time.Second)
		first := into[wire.RunPage](s.send("GET", "/v1/runs?job=a", "").is(200)).Items
		if len(first) != 1 {
			t.Fatalf("%+v, want one that waits for its place in the jitter", first)
		}
		s.send("POST", "/v1/runs/"+first[0].ID+"/cancel", `{}`).is(200)
		s.send("POST", "/v1/runs/"+first[0].ID+"/retry", `{}`).is(200)
		time.Sleep(5*time.Hour + 11*time.Minute)
		runs := into[wire.RunPage](s.send("GET", "/v1/runs?job=a", "").is(200)).Items
		for _, r := range runs {
			if r.State != "succeeded" {
				t.Errorf("%s is %s, since %+v", r.ID, r.State, r.Why)
			}
		}
		if len(runs) < 20 {
			t.Errorf("got %d runs, want one of each quarter of an hour", len(runs))
		}
	})
}
