package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A run that has not ended by its deadline is stopped, wherever it stands, and tells whom on.failed names. One that ends in time is not.
func TestARunIsStoppedByItsDeadline(t *testing.T) {
	with := func(def, fields string) string {
		return strings.Replace(def, "{", `{"deadline": "10m", "on": {"failed": {"job": "tell"}}, `+fields, 1)
	}
	const failing = `{"target": {"handler": {"name": "broken"}}, "retry": {"initial": "4m", "max": "4m"}}`
	const flow = `{"target": {"workflow": {"steps": {"a": {"handler": {"name": "echo"}}, "b": {"needs": ["a"], "wait": {"for": "1h"}}}}}}`
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/tell", echo).is(201)
		for name, def := range map[string]string{
			"queued":   with(farAway, ""),
			"between":  with(failing, ""),
			"running":  with(endless, `"retry": {"max_attempts": 3}, `),
			"workflow": with(flow, ""),
			"waiting":  with(endless, `"overlap": "queue", `),
			"in-time":  with(echo, ""),
		} {
			s.send("PUT", "/v1/jobs/"+name, def).is(201)
		}
		asked := map[string]wire.Run{}
		for _, name := range []string{"queued", "between", "running", "workflow", "in-time", "waiting"} {
			asked[name] = into[wire.Run](s.send("POST", "/v1/jobs/"+name+"/runs", `{}`).is(202))
		}
		time.Sleep(2 * time.Minute)
		asked["waiting"] = into[wire.Run](s.send("POST", "/v1/jobs/waiting/runs", `{}`).is(202)) // in line behind the first of them
		time.Sleep(2 * time.Second)
		show := func(name string) wire.Run {
			return into[wire.Run](s.send("GET", "/v1/runs/"+asked[name].ID, "").is(200))
		}
		for name, a := range asked {
			r, by := show(name), a.NominalTime.Add(10*time.Minute)
			if name == "in-time" {
				if r.State != "succeeded" || !r.EndBy.IsZero() {
					t.Errorf("%s is %s, to end by %s", name, r.State, r.EndBy)
				}
				continue
			}
			if !r.EndBy.Equal(by) {
				t.Errorf("%s is to end by %s, want %s", name, r.EndBy, by)
			}
			if n := len(r.Waiting); n > 0 && r.State != "running" && !strings.HasSuffix(r.Waiting[n-1].Text, "It is stopped where it has not ended by "+by.Format(time.RFC3339)+".") {
				t.Errorf("%s: %+v", name, r.Waiting)
			}
		}
		time.Sleep(15 * time.Minute)
		for name, a := range asked {
			if name == "in-time" {
				continue
			}
			r, by := show(name), a.NominalTime.Add(10*time.Minute)
			if r.State != "cancelled" || r.Why == nil || r.Why.Code != "deadline" || !strings.HasSuffix(r.Why.Text, " (deadline)") {
				t.Errorf("%s is %s, since %+v", name, r.State, r.Why)
			}
			late := 4 * time.Minute
			if name == "running" { // its attempt has no more time than is left
				late = time.Second
			}
			if over := r.EndedAt.Sub(by); over < 0 || over > late {
				t.Errorf("%s has ended %s after its deadline, want at most %s", name, over, late)
			}
		}
		for name, attempts := range map[string]int{"queued": 0, "between": 3, "running": 1} {
			if r := show(name); r.Attempt != attempts {
				t.Errorf("%s had %d attempts, want %d", name, r.Attempt, attempts)
			}
		}
		if r := show("running"); len(r.Attempts) != 1 || r.Attempts[0].Outcome != "failed" {
			t.Errorf("its attempt has run into no timeout: %+v", r.Attempts)
		}
		told := into[wire.RunPage](s.send("GET", "/v1/runs?job=tell", "").is(200)).Items
		if len(told) != 6 { // of two runs of waiting
			t.Errorf("%d were told, want 6", len(told))
		}
		// Opened again it has its time from then on.
		again := into[wire.Run](s.send("POST", "/v1/runs/"+asked["queued"].ID+"/retry", `{}`).is(200))
		if until := again.EndBy.Sub(asked["queued"].NominalTime); until < 27*time.Minute || again.Why != nil {
			t.Errorf("opened again it is to end %s after its time: %+v", until, again.Why)
		}
		s.send("PUT", "/v1/jobs/bad", with(echo, `"x-deadline": 1, `)).is(400)
		s.send("PUT", "/v1/jobs/bad", strings.Replace(echo, "{", `{"deadline": "10ms", `, 1)).refused(422, "invalid")
	})
}
