package protocol_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// passing is a job whose runs pass named gates.
func passing(overlap job.Overlap, gates ...job.GateUse) job.Definition {
	def := definition(nil, 1)
	def.Overlap, def.Gates = overlap, gates
	return def
}

func uses(units int, gates ...string) (all []job.GateUse) {
	for _, name := range gates {
		all = append(all, job.GateUse{Gate: name, Units: units})
	}
	return all
}

// redefine writes a definition of a gate, and makes it hold.
func (h *host) redefine(name string, change func(*gate.Named)) error {
	items, err := h.store.Get(context.Background(), gate.NamedKey(tenant, name))
	if err != nil {
		return err
	}
	n, err := gate.NamedFromItem(tenant, items[0])
	if err != nil {
		return err
	}
	n.Generation, n.Updated, n.Deleted = n.Next(h.now()), h.now(), false
	change(&n)
	op, err := n.Put(h.newID())
	if err != nil {
		return err
	}
	versions, err := h.store.Write(context.Background(), op)
	if err != nil {
		return err
	}
	return h.dispatch.Redefined(context.Background(), n.Written(versions[0]))
}

func limited(n int) func(*gate.Named) {
	return func(d *gate.Named) { d.Def, d.Closed = gate.Definition{Limit: n}, nil }
}

// asks asks for a run of a job, and gives its ID.
func (h *host) asks(name string) run.ID {
	r, _, err := h.order(tenant, name, control.Request{Delay: new(time.Duration)})
	h.must(err)
	return r.ID
}

// Runs of two jobs share a gate: whoever waits is let in by whoever ends, of whichever job.
func TestG1_G2_two_jobs_share_a_named_gate(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.redefine("stripe", limited(1)))
	w.must(api.put(tenant, "a", passing(job.Overlap{}, uses(1, "stripe")...)))
	w.must(api.put(tenant, "b", passing(job.Overlap{}, uses(1, "stripe")...)))
	api.asks("a")
	ends := w.inProgress("w1")
	b, a := api.asks("b"), api.asks("a")
	w.work()
	for _, id := range []run.ID{a, b} {
		if r, _ := w.run(tenant, id); !r.Waits() || r.Wait.Gate != "stripe" {
			t.Errorf("%s is %s at %q", id, r.Stage(), r.Wait.Gate)
		}
	}
	ends()
	w.work()
	for _, id := range []run.ID{a, b} {
		if got := w.stage(id); got != run.Succeeded {
			t.Errorf("%s is %s", id, got)
		}
	}
	w.wants(w.check(w.now() - 1))
}

// A run of a paused job that wants more than is free keeps others waiting no longer: the pause itself lets them in. The resume and the next end have it start.
func TestG2_G3_a_pause_lets_others_pass_at_a_named_gate(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.redefine("stripe", limited(2)))
	w.must(api.put(tenant, "a", passing(job.Overlap{}, uses(1, "stripe")...)))
	w.must(api.put(tenant, "b", passing(job.Overlap{}, uses(2, "stripe")...)))
	w.must(api.put(tenant, "c", passing(job.Overlap{}, uses(1, "stripe")...)))
	api.asks("a")
	ends := w.inProgress("w1")
	b := api.asks("b")
	w.work()
	w.elapsed += time.Second
	c := api.asks("c")
	w.work()
	if w.stage(b) != run.Waiting || w.stage(c) != run.Waiting {
		t.Fatalf("they are %s and %s", w.stage(b), w.stage(c))
	}
	w.must(api.pause(tenant, "b"))
	w.work()
	if got := w.stage(c); got != run.Succeeded {
		t.Errorf("behind a run of a paused job it is %s", got)
	}
	w.must(api.resume(tenant, "b"))
	ends()
	w.advance(10*time.Second, 2*time.Second, "ticks")
	if got := w.stage(b); got != run.Succeeded {
		t.Errorf("after the resume it is %s", got)
	}
	w.wants(w.check(w.now() - 1))
}

