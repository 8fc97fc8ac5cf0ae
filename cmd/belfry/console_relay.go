package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Bounds of what a console passes on. The time ends before that in which its own server has to answer.
const (
	relayBody     = 16 << 20 // of a request, as of a batch
	relayRefusal  = 1 << 20  // of an answer that is a refusal
	relayRequests = 32       // under way at once
	relayTime     = 55 * time.Second
)

// upstream is the server that a console passes requests on to.
type upstream struct {
	profile string
	whose   string // for people: the server of the profile
	client  atomic.Pointer[client.Client]
	explain func(error) string // why a request was refused, and what to do

	again func() (*client.Client, error) // reads the credential anew; nil where it is in no file
	mu    sync.Mutex
	tried time.Time
}

// renew reads the credential anew after it was refused: files of tokens are replaced before those expire.
func (u *upstream) renew() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.again == nil || time.Since(u.tried) < time.Second {
		return
	}
	u.tried = time.Now()
	if next, err := u.again(); err == nil { // else it is refused again, and says why
		u.client.Store(next)
	}
}

// relay passes the requests of tabs that have signed in on to a server, with the server's credential in place of theirs.
type relay struct {
	*desk
	up     *upstream
	places chan struct{}
}

func newRelay(up *upstream, d *desk) *relay {
	return &relay{desk: d, up: up, places: make(chan struct{}, relayRequests)}
}

// The headers that are passed on, each way. Others are of one connection, or say who somebody is.
var (
	relayedUp   = []string{"Accept", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Traceparent", "X-Request-Id"}
	relayedDown = []string{"Accept-Patch", "Allow", "Content-Disposition", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Etag", "Retry-After", "Vary", "X-Request-Id"}
)

// belfrys are those of the API's own headers, of logs and payloads.
const belfrys = "Belfry-"

// relayedTypes are the media types of the API. A browser is given no other: what answers may not be Belfry.
var relayedTypes = []string{"application/json", "application/problem+json", "application/openapi+json", "application/schema+json", "text/plain", "text/event-stream", "application/octet-stream"}

func (f *relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Nothing that is passed on is a page, whatever it claims to be.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	if r.Method == http.MethodPost && r.URL.Path == "/v1/session" {
		if isJSON(r) {
			f.signIn(w, r)
		} else {
			notJSON(w)
		}
		return
	}
	of, known := f.who(r)
	if !known {
		unknownTab(w, "This tab has no session here, or its session has ended. Open the address that belfry console shows last in its terminal: each opens one tab.")
		return
	}
	switch {
	case r.URL.Path != "/v1/session":
	case r.Method == http.MethodDelete:
		f.end(r)
		w.WriteHeader(http.StatusNoContent)
		return
	case r.Method == http.MethodGet: // of the tab, not of the profile's credential
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(of.shown) // the tab may have gone
		return
	}
	if p := f.check(r, of); p != nil {
		api.Refuse(w, *p)
		return
	}
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	default:
		api.Refuse(w, wire.Problem{Status: http.StatusTooManyRequests, Code: "rate_limited", RetryAfter: schedule.Duration(time.Second),
			Detail: "The console has too many requests under way. Nothing was done."})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, relayBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		api.Refuse(w, wire.Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: "The body is larger than 16 MB."})
	case err != nil:
		api.Refuse(w, wire.Problem{Status: http.StatusBadRequest, Code: "malformed", Detail: "The body broke off."})
	default:
		f.pass(w, r, body)
	}
}

