//go:build emulators

package processes

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// mostOf gives how many runs were inside at once, of each group that the function puts runs into, and of all.
func (h *held) mostOf(group func(run string) string) (most map[string]int, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	inside, now, most := map[string]int{}, map[string]int{}, map[string]int{}
	runs := 0
	for _, e := range h.events {
		g := group(e.run)
		switch {
		case e.in:
			if inside[e.run]++; inside[e.run] == 1 {
				now[g]++
				runs++
			}
		default:
			if inside[e.run]--; inside[e.run] == 0 {
				now[g]--
				runs--
			}
		}
		most[g], all = max(most[g], now[g]), max(all, runs)
	}
	return most, all
}

// TestG1_G2_G3_G5_TwoServersShareNamedGates has two servers, which both serve and work, over one table, and runs of two jobs that pass a gate of each customer
// and one of all: whoever asks, and whoever works, never more are in progress of a customer, nor of all, than those gates let in. Both servers show
// the same lines. A limit that one of them raises holds for the other. Then one is killed while it has runs in progress: everybody starts, in order.
func TestG1_G2_G3_G5_TwoServersShareNamedGates(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "gates")
	h.env = append(h.env, "BELFRY_LEASE=4s", "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s")
	const limit, raised, each, asked, turns = 3, 4, 2, 24, 3
	calls := newHeld()
	hook := httptest.NewServer(calls)
	defer hook.Close()
	defer calls.letGo(true)
	one := h.start("serve", "--allow-loopback")
	two := h.start("serve", "--allow-loopback")
	servers := []*client.Client{one.client(""), two.client("")}
	define := func(server int, name string, limit int) {
		if _, err := servers[server].PutGate(t.Context(), name, wire.GateDefinition{Definition: gate.Definition{Limit: limit}}, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	define(0, "all", limit)
	define(1, "customer", each)
	keyed := job.GateUse{Gate: "customer", Key: "${ .payload.customer }"}
	jobs := map[string][]job.GateUse{"charge": {{Gate: "all"}, keyed}, "refund": {keyed, {Gate: "all"}}}
	for name, gates := range jobs {
		def := job.Definition{Gates: gates, Target: target.Spec{HTTP: &target.HTTP{URL: hook.URL}}}
		if _, err := servers[0].PutJob(t.Context(), name, wire.Job{Definition: def}, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	customers := []string{"acme", "acme", "other", "third"}
	ids := make([]string, asked)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			payload := fmt.Appendf(nil, `{"customer": %q}`, customers[i/2%len(customers)])
			r, err := servers[i/8%2].Trigger(t.Context(), []string{"charge", "refund"}[i%2], wire.Trigger{Payload: payload}, fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			ids[i] = r.ID
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	of := func(run string) string { return customers[slices.Index(ids, run)/2%len(customers)] }
	calls.wait(t, limit)
	lines := map[string][]string{}
	for i, server := range servers {
		seen := map[string][]string{}
		process.Eventually(t, "all others wait in a line", func() (bool, error) {
			clear(seen)
			n := 0
			for _, customer := range []string{"", "acme", "other", "third"} {
				name := "customer"
				if customer == "" {
					name = "all"
				}
				for in, err := range server.Line(t.Context(), name, customer, asked) {
					if err != nil {
						return false, err
					}
					seen[customer] = append(seen[customer], in.ID)
					n++
				}
			}
			return n == asked-limit, nil
		})
		for customer, line := range seen {
			for _, id := range line {
				if customer != "" && of(id) != customer {
					t.Errorf("%s of %s is in the line of %s", id, of(id), customer)
				}
			}
			if i > 0 && !slices.Equal(lines[customer], line) {
				t.Errorf("one server has the line of %q\n%v\nand the other\n%v", customer, lines[customer], line)
			}
		}
		lines = seen
	}
	for range turns {
		calls.wait(t, limit)
		calls.letGo(false)
	}
	calls.wait(t, limit)
	if _, most := calls.mostOf(of); most != limit {
		t.Errorf("%d runs were in progress at once, want %d", most, limit)
	}
	define(1, "all", raised)
	r, err := servers[0].Run(t.Context(), calls.wait(t, raised)[0])
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
	most, together := calls.mostOf(of)
	if together != raised {
		t.Errorf("%d runs were in progress at once, want %d", together, raised)
	}
	for _, customer := range customers {
		if most[customer] > each {
			t.Errorf("%d runs of %s were in progress at once, want %d", most[customer], customer, each)
		}
		calls.called(t, lines[customer], each)
	}
	left.stop()
}
