package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A server compresses what is read of it, and its own client reads that.
func TestTheServerAnswersInGzip(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	call := to(t, address)
	var jobs []string
	for i := range 50 {
		jobs = append(jobs, fmt.Sprintf(`{"name": "j%02d", "target": {"http": {"url": "http://127.0.0.1:9/x"}}}`, i))
	}
	call(0, "["+strings.Join(jobs, ",")+"]", "job", "apply", "-f", "-")
	get := func(path string, accept bool) (string, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", map[bool]string{true: "gzip", false: "identity"}[accept])
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Get("Content-Encoding"), body
	}
	_, whole := get("/v1/jobs", false)
	encoding, packed := get("/v1/jobs", true)
	if encoding != "gzip" || len(packed) > len(whole)/4 {
		t.Fatalf("encoding %q, %d bytes of %d", encoding, len(packed), len(whole))
	}
	unpacked, err := gzip.NewReader(strings.NewReader(string(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(unpacked); err != nil || string(body) != string(whole) {
		t.Errorf("unpacked it is %d bytes, %v; want the %d", len(body), err, len(whole))
	}
	if encoding, _ := get("/healthz", true); encoding != "" {
		t.Errorf("a tiny answer has the encoding %s", encoding)
	}
	if listed := decode[[]wire.Job](t, call(0, "", "job", "list", "-o", "json").out); len(listed) != 50 {
		t.Errorf("the client lists %d jobs, want 50", len(listed))
	}
}