// check is what keeps a request of a tab from being passed on, nil for nothing.
func (f *relay) check(r *http.Request, of tab) *wire.Problem {
	_, malformed := url.ParseQuery(r.URL.RawQuery)
	switch {
	case !relayed(r.URL):
		return &wire.Problem{Status: http.StatusNotFound, Code: "no_such_path", Detail: "A console passes on what is below /v1, and /healthz, /readyz and /openapi.json."}
	case !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method):
		return &wire.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: r.Method + " is not possible here."}
	case malformed != nil:
		return &wire.Problem{Status: http.StatusBadRequest, Code: "malformed", Detail: "The query is none: want NAME=VALUE with & between, each percent-encoded."}
	}
	if why := f.refusedFor(of, scopeOf(r.Method, r.URL.Path)); why != "" {
		return &wire.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: why}
	}
	if sends := r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch; sends && !isJSON(r) {
		return &wire.Problem{Status: http.StatusUnsupportedMediaType, Code: "not_json", Detail: wantJSON}
	}
	return nil
}

// relayed tells the paths that pages ask for. One that is not clean, or would be another one if it were decoded twice, might lead
// elsewhere at the server.
func relayed(at *url.URL) bool {
	if at.Path != path.Clean(at.Path) || strings.ContainsAny(at.Path, `\%`) {
		return false
	}
	return strings.HasPrefix(at.Path, "/v1/") || at.Path == "/healthz" || at.Path == "/readyz" || at.Path == "/openapi.json"
}

const wantJSON = "The body must be JSON, and the header Content-Type: application/json say so."

func isJSON(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || media == "application/merge-patch+json")
}

func notJSON(w http.ResponseWriter) {
	api.Refuse(w, wire.Problem{Status: http.StatusUnsupportedMediaType, Code: "not_json", Detail: wantJSON})
}

// pass sends a request on, once, and its answer back. Whoever asked repeats what may be repeated.
func (f *relay) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	ctx, cancel := context.WithTimeout(r.Context(), relayTime)
	defer cancel()
	header := http.Header{}
	for _, name := range relayedUp {
		if values := r.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	header.Set("Accept-Encoding", "identity") // without the header the client would unpack what comes
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Accept-Encoding", "gzip")
	}
	answer, err := f.up.client.Load().Send(ctx, r.Method, r.URL.EscapedPath(), r.URL.RawQuery, header, body)
	if err != nil {
		api.Refuse(w, f.up.failed(r, err))
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotModified {
		f.refuse(w, r, answer)
		return
	}
	if given := answer.Header.Get("Content-Type"); given != "" {
		if media, _, err := mime.ParseMediaType(given); err != nil || !slices.Contains(relayedTypes, media) {
			api.Refuse(w, f.up.foreign("it answered with "+given+", and not as Belfry does"))
			return
		}
	}
	carry(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	var to io.Writer = w
	if r.URL.Path == changesPath {
		to = flushed{w, http.NewResponseController(w)}
	}
	_, _ = io.Copy(to, answer.Body) // what breaks off is shorter than its length says, or its tab has gone
}

// changesPath is a stream: what comes is passed on as it comes.
const changesPath = "/v1/changes"

// plansPath begins the paths of plans, which servers make and stacks on AWS do not.
const plansPath = "/v1/plan/"

// queuesPath begins the paths of what is in a queue, which SQS does not tell.
const queuesPath = "/v1/queues/"

// pathIsUnknown reports whether a refusal says that the server has no such path. API Gateway says it as of a request without a signature.
func pathIsUnknown(refused *client.Error) bool {
	return refused.Code == "no_such_path" || refused.Gateway == unknownToGateway
}

// unknownToGateway is how API Gateway refuses a path that it does not know.
const unknownToGateway = "MissingAuthenticationTokenException"

type flushed struct {
	io.Writer
	by *http.ResponseController
}

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.by.Flush()
	}
	return n, err
}

func carry(to, from http.Header) {
	for name, values := range from {
		if slices.Contains(relayedDown, name) || strings.HasPrefix(name, belfrys) {
			to[name] = values
		}
	}
	if at := from.Get("Location"); strings.HasPrefix(at, "/v1/") {
		to.Set("Location", at)
	}
}

