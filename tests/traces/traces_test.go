package traces

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// scheduler is a whole one in memory, that traces everything.
type scheduler struct {
	t       *testing.T
	handler http.Handler
}

// start runs a scheduler until the test ends. Its handler "note" tells handled of the traces that it is called with.
func start(t *testing.T, to trace.Exporter, handled func(trace.Context)) *scheduler {
	t.Helper()
	tracer, err := trace.New(trace.Config{Export: to, Ratio: 1, Now: time.Now, NewID: rand.Uint64})
	must(t, err)
	handlers := new(target.Registry)
	must(t, handlers.Register("note", func(_ context.Context, c target.Call) (target.Result, error) {
		handled(c.Trace)
		return target.Result{}, nil
	}))
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers, Addresses: target.AddressPolicy{AllowLoopback: true}})
	must(t, err)
	began := time.Now()
	over := memory.New(memory.Config{Now: time.Now})
	n, err := node.New(t.Context(), node.Config{
		Store: over, Queues: map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{Now: time.Now})},
		Blobs: blob.New(memblob.OpenBucket(nil)), Targets: targets, Metrics: metrics.New(), Now: time.Now, NewID: rand.Uint64, Name: "test",
		Elapsed: func() time.Duration { return time.Since(began) }, Tracer: tracer,
	})
	must(t, err)
	s := &scheduler{t: t}
	nobody := func(context.Context, string) ([]wire.Worker, error) { return nil, nil }
	tokens, err := access.New(access.Config{Store: over, Now: time.Now, Random: crand.Reader, NewID: rand.Uint64})
	must(t, err)
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now})
	must(t, err)
	s.handler, err = api.New(api.Config{Control: n.Control, Gate: gate, Now: time.Now, Version: "test", Tracer: tracer,
		Who: func(*http.Request) (access.Caller, error) {
			return access.Caller{Tenant: "acme", Scopes: []access.Scope{access.Admin}}, nil
		},
		Ready: func(context.Context) []wire.Check { return nil }, Workers: nobody,
		Queues: func(context.Context, string) ([]wire.Queue, error) { return nil, nil }})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
		targets.Close()
		must(t, tracer.Close(context.Background()))
	})
	return s
}

// ask makes a request, which must succeed.
func (s *scheduler) ask(method, path, body string, headers ...string) []byte {
	s.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// The caller's trace.
const (
	parent     = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	callers    = "0af7651916cd43dd8448eb211c80319c"
	callerSpan = "b7ad6b7169203331"
)

// patience bounds the waits for what comes by a socket, where it would hang.
const patience = 5 * time.Minute

// until waits for spans that satisfy, of a trace that is joined, and gives all that have come. Who ends a span tells of it after what it
// set going may have been told of, so the attempt can come before the request that it hangs below.
func until(t *testing.T, c *collected, trace string, satisfied func([]span) bool) []span {
	t.Helper()
	late := time.After(patience)
	for {
		all := c.all()
		if satisfied(all) && joined(all, trace) {
			return all
		}
		select {
		case <-c.news:
		case <-late:
			t.Fatalf("after %s the trace %s is not whole: %s", patience, trace, shown(all))
		}
	}
}

func shown(all []span) string {
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "\n%s %s below %s: %s, links %v, %v", s.trace, s.id, s.parent, s.name, s.links, s.words)
	}
	return text.String()
}

// tree draws what lies below a span.
func tree(all []span, trace, above, indent string) string {
	below := slices.DeleteFunc(slices.Clone(all), func(s span) bool { return s.trace != trace || s.parent != above })
	slices.SortFunc(below, func(a, b span) int { return a.began.Compare(b.began) })
	var text strings.Builder
	for _, s := range below {
		fmt.Fprintf(&text, "%-44s %6.1f ms", indent+s.name, float64(s.took.Microseconds())/1000)
		for _, word := range []string{"run", "attempt", "fence", "outcome", "result"} {
			if s.words[word] != "" {
				text.WriteString("  " + word + "=" + s.words[word])
			}
		}
		text.WriteString("\n" + tree(all, trace, s.id, indent+"  "))
	}
	return text.String()
}

