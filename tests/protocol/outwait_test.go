package protocol_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// waitingAtMost has a gate let so many in at once, and others wait for so long.
func waitingAtMost(n int, most time.Duration) func(*gate.Named) {
	return func(d *gate.Named) {
		d.Def, d.Closed = gate.Definition{Limit: n, MaxWait: schedule.Duration(most)}, nil
	}
}

// Nobody knocks, and no message comes again: whoever has waited for as long as the gate lets runs wait is skipped within a minute, wherever that time lies between the regular
// checks. Whoever ends after that lets in those that are in time.
func TestG4_a_tick_skips_who_has_waited_too_long_within_a_minute(t *testing.T) {
	for _, most := range []time.Duration{time.Second, 50 * time.Second, 61 * time.Second, 7 * time.Minute, 30*time.Minute + time.Second, 3 * time.Hour} {
		t.Run(most.String(), func(t *testing.T) {
			w := newWorld(t)
			api := w.host("api")
			w.must(api.redefine("stripe", waitingAtMost(1, most)))
			w.must(api.put(tenant, "a", passing(job.Overlap{}, uses(1, "stripe")...)))
			w.must(api.put(tenant, "b", passing(job.Overlap{}, uses(1, "stripe")...)))
			w.must(api.redefine("stripe", func(d *gate.Named) { d.Closed = &gate.Change{At: w.now()} })) // so that nobody's end lets in
			b := api.asks("b")
			w.work()
			r, _ := w.run(tenant, b)
			if until := r.Wait.Since + most.Milliseconds(); !r.Waits() || r.Wait.Until != until {
				t.Fatalf("it is %s until %d, want %d", r.Stage(), r.Wait.Until, until)
			}
			for w.stage(b) == run.Waiting && w.now() < r.Wait.Until+120_000 {
				w.advance(10*time.Second, 2*time.Second, "ticks")
			}
			ended, _ := w.run(tenant, b)
			if late := ended.Ended - r.Wait.Until; ended.State != run.Skipped || ended.Why.Code != run.WhyMaxWait || late <= 0 || late > 60_000 {
				t.Errorf("it is %s for %+v, %d ms behind its time", ended.Stage(), ended.Why, late)
			}
			w.wants(w.check(w.now() - 1))
		})
	}
}

// Each host dies at any of its writes while runs join a line, wait too long, and are skipped, by a worker or by ticks. All end within the promised time: those in time well, and the others as skipped with the gate.
func TestG2_G4_Fault01_a_crash_at_each_write_of_who_waits_too_long(t *testing.T) {
	for name, dies := range map[string]func(w *world, left int) bool{
		"as it joins": func(w *world, left int) bool {
			dead := w.dies(func(op operation) bool {
				if op.writes() {
					left--
				}
				return left < 0
			})
			w.advance(90*time.Second, 10*time.Second, "ticks")
			return dead
		},
		"as a tick skips it": func(w *world, left int) bool {
			w.work()
			w.elapsed += 90 * time.Second
			h, died := w.restart("dying"), false
			h.before = func(op operation) faulty.Fault {
				if op.writes() {
					left--
				}
				if died = died || left < 0; died {
					return faulty.Fault{Refuse: errCrashed}
				}
				return faulty.Fault{}
			}
			for range 3 {
				_ = h.tick()
			}
			delete(w.hosts, "dying")
			return died
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := false
			for at := 0; !last && at < 200; at++ {
				w := newWorld(t)
				api := w.host("api")
				w.must(api.redefine("stripe", waitingAtMost(1, time.Minute)))
				w.must(api.put(tenant, "a", passing(job.Overlap{}, uses(1, "stripe")...)))
				w.must(api.put(tenant, "b", passing(job.Overlap{Policy: job.OverlapQueue, Limit: 1}, uses(1, "stripe")...)))
				w.must(api.redefine("stripe", func(d *gate.Named) { d.Closed = &gate.Change{At: w.now()} }))
				for i := range 4 {
					api.asks([]string{"a", "b"}[i%2])
				}
				last = !dies(w, at)
				w.advance(90*time.Second, 10*time.Second, "ticks")
				w.must(api.redefine("stripe", func(d *gate.Named) { d.Closed = nil }))
				for second := 0; second < 40*60 && w.open(); second += 20 {
					w.advance(20*time.Second, 20*time.Second, "ticks")
				}
				skipped := 0
				for _, r := range w.runs() {
					switch {
					case r.State == run.Skipped && r.Why.Code == run.WhyMaxWait && r.Why.Gate == "stripe" && r.Why.Since != 0:
						skipped++
					case r.State != run.Succeeded:
						t.Errorf("a crash at write %d: %s is %s at %q: %s", at, r.ID, r.Stage(), r.Wait.Gate, r.Reason)
					}
				}
				if skipped == 0 {
					t.Errorf("a crash at write %d: nobody was skipped", at)
				}
				w.wants(w.check(w.now() - 1))
				if t.Failed() {
					return
				}
			}
			if !last {
				t.Error("there are writes at which it has not died")
			}
		})
	}
}
