package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/api/compress"
	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// event is one that came, and when.
type event struct {
	wire.Changes
	at time.Time
}

// follower follows a stream of changes within a bubble. It writes while a test sleeps, and nothing but the clock of the bubble orders the two.
type follower struct {
	status int
	header http.Header
	ended  atomic.Bool
	stop   func()

	mu   sync.Mutex
	came []event
}

// events are those that have come.
func (f *follower) events() []event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.came)
}

// follow begins to follow changes. What has come stands there when all else waits: after synctest.Wait.
func (s *server) follow(headers ...string) *follower {
	ctx, stop := context.WithCancel(s.t.Context())
	f := &follower{stop: stop}
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/changes", nil)
	r.Host = "127.0.0.1:7340"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	go func() {
		s.handler.ServeHTTP(f, r)
		f.ended.Store(true)
	}()
	synctest.Wait()
	return f
}

func (f *follower) Header() http.Header {
	if f.header == nil {
		f.header = http.Header{}
	}
	return f.header
}

func (f *follower) WriteHeader(status int) { f.status = status }
func (f *follower) Flush()                 {}

func (f *follower) Write(text []byte) (int, error) {
	data, is := strings.CutPrefix(string(text), "data: ")
	if !is {
		return len(text), nil
	}
	e := event{at: time.Now()}
	if err := json.Unmarshal([]byte(data), &e.Changes); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.came = append(f.came, e)
	return len(text), nil
}

