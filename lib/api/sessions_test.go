package api_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// session opens one, and gives it with its secret.
func (s *server) session(body string, token string) wire.Session {
	s.t.Helper()
	return into[wire.Session](s.send("POST", "/v1/session", body, bearing(token)...).is(201))
}

func TestASessionSeesAndIsSignedOut(t *testing.T) {
	var log bytes.Buffer
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Gate.Tokens.Log = slog.New(slog.NewTextHandler(&log, nil))
		asking(t, access.GateConfig{})(cfg)
	})
	admin := s.token("acme", access.Admin)
	s.send("PUT", "/v1/jobs/a", echo, bearing(admin)...).is(201)
	made := s.session(`{"name": "console"}`, admin)
	if made.Tenant != "acme" || made.Name != "console" || !strings.Contains(admin, made.Parent) || !slices.Equal(made.Scopes, []string{"read"}) || made.ExpiresAt.Sub(made.CreatedAt).Round(time.Minute) != 12*time.Hour {
		t.Errorf("opened %+v", made)
	}
	session := bearing(made.Secret)
	s.send("GET", "/v1/jobs/a", "", session...).is(200)
	if told := into[wire.Caller](s.send("GET", "/v1/session", "", session...).is(200)); told.ID != made.ID || told.Parent != made.Parent || told.Tenant != "acme" ||
		!slices.Equal(told.Scopes, made.Scopes) || !told.ExpiresAt.Equal(made.ExpiresAt) {
		t.Errorf("it is told that it is %+v", told)
	}
	s.send("PUT", "/v1/jobs/a", echo, session...).refused(403, "forbidden")
	s.send("POST", "/v1/jobs/a/runs", `{}`, session...).refused(403, "forbidden")
	list := s.send("GET", "/v1/tokens", "", bearing(admin)...).is(200)
	if page := into[wire.TokenPage](list); len(page.Items) != 2 || !strings.Contains(string(list.body), `"parent":"`+made.Parent+`"`) || strings.Contains(string(list.body), made.Secret) {
		t.Errorf("listed %s, want the session with its token, and no secret", list.body)
	}
	s.send("DELETE", "/v1/session", "", session...).is(204)
	s.send("GET", "/v1/jobs/a", "", session...).refused(401, "unauthenticated")
	s.send("DELETE", "/v1/session", "", session...).refused(401, "unauthenticated")
	s.send("GET", "/v1/jobs/a", "", bearing(admin)...).is(200)
	for _, want := range []string{"a session was opened", "token=" + made.ID, "of=" + made.Parent, "a token was revoked"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), made.Secret) || strings.Contains(log.String(), admin) {
		t.Error("the log holds a secret")
	}
}

func TestASessionAllowsNoMoreThanItsToken(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	read, run, admin := s.token("default", access.Read), s.token("default", access.Run, access.Work), s.token("default", access.Admin)
	both := s.token("default", access.Read, access.Run)
	for token, want := range map[string][]string{read: {"read"}, both: {"read", "run"}, admin: {"read", "run", "write"}, s.token("default", access.Write): {"read", "run", "write"}} {
		if made := s.session(`{"scopes": ["read", "run", "write"]}`, token); !slices.Equal(made.Scopes, want) {
			t.Errorf("asked for all, it has %v, want %v", made.Scopes, want)
		} else if r := s.send("PUT", "/v1/jobs/a", echo, bearing(made.Secret)...); (r.status == 403) == slices.Contains(want, "write") {
			t.Errorf("with %v: %d %s", made.Scopes, r.status, r.body)
		}
	}
	before := len(into[wire.TokenPage](s.send("GET", "/v1/tokens", "", bearing(admin)...).is(200)).Items)
	for token, bodies := range map[string][]string{read: {`{"scopes": ["write"]}`}, run: {`{}`, `{"scopes": ["read"]}`}} {
		for _, body := range bodies {
			if r := s.send("POST", "/v1/session", body, bearing(token)...); r.status != 403 || !strings.Contains(r.header.Get("WWW-Authenticate"), "insufficient_scope") {
				t.Errorf("%s: %d %s, want it forbidden", body, r.status, r.body)
			}
		}
	}
	for body, field := range map[string]string{
		`{"scopes": ["run"]}`:          "scopes",
		`{"scopes": ["read", "read"]}`: "scopes[1]",
		`{"expires_in": "12h1ms"}`:     "expires_in",
		`{"name": "\u0007"}`:           "name",
	} {
		if fields := s.send("POST", "/v1/session", body, bearing(admin)...).refused(422, "invalid"); fields[field] == "" {
			t.Errorf("%s: fields %v, want %s", body, fields, field)
		}
	}
	for _, body := range []string{`{"scopes": []}`, `{"scopes": ["admin"]}`, `{"scopes": ["work"]}`, `{"tenant": "other"}`, `{"parent": "0123456789abcdef"}`, `[]`} {
		s.send("POST", "/v1/session", body, bearing(admin)...).refused(400, "malformed")
	}
	if page := into[wire.TokenPage](s.send("GET", "/v1/tokens", "", bearing(admin)...).is(200)); len(page.Items) != before {
		t.Errorf("there are %d tokens, want the %d from before", len(page.Items), before)
	}
}

