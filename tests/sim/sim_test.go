package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/garbage"
)

var (
	seeds   = flag.Int("seeds", 0, "TestSeeds: how many worlds")
	from    = flag.Uint64("from", 0, "TestSim, TestSeeds, TestTwice: the first seed; 0: any, where worlds are many, else 1")
	shrink  = flag.Duration("shrink", 0, "TestSeeds, TestReplay: how long to look for a simpler world that breaks the same promise")
	most    = flag.Uint64("most", 0, "end each world after so many steps; 0: at its own end")
	seed    = flag.Uint64("seed", 0, "TestReplay: the seed")
	without = flag.String("without", "", "TestReplay: what is switched off in it, as a report says")
	trace   = flag.Bool("trace", false, "TestReplay: print every step")
)

func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1) // see goroutineID
	garbage.Seldom()
	os.Exit(m.Run())
}

// judged fails the test where a world broke a promise, with the command that shows how.
func judged(t *testing.T, r Result, mask Mask) {
	t.Helper()
	if len(r.Violations) == 0 {
		return
	}
	t.Error(Report(r, mask))
	if *shrink > 0 {
		simpler, s := Shrink(t, r, mask, time.Now().Add(*shrink))
		t.Errorf("shrunk from %d steps to %d:\n%s", r.Steps, s.Steps, Report(s, simpler))
	}
}

// asked skips a test that needs flags where all tests run, and fails it where it was asked for by its name.
func asked(t *testing.T, how string) {
	t.Helper()
	if strings.Contains(flag.Lookup("test.run").Value.String(), t.Name()) {
		t.Fatalf("nothing to do: %s", how)
	}
	t.Skip(how)
}

// TestSeeds runs worlds one after the other.
func TestSeeds(t *testing.T) {
	if *seeds == 0 {
		asked(t, "go test ./tests/sim -run TestSeeds -v -args -seeds 20 -from 1")
	}
	first := max(*from, 1)
	for s := first; s < first+uint64(*seeds); s++ {
		began := time.Now()
		r := watched(t, Config{Seed: s, Most: *most})
		if !r.Ended && len(r.Violations) == 0 { // which is no verdict
			t.Logf("seed %d: cut short after %d steps, in %s", s, r.Steps, time.Since(began).Round(time.Millisecond))
			continue
		}
		t.Logf("seed %d: %d steps, %s simulated in %s, %d calls, hash %x; %s", s, r.Steps, r.Simulated.Round(time.Second),
			time.Since(began).Round(time.Millisecond), r.Calls, r.Hash, r.Faults)
		judged(t, r, nil)
	}
}

// still is how long a world may take for one step. One takes microseconds, and a look over all that is stored milliseconds.
const still = time.Minute

// watched is Run, and ends the process where the world makes no step any more: it is in a loop that nothing else would end.
func watched(t *testing.T, cfg Config) Result {
	var steps atomic.Uint64
	cfg.OnStep = func(s Step) { steps.Store(s.N) }
	done := make(chan struct{})
	stop := sync.OnceFunc(func() { close(done) })
	defer stop()
	go func() {
		for before := uint64(0); ; {
			select {
			case <-done:
				return
			case <-time.After(still):
			}
			now := steps.Load()
			if now == before {
				panic(fmt.Sprintf("seed %d stands still: no step in %s after step %d", cfg.Seed, still, now))
			}
			before = now
		}
	}()
	r, heard := play(t, cfg)
	stop()
	r.order(heard)
	return r
}

// TestReplay runs one seed again: go test ./tests/sim -run TestReplay -v -args -seed 7 -trace.
func TestReplay(t *testing.T) {
	mask, err := ParseMask(*without)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Seed: max(*seed, 1), Without: mask, Most: *most}
	if *seed == 0 {
		cfg.Most = 1000 // as a test of itself
	}
	if *trace {
		cfg.OnStep = func(s Step) { fmt.Println(s) }
		cfg.OnChange = func(before, after store.Item) { fmt.Println(changeLine(before, after)) }
	}
	r := Run(t, cfg)
	t.Logf("%s\n%d steps, %s simulated, hash %x; %s", r.Mix, r.Steps, r.Simulated, r.Hash, r.Faults)
	judged(t, r, mask)
}

// twice are worlds that were not the same before: passes that end by what they have read, two messages of one run at a gate (22), several runs that may be what
// kills workers (27), and a process that is told to stop while it writes how far it has come (21).
var twice = []uint64{1, 2, 3, 4, 5, 6, 21, 22, 27}

// TestTwice runs some seeds twice, and the second time as on a busy machine: the same seed and the same code give the same steps.
func TestTwice(t *testing.T) {
	all := twice
	if *seeds > 0 {
		all = nil
		for s := max(*from, 1); len(all) < *seeds; s++ {
			all = append(all, s)
		}
	}
	for _, s := range all {
		one, before := traced(t, s, false)
		other, after := traced(t, s, true)
		if one.Hash != other.Hash || one.Steps != other.Steps {
			t.Errorf("seed %d: %d steps with hash %x, and then %d with %x\n%s", s, one.Steps, one.Hash, other.Steps, other.Hash, parting(before, after))
		}
	}
}

// TestEndsAtAnyStep cuts a busy world short at each of some steps: whoever is awake then comes to an end.
func TestEndsAtAnyStep(t *testing.T) {
	for most := uint64(100); most < 150; most++ {
		if r := Run(t, Config{Seed: 25, Most: most, Yields: true}); r.Steps != most {
			t.Errorf("%d steps, want %d", r.Steps, most)
		}
	}
}

func traced(t *testing.T, seed uint64, yields bool) (r Result, lines []string) {
	limit := *most
	if limit == 0 {
		limit = 8_000
	}
	r = Run(t, Config{Seed: seed, Most: limit, Yields: yields, OnStep: func(s Step) { lines = append(lines, fmt.Sprintf("%s %x", s, s.Hash)) }})
	return r, lines
}
