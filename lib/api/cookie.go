package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
)

// SessionCookie carries the secret of a session where scripts cannot read it. Browsers take a cookie of such a name from the host itself alone,
// over TLS, for all of its paths.
const SessionCookie = "__Host-belfry"

// sessionHeader names the session that a page takes itself to have. All tabs of a browser share a cookie, so another of them may have signed in as
// somebody else since: what a tab asks for then is not for the new one to do.
const sessionHeader = "Belfry-Session"

type keepsKey struct{}

// keepsCookie tells whether a session may be put into a cookie for who asks.
func keepsCookie(ctx context.Context) bool { return ctx.Value(keepsKey{}) != nil }

// ofPage tells whether a page of this server asks, over TLS, at a host of its own: then a cookie may carry its session. A browser says so itself in
// Sec-Fetch-Site, which no script can set, and an older one by the Origin. Where neither does, a page of elsewhere may have sent the request.
// The names of loopback are every program's of this machine: browsers would send the cookie to them all.
func (a *api) ofPage(r *http.Request) bool {
	if r.TLS == nil && !a.BehindProxy || loopback(r.Host) || strings.HasSuffix(hostOf(r.Host), ".localhost") {
		return false
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if from, err := url.Parse(origin); err != nil || from.Scheme != "https" || !strings.EqualFold(from.Host, r.Host) {
			return false
		}
	}
	site := r.Header.Values("Sec-Fetch-Site")
	if len(site) == 0 {
		return len(origins) > 0
	}
	return len(site) == 1 && site[0] == "same-origin"
}

// byCookie is the token in the cookie of a request, "" for none that counts.
func (a *api) byCookie(r *http.Request) (text string, refused *problem) {
	found := r.CookiesNamed(SessionCookie)
	if len(found) == 0 || !a.ofPage(r) {
		return "", nil
	}
	if len(found) > 1 {
		return "", unauthenticated("There are several cookies "+SessionCookie+", of which one may be somebody else's. Sign in again.", true)
	}
	text = found[0].Value
	if of := r.Header.Get(sessionHeader); of != "" && of != access.IDOf(text) {
		return "", unauthenticated("This browser has another session than the page that asks: another tab has signed in since. Nothing was done.", true)
	}
	return text, nil
}

// sessionCookie is the cookie that holds a session until it expires; without a secret, it takes back the one that is there.
func sessionCookie(secret string, lasts time.Duration) string {
	seconds := max(int(lasts/time.Second), 1)
	if secret == "" {
		seconds = -1
	}
	return (&http.Cookie{Name: SessionCookie, Value: secret, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}).String()
}
