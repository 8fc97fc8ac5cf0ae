package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// desktop is belfry console in this process, and what a browser keeps of it.
type desktop struct {
	t       *testing.T
	base    string // http://127.0.0.1:PORT
	session string
	printed chan string // addresses that are still to be read, closed at the end
	said    *lines      // all that it printed
}

// consoleOf starts belfry console; it ends with the test.
func consoleOf(t *testing.T, args ...string) *desktop {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	d := &desktop{t: t, said: &lines{}, printed: make(chan string, 64)}
	go func() {
		defer close(d.printed)
		for documents := json.NewDecoder(io.TeeReader(reader, d.said)); ; {
			var told struct{ Console string }
			if documents.Decode(&told) != nil {
				return
			}
			d.printed <- told.Console
		}
	}()
	var log lines
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"console", "-o", "json"}, args...), strings.NewReader(""), writer, &log)
		writer.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != 0 {
			t.Errorf("console ended with %d\n%s", code, log.String())
		}
	})
	first := <-d.printed
	if first == "" {
		t.Fatalf("console did not start\n%s", log.String())
	}
	d.base, _, _ = strings.Cut(first, "/console#key=")
	d.session = first // a key, until it is exchanged
	return d
}

func keyOfAddress(address string) string {
	_, key, _ := strings.Cut(address, "#key=")
	return key
}

// signedIn opens a session with the first key. Others are read as they are printed.
func (d *desktop) signedIn(scopes ...string) *desktop {
	d.t.Helper()
	d.session = keyOfAddress(d.session)
	body, err := json.Marshal(wire.SessionRequest{Name: "console", Scopes: scopes})
	if err != nil {
		d.t.Fatal(err)
	}
	made := decode[wire.NewToken](d.t, d.ask("POST", "/v1/session", string(body)).is(201).body)
	d.session = made.Secret
	return d
}

// reply is what an answer was.
type reply struct {
	t      *testing.T
	asked  string
	status int
	header http.Header
	body   string
}

// ask sends a request of this tab. A header without a value is left out.
func (d *desktop) ask(method, path, body string, headers ...string) reply {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.session)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}).Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return reply{d.t, method + " " + path, answer.StatusCode, answer.Header, string(text)}
}

func (r reply) is(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: %d, want %d: %s", r.asked, r.status, status, r.body)
	}
	return r
}

// refused wants a problem document that has all these texts.
func (r reply) refused(status int, code string, says ...string) {
	r.t.Helper()
	var p wire.Problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.header.Get("Content-Type") != "application/problem+json" {
		r.t.Errorf("%s: %d %s is no problem document", r.asked, r.status, r.body)
		return
	}
	if r.status != status || p.Status != status || p.Code != code {
		r.t.Errorf("%s: %d %s, want %d %s: %s", r.asked, r.status, p.Code, status, code, r.body)
	}
	for _, text := range says {
		if !strings.Contains(p.Detail, text) {
			r.t.Errorf("%s: %q does not say %q", r.asked, p.Detail, text)
		}
	}
}

