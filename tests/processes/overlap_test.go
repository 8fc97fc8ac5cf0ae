//go:build emulators

package processes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// held is a target whose calls go on until they are let go.
type held struct {
	mu     sync.Mutex
	inside map[string]bool // runs
	most   int
	goes   chan struct{} // closed to let go whoever is inside
	open   bool          // for good
	more   chan struct{} // closed, and made anew, at each call
}

func (h *held) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Belfry-Run")
	h.mu.Lock()
	h.inside[id] = true
	h.most = max(h.most, len(h.inside))
	goes := h.goes
	close(h.more)
	h.more = make(chan struct{})
	h.mu.Unlock()
	select {
	case <-goes:
	case <-r.Context().Done():
	}
	h.mu.Lock()
	delete(h.inside, id)
	h.mu.Unlock()
}

// wait gives the runs that are inside, when there are so many.
func (h *held) wait(t *testing.T, n int) []string {
	t.Helper()
	deadline := time.After(process.Patience)
	for {
		h.mu.Lock()
		var inside []string
		for id := range h.inside {
			inside = append(inside, id)
		}
		more := h.more
		h.mu.Unlock()
		if len(inside) >= n {
			return inside
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%d runs are in progress after %s, want %d", len(inside), process.Patience, n)
		}
	}
}

// letGo lets go whoever is inside; forGood, whoever comes later, too.
func (h *held) letGo(forGood bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open {
		return
	}
	close(h.goes)
	if h.open = forGood; !forGood {
		h.goes = make(chan struct{})
	}
}

// TestG1_G4_TwoServersShareAGate has two servers, which both serve and work, over one table: of many runs that are asked for at once two are in
// progress, whoever has them, and all others are skipped. Then one server is killed: its runs keep their places until the other one has taken them over.
func TestG1_G4_TwoServersShareAGate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "gated")
	h.env = append(h.env, "BELFRY_LEASE=4s", "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s")
	const limit, asked, rounds = 2, 20, 3
	calls := &held{inside: map[string]bool{}, goes: make(chan struct{}), more: make(chan struct{})}
	hook := httptest.NewServer(calls)
	defer hook.Close()
	defer calls.letGo(true)
	one := h.start("serve", "--allow-loopback")
	two := h.start("serve", "--allow-loopback")
	servers := []*client.Client{one.client(""), two.client("")}
	def := job.Definition{Overlap: job.Overlap{Policy: job.OverlapSkip, Limit: limit}}
	def.Target.HTTP = &target.HTTP{URL: hook.URL}
	if _, err := servers[0].PutJob(t.Context(), "one", wire.Job{Definition: def}, client.Condition{}); err != nil {
		t.Fatal(err)
	}
	ask := func(round, n int) []string {
		ids := make([]string, n)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				r, err := servers[i%len(servers)].Trigger(t.Context(), "one", wire.Trigger{}, fmt.Sprintf("%d-%d", round, i))
				if err != nil {
					t.Error(err)
				}
				ids[i] = r.ID
			})
		}
		all.Wait()
		if t.Failed() {
			t.FailNow()
		}
		return ids
	}
	allSkipped := func(ids []string, but map[string]bool) {
		for _, id := range ids {
			if but[id] {
				continue
			}
			if r := waitFor(t, servers[0], id); r.State != "skipped" || r.Attempt != 0 {
				t.Errorf("%s is %s after %d attempts, and %d were in progress", id, r.State, r.Attempt, limit)
			}
		}
	}
	for round := range rounds + 1 {
		ids := ask(round, asked)
		in := map[string]bool{}
		for _, id := range calls.wait(t, limit) {
			in[id] = true
		}
		allSkipped(ids, in)
		if round == rounds {
			two.Kill()
			servers = servers[:1]
			allSkipped(ask(round+1, asked), nil)
			calls.wait(t, limit) // taken over
		}
		calls.letGo(round == rounds)
		for id := range in {
			if r := waitFor(t, servers[0], id); r.State != "succeeded" || round < rounds && r.Attempt != 1 {
				t.Errorf("round %d: %s is %s after %d attempts", round, id, r.State, r.Attempt)
			}
		}
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if calls.most != limit {
		t.Errorf("%d runs were in progress at once, want %d", calls.most, limit)
	}
	one.stop()
}
