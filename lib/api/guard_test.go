package api_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestNoWebPageGetsThrough(t *testing.T) {
	s := start(t, 0, func(cfg *api.Config) { cfg.Hosts = []string{"belfry.internal"} })
	for _, c := range []struct {
		name    string
		headers []string
		code    string // "" for what is let through
	}{
		{"curl by address", nil, ""},
		{"by name", []string{"Host", "localhost:7340"}, ""},
		{"by name with a dot", []string{"Host", "LOCALHOST.:7340"}, ""},
		{"by another loopback address", []string{"Host", "127.8.9.1"}, ""},
		{"by IPv6", []string{"Host", "[::1]:7340"}, ""},
		{"by a configured name", []string{"Host", "Belfry.internal:7340"}, ""},
		{"a page of the server itself", []string{"Origin", "http://127.0.0.1:7340", "Sec-Fetch-Site", "same-origin"}, ""},
		{"typed into a browser", []string{"Sec-Fetch-Site", "none"}, ""},
		{"a name that was rebound", []string{"Host", "evil.example:7340", "Origin", "http://evil.example:7340"}, "host_not_allowed"},
		{"a name that begins like ours", []string{"Host", "localhost.evil.example"}, "host_not_allowed"},
		{"an address of the network", []string{"Host", "192.168.1.5:7340"}, "host_not_allowed"},
		{"an address that stands for all", []string{"Host", "0.0.0.0:7340"}, "host_not_allowed"},
		{"no host", []string{"Host", ""}, "host_not_allowed"},
		{"a page from elsewhere", []string{"Origin", "http://evil.example"}, "origin_not_allowed"},
		{"a page of another port", []string{"Origin", "http://127.0.0.1:8080"}, "origin_not_allowed"},
		{"a page without an origin", []string{"Origin", "null"}, "origin_not_allowed"},
		{"a page of an extension", []string{"Origin", "chrome-extension://127.0.0.1:7340"}, "origin_not_allowed"},
		{"a page that hides its origin", []string{"Sec-Fetch-Site", "cross-site"}, "origin_not_allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := &server{t: t, handler: s.handler}
			for _, request := range [][3]string{{"GET", "/v1/jobs", ""}, {"PUT", "/v1/jobs/x", echo}, {"OPTIONS", "/v1/jobs", ""}, {"GET", "/openapi.json", ""}} {
				r := sub.send(request[0], request[1], request[2], c.headers...)
				if c.code == "" && r.status >= 300 {
					t.Errorf("%s: %d %s, want it let through", r.what, r.status, r.body)
				} else if c.code != "" {
					r.refused(403, c.code)
				}
				if got := r.header.Get("Access-Control-Allow-Origin"); got != "" {
					t.Errorf("%s grants %q", r.what, got)
				}
			}
		})
	}
}

func TestServersForOthersAskForNoHost(t *testing.T) {
	s := start(t, 0, func(cfg *api.Config) { cfg.Local = false })
	s.send("GET", "/v1/jobs", "", "Host", "belfry.example").is(200)
	s.send("GET", "/v1/jobs", "", "Host", "belfry.example", "Origin", "https://evil.example").refused(403, "origin_not_allowed")
}

func TestWritesMustSayThatTheyAreJSON(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"} {
		for path, body := range map[string]string{"/v1/jobs/a/runs": `{}`, "/v1/jobs/a/resume": "", "/v1/jobs/batch": `{"jobs": []}`} {
			s.send("POST", path, body, "Content-Type", media).refused(415, "not_json")
		}
	}
	s.send("POST", "/v1/jobs/a/resume", "{}", "Content-Type", "Application/JSON; charset=utf-8").is(200)
	if fields := s.send("POST", "/v1/jobs/a/resume", "", "Content-Type", "application/json").refused(400, "malformed"); fields[""] == "" {
		t.Errorf("fields %v, want one for the whole body", fields)
	}
}

func TestPathsAndMethodsThatAreNotThere(t *testing.T) {
	s := start(t, 0, nil)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/jobs/", "/v1/jobs/a/b", "/v2/jobs", "//v1/jobs", "/v1/../v1/jobs", "/docs", "/schemas/Job.json", "/openapi.yaml", "/metrics"} {
		s.send("GET", path, "").refused(404, "no_such_path")
	}
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/v1/jobs/a", "DELETE, GET, HEAD, PATCH, PUT, OPTIONS"},
		{"PATCH", "/v1/jobs", "GET, HEAD, OPTIONS"},
		{"GET", "/v1/jobs/a/pause", "POST, OPTIONS"},
		{"GET", "/v1/jobs/batch", "POST, OPTIONS"},
		{"PUT", "/v1/jobs/batch", "POST, OPTIONS"},
		{"DELETE", "/v1/jobs/batch", "POST, OPTIONS"},
		{"GET", "/v1/runs/batch", "POST, OPTIONS"},
		{"TRACE", "/healthz", "GET, HEAD, OPTIONS"},
		{"BREW", "/healthz", "GET, HEAD, OPTIONS"},
	} {
		r := s.send(c.method, c.path, "")
		r.refused(405, "method_not_allowed")
		if got := r.header.Get("Allow"); got != c.allow {
			t.Errorf("%s: Allow %q, want %q", r.what, got, c.allow)
		}
	}
	options := s.send("OPTIONS", "/v1/jobs/a", "").is(204)
	if got := options.header.Get("Allow"); got != "DELETE, GET, HEAD, PATCH, PUT, OPTIONS" {
		t.Errorf("OPTIONS allows %q", got)
	}
	s.send("OPTIONS", "/nowhere", "").refused(404, "no_such_path")
	s.send("HEAD", "/v1/jobs", "").is(200)
}

func TestTroubleOfTheStoreIsToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		"throttled":         {store.ErrThrottled, 503, "throttled", true},
		"outcome not known": {store.ErrUnknown, 503, "outcome_unknown", true},
		"out of time":       {context.DeadlineExceeded, 503, "outcome_unknown", true},
		"anything else":     {errors.New("secret of the disk"), 500, "internal", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, 0, nil)
			s.store.fail = c.err
			r := s.send("PUT", "/v1/jobs/a", echo)
			r.refused(c.status, c.code)
			if got := r.header.Get("Retry-After") != ""; got != c.retry {
				t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
			}
			if strings.Contains(string(r.body), "secret") {
				t.Errorf("the answer shows what is for the log: %s", r.body)
			}
			s.store.fail = nil
			s.send("PUT", "/v1/jobs/a", echo).is(201)
		})
	}
}

func TestHealthAndReadiness(t *testing.T) {
	checks := []wire.Check{{Name: "store", State: wire.CheckOK, Detail: "answers"}, {Name: "disk", State: wire.CheckAttention, Detail: "nearly full"}}
	s := start(t, 0, func(cfg *api.Config) { cfg.Ready = func(context.Context) []wire.Check { return checks } })
	if h := into[wire.Health](s.send("GET", "/healthz", "").is(200)); h.Status != "ok" || h.Version != "test" {
		t.Errorf("health %+v", h)
	}
	if got := into[wire.Readiness](s.send("GET", "/readyz", "").is(200)); got.Status != "ok" || !slices.Equal(got.Checks, checks) {
		t.Errorf("readiness %+v, want all checks", got)
	}
	checks = append(checks, wire.Check{Name: "ticks", State: wire.CheckFailing, Detail: "none has succeeded for 1m0s"})
	s.send("GET", "/healthz", "").is(200)
	r := s.send("GET", "/readyz", "")
	r.refused(503, "not_ready")
	if p := into[wire.Problem](r); p.Detail != "Not ready. ticks: none has succeeded for 1m0s" || !slices.Equal(p.Checks, checks) {
		t.Errorf("not ready: %+v, want what fails in the detail, and all checks", p)
	}
	if q := into[wire.QueuePage](s.send("GET", "/v1/queues", "").is(200)).Items; len(q) != 1 || q[0].Name != "default" {
		t.Errorf("queues %+v", q)
	}
	if text := strings.TrimSpace(string(s.send("GET", "/v1/workers", "").is(200).body)); text != `{"items":[]}` {
		t.Errorf("workers %s", text)
	}
}

func TestAPanicIsAProblemAndNoMore(t *testing.T) {
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Queues = func(context.Context, string) ([]wire.Queue, error) { panic("broken") }
	})
	s.send("GET", "/v1/queues", "").refused(500, "internal")
	s.send("GET", "/v1/jobs", "").is(200)
}

func TestMetricsAreServedWhereTheyAreGiven(t *testing.T) {
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("belfry_up 1\n")) })
	})
	if got := string(s.send("GET", "/metrics", "").is(200).body); got != "belfry_up 1\n" {
		t.Errorf("got %q", got)
	}
	s.send("GET", "/metrics", "", "Origin", "http://evil.example").refused(403, "origin_not_allowed")
}

func TestP11_the_server_waits_for_nobody_without_end(t *testing.T) {
	s := api.Server(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("a bound is missing: %+v", s)
	}
}

func TestCronPreview(t *testing.T) {
	s := start(t, 0, nil)
	shown := into[wire.Cron](s.send("GET", "/v1/cron?expr=30+9+*+*+1-5&timezone=Europe/Berlin&from=2026-11-21T00:00:00Z&count=2", "").is(200))
	if shown.Description != "At 09:30, Monday to Friday, Europe/Berlin" || len(shown.Next) != 2 || shown.Next[0].Format("2006-01-02T15:04:05Z07:00") != "2026-11-23T08:30:00Z" {
		t.Errorf("got %+v", shown)
	}
	gap := s.send("GET", "/v1/cron?expr=30+2+*+*+*&timezone=Europe/Berlin&from=2026-03-28T12:00:00Z&count=2", "").is(200)
	if want := `"fires":[{"at":"2026-03-29T01:00:00Z","local":"2026-03-29T03:00:00+02:00","mark":"shifted","asked":["2026-03-29T02:30:00"]},{"at":"2026-03-30T00:30:00Z","local":"2026-03-30T02:30:00+02:00"}]`; !strings.Contains(string(gap.body), want) {
		t.Errorf("got %s, want it to hold %s", gap.body, want)
	}
	if got := len(into[wire.Cron](s.send("GET", "/v1/cron?expr=@daily", "").is(200)).Next); got != 5 {
		t.Errorf("%d fires, want 5", got)
	}
	for path, field := range map[string]string{"/v1/cron?expr=0+25+*+*+*": "expr", "/v1/cron?expr=@daily&timezone=Nowhere": "timezone", "/v1/cron?expr=0+0+30+2+*": "expr"} {
		if fields := s.send("GET", path, "").refused(422, "invalid"); fields[field] == "" {
			t.Errorf("%s: fields %v, want %s", path, fields, field)
		}
	}
}