// Whatever a session may do, it makes nothing that outlives it or lets anybody in.
func TestASessionMakesNoCredentialOfAnyKind(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	admin := s.token("default", access.Admin)
	made := s.session(`{"scopes": ["write"]}`, admin)
	session := bearing(made.Secret)
	s.send("PUT", "/v1/jobs/a", echo, session...).is(201)
	s.send("POST", "/v1/session", `{}`, session...).refused(409, "no_session")
	s.send("POST", "/v1/tokens", `{"scopes": ["read"]}`, session...).refused(403, "forbidden")
	s.send("GET", "/v1/tokens", "", session...).refused(403, "forbidden")
	s.send("DELETE", "/v1/tokens/"+made.Parent, "", session...).refused(403, "forbidden")
	s.send("DELETE", "/v1/tokens/"+made.ID, "", session...).refused(403, "forbidden")
	s.send("PUT", "/v1/secrets/s", `{"value": "v"}`, session...).refused(403, "forbidden")
	s.send("GET", "/v1/backup", "", session...).refused(403, "forbidden")
	s.send("DELETE", "/v1/session", "", bearing(admin)...).refused(409, "no_session")
	s.send("GET", "/v1/jobs", "", bearing(admin)...).is(200)

	other := bearing(s.token("acme", access.Admin))
	s.send("DELETE", "/v1/tokens/"+made.ID, "", other...).refused(404, "token_not_found")
	s.send("GET", "/v1/jobs", "", session...).is(200)
	s.send("DELETE", "/v1/tokens/"+made.ID, "", bearing(admin)...).is(204)
	s.send("GET", "/v1/jobs", "", session...).refused(401, "unauthenticated")
}

func TestASessionDiesWithItsToken(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	admin := bearing(s.token("default", access.Admin))
	token := into[wire.NewToken](s.send("POST", "/v1/tokens", `{"scopes": ["read"], "expires_in": "1h"}`, admin...).is(201))
	made := s.session(`{"expires_in": "2h"}`, token.Secret)
	if !made.ExpiresAt.Equal(token.ExpiresAt) {
		t.Errorf("it expires at %v, want %v as its token does", made.ExpiresAt, token.ExpiresAt)
	}
	s.send("GET", "/v1/jobs", "", bearing(made.Secret)...).is(200)
	s.send("DELETE", "/v1/tokens/"+token.ID, "", admin...).is(204)
	r := s.send("GET", "/v1/jobs", "", bearing(made.Secret)...)
	r.refused(401, "unauthenticated")
	if !strings.Contains(string(r.body), "belongs to the token "+token.ID+", which was revoked at") {
		t.Errorf("it is told %s", r.body)
	}
	s.send("POST", "/v1/session", `{}`, bearing(token.Secret)...).refused(401, "unauthenticated")
}

// A server that asks for no token has no sessions, but of tokens that are given all the same.
func TestAnOpenServerHasSessionsOfTokensAlone(t *testing.T) {
	s := start(t, 0, nil)
	s.send("POST", "/v1/session", `{}`).refused(409, "no_session")
	s.send("DELETE", "/v1/session", "").refused(409, "no_session")
	made := s.session(`{}`, s.token("acme", access.Read))
	s.send("PUT", "/v1/jobs/a", echo, bearing(made.Secret)...).refused(403, "forbidden")
}

func TestP11_SessionsAreOpenedSeldom(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	token := s.token("default", access.Read)
	for range 20 {
		s.session(`{}`, token)
	}
	r := s.send("POST", "/v1/session", `{}`, bearing(token)...)
	r.refused(429, "rate_limited")
	if after := r.header.Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After %q", after)
	}
	s.send("GET", "/v1/jobs", "", bearing(token)...).is(200)
}

// A page of another site can open none with what a browser sends by itself.
func TestAPageOfAnotherSiteOpensNoSession(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	token := bearing(s.token("default", access.Read))
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		s.send("POST", "/v1/session", `{}`, slices.Concat(token, headers)...).refused(403, "origin_not_allowed")
	}
	s.send("POST", "/v1/session", `{}`, slices.Concat(token, []string{"Content-Type", "text/plain"})...).refused(415, "not_json")
}
