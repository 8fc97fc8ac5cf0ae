package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

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

// A stream is passed on as it comes, and ends with its server. A stack on AWS has none, which is no fault of the credential.
func TestAConsolePassesAStreamOnAsItComes(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	up := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for text := range more {
			fmt.Fprint(w, text)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	d := consoleOf(t, "--address", up.URL).signedIn("read")
	request, err := http.NewRequestWithContext(t.Context(), "GET", d.base+"/v1/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.session)
	go func() { more <- "data: 1\n\n" }()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for i, want := range []string{"data: 1\n", "\n", "data: 2\n", "\n"} {
		if i == 2 {
			more <- "data: 2\n\n"
		}
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	close(more)
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("at its end: %q, %v", rest, err)
	}
	up.will(said(403, "application/json", `{"message": "Missing Authentication Token"}`, "X-Amzn-Errortype", "MissingAuthenticationTokenException"))
	d.ask("GET", "/v1/changes", "").refused(404, "no_such_path", "every ten seconds")
	up.will(said(429, "application/problem+json", `{"status": 429, "code": "rate_limited", "detail": "As many follow."}`, "Retry-After", "45"))
	d.ask("GET", "/v1/changes", "").refused(429, "rate_limited", "As many follow.")
}

// API Gateway refuses a path that it does not know as it refuses a request without a signature. Where only servers have the path, that is no fault
// of the credential.
func TestAConsoleSaysThatAStackMakesNoPlans(t *testing.T) {
	t.Parallel()
	up := answering(t, emptyPage)
	d := consoleOf(t, "--address", up.URL).signedIn("read")
	unknown := said(401, "application/problem+json", `{"title":"Unauthorized","status":401,"code":"unauthenticated","detail":"The request is not signed, or there is nothing at its path."}`,
		"X-Amzn-Errortype", "MissingAuthenticationTokenException")
	up.will(unknown)
	d.ask("GET", "/v1/plan/retry", "").refused(404, "no_such_path", "belfry plan")
	up.will(unknown)
	d.ask("GET", "/v1/queues/default/messages", "").refused(409, "messages_not_listed", "SQS")
	up.will(said(404, "application/problem+json", `{"status": 404, "code": "no_such_path", "detail": "There is nothing at it."}`))
	d.ask("GET", "/v1/queues/default/messages", "").refused(404, "no_such_path", "There is nothing at it.")
	up.will(unknown)
	d.ask("GET", "/v1/jobs", "").refused(502, "credential_refused")
	up.will(said(401, "application/problem+json", `{"title":"Unauthorized","status":401,"code":"unauthenticated","detail":"The signature of the request is wrong."}`,
		"X-Amzn-Errortype", "InvalidSignatureException"))
	d.ask("GET", "/v1/plan/retry", "").refused(502, "credential_refused")
}

// What a tab is told of its session is what it may do, not what the credential may.
func TestATabIsToldOfItsOwnSession(t *testing.T) {
	t.Parallel()
	up := answering(t, emptyPage)
	d := consoleOf(t, "--address", up.URL, "--read-only").signedIn("read", "write")
	if got := d.ask("GET", "/v1/session", "").is(200).body; !strings.Contains(got, `"scopes":["read"]`) || !strings.Contains(got, `"parent":"default"`) || strings.Contains(got, d.session) {
		t.Errorf("told %s", got)
	}
	if len(up.seen()) != 0 {
		t.Error("the server was asked")
	}
}
