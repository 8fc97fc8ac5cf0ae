package chaos

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"net/http/httptest"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// farQueueName is the queue of these tests, which only `belfry worker` processes serve.
const farQueueName = "far"

// workElsewhere starts `belfry worker` and waits until it says that it is ready.
func workElsewhere(t *testing.T, address string, log *os.File, flags ...string) *process.Process {
	t.Helper()
	args := append([]string{"worker", "--output", "json", "--address", address, "--queue", farQueueName, "--allow-loopback", "--log-format", "json"}, flags...)
	p := process.Run(t, exec.Command(binary, args...), log)
	if p.Worker == "" {
		t.Fatal("the worker greets without its name")
	}
	return p
}

// The server is killed (kill -9) while a worker elsewhere works, and started again: the attempts go on, and each run has one.
func TestP1_P5_P7_Fault32_Fault36_the_server_is_killed_under_a_worker_elsewhere(t *testing.T) {
	t.Parallel()
	h, log, data := newHeld(t), process.Log(t), t.TempDir()
	s := serve(t, data, log, "--remote-queue", farQueueName)
	at := s.HostPort()
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	workElsewhere(t, s.Address, log)
	ids, calls := start(t, server, h, farQueueName)
	s.Kill()
	calls[least].letGo() // it ends while there is no server
	serve(t, data, log, "--listen", at, "--remote-queue", farQueueName)
	calls[most].letGo()
	for name, id := range ids {
		r := ended(t, server, id)
		if r.State != "succeeded" || r.Attempt != 1 || load.FenceIn(r.Result) != calls[name].fence || len(h.of(id)) != 1 {
			t.Errorf("%s: %s after %d attempts and %d calls, want one that succeeded: %+v", name, r.State, r.Attempt, len(h.of(id)), r)
		}
	}
	// And the worker takes runs of the new start.
	next, err := server.Trigger(t.Context(), least, wire.Trigger{}, "next")
	if err != nil {
		t.Fatal(err)
	}
	h.next(t).letGo()
	if r := ended(t, server, next.ID); r.State != "succeeded" || r.Attempt != 1 {
		t.Errorf("after the restart: %+v", r)
	}
}

// A worker elsewhere is stopped (SIGSTOP) for longer than its leases, another takes over, and what the first says when it is
// woken (SIGCONT) is refused.
func TestP5_P6_P7_Fault3_Fault36_a_worker_elsewhere_stopped_past_its_lease(t *testing.T) {
	t.Parallel()
	h, log := newHeld(t), process.Log(t)
	s := serve(t, t.TempDir(), log, "--remote-queue", farQueueName, "--lease", "2s")
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	said := process.Log(t)
	stopped := workElsewhere(t, s.Address, said)
	ids, first := start(t, server, h, farQueueName)
	stopped.Signal(t, syscall.SIGSTOP)
	workElsewhere(t, s.Address, log)
	second := h.next(t)
	if second.run != ids[least] || second.attempt != 2 || second.fence <= first[least].fence {
		t.Fatalf("after the lease: %+v, want attempt 2 of %s above fence %d", second, ids[least], first[least].fence)
	}
	second.letGo()
	before := map[string]wire.Run{least: ended(t, server, ids[least]), most: ended(t, server, ids[most])}
	if before[least].State != "succeeded" || before[most].State != "unknown" {
		t.Fatalf("at least once %s, at most once %s, want succeeded and unknown", before[least].State, before[most].State)
	}
	for _, c := range first {
		c.letGo()
	}
	stopped.Signal(t, syscall.SIGCONT)
	process.Eventually(t, "the woken worker's late words", func() (bool, error) {
		return refusedAll(process.Said(t, said), slices.Collect(maps.Values(ids))...)
	})
	for name, was := range before {
		is := ended(t, server, ids[name])
		if is.State != was.State || is.Fence != was.Fence || !is.EndedAt.Equal(was.EndedAt) || !bytes.Equal(is.Result, was.Result) {
			t.Errorf("%s: after the late words %+v, before %+v", name, is, was)
		}
	}
	if n := len(h.of(ids[most])); n != 1 {
		t.Errorf("at most once was called %d times", n)
	}
}

// swallower passes requests on, and swallows the answer to the first of every path it is told: they are carried out, and their
// worker does not hear of it.
type swallower struct {
	*httputil.ReverseProxy
	mu   sync.Mutex
	swal map[string]int // paths, with how many answers are still to be swallowed
}

func (s *swallower) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	heard := httptest.NewRecorder()
	s.ReverseProxy.ServeHTTP(heard, r)
	s.mu.Lock()
	swallow := s.swal[r.URL.Path] > 0 && heard.Code < 300 && !bytes.Equal(bytes.TrimSpace(heard.Body.Bytes()), []byte(`{"items":[]}`))
	if swallow {
		s.swal[r.URL.Path]--
	}
	s.mu.Unlock()
	if swallow {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	for name, values := range heard.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(heard.Code)
	_, _ = w.Write(heard.Body.Bytes())
}

func (s *swallower) left() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, more := range s.swal {
		n += more
	}
	return n
}