// guardedServer is one that asks for tokens, with one of each kind that is asked for.
func guardedServer(t *testing.T, kinds ...[]string) (address string, tokens []string) {
	t.Helper()
	data := t.TempDir()
	for _, args := range kinds {
		tokens = append(tokens, newToken(t, data, args...).Secret)
	}
	return serving(t, "--data", data, "--auth", "required", "--allow-exec"), tokens
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheConsoleCallsWithTheTokenOfTheProfile(t *testing.T) {
	t.Parallel()
	address, tokens := guardedServer(t, []string{"--scope", "admin"})
	d := consoleOf(t, "--address", address, "--token-file", tokenFile(t, tokens[0])).signedIn("read", "run", "write")
	answers := []reply{
		d.ask("PUT", "/v1/jobs/hello", `{"target": {"exec": {"argv": ["echo", "hello"]}}}`).is(201),
		d.ask("GET", "/v1/jobs", "").is(200),
		d.ask("GET", "/healthz", "").is(200), d.ask("GET", "/readyz", "").is(200), d.ask("GET", "/openapi.json", "").is(200),
		d.ask("POST", "/v1/runs/last", `{"jobs": ["hello"]}`).is(200),
	}
	if !strings.Contains(answers[1].body, `"hello"`) {
		t.Errorf("jobs: %s", answers[1].body)
	}
	started := d.ask("POST", "/v1/jobs/hello/runs", `{}`, "Idempotency-Key", "k").is(202)
	again := d.ask("POST", "/v1/jobs/hello/runs", `{}`, "Idempotency-Key", "k")
	id := decode[wire.Run](t, started.body).ID
	if decode[wire.Run](t, again.body).ID != id || !strings.HasPrefix(started.header.Get("Location"), "/v1/runs/") {
		t.Errorf("started twice under a key: %v %s, %s", started.header, started.body, again.body)
	}
	eventually(t, "the run succeeds", func() (bool, string) {
		got := d.ask("GET", "/v1/runs/"+id, "").is(200)
		return decode[wire.Run](t, got.body).State == "succeeded", got.body
	})
	log := d.ask("GET", "/v1/runs/"+id+"/logs?offset=2", "").is(200)
	if log.body != "llo\n" || log.header.Get("Belfry-Log-Next") == "" || !strings.HasPrefix(log.header.Get("Content-Type"), "text/plain") {
		t.Errorf("log %q, %v", log.body, log.header)
	}
	seen := d.ask("GET", "/v1/jobs", "", "X-Request-Id", "mine").is(200)
	if seen.header.Get("X-Request-Id") != "mine" || seen.header.Get("Date") == "" {
		t.Errorf("headers %v", seen.header)
	}
	d.ask("GET", "/v1/jobs", "", "If-None-Match", seen.header.Get("Etag")).is(304)
	d.ask("DELETE", "/v1/jobs/hello", "", "If-Match", `"other"`).refused(412, "precondition_failed")
	d.ask("GET", "/v1/jobs/none", "").refused(404, "job_not_found")
	answers = append(answers, started, again, log, seen)

	packed := d.ask("GET", "/openapi.json", "", "Accept-Encoding", "br, gzip").is(200)
	unpacked, err := gzip.NewReader(strings.NewReader(packed.body))
	if err != nil || packed.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v, %v", packed.header, err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != answers[4].body {
		t.Errorf("packed it is another, %v", err)
	}

	for _, asked := range [][3]string{{"GET", "/v1/tokens", "admin"}, {"POST", "/v1/tokens", "admin"}, {"GET", "/v1/backup", "admin"}, {"PUT", "/v1/secrets/a", "admin"}, {"POST", "/v1/work/take", "work"}} {
		d.ask(asked[0], asked[1], `{}`).refused(403, "forbidden", "scope "+asked[2])
	}
	for _, got := range answers {
		if strings.Contains(got.body+fmt.Sprint(got.header), tokens[0]) {
			t.Errorf("%s shows the token", got.asked)
		}
	}
	if strings.Contains(d.said.String(), tokens[0]) {
		t.Error("the token is printed")
	}
	d.ask("DELETE", "/v1/session", "").is(204)
	d.ask("GET", "/v1/jobs", "").refused(401, "unauthenticated")
}

func TestAConsoleShowsTheTenantOfItsToken(t *testing.T) {
	t.Parallel()
	address, tokens := guardedServer(t, []string{"--scope", "admin"}, []string{"--scope", "write", "--tenant", "acme"})
	own := consoleOf(t, "--address", address, "--token-file", tokenFile(t, tokens[0])).signedIn("write")
	other := consoleOf(t, "--address", address, "--token-file", tokenFile(t, tokens[1])).signedIn("write")
	own.ask("PUT", "/v1/jobs/payroll", `{"target": {"exec": {"argv": ["true"]}}}`).is(201)
	if got := other.ask("GET", "/v1/jobs", "").is(200); strings.Contains(got.body, "payroll") {
		t.Error(got.body)
	}
	other.ask("GET", "/v1/jobs/payroll", "").refused(404, "job_not_found")
	// A session of one console is none of another.
	own.session = other.session
	own.ask("GET", "/v1/jobs", "").refused(401, "unauthenticated")
}

