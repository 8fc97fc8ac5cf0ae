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

// Until when a run may start is shown for as long as it waits, and why it waits says it.
func TestG4_UntilWhenARunMayStartIsShown(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(endless, "{", `{"overlap": "queue", "expires_after": "1h", `, 1)).is(201)
		begun := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202))
		time.Sleep(time.Second)
		waits := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202))
		time.Sleep(time.Second)
		show := func(id string) wire.Run { return into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)) }
		if r := show(begun.ID); r.State != "running" || !r.StartBy.IsZero() {
			t.Errorf("one that runs is %s, to start by %s", r.State, r.StartBy)
		}
		by := waits.NominalTime.Add(time.Hour)
		if r := show(waits.ID); !r.StartBy.Equal(by) || len(r.Waiting) != 1 || !strings.Contains(r.Waiting[0].Text, "It is skipped where it has not started by "+by.Format(time.RFC3339)) {
			t.Errorf("one that waits is to start by %s, want %s: %+v", r.StartBy, by, r.Waiting)
		}
		line := into[wire.LinePage](s.send("GET", "/v1/gates/job:a/line", "").is(200)).Items
		if len(line) != 1 || !line[0].StartBy.Equal(by) {
			t.Errorf("in line: %+v", line)
		}
	})
}

// What is too late in a pause says so, and not that somebody's resume lets it start.
func TestG4_WhoIsTooLateInAPauseSaysSo(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"paused": true, "expires_after": "5s", `, 1)).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)).ID
		why := func() wire.Waiting {
			r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
			if len(r.Waiting) == 0 {
				t.Fatalf("%+v", r)
			}
			return r.Waiting[0]
		}
		time.Sleep(time.Second)
		if w := why(); w.Code != "paused" || !strings.Contains(w.Text, "It is skipped where it has not started by") {
			t.Errorf("in time: %+v", w)
		}
		time.Sleep(7 * time.Second)
		if w := why(); w.Code != "expired" || w.Who != "" || !strings.Contains(w.Text, "it is skipped when its job is resumed") {
			t.Errorf("too late: %+v", w)
		}
		s.send("POST", "/v1/jobs/a/resume", `{}`).is(200)
		time.Sleep(time.Minute)
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); r.State != "skipped" || r.Why == nil || r.Why.Code != "expired" {
			t.Errorf("resumed: %+v", r)
		}
	})
}