// find gives the first span of a name in a trace, "" for any.
func find(all []span, trace, name string) (span, bool) {
	i := slices.IndexFunc(all, func(s span) bool { return (trace == "" || s.trace == trace) && s.name == name })
	if i < 0 {
		return span{}, false
	}
	return all[i], true
}

// joined tells whether each span of a trace hangs below one that was recorded, or below the caller's.
func joined(all []span, trace string) bool {
	known := map[string]bool{"": true, callerSpan: true}
	for _, s := range all {
		known[s.id] = true
	}
	return !slices.ContainsFunc(all, func(s span) bool { return s.trace == trace && !known[s.parent] })
}

// TestARunIsOneTraceFromRequestToTarget holds it over each exporter, by what arrives at the socket of its collector.
func TestARunIsOneTraceFromRequestToTarget(t *testing.T) {
	for name, collect := range map[string]func(*testing.T) (*collected, trace.Exporter){"XRay": toXRay, "OTLP": toOTLP} {
		t.Run(name, func(t *testing.T) {
			called := make(chan http.Header, 100)
			hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.Header }))
			t.Cleanup(hook.Close)
			c, to := collect(t)
			s := start(t, to, nil)
			s.ask("PUT", "/v1/jobs/asked", `{"target": {"http": {"url": "`+hook.URL+`"}}}`)
			var r wire.Run
			must(t, json.Unmarshal(s.ask("POST", "/v1/jobs/asked/runs", `{}`, "traceparent", parent), &r))
			header := <-called

			all := until(t, c, callers, func(all []span) bool { _, ok := find(all, callers, "attempt"); return ok })
			request, _ := find(all, callers, "POST /v1/jobs/{job}/runs")
			wrote, _ := find(all, callers, "store write_each")
			sent, _ := find(all, callers, "queue send")
			attempt, _ := find(all, callers, "attempt")
			call, _ := find(all, callers, "target http")
			if request.parent != callerSpan || wrote.parent != request.id || sent.parent != request.id || attempt.parent != request.id || call.parent != attempt.id {
				t.Errorf("do not join:%s", shown(all))
			}
			if want := "00-" + callers + "-" + call.id + "-01"; header.Get("Traceparent") != want {
				t.Errorf("the target got %q, want %q", header.Get("Traceparent"), want)
			}
			if w := attempt.words; w["run"] != r.ID || w["job"] != "asked" || w["tenant"] != "acme" || w["attempt"] != "1" || w["fence"] != header.Get("Belfry-Fence") || w["outcome"] != "succeeded" {
				t.Errorf("the attempt says %v", w)
			}
			if r.Trace != callers {
				t.Errorf("the run shows the trace %q, want %q", r.Trace, callers)
			}
			t.Logf("the trace %s:\n%s", callers, tree(all, callers, callerSpan, ""))
		})
	}
}

