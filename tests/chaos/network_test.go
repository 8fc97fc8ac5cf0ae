package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
	"github.com/belfry-scheduler/belfry/tests/proxy"
)

// handing are the points at which a server dies that gives runs to workers elsewhere, and takes their ends.
var handing = []string{"after-receive", "before-commit:start", "after-commit:start", "before-commit:finish", "after-commit:finish", "before-commit:retry",
	"after-commit:retry", "before-hide", "after-hide", "before-ack", "after-ack"}

// A server and two workers elsewhere, with a bad network between them and between the server and its clients: requests and answers are
// lost, cut and delayed. Meanwhile the server and the workers are, in turn, stopped for twice a lease and woken, and killed and
// started again. What the judge of the other tests asks for holds here too.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_Fault1_Fault3_Fault36_bad_network_and_stopped_processes(t *testing.T) {
	t.Parallel()
	rounds := max(1, int(process.Number(t, "BELFRY_KILLS", 0))/25)
	seed := seedOf(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds)*3*time.Minute+20*time.Minute)
	defer cancel()
	const lease = 2 * time.Second

	data, log := t.TempDir(), process.Log(t)
	servers, seen := load.NewGate(), load.NewGate() // where the server is, and where clients see it
	outside := proxy.Start(t, proxy.Config{To: servers.At, Seed: seed, Rate: 0.08, Longest: 300 * time.Millisecond})
	inside := proxy.Start(t, proxy.Config{To: servers.At, Seed: seed + 1, Rate: 0.1, Longest: time.Second})
	told := filepath.Join(t.TempDir(), "died")
	start := func(at string) *process.Process {
		cmd := dev(mortal, data, "--remote-queue", farQueueName, "--lease", lease.String(), "--log-level", "warn")
		cmd.Env = append(os.Environ(), points.Variable+"="+at, points.Died+"="+told)
		s, err := process.Start(cmd, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		if err := s.Ready(); err == nil {
			servers.Up(s.HostPort())
		} else if at == "" || !s.Killed() {
			t.Fatal(err)
		}
		return s
	}
	work := func() *process.Process {
		return process.Run(t, exec.Command(binary, "worker", "--output", "json", "--address", inside.URL(), "--queue", farQueueName, "--allow-loopback", "--log-level", "error"), log)
	}
	server := start("")
	workers := []*process.Process{work(), work()}
	l := begin(t, ctx, load.Config{Sink: load.NewSink(t, time.Now), Gate: seen, Seed: seed, Reopen: 1,
		Kinds: []load.Kind{{}, {Queue: farQueueName}, {Queue: farQueueName, AtMostOnce: true}, {Queue: farQueueName}, {Queue: farQueueName, AtMostOnce: true}}})
	t.Cleanup(cancel)
	seen.Up(outside.HostPort())
	rng := rand.New(rand.NewPCG(seed, 1<<35))
	calm := func() {
		select {
		case <-time.After(time.Duration(300+rng.IntN(700)) * time.Millisecond):
		case err := <-l.Ended():
			t.Fatalf("a client gave up: %v", err)
		}
	}
	stop := func(p *process.Process, kind string) {
		p.Signal(t, syscall.SIGSTOP)
		<-time.After(2 * lease) // nothing signals that a lease is over: it is time that ends it
		p.Signal(t, syscall.SIGCONT)
		killed.add("stopped for twice a lease", kind)
	}
	for n := range rounds {
		which := n % len(workers)
		calm()
		stop(workers[which], "worker elsewhere")
		calm()
		stop(server, "dev")
		calm()
		workers[which].Kill()
		killed.add("behind a bad network, at random", "worker elsewhere")
		workers[which] = work()
		calm()
		servers.Down()
		server.Kill()
		killed.add("behind a bad network, at random", "dev")
		server = start(fmt.Sprintf("%s/%d", handing[rng.IntN(len(handing))], 1+rng.IntN(5)))
		select {
		case <-server.Exited:
		case <-time.After(4 * time.Second):
		}
		servers.Down()
		server.Kill()
		if point, err := os.ReadFile(told); err == nil {
			killed.add("behind a bad network, at a point", string(point))
			_ = os.Remove(told)
		} else {
			killed.add("behind a bad network, at random", "dev")
		}
		server = start("")
	}
	calm()
	outside.Calm()
	inside.Calm()
	got := judge(t, ctx, l, rounds)
	t.Logf("%d rounds in %s; to the clients %v, to the workers %v: %s", rounds, time.Since(began).Round(time.Second), outside.Counts(), inside.Counts(), got)
	for _, f := range []proxy.Fault{proxy.Lose, proxy.Swallow} {
		if outside.Counts()[f] == 0 || inside.Counts()[f] == 0 {
			t.Errorf("%s: to the clients %d times, to the workers %d times", f, outside.Counts()[f], inside.Counts()[f])
		}
	}
}