func TestAnAddressOpensOneTab(t *testing.T) {
	t.Parallel()
	d := consoleOf(t, "--address", dev(t, "--data", t.TempDir()))
	first := keyOfAddress(d.session)
	for _, wrong := range []string{"", "x", first + "x", first[:len(first)-1], strings.ToLower(first)} {
		d.session = wrong
		d.ask("POST", "/v1/session", `{}`).refused(401, "unauthenticated", "terminal")
	}
	d.session = first
	for _, path := range []string{"/v1/jobs", "/v1/none", "/healthz", "/openapi.json", "/nowhere", "/v1//x"} {
		d.ask("GET", path, "").refused(401, "unauthenticated", "terminal") // a key is no session
		d.ask("GET", path, "", "Authorization", "").refused(401, "unauthenticated", "terminal")
	}
	d.ask("POST", "/v1/session", `{}`, "Content-Type", "text/plain").refused(415, "not_json")
	d.ask("POST", "/v1/session", `{`).refused(400, "malformed")
	d.ask("POST", "/v1/session", `{"name": "`+strings.Repeat("x", 8<<10)+`"}`).refused(400, "malformed")
	d.session = "http://x/#key=" + first // what went wrong before has not used it up
	d.signedIn()
	good := d.session
	d.session = first
	d.ask("POST", "/v1/session", `{}`).refused(401, "unauthenticated", "terminal", "one tab")
	d.session = good
	d.ask("GET", "/v1/jobs", "").is(200)
	d.ask("GET", "/v1/jobs", "", "Authorization", "Basic "+good).refused(401, "unauthenticated")

	// Many at once that have the same key: one of them gets in.
	last := <-d.printed
	var in sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			each := *d
			each.session = keyOfAddress(last)
			if each.ask("POST", "/v1/session", `{}`).status == 201 {
				in.Store(i, true)
			}
		})
	}
	all.Wait()
	count := 0
	in.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d of 8 got in by one key", count)
	}
}

func TestNoWebPageOfElsewhereReachesTheConsole(t *testing.T) {
	t.Parallel()
	d := consoleOf(t, "--address", dev(t, "--data", t.TempDir())).signedIn("write")
	host := strings.TrimPrefix(d.base, "http://")
	for name, c := range map[string]struct {
		headers []string
		code    string // "" for what is let through
	}{
		"its own page":                      {[]string{"Origin", d.base, "Sec-Fetch-Site", "same-origin"}, ""},
		"a program":                         {nil, ""},
		"a name that was rebound":           {[]string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, "host_not_allowed"},
		"a name of this network":            {[]string{"Host", "192.168.1.5" + host[strings.Index(host, ":"):]}, "host_not_allowed"},
		"a page of another port":            {[]string{"Origin", "http://127.0.0.1:1"}, "origin_not_allowed"},
		"a page of another site":            {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, "origin_not_allowed"},
		"a page of the same site":           {[]string{"Sec-Fetch-Site", "same-site"}, "origin_not_allowed"},
		"a page that tells no origin":       {[]string{"Origin", "null"}, "origin_not_allowed"},
		"a link to what is no page":         {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, "origin_not_allowed"},
		"a host that only begins like ours": {[]string{"Host", strings.Replace(host, ":", ".evil.example:", 1)}, "host_not_allowed"},
	} {
		for _, asked := range [][3]string{{"GET", "/v1/jobs", ""}, {"PUT", "/v1/jobs/a", `{"target": {"http": {"url": "http://127.0.0.1:1"}}}`}, {"POST", "/v1/session", "{}"}} {
			got := d.ask(asked[0], asked[1], asked[2], c.headers...)
			switch {
			case c.code != "":
				got.refused(403, c.code)
			case got.status == 403:
				t.Errorf("%s: %s: %s", name, got.asked, got.body)
			}
			if got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %s grants an origin", name, got.asked)
			}
		}
	}
	// A link leads to the pages, which hold nothing.
	link := []string{"Authorization", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if page := d.ask("GET", "/console/runs/a~0", "", link...).is(200); !strings.Contains(page.body, `data-key="yes"`) {
		t.Error(page.body)
	}
	for _, path := range []string{"/v1/jobs/a/runs", "/v1/jobs/a/resume", "/v1/runs/last"} {
		for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"} {
			d.ask("POST", path, "{}", "Content-Type", media).refused(415, "not_json")
		}
	}
}

