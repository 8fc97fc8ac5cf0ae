package api_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
)

func showing(cfg *api.Config) {
	cfg.Console = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "the console at "+r.URL.Path) })
}

func TestTheConsoleIsShownToWhoHasNoToken(t *testing.T) {
	s := start(t, 0, func(cfg *api.Config) { asking(t, access.GateConfig{})(cfg); showing(cfg) })
	for _, path := range []string{"/console", "/console/", "/console/runs/x"} {
		if r := s.send("GET", path, "").is(200); string(r.body) != "the console at "+path {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	s.send("GET", "/v1/jobs", "").refused(401, "unauthenticated")
	s.send("GET", "/consoles", "").refused(401, "unauthenticated")
}

func TestBrowsersAreLedToTheConsole(t *testing.T) {
	s := start(t, 0, showing)
	browser := []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}
	if r := s.send("GET", "/", "", browser...).is(302); r.header.Get("Location") != "/console" {
		t.Errorf("led to %q", r.header.Get("Location"))
	}
	if r := s.send("GET", "/docs", "", browser...).is(302); r.header.Get("Location") != "/console/docs" {
		t.Errorf("/docs leads to %q", r.header.Get("Location"))
	}
	s.send("GET", "/docs", "", "Accept", "*/*").refused(404, "no_such_path")
	s.send("GET", "/", "", "Accept", "*/*").refused(404, "no_such_path")
	s.send("POST", "/", "{}", browser...).refused(404, "no_such_path")

	without := start(t, 0, nil)
	without.send("GET", "/", "", browser...).refused(404, "no_such_path")
	without.send("GET", "/docs", "", browser...).refused(404, "no_such_path")
	without.send("GET", "/console", "", browser...).refused(404, "no_such_path")
}

func TestALinkFromElsewhereLeadsToTheConsoleAndNowhereElse(t *testing.T) {
	s := start(t, 0, showing)
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Accept", "text/html"}
	s.send("GET", "/console/runs/x", "", link...).is(200)
	s.send("GET", "/", "", link...).is(302)
	s.send("GET", "/docs", "", link...).is(302)
	for _, path := range []string{"/v1/jobs", "/v1/runs/x~000000000/logs", "/openapi.json", "/metrics", "/consoles", "/healthz"} {
		s.send("GET", path, "", link...).refused(403, "origin_not_allowed")
	}
	s.send("POST", "/console", "{}", link...).refused(403, "origin_not_allowed")
	for _, other := range [][2]string{{"Sec-Fetch-Dest", "iframe"}, {"Sec-Fetch-Dest", "empty"}, {"Sec-Fetch-Mode", "cors"}, {"Sec-Fetch-Mode", "no-cors"}} {
		s.send("GET", "/console", "", append(link, other[0], other[1])...).refused(403, "origin_not_allowed")
	}
	s.send("GET", "/console", "", "Origin", "http://evil.example").refused(403, "origin_not_allowed")
	s.send("GET", "/console", "", append(link, "Host", "evil.example:7340")...).refused(403, "host_not_allowed")
	start(t, 0, nil).send("GET", "/console", "", link...).refused(403, "origin_not_allowed")
}
