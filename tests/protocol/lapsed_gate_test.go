package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func oneAtATime(def job.Definition) job.Definition {
	def.Overlap = job.Overlap{Policy: job.OverlapQueue, Limit: 1}
	return def
}

// entries are the runs that hold places at the gate of a job.
func (w *world) entries(name string) (held []run.Run) {
	for _, item := range w.items("gate#") {
		if item.Key != gate.Key(tenant, name) {
			continue
		}
		g, err := gate.FromItem(tenant, gate.Name(name), item)
		w.must(err)
		for _, e := range g.Entries {
			if r, ok := w.run(tenant, g.Run(e)); ok && !r.State.Ended() && !r.Waits() && r.Opening == e.Opening && r.Generation == e.Generation {
				held = append(held, r)
			}
		}
	}
	return held
}

// dies has a worker crash at the first operation that is told, and gives whether it came to it.
func (w *world) dies(at func(operation) bool) (dead bool) {
	h := w.restart("worker")
	h.before = func(op operation) faulty.Fault {
		if dead = dead || at(op); dead {
			h.dies()
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	for ready := true; ready && !dead; {
		depth, err := w.queue.Depth(w.Context())
		w.must(err)
		ready = false
		for _, d := range depth {
			ready = ready || d.Ready > 0
		}
		if ready {
			_ = h.worker.Pass(h.life, 0)
		}
	}
	w.restart("worker")
	return dead
}

// writesRun tells of an operation whether it writes runs of a job, and nothing of its gate.
func writesRun(name string) func(operation) bool {
	return func(op operation) bool {
		return op.writes() && strings.Contains(op.text(), "run#"+tenant+"#"+name) && !strings.Contains(op.text(), "gate#")
	}
}

// What makes up for missed fires and has come to the line of its gate in its place keeps that through another outage: it is in nobody's line twice,
// starts once, in its order, when those before it have ended, and no place at the gate is taken ahead of the place in time that it was given.
func TestG1_G3_Fault17_who_waits_in_line_has_had_its_place(t *testing.T) {
	for name, c := range map[string]struct {
		away     time.Duration
		restarts bool
		options  []option
	}{
		"crashed":          {away: 15 * time.Second, restarts: true},
		"crashed for long": {away: 20 * time.Minute, restarts: true},
		"frozen":           {away: 40 * time.Second},
		"each minute":      {away: 7 * time.Minute, options: []option{byMinute()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(c.options, catchUpRate(20))...)
			w.outOf(31*time.Minute, map[string]job.Definition{"a": oneAtATime(catchUp(job.CatchUpAll, definition(until(25*time.Minute, every(time.Minute)), 1)))})
			w.must(w.host("api").trigger(tenant, "a", 0))
			if !w.dies(writesRun("a#")) {
				t.Fatal("nobody has entered")
			}
			for _, r := range w.entries("a") {
				w.hold(r, "dead") // until its lease is over
			}
			places := map[run.ID]int64{}
			for second := range 10 {
				w.second(w.lookAhead < time.Minute || second == 0)
			}
			for _, r := range w.runs() {
				if r.Waits() {
					places[r.ID] = r.NextAt
				}
			}
			if len(places) < 3 {
				t.Fatalf("%d wait in line", len(places))
			}
			w.again(c.away, c.restarts)
			for second := 0; second < 40*60 && w.waiting(); second++ {
				w.second(w.lookAhead < time.Minute || second%60 == 0)
				for _, r := range w.runs() {
					if place, ok := places[r.ID]; ok && r.State == run.Queued && r.NextAt != place {
						t.Errorf("%s waited since its place at %s, and was given another at %s", r.ID, clock(place), clock(r.NextAt))
					}
				}
				for _, r := range w.entries("a") {
					if r.NextAt > w.now()+1000 {
						t.Errorf("%s is in progress at its gate at %s, and its place is at %s", r.ID, clock(w.now()), clock(r.NextAt))
					}
				}
			}
			seen := map[run.ID]bool{}
			last := int64(0)
			for _, s := range w.starts {
				switch {
				case s.attempt > 1 || s.id.OnDemand():
				case seen[s.id]:
					t.Errorf("%s started twice", s.id)
				case places[s.id] != 0 && s.id.Nominal < last:
					t.Errorf("%s started behind %s", s.id, clock(last))
				case places[s.id] != 0:
					last = s.id.Nominal
				}
				seen[s.id] = true
			}
			for id := range places {
				if !seen[id] {
					t.Errorf("%s never started", id)
				}
			}
			w.wants(w.check(w.now()))
		})
	}
}

// A worker takes a place at the gate and dies before it starts the run, whose place in time lapses meanwhile. Given another one, it is in nobody's way
// until then, and those who wait for it are let in at once. It starts at its new place.
func TestG1_G2_Fault01_Fault17_a_place_at_the_gate_lapses_with_the_place_in_time(t *testing.T) {
	for _, waits := range []bool{false, true} {
		const herd = 300
		w := newWorld(t, catchUpRate(1), byMinute())
		jobs := map[string]job.Definition{"a": oneAtATime(catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1)))}
		for i := range herd {
			jobs[fmt.Sprintf("job-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
		}
		w.outOf(31*time.Minute, jobs)
		died := false
		for second := 0; second < 2*herd && !died; second++ {
			w.elapsed += time.Second
			if second%60 == 0 {
				w.must(w.host("ticks").tick())
			}
			died = w.dies(writesRun("a#"))
		}
		held := w.entries("a")
		if !died || len(held) != 1 || held[0].State != run.Queued {
			t.Fatalf("died: %t, at the gate: %v", died, held)
		}
		r := held[0]
		w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
		w.hosts = map[string]*host{}
		if waits {
			w.must(w.host("api").trigger(tenant, "a", 0))
			w.work()
		}
		w.again(7*time.Minute, true)
		next := r
		for second := 0; second < 600 && next.NextAt == r.NextAt; second++ {
			w.second(second%60 == 0)
			next, _ = w.run(tenant, r.ID)
		}
		if next.NextAt <= w.now()+2000 || next.State != run.Queued {
			t.Fatalf("it is %s, and has its place at %s; had it at %s", next.State, clock(next.NextAt), clock(r.NextAt))
		}
		if !waits {
			w.must(w.host("api").trigger(tenant, "a", 0))
			w.work()
		}
		w.second(false)
		if !slices.ContainsFunc(w.starts, func(s start) bool { return s.id.OnDemand() }) {
			t.Errorf("waits: %t: who was asked for has not started, and in progress is %v", waits, w.entries("a"))
		}
		for second := 0; second < 20*60 && w.waiting(); second++ {
			for _, h := range w.entries("a") {
				if h.NextAt > w.now()+1000 {
					t.Errorf("%s is in progress at its gate at %s, and its place is at %s", h.ID, clock(w.now()), clock(h.NextAt))
				}
			}
			w.second(second%60 == 0)
		}
		if next, _ := w.run(tenant, r.ID); next.State != run.Succeeded {
			t.Errorf("waits: %t: it is %s", waits, next.State)
		}
		w.wants(w.check(w.now()))
	}
}

// Outages and crashes of workers come at any time while missed fires are made up for at gates. Everything starts, and nothing is in progress at a gate
// ahead of its place. The same seed gives the same history: go test ./tests/protocol -run at_gates -from-seed N -seeds 1.
func TestG1_G2_P11_Fault01_Fault17_after_any_outages_at_gates(t *testing.T) {
	n := uint64(*seeds / 10)
	if testing.Short() {
		n /= 4
	}
	for seed := *fromSeed; seed < *fromSeed+max(n, 1); seed++ {
		r := rand.New(rand.NewPCG(seed, 32))
		w := newWorld(t, catchUpRate([]int{1, 3, 20}[r.IntN(3)]), shards(1<<r.IntN(2)))
		w.elapsed = time.Duration(r.IntN(1000)) * time.Millisecond
		jobs := map[string]job.Definition{}
		for i := range 3 {
			def := catchUp(job.CatchUpAll, definition(until(25*time.Minute, every(time.Duration(40+20*i)*time.Second)), 1))
			def.Overlap = job.Overlap{Policy: job.OverlapQueue, Limit: 1 + r.IntN(2)}
			jobs[fmt.Sprintf("all-%d", i)] = def
		}
		w.outOf(31*time.Minute, jobs)
		outages, crashes := 1+r.IntN(4), r.IntN(6)
		for quiet := 0; quiet < 20; quiet++ {
			switch r.IntN(5) {
			case 0:
				if outages > 0 {
					outages--
					w.again(time.Duration(r.IntN([]int{3000, 20_000, 200_000}[r.IntN(3)]))*time.Millisecond, r.IntN(2) == 0)
				}
			case 1:
				if crashes > 0 {
					crashes--
					left := r.IntN(12)
					w.dies(func(operation) bool { left--; return left < 0 })
				}
			}
			w.second(true)
			for name := range jobs {
				for _, h := range w.entries(name) {
					if h.NextAt > w.now()+1000 {
						t.Errorf("seed %d: %s is in progress at its gate at %s, and its place is at %s", seed, h.ID, clock(w.now()), clock(h.NextAt))
					}
				}
			}
			if w.waiting() {
				quiet = 0
			}
			if w.elapsed > 12*time.Hour {
				t.Fatalf("seed %d: something waits for ever", seed)
			}
		}
		w.elapsed += 40 * time.Second
		for range 20 * 60 {
			w.second(true)
		}
		for _, one := range w.runs() {
			if one.State == run.Queued || one.State == run.Running {
				t.Errorf("seed %d: %s is %s", seed, one.ID, one.Stage())
			}
		}
		w.wants(w.check(w.now()))
		if t.Failed() {
			return
		}
	}
}