// Each host dies at any of its operations while runs of two jobs want in, which pass an own gate, one named gate and two, with units. All end within
// the promised time.
func TestG1_G2_G4_G5_Fault01_a_crash_at_each_write_of_several_gates(t *testing.T) {
	for name, c := range map[string]struct {
		dies func(w *world, left int) bool // tells whether it came to it
	}{
		"a worker": {func(w *world, left int) bool {
			return w.dies(func(op operation) bool {
				if op.writes() {
					left--
				}
				return left < 0
			})
		}},
		"an edit of the gate": {func(w *world, left int) bool {
			w.work()
			died := false
			h := w.restart("edits")
			h.before = func(op operation) faulty.Fault {
				if op.writes() {
					left--
				}
				if died = died || left < 0; died {
					return faulty.Fault{Refuse: errCrashed}
				}
				return faulty.Fault{}
			}
			_ = h.redefine("stripe", limited(3))
			_ = h.redefine("gpu", func(d *gate.Named) { d.Deleted = true })
			w.restart("edits")
			return died
		}},
	} {
		t.Run(name, func(t *testing.T) {
			last := false
			for at := 0; !last && at < 300; at++ {
				w := newWorld(t)
				api := w.host("api")
				w.must(api.redefine("stripe", limited(2)))
				w.must(api.redefine("gpu", limited(1)))
				w.must(api.put(tenant, "a", passing(job.Overlap{Policy: job.OverlapQueue, Limit: 1}, uses(2, "stripe")...)))
				w.must(api.put(tenant, "b", passing(job.Overlap{}, uses(1, "stripe", "gpu")...)))
				w.must(api.put(tenant, "c", passing(job.Overlap{}, uses(1, "gpu")...)))
				for i := range 9 {
					api.asks(string(rune('a' + i%3)))
				}
				last = !c.dies(w, at)
				for second := 0; second < 40*60 && w.open(); second += 20 {
					w.advance(20*time.Second, 20*time.Second, "ticks")
				}
				for _, r := range w.runs() {
					if r.State != run.Succeeded {
						t.Errorf("a crash at write %d: %s is %s at %q: %s", at, r.ID, r.Stage(), r.Wait.Gate, r.Reason)
					}
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

// Histories: runs of three jobs, which pass two named gates and their own, are asked for, cancelled, retried and released; the jobs are edited, paused and
// deleted, and the gates get other limits, are closed, opened, deleted and made anew, while hosts die at any operation. The judge sees no more units in progress than
// the limit in force when they were let in, and nobody overtaken; and everybody ends. The same seed gives the same history:
// go test ./tests/protocol -run named_gates -from-seed N -seeds 1.
func TestG1_G2_G3_G4_G5_Fault01_after_any_history_at_named_gates(t *testing.T) {
	n := uint64(*seeds / 4)
	if testing.Short() {
		n /= 4
	}
	for seed := *fromSeed; seed < *fromSeed+max(n, 1); seed++ {
		atNamedGates(t, seed, false)
		if t.Failed() {
			t.Logf("seed %d", seed)
			return
		}
	}
}

// The same, where gates let runs wait for some minutes, or in the order of their deadlines, and say so of a line that others wait in: nobody waits on for long, or is skipped in time.
func TestG3_G4_Fault01_after_any_history_at_gates_that_bound_a_wait(t *testing.T) {
	n := uint64(*seeds / 4)
	if testing.Short() {
		n /= 4
	}
	for seed := *fromSeed; seed < *fromSeed+max(n, 1); seed++ {
		atNamedGates(t, seed, true)
		if t.Failed() {
			t.Logf("seed %d", seed)
			return
		}
	}
}

func atNamedGates(t *testing.T, seed uint64, bounds bool) {
	r := rand.New(rand.NewPCG(seed, 39))
	own := rand.New(rand.NewPCG(seed, 48)) // so that histories without bounds are what they were
	w := newWorld(t)
	names, gates := []string{"a", "b", "c"}, []string{"gpu", "stripe"}
	define := func(h *host, name string) error {
		var overlap job.Overlap
		if r.IntN(2) == 0 {
			overlap = job.Overlap{Policy: []job.OverlapPolicy{job.OverlapQueue, job.OverlapSkip, job.OverlapQueueLatest, job.OverlapQueueOne}[r.IntN(4)], Limit: 1 + r.IntN(2)}
		}
		var all []job.GateUse
		for _, g := range gates {
			if r.IntN(4) > 0 {
				all = append(all, job.GateUse{Gate: g, Units: 1 + r.IntN(2)})
			}
		}
		def := passing(overlap, all...)
		def.Payload = fmt.Appendf(nil, `{"edit": %d}`, r.IntN(1000))
		def.Priority = queue.Priorities[r.IntN(3)]
		def.Paused = r.IntN(8) == 0
		if bounds && own.IntN(2) == 0 {
			def.Deadline = schedule.Duration(time.Duration(1+own.IntN(40)) * time.Minute)
		}
		return h.put(tenant, name, def)
	}
	redefine := func(h *host, name string) error {
		limit, most, k := 1+r.IntN(3), r.IntN(4), r.IntN(10)
		return h.redefine(name, func(d *gate.Named) {
			switch {
			case k == 0:
				d.Deleted = true
			case k < 3 && d.Version != 0:
				d.Closed = &gate.Change{At: w.now()}
			default:
				limited(limit)(d)
				if k == 3 {
					d.Def.MaxWaiting = &most
				}
				if k == 4 {
					d.Def.Order = gate.OrderFIFO
				}
				if bounds && own.IntN(2) == 0 {
					d.Def.Order = gate.OrderDeadline
				}
				if bounds && own.IntN(2) == 0 {
					d.Def.MaxWait = schedule.Duration(time.Duration(1+own.IntN(300)) * time.Second)
				}
			}
		})
	}
	for _, g := range gates {
		w.must(w.host("api").redefine(g, limited(2))) // a lower one refuses a job that wants two units
	}
	for _, name := range names {
		w.must(define(w.host("api"), name))
	}
	dying := func(do func(h *host) error) {
		left := r.IntN(20)
		h := w.restart("api")
		h.before = func(operation) faulty.Fault {
			if left--; left < 0 {
				return faulty.Fault{Refuse: errCrashed}
			}
			return faulty.Fault{}
		}
		_ = do(h)
		w.restart("api")
	}
	var asked []run.ID
	for range 50 {
		name, named := names[r.IntN(3)], gates[r.IntN(2)]
		switch k := r.IntN(20); {
		case k < 8:
			if one, _, err := w.host("api").order(tenant, name, control.Request{Delay: new(time.Duration)}); err == nil {
				asked = append(asked, one.ID)
			}
		case k == 8 && len(asked) > 0:
			_ = w.host("api").cancel(tenant, asked[r.IntN(len(asked))])
		case k == 9 && len(asked) > 0:
			_ = w.host("api").retry(tenant, asked[r.IntN(len(asked))])
		case k == 10 && len(asked) > 0:
			_, _ = w.host("api").dispatch.Release(t.Context(), run.Run{ID: asked[r.IntN(len(asked))], Tenant: tenant}, "", "")
		case k == 11:
			_ = define(w.host("api"), name) // refused where it names a gate that was deleted
		case k == 12 && r.IntN(3) == 0:
			_ = w.host("api").delete(tenant, name)
			w.elapsed += time.Second
			_ = define(w.host("api"), name)
		case k == 13, k == 14:
			w.must(redefine(w.host("api"), named))
		case k == 15:
			dying(func(h *host) error { return redefine(h, named) })
		case k == 16:
			dying(func(h *host) error { return define(h, name) })
		case k == 17:
			left := r.IntN(25)
			w.dies(func(operation) bool { left--; return left < 0 })
		default:
			w.advance(time.Duration(1+r.IntN(60))*time.Second, 20*time.Second, "ticks")
		}
		if r.IntN(3) > 0 {
			w.work()
		}
	}
	for _, g := range gates {
		w.must(w.host("api").redefine(g, limited(1+r.IntN(3))))
	}
	for _, name := range names {
		w.must(w.host("api").put(tenant, name, passing(job.Overlap{}, uses(1, gates...)...)))
	}
	for second := 0; second < 60*60 && w.open(); second += 20 {
		w.advance(20*time.Second, 20*time.Second, "ticks")
	}
	for _, one := range w.runs() {
		if !one.State.Ended() && one.State != run.Fenced {
			t.Errorf("seed %d: %s is %s at %q", seed, one.ID, one.Stage(), one.Wait.Gate)
		}
	}
	w.wants(w.check(w.now() - 1))
}

// A resume, or a delete, sees who waits at a gate that an edit since has left out, or passes without a key.
func TestG2_a_resume_sees_who_waits_at_a_gate_that_an_edit_left_out(t *testing.T) {
	team := func(def *job.Definition) { def.Labels = map[string]string{"team": "x"} }
	byTeam := []job.GateUse{{Gate: "stripe", Units: 1, Key: "${ .labels.team }"}}
	for name, c := range map[string]struct {
		before job.Definition
		after  job.Definition
		act    func(api *host) error // default: a resume
		want   run.State             // default: succeeded
	}{
		"no gate any more":             {before: passing(job.Overlap{}, uses(1, "stripe")...), after: passing(job.Overlap{})},
		"no gate of values any more":   {before: passing(job.Overlap{}, byTeam...), after: passing(job.Overlap{})},
		"another gate":                 {before: passing(job.Overlap{}, byTeam...), after: passing(job.Overlap{}, uses(1, "other")...)},
		"no key any more":              {before: passing(job.Overlap{}, byTeam...), after: passing(job.Overlap{}, uses(1, "stripe")...)},
		"a key, where there was none":  {before: passing(job.Overlap{}, uses(1, "stripe")...), after: passing(job.Overlap{}, byTeam...)},
		"no gate, and then it is gone": {before: passing(job.Overlap{}, byTeam...), after: passing(job.Overlap{}), act: func(api *host) error { return api.delete(tenant, "a") }, want: run.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			api := w.host("api")
			w.must(api.redefine("stripe", limited(1)))
			w.must(api.redefine("other", limited(1)))
			team(&c.before)
			team(&c.after)
			w.must(api.redefine("stripe", func(d *gate.Named) { d.Closed = &gate.Change{At: w.now()} }))
			w.must(api.put(tenant, "a", c.before))
			a := api.asks("a")
			w.work()
			if r, _ := w.run(tenant, a); !r.Waits() || r.Wait.Gate != "stripe" {
				t.Fatalf("it is %s at %q", r.Stage(), r.Wait.Gate)
			}
			w.elapsed += time.Hour // what is due in a pause, or shortly before it, is sent by the resume in any case
			w.must(api.pause(tenant, "a"))
			for range 2 { // the second changes nothing of gates
				w.elapsed += time.Second
				c.after.Paused, c.after.Description = true, c.after.Description+"."
				w.must(api.put(tenant, "a", c.after))
			}
			w.must(api.redefine("stripe", limited(1)))
			w.work()
			if got := w.stage(a); got != run.Waiting {
				t.Fatalf("in the pause it is %s", got)
			}
			if c.act == nil {
				c.act, c.want = func(api *host) error { return api.resume(tenant, "a") }, run.Succeeded
			}
			w.elapsed += time.Second
			w.must(c.act(api))
			w.work()
			if got := w.stage(a); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			w.wants(w.check(w.now() - 1))
		})
	}
}
