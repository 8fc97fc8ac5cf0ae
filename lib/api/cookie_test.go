package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// tlsPage are headers of what a page of the server sends, over TLS.
func tlsPage(more ...string) []string {
	return append([]string{"TLS", "yes", "Host", "belfry.example", "Sec-Fetch-Site", "same-origin"}, more...)
}

// without leaves headers out.
func without(headers []string, names ...string) []string {
	var kept []string
	for i := 0; i+1 < len(headers); i += 2 {
		if !slices.Contains(names, headers[i]) {
			kept = append(kept, headers[i], headers[i+1])
		}
	}
	return kept
}

// tlsServer is one that others reach, too, and that asks for tokens.
func tlsServer(t *testing.T, more ...func(*api.Config)) *server {
	return start(t, 0, func(cfg *api.Config) {
		asking(t, access.GateConfig{})(cfg)
		cfg.Local = false
		for _, change := range more {
			change(cfg)
		}
	})
}

// signIn opens a session that a cookie carries, and gives the cookie as browsers send it.
func (s *server) signIn(token, body string, headers ...string) (cookie string, made wire.Session) {
	s.t.Helper()
	r := s.send("POST", "/v1/session", body, append(headers, bearing(token)...)...).is(201)
	made = into[wire.Session](r)
	cookies := (&http.Response{Header: r.header}).Cookies()
	if len(cookies) != 1 || made.Secret != "" || strings.Contains(string(r.body), "bel_") {
		s.t.Fatalf("opened with the cookies %v and the body %s, want one cookie that alone has the secret", cookies, r.body)
	}
	c := cookies[0]
	left := time.Duration(c.MaxAge) * time.Second
	if c.Name != "__Host-belfry" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || left <= 0 || left > 12*time.Hour ||
		left > made.ExpiresAt.Sub(made.CreatedAt)+time.Second {
		s.t.Errorf("the cookie is %s", c)
	}
	return c.Name + "=" + c.Value, made
}

const console3 = `{"name": "console", "scopes": ["read", "run", "write"], "cookie": true}`

func TestACookieCarriesTheSessionOfAPage(t *testing.T) {
	s := tlsServer(t)
	admin := s.token("acme", access.Admin)
	cookie, made := s.signIn(admin, console3, tlsPage()...)
	page := tlsPage("Cookie", cookie)
	s.send("PUT", "/v1/jobs/a", echo, page...).is(201)
	s.send("GET", "/v1/jobs/a", "", page...).is(200)
	if told := into[wire.Caller](s.send("GET", "/v1/session", "", page...).is(200)); told.ID != made.ID || told.Tenant != "acme" || !slices.Equal(told.Scopes, []string{"read", "run", "write"}) {
		t.Errorf("a new tab is told %+v", told)
	}
	// It is a token like any other: it has its scopes, and no more of a token than the header.
	s.send("GET", "/v1/tokens", "", page...).refused(403, "forbidden")
	s.send("POST", "/v1/session", `{}`, page...).refused(409, "no_session")

	ended := s.send("DELETE", "/v1/session", "", page...).is(204)
	if got := ended.header.Get("Set-Cookie"); !strings.HasPrefix(got, "__Host-belfry=;") || !strings.Contains(got, "Max-Age=0") || !strings.Contains(got, "Secure") || !strings.Contains(got, "Path=/;") {
		t.Errorf("signed out: Set-Cookie %q, want it to take the cookie back", got)
	}
	s.send("GET", "/v1/jobs", "", page...).refused(401, "unauthenticated")
	s.send("GET", "/v1/jobs", "", bearing(admin)...).is(200)
}

// A header says who calls, where there is one; a wrong one is not made good by a cookie.
func TestTheHeaderCountsBeforeTheCookie(t *testing.T) {
	s := tlsServer(t)
	cookie, _ := s.signIn(s.token("acme", access.Admin), console3, tlsPage()...)
	other := s.token("other", access.Read)
	page := tlsPage("Cookie", cookie)
	if told := into[wire.Caller](s.send("GET", "/v1/session", "", append(page, bearing(other)...)...).is(200)); told.Tenant != "other" {
		t.Errorf("told %+v, want whose token is in the header", told)
	}
	for _, header := range []string{"Bearer x", "Bearer ", "Basic eDp5", "Bearer " + other[:len(other)-1] + "!"} {
		s.send("GET", "/v1/jobs", "", append(page, "Authorization", header)...).refused(401, "unauthenticated")
	}
}

