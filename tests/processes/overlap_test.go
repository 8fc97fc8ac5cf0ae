//go:build emulators

package processes

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
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
	inside map[string]int // calls that go on, by run
	order  []string       // of the runs, by their first calls
	events []passage      // all calls, as they begin and end
	most   int            // runs at once
	next   *together      // whom the next call goes on with; nil where it ends at once
	moved  chan struct{}  // closed, and made anew, as each call begins and ends
}

// passage is a call that begins, or ends.
type passage struct {
	run string
	in  bool
}

// together are calls that are let go together.
type together struct {
	free  chan struct{}
	calls sync.WaitGroup
}

func newHeld() *held {
	return &held{inside: map[string]int{}, next: &together{free: make(chan struct{})}, moved: make(chan struct{})}
}

func (h *held) move() {
	close(h.moved)
	h.moved = make(chan struct{})
}

func (h *held) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Belfry-Run")
	h.mu.Lock()
	h.inside[id]++
	h.most = max(h.most, len(h.inside))
	h.events = append(h.events, passage{id, true})
	if !slices.Contains(h.order, id) {
		h.order = append(h.order, id)
	}
	with := h.next
	if with != nil {
		with.calls.Add(1)
		defer with.calls.Done()
	}
	h.move()
	h.mu.Unlock()
	if with != nil {
		select {
		case <-with.free:
		case <-r.Context().Done():
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, passage{id, false})
	if h.inside[id]--; h.inside[id] == 0 {
		delete(h.inside, id)
	}
	h.move()
}

// wait gives the runs that are inside, when there are so many.
func (h *held) wait(t *testing.T, n int) []string {
	t.Helper()
	deadline := time.After(process.Patience)
	for {
		h.mu.Lock()
		inside, moved := slices.Collect(maps.Keys(h.inside)), h.moved
		h.mu.Unlock()
		if len(inside) >= n {
			return inside
		}
		select {
		case <-moved:
		case <-deadline:
			t.Fatalf("%d runs are in progress after %s, want %d", len(inside), process.Patience, n)
		}
	}
}

// letGo lets go whoever is inside, and returns when they have gone; forGood, whoever comes later, too.
func (h *held) letGo(forGood bool) {
	h.mu.Lock()
	gone := h.next
	if h.next = nil; !forGood {
		h.next = &together{free: make(chan struct{})}
	}
	h.mu.Unlock()
	if gone != nil {
		close(gone.free)
		gone.calls.Wait()
	}
}

// inOrder wants the runs of a line to have been called in its order, and never more than the limit at once. Those that are let in together may
// be called in any order.
func (h *held) inOrder(t *testing.T, line []string, limit int) {
	t.Helper()
	h.mu.Lock()
	most := h.most
	h.mu.Unlock()
	if most != limit {
		t.Errorf("%d runs were in progress at once, want %d", most, limit)
	}
	h.called(t, line, limit)
}

// called wants the runs of a line to have been called in its order, but for those that are let in together.
func (h *held) called(t *testing.T, line []string, limit int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	called := map[string]bool{}
	for _, id := range h.order {
		called[id] = true
		overtaken := 0
		for _, other := range line[:max(0, slices.Index(line, id))] {
			if !called[other] {
				overtaken++
			}
		}
		if overtaken >= limit {
			t.Errorf("%s was called before %d that stood before it in line %v: %v", id, overtaken, line, h.order)
		}
	}
}

// TestG1_G4_TwoServersShareAGate has two servers, which both serve and work, over one table: of many runs that are asked for at once two are in
// progress, whoever has them, and all others are skipped. Then one server is killed: its runs keep their places until the other one has taken them over.
func TestG1_G4_TwoServersShareAGate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "gated")
	h.env = append(h.env, "BELFRY_LEASE=4s", "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s")
	const limit, asked, rounds = 2, 20, 3
	calls := newHeld()
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
			r := waitFor(t, servers[0], id)
			again := func(a wire.Attempt) bool { return a.Attempt < r.Attempt && a.Outcome != "crashed" } // a busy machine may miss a lease that is so short
			if r.State != "succeeded" || slices.ContainsFunc(r.Attempts, again) {
				t.Errorf("round %d: %s is %s after the attempts %+v", round, id, r.State, r.Attempts)
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

// TestG1_G2_G3_TwoServersShareALine has two servers, which both serve and work, over one table, and more runs than may be in progress: they wait in
// one line, and take their turns whoever has ended the one before. Then one server is killed while it has runs in progress and others are in line:
// everybody starts, in order, and never one beside the limit.
func TestG1_G2_G3_TwoServersShareALine(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "line")
	h.env = append(h.env, "BELFRY_LEASE=4s", "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s")
	const limit, asked, turns = 2, 20, 4
	calls := newHeld()
	hook := httptest.NewServer(calls)
	defer hook.Close()
	defer calls.letGo(true)
	one := h.start("serve", "--allow-loopback")
	two := h.start("serve", "--allow-loopback")
	servers := []*client.Client{one.client(""), two.client("")}
	def := job.Definition{Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: limit}}
	def.Target.HTTP = &target.HTTP{URL: hook.URL}
	if _, err := servers[0].PutJob(t.Context(), "one", wire.Job{Definition: def}, client.Condition{}); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, asked)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			r, err := servers[i%len(servers)].Trigger(t.Context(), "one", wire.Trigger{}, fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			ids[i] = r.ID
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	calls.wait(t, limit)
	var line []string
	for i, server := range servers {
		var seen []string
		process.Eventually(t, "all others wait in line", func() (bool, error) {
			seen = nil
			for in, err := range server.Line(t.Context(), "job:one", "", asked) {
				if err != nil {
					return false, err
				}
				seen = append(seen, in.ID)
			}
			return len(seen) == asked-limit, nil
		})
		if i > 0 && !slices.Equal(line, seen) {
			t.Errorf("one server has the line\n%v\nand the other\n%v", line, seen)
		}
		line = seen
	}
	for range turns {
		calls.wait(t, limit)
		calls.letGo(false)
	}
	r, err := servers[0].Run(t.Context(), calls.wait(t, limit)[0])
	if err != nil {
		t.Fatal(err)
	}
	victim, left := one, two
	if ws, err := servers[1].Workers(t.Context()); err != nil {
		t.Fatal(err)
	} else if slices.ContainsFunc(ws, func(w wire.Worker) bool { return w.ID == r.Worker }) {
		victim, left = two, one
	}
	victim.Kill()
	calls.letGo(true)
	for _, id := range ids {
		if r := waitFor(t, left.client(""), id); r.State != "succeeded" {
			t.Errorf("%s is %s after %d attempts", id, r.State, r.Attempt)
		}
	}
	calls.inOrder(t, line, limit)
	left.stop()
}
