package compress_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/api/compress"
)

func TestAnswersAreCompressedWhereThatSaves(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", 4*compress.Smallest) + `"}`
	for name, c := range map[string]struct {
		method, accept, media, encoded, body string
		want                                 string // Content-Encoding
	}{
		"Large":             {"GET", "gzip", "application/json", "", large, "gzip"},
		"OfABrowser":        {"GET", "gzip, deflate, br, zstd", "application/json", "", large, "gzip"},
		"Problem":           {"GET", "gzip", "application/problem+json", "", large, "gzip"},
		"Text":              {"GET", "gzip", "text/plain; charset=utf-8", "", large, "gzip"},
		"Tiny":              {"GET", "gzip", "application/json", "", `{"items":[]}`, ""},
		"JustBelow":         {"GET", "gzip", "application/json", "", strings.Repeat("x", compress.Smallest-1), ""},
		"NotAskedFor":       {"GET", "", "application/json", "", large, ""},
		"NotTaken":          {"GET", "gzip;q=0, identity", "application/json", "", large, ""},
		"OtherEncoding":     {"GET", "br", "application/json", "", large, ""},
		"CompressedAlready": {"GET", "gzip", "text/plain", "zstd", large, "zstd"},
		"Backup":            {"GET", "gzip", "application/octet-stream", "", large, ""},
		"Write":             {"POST", "gzip", "application/json", "", large, ""},
	} {
		t.Run(name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.media)
				w.Header().Set("ETag", `W/"tag"`)
				if c.encoded != "" {
					w.Header().Set("Content-Encoding", c.encoded)
				}
				_, _ = io.WriteString(w, c.body)
			})
			w := httptest.NewRecorder()
			r := httptest.NewRequest(c.method, "/", nil)
			if c.accept != "" {
				r.Header.Set("Accept-Encoding", c.accept)
			}
			compress.Answers(handler, func(r *http.Request) bool { return r.Method == "GET" }).ServeHTTP(w, r)
			if got := w.Header().Get("Content-Encoding"); got != c.want {
				t.Fatalf("Content-Encoding %q, want %q", got, c.want)
			}
			if w.Header().Get("ETag") != `W/"tag"` || c.method == "GET" && w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("headers %v, want the ETag as it was, and what the answer varies with", w.Header())
			}
			var body io.Reader = w.Body
			if c.want == "gzip" {
				if w.Body.Len() > len(c.body)/4 {
					t.Errorf("%d bytes of %d", w.Body.Len(), len(c.body))
				}
				unpacked, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = unpacked
			}
			if got, err := io.ReadAll(body); err != nil || string(got) != c.body {
				t.Errorf("got %d bytes, %v; want what was written", len(got), err)
			}
		})
	}
}

// What sends for long sets deadlines of its own, and answers without a body have none.
func TestCompressionKeepsWhatTheConnectionCan(t *testing.T) {
	answered := make(chan error, 1)
	server := httptest.NewServer(compress.Answers(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotModified)
		answered <- http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
	}), func(*http.Request) bool { return true }))
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || len(body) != 0 || answer.StatusCode != http.StatusNotModified || answer.Header.Get("Content-Encoding") != "" {
		t.Errorf("%d, %q, %v, %v; want 304 and nothing", answer.StatusCode, body, answer.Header, err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
