package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// seedOf gives the seed of a test's choices, and says how to repeat them.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := process.Seed(t)
	t.Logf("BELFRY_SEED=%d BELFRY_KILLS=%s go test ./tests/chaos -count=1 -v -run '^%s$'", seed, os.Getenv("BELFRY_KILLS"), t.Name())
	return seed
}

// progress tells how far a long run is, each tenth of it.
func progress(t *testing.T, began time.Time, done, of int) {
	t.Helper()
	if of >= 100 && done%(of/10) == 0 && done > 0 {
		t.Logf("%d of %d kills after %s", done, of, time.Since(began).Round(time.Second))
	}
}

// begin starts a load on a gate that is down.
func begin(t *testing.T, ctx context.Context, cfg load.Config) *load.Load {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Self = self
	if cfg.Kinds == nil {
		cfg.Kinds = load.Kinds
	}
	l, err := load.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// judge brings the clients to an end, waits until all has come to rest, and holds what they saw against the promises. Runs that lost a
// worker go one at a time, so what a thousand kills leave takes longer than what fifty do.
func judge(t *testing.T, ctx context.Context, l *load.Load, kills int) load.Outcome {
	t.Helper()
	if err := l.Finish(); err != nil {
		t.Fatalf("a client gave up: %v", err)
	}
	return rested(t, ctx, l, kills)
}

// rested is judge for clients that have come to an end.
func rested(t *testing.T, ctx context.Context, l *load.Load, kills int) load.Outcome {
	t.Helper()
	drained, stop := context.WithTimeout(ctx, 10*time.Minute+time.Duration(kills)*time.Second)
	defer stop()
	got, err := l.Judge(drained)
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range got.Violations {
		t.Error(violation)
	}
	linear.Hold(t, l.Seen)
	killed.judged(t.Name(), got)
	if got.States["succeeded"] < 5*kills {
		t.Errorf("too little happened for the promises to be tried: %v", got.States)
	}
	return got
}

// The real binary is killed with kill -9 at random moments, some of them while it starts, and started again on the same data,
// while clients create, edit, pause, resume and delete jobs of every kind and ask for runs. At the end everything drains, and
// what clients and target saw is held against the promises. Commits that were acknowledged but not synced would survive this,
// since the kernel does: power cuts are lib/store/pebble's tests, on a file system that forgets.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_Fault11_Fault32_Fault36_killed_under_load(t *testing.T) {
	t.Parallel()
	kills := max(12, int(process.Number(t, "BELFRY_KILLS", 0))*4/10)
	if testing.Short() {
		kills = 4
	}
	seed := seedOf(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*15*time.Second+20*time.Minute)
	defer cancel()

	data, log, doors := t.TempDir(), process.Log(t), load.NewGate()
	l := begin(t, ctx, load.Config{Sink: load.NewSink(t, time.Now), Gate: doors, Seed: seed, Reopen: 1})
	t.Cleanup(cancel) // before the server goes, when the test ends early
	rng := rand.New(rand.NewPCG(seed, 1<<33))
	for n := range kills {
		progress(t, began, n, kills)
		s, err := launch(data, log, "--allow-exec", "--log-level", "warn")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		// Starting takes a quarter of a second or so: some die in it.
		early := rng.IntN(5) == 0
		lives := time.Duration(rng.IntN(1300)) * time.Millisecond
		where := "at work"
		if early {
			lives /= 4
			where = "as it starts"
		} else {
			if err := s.Ready(); err != nil {
				t.Fatalf("start %d: %v", n+1, err)
			}
			doors.Up(s.HostPort())
		}
		select {
		case <-time.After(lives):
		case <-s.Exited:
			t.Fatalf("start %d ended by itself: %s", n+1, s.Cmd.ProcessState)
		case err := <-l.Ended():
			t.Fatalf("a client gave up: %v", err)
		}
		if !early {
			doors.Down()
		}
		s.Kill()
		killed.add("dev, at random", where)
	}
	took := time.Since(began)
	doors.Up(serve(t, data, log, "--allow-exec", "--log-level", "warn").HostPort())
	got := judge(t, ctx, l, kills)
	t.Logf("%d kills in %s, at rest and judged %s later: %s", kills, took.Round(time.Second), (time.Since(began) - took).Round(time.Second), got)
}
