package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// desk lets tabs in: the key that was printed last opens a session for one of them. Browsers keep addresses in their history and send
// it to their other devices, which is why no key is good for a second time.
type desk struct {
	now      func() time.Time
	readOnly bool
	profile  string

	mu       sync.Mutex
	key      string
	used     func(next string) // tells the key that is good from now on
	sessions map[[sha256.Size]byte]tab
}

// tab is the session of one.
type tab struct {
	scopes  []access.Scope
	expires time.Time
	shown   wire.Caller
}

// open gives the first key. used is called with each that follows it.
func (d *desk) open(used func(next string)) (key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.key, d.used, d.sessions = rand.Text(), used, map[[sha256.Size]byte]tab{}
	return d.key
}

// take tells whether a key is the one that is good, which it then is no more. A key has 128 random bits: there are too many to try.
func (d *desk) take(key string) bool {
	next := rand.Text()
	d.mu.Lock()
	given, good := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(d.key))
	same := subtle.ConstantTimeCompare(given[:], good[:]) == 1
	if same {
		d.key = next
	}
	d.mu.Unlock()
	if same {
		d.used(next) // which a terminal may hold up
	}
	return same
}

// who gives the session of a request, if it has one.
func (d *desk) who(r *http.Request) (tab, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, is := d.sessions[sha256.Sum256([]byte(bearerOf(r)))]
	return found, is && d.now().Before(found.expires)
}

func (d *desk) end(r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, sha256.Sum256([]byte(bearerOf(r))))
}

// bearerOf is what a request shows, "" for nothing.
func bearerOf(r *http.Request) string {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return ""
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// signIn answers POST /v1/session as a server does of a token. What the console may not do, no session may.
func (d *desk) signIn(w http.ResponseWriter, r *http.Request) {
	var asked wire.SessionRequest
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	if err != nil {
		api.Refuse(w, wire.Problem{Status: http.StatusBadRequest, Code: "malformed", Detail: "Want the JSON object that /openapi.json describes, of 4 KB at most."})
		return
	}
	if !d.take(bearerOf(r)) {
		unknownTab(w, "This address was used, or is of an earlier belfry console. Open the one that the terminal shows last: each opens one tab.")
		return
	}
	scopes := []access.Scope{access.Read}
	for _, s := range access.SessionScopes {
		if !d.readOnly && s != access.Read && slices.Contains(asked.Scopes, string(s)) {
			scopes = append(scopes, s)
		}
	}
	now := d.now().UTC()
	lasts := access.SessionFor
	if given := asked.ExpiresIn.Std(); given > 0 && given < lasts {
		lasts = given
	}
	secret := rand.Text()
	d.mu.Lock()
	for key, t := range d.sessions {
		if !now.Before(t.expires) {
			delete(d.sessions, key)
		}
	}
	made := wire.Session{Secret: secret, Token: wire.Token{ID: strings.ToLower(rand.Text()[:16]), Name: asked.Name, Parent: d.profile, CreatedAt: now, ExpiresAt: now.Add(lasts)}}
	for _, s := range scopes {
		made.Scopes = append(made.Scopes, string(s))
	}
	d.sessions[sha256.Sum256([]byte(secret))] = tab{scopes, made.ExpiresAt, wire.Caller{ID: made.ID, Name: made.Name, Parent: made.Parent, Scopes: made.Scopes, ExpiresAt: made.ExpiresAt}}
	d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(made) // the tab may have gone
}

func unknownTab(w http.ResponseWriter, detail string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="belfry"`)
	api.Refuse(w, wire.Problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: detail})
}

// onlyLook are the paths that change nothing, whatever the method.
var onlyLook = []string{"/v1/session", "/v1/runs/last", "/v1/jobs/batch/export", "/v1/simulate", "/v1/workflows/validate", "/v1/workflows/simulate"}

// scopeOf is what a request asks for, as the API has it. What it does not know asks for the right to change jobs.
func scopeOf(method, path string) access.Scope {
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	switch first := parts[0]; {
	case slices.Contains([]string{"tokens", "secrets", "secret-keys", "backup"}, first):
		return access.Admin
	case first == "work":
		return access.Work
	case method == http.MethodGet, slices.Contains(onlyLook, path):
		return access.Read
	case first == "runs", first == "dead-letters", first == "jobs" && len(parts) == 3 && parts[2] == "runs":
		return access.Run
	}
	return access.Write
}

// refusedFor is why a session may not do what asks for a scope, "" where it may.
func (d *desk) refusedFor(t tab, asked access.Scope) string {
	switch {
	case access.Grants(t.scopes, asked):
		return ""
	case asked == access.Admin || asked == access.Work:
		return "This asks for the scope " + string(asked) + ", which a console never has. Use the command line, with the credential itself."
	case d.readOnly:
		return "This console was started with --read-only, and this asks for the scope " + string(asked) + ". Nothing was done. Start belfry console without it to change something."
	}
	return "The session of this tab has only the scope " + string(t.scopes[0]) + ", and this asks for " + string(asked) + ". Nothing was done."
}
