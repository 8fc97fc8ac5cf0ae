package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

const (
	endless  = `{"target": {"handler": {"name": "wait"}}, "timeout": "24h"}`
	fallible = `{"target": {"handler": {"name": "failing"}}, "retry": {"max_attempts": 5, "initial": "1h", "max": "1h"}}`
)

// reason makes a run wait for one reason on a server whose ticks and workers do not work before it says so.
type reason struct {
	make func(s *scene) (id string)
	text string // in the sentence
	who  string // "" for time alone
	data func(w wire.Waiting) bool
}

// scene is a server in virtual time, whose ticks and workers a reason may start and stop.
type scene struct {
	*server
	ctx  context.Context
	stop func()
}

// work lets the server tick, and its workers work, until pause.
func (s *scene) work() {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- s.node.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		s.stop = func() {}
	}
	settle()
}

func (s *scene) job(name, body string) { s.send("PUT", "/v1/jobs/"+name, body).is(201) }

func (s *scene) run(job, body string) string {
	s.t.Helper()
	return into[wire.Run](s.send("POST", "/v1/jobs/"+job+"/runs", body).is(202)).ID
}

// takes starts a run of the queue far as a worker that is not heard of again.
func (s *scene) takes() string {
	s.job("far", farAway)
	id := s.run("far", `{}`)
	offer := into[wire.OfferList](s.send("POST", "/v1/work/take", `{"queue": "far", "worker": "w", "max": 1, "wait": "5s", "http": true}`).is(200)).Items[0]
	s.send("POST", "/v1/work/start", fmt.Sprintf(`{"run": %q, "ticket": %q, "worker": "w", "start": "1"}`, id, offer.Ticket)).is(200)
	return id
}

// reasons has each code that a run may wait for, and how it comes to that.
var reasons = map[string]reason{
	"not_due": {func(s *scene) string {
		s.job("a", echo)
		return s.run("a", `{"delay": "24h"}`)
	}, "Its time has not come.", "", func(w wire.Waiting) bool { return time.Until(w.Until) > 23*time.Hour }},
	"claimed_ahead": {func(s *scene) string {
		s.job("a", echo)
		return s.run("a", `{"delay": "20s"}`)
	}, "waits in the queue default for its time.", "", func(w wire.Waiting) bool { return time.Until(w.Until) <= 20*time.Second && w.Queue == "default" }},
	"paused": {func(s *scene) string {
		s.job("a", echo)
		s.send("POST", "/v1/jobs/a/pause", `{"reason": "db move"}`).is(200)
		return s.run("a", `{}`)
	}, "Its job is paused (db move)", "belfry job resume a", nil},
	"job_deleted": {func(s *scene) string {
		s.work()
		s.job("a", fallible)
		id := s.run("a", `{"payload": 1}`)
		settle()
		s.send("DELETE", "/v1/jobs/a", "").is(204)
		return id
	}, "Its job was deleted", "", nil},
	"gate": {func(s *scene) string {
		s.work()
		s.job("a", strings.Replace(endless, "{", `{"overlap": "queue", `, 1))
		s.run("a", `{}`)
		settle()
		s.run("a", `{}`)
		settle()
		id := s.run("a", `{}`)
		settle()
		return id
	}, "One run is before it in line at the gate job:a, and a~", "the runs in its way",
		func(w wire.Waiting) bool { return w.Gate == "job:a" && *w.Behind == 1 && len(w.InTheWay) == 1 }},
	"blocked": {func(s *scene) string {
		s.work()
		s.job("a", strings.Replace(strings.Replace(fallible, "5", "1", 1), "{", `{"overlap": "strict", `, 1))
		s.run("a", `{"payload": 1}`)
		settle()
		id := s.run("a", `{"payload": 1}`)
		settle()
		return id
	}, "ended as dead: it goes on when that run is retried and succeeds, or when somebody opens the gate.", "belfry run retry a~",
		func(w wire.Waiting) bool {
			return w.Gate == "job:a" && *w.Behind == 0 && len(w.BlockedBy) == 1 && w.BlockedBy[0].State == "dead"
		}},
	"backing_off": {func(s *scene) string {
		s.work()
		s.job("a", fallible)
		id := s.run("a", `{"payload": 1}`)
		settle()
		return id
	}, "Attempt 1 failed. Try 2 of 5 begins", "", func(w wire.Waiting) bool { return time.Until(w.Until) > 20*time.Minute }},
	"running": {func(s *scene) string {
		s.work()
		s.job("a", endless)
		id := s.run("a", `{}`)
		settle()
		return id
	}, "Attempt 1 is under way.", "worker test", func(w wire.Waiting) bool { return w.Until.After(time.Now()) }},
	"lease_over": {func(s *scene) string {
		id := s.takes()
		time.Sleep(31 * time.Second)
		return id
	}, "has let its lease run out", "", func(w wire.Waiting) bool { return time.Since(w.Since) > 0 && time.Since(w.Since) < 10*time.Second }},
	"cancelling": {func(s *scene) string {
		id := s.takes()
		s.send("POST", "/v1/runs/"+id+"/cancel", `{}`).is(200)
		return id
	}, "hears of it when it next renews its lease", "worker w", nil},
	"steps": {func(s *scene) string {
		s.work()
		s.job("a", `{"target": {"workflow": {"steps": {"only": {"handler": {"name": "wait"}}}}}}`)
		id := s.run("a", `{}`)
		settle()
		return id
	}, "Steps of its workflow have not ended.", "belfry run steps a~", nil},
	"unreadable": {func(s *scene) string { // a newer version wrote the definition since
		s.job("a", echo)
		id := s.run("a", `{"delay": "24h"}`)
		key := job.Key(access.DefaultTenant, "a")
		if _, err := s.store.Write(s.ctx, store.Op{Kind: store.Put, Key: key, Value: []byte{record.Format + 1, 0xa0}}); err != nil {
			s.t.Fatal(err)
		}
		return id
	}, "is of a newer version of Belfry. Nothing of it goes on here.", "whoever runs the version that wrote it", nil},
	"no_worker": {func(s *scene) string {
		s.job("far", farAway)
		return s.run("far", `{}`)
	}, "No worker serves the queue far.", "whoever starts workers of the queue far", func(w wire.Waiting) bool { return w.Queue == "far" && w.Need == "" }},
	"queued": {func(s *scene) string {
		s.job("a", endless)
		s.run("a", `{}`)
		s.run("a", `{}`)
		return s.run("a", `{}`)
	}, "About 3 are ready there in its priority, normal, or a higher one.", "the workers of the queue default",
		func(w wire.Waiting) bool { return w.Queue == "default" && *w.Behind == 2 }},
	"paced": {func(s *scene) string {
		s.job("a", strings.Replace(endless, "{", `{"schedule": {"every": "10s"}, "catch_up": {"mode": "all"}, `, 1))
		time.Sleep(20 * time.Minute)
		s.work()
		all := into[wire.RunPage](s.send("GET", "/v1/runs?job=a&limit=1000", "").is(200)).Items
		return slices.MaxFunc(all, func(a, b wire.Run) int { return a.NextAttemptAt.Compare(b.NextAttemptAt) }).ID
	}, "It makes up for a missed fire.", "", func(w wire.Waiting) bool { return w.Until.After(time.Now()) }},
	"not_claimed": {func(s *scene) string { // its timer was written after the ticks had passed its place, or was lost
		s.job("a", echo)
		id := s.run("a", `{"delay": "70s"}`)
		late, err := run.ParseID(id)
		if err != nil {
			s.t.Fatal(err)
		}
		key := timer.NewRequest(run.Run{ID: late, Tenant: access.DefaultTenant}, late.Nominal, false).Key()
		if _, err := s.store.Write(s.ctx, store.Op{Kind: store.Delete, Key: key}); err != nil {
			s.t.Fatal(err)
		}
		s.work()
		time.Sleep(75 * time.Second)
		return id
	}, "the next tick claims it", "the next tick", nil},
	"tick_behind": {func(s *scene) string {
		s.job("a", echo)
		id := s.run("a", `{"delay": "10m"}`)
		time.Sleep(15 * time.Minute)
		return id
	}, ", which is 15m0s ago.", "whoever runs the server", func(w wire.Waiting) bool { return time.Since(w.Ticks) == 15*time.Minute }},
	"expired": {func(s *scene) string {
		s.job("a", strings.Replace(endless, "{", `{"expires_after": "1m", `, 1))
		id := s.run("a", `{}`)
		time.Sleep(2 * time.Minute)
		return id
	}, "may not start any more", "", nil},
	"clock_off": {func(s *scene) string {
		s.job("a", echo)
		id := s.run("a", `{"delay": "10m"}`)
		s.store.skew = time.Hour
		return id
	}, "The server starts nothing: ", "whoever sets the clock of the server", nil},
}

