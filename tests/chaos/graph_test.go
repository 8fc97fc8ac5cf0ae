package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/graphs"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// running is runs of graphs that clients ask for, one behind the end of the other.
type running struct {
	server *client.Client
	graphs []graphs.Graph
	mu     sync.Mutex
	ids    map[string]graphs.Graph // of the runs that were answered
	wrong  []string
}

// put stores the job of each graph.
func (r *running) put(t *testing.T, url string) {
	t.Helper()
	for _, g := range r.graphs {
		if _, err := r.server.PutJob(t.Context(), g.Name, wire.Job{Definition: g.Definition(url)}, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
}

// ask asks for run after run until asking ends, and waits for the end of each, unless ctx ends.
func (r *running) ask(ctx, asking context.Context, asker int) {
	for n := 0; asking.Err() == nil; n++ {
		g := r.graphs[(7*asker+n)%len(r.graphs)]
		one, err := answered(ctx, func() (wire.Run, error) {
			return r.server.Trigger(ctx, g.Name, wire.Trigger{}, fmt.Sprint("asker-", asker, "-", n))
		})
		if err == nil {
			r.mu.Lock()
			r.ids[one.ID] = g
			r.mu.Unlock()
			err = process.Until(ctx, func() (bool, error) {
				now, err := r.server.Run(ctx, one.ID)
				return err == nil && !now.EndedAt.IsZero(), err
			})
		}
		if err != nil {
			r.mu.Lock()
			r.wrong = append(r.wrong, fmt.Sprintf("run %d of %s (%s): %v", n, g.Name, one.ID, err))
			r.mu.Unlock()
			return
		}
	}
}

// calm runs each graph once, on a server that is left alone, and gives how they came out.
func calm(t *testing.T, all []graphs.Graph, log *os.File) map[string]graphs.Outcome {
	t.Helper()
	target := graphs.NewTarget(t, all)
	s := serve(t, t.TempDir(), log, "--log-level", "warn")
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{server: server, graphs: all}
	r.put(t, target.URL)
	outcomes := map[string]graphs.Outcome{}
	for _, g := range all {
		one, err := server.Trigger(t.Context(), g.Name, wire.Trigger{}, g.Name)
		if err != nil {
			t.Fatal(err)
		}
		ended(t, server, one.ID)
		o, err := graphs.Look(t.Context(), server, one.ID)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := append(g.Judge(o), target.Early(one.ID, o)...); len(wrong) > 0 || len(o.Lost) > 0 {
			t.Fatalf("%s on a server that is left alone: %q, lost %q", g.Name, wrong, o.Lost)
		}
		outcomes[g.Name] = o
	}
	if wrong := target.Wrong(); len(wrong) > 0 {
		t.Fatalf("on a server that is left alone: %q", wrong)
	}
	s.Stop(t)
	return outcomes
}

// Scenario 34: the real binary is killed with kill -9 while it runs graphs of every shape, at random moments and before and after each write of a
// workflow. Every run, and every step of it, comes out as on a server that is left alone: the same state, the same result. Steps that lost
// their only attempt, or three workers, are the exception; what follows from them is judged by the evaluator. No step succeeds twice, none is called again
// under one fence, none begins before those that it needs have ended, or after its run has. Who is forgotten would wait for a check, 16 minutes later,
// and this test waits for a part of that.
func TestW1_W2_W3_W4_W13_Fault41_Fault11_Scenario34_killed_while_graphs_run(t *testing.T) {
	t.Parallel()
	kills := max(100, int(process.Number(t, "BELFRY_KILLS", 0))/5)
	all := points.Flows()
	if testing.Short() {
		kills = 6
	}
	seed := seedOf(t)
	drawn := append(graphs.Fixed(), graphs.Draw(seed, 12)...)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*30*time.Second+20*time.Minute)
	defer cancel()
	log := process.Log(t)
	expected := calm(t, drawn, log)

	data, doors, told := t.TempDir(), load.NewGate(), filepath.Join(t.TempDir(), "died")
	target := graphs.NewTarget(t, drawn)
	server, err := process.Client("http://127.0.0.1", "", &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, doors.At())
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{server: server, graphs: drawn, ids: map[string]graphs.Graph{}}
	asking, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	t.Cleanup(busy.Wait)
	t.Cleanup(cancel)

	rng := rand.New(rand.NewPCG(seed, 1<<36))
	hits, inside := map[string]int{}, 0
	for n := 0; n < kills; n++ {
		progress(t, began, n, kills)
		atPoint := n%2 == 1
		cmd := dev(mortal, data, "--log-level", "warn")
		if atPoint {
			cmd.Env = append(os.Environ(), points.Variable+"="+strings.Join(scarcest(all, hits, rng, false), ","), points.Died+"="+told)
		}
		s, err := process.Start(cmd, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		if err := s.Ready(); err == nil {
			doors.Up(s.HostPort())
		} else if !atPoint || !s.Killed() {
			t.Fatal(err)
		}
		if n == 0 {
			r.put(t, target.URL)
			for asker := range 8 {
				busy.Go(func() { r.ask(ctx, asking, asker) })
			}
		}
		var lives <-chan time.Time
		if !atPoint {
			lives = time.After(time.Duration(200+rng.IntN(800)) * time.Millisecond)
		}
		where := "at work"
		select {
		case <-lives:
		case <-s.Exited:
			point, err := os.ReadFile(told)
			if err != nil || !s.Killed() {
				t.Fatalf("start %d ended by itself: %s", n+1, s.Cmd.ProcessState)
			}
			where = string(point)
			hits[where]++
			if err := os.Remove(told); err != nil {
				t.Fatal(err)
			}
		case <-time.After(process.Patience):
			t.Fatalf("start %d came to none of the points", n+1)
		}
		doors.Down()
		s.Kill()
		killed.add("dev, graphs", where)
		went, err := target.Rest(ctx)
		if err != nil {
			t.Fatal("calls of a server that is gone go on")
		}
		if went > 0 {
			inside++
		}
	}
	took := time.Since(began)
	last := serve(t, data, log, "--log-level", "warn")
	doors.Up(last.HostPort())
	stop()
	busy.Wait()
	for _, what := range r.wrong {
		t.Error(what)
	}
	calls := target.Calls()
	doors.Down()
	last.Stop(t)
	doors.Up(serve(t, data, log, "--log-level", "warn").HostPort()) // which looks at all that it finds once more
	lost, states := judgeGraphs(t, r, target, expected)
	if again := target.Calls(); again != calls {
		t.Errorf("%d steps were called when all runs had ended", again-calls)
	}
	if !testing.Short() {
		for _, point := range all {
			if hits[point] == 0 {
				t.Errorf("no process died at %s", point)
			}
		}
	}
	if len(r.ids) < kills || lost > len(r.ids)/2 || inside < kills/4 {
		t.Errorf("too little happened: %d runs, of which %d lost a step; steps were called at %d of %d kills", len(r.ids), lost, inside, kills)
	}
	t.Logf("%d kills in %s, at %d points, and steps were called at %d of them; at rest and judged %s later: %d runs of %d graphs, %v, %d calls; %d runs lost a step", kills, took.Round(time.Second),
		len(hits), inside, (time.Since(began) - took).Round(time.Second), len(r.ids), len(drawn), states, calls, lost)
}

// judgeGraphs holds what the runs came to against what is expected. It gives how many runs lost a step, and the runs by their states.
func judgeGraphs(t *testing.T, r *running, target *graphs.Target, expected map[string]graphs.Outcome) (lost int, states map[string]int) {
	t.Helper()
	states = map[string]int{}
	for id, g := range r.ids {
		o, err := graphs.Look(t.Context(), r.server, id)
		if err != nil {
			t.Fatal(err)
		}
		state, _, _ := strings.Cut(o.End, " ")
		states[state]++
		if len(o.Lost) > 0 {
			lost++
		}
		for _, wrong := range slices.Concat(g.Same(o, expected[g.Name]), target.Early(id, o)) {
			t.Errorf("%s: %s", id, wrong)
		}
	}
	for _, wrong := range target.Wrong() {
		t.Error(wrong)
	}
	return lost, states
}
