package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/console"
)

func mounted(t *testing.T, cfg console.Config) http.Handler {
	t.Helper()
	h, err := console.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// answer is what a request gets.
type answer struct {
	status int
	header http.Header
	text   string
}

func ask(h http.Handler, method, path string, headers map[string]string) answer {
	r := httptest.NewRequest(method, path, nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestEveryPathOfThePagesIsTheShell(t *testing.T) {
	h := mounted(t, console.Config{})
	for _, path := range []string{"/console", "/console/", "/console/jobs/a%2Fb", "/console/runs/x~0?tab=result", "/console/nothing/of/that/kind"} {
		got := ask(h, "GET", path, nil)
		if got.status != 200 || !strings.Contains(got.text, `data-prefix="/console"`) || got.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}
	for _, path := range []string{"/", "/consoles", "/v1/jobs"} {
		if got := ask(h, "GET", path, nil); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

func unpacked(t *testing.T, from io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var asset = regexp.MustCompile(`(?:src|href)="(/[^"]+)"`)

func TestAssetsAreKeptForeverUnderANameThatChangesWithThem(t *testing.T) {
	h := mounted(t, console.Config{Prefix: "/ops/belfry", API: "/api"})
	page := ask(h, "GET", "/ops/belfry", nil).text
	if !strings.Contains(page, `data-prefix="/ops/belfry" data-api="/api"`) || strings.Contains(page, "{{") {
		t.Error(page)
	}
	found := asset.FindAllStringSubmatch(page, -1)
	if len(found) != 3 {
		t.Fatalf("%q", found)
	}
	for _, at := range found {
		got := ask(h, "GET", at[1], nil)
		if got.status != 200 || !strings.Contains(got.header.Get("Cache-Control"), "immutable") || strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %v", at[1], got.status, got.header)
		}
		plain := got.text
		packed := ask(h, "GET", at[1], map[string]string{"Accept-Encoding": "br, gzip;q=0.5"})
		reader, err := gzip.NewReader(strings.NewReader(packed.text))
		if err != nil || packed.header.Get("Content-Encoding") != "gzip" || unpacked(t, reader) != plain {
			t.Errorf("%s: packed it is another: %v", at[1], err)
		}
		if got := ask(h, "GET", at[1], map[string]string{"Accept-Encoding": "gzip;q=0"}); got.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: packed for who cannot unpack it", at[1])
		}
	}
	for _, path := range []string{"/ops/belfry/a/000000000000/app.js", "/ops/belfry/a/", "/ops/belfry/a/../console.go", strings.TrimSuffix(found[0][1], "style.css") + "index.html"} {
		if got := ask(h, "GET", path, nil); got.status != 404 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

func TestTheShellIsReachedByALinkFromElsewhereAndNothingElseIs(t *testing.T) {
	h := mounted(t, console.Config{})
	script := asset.FindStringSubmatch(ask(h, "GET", "/console", nil).text)[1]
	for name, row := range map[string]struct {
		method, path     string
		site, mode, dest string
		want             int
	}{
		"a link":                    {"GET", "/console/runs/a~0", "cross-site", "navigate", "document", 200},
		"a link of another port":    {"GET", "/console", "same-site", "navigate", "document", 200},
		"a frame":                   {"GET", "/console", "cross-site", "navigate", "iframe", 403},
		"an object":                 {"GET", "/console", "cross-site", "navigate", "object", 403},
		"a script's request":        {"GET", "/console", "cross-site", "cors", "empty", 403},
		"a script's blind request":  {"GET", "/console", "cross-site", "no-cors", "empty", 403},
		"a form":                    {"POST", "/console", "cross-site", "navigate", "document", 405},
		"a script tag":              {"GET", script, "cross-site", "no-cors", "script", 403},
		"a link to an asset":        {"GET", script, "cross-site", "navigate", "document", 403},
		"its own page":              {"GET", script, "same-origin", "no-cors", "script", 200},
		"an address that was typed": {"GET", "/console", "none", "navigate", "document", 200},
		"a program":                 {"GET", "/console", "", "", "", 200},
		"only the head":             {"HEAD", "/console", "", "", "", 200},
		"a change":                  {"PUT", "/console", "same-origin", "cors", "empty", 405},
	} {
		headers := map[string]string{}
		if row.site != "" {
			headers = map[string]string{"Sec-Fetch-Site": row.site, "Sec-Fetch-Mode": row.mode, "Sec-Fetch-Dest": row.dest}
		}
		if got := ask(h, row.method, row.path, headers); got.status != row.want {
			t.Errorf("%s: %d, want %d", name, got.status, row.want)
		}
	}
}

func TestEveryAnswerHasThePolicy(t *testing.T) {
	h := mounted(t, console.Config{})
	for _, path := range []string{"/console", "/console/a/x/app.js", "/elsewhere"} {
		got := ask(h, "GET", path, nil).header
		policy := got.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: no %s in %q", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: %q", path, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.Get(name))
			}
		}
	}
}

func TestAPlaceThatCannotBeIsRefused(t *testing.T) {
	for _, prefix := range []string{"/", "console", "/console/", "//x", "/a/../b"} {
		if _, err := console.New(console.Config{Prefix: prefix}); err == nil {
			t.Errorf("Prefix %q is taken", prefix)
		}
		if _, err := console.New(console.Config{API: prefix}); err == nil {
			t.Errorf("API %q is taken", prefix)
		}
	}
	page := ask(mounted(t, console.Config{Prefix: `/x"><script>`}), "GET", `/x%22%3E%3Cscript%3E`, nil).text
	if strings.Contains(page, `"><script>`) {
		t.Error(page)
	}
}

func TestThePageIsToldHowItIsSignedInTo(t *testing.T) {
	for _, c := range []struct {
		cfg  console.Config
		want string
	}{
		{console.Config{}, `data-key="" data-flags=""`},
		{console.Config{Key: true, Flags: `--profile "a"`}, `data-key="yes" data-flags="--profile &#34;a&#34;"`},
	} {
		if page := ask(mounted(t, c.cfg), "GET", "/console", nil).text; !strings.Contains(page, c.want) {
			t.Errorf("no %s in %s", c.want, page)
		}
	}
}

// The shell is what every page needs; the others are loaded when somebody goes to them.
func TestTheShellAndThePagesAreSmall(t *testing.T) {
	h := mounted(t, console.Config{})
	packed := map[string]string{"Accept-Encoding": "gzip"}
	page := ask(h, "GET", "/console", nil).text
	shell := len(ask(h, "GET", "/console", packed).text)
	folder := ""
	for _, at := range asset.FindAllStringSubmatch(page, -1) {
		shell += len(ask(h, "GET", at[1], packed).text)
		folder = path.Dir(at[1])
	}
	entries, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	all, largest := shell, 0
	for _, entry := range entries {
		at := folder + "/" + entry.Name()
		if path.Ext(at) != ".js" || strings.Contains(page, at) {
			continue
		}
		size := len(ask(h, "GET", at, packed).text)
		all, largest = all+size, max(largest, size)
	}
	for _, c := range []struct {
		what        string
		size, bound int
	}{{"the shell", shell, 60 << 10}, {"the largest page, with the shell", shell + largest, 120 << 10}, {"all pages", all, 200 << 10}} {
		if t.Logf("%s: %d bytes, packed", c.what, c.size); c.size > c.bound {
			t.Errorf("%s: %d bytes, packed; %d is the bound", c.what, c.size, c.bound)
		}
	}
}