// named are all that has been told, each once.
func (f *follower) named() []string {
	var all []string
	for _, e := range f.events() {
		all = append(all, e.Changed...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// follows is a test of a server that tells what its node writes, in virtual time.
func follows(t *testing.T, test func(t *testing.T, s *server)) {
	synctest.Test(t, func(t *testing.T) {
		var cfg *api.Config
		s := start(t, 0, func(c *api.Config) { cfg = c; everything(t)(c) })
		cfg.Changes = &api.Changes{Hub: s.changes, Complete: true}
		var err error
		if s.handler, err = api.New(*cfg); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.node.Run(ctx) }()
		time.Sleep(1500 * time.Millisecond)
		test(t, s)
		stop()
		s.changes.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestAStreamNamesWhatChanges(t *testing.T) {
	follows(t, func(t *testing.T, s *server) {
		f := s.follow()
		events := f.events()
		if len(events) != 1 || events[0].Complete == nil || !*events[0].Complete || len(events[0].Changed) != 0 || f.header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("it begins with %+v, %v; want that it is complete, and nothing more", events, f.header)
		}
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		time.Sleep(time.Second)
		if got := f.named(); !slices.Equal(got, []string{"job:a", "jobs"}) {
			t.Errorf("a job was made: told %q", got)
		}
		run := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202))
		time.Sleep(5 * time.Second)
		for _, want := range []string{"runs", "queues", "job:a", "run:" + run.ID} {
			if !slices.Contains(f.named(), want) {
				t.Errorf("a run began and ended: told %q, want %s", f.named(), want)
			}
		}
		before := len(f.events())
		if is := into[wire.Run](s.send("GET", "/v1/runs/"+run.ID, "").is(200)); is.State != "succeeded" {
			t.Fatalf("the run is %s", is.State)
		}
		time.Sleep(10 * time.Second)
		if events := f.events(); len(events) != before {
			t.Errorf("nothing happened, and it is told %+v", events[before:])
		}
		f.stop()
		synctest.Wait()
		if !f.ended.Load() || s.changes.Listening() {
			t.Error("its client has gone, and it listens on")
		}
	})
}

func TestP12_AStreamNamesNothingOfOtherTenants(t *testing.T) {
	follows(t, func(t *testing.T, s *server) {
		acme, other := s.follow(s.of("acme")...), s.follow(s.of("other")...)
		s.send("PUT", "/v1/jobs/secret", echo, s.of("acme")...).is(201)
		s.send("POST", "/v1/jobs/secret/runs", `{}`, s.of("acme")...).is(202)
		time.Sleep(5 * time.Second)
		if !slices.Contains(acme.named(), "job:secret") || len(other.named()) != 0 || len(other.events()) != 1 {
			t.Errorf("its own tenant is told %q, another %+v", acme.named(), other.events())
		}
	})
}

func TestP11_AStreamIsBounded(t *testing.T) {
	follows(t, func(t *testing.T, s *server) {
		f := s.follow()
		for range 3000 { // in three seconds
			s.changes.Tell("default", "runs", "jobs")
			time.Sleep(time.Millisecond)
		}
		events := f.events()
		for i := 1; i < len(events); i++ {
			if after := events[i].at.Sub(events[i-1].at); after < 250*time.Millisecond {
				t.Errorf("the events %d and %d are %s apart", i-1, i, after)
			}
			if !slices.Equal(events[i].Changed, []string{"jobs", "runs"}) {
				t.Errorf("event %d is %q", i, events[i].Changed)
			}
		}
		if n := len(events); n < 12 || n > 14 {
			t.Errorf("%d events in three seconds, want four a second", n)
		}
		time.Sleep(time.Second)
		s.changes.Tell("default", "runs")
		synctest.Wait() // it was told of at once: all that comes now is told of together
		for i := range 1000 {
			s.changes.Tell("default", changes.RunTopic(strings.Repeat("x", i)))
		}
		time.Sleep(time.Second)
		events = f.events()
		if last := events[len(events)-1].Changed; !slices.Equal(last, []string{"all"}) {
			t.Errorf("too much to name: told %d names, want all", len(last))
		}
		time.Sleep(time.Minute)
		if !f.ended.Load() || s.changes.Listening() {
			t.Error("after a minute it goes on")
		}
	})
}

func TestAStreamEndsAfter45SecondsAndWithTheServer(t *testing.T) {
	follows(t, func(t *testing.T, s *server) {
		f := s.follow()
		time.Sleep(44 * time.Second)
		if f.ended.Load() {
			t.Error("it ended early")
		}
		time.Sleep(2 * time.Second)
		if !f.ended.Load() {
			t.Error("it did not end by itself")
		}
		f = s.follow()
		s.changes.Close()
		synctest.Wait()
		if !f.ended.Load() {
			t.Error("the server stops, and it goes on")
		}
		if late := s.follow(); !late.ended.Load() {
			t.Error("one that begins while the server stops goes on")
		}
	})
}

func TestP11_StreamsAreBoundedForATenantAndInAll(t *testing.T) {
	follows(t, func(t *testing.T, s *server) {
		for range changes.MaxTenantListeners {
			s.follow()
		}
		r := s.send("GET", "/v1/changes", "")
		r.refused(429, "rate_limited")
		if r.header.Get("Retry-After") != "45" || !strings.Contains(string(r.body), "every few seconds") {
			t.Errorf("told %s, Retry-After %s", r.body, r.header.Get("Retry-After"))
		}
		s.send("GET", "/v1/jobs", "").is(200)
		if other := s.follow(s.of("acme")...); len(other.events()) != 1 {
			t.Error("another tenant has no stream")
		}
		for i := range changes.MaxListeners - changes.MaxTenantListeners - 1 {
			if _, err := s.changes.Listen("t" + string(rune('a'+i/100))); err != nil {
				t.Fatal(err)
			}
		}
		s.send("GET", "/v1/changes", "", s.of("acme")...).refused(429, "rate_limited")
		time.Sleep(time.Minute)
		s.follow().stop()
	})
}

func TestAStreamAsksForTheScopeRead(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	s.send("GET", "/v1/changes", "").refused(401, "unauthenticated")
	s.send("GET", "/v1/changes", "", bearing(s.token("default", access.Run))...).refused(403, "forbidden")
	s.send("GET", "/v1/changes", "", bearing(s.token("default", access.Read))...).is(200)
}

func TestAServerThatTellsNoChangesSaysSo(t *testing.T) {
	s := start(t, 0, nil)
	r := s.send("GET", "/v1/changes", "")
	r.refused(404, "no_such_path")
	if !strings.Contains(string(r.body), "every ten seconds") {
		t.Errorf("told %s", r.body)
	}
}

// What stands in front of the handler passes each event on as it comes.
func TestEventsComeThroughWhatCompresses(t *testing.T) {
	hub := new(changes.Hub)
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Changes = &api.Changes{Hub: hub}
		cfg.Local = true
	})
	served := httptest.NewServer(compress.Answers(s.handler, api.OnlyReads))
	defer served.Close()
	defer hub.Close()
	request, err := http.NewRequestWithContext(t.Context(), "GET", served.URL+"/v1/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read := func(want string) {
		t.Helper()
		text := make([]byte, len(want))
		if _, err := io.ReadFull(answer.Body, text); err != nil || string(text) != want {
			t.Fatalf("read %q, %v; want %q", text, err, want)
		}
	}
	read(`data: {"complete":false,"changed":[]}` + "\n\n")
	hub.Tell("default", "runs")
	read(`data: {"changed":["runs"]}` + "\n\n")
}