func TestAReadOnlyConsoleChangesNothing(t *testing.T) {
	t.Parallel()
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `{"target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "a", "-f", "-")
	d := consoleOf(t, "--address", address, "--read-only")
	key := d.session
	d.signedIn("read", "run", "write")
	if !strings.Contains(d.said.String(), `"read_only": true`) || key == "" {
		t.Error(d.said.String())
	}
	for _, c := range []struct{ method, path, body, scope string }{
		{"POST", "/v1/jobs/a/runs", `{}`, "run"}, {"POST", "/v1/jobs/a/pause", `{}`, "write"}, {"PUT", "/v1/jobs/b", `{"target": {"exec": {"argv": ["true"]}}}`, "write"},
		{"PATCH", "/v1/jobs/a", `{"description": "x"}`, "write"}, {"DELETE", "/v1/jobs/a", "", "write"}, {"POST", "/v1/runs/cancel", `{}`, "run"},
		{"POST", "/v1/dead-letters/redrive", `{}`, "run"}, {"POST", "/v1/something/new", `{}`, "write"}, {"DELETE", "/healthz", "", "write"},
	} {
		d.ask(c.method, c.path, c.body).refused(403, "forbidden", "--read-only", "scope "+c.scope)
	}
	d.ask("GET", "/v1/jobs/a", "").is(200)
	d.ask("POST", "/v1/runs/last", `{"jobs": ["a"]}`).is(200)
	if got := call(0, "", "run", "list", "-o", "json").out; got != "[]\n" {
		t.Errorf("there is a run: %s", got)
	}
	// Without --read-only a tab has what it asked for.
	whole := consoleOf(t, "--address", address).signedIn("read", "run")
	whole.ask("POST", "/v1/jobs/a/runs", `{}`).is(202)
	whole.ask("DELETE", "/v1/jobs/a", "").refused(403, "forbidden", "session", "asks for write")
	looks := consoleOf(t, "--address", address).signedIn()
	looks.ask("POST", "/v1/jobs/a/runs", `{}`).refused(403, "forbidden", "session", "asks for run")
}

// What each operation of the API asks for is what the console takes it to ask for.
func TestTheConsoleKnowsTheScopeOfEveryOperation(t *testing.T) {
	t.Parallel()
	d := consoleOf(t, "--address", dev(t, "--data", t.TempDir(), "--remote-queue", "far")).signedIn()
	document := decode[struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string
		}
	}](t, d.ask("GET", "/openapi.json", "").is(200).body)
	count := 0
	for path, operations := range document.Paths {
		for method, op := range operations {
			want := access.Read // of what is open
			for _, alternative := range op.Security {
				for _, scopes := range alternative {
					for _, s := range scopes {
						want = access.Scope(s)
					}
				}
			}
			count++
			if got := scopeOf(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path)); got != want {
				t.Errorf("%s %s asks for %s, the console takes it for %s", method, path, want, got)
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d operations were found", count)
	}
}

// raw sends a request line as it stands, which no client would.
func (d *desktop) raw(method, target string) reply {
	d.t.Helper()
	host := strings.TrimPrefix(d.base, "http://")
	conn, err := (&net.Dialer{}).DialContext(d.t.Context(), "tcp", host)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", method, target, host, d.session)
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return reply{d.t, method + " " + target, answer.StatusCode, answer.Header, string(text)}
}

// asked is a server that keeps what it was asked, and answers as it is told.
type askedServer struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []*http.Request
	answer http.HandlerFunc
}

func answering(t *testing.T, answer http.HandlerFunc) *askedServer {
	t.Helper()
	s := &askedServer{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		next := s.answer
		s.mu.Unlock()
		next(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *askedServer) will(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.asked = answer, nil
}

func (s *askedServer) seen() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func emptyPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"items":[]}`)
}

