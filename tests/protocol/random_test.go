package protocol_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

var (
	seeds    = flag.Int("seeds", 400, "how many random interleavings to try")
	fromSeed = flag.Uint64("from-seed", 1, "the first seed: with -seeds 1, a failure again")
)

// process is something that a host is doing, stopped before its next operation.
type process struct {
	host   *host
	name   string
	parked chan operation
	resume chan faulty.Fault
	done   chan struct{}
	next   operation
	ended  bool
}

// begin starts an act of a host and lets it go on to its first operation.
func begin(h *host, name string, act func(*host)) *process {
	p := &process{host: h, name: name, parked: make(chan operation), resume: make(chan faulty.Fault), done: make(chan struct{})}
	h.before = func(op operation) faulty.Fault {
		p.parked <- op
		return <-p.resume
	}
	go func() {
		defer close(p.done)
		act(h)
	}()
	p.wait()
	return p
}

func (p *process) wait() {
	select {
	case p.next = <-p.parked:
	case <-p.done:
		p.ended = true
		p.host.before = nil
	}
}

// step does the next operation, with what goes wrong with it.
func (p *process) step(f faulty.Fault) {
	p.resume <- f
	p.wait()
}

// crash ends the process where it is.
func (p *process) crash() {
	for !p.ended {
		p.step(faulty.Fault{Refuse: errCrashed})
	}
	delete(p.host.hosts, p.host.name)
}

// TestP2_P3_P4_P6_P8_P10_Fault05_Fault07_Fault11_Fault12_Fault17_RandomInterleavings lets ticks, edits and requests of several hosts
// with clocks apart interleave at every operation, crash, sleep and wake, lose answers and writes, over a queue that loses and
// doubles messages. The same seed gives the same history: go test ./tests/protocol -run Random -from-seed N -seeds 1.
func TestP2_P3_P4_P6_P8_P10_Fault05_Fault07_Fault11_Fault12_Fault17_RandomInterleavings(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	const lanes = 4
	for lane := range uint64(lanes) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for seed := *fromSeed + lane; seed < *fromSeed+uint64(n); seed += lanes {
				if wrong := random(t, seed); len(wrong) > 0 {
					t.Errorf("seed %d:\n%s", seed, strings.Join(wrong, "\n"))
					return
				}
			}
		})
	}
}

// TestP4_P8_Fault11_Fault17_InterleavingsThatBrokeAPromise are random ones that once did. In both, a host dies that has put a run of a job that was
// deleted meanwhile, before it looks at the job again: the run was queued for ever.
func TestP4_P8_Fault11_Fault17_InterleavingsThatBrokeAPromise(t *testing.T) {
	for _, seed := range []uint64{116, 245} {
		if wrong := random(t, seed); len(wrong) > 0 {
			t.Errorf("seed %d:\n%s", seed, strings.Join(wrong, "\n"))
		}
	}
}

func random(t *testing.T, seed uint64) (wrong []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	// Time goes by twos: a worker that is a second early or less waits for the real clock.
	const beat = 2 * time.Second
	chance := func(p float64) bool { return r.Float64() < p }
	w := newWorld(t, lookAhead(time.Duration(2+r.IntN(3))*beat))
	w.fate = func(queue.Outgoing) (bool, bool) { return chance(0.25), chance(0.2) }
	const last = 210 * time.Second
	number := 1
	def := func() (d func(h *host) error) {
		number++
		n, period := number, time.Duration(1+r.IntN(6))*beat
		return func(h *host) error { return h.put(tenant, "a", definition(until(last, every(period)), n)) }
	}
	w.must(def()(w.host("api")))
	w.must(w.host("api").put(other, "a", definition(until(last, every(5*beat)), 1)))
	var processes []*process
	busy := func(name string) *host {
		h := w.host(name)
		for _, p := range processes {
			if p.host == h {
				return nil
			}
		}
		h.skew = time.Duration(r.IntN(3)-1) * beat
		return h
	}
	start := func(name string, what string, act func(*host)) {
		if h := busy(name); h != nil {
			if p := begin(h, what, act); !p.ended {
				processes = append(processes, p)
			}
		}
	}
	names := []string{"x", "y", "z"}
	edits := 0
	for w.elapsed < 80*beat {
		switch x := r.Float64(); {
		case x >= 0.9995: // whatever is under way, what stands is listed
			if wrong := append(w.checkListed(), w.checkListed(run.Scheduled, run.Queued, run.Waiting, run.Running)...); len(wrong) > 0 {
				return wrong
			}
		case x < 0.02:
			w.elapsed += time.Duration(1+r.IntN(3)) * beat
		case x < 0.05:
			start(names[r.IntN(3)], "tick", func(h *host) { _ = h.tick() })
		case x < 0.065 && edits < 8:
			edits++
			edit := def()
			switch r.IntN(6) {
			case 0:
				edit = func(h *host) error { return h.pause(tenant, "a") }
			case 1, 2:
				edit = func(h *host) error { return h.resume(tenant, "a") }
			case 3:
				edit = func(h *host) error { return h.delete(tenant, "a") }
			}
			start([]string{"e", "f"}[r.IntN(2)], "edit", func(h *host) { _ = edit(h) })
		case x < 0.07:
			delay := time.Duration(r.IntN(12)) * beat
			start("g", "trigger", func(h *host) { _ = h.trigger(tenant, "a", delay) })
		case x < 0.10:
			w.work()
		case len(processes) == 0:
		default:
			i := len(processes) - 1
			if chance(0.6) {
				i = r.IntN(len(processes))
			}
			p := processes[i]
			switch y := r.Float64(); {
			case y < 0.015:
				p.crash()
			case y < 0.03 && p.next.writes():
				p.step(faulty.Fault{Lose: store.ErrUnknown})
			case y < 0.045 && p.next.writes():
				p.step(faulty.Fault{Refuse: store.ErrUnknown})
			default:
				p.step(faulty.Fault{})
			}
			if p.ended {
				processes = append(processes[:i], processes[i+1:]...)
			}
		}
	}
	// The calm: who still sleeps wakes among ticks that go well, and ends.
	w.fate = nil
	for len(processes) > 0 {
		i := r.IntN(len(processes))
		for range 1 + r.IntN(8) {
			if !processes[i].ended {
				processes[i].step(faulty.Fault{})
			}
		}
		if processes[i].ended {
			processes = append(processes[:i], processes[i+1:]...)
		}
		if chance(0.1) {
			w.advance(beat, beat, "calm")
		}
	}
	return w.settle()
}
