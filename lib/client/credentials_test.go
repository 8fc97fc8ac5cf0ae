package client_test

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/client"
)

func TestATokenIsSentOverTLSToTheServerThatItIsForAlone(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirection was followed, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer blf_x" {
			t.Errorf("Authorization: %q", got)
		}
		if r.URL.Path == "/v1/queues" {
			http.Redirect(w, r, other.URL+"/v1/queues", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(`{"version": "v7"}`))
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	made, err := client.New(client.Config{Address: server.URL, Token: "blf_x", RootCAs: roots, NewKey: func() string { return "k" }, Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	if health, err := made.Ready(t.Context()); err != nil || health.Version != "v7" {
		t.Errorf("got %+v, %v", health, err)
	}
	if _, err := made.Queues(t.Context()); err == nil || !strings.Contains(err.Error(), "it sends to "+other.URL+"/v1/queues") {
		t.Errorf("redirected: %v", err)
	}

	plain, err := client.New(client.Config{Address: strings.Replace(server.URL, "https:", "http:", 1), NewKey: func() string { return "k" }, Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "want https://") {
		t.Errorf("without TLS: %v", err)
	}

	_, err = client.New(client.Config{Address: strings.Replace(server.URL, "https://", "https://ann:pass@", 1), NewKey: func() string { return "k" }})
	if err == nil || !strings.Contains(err.Error(), "without user and password") || strings.Contains(err.Error(), "pass@") {
		t.Errorf("with a password in the address: %v", err)
	}

	stranger, err := client.New(client.Config{Address: server.URL, Token: "blf_x", NewKey: func() string { return "k" }, Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	var lost *client.Unreachable
	var unknown x509.UnknownAuthorityError
	if _, err := stranger.Ready(t.Context()); !errors.As(err, &lost) || !errors.As(err, &unknown) {
		t.Errorf("a server with a certificate of nobody's gave %v", err)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	for _, token := range []string{"two words", "line\n", "ü", "\x00"} {
		if _, err := client.New(client.Config{Token: token, NewKey: func() string { return "k" }}); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v, want a refusal that does not repeat it", token, err)
		}
	}
}
