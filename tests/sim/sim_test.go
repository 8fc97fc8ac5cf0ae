package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 0, "how many worlds TestSeeds runs")
	from  = flag.Uint64("from", 1, "the first seed of TestSeeds")
	seed  = flag.Uint64("seed", 0, "the one seed of TestReplay")
	trace = flag.Bool("trace", false, "have TestReplay print every step")
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1) // see goroutineID
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestSeeds runs worlds one after the other, as `make sim` does.
func TestSeeds(t *testing.T) {
	for s := *from; s < *from+uint64(*seeds); s++ {
		began := time.Now()
		r := Run(t, Config{Seed: s})
		t.Logf("seed %d: %d steps, %s simulated in %s, %d calls, hash %x; %s", s, r.Steps, r.Simulated.Round(time.Second), time.Since(began).Round(time.Millisecond), r.Calls, r.Hash, r.Faults)
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %d violations, the first after %d steps:\n%s", s, len(r.Violations), r.First, strings.Join(r.Violations, "\n"))
		}
	}
}

// TestReplay runs one seed again, with its trace.
func TestReplay(t *testing.T) {
	if *seed == 0 {
		t.Skip("give it a -seed")
	}
	cfg := Config{Seed: *seed}
	if *trace {
		cfg.OnStep = func(s Step) { fmt.Println(s) }
	}
	r := Run(t, cfg)
	t.Logf("%d steps, hash %x, %s", r.Steps, r.Hash, r.Faults)
	if len(r.Violations) > 0 {
		t.Errorf("%s", strings.Join(r.Violations, "\n"))
	}
}

// TestTwice runs some seeds twice: the same seed and the same code give the same steps.
func TestTwice(t *testing.T) {
	for s := *from; s < *from+uint64(max(*seeds, 1)); s++ {
		one, first := traced(t, s)
		other, second := traced(t, s)
		if one.Hash != other.Hash || one.Steps != other.Steps {
			t.Errorf("seed %d: %d steps with hash %x, and then %d with %x\n%s", s, one.Steps, one.Hash, other.Steps, other.Hash, parting(first, second))
		}
	}
}

func traced(t *testing.T, seed uint64) (r Result, lines []string) {
	r = Run(t, Config{Seed: seed, Most: 30_000, OnStep: func(s Step) { lines = append(lines, fmt.Sprintf("%s %x", s, s.Hash)) }})
	return r, lines
}
