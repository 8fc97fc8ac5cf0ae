package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// fromEnv reads a number, for `make chaos` and for repeating a run's choices.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n
}

// The real binary is killed with kill -9 at random moments, some of them while it starts, and started again on the same data,
// while clients create, edit, pause, resume and delete jobs of every kind and ask for runs. At the end everything drains, and
// what clients and target saw is held against the promises. Commits that were acknowledged but not synced would survive this,
// since the kernel does: power cuts are lib/store/pebble's tests, on a file system that forgets.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_Fault11_Fault32_Fault36_killed_under_load(t *testing.T) {
	t.Parallel()
	kills := int(fromEnv(t, "BELFRY_KILLS", 50))
	seed := fromEnv(t, "BELFRY_SEED", uint64(time.Now().UnixNano()))
	t.Logf("BELFRY_SEED=%d BELFRY_KILLS=%d go test ./tests/chaos -count=1 -run killed_under_load", seed, kills)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*5*time.Second+5*time.Minute)
	defer cancel()

	data, log := t.TempDir(), logTo(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := newSink(t)
	doors := newGate()
	transport := &http.Transport{DialContext: doors.dial, MaxIdleConnsPerHost: 20}
	t.Cleanup(transport.CloseIdleConnections)
	server, err := clientOver(anyServer, transport)
	if err != nil {
		t.Fatal(err)
	}
	l := &load{sinkURL: target.URL, self: self, server: server, gate: doors, enough: make(chan struct{}), sightings: map[string]sighting{},
		http: &http.Client{Timeout: 20 * time.Second, Transport: transport}}

	kinds := []kind{{}, {atMostOnce: true}, {}, {atMostOnce: true}, {exec: true}, {}, {atMostOnce: true}, {}, {exec: true, atMostOnce: true}, {}}
	ended := make(chan error, len(kinds)+1)
	t.Cleanup(cancel) // before the server goes, when the test ends early
	for i, k := range kinds {
		a := &actor{load: l, rng: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprintf("job%d", i), kind: k}
		go func() { ended <- a.run(ctx) }()
	}
	go func() { ended <- l.watch(ctx, rand.New(rand.NewPCG(seed, 1<<32))) }()

	rng := rand.New(rand.NewPCG(seed, 1<<33))
	for n := range kills {
		s, err := launch(data, anyPort, log, "--allow-exec", "--log-level", "warn")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		// Starting takes a quarter of a second or so: some die in it.
		early := rng.IntN(5) == 0
		lives := time.Duration(rng.IntN(1300)) * time.Millisecond
		if early {
			lives /= 4
		} else {
			if err := s.ready(); err != nil {
				t.Fatalf("start %d: %v", n+1, err)
			}
			l.gate.up(s)
		}
		select {
		case <-time.After(lives):
		case <-s.exited:
			t.Fatalf("start %d ended by itself: %s", n+1, s.cmd.ProcessState)
		case err := <-ended:
			t.Fatalf("a client gave up: %v", err)
		}
		if !early {
			l.gate.down()
		}
		s.kill()
	}
	killed := time.Since(began)

	l.gate.up(serve(t, data, anyPort, log, "--allow-exec", "--log-level", "warn"))
	close(l.enough)
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Fatalf("a client gave up: %v", err)
		}
	}
	// Runs that lost a worker go one at a time, so what a thousand kills leave takes longer than what fifty do.
	drained, stop := context.WithTimeout(ctx, 2*time.Minute+time.Duration(kills)*time.Second/4)
	defer stop()
	if err := until(drained, func() (bool, error) { return atRest(drained, server) }); err != nil {
		t.Errorf("P4: not every run has ended: %v", err)
	}
	rest := time.Since(began) - killed

	e := collect(t, server, l, target)
	for _, violation := range append(append(e.violations(), l.wrong...), target.problem...) {
		t.Error(violation)
	}
	runs, states := 0, map[string]int{}
	for _, of := range e.runs {
		for _, r := range of {
			runs++
			states[r.State]++
		}
	}
	stale := 0
	for _, c := range e.calls {
		if c.answer == 409 {
			stale++
		}
	}
	t.Logf("%d kills in %s, at rest %s later: %d requests answered and %d lost, %d jobs, %d runs %v, %d calls, %d of them stale",
		kills, killed.Round(time.Second), rest.Round(time.Second), l.answered, l.lost, len(l.histories), runs, states, len(e.calls), stale)
	if l.lost == 0 || states["succeeded"] < 10*kills {
		t.Errorf("too little happened for the promises to be tried: %d answers lost, %v", l.lost, states)
	}
}

func atRest(ctx context.Context, server *client.Client) (bool, error) {
	for r, err := range server.Runs(ctx, client.RunFilter{States: []string{"scheduled", "queued", "running", "retrying"}}) {
		if err != nil {
			return false, err
		}
		return false, fmt.Errorf("run %s is %s", r.ID, r.State)
	}
	return true, nil
}

// collect reads all runs, and the results of those that succeeded.
func collect(t *testing.T, server *client.Client, l *load, target *sink) evidence {
	t.Helper()
	// The calls first: should runs still be under way, none is blamed for a call that came after it was read.
	e := evidence{histories: l.histories, sightings: l.sightings, results: map[string]uint64{}, calls: target.seen()}
	e.runs = runsOf(t, server, l.histories)
	var mu sync.Mutex
	var readers sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, of := range e.runs {
		for _, r := range of {
			if r.State != "succeeded" {
				continue
			}
			slots <- struct{}{}
			readers.Go(func() {
				defer func() { <-slots }()
				full, err := server.Run(t.Context(), r.ID)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				e.results[r.ID] = fenceIn(full.Result)
			})
		}
	}
	readers.Wait()
	return e
}

// fenceIn reads a result: JSON of an http target, text of a command's output.
func fenceIn(result json.RawMessage) uint64 {
	var text string
	if json.Unmarshal(result, &text) == nil {
		result = json.RawMessage(text)
	}
	var a answer
	_ = json.Unmarshal(result, &a) // what is none has no fence
	return a.Fence
}

func runsOf(t *testing.T, server *client.Client, histories []history) map[string][]wire.Run {
	t.Helper()
	runs := map[string][]wire.Run{}
	for _, h := range histories {
		for r, err := range server.Runs(t.Context(), client.RunFilter{Job: h.job}) {
			if err != nil {
				t.Fatal(err)
			}
			runs[h.job] = append(runs[h.job], r)
		}
	}
	return runs
}