// TestAWorkflowIsOneTrace holds it over each exporter: the run of a workflow is a span below the request, its steps are spans below that, and their
// attempts and targets stand below them.
func TestAWorkflowIsOneTrace(t *testing.T) {
	for name, collect := range map[string]func(*testing.T) (*collected, trace.Exporter){"XRay": toXRay, "OTLP": toOTLP} {
		t.Run(name, func(t *testing.T) {
			c, to := collect(t)
			var failed atomic.Bool
			s := start(t, to, func(trace.Context) {
				if !failed.Swap(true) {
					panic("the first attempt fails")
				}
			})
			s.ask("PUT", "/v1/jobs/etl", `{"target": {"workflow": {"defaults": {"retry": {"initial": "1s", "max": "1s"}}, "steps": {
				"extract": {"handler": {"name": "note"}}, "never": {"needs": ["extract"], "rule": "one_failed", "handler": {"name": "note"}},
				"parts": {"needs": ["extract"], "steps": {"load": {"handler": {"name": "note"}}}}}}}}`)
			var r wire.Run
			must(t, json.Unmarshal(s.ask("POST", "/v1/jobs/etl/runs", `{}`, "traceparent", parent), &r))
			all := until(t, c, callers, func(all []span) bool {
				_, ended := find(all, callers, "workflow etl")
				attempts := 0
				for _, s := range all {
					if s.name == "attempt" {
						attempts++
					}
				}
				return ended && attempts == 3
			})
			request, _ := find(all, callers, "POST /v1/jobs/{job}/runs")
			whole, _ := find(all, callers, "workflow etl")
			if w := whole.words; whole.parent != request.id || w["run"] != r.ID || w["job"] != "etl" || w["tenant"] != "acme" || w["outcome"] != "succeeded" {
				t.Errorf("the run is %+v, below %s", whole, request.id)
			}
			for path, attempts := range map[string]int{"extract": 2, "parts/load": 1} {
				step, _ := find(all, callers, "step etl/"+path)
				if w := step.words; step.parent != whole.id || w["run"] != r.ID+"/"+path || w["attempts"] != strconv.Itoa(attempts) || w["outcome"] != "succeeded" {
					t.Errorf("step %s is %+v, below %s", path, step, whole.id)
				}
				if step.began.Before(whole.began) || step.began.Add(step.took).After(whole.began.Add(whole.took).Add(time.Millisecond)) {
					t.Errorf("step %s takes from %s for %s, and its run from %s for %s", path, step.began, step.took, whole.began, whole.took)
				}
				n := 0
				for _, s := range all {
					if s.name == "attempt" && s.words["run"] == r.ID+"/"+path {
						if n++; s.parent != step.id {
							t.Errorf("an attempt of step %s is below %s, want %s", path, s.parent, step.id)
						}
					}
				}
				if n != attempts {
					t.Errorf("%d attempts of step %s, want %d", n, path, attempts)
				}
			}
			if _, ok := find(all, callers, "step etl/never"); ok {
				t.Errorf("a step that never ran has a span:%s", shown(all))
			}
			if !t.Failed() { // spans that stand in a circle have no end
				t.Logf("the trace %s:\n%s", callers, tree(all, callers, callerSpan, ""))
			}
		})
	}
}

// TestStepsThatEndOtherwiseSayHow also of one that was cancelled before it had an attempt, and says nothing of what is not recorded.
func TestStepsThatEndOtherwiseSayHow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{}
		s := start(t, k, func(trace.Context) { panic("it fails") })
		s.ask("PUT", "/v1/jobs/etl", `{"target": {"workflow": {"steps": {"once": {"handler": {"name": "note"}, "retry": {"max_attempts": 1}},
			"again": {"handler": {"name": "note"}, "retry": {"max_attempts": 9, "initial": "1h", "max": "1h"}}}}}}`)
		ask := func(parent string) string {
			var r wire.Run
			must(t, json.Unmarshal(s.ask("POST", "/v1/jobs/etl/runs", `{}`, "traceparent", parent), &r))
			time.Sleep(time.Minute)
			s.ask("POST", "/v1/runs/"+r.ID+"/cancel", `{"reason": "enough"}`)
			time.Sleep(time.Minute)
			synctest.Wait()
			return r.ID
		}
		id := ask(parent)
		whole, once, again := k.named("workflow etl"), k.named("step etl/once"), k.named("step etl/again")
		if len(whole) != 1 || len(once) != 1 || len(again) != 1 {
			t.Fatalf("%d runs and %d and %d steps", len(whole), len(once), len(again))
		}
		says := func(d trace.Data, key string) string {
			for _, a := range d.Attrs {
				if a.Key == key {
					return a.Value
				}
			}
			return ""
		}
		if d := once[0]; says(d, "belfry.outcome") != "dead" || !strings.Contains(d.Error, "it fails") || d.Above != whole[0].Span || !d.Local {
			t.Errorf("the step that failed: %+v", d)
		}
		if d := again[0]; says(d, "belfry.outcome") != "cancelled" || d.Error != "" || d.End.Sub(d.Start) < time.Minute {
			t.Errorf("the step that was cancelled: %+v", d)
		}
		if d := whole[0]; says(d, "belfry.outcome") != "cancelled" || says(d, "belfry.run") != id || d.Error != "" || d.Local || d.End.Sub(d.Start) < time.Minute {
			t.Errorf("the run: %+v", d)
		}
		ask(strings.TrimSuffix(parent, "01") + "00") // whoever asks records nothing
		if n := len(k.named("workflow etl")) + len(k.named("step etl/once")); n != 2 {
			t.Errorf("%d spans of runs and steps, want those of the one that is recorded", n)
		}
	})
}

