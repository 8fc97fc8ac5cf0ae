package target

import (
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// fickle is a server that answers the first request on each connection, and takes each later one without an answer, closing
// the connection under it: the case in which Go's transport sends again what looks idempotent.
type fickle struct {
	*httptest.Server
	mu       sync.Mutex
	hits     int
	byConn   map[string]int
	lastKind string
}

func startFickle(t *testing.T, tls bool) *fickle {
	t.Helper()
	f := &fickle{byConn: map[string]int{}}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.hits++
		f.lastKind = r.Proto
		f.byConn[r.RemoteAddr]++
		reused := f.byConn[r.RemoteAddr] > 1
		f.mu.Unlock()
		if reused {
			panic(http.ErrAbortHandler)
		}
	}))
	if tls {
		f.EnableHTTP2 = true
		f.Config.ErrorLog = log.New(io.Discard, "", 0)
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	return f
}

func (f *fickle) hitsOf(t *testing.T, s *Set, spec Spec, atMostOnce bool) (int, error) {
	t.Helper()
	f.mu.Lock()
	before := f.hits
	f.mu.Unlock()
	call := testCall()
	call.AtMostOnce = atMostOnce
	if spec.HTTP.Method == "GET" {
		call.Payload = nil
	}
	_, err := s.Call(t.Context(), spec, call)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits - before, err
}

func TestP5_Fault54_at_most_once_is_sent_once(t *testing.T) {
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			server, s := startFickle(t, false), newSet(t, nil)
			spec := Spec{HTTP: &HTTP{URL: server.URL, Method: method}}

			// The server does provoke it: an ordinary call on a kept connection arrives twice.
			if n, err := server.hitsOf(t, s, spec, false); n != 1 || err != nil {
				t.Fatalf("first call: %d hits, %v", n, err)
			}
			if n, err := server.hitsOf(t, s, spec, false); n != 2 || err != nil {
				t.Fatalf("ordinary call on a kept connection: %d hits, %v; want the resend that this test is about", n, err)
			}
			for i := range 3 {
				if n, err := server.hitsOf(t, s, spec, true); n != 1 || err != nil {
					t.Fatalf("at-most-once call %d: %d hits, %v; want exactly one, on a connection of its own", i, n, err)
				}
			}
		})
	}
	t.Run("over TLS with HTTP/2 at hand", func(t *testing.T) {
		server := startFickle(t, true)
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		s := newSet(t, func(c *Config) { c.RootCAs = roots })
		spec := Spec{HTTP: &HTTP{URL: server.URL, Method: "GET"}}
		if n, err := server.hitsOf(t, s, spec, false); n != 1 || err != nil || server.lastKind != "HTTP/2.0" {
			t.Fatalf("ordinary call: %d hits, %v, %s", n, err, server.lastKind)
		}
		for range 2 {
			if n, err := server.hitsOf(t, s, spec, true); n != 1 || err != nil || server.lastKind != "HTTP/1.1" {
				t.Fatalf("at-most-once call: %d hits, %v, %s", n, err, server.lastKind)
			}
		}
	})
}
