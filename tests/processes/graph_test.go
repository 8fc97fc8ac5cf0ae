//go:build emulators

package processes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/graphs"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// TestW1_W2_W3_W4_W13_Fault40_Fault41_Fault11_TwoServersRunGraphs has two servers, which both serve, tick and work, over one table and its queues, and graphs
// of every shape: the steps of a run are run by whichever server receives them. The servers are killed in turns, half of the times before or after a
// write of a workflow, while the other goes on. Every run, and every step of it, comes out as it did while nobody died.
func TestW1_W2_W3_W4_W13_Fault40_Fault41_Fault11_TwoServersRunGraphs(t *testing.T) {
	t.Parallel()
	kills, seed := max(60, int(process.Number(t, "BELFRY_KILLS", 0))/20), process.Seed(t)
	t.Logf("BELFRY_SEED=%d", seed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*30*time.Second+20*time.Minute)
	defer cancel()
	h := newHouse(t, "graphs")
	h.env = append(h.env, "BELFRY_LEASE=4s", "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s", "BELFRY_SHARDS=4")
	dir := t.TempDir()
	overlay, err := points.Overlay("../..", dir)
	if err != nil {
		t.Fatal(err)
	}
	mortal, log := filepath.Join(dir, "mortal"), process.Log(t)
	told := func(victim int) string { return filepath.Join(dir, fmt.Sprint("died-", victim)) }
	if err := process.Build(mortal, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	var servers [2]*process.Process
	var doors [2]atomic.Value // where each listens
	start := func(i int, at ...string) {
		t.Helper()
		cmd := h.command(mortal, "serve", "--allow-loopback", "--log-level", "error")
		if len(at) > 0 {
			cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], points.Variable+"="+strings.Join(at, ","), points.Died+"="+told(i))
		}
		s, err := process.Start(cmd, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		servers[i] = s
		select {
		case <-s.Greeted:
			doors[i].Store(s.HostPort())
		case <-s.Exited: // at its point, as it began to work
			if len(at) == 0 {
				t.Fatalf("a server ended as it began: %s", s.Cmd.ProcessState)
			}
		case <-time.After(process.Patience):
			t.Fatal("a server is neither ready nor dead")
		}
	}
	start(0)
	start(1)
	server, err := process.Client("http://127.0.0.1", "", &http.Transport{DialContext: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		for i := range doors {
			if conn, err = new(net.Dialer).DialContext(ctx, network, doors[i].Load().(string)); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	all := append(graphs.Fixed(), graphs.Draw(seed, 8)...)
	r := &graphs.Runs{Server: server, Graphs: all, Target: graphs.NewTarget(t, all)}
	r.Put(t)
	expected := r.Calm(t)
	began := time.Now()

	asking, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	t.Cleanup(busy.Wait)
	t.Cleanup(cancel)
	for asker := range 24 {
		busy.Go(func() { r.Ask(ctx, asking, asker) })
	}
	rng, died := rand.New(rand.NewPCG(seed, 1<<37)), map[string]int{}
	for n := range kills {
		victim, pointed := n%2, n/2%2 == 1 // the first two have no points
		s, where := servers[victim], "at random"
		var lives <-chan time.Time
		if pointed {
			lives = time.After(process.Patience)
		} else {
			lives = time.After(time.Duration(200+rng.IntN(1500)) * time.Millisecond)
		}
		select {
		case <-lives:
			if pointed {
				t.Fatalf("kill %d: the server comes to none of its points", n+1)
			}
		case <-s.Exited:
			point, err := os.ReadFile(told(victim))
			if err != nil || !s.Killed() {
				t.Fatalf("kill %d: it ended by itself: %s", n+1, s.Cmd.ProcessState)
			}
			where = string(point)
			if err := os.Remove(told(victim)); err != nil {
				t.Fatal(err)
			}
		}
		s.Kill()
		died[where]++
		var at []string
		if !pointed {
			at = points.Flows()
			rng.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
			at = at[:3]
			for i := range at {
				at[i] += fmt.Sprintf("/%d", 1+rng.IntN(4))
			}
		}
		start(victim, at...)
	}
	took := time.Since(began)
	for _, s := range servers { // either may yet come to a point
		s.Kill()
	}
	start(0)
	start(1)
	stop()
	busy.Wait()
	came := r.Judge(t, expected)
	if came.Runs < kills/3 || came.Lost > came.Runs/2 {
		t.Errorf("too little happened: %s", came)
	}
	t.Logf("%d kills in %s, at rest and judged %s later: %s", kills, took.Round(time.Second), (time.Since(began) - took).Round(time.Second), came)
	for _, where := range sorted(died) {
		t.Logf("%-40s %d", where, died[where])
	}
	for _, s := range servers {
		s.Stop(t)
	}
}
