package worker_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// server makes the API of a process that has the store.
func (g *rig) server(c lease.Config) http.Handler {
	g.t.Helper()
	must := func(err error) {
		g.t.Helper()
		if err != nil {
			g.t.Fatal(err)
		}
	}
	far, err := lease.NewRemote(lease.RemoteConfig{Dispatch: c.Dispatch, Blobs: c.Blobs, Metrics: c.Metrics,
		Pools: map[string]string{c.Queue: tenant}, Key: make([]byte, 32), MaxReceives: c.MaxReceives, Shared: true})
	must(err)
	g.far = far
	service, err := control.New(control.Config{Store: g.store, Blobs: c.Blobs, Dispatch: c.Dispatch, Now: time.Now, NewID: rand.Uint64,
		Can: func(string, target.Spec) error { return nil }})
	must(err)
	tokens, err := access.New(access.Config{Store: g.store, Now: time.Now, Random: strings.NewReader(""), NewID: rand.Uint64})
	must(err)
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now, Tenant: tenant})
	must(err)
	handler, err := api.New(api.Config{Control: service, Gate: gate, Remote: far, Now: time.Now, Version: "test",
		Ready:   func(context.Context) []wire.Check { return nil },
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil }})
	must(err)
	return handler
}

// road is the way from a worker to its server: what a process does that is dead or frozen does not arrive, and neither do the
// answers to it.
type road struct {
	server http.Handler
	reach  func() error
}

func (r road) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := r.reach(); err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	r.server.ServeHTTP(answer, request)
	if err := r.reach(); err != nil {
		return nil, err
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// worker makes a worker elsewhere, with a server of its own over the store that all share.
func (g *rig) worker(name string, o options, reach func() error) *worker.Worker {
	g.t.Helper()
	c, err := client.New(client.Config{Address: "http://belfry.test", HTTP: &http.Client{Transport: road{g.server(o.desk), reach}},
		NewKey: func() string { return "unused" }})
	if err != nil {
		g.t.Fatal(err)
	}
	w, err := c.Worker(client.WorkerConfig{Queue: "default", Name: name, Targets: o.Targets, Elapsed: o.Elapsed, Concurrency: o.Concurrency, Grace: o.Grace})
	if err != nil {
		g.t.Fatal(err)
	}
	return w
}