// Browsers send the cookie by themselves. It is to count for what the server's own pages ask, and for nothing else that they send it with.
func TestACookieCountsForPagesOfTheServerAlone(t *testing.T) {
	s := tlsServer(t)
	cookie, _ := s.signIn(s.token("acme", access.Admin), console3, tlsPage()...)
	own := tlsPage("Cookie", cookie)
	s.send("PUT", "/v1/jobs/a", echo, own...).is(201)
	old := without(own, "Sec-Fetch-Site")
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		code    string // "" for what counts
	}{
		{"a page of the server", own, 0, ""},
		{"and its origin", append(slices.Clone(own), "Origin", "https://belfry.example"), 0, ""},
		{"an older browser says the origin alone", append(slices.Clone(old), "Origin", "https://BELFRY.example"), 0, ""},
		{"an older browser says nothing", old, 401, "unauthenticated"},
		{"typed into the address bar", append(slices.Clone(old), "Sec-Fetch-Site", "none"), 401, "unauthenticated"},
		{"another site", append(slices.Clone(old), "Sec-Fetch-Site", "cross-site"), 403, "origin_not_allowed"},
		{"another host of the site", append(slices.Clone(old), "Sec-Fetch-Site", "same-site"), 403, "origin_not_allowed"},
		{"something new that a browser says", append(slices.Clone(old), "Sec-Fetch-Site", "same-party"), 401, "unauthenticated"},
		{"an origin of elsewhere", append(slices.Clone(own), "Origin", "https://evil.example"), 403, "origin_not_allowed"},
		{"an older browser, an origin of elsewhere", append(slices.Clone(old), "Origin", "https://evil.example"), 403, "origin_not_allowed"},
		{"a page without an origin", append(slices.Clone(old), "Origin", "null"), 403, "origin_not_allowed"},
		{"another port", append(slices.Clone(old), "Origin", "https://belfry.example:8443"), 403, "origin_not_allowed"},
		{"the same host without TLS, as somebody on the way can be", append(slices.Clone(old), "Origin", "http://belfry.example"), 401, "unauthenticated"},
		{"a page without TLS that claims to be of the server", append(slices.Clone(own), "Origin", "http://belfry.example"), 401, "unauthenticated"},
		{"a name that was rebound", append(without(own, "Host"), "Host", "evil.example", "Origin", "https://belfry.example"), 403, "origin_not_allowed"},
		{"without TLS", without(own, "TLS"), 401, "unauthenticated"},
		{"without TLS, whatever it says", append(without(own, "TLS"), "X-Forwarded-Proto", "https", "Forwarded", "proto=https", "X-Forwarded-For", "192.0.2.1"), 401, "unauthenticated"},
		{"this machine, whose every port gets it", append(without(own, "Host"), "Host", "localhost:7340"), 401, "unauthenticated"},
		{"this machine by address", append(without(own, "Host"), "Host", "127.0.0.1:7340"), 401, "unauthenticated"},
		{"this machine by a name of its own", append(without(own, "Host"), "Host", "belfry.localhost"), 401, "unauthenticated"},
		{"another name of the cookie", append(without(own, "Cookie"), "Cookie", strings.Replace(cookie, "__Host-", "__host-", 1)), 401, "unauthenticated"},
		{"two of them", append(without(own, "Cookie"), "Cookie", cookie+"; "+cookie), 401, "unauthenticated"},
		{"an empty one", append(without(own, "Cookie"), "Cookie", "__Host-belfry="), 401, "unauthenticated"},
	} {
		for _, ask := range [][3]string{{"GET", "/v1/jobs", ""}, {"POST", "/v1/jobs/a/pause", `{}`}, {"DELETE", "/v1/jobs/zz", ""}, {"GET", "/openapi.json", ""}} {
			r := s.send(ask[0], ask[1], ask[2], c.headers...)
			switch {
			case c.code != "":
				r.refused(c.status, c.code)
			case r.status == 401 || r.status == 403:
				t.Errorf("%s: %s: %d %s, want it to count", c.name, r.what, r.status, r.body)
			}
			if t.Failed() {
				t.Fatal(c.name)
			}
		}
	}
}

// A form can send text in a POST, and no JSON; what it sends is refused by every operation, wherever it comes from.
func TestAFormWritesNothingByACookie(t *testing.T) {
	s := tlsServer(t)
	admin := s.token("acme", access.Admin)
	cookie, _ := s.signIn(admin, console3, tlsPage()...)
	tried := 0
	for _, op := range s.operations(bearing(admin)...) {
		if op.method != "POST" || op.scope == access.Admin || op.scope == access.Work {
			continue
		}
		if !op.body {
			t.Errorf("%s is a POST without a body, which a form can send", op.id)
		}
		for _, media := range []string{"", "text/plain", "text/plain; application/json", "application/x-www-form-urlencoded", "multipart/form-data"} {
			tried++
			s.send(op.method, parameter.ReplaceAllString(op.path, "a"), `{}`, tlsPage("Cookie", cookie, "Content-Type", media)...).refused(415, "not_json")
		}
	}
	if tried < 20 {
		t.Errorf("only %d were tried", tried)
	}
}

