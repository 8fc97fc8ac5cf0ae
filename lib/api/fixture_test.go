package api_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// server is the API over a whole scheduler in memory.
type server struct {
	t       *testing.T
	handler http.Handler
	node    *node.Node
	store   *brittle
	changes *changes.Hub // of what the node writes
	blobs   *blob.Bucket
	tokens  *access.Tokens
	tenants map[string]string // a token of each
}

// of is headers with which a request is one of another tenant than default.
func (s *server) of(tenant string) []string {
	s.t.Helper()
	if s.tenants[tenant] == "" {
		s.tenants[tenant] = s.token(tenant, access.Admin)
	}
	return bearing(s.tenants[tenant])
}

func bearing(token string) []string { return []string{"Authorization", "Bearer " + token} }

// token makes one, and gives its text.
func (s *server) token(tenant string, scopes ...access.Scope) string {
	s.t.Helper()
	text, _, err := s.tokens.Create(s.t.Context(), tenant, access.Request{Name: "test", Scopes: scopes})
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// brittle is a store whose writes fail while it is told so.
type brittle struct {
	store.Store
	fail error
	skew time.Duration // beside the store's own
}

func (b *brittle) Skew() time.Duration { return b.Store.Skew() + b.skew }

func (b *brittle) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if b.fail != nil {
		return nil, b.fail
	}
	return b.Store.Write(ctx, ops...)
}

// start makes a server; change, where given, has the last word on its configuration. Handlers: "echo" answers its payload, "say" what
// its payload says, "fail" fails for good, "failing" with the error that
// its payload says, "broken" fails, "wait" goes on until it is cancelled.
func start(t *testing.T, capacity int, change func(*api.Config)) *server {
	t.Helper()
	handlers := new(target.Registry)
	for name, f := range map[string]target.Func{
		"echo": func(_ context.Context, call target.Call) (target.Result, error) {
			fmt.Fprintln(call.Log, "echoing")
			return target.Result{Body: call.Payload, ContentType: "application/json"}, nil
		},
		"text": func(context.Context, target.Call) (target.Result, error) {
			return target.Result{Body: []byte("plain"), ContentType: "text/plain"}, nil
		},
		"say": func(_ context.Context, call target.Call) (target.Result, error) {
			var said struct {
				Body []byte
				Type string
				Cut  bool
			}
			err := json.Unmarshal(call.Payload, &said)
			return target.Result{Body: said.Body, ContentType: said.Type, Truncated: said.Cut}, err
		},
		"fail": func(context.Context, target.Call) (target.Result, error) {
			return target.Result{}, target.Permanent(fmt.Errorf("no such account"))
		},
		"broken": func(context.Context, target.Call) (target.Result, error) {
			return target.Result{}, fmt.Errorf("out of order")
		},
		"failing": func(_ context.Context, call target.Call) (target.Result, error) {
			var said struct{ Error string }
			if err := json.Unmarshal(call.Payload, &said); err != nil {
				return target.Result{}, err
			}
			return target.Result{}, target.Permanent(fmt.Errorf("%s", said.Error))
		},
		"tell": func(ctx context.Context, call target.Call) (target.Result, error) {
			fmt.Fprintln(call.Log, "working")
			<-ctx.Done()
			fmt.Fprintln(call.Log, "stopped")
			return target.Result{}, ctx.Err()
		},
		"wait": func(ctx context.Context, _ target.Call) (target.Result, error) {
			<-ctx.Done()
			return target.Result{}, ctx.Err()
		},
	} {
		if err := handlers.Register(name, f); err != nil {
			t.Fatal(err)
		}
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s := &server{t: t, tenants: map[string]string{}, blobs: blob.New(memblob.OpenBucket(nil)), store: &brittle{Store: memory.New(memory.Config{Now: time.Now})}, changes: new(changes.Hub)}
	near, far := queuelocal.New(queuelocal.Config{Now: time.Now, Capacity: capacity}), queuelocal.New(queuelocal.Config{Now: time.Now})
	s.node, err = node.New(t.Context(), node.Config{
		Store:     s.store,
		Queues:    map[string]queue.Queue{job.DefaultQueue: near, "far": far},
		Elsewhere: map[string]string{"far": access.DefaultTenant}, RemoteKey: make([]byte, 32),
		Blobs:   s.blobs,
		Targets: targets, Metrics: metrics.New(), Now: time.Now, NewID: rand.Uint64, Name: "test", Changes: s.changes,
		Elapsed: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.tokens, err = access.New(access.Config{Store: s.store, Now: time.Now, Random: crand.Reader, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: s.tokens, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	cfg := api.Config{
		Control: s.node.Control, Remote: s.node.Remote, Gate: gate, Now: time.Now, Version: "test",
		Ready: func(context.Context) []wire.Check {
			return []wire.Check{{Name: "store", State: wire.CheckOK, Detail: "answers"}}
		},
		Queues: func(context.Context, string) ([]wire.Queue, error) {
			return []wire.Queue{{Name: "default", Priorities: map[string]wire.Depth{"high": {}}}}, nil
		},
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
		Look:    api.LookInto(map[string]*queuelocal.Queue{job.DefaultQueue: near, "far": far}, map[string]string{"far": access.DefaultTenant}),
		Local:   true,
	}
	if change != nil {
		change(&cfg)
	}
	if s.handler, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	return s
}

// running is a test in virtual time in which the scheduler works.
func running(t *testing.T, test func(t *testing.T, s *server)) {
	runningWith(t, everything(t), test)
}

// runningWith is running with a word on the configuration.
func runningWith(t *testing.T, change func(*api.Config), test func(t *testing.T, s *server)) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 0, change)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.node.Run(ctx) }()
		time.Sleep(1500 * time.Millisecond)
		test(t, s)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// reply is an answer of the server.
type reply struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   []byte
}

// send makes a request: a body of text is JSON, of PATCH a merge patch, headers come in pairs.
func (s *server) send(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7340"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		if headers[i] == "TLS" {
			r.TLS = new(tls.ConnectionState)
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return reply{s.t, method + " " + path, w.Code, w.Header(), w.Body.Bytes()}
}

// is fails the test on another status.
func (r reply) is(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: got %d %s, want %d", r.what, r.status, bytes.TrimSpace(r.body), status)
	}
	return r
}

// into reads the answer's JSON, of which every field must be known.
func into[T any](r reply) T {
	r.t.Helper()
	var v T
	dec := json.NewDecoder(bytes.NewReader(r.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		r.t.Fatalf("%s: %v in %s", r.what, err, r.body)
	}
	return v
}

// refused fails the test unless the answer is a problem document with this code, and gives its wrong fields.
func (r reply) refused(status int, code string) map[string]string {
	r.t.Helper()
	r.is(status)
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		r.t.Fatalf("%s: content type %q, want a problem document", r.what, got)
	}
	p := into[wire.Problem](r)
	if p.Code != code || p.Status != status || p.Title != http.StatusText(status) || p.Detail == "" {
		r.t.Fatalf("%s: got %s, want code %s, status %d, a title and a detail", r.what, bytes.TrimSpace(r.body), code, status)
	}
	fields := map[string]string{}
	for _, e := range p.Errors {
		fields[e.Field] = e.Message
	}
	return fields
}

const echo = `{"target": {"handler": {"name": "echo"}}}`
