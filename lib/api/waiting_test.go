package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A run tells at each stage of its life why it does not go on.
func TestARunTellsWhyItDoesNotGoOn(t *testing.T) {
	var broken error
	seen := func(cfg *api.Config) {
		everything(t)(cfg)
		cfg.Queues = func(_ context.Context, tenant string) ([]wire.Queue, error) {
			if tenant != "default" {
				return nil, nil
			}
			return []wire.Queue{{Name: "far", Remote: true, Priorities: map[string]wire.Depth{"normal": {Ready: 7}}}}, broken
		}
	}
	runningWith(t, seen, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		s.send("PUT", "/v1/jobs/long", strings.Replace(echo, "echo", "wait", 1)).is(201)
		s.send("PUT", "/v1/jobs/far", `{"queue": "far", "target": {"http": {"url": "https://example.org/"}}}`).is(201)
		run := func(job, body string) string {
			return into[wire.Run](s.send("POST", "/v1/jobs/"+job+"/runs", body).is(202)).ID
		}
		why := func(id string, codes string) wire.Waiting {
			t.Helper()
			r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
			var got []string
			for _, w := range r.Waiting {
				got = append(got, w.Code)
			}
			if strings.Join(got, " ") != codes {
				t.Fatalf("%s is %s, and waits for %+v; want %s", id, r.State, r.Waiting, codes)
			}
			if len(r.Waiting) == 0 {
				return wire.Waiting{}
			}
			return r.Waiting[0]
		}
		later, soon := run("a", `{"delay": "24h"}`), run("a", `{"delay": "20s"}`)
		if w := why(later, "not_due"); time.Until(w.Until) < 23*time.Hour || w.Text == "" {
			t.Errorf("got %+v, want it to say until when", w)
		}
		if w := why(soon, "claimed_ahead"); time.Until(w.Until) > 20*time.Second {
			t.Errorf("got %+v, want it to say until when", w)
		}
		s.send("POST", "/v1/jobs/a/pause", `{"reason": "db move"}`).is(200)
		if w := why(later, "paused not_due"); !strings.Contains(w.Text, "db move") || w.Who == "" {
			t.Errorf("got %+v, want the reason of the pause and who can end it", w)
		}
		s.send("POST", "/v1/jobs/a/resume", `{}`).is(200)
		why(later, "not_due")

		long := run("long", `{}`)
		settle()
		if w := why(long, "running"); w.Who != "worker test" || !w.Until.After(time.Now()) {
			t.Errorf("got %+v, want the worker and its lease", w)
		}

		far := run("far", `{}`)
		settle()
		if w := why(far, "no_worker"); !strings.Contains(w.Text, "far") {
			t.Errorf("got %+v, want it to name the queue", w)
		}
		// What cannot be found out is left out, and hides nothing else.
		broken = errors.New("the queue is away")
		why(far, "queued")

		time.Sleep(30 * time.Second)
		why(soon, "")
		s.send("POST", "/v1/runs/"+long+"/cancel", `{}`).is(200)
		settle()
		why(long, "")
		// No list and no verdict looks for reasons.
		for _, r := range into[wire.RunPage](s.send("GET", "/v1/runs?job=far", "").is(200)).Items {
			if r.Waiting != nil {
				t.Errorf("a list tells %+v", r.Waiting)
			}
		}
	})
}
