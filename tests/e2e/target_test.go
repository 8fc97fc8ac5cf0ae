//go:build emulators

package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// target is an HTTP server that jobs call; each path has its own way to answer.
type target struct {
	url string

	mu    sync.Mutex
	paths map[string]*path
}

// path is what jobs call in one test.
type path struct {
	url    string
	answer func(nth int, h hit) int // the status, or hangUp

	mu   sync.Mutex
	hits []hit
	more chan struct{} // closed and made anew with each hit
}

// hangUp breaks the connection without an answer.
const hangUp = -1

// hit is one call.
type hit struct {
	at      time.Time // when it came
	run     string
	attempt int
	fence   uint64
	nominal time.Time
	key     string // Idempotency-Key
	body    string
}

func (h hit) late() time.Duration { return h.at.Sub(h.nominal) }

// listen starts the target.
func listen(t testing.TB) *target {
	t.Helper()
	l, err := net.Listen("tcp", env(t, "BELFRY_TARGET"))
	if err != nil {
		t.Fatal(err)
	}
	all := &target{url: "http://" + l.Addr().String(), paths: map[string]*path{}}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: all, ReadHeaderTimeout: 10 * time.Second}}
	server.Start()
	t.Cleanup(server.Close)
	return all
}

// at gives a path that answers with 200.
func (s *target) at(name string) *path {
	return s.answering(name, func(int, hit) int { return http.StatusOK })
}

// answering gives a path that answers as a function says, which is told how many calls there were with this one.
func (s *target) answering(name string, answer func(nth int, h hit) int) *path {
	p := &path{url: s.url + "/" + name, answer: answer, more: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths["/"+name] = p
	return p
}

func (s *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	p := s.paths[r.URL.Path]
	s.mu.Unlock()
	if p == nil {
		http.NotFound(w, r)
		return
	}
	h := hit{at: time.Now(), run: r.Header.Get("Belfry-Run"), key: r.Header.Get("Idempotency-Key")}
	h.attempt, _ = strconv.Atoi(r.Header.Get("Belfry-Attempt"))
	h.fence, _ = strconv.ParseUint(r.Header.Get("Belfry-Fence"), 10, 64)
	h.nominal, _ = time.Parse(time.RFC3339Nano, r.Header.Get("Belfry-Nominal-Time"))
	body, _ := io.ReadAll(r.Body)
	h.body = string(body)

	p.mu.Lock()
	p.hits = append(p.hits, h)
	nth := len(p.hits)
	close(p.more)
	p.more = make(chan struct{})
	p.mu.Unlock()

	status := p.answer(nth, h)
	if status == hangUp {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
		return
	}
	w.WriteHeader(status)
}

// seen gives the calls so far.
func (p *path) seen() []hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]hit(nil), p.hits...)
}

// wait waits until there were n calls, and gives them.
func (p *path) wait(t testing.TB, n int) []hit {
	t.Helper()
	return p.waitFor(t, n, patience)
}

func (p *path) waitFor(t testing.TB, n int, patience time.Duration) []hit {
	t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		hits, more := append([]hit(nil), p.hits...), p.more
		p.mu.Unlock()
		if len(hits) >= n {
			return hits
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%s: %d calls after %v, want %d", p.url, len(hits), patience, n)
		}
	}
}

// get is the target of a job that calls the path.
func (p *path) get() object {
	return object{"http": object{"url": p.url, "method": "POST"}}
}