func TestNoPathLeadsBesideTheAPI(t *testing.T) {
	t.Parallel()
	up := answering(t, emptyPage)
	d := consoleOf(t, "--address", up.URL+"/stage").signedIn()
	for _, target := range []string{
		"//v1/jobs", "/v1//jobs", "/v1/jobs/", "/v1/../x", "/v1/%2e%2e/x", "/v1/%2E%2E%2Fx", "/v1/..%2f..%2fx", "/v1/.", "/v1/%2e", "/v1", "/v1/", "/v2/jobs", "/V1/jobs", "/v1%2f..%2fx",
		"/v1/%252e%252e/x", "/v1/tok%2565ns", `/v1/a\..\b`, "/v1/%5c..%5cx", "/", "/metrics", "/healthz/x", "/openapi.json/", "/v1/a;/../../x", "//evil.example/v1/jobs",
	} {
		if got := d.raw("GET", target); got.status != 404 && got.status != 302 {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
	for _, target := range []string{"http://evil.example/v1/jobs", "https://evil.example/v1/jobs"} {
		d.raw("GET", target).refused(403, "host_not_allowed")
	}
	for _, method := range []string{"CONNECT", "TRACE", "OPTIONS", "HEAD", "PURGE"} {
		if got := d.raw(method, "/v1/jobs"); got.status != 405 {
			t.Errorf("%s: %d %s", method, got.status, got.body)
		}
	}
	d.raw("GET", "/v1/jobs?label=a;b").refused(400, "malformed")
	d.raw("GET", "/v1/jobs?label=%zz").refused(400, "malformed")
	if seen := up.seen(); len(seen) != 0 {
		t.Fatalf("%s %s was passed on", seen[0].Method, seen[0].URL)
	}
	d.raw("GET", "/v1/runs/etl~0%2Fparts%2Fload?b=2&a=%2B+%26&c").is(200)
	if got := up.seen(); len(got) != 1 || got[0].RequestURI != "/stage/v1/runs/etl~0%2Fparts%2Fload?b=2&a=%2B+%26&c" {
		t.Errorf("asked as %v", got)
	}
}

func TestOnlyHeadersThatMatterPassTheConsole(t *testing.T) {
	t.Parallel()
	up := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Content-Type": "application/json", "ETag": `"e"`, "Retry-After": "7", "X-Request-Id": "r", "Belfry-Log-Size": "3", "Content-Disposition": `attachment; filename="a"`,
			"Set-Cookie": "a=b", "Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=9", "Proxy-Authenticate": "Basic", "WWW-Authenticate": "Basic", "Server": "x",
			"Access-Control-Allow-Origin": "*", "Content-Security-Policy": "default-src *", "Location": "https://evil.example/", "Refresh": "0;url=https://evil.example", "Clear-Site-Data": `"*"`,
			"Service-Worker-Allowed": "/", "Date": "Mon, 02 Jan 2023 03:04:05 GMT", "Cache-Control": "public, max-age=99",
		} {
			w.Header().Set(name, value)
		}
		fmt.Fprint(w, `{}`)
	})
	d := consoleOf(t, "--address", up.URL, "--token-file", tokenFile(t, "the-token")).signedIn("write")
	got := d.ask("PUT", "/v1/jobs/a", `{"a": 1}`, "Cookie", "c=d", "X-Forwarded-For", "192.0.2.1", "X-Api-Key", "k", "X-Amz-Security-Token", "s", "Forwarded", "for=x", "Proxy-Authorization", "x",
		"Origin", d.base, "Referer", d.base+"/console", "If-Match", `"g"`, "X-Request-Id", "mine").is(200)
	want := map[string]string{"Content-Type": "application/json", "Etag": `"e"`, "Retry-After": "7", "X-Request-Id": "r", "Belfry-Log-Size": "3", "Content-Disposition": `attachment; filename="a"`,
		"Date": "Mon, 02 Jan 2023 03:04:05 GMT", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox", "Content-Length": "2", "Connection": "close"}
	for name, values := range got.header {
		if want[name] != strings.Join(values, ",") {
			t.Errorf("the browser gets %s: %q", name, values)
		}
	}
	if len(got.header) < len(want)-1 {
		t.Errorf("the browser gets only %v", got.header)
	}
	seen := up.seen()[0].Header
	for name, values := range seen {
		if !slices.Contains([]string{"Authorization", "Content-Type", "If-Match", "X-Request-Id", "Accept-Encoding", "User-Agent", "Content-Length"}, name) {
			t.Errorf("the server gets %s: %q", name, values)
		}
	}
	if seen.Get("Authorization") != "Bearer the-token" || seen.Get("X-Request-Id") != "mine" {
		t.Errorf("the server gets %v", seen)
	}
}

