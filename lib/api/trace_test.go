package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// spans is an exporter that keeps what it gets.
type spans struct {
	mu  sync.Mutex
	all []trace.Data
}

func (s *spans) Export(d trace.Data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}
func (s *spans) Flush(context.Context) error { return nil }
func (s *spans) Close(context.Context) error { return nil }

func (s *spans) taken() []trace.Data {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

func TestARequestGoesOnWithItsCallersTrace(t *testing.T) {
	const parent, id = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"
	kept := &spans{}
	tracer, err := trace.New(trace.Config{Export: kept, Ratio: 0, Now: time.Now, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, 0, func(cfg *api.Config) { cfg.Tracer = tracer })
	for name, row := range map[string]struct {
		headers []string
		want    bool
	}{
		"W3C":          {[]string{"traceparent", parent}, true},
		"XRay":         {[]string{"X-Amzn-Trace-Id", "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1"}, true},
		"Both":         {[]string{"traceparent", parent, "X-Amzn-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"}, true},
		"NotRecorded":  {[]string{"traceparent", strings.TrimSuffix(parent, "1") + "0"}, false},
		"None":         {nil, false},
		"NoTraceAtAll": {[]string{"traceparent", "hello"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s.send("GET", "/v1/jobs/nothing", "", row.headers...).is(http.StatusNotFound)
			all := kept.taken()
			if !row.want {
				if len(all) != 0 {
					t.Errorf("recorded %+v", all)
				}
				return
			}
			if len(all) == 0 {
				t.Fatal("nothing was recorded")
			}
			last := all[len(all)-1]
			words := map[string]string{}
			for _, a := range last.Attrs {
				words[a.Key] = a.Value
			}
			if last.Name != "GET /v1/jobs/{job}" || last.ID() != id || last.Above != [8]byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31} ||
				words["http.response.status_code"] != "404" || words["error.type"] != "job_not_found" || words["belfry.tenant"] != "default" || last.Error != "" {
				t.Errorf("got %+v", last)
			}
		})
	}
	for _, path := range []string{"/healthz", "/openapi.json"} {
		s.send("GET", path, "", "traceparent", parent).is(http.StatusOK)
		if all := kept.taken(); len(all) != 0 {
			t.Errorf("%s: recorded %+v", path, all)
		}
	}
}

func TestStrangersHaveNothingRecorded(t *testing.T) {
	kept := &spans{}
	tracer, err := trace.New(trace.Config{Export: kept, Ratio: 1, Now: time.Now, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Tracer = tracer
		cfg.Who = func(*http.Request) (access.Caller, error) {
			return access.Caller{}, &access.Unauthenticated{Message: "no"}
		}
	})
	s.send("GET", "/v1/jobs", "").is(http.StatusUnauthorized)
	if all := kept.taken(); len(all) != 0 {
		t.Errorf("recorded %+v", all)
	}
}

func TestLinesOfTheLogNameTheRequest(t *testing.T) {
	var out bytes.Buffer
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Log = slog.New(trace.Log(slog.NewJSONHandler(&out, nil)))
		cfg.NewID = func() uint64 { return 36 }
	})
	s.store.fail = store.ErrClosed
	for given, want := range map[string]string{"": "10", "abc-1": "abc-1", "a b": "10", strings.Repeat("x", 129): "10", `a"b`: "10"} {
		out.Reset()
		var headers []string
		if given != "" {
			headers = []string{"X-Request-Id", given}
		}
		r := s.send("PUT", "/v1/jobs/report", echo, headers...).is(http.StatusInternalServerError)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if r.header.Get("X-Request-Id") != want || line["request_id"] != want || line["tenant"] != "default" {
			t.Errorf("given %q: %q, %v", given, r.header.Get("X-Request-Id"), line)
		}
	}
}
