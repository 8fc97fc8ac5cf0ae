package chaos

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/graphs"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// calm gives how graphs come out on a server that is left alone.
func calm(t *testing.T, all []graphs.Graph, log *os.File) map[string]graphs.Outcome {
	t.Helper()
	s := serve(t, t.TempDir(), log, "--log-level", "warn")
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	r := &graphs.Runs{Server: server, Graphs: all, Target: graphs.NewTarget(t, all)}
	r.Put(t)
	defer s.Stop(t)
	return r.Calm(t)
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
	r := &graphs.Runs{Server: server, Graphs: drawn, Target: target}
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
			r.Put(t)
			for asker := range 8 {
				busy.Go(func() { r.Ask(ctx, asking, asker) })
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
	calls := target.Calls()
	doors.Down()
	last.Stop(t)
	doors.Up(serve(t, data, log, "--log-level", "warn").HostPort()) // which looks at all that it finds once more
	came := r.Judge(t, expected)
	if came.Calls != calls {
		t.Errorf("%d steps were called when all runs had ended", came.Calls-calls)
	}
	if !testing.Short() {
		for _, point := range all {
			if hits[point] == 0 {
				t.Errorf("no process died at %s", point)
			}
		}
	}
	if came.Runs < kills || came.Lost > came.Runs/2 || inside < kills/10 {
		t.Errorf("too little happened, and steps were called at %d of %d kills: %s", inside, kills, came)
	}
	t.Logf("%d kills in %s, at %d points, and steps were called at %d of them; at rest and judged %s later: %s", kills, took.Round(time.Second),
		len(hits), inside, (time.Since(began) - took).Round(time.Second), came)
}
