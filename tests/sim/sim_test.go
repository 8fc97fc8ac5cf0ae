package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

var (
	seeds   = flag.Int("seeds", 0, "TestSeeds: how many worlds")
	from    = flag.Uint64("from", 1, "TestSeeds: the first seed")
	shrink  = flag.Duration("shrink", 0, "TestSeeds, TestReplay: how long to look for a simpler world that breaks the same promise")
	most    = flag.Uint64("most", 0, "end each world after so many steps; 0: at its own end")
	seed    = flag.Uint64("seed", 0, "TestReplay: the seed")
	without = flag.String("without", "", "TestReplay: what is switched off in it, as a report says")
	trace   = flag.Bool("trace", false, "TestReplay: print every step")
)

func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1) // see goroutineID
	debug.SetGCPercent(400)
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

// TestSeeds runs worlds one after the other: go test ./tests/sim -run TestSeeds -v -args -seeds 20 -from 1.
func TestSeeds(t *testing.T) {
	for s := *from; s < *from+uint64(*seeds); s++ {
		began := time.Now()
		r := Run(t, Config{Seed: s, Most: *most})
		t.Logf("seed %d: %d steps, %s simulated in %s, %d calls, hash %x; %s", s, r.Steps, r.Simulated.Round(time.Second),
			time.Since(began).Round(time.Millisecond), r.Calls, r.Hash, r.Faults)
		judged(t, r, nil)
	}
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

// TestTwice runs some seeds twice: the same seed and the same code give the same steps.
func TestTwice(t *testing.T) {
	for s := *from; s < *from+uint64(max(*seeds, 6)); s++ {
		one, first := traced(t, s)
		other, second := traced(t, s)
		if one.Hash != other.Hash || one.Steps != other.Steps {
			t.Errorf("seed %d: %d steps with hash %x, and then %d with %x\n%s", s, one.Steps, one.Hash, other.Steps, other.Hash, parting(first, second))
		}
	}
}

func traced(t *testing.T, seed uint64) (r Result, lines []string) {
	limit := *most
	if limit == 0 {
		limit = 8_000
	}
	r = Run(t, Config{Seed: seed, Most: limit, OnStep: func(s Step) { lines = append(lines, fmt.Sprintf("%s %x", s, s.Hash)) }})
	return r, lines
}