func TestWhatTheServerOfAConsoleRefusesIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	up := answering(t, emptyPage)
	const token = "bel_0123456789abcdef_secretsecretsecret"
	d := consoleOf(t, "--address", up.URL, "--token-file", tokenFile(t, token)).signedIn("write")
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		method string
		status int
		code   string
		says   []string
	}{
		{"an unknown token", said(401, "application/problem+json", `{"status": 401, "code": "unauthenticated", "detail": "The token is not one of this server."}`), "GET",
			502, "credential_refused", []string{"profile default", up.URL, "--token-file", "not one of this server"}},
		{"a token that is not enough", said(403, "application/problem+json", `{"status": 403, "code": "forbidden", "detail": "The token has the scope read, and this asks for write."}`), "PUT",
			403, "forbidden", []string{"asks for write", "profile default"}},
		{"who repeats what was sent", said(403, "application/json", `{"message": "bad header Bearer `+token+`"}`, "X-Amzn-Errortype", "OddException"), "GET",
			502, "credential_refused", []string{"profile default"}},
		{"no page of Belfry's", said(200, "text/html", "<script>alert(1)</script>"), "GET", 502, "not_belfry", []string{"text/html", "profile default"}},
		{"an error of a proxy", said(502, "text/html", "<h1>Bad gateway</h1>"), "GET", 502, "not_belfry", []string{"502", "profile default"}},
		{"a firewall", said(403, "text/html", "blocked"), "GET", 502, "not_belfry", []string{"403", "profile default"}},
		{"a proxy that waited too long", said(504, "text/html", "slow"), "PUT", 503, "outcome_unknown", []string{"not known", "profile default"}},
		{"an address that has moved", said(301, "text/html", "", "Location", "https://elsewhere.example/"), "GET", 502, "not_belfry", []string{"https://elsewhere.example/"}},
		{"too many for a gateway", said(429, "application/json", `{"message": "Too Many Requests"}`, "X-Amzn-Errortype", "TooManyRequestsException"), "GET", 429, "rate_limited", []string{"profile default"}},
		{"too many for the server", said(429, "application/problem+json", `{"status": 429, "code": "busy", "detail": "Later."}`, "Retry-After", "9"), "PUT", 429, "busy", []string{"Later."}},
		{"what is wrong with the request", said(422, "application/problem+json", `{"status": 422, "code": "invalid", "detail": "No.", "errors": [{"field": "queue", "message": "want another"}], "later": 1}`), "PUT",
			422, "invalid", nil},
		{"an answer that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			w.WriteHeader(500)
			fmt.Fprint(w, "x")
		}, "PUT", 502, "no_answer", []string{"not known", "profile default"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			up.will(c.answer)
			d := *d
			d.t = t
			got := d.ask(c.method, "/v1/jobs/a", `{}`)
			got.refused(c.status, c.code, c.says...)
			if strings.Contains(got.body+fmt.Sprint(got.header), token) {
				t.Errorf("the token is shown: %s", got.body)
			}
			if len(up.seen()) != 1 {
				t.Errorf("it was asked %d times", len(up.seen()))
			}
			if c.status == 429 && got.header.Get("Retry-After") == "" || c.code == "busy" && got.header.Get("Retry-After") != "9" {
				t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
			}
			if c.code == "invalid" && !strings.Contains(got.body, `"later": 1`) {
				t.Errorf("not as it came: %s", got.body)
			}
		})
	}
	up.will(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(404)
		packed := gzip.NewWriter(w)
		fmt.Fprint(packed, `{"status": 404, "code": "job_not_found", "detail": "there is no job a"}`)
		packed.Close()
	})
	d.ask("GET", "/v1/jobs/a", "", "Accept-Encoding", "gzip").refused(404, "job_not_found")
	up.Close()
	d.ask("GET", "/v1/jobs", "").refused(502, "no_answer", "profile default", "refused", up.URL)
	d.ask("POST", "/v1/jobs/a/runs", "{}").refused(502, "no_answer", "Whether it was done is not known")
}

