package sim

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// Config says what is run, and who looks on. Only Seed is required.
type Config struct {
	Seed    uint64
	Mix     *Mix // default: what the seed draws
	Without Mask // what is switched off in it

	// Most ends a world after so many steps, with what was found by then. 0: at its own end.
	Most  uint64
	Until time.Duration // the same after so much simulated time

	// Yields has goroutines that are awake at one instant let others go first now and then. It costs time, and changes no step.
	Yields bool

	// Stop is asked now and then whether the world is to end at once, by whoever looks at a clock outside of it. nil: never.
	Stop func() bool

	OnStep   func(Step)                     // told of each step
	OnChange func(before, after store.Item) // told of each change of the store, before the judge
	Keep     *Recording                     // filled with every operation of the store
}

// Result is what came of a world.
type Result struct {
	Seed       uint64
	Mix        Mix
	Steps      uint64
	Hash       uint64 // of all steps and changes: the same for the same seed and the same code
	Simulated  time.Duration
	Calls      int // of targets
	Operations int // of clients, checked for an order in which every answer is right
	Faults     Counts
	Ended      bool // all that was accepted had its time to end, and the judge looked at every fire: nothing cut the world short
	Violations []string
	First      uint64 // the step after which the first violation was known; 0 where there is none
}

// undecided begins a violation that may be none: no order of what clients saw was found, and none was ruled out.
const undecided = "undecided"

// Undecided tells that nothing worse was found than that.
func (r Result) Undecided() bool {
	return len(r.Violations) > 0 && !slices.ContainsFunc(r.Violations, func(v string) bool { return !strings.HasPrefix(v, undecided) })
}

// lookEvery is how many steps lie between two looks over all that is stored.
const lookEvery = 10_000

// Run lets a world live in a bubble of its own, and then asks whether what its clients saw has an order. On the machine's side it takes
// one processor: see goroutineID.
func Run(t *testing.T, cfg Config) Result {
	result, heard := play(t, cfg)
	result.order(heard)
	return result
}

// play is the life of a world, without the question of an order.
func play(t *testing.T, cfg Config) (result Result, heard *linear.Recorder) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, cfg)
		w.sched.onStep, w.sched.yields.on = w.stepped(cfg), cfg.Yields
		w.Go("world", w.live)
		w.sched.run()
		w.end()
		result = Result{Seed: cfg.Seed, Mix: w.Mix, Steps: w.sched.steps, Hash: w.sched.hash.Sum64(), Simulated: w.sched.elapsed(), Calls: w.calls,
			Faults: w.luck.counts, Ended: w.ended, Violations: w.violations(), First: w.first}
		heard = w.heard
	})
	return result, heard
}

// How long an order of what was done to one thing is looked for. It is found in milliseconds where there is one; a loaded machine may
// need longer, and a world is not called wrong for that.
const (
	searchFor      = 20 * time.Second
	searchAgainFor = 2 * time.Minute
)

// order asks for an order in which every answer is right, outside of the bubble, whose time would stand still for a search that finds
// no end.
func (r *Result) order(heard *linear.Recorder) {
	report := heard.Check(searchFor)
	if slices.ContainsFunc(report.Failures, linear.Failure.Undecided) {
		report = heard.Check(searchAgainFor)
	}
	r.Operations = report.Operations
	for _, f := range report.Failures {
		if f.Undecided() {
			r.Violations = append(r.Violations, fmt.Sprintf("%s: P1: neither an order nor that there is none was found in %s: %s", undecided, searchAgainFor, f.Text))
		} else {
			r.Violations = append(r.Violations, "P1: not linearizable: "+f.Text)
		}
	}
	if r.First == 0 && len(r.Violations) > 0 {
		r.First = r.Steps
	}
}

