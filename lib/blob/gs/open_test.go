package gs_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/blob/gs"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]gs.Address{
		"gs://belfry-blobs":                          {Bucket: "belfry-blobs"},
		"gs://belfry_1.example.org/":                 {Bucket: "belfry_1.example.org"},
		"gs://belfry?endpoint=http://127.0.0.1:4443": {Bucket: "belfry", Endpoint: "http://127.0.0.1:4443"},
	} {
		if got, err := gs.ParseURL(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "gs:", "gs://", "gs:belfry", "s3://belfry", "gs://belfry/folder", "gs://Belfry", "gs://be", "gs://me@belfry",
		"gs://belfry?region=eu", "gs://belfry?endpoint=127.0.0.1:4443", "gs://belfry?endpoint=http://a&endpoint=http://b"} {
		if got, err := gs.ParseURL(text); err == nil || !strings.HasPrefix(err.Error(), "blob") {
			t.Errorf("%q is %+v, %v, want an error that names it", text, got, err)
		}
	}
}

// What is wrong is one line, with what to do.
func TestWhatIsWrongIsSaid(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusNotFound:     "make it, or name another",
		http.StatusForbidden:    "the role Storage Object User",
		http.StatusUnauthorized: "does not accept the credentials",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		_, err := gs.Open(t.Context(), gs.Address{Bucket: "belfry", Endpoint: server.URL})
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d: %v, want %q", status, err, want)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	if _, err := gs.Open(t.Context(), gs.Address{Bucket: "belfry"}); err == nil || !strings.Contains(err.Error(), "has no credentials for Google Cloud") {
		t.Errorf("without credentials: %v", err)
	}
}