// TestAFiresTraceBeginsWithItsClaim and links to the tick's.
func TestAFiresTraceBeginsWithItsClaim(t *testing.T) {
	c, to := toXRay(t)
	called := make(chan trace.Context, 100)
	s := start(t, to, func(c trace.Context) { called <- c })
	s.ask("PUT", "/v1/jobs/fired", `{"schedule": {"every": "1s"}, "target": {"handler": {"name": "note"}}}`)
	first := (<-called).ID()
	all := until(t, c, first, func(all []span) bool {
		claim, _ := find(all, first, "claim")
		_, ended := find(all, first, "attempt")
		return ended && len(claim.links) == 1 && slices.ContainsFunc(all, func(s span) bool { return s.trace == claim.links[0] })
	})
	claim, _ := find(all, first, "claim")
	attempt, _ := find(all, first, "attempt")
	if claim.parent != "" || attempt.parent != claim.id || claim.words["run"] != attempt.words["run"] || claim.words["nominal_time"] == "" {
		t.Errorf("do not join:%s", shown(all))
	}
	by, _ := find(all, claim.links[0], "tick")
	if edit, asked := find(all, claim.links[0], "PUT /v1/jobs/{job}"); by.words["claimed"] == "" && !asked {
		t.Errorf("the claim links to %v and %v, want the tick that did it, or the edit", by, edit)
	}
	t.Logf("the trace %s:\n%s", first, tree(all, first, "", ""))
}

// kept is an exporter that keeps what it gets.
type kept struct {
	mu  sync.Mutex
	all []trace.Data
}

func (k *kept) Export(d trace.Data) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, d)
}
func (k *kept) Flush(context.Context) error { return nil }
func (k *kept) Close(context.Context) error { return nil }

func (k *kept) named(name string) (found []trace.Data) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.all {
		if d.Name == name {
			found = append(found, d)
		}
	}
	return found
}

// TestTheTraceWaitsInTheStore lets a request for later wait in its timer, and a retry in the run.
func TestTheTraceWaitsInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{}
		calls := 0
		s := start(t, k, func(trace.Context) {
			if calls++; calls == 1 {
				panic("the first attempt fails")
			}
		})
		s.ask("PUT", "/v1/jobs/later", `{"target": {"handler": {"name": "note"}}, "retry": {"max_attempts": 3, "initial": "30m", "max": "30m"}}`)
		s.ask("POST", "/v1/jobs/later/runs", `{"delay": "3h"}`, "traceparent", parent)
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		request, claims, attempts := k.named("POST /v1/jobs/{job}/runs"), k.named("claim"), k.named("attempt")
		if len(request) != 1 || len(claims) != 1 || len(attempts) != 2 {
			t.Fatalf("%d requests, %d claims, %d attempts", len(request), len(claims), len(attempts))
		}
		asked := request[0]
		if claims[0].Trace != asked.Trace || claims[0].Above != asked.Span || len(claims[0].Links) != 1 || claims[0].Links[0].Trace == asked.Trace {
			t.Errorf("the claim: %+v", claims[0])
		}
		if by := k.named("tick"); !slices.ContainsFunc(by, func(d trace.Data) bool { return d.Context == claims[0].Links[0] }) {
			t.Errorf("no tick is what the claim links to: %+v", by)
		}
		for _, a := range attempts {
			if a.Trace != asked.Trace || a.Above != asked.Span {
				t.Errorf("an attempt: %+v", a)
			}
		}
		if attempts[0].Error == "" || attempts[1].Error != "" {
			t.Errorf("errors %q and %q", attempts[0].Error, attempts[1].Error)
		}
		if first, second := attempts[0].Start, attempts[1].Start; second.Sub(first) > time.Hour {
			t.Errorf("attempts at %s and %s", first, second)
		}
		for _, tick := range k.named("tick") {
			if !slices.ContainsFunc(tick.Attrs, func(a trace.Attr) bool { return a.Value != "0" && a.Key != "belfry.shards" }) {
				t.Errorf("a tick that found nothing was recorded: %+v", tick)
			}
		}
	})
}