func said(status int, media, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// Tokens that expire are replaced in their file by others, and a console goes on.
func TestAConsoleReadsItsTokenAnewWhenItIsRefused(t *testing.T) {
	t.Parallel()
	good := "first"
	up := answering(t, nil)
	up.will(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+good {
			said(401, "application/json", `{"message": "Unauthorized"}`, "X-Amzn-Errortype", "UnauthorizedException")(w, r)
			return
		}
		emptyPage(w, r)
	})
	file := tokenFile(t, "first")
	d := consoleOf(t, "--address", up.URL, "--token-file", file).signedIn()
	d.ask("GET", "/v1/jobs", "").is(200)
	up.mu.Lock()
	good = "second"
	up.mu.Unlock()
	d.ask("GET", "/v1/jobs", "").refused(502, "credential_refused", "--token-file", "expired")
	if err := os.WriteFile(file, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new token is used", func() (bool, string) {
		got := d.ask("GET", "/v1/jobs", "")
		return got.status == 200, got.body
	})
}

func TestAConsoleHasBounds(t *testing.T) {
	t.Parallel()
	release, entered := make(chan struct{}), make(chan struct{}, relayRequests)
	up := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/queues" {
			entered <- struct{}{}
			<-release
		}
		emptyPage(w, r)
	})
	d := consoleOf(t, "--address", up.URL).signedIn("write")
	d.ask("POST", "/v1/jobs/batch", `"`+strings.Repeat("x", relayBody)+`"`).refused(413, "too_large", "16 MB")
	if len(up.seen()) != 0 {
		t.Error("it was passed on")
	}
	d.ask("POST", "/v1/jobs/batch", `"`+strings.Repeat("x", relayBody-2)+`"`).is(200)
	var all sync.WaitGroup
	for range relayRequests {
		all.Go(func() { d.ask("GET", "/v1/queues", "") })
		<-entered
	}
	d.ask("GET", "/v1/jobs", "").refused(429, "rate_limited")
	close(release)
	all.Wait()
	d.ask("GET", "/v1/jobs", "").is(200)
}