// Nobody is given a cookie by a page of elsewhere, nor where it would travel in the open; who asks there gets the secret to keep.
func TestACookieIsGivenToPagesOfTheServerAlone(t *testing.T) {
	s := tlsServer(t)
	token := s.token("acme", access.Read)
	for name, headers := range map[string][]string{
		"a program":                            without(tlsPage(), "Sec-Fetch-Site"),
		"without TLS":                          without(tlsPage(), "TLS"),
		"without TLS, whatever it says":        append(without(tlsPage(), "TLS"), "X-Forwarded-Proto", "https"),
		"this machine":                         append(without(tlsPage(), "Host"), "Host", "localhost"),
		"a page that is the same, in the open": append(without(tlsPage(), "Sec-Fetch-Site"), "Origin", "http://belfry.example"),
	} {
		r := s.send("POST", "/v1/session", console3, append(headers, bearing(token)...)...).is(201)
		if made := into[wire.Session](r); made.Secret == "" || r.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %s %v, want the secret and no cookie", name, r.body, r.header)
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
		r := s.send("POST", "/v1/session", console3, slices.Concat(tlsPage(), bearing(token), headers)...)
		r.refused(403, "origin_not_allowed")
		if r.header.Get("Set-Cookie") != "" {
			t.Errorf("%v gives a cookie", headers)
		}
	}
	r := s.send("POST", "/v1/session", `{}`, append(tlsPage(), bearing(token)...)...).is(201)
	if made := into[wire.Session](r); made.Secret == "" || r.header.Get("Set-Cookie") != "" {
		t.Errorf("who asks for no cookie: %s %v", r.body, r.header)
	}
}

// Behind a proxy that ends TLS the configuration says so, and no header has to.
func TestACookieBehindAProxy(t *testing.T) {
	s := tlsServer(t, func(cfg *api.Config) { cfg.BehindProxy = true })
	behind := without(tlsPage(), "TLS")
	cookie, _ := s.signIn(s.token("acme", access.Read), console3, behind...)
	s.send("GET", "/v1/jobs", "", append(behind, "Cookie", cookie)...).is(200)
	s.send("GET", "/v1/jobs", "", append(without(behind, "Sec-Fetch-Site"), "Cookie", cookie)...).refused(401, "unauthenticated")
}

// On a server that only this machine is to reach, a name that was rebound gets nowhere, with a cookie as without.
func TestACookieOfANameThatWasRebound(t *testing.T) {
	s := tlsServer(t, func(cfg *api.Config) { cfg.Local, cfg.Hosts = true, []string{"belfry.example"} })
	cookie, _ := s.signIn(s.token("acme", access.Read), console3, tlsPage()...)
	s.send("GET", "/v1/jobs", "", tlsPage("Cookie", cookie)...).is(200)
	s.send("GET", "/v1/jobs", "", append(without(tlsPage("Cookie", cookie), "Host"), "Host", "evil.example", "Origin", "https://evil.example")...).refused(403, "host_not_allowed")
}

func TestACookieEndsWithItsSession(t *testing.T) { synctest.Test(t, cookieEndsWithItsSession) }

func cookieEndsWithItsSession(t *testing.T) {
	s := tlsServer(t)
	admin := bearing(s.token("acme", access.Admin))
	token := into[wire.NewToken](s.send("POST", "/v1/tokens", `{"scopes": ["read"], "expires_in": "1h"}`, admin...).is(201))
	for _, revoked := range []func(wire.Session) string{func(m wire.Session) string { return m.ID }, func(m wire.Session) string { return m.Parent }} {
		cookie, made := s.signIn(token.Secret, console3, tlsPage()...)
		if !made.ExpiresAt.Equal(token.ExpiresAt) {
			t.Errorf("it lasts until %s, want %s as its token does", made.ExpiresAt, token.ExpiresAt)
		}
		s.send("GET", "/v1/jobs", "", tlsPage("Cookie", cookie)...).is(200)
		s.send("DELETE", "/v1/tokens/"+revoked(made), "", admin...).is(204)
		s.send("GET", "/v1/jobs", "", tlsPage("Cookie", cookie)...).refused(401, "unauthenticated")
	}
	short, _ := s.signIn(s.token("acme", access.Read), `{"cookie": true, "expires_in": "1m"}`, tlsPage()...)
	time.Sleep(time.Minute - time.Millisecond)
	s.send("GET", "/v1/jobs", "", tlsPage("Cookie", short)...).is(200)
	time.Sleep(time.Millisecond)
	s.send("GET", "/v1/jobs", "", tlsPage("Cookie", short)...).refused(401, "unauthenticated")
}

// All tabs share a cookie. What one asks for is not to be done for the tenant that another has signed in as since.
func TestATabActsForNoOtherSessionThanItsOwn(t *testing.T) {
	s := tlsServer(t)
	_, first := s.signIn(s.token("acme", access.Write), console3, tlsPage()...)
	cookie, second := s.signIn(s.token("other", access.Write), console3, tlsPage()...)
	page := tlsPage("Cookie", cookie)
	for _, ask := range [][3]string{{"PUT", "/v1/jobs/a", echo}, {"GET", "/v1/jobs", ""}, {"DELETE", "/v1/session", ""}} {
		s.send(ask[0], ask[1], ask[2], append(page, "Belfry-Session", first.ID)...).refused(401, "unauthenticated")
	}
	s.send("GET", "/v1/jobs/a", "", page...).refused(404, "job_not_found")
	s.send("PUT", "/v1/jobs/a", echo, append(page, "Belfry-Session", second.ID)...).is(201)
	if told := into[wire.Caller](s.send("GET", "/v1/session", "", page...).is(200)); told.ID != second.ID {
		t.Errorf("a tab that asks anew is told %+v", told)
	}
}
