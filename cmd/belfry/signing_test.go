package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// gateway stands for a stage of an API Gateway with IAM authorization, an API key or neither, in front of a server. It checks
// signatures by what AWS has published of Signature Version 4, with none of AWS's code.
type gateway struct {
	region, access, secret, session string // "" for access: nothing need be signed
	key                             string // that callers must show, "" for none
	ahead                           time.Duration
	problems                        bool                        // it answers in the form that the template gives its refusals, without AWS's words
	answer                          func(w http.ResponseWriter) // in place of the server, where it is set

	mu     sync.Mutex
	passed []string // method and path of what was let in
	next   http.Handler
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", err.Error())
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if g.access != "" {
		if kind, why := g.verify(r, body); kind != "" {
			w.Header().Set("Date", time.Now().Add(g.ahead).UTC().Format(http.TimeFormat))
			if g.problems {
				w.Header().Set("Content-Type", "application/problem+json")
				w.Header().Set("x-amzn-ErrorType", kind)
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"title": "Unauthorized", "status": 401, "code": "unauthenticated", "detail": "The request is not right."}`)
				return
			}
			refuse(w, http.StatusForbidden, kind, why)
			return
		}
	}
	if g.key != "" && r.Header.Get("x-api-key") != g.key || !strings.HasPrefix(r.RequestURI, "/Prod/") {
		refuse(w, http.StatusForbidden, "ForbiddenException", "Forbidden")
		return
	}
	if g.answer != nil {
		g.answer(w)
		return
	}
	g.mu.Lock()
	g.passed = append(g.passed, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/Prod"))
	g.mu.Unlock()
	r.Header.Del("Authorization")
	http.StripPrefix("/Prod", g.next).ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("x-amzn-ErrorType", kind)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"message":%q}`, message)
}

const amzTime = "20060102T150405Z"

// verify gives what AWS calls a refusal, and its words, "" where the signature is right.
func (g *gateway) verify(r *http.Request, body []byte) (kind, why string) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if r.Header.Get("Authorization") == "" {
		return "MissingAuthenticationTokenException", "Missing Authentication Token"
	}
	if !ok {
		return "IncompleteSignatureException", "Authorization header requires 'Credential' parameter."
	}
	part := map[string]string{}
	for _, field := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		part[name] = value
	}
	scope := strings.SplitN(part["Credential"], "/", 2)
	if len(scope) != 2 || scope[0] != g.access || r.Header.Get("X-Amz-Security-Token") != g.session {
		return "UnrecognizedClientException", "The security token included in the request is invalid."
	}
	date := r.Header.Get("X-Amz-Date")
	signed, err := time.Parse(amzTime, date)
	if now := time.Now().UTC().Add(g.ahead); err != nil || now.Sub(signed) > 5*time.Minute {
		return "InvalidSignatureException", fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)", date, now.Add(-5*time.Minute).Format(amzTime), now.Format(amzTime))
	} else if signed.Sub(now) > 5*time.Minute {
		return "InvalidSignatureException", fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)", date, now.Add(5*time.Minute).Format(amzTime), now.Format(amzTime))
	}
	if fields := strings.Split(scope[1], "/"); len(fields) != 4 || fields[1] != g.region {
		return "InvalidSignatureException", "Credential should be scoped to a valid region, not '" + fields[1] + "'. "
	}
	if scope[1] != date[:8]+"/"+g.region+"/execute-api/aws4_request" {
		return "InvalidSignatureException", "Credential should be scoped to correct service: 'execute-api'."
	}
	if signature(g.secret, date, scope[1], canonical(r, body, part["SignedHeaders"])) != part["Signature"] {
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
	}
	return "", ""
}

// signature is that of a request in its canonical form.
func signature(secret, date, scope, canonical string) string {
	key := []byte("AWS4" + secret)
	for _, step := range strings.Split(scope, "/") {
		key = mac(key, step)
	}
	return hex.EncodeToString(mac(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, hexSum(canonical)}, "\n")))
}