func TestAConsoleSignsForAStack(t *testing.T) {
	inAWS(t, awsConfig)
	iam := &gateway{region: "eu-central-1", access: "AKIDOPS", secret: "a/secret+key", session: "session"}
	keyed := &gateway{key: "the-api-key"}
	server := dev(t, "--allow-exec", "--data", t.TempDir())
	configured(t, fmt.Sprintf("[profiles.iam]\naddress = %q\nauth = \"iam\"\naws_profile = \"ops\"\n[profiles.key]\naddress = %q\napi_key = \"the-api-key\"\n[profiles.wrong]\naddress = %q\napi_key = \"another-key\"\n",
		fronted(t, iam, server), fronted(t, keyed, server), fronted(t, keyed, server)))
	for profile, g := range map[string]*gateway{"iam": iam, "key": keyed} {
		d := consoleOf(t, "--profile", profile).signedIn("write")
		answers := []reply{
			d.ask("PUT", "/v1/jobs/a."+profile, `{"target": {"exec": {"argv": ["echo", "größe"]}}, "description": "a b+c/d?e&f=ü%20"}`).is(201),
			d.ask("GET", "/v1/jobs?prefix=a.&label=team%3Da%20b%2Bc+d&limit=5", "", "Accept-Encoding", "gzip, br").is(200),
			d.ask("POST", "/v1/jobs/a."+profile+"/runs", `{"payload": {"é": "+ %2F"}}`, "Idempotency-Key", profile).is(202),
			d.ask("GET", "/v1/jobs/a."+profile, "", "If-None-Match", `"x"`).is(200),
		}
		for _, got := range answers {
			for _, secret := range []string{"AKIDOPS", "secret+key", "the-api-key"} {
				if strings.Contains(got.body+fmt.Sprint(got.header), secret) {
					t.Errorf("%s shows %s", got.asked, secret)
				}
			}
		}
		if len(g.passed) < 4 {
			t.Errorf("%s: only %v came through", profile, g.passed)
		}
		page := d.ask("GET", "/console", "", "Authorization", "").is(200)
		if !strings.Contains(page.body, `data-flags="--profile `+profile+`"`) {
			t.Errorf("the commands of the pages name another server: %s", page.body)
		}
	}
	d := consoleOf(t, "--profile", "wrong").signedIn()
	d.ask("GET", "/v1/jobs", "").refused(502, "credential_refused", "profile wrong", "API key", "usage plans")
	iam.ahead = time.Hour
	d = consoleOf(t, "--profile", "iam").signedIn()
	d.ask("GET", "/v1/jobs", "").refused(502, "credential_refused", "profile iam", "NTP")
	t.Setenv("AWS_PROFILE", "")
	configured(t, "[profiles.empty]\naddress = \"https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/belfry\"\nauth = \"iam\"\naws_profile = \"empty\"\n")
	d = consoleOf(t, "--profile", "empty").signedIn()
	d.ask("GET", "/v1/jobs", "").refused(502, "credential_refused", "profile empty", "no AWS credentials")
}

// Command lines can be seen by everybody on the host: the key is in none.
func TestABrowserIsOpenedWithoutTheKeyOnItsCommandLine(t *testing.T) {
	folder := t.TempDir()
	out := filepath.Join(folder, "opened")
	for _, name := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\n{ echo \"$@\"; ls -l \"$1\"; ls -ld \"${1%/*}\"; cat \"$1\"; } >" + out + ".new && mv " + out + ".new " + out + "\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", folder)
	d := consoleOf(t, "--address", "http://127.0.0.1:1", "--open")
	var text []byte
	eventually(t, "a browser is opened", func() (bool, string) {
		var err error
		text, err = os.ReadFile(out)
		return err == nil, fmt.Sprint(err)
	})
	words, rest, _ := bytes.Cut(text, []byte("\n"))
	if strings.Contains(string(words), keyOfAddress(d.session)) || !strings.Contains(string(rest), d.session) {
		t.Errorf("opened with %s, and there\n%s", words, rest)
	}
	if !strings.Contains(string(rest), "-rw-------") || !strings.Contains(string(rest), "drwx------") {
		t.Errorf("others may read it: %s", rest)
	}
}