// On a whole server each reason comes to pass, first of those that the run has, with its sentence, who can end it, and its data.
func TestEachReasonWhyARunDoesNotGoOnComesToPass(t *testing.T) {
	var document struct {
		Components struct {
			Schemas struct {
				Waiting struct {
					Properties struct{ Code struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(start(t, 0, nil).send("GET", "/openapi.json", "").is(200).body, &document); err != nil {
		t.Fatal(err)
	}
	named := document.Components.Schemas.Waiting.Properties.Code.Enum                                                 // which are those of package control, as another test holds
	named = slices.DeleteFunc(named, func(code string) bool { return code == "not_released" || code == "suspended" }) // of a step alone: TestWhyAStepDoesNotGoOn of package control has it
	if made := slices.Sorted(maps.Keys(reasons)); !slices.Equal(made, slices.Sorted(slices.Values(named))) {
		t.Errorf("the table makes %v happen, and a run may wait for %v", made, named)
	}
	for code, c := range reasons {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{server: start(t, 0, func(cfg *api.Config) {
					cfg.Queues = func(context.Context, string) ([]wire.Queue, error) {
						return []wire.Queue{{Name: "default", Workers: 1, Priorities: map[string]wire.Depth{"normal": {Ready: 3}}}, {Name: "far", Remote: true}}, nil
					}
				}), ctx: t.Context(), stop: func() {}}
				defer func() { s.stop() }()
				id := c.make(s)
				r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
				got := wire.Waiting{}
				if len(r.Waiting) > 0 {
					got = r.Waiting[0]
				}
				if got.Code != code || !strings.Contains(got.Text, c.text) || (got.Who == "") != (c.who == "") || !strings.Contains(got.Who, c.who) {
					t.Fatalf("%s is %s, and waits for %+v; want %s with %q, up to %q", id, r.State, r.Waiting, code, c.text, c.who)
				}
				if c.data != nil && !c.data(got) {
					t.Errorf("the data are %+v", got)
				}
			})
		})
	}
}
