package api_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A run that is asked for with ignore_pause starts while its job is paused, alone and in a batch, now and later; one without it is held, and says so.
func TestP8_ARunByHandOfAPausedJob(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		ahead := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"ignore_pause": true, "delay": "1m"}`).is(202))
		s.send("POST", "/v1/jobs/a/pause", `{"reason": "the database moves"}`).is(200)
		held := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"ignore_pause": false}`).is(202))
		now := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"ignore_pause": true}`).is(202))
		batch := into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "a", "ignore_pause": true}, {"job": "a", "ignore_pause": true, "delay": "10m"}, {"job": "a"}]}`).is(200))
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		for id, ignores := range map[string]bool{ahead.ID: true, held.ID: false, now.ID: true, batch.Items[0].ID: true, batch.Items[1].ID: true, batch.Items[2].ID: false} {
			r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
			want := map[bool]string{true: "succeeded", false: "queued"}[ignores]
			if r.State != want || r.IgnorePause != ignores || ignores == (len(r.Waiting) > 0) || !ignores && r.Waiting[0].Code != "paused" {
				t.Errorf("%s: %s, ignores %v, waits for %+v; want %s", id, r.State, r.IgnorePause, r.Waiting, want)
			}
		}
		if j := into[wire.Job](s.send("GET", "/v1/jobs/a", "").is(200)); !j.Paused {
			t.Error("the job is not paused any more")
		}
		again := into[wire.Run](s.send("POST", "/v1/runs/"+now.ID+"/retry", `{"force": true}`).is(200))
		if time.Sleep(time.Second); into[wire.Run](s.send("GET", "/v1/runs/"+again.ID, "").is(200)).Attempt != 2 {
			t.Error("retried, it does not run in the pause")
		}
		waits := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"ignore_pause": true, "delay": "1h"}`).is(202))
		if w := into[wire.Run](s.send("GET", "/v1/runs/"+waits.ID, "").is(200)).Waiting; len(w) != 1 || w[0].Code != "not_due" {
			t.Errorf("before its time it waits for %+v", w)
		}
	})
}

func TestIgnorePauseIsTrueOrFalse(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	for _, wrong := range []string{`"yes"`, `1`, `null`} {
		if got := s.send("POST", "/v1/jobs/a/runs", fmt.Sprintf(`{"ignore_pause": %s}`, wrong)).refused(400, "malformed"); got["ignore_pause"] == "" {
			t.Errorf("%s: %v", wrong, got)
		}
	}
	s.send("POST", "/v1/jobs/a/runs", `{"Ignore_Pause": true}`).is(400)
}
