package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// lapse is the time of servers that are started again and again: it is ahead of the host's by more at each start, as if each had been
// away for that long. So sweeps, checks and long waits come within seconds.
type lapse struct{ ahead atomic.Int64 }

func (l *lapse) now() time.Time       { return time.Now().Add(time.Duration(l.ahead.Load())) }
func (l *lapse) pass(d time.Duration) { l.ahead.Add(int64(d)) }
func (l *lapse) environment() []string {
	return append(os.Environ(), points.Ahead+"="+time.Duration(l.ahead.Load()).String())
}

// The real binary kills itself at named points: before and after each commit of docs/protocol.md, in the middle of those that write
// several items, before and after sends and acknowledgements. It is started again on the same data, its clock up to three minutes
// further, while clients go on as in the test of random kills. Every point must have been hit, of a seventh of them under -short.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_P10_Fault11_Fault32_Fault36_killed_at_points(t *testing.T) {
	t.Parallel()
	others := append(points.Gates(), points.Flows()...) // line_test.go and graph_test.go have these
	all := slices.DeleteFunc(points.All(), func(p string) bool { return slices.Contains(others, p) })
	seed := seedOf(t)
	if testing.Short() {
		all = seventh(all, seed)
	}
	kills := max(len(all), int(process.Number(t, "BELFRY_KILLS", 0))*4/10)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*30*time.Second+20*time.Minute)
	defer cancel()

	data, log, doors, clock := t.TempDir(), process.Log(t), load.NewGate(), new(lapse)
	clock.pass(-3 * time.Hour) // where the store begins: the last sweep lags by an hour
	l := begin(t, ctx, load.Config{Sink: load.NewSink(t, clock.now), Gate: doors, Seed: seed, Reopen: 3, Now: clock.now, Pace: 10,
		Kinds: load.Kinds[:5]})
	t.Cleanup(cancel) // before the server goes, when the test ends early
	rng := rand.New(rand.NewPCG(seed, 1<<34))
	told := filepath.Join(t.TempDir(), "died")
	start := func(lives time.Duration, at ...string) *process.Process {
		cmd := dev(mortal, data, "--allow-exec", "--log-level", "warn")
		cmd.Env = append(clock.environment(), points.Variable+"="+strings.Join(at, ","), points.Died+"="+told, points.Not+"="+lives.String())
		s, err := process.Start(cmd, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		return s
	}
	hits, missed, first := map[string]int{}, 0, true
	later := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return strings.HasSuffix(p, ":"+points.Setup) })
	for n := 0; n < kills || len(hits) < len(all); {
		progress(t, began, n, kills)
		at, lives := scarcest(later, hits, rng, first), time.Duration(rng.IntN(3)*rng.IntN(300))*time.Millisecond
		if n < 2 { // a store is set up but once
			at, lives = []string{[]string{"before", "after"}[n] + "-commit:" + points.Setup}, 0
		}
		s := start(lives, at...)
		up := false
		select {
		case <-s.Greeted:
			doors.Up(s.HostPort())
			up = true
		case <-s.Exited:
		case <-time.After(process.Patience):
			t.Fatalf("start %d is neither ready nor dead", n+1)
		}
		select {
		case <-s.Exited:
		case <-time.After(5 * time.Second): // what comes seldom may come after the next start
			if missed++; missed > 30+kills {
				t.Fatalf("no process comes to one of %v", at)
			}
		case err := <-l.Ended():
			t.Fatalf("a client gave up: %v", err)
		}
		if up {
			doors.Down()
		}
		s.Kill()
		point, err := os.ReadFile(told)
		first = err != nil
		switch {
		case err == nil && s.Killed():
			n++
			hits[string(point)]++
			killed.add("dev, at a point", string(point))
			if err := os.Remove(told); err != nil {
				t.Fatal(err)
			}
		case s.Killed():
			killed.add("dev, at random", "points that were not reached")
		default:
			t.Fatalf("start %d ended by itself: %s", n+1, s.Cmd.ProcessState)
		}
		if n > 2 { // a store that was just made is not left alone for so long
			further := time.Duration(rng.IntN(int(time.Minute)))
			if rng.IntN(8) == 0 {
				further *= 3
			}
			clock.pass(further)
		}
	}
	for _, point := range all {
		if hits[point] == 0 {
			t.Errorf("no process died at %s", point)
		}
	}
	took := time.Since(began)

	s := start(0)
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
	doors.Up(s.HostPort())
	if err := l.Until(ctx, 20*kills); err != nil { // kills may come so fast that little has run between them
		t.Fatal(err)
	}
	if err := l.Finish(); err != nil {
		t.Fatalf("a client gave up: %v", err)
	}
	// What waits for long is waited for, by one more start in its time.
	doors.Down()
	s.Kill()
	clock.pass(2 * load.LongWait)
	s = start(0)
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
	doors.Up(s.HostPort())
	got := rested(t, ctx, l, kills)
	if got.Lost == 0 && !testing.Short() { // whoever dies after the commit of a request loses its answer
		t.Error("no answer was lost")
	}
	t.Logf("kills at %d points, and %d where none was reached, in %s, at rest and judged %s later: %s", len(hits), missed, took.Round(time.Second), (time.Since(began) - took).Round(time.Second), got)
}

// seventh gives each seventh point, so that points before and after commits take turns, and the two of the setup, with which each store begins.
func seventh(all []string, seed uint64) []string {
	var some []string
	for i, point := range all {
		if uint64(i)%7 == seed%7 || strings.HasSuffix(point, ":"+points.Setup) {
			some = append(some, point)
		}
	}
	return some
}

// scarcest gives the points at which fewest have died, so that whichever a process comes to first is as good. Where some have died at
// each, it is not always the first time; after a process that came to none in its life it is.
func scarcest(all []string, hits map[string]int, rng *rand.Rand, first bool) []string {
	fewest := hits[slices.MinFunc(all, func(a, b string) int { return hits[a] - hits[b] })]
	open := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return hits[p] > fewest })
	for i := range open {
		if fewest > 0 && !first {
			open[i] += fmt.Sprintf("/%d", 1+rng.IntN(5))
		}
	}
	return open
}
