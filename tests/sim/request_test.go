package sim

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/linear"
)

// TestRequestsAreOverWhenTheirWritesHaveLanded: a write that comes late, or whose host has died, belongs to its request until it has come,
// and a request that reached nobody did nothing. An order is found only where that is told neither too early nor wrongly.
func TestRequestsAreOverWhenTheirWritesHaveLanded(t *testing.T) {
	for name, row := range map[string]struct {
		lose    func(w *World) // brings the fault, just before the edit is sent
		meddle  func(w *World) // while its write is under way; nil: nothing
		lands   bool
		unknown int // operations
	}{
		"late":        {lose: func(w *World) { w.Faults.Late = 1 }, lands: true, unknown: 1},
		"lost answer": {lose: func(w *World) { w.Faults.AnswerLost = 1 }, lands: true, unknown: 1},
		"lost":        {lose: func(w *World) { w.Faults.RequestLost = 1 }},
		"dead host": {lose: func(w *World) { w.Mix.Latency.Store = time.Second },
			meddle: func(w *World) { w.machines[0].host.crash() }, lands: true, unknown: 1},
	} {
		t.Run(name, func(t *testing.T) {
			landed := 0
			for seed := range uint64(4) { // what a dead host has sent is done by chance
				report, done := oneEdit(t, seed, row.lose, row.meddle)
				for _, f := range report.Failures {
					t.Errorf("seed %d: %s", seed, f.Text)
				}
				if done {
					landed++
				}
				if report.Unknown != row.unknown || report.Open != 0 {
					t.Errorf("seed %d: %s, want %d of unknown outcome, and none to the end", seed, report, row.unknown)
				}
			}
			if (landed > 0) != row.lands {
				t.Errorf("%d of 4 edits were done", landed)
			}
		})
	}
}

// oneEdit is a world in which somebody sends one edit while something goes wrong, and looks at the job from then on, until a write can be
// late no more.
func oneEdit(t *testing.T, seed uint64, lose, meddle func(w *World)) (report linear.Report, done bool) {
	var heard *linear.Recorder
	synctest.Test(t, func(t *testing.T) {
		m := Draw(seed)
		m.Shape, m.Faults, m.Outages, m.Clients, m.Latency = Shape{Alone: true, Hosts: 1}, Faults{}, nil, nil, Latency{}
		w := newWorld(t, Config{Seed: seed, Mix: &m})
		w.Go("world", func(ctx context.Context, a *Actor) {
			defer func() { w.sched.stopped = true }()
			w.Go(w.machines[0].name, w.machines[0].live)
			server := once(a)
			def := wire.Job{Definition: job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "work"}}}}
			for w.anyone(a.Rand) == nil {
				if a.Sleep(ctx, time.Second) != nil {
					return
				}
			}
			if _, err := server.PutJob(ctx, "one", def, client.Condition{}); err != nil {
				t.Error(err)
			}
			if a.Point(ctx, "lose") != nil {
				return
			}
			lose(w)
			w.Go("editor", func(ctx context.Context, a *Actor) {
				def.Description = "edited"
				if _, err := once(a).PutJob(ctx, "one", def, client.Condition{}); err == nil {
					t.Error("the edit was answered")
				}
			})
			if meddle != nil {
				for !underWay(w) {
					if a.Sleep(ctx, time.Millisecond) != nil {
						return
					}
				}
				meddle(w)
			} else if a.Sleep(ctx, time.Second) != nil {
				return
			}
			w.Faults = Faults{}
			for end := w.Now().Add(dispatch.Lateness + 2*time.Minute); w.Now().Before(end); {
				if found, err := server.Job(ctx, "one"); err == nil {
					done = found.Job.Description == "edited"
				}
				if a.Sleep(ctx, 10*time.Second) != nil {
					return
				}
			}
		})
		w.sched.run()
		w.end()
		heard = w.heard
	})
	return heard.Check(searchFor), done
}

// once is a client that tries once.
func once(a *Actor) *client.Client {
	c, err := client.New(client.Config{Tries: 1, NewKey: func() string { return "-" },
		HTTP: &http.Client{Timeout: time.Minute, Transport: a.heard.Transport("default",
			&wires{actor: a, rand: a.Rand, pages: a.Rand})},
		Authorize: func(r *http.Request, _ []byte) error { r.Header.Set(tenantHeader, "default"); return nil }})
	if err != nil {
		panic(err)
	}
	return c
}

// underWay tells whether a write of a request waits for its turn.
func underWay(w *World) bool {
	for _, o := range append(w.sched.ready, w.sched.later...) {
		if o.call.of != nil && o.what == "write" {
			return true
		}
	}
	return false
}
