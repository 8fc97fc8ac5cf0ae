package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/program"
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
		if err := program.Write(filepath.Join(folder, name), []byte(script)); err != nil {
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
