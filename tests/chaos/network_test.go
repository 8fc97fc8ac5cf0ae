package chaos

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
	"github.com/belfry-scheduler/belfry/tests/proxy"
)

// A server and two workers elsewhere, with a bad network between them and between the server and its clients: requests and answers are
// lost, cut and delayed. Meanwhile the server and the workers are, in turn, stopped for twice a lease and woken, and killed and
// started again. What the judge of the other tests asks for holds here too.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_Fault1_Fault3_Fault36_bad_network_and_stopped_processes(t *testing.T) {
	t.Parallel()
	rounds := max(2, int(fromEnv(t, "BELFRY_KILLS", 0))/25)
	seed := seedOf(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds)*time.Minute+5*time.Minute)
	defer cancel()
	const lease = 2 * time.Second

	data, log := t.TempDir(), process.Log(t)
	servers, seen := load.NewGate(), load.NewGate() // where the server is, and where clients see it
	outside := proxy.Start(t, proxy.Config{To: servers.At, Seed: seed, Rate: 0.05, Longest: 300 * time.Millisecond})
	inside := proxy.Start(t, proxy.Config{To: servers.At, Seed: seed + 1, Rate: 0.1, Longest: time.Second})
	start := func() *process.Process {
		s := serve(t, data, log, "--remote-queue", farQueueName, "--lease", lease.String(), "--log-level", "warn")
		servers.Up(s.HostPort())
		return s
	}
	work := func() *process.Process {
		return process.Run(t, exec.Command(binary, "worker", "--output", "json", "--address", inside.URL(), "--queue", farQueueName, "--allow-loopback", "--log-level", "error"), log)
	}
	server := start()
	workers := []*process.Process{work(), work()}
	l := begin(t, ctx, load.Config{Sink: load.NewSink(t, time.Now), Gate: seen, Seed: seed, Reopen: 1,
		Kinds: []load.Kind{{}, {AtMostOnce: true}, {Queue: farQueueName}, {Queue: farQueueName, AtMostOnce: true}, {Queue: farQueueName}}})
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
		server = start()
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
