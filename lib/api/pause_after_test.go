package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// So many bad ends in a row pause a job, and whoever looks at it is told for which run. Resumed, it begins anew.
func TestP8_BadEndsPauseAJob(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "fail"}}, "retry": {"max_attempts": 1}, "pause_after": 2}`).is(201)
		ask := func() wire.Run {
			asked := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202))
			time.Sleep(5 * time.Second)
			return into[wire.Run](s.send("GET", "/v1/runs/"+asked.ID, "").is(200))
		}
		look := func() wire.Job { return into[wire.Job](s.send("GET", "/v1/jobs/a", "").is(200)) }
		ask()
		if j := look(); j.Paused {
			t.Fatalf("one bad end has paused it: %s", j.Status.PausedReason)
		}
		last := ask()
		if j := look(); !j.Paused || j.Status.PausedReason != "pause_after: 2 runs in a row ended badly, the last of them "+last.ID+", which is "+last.State {
			t.Errorf("paused %v, for %q", j.Paused, j.Status.PausedReason)
		}
		s.send("POST", "/v1/jobs/a/resume", `{}`).is(200)
		ask()
		if j := look(); j.Paused {
			t.Errorf("one bad end after the resume has paused it: %s", j.Status.PausedReason)
		}
		if fields := s.send("PUT", "/v1/jobs/b", strings.Replace(echo, "{", `{"pause_after": 1001, `, 1)).refused(400, "malformed"); len(fields) != 1 || fields["pause_after"] == "" {
			t.Errorf("too many: %v", fields)
		}
	})
}