func newWorld(t *testing.T, cfg Config) *World {
	w := &World{TB: t, Seed: cfg.Seed, began: time.Now(), written: map[string]bool{}, onChange: cfg.OnChange, recording: cfg.Keep}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.heard = linear.NewRecorder(w.Now)
	if w.Mix = Draw(cfg.Seed); cfg.Mix != nil {
		w.Mix = *cfg.Mix
	}
	w.Mix.Shape.detail(w.Rand("shape"))
	w.Mix = w.Mix.without(cfg.Without)
	w.Faults, w.Target = w.Mix.Faults, works
	w.past.byKey = map[store.Key]store.Item{}
	w.luck = newLuck(w)
	w.store, w.chest = memory.New(memory.Config{}), &chest{blobs: map[string]piece{}}
	w.sched = newScheduler(w.Rand("scheduler"))
	w.sched.orderly, w.sched.takes = w.Mix.Shape.Orderly, w.latency(w.Rand("latency"))
	clocks := dispatch.MaxSkew
	if f := w.Mix.Faults; f.Step > 0 || f.Skew > 0 || slices.ContainsFunc(w.Mix.Outages, func(o Outage) bool { return o.Clock != 0 }) {
		w.heard.ClocksStep()
		if w.Mix.Shape.Alone {
			clocks = oracle.AnyClock
		}
	}
	w.Judge = oracle.New(oracle.Config{Clocks: clocks, Callbacks: w.Mix.Defaults})
	w.lines = w.newLines()
	w.defineGates()
	for n, role := range w.Mix.Shape.roles(w.Rand("machines")) {
		m := &machine{World: w, name: fmt.Sprintf("host %d", n), role: role}
		if w.Mix.Faults.Skew > 0 {
			m.offset = time.Duration((2*w.Rand("clock of "+m.name).Float64() - 1) * float64(w.Mix.Faults.Skew))
			w.luck.counts[Skewed]++
		}
		w.machines = append(w.machines, m)
	}
	return w
}

func (w *World) newLines() map[string]*line {
	lines := map[string]*line{}
	for _, name := range w.Mix.Pools {
		lines[name] = newLine(w, name)
		if !w.Mix.Shape.Alone && w.Mix.Shape.MaxReceives > 0 {
			lines[name].dead = newLine(w, name+" given up")
		}
	}
	return lines
}

// latency gives how long an operation takes.
func (w *World) latency(r *rand.Rand) func(medium) time.Duration {
	return func(by medium) time.Duration {
		usual := time.Duration(0)
		switch by {
		case byStore:
			if w.luck.strikes(StoreSlow, w.Faults.Slow) {
				return w.luck.upTo(StoreSlow, w.Faults.SlowFor)
			}
			usual = w.Mix.Latency.Store
		case byQueue:
			usual = w.Mix.Latency.Queue
		case byNet:
			usual = w.Mix.Latency.Net
		}
		if usual <= 0 {
			return 0
		}
		return time.Duration(r.Int64N(int64(usual) + 1))
	}
}

// live is the life of the world: the phase with faults, then the calm.
func (w *World) live(ctx context.Context, a *Actor) {
	for _, m := range w.machines {
		w.Go(m.name, m.live)
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	w.clients(asking)
	w.trouble(asking)
	w.Go("cleaning", w.clean)
	if a.Sleep(ctx, w.Mix.Length) == nil {
		stop()
		w.calm()
		w.ended = w.settle(ctx, a)
		w.seen()
	}
	w.sched.stopped = true
}

// calm is the end of all faults: from here on everything works.
func (w *World) calm() {
	w.Faults, w.away, w.full, w.quiet = Faults{}, false, false, true
	for _, m := range w.machines {
		m.down = false
		m.step(-m.offset)
		if m.host != nil && m.host.paused {
			m.host.wake()
		}
	}
}

// end lets every goroutine of the world end.
func (w *World) end() {
	for _, m := range w.machines {
		if m.host != nil {
			m.host.crash()
		}
	}
	w.cancel()
	w.sched.actors.Wait()
	w.lives.Wait()
	for _, l := range w.lines {
		_ = l.local.Close()
	}
}

// stepped is told of each step: it looks now and then, ends what has gone on for long enough, and notes when something was first wrong.
func (w *World) stepped(cfg Config) func(Step) {
	return func(s Step) {
		if cfg.OnStep != nil {
			cfg.OnStep(s)
		}
		if w.first > 0 && s.N > w.first+lookEvery { // what follows tells little more
			w.sched.stopped = true
		}
		if cfg.Stop != nil && s.N%100 == 0 && cfg.Stop() {
			w.sched.stopped = true
		}
		if s.N%lookEvery == 0 {
			w.Judge.Look(w.Now(), w.items())
		}
		w.seen()
		if cfg.Most > 0 && s.N >= cfg.Most || cfg.Until > 0 && w.sched.elapsed() >= cfg.Until {
			w.sched.stopped = true
		}
	}
}

// seen notes the step of the first violation.
func (w *World) seen() {
	if w.first == 0 && len(w.broken)+len(w.Judge.Violations()) > 0 {
		w.first = w.sched.steps
	}
}

func (w *World) violations() []string { return slices.Concat(w.Judge.Violations(), w.broken) }

// items are all that is stored.
func (w *World) items() iter.Seq[store.Item] {
	var all []store.Item
	if err := w.store.Export(w.ctx, func(item store.Item) error { all = append(all, item); return nil }); err != nil {
		panic(err)
	}
	slices.SortFunc(all, func(a, b store.Item) int {
		return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
	})
	return slices.Values(all)
}