// canonical is the request in the form that is signed.
func canonical(r *http.Request, body []byte, signedHeaders string) string {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	var pairs []string
	for _, pair := range strings.Split(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		plainName, _ := url.QueryUnescape(name)
		plainValue, _ := url.QueryUnescape(value)
		pairs = append(pairs, encoded(plainName, "")+"="+encoded(plainValue, ""))
	}
	slices.Sort(pairs)
	var headers strings.Builder
	names := strings.Split(signedHeaders, ";")
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	for _, must := range []string{"host", "x-amz-date"} {
		if !slices.Contains(names, must) {
			return "unsigned " + must
		}
	}
	return strings.Join([]string{r.Method, encoded(path, "/"), strings.Join(pairs, "&"), headers.String(), signedHeaders, hexSum(string(body))}, "\n")
}

// encoded escapes all bytes but those that RFC 3986 reserves for nothing, and what is let through.
func encoded(text, through string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		if b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || strings.IndexByte("-._~"+through, b) >= 0 {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// The check is itself held to the examples of AWS's own test suite for Signature Version 4.
func TestTheCheckOfSignaturesIsAWSs(t *testing.T) {
	const secret, date, scope = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830T123600Z", "20150830/us-east-1/service/aws4_request"
	for name, c := range map[string]struct {
		method, uri, body, contentType, signed, want string
	}{
		"get-vanilla":       {"GET", "/", "", "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-utf8":          {"GET", "/\u1234", "", "", "host;x-amz-date", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		"get-vanilla-query": {"GET", "/?Param2=value2&Param1=value1", "", "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"post-vanilla":      {"POST", "/", "", "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded": {"POST", "/", "Param1=value1", "application/x-www-form-urlencoded", "content-type;host;x-amz-date",
			"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		r := &http.Request{Method: c.method, RequestURI: c.uri, Host: "example.amazonaws.com", Header: http.Header{"X-Amz-Date": {date}, "Content-Type": {c.contentType}}}
		if got := signature(secret, date, scope, canonical(r, []byte(c.body), c.signed)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// fronted puts a gateway in front of a server, and gives the address of its stage.
func fronted(t *testing.T, g *gateway, server string) string {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	g.next = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0)} // a worker that stops leaves a request
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	return front.URL + "/Prod"
}

// inAWS is the environment of somebody who is signed in there, and in nothing else.
func inAWS(t *testing.T, config string) {
	t.Helper()
	for _, set := range os.Environ() {
		if name, _, _ := strings.Cut(set, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	path := filepath.Join(t.TempDir(), "aws")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", path)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path+"-none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

const awsConfig = `[profile ops]
region = eu-central-1
aws_access_key_id = AKIDOPS
aws_secret_access_key = a/secret+key
aws_session_token = session
[profile empty]
region = eu-central-1
`

func TestEveryCommandSignsWhatItSends(t *testing.T) {
	inAWS(t, awsConfig)
	g := &gateway{region: "eu-central-1", access: "AKIDOPS", secret: "a/secret+key", session: "session"}
	address := fronted(t, g, dev(t, "--allow-exec", "--data", t.TempDir(), "--remote-queue", "far"))
	configured(t, "")
	for _, set := range [][]string{{"address", address}, {"auth", "iam"}, {"aws_profile", "ops"}} {
		if got := belfry(t, "", append([]string{"config", "set"}, set...)...); got.code != 0 {
			t.Fatal(got.errors)
		}
	}
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("a.yaml", "name: a.b_c-1\ntarget: {exec: {argv: [echo, \"größe\"]}}\nlabels: {team: billing}\n---\nname: fails\ntarget: {exec: {argv: [\"false\"]}}\nretry: {max_attempts: 1}\n")
	table := write("crontab", "5 4 * * * echo hello\n")
	do := func(code int, stdin string, args ...string) outcome {
		t.Helper()
		got := belfry(t, stdin, args...)
		if got.code != code {
			t.Errorf("%v: %d, want %d\n%s%s", args, got.code, code, got.out, got.errors)
		}
		return got
	}
	do(0, "", "job", "apply", "-f", filepath.Join(folder, "a.yaml")) // a batch
	do(0, `{"target": {"exec": {"argv": ["true"]}}, "description": "a b+c/d?e&f=ü%20"}`, "job", "apply", "single", "-f", "-")
	do(0, "", "job", "list", "--prefix", "a.", "--label", "team=billing")
	do(0, "", "job", "get", "a.b_c-1")
	do(exitNotFound, "", "job", "get", "none")
	do(0, "", "job", "pause", "single", "--reason", "a b&c=d/é")
	do(0, "", "job", "resume", "single")
	do(0, "", "job", "trigger", "a.b_c-1", "--payload", `{"é": "+ %2F"}`, "--key", "a-key/with:all+of%it&=?", "--wait")
	do(exitOutcome, "", "job", "trigger", "fails", "--wait")
	later := decode[struct{ ID string }](t, do(0, "", "job", "trigger", "single", "--delay", "2h", "-o", "json").out)
	do(0, "", "run", "get", later.ID)
	do(0, "", "run", "list", "--from", "2026-01-01 10:00", "--state", "scheduled,dead", "-n", "7")
	do(0, "", "run", "retry", "--error", "exit status 1 & more+/é", "--dry-run")
	do(0, "", "run", "cancel", later.ID, "--reason", "not, now")
	do(0, "", "run", "logs", decode[[]struct{ ID string }](t, do(0, "", "run", "list", "--job", "a.b_c-1", "-o", "json").out)[0].ID)
	do(0, "", "dead-letter", "list")
	do(0, "", "dead-letter", "redrive", "--all", "--yes")
	do(0, "", "queue", "list")
	do(0, "", "queue", "workers")
	do(0, "", "import", "crontab", table, "--timezone", "UTC")
	do(0, "", "export", filepath.Join(folder, "all.json"))
	do(0, "", "backup", filepath.Join(folder, "backup"))
	do(0, "", "token", "list")
	do(0, "", "secret", "list")
	do(0, "", "job", "delete", "a.b_c-1", "--yes")
	if got := belfry(t, "", "doctor").out; !strings.Contains(got, "is ready") {
		t.Errorf("doctor says\n%s", got)
	}
	if got := do(0, "", "__complete", "job", "get", "si").out; !strings.Contains(got, "single") {
		t.Errorf("completed as %s", got)
	}
	name, stop := working(t, "--queue", "far")
	eventually(t, "a worker by signed requests", func() (bool, string) {
		got := belfry(t, "", "queue", "workers").out
		return strings.Contains(got, name), got
	})
	if code, log := stop(); code != 0 {
		t.Errorf("the worker ended with %d\n%s", code, log)
	}
	shown := do(0, "", "config", "show").out
	if !strings.Contains(shown, "iam ") || strings.Contains(shown, "secret+key") {
		t.Errorf("shown as\n%s", shown)
	}
	if got := do(0, "", "config", "profiles").out; !strings.Contains(got, "iam") {
		t.Errorf("listed as\n%s", got)
	}
	for _, want := range []string{"POST /v1/jobs/batch", "GET /v1/backup", "POST /v1/dead-letters/redrive", "POST /v1/work/take"} {
		if !slices.Contains(g.passed, want) {
			t.Errorf("%s was not sent; let in was %q", want, slices.Compact(slices.Sorted(slices.Values(g.passed))))
		}
	}
}

func TestASignatureThatIsRefusedIsExplainedInOneLine(t *testing.T) {
	inAWS(t, awsConfig)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"items": []}`)) }))
	defer server.Close()
	right := gateway{region: "eu-central-1", access: "AKIDOPS", secret: "a/secret+key", session: "session"}
	says := func(kind, message string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { refuse(w, http.StatusForbidden, kind, message) }
	}
	for name, c := range map[string]struct {
		change func(*gateway)
		args   []string
		code   int
		says   []string
	}{
		"Right":       {func(*gateway) {}, nil, 0, nil},
		"SecretKey":   {func(g *gateway) { g.secret = "other" }, nil, exitRefused, []string{"the secret key of the credentials, of the AWS profile ops, is wrong"}},
		"AccessKey":   {func(g *gateway) { g.access = "other" }, nil, exitRefused, []string{"AWS does not know the credentials, of the AWS profile ops"}},
		"ClockBehind": {func(g *gateway) { g.ahead = time.Hour }, nil, exitRefused, []string{"this host's clock is", "behind AWS's, set it by NTP"}},
		"ClockAhead":  {func(g *gateway) { g.ahead = -time.Hour }, nil, exitRefused, []string{"this host's clock is", "ahead of AWS's, set it by NTP"}},
		"Region":      {func(*gateway) {}, []string{"--aws-region", "us-west-2"}, exitRefused, []string{"not in", "us-west-2", "aws_region"}},
		"Expired": {func(g *gateway) {
			g.answer = says("ExpiredTokenException", "The security token included in the request is expired")
		}, nil, exitRefused, []string{"have expired", "aws sso login"}},
		"NoRight": {func(g *gateway) {
			g.answer = says("AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized to perform: execute-api:Invoke on resource: r")
		}, nil, exitRefused, []string{"lack the right execute-api:Invoke", "user/x"}},
		"NoSuchPath": {func(g *gateway) {
			g.answer = says("MissingAuthenticationTokenException", "Missing Authentication Token")
		}, nil, exitRefused, []string{"/belfry?"}},
		"NotSigned":    {func(*gateway) {}, []string{"--auth", "token"}, exitRefused, []string{"config set auth iam"}},
		"NoProfile":    {func(*gateway) {}, []string{"--aws-profile", "gone"}, exitRefused, []string{`there is no AWS profile "gone"`}},
		"NoCredential": {func(*gateway) {}, []string{"--aws-profile", "empty"}, exitRefused, []string{"there are no AWS credentials to sign with, of the AWS profile empty", "aws sso login"}},
		"Trouble":      {func(g *gateway) { g.answer = says("WAFFilteredException", "filtered") }, nil, exitRefused, []string{"API Gateway answered 403 Forbidden in the server's place: filtered"}},
	} {
		check := func(t *testing.T, problems bool) {
			g := &gateway{region: right.region, access: right.access, secret: right.secret, session: right.session, problems: problems}
			c.change(g)
			address := fronted(t, g, server.URL)
			got := belfry(t, "", append([]string{"job", "list", "--address", address, "--auth", "iam", "--aws-profile", "ops"}, c.args...)...)
			if got.code != c.code || c.code != 0 && strings.Count(got.errors, "\n") != 1 {
				t.Errorf("%d, want %d and one line: %s", got.code, c.code, got.errors)
			}
			for _, text := range c.says {
				if !strings.Contains(got.errors, text) {
					t.Errorf("says %s, want %q", got.errors, text)
				}
			}
		}
		t.Run(name, func(t *testing.T) { check(t, false) })
		t.Run(name+"InAStack", func(t *testing.T) { check(t, true) })
	}
	far := fronted(t, &gateway{region: right.region, access: right.access, secret: "other", session: right.session}, server.URL)
	if got := belfry(t, "", "doctor", "--address", far, "--auth", "iam", "--aws-profile", "ops"); got.code != exitFailed || !strings.Contains(got.out, "secret key of the credentials, of the AWS profile ops, is wrong") {
		t.Errorf("doctor says %d\n%s", got.code, got.out)
	}
	t.Setenv("AWS_PROFILE", "ops")
	g := &gateway{region: right.region, access: right.access, secret: right.secret, session: right.session}
	address := fronted(t, g, server.URL)
	t.Setenv("BELFRY_CLIENT_AUTH", "iam")
	t.Setenv("BELFRY_AUTH", "required") // of a server, and no matter to its callers
	if got := belfry(t, "", "job", "list", "--address", address); got.code != 0 {
		t.Errorf("by the environment alone: %d %s", got.code, got.errors)
	}
	if got := belfry(t, "", "job", "list", "--address", "http://127.0.0.1:1/Prod", "--aws-profile", "regionless"); got.code != exitRefused {
		t.Errorf("%d %s", got.code, got.errors)
	}
}

func TestTheRegionIsInTheAddress(t *testing.T) {
	for host, region := range map[string]string{
		"abc.execute-api.eu-central-1.amazonaws.com":            "eu-central-1",
		"ABC.execute-api.US-EAST-1.amazonaws.com":               "us-east-1",
		"abc.execute-api.cn-north-1.amazonaws.com.cn":           "cn-north-1",
		"vpce-1-x.execute-api.us-gov-west-1.vpce.amazonaws.com": "us-gov-west-1",
		"jobs.example.org": "",
		"127.0.0.1":        "",
	} {
		if got := regionOfAPI(host); got != region {
			t.Errorf("%s: %q, want %q", host, got, region)
		}
	}
}

func TestAnAPIKeyOpensTheGateway(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"items": []}`)) }))
	defer server.Close()
	g := &gateway{key: "the-key"}
	address := fronted(t, g, server.URL)
	path := configured(t, "")
	set := func(stdin string, args ...string) {
		t.Helper()
		if got := belfry(t, stdin, append([]string{"config", "set"}, args...)...); got.code != 0 {
			t.Fatal(got.errors)
		}
	}
	list := func(code int, says string, args ...string) {
		t.Helper()
		got := belfry(t, "", append([]string{"job", "list"}, args...)...)
		if got.code != code || !strings.Contains(got.errors, says) || strings.Contains(got.errors, "the-key") || code == exitRefused && strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%v: %d %s, want %d and %q", args, got.code, got.errors, code, says)
		}
	}
	set("", "address", address)
	list(exitRefused, "the API wants a key")
	set("the-key\n", "api_key", "-") // two commands, and it works
	list(0, "")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file with a key: %v, %v", info, err)
	}
	if got := belfry(t, "", "config", "set", "api_key", "x"); got.code != exitUsage || !strings.Contains(got.errors, "want -") {
		t.Errorf("a key on the command line: %d %q", got.code, got.errors)
	}
	if got := belfry(t, "", "config", "show").out; strings.Contains(got, "the-key") || !strings.Contains(got, "api_key       ********") {
		t.Errorf("shown as\n%s", got)
	}
	list(exitRefused, "no API key was sent, since the API key of profile default is for "+address, "--address", strings.Replace(address, "127.0.0.1", "[::ffff:127.0.0.1]", 1))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list(exitRefused, "the API key, from flag --api-key-file, is of none of the API's usage plans", "--api-key-file", file)
	t.Setenv("BELFRY_TOKEN", "jwt")
	list(exitRefused, "wants a key") // what the environment gives goes before the file
	list(0, "", "--auth", "api-key")
	t.Setenv("BELFRY_API_KEY", "the-key")
	list(exitUsage, "a token (environment BELFRY_TOKEN) and an API key (environment BELFRY_API_KEY) are both set")
	list(exitUsage, `auth "both": want token, api-key, or iam`, "--auth", "both")

	g.key, g.answer = "", func(w http.ResponseWriter) {
		refuse(w, http.StatusUnauthorized, "UnauthorizedException", "Unauthorized")
	}
	list(exitRefused, "the API refuses the token, from environment BELFRY_TOKEN: it has expired", "--auth", "token")
	tries := 0
	g.answer = func(w http.ResponseWriter) {
		if tries++; tries == 1 {
			refuse(w, http.StatusTooManyRequests, "TooManyRequestsException", "Too Many Requests")
			return
		}
		w.Write([]byte(`{"items": []}`))
	}
	if list(0, "", "--auth", "api-key"); tries != 2 {
		t.Errorf("asked %d times, want a second time after a refusal for load", tries)
	}
	g.answer = func(w http.ResponseWriter) {
		refuse(w, http.StatusTooManyRequests, "LimitExceededException", "Limit Exceeded")
	}
	if got := belfry(t, "", "job", "list", "--auth", "api-key"); got.code != exitFailed || !strings.Contains(got.errors, "quota of the API key's usage plan is used up") {
		t.Errorf("%d %s", got.code, got.errors)
	}
}