// refuse passes a refusal on: as it is where it is Belfry's own and about the request, else in words that say what to do. One that is
// about the credential is no 401: the tab's own session is good.
func (f *relay) refuse(w http.ResponseWriter, r *http.Request, answer *http.Response) {
	text, err := refusalText(answer)
	if err != nil {
		api.Refuse(w, f.up.failed(r, &client.Unreachable{Address: f.up.client.Load().Address(), Err: err}))
		return
	}
	maps.DeleteFunc(answer.Header, func(name string, _ []string) bool {
		return strings.HasPrefix(name, "Content-") && name != "Content-Type"
	})
	refused := client.Refused(answer, text)
	carry(w.Header(), answer.Header)
	status, p := answer.StatusCode, refused.Problem
	p.RetryAfter = schedule.Duration(refused.RetryAfter)
	switch {
	case r.URL.Path == changesPath && refused.Gateway != "" && status != http.StatusTooManyRequests: // API Gateway knows no such path
		p = wire.Problem{Status: http.StatusNotFound, Code: "no_such_path", Detail: "A stack on AWS does not tell what changes: ask for what you want to know every ten seconds."}
	case strings.HasPrefix(r.URL.Path, plansPath) && pathIsUnknown(refused):
		p = wire.Problem{Status: http.StatusNotFound, Code: "no_such_path", Detail: "This server makes no plans: a stack on AWS does not. \"belfry plan\" makes them without a server."}
	case strings.HasPrefix(r.URL.Path, queuesPath) && refused.Gateway == unknownToGateway: // a stack on AWS
		p = wire.Problem{Status: http.StatusConflict, Code: "messages_not_listed", Detail: "The queues of this server are in SQS, which cannot list messages. belfry queue list shows how many there are."}
	case status == http.StatusUnauthorized, status == http.StatusForbidden && refused.Gateway != "":
		f.up.renew()
		p = f.up.problem("credential_refused", f.up.explain(refused))
	case status == http.StatusForbidden && p.Code == "forbidden":
		p.Detail += " The console calls the server with the credential of the profile " + f.profile + ": start it with one that has the scope."
	case status == http.StatusTooManyRequests && (p.Code == "" || refused.Gateway != ""):
		p = wire.Problem{Status: status, Code: "rate_limited", Detail: f.up.whose + " takes no more requests for now: " + f.up.explain(refused),
			RetryAfter: schedule.Duration(max(refused.RetryAfter, time.Second))}
	case p.Code != "": // as it came: it may say more than this version knows
		w.WriteHeader(status)
		_, _ = w.Write(text)
		return
	case status == http.StatusGatewayTimeout:
		p = wire.Problem{Status: http.StatusServiceUnavailable, Code: "outcome_unknown", RetryAfter: schedule.Duration(time.Second),
			Detail: f.up.whose + " did not answer in time. " + unknownOutcome}
	default:
		p = f.up.foreign(f.up.explain(refused))
	}
	api.Refuse(w, p)
}

// refusalText is the body of a refusal, unpacked.
func refusalText(answer *http.Response) ([]byte, error) {
	var body io.Reader = answer.Body
	if answer.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = unpacked
	}
	return io.ReadAll(io.LimitReader(body, relayRefusal))
}

const unknownOutcome = "Whether it was done is not known: look before you ask again."

// failed is why nothing came.
func (u *upstream) failed(r *http.Request, err error) wire.Problem {
	var lost *client.Unreachable
	if !errors.As(err, &lost) {
		return u.problem("credential_refused", u.explain(err)) // there is none to call with
	}
	said := u.explain(err)
	if r.Method != http.MethodGet {
		said += ". " + unknownOutcome
	}
	return wire.Problem{Status: http.StatusBadGateway, Code: "no_answer", Detail: "The profile " + u.profile + ": " + strings.TrimSuffix(said, ".") + "."}
}

func (u *upstream) foreign(said string) wire.Problem { return u.problem("not_belfry", said) }

// problem is one of the server or the way there: the console itself works.
func (u *upstream) problem(code, said string) wire.Problem {
	return wire.Problem{Status: http.StatusBadGateway, Code: code, Detail: u.whose + ": " + strings.TrimSuffix(said, ".") + "."}
}