// The answers to taking, starting and finishing get lost, each of them once carried out: every run is called once.
func TestP5_P7_Fault1_answers_that_a_worker_elsewhere_does_not_hear(t *testing.T) {
	t.Parallel()
	h, log := newHeld(t), process.Log(t)
	s := serve(t, t.TempDir(), log, "--remote-queue", farQueueName)
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &swallower{ReverseProxy: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }},
		swal: map[string]int{"/v1/work/take": 1, "/v1/work/start": 3, "/v1/work/finish": 3}}
	door := httptest.NewServer(proxy)
	t.Cleanup(func() {
		door.CloseClientConnections()
		door.Close()
	})
	workElsewhere(t, door.URL, log)
	ids, calls := start(t, server, h, farQueueName)
	for name, id := range ids {
		calls[name].letGo()
		r := ended(t, server, id)
		if r.State != "succeeded" || r.Attempt != 1 || len(h.of(id)) != 1 {
			t.Errorf("%s: %s after %d attempts and %d calls, want one that succeeded: %+v", name, r.State, r.Attempt, len(h.of(id)), r)
		}
	}
	process.Eventually(t, "the last answers", func() (bool, error) {
		return proxy.left() == 0, fmt.Errorf("%d answers were not swallowed", proxy.left())
	})
	if n := counted(t, s.Address, `belfry_attempts_total{outcome="succeeded"}`); n != "2" {
		t.Errorf("%s attempts were counted, want 2", n)
	}
}

// counted reads a series of /metrics.
func counted(t *testing.T, address, series string) string {
	t.Helper()
	answer, err := http.Get(address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return value
		}
	}
	t.Fatalf("no series %s in\n%s", series, text)
	return ""
}

// Server and worker die together. Nobody is left who knows of the attempt but the store: the next start waits until it would
// have heard of a worker that lives, and gives the run to another.
func TestP4_P5_Fault32_Fault36_server_and_worker_elsewhere_die_together(t *testing.T) {
	t.Parallel()
	h, log, data := newHeld(t), process.Log(t), t.TempDir()
	s := serve(t, data, log, "--remote-queue", farQueueName, "--lease", "3s")
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	at := s.HostPort()
	dies := workElsewhere(t, s.Address, log)
	ids, first := start(t, server, h, farQueueName)
	s.Kill()
	dies.Kill()
	serve(t, data, log, "--listen", at, "--remote-queue", farQueueName, "--lease", "3s")
	workElsewhere(t, s.Address, log)
	second := h.next(t)
	second.letGo()
	if second.run != ids[least] || second.attempt != 2 || second.fence <= first[least].fence {
		t.Errorf("called again: %+v, want attempt 2 of %s", second, ids[least])
	}
	if r := ended(t, server, ids[least]); r.State != "succeeded" || r.Attempt != 2 {
		t.Errorf("at least once: %+v", r)
	}
	if r := ended(t, server, ids[most]); r.State != "unknown" || len(h.of(r.ID)) != 1 {
		t.Errorf("at most once: %d calls, %+v", len(h.of(r.ID)), r)
	}
}

// refusedAll tells whether a worker has said of each run that its late end was refused: by the store, or by what a renewal before it told.
func refusedAll(said string, runs ...string) (bool, error) {
	for _, id := range runs {
		if !slices.ContainsFunc(strings.Split(said, "\n"), func(line string) bool {
			return strings.Contains(line, id) && (strings.Contains(line, "late result was refused") || strings.Contains(line, "fenced off"))
		}) {
			return false, fmt.Errorf("of %s it says nothing in\n%s", id, said)
		}
	}
	return true, nil
}

// A worker elsewhere is killed (kill -9) while it has runs in progress and others of their jobs wait in line. Each of its runs keeps its place until its
// lease is over; then it runs again, or is unknown at most once, and the line goes on, in order, with another worker.
func TestG1_G2_G3_P5_Fault36_a_worker_elsewhere_dies_while_others_wait_in_line(t *testing.T) {
	t.Parallel()
	h, log := newHeld(t), process.Log(t)
	s := serve(t, t.TempDir(), log, "--remote-queue", farQueueName, "--lease", "3s")
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	dies := workElsewhere(t, s.Address, log)
	const asked = 4
	runs, first := map[string][]string{}, map[string]*heldCall{}
	for name, guarantee := range map[string]job.Guarantee{least: job.AtLeastOnce, most: job.AtMostOnce} {
		def := wire.Job{Definition: job.Definition{Guarantee: guarantee, Queue: farQueueName, Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: 1},
			Target: target.Spec{HTTP: &target.HTTP{URL: h.URL}}}}
		if _, err := server.PutJob(t.Context(), name, def, client.Condition{}); err != nil {
			t.Fatal(err)
		}
		for n := range asked {
			r, err := server.Trigger(t.Context(), name, wire.Trigger{}, fmt.Sprint(name, n))
			if err != nil {
				t.Fatal(err)
			}
			runs[name] = append(runs[name], r.ID)
			if n == 0 {
				first[name] = h.next(t)
			}
			process.Eventually(t, r.ID+" in line", func() (bool, error) {
				var line []string
				for in, err := range server.Line(t.Context(), "job:"+name, "", asked) {
					if err != nil {
						return false, err
					}
					line = append(line, in.ID)
				}
				return slices.Equal(line, runs[name][1:]), fmt.Errorf("the line is %v", line)
			})
		}
	}
	dies.Kill()
	workElsewhere(t, s.Address, log)
	want := map[string][]string{least: runs[least], most: runs[most][1:]}
	for range len(want[least]) + len(want[most]) {
		c := h.next(t)
		name, _, _ := strings.Cut(c.run, "~")
		switch {
		case len(want[name]) == 0 || c.run != want[name][0]:
			t.Fatalf("called is %s, want the first of %v", c.run, want[name])
		case c.run == first[least].run && (c.attempt != 2 || c.fence <= first[least].fence):
			t.Errorf("after the lease: %+v, want attempt 2 above fence %d", c, first[least].fence)
		}
		want[name] = want[name][1:]
		c.letGo()
	}
	for name, ids := range runs {
		for i, id := range ids {
			state := "succeeded"
			if name == most && i == 0 {
				state = "unknown"
			}
			if r := ended(t, server, id); r.State != state {
				t.Errorf("%s is %s after %d attempts, want %s", id, r.State, r.Attempt, state)
			}
		}
	}
}
