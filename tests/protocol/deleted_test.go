package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// failing is a job whose target fails, and is tried again.
func (w *world) failing(spec *schedule.Spec) job.Definition {
	w.handlers.Register("fail", func(ctx context.Context, call target.Call) (target.Result, error) {
		_, _ = w.note(ctx, call)
		return target.Result{}, errors.New("no")
	})
	def := definition(spec, 1)
	def.Target.Handler.Name = "fail"
	def.Retry = job.Retry{MaxAttempts: 50, Initial: schedule.Duration(20 * time.Second), Max: schedule.Duration(20 * time.Second), Factor: 1}
	return def
}

// A job is deleted, or deleted and made anew, at each operation of whoever works on its runs: those that start in time, those that wait to be
// tried again, and those that have waited for long. The judge knows when the answer to the delete was given, and which attempts began after it.
func TestP8_P2_nothing_starts_after_the_answer_to_a_delete(t *testing.T) {
	anew := map[string]bool{"deleted": false, "made anew": true}
	for name, again := range anew {
		t.Run(name, func(t *testing.T) {
			cancelled, called := 0, 0
			for k, more := 1, true; more; k++ {
				more = false
				w := newWorld(t, lookAhead(20*time.Second))
				w.must(w.host("api").put(tenant, "a", w.failing(until(2*time.Minute, every(10*time.Second)))))
				w.must(w.host("api").trigger(tenant, "a", 15*time.Second))
				w.advance(24*time.Second, 6*time.Second, "ticks") // some are tried again
				w.elapsed += 30 * time.Second                     // and some wait since then, for longer than a delete looks back
				w.must(w.host("ticks").tick())
				n := 0
				acting := func(operation) faulty.Fault {
					if n++; n == k {
						more = true
						w.must(w.host("owner").delete(tenant, "a"))
						if again {
							w.must(w.host("owner").put(tenant, "a", definition(until(2*time.Minute, every(20*time.Second)), 2)))
						}
						called = len(w.starts)
					}
					return faulty.Fault{}
				}
				for _, name := range []string{"worker", "ticks"} {
					w.host(name).before = acting
				}
				w.work()
				w.must(w.host("ticks").tick())
				w.host("worker").before, w.host("ticks").before = nil, nil
				if !more {
					break
				}
				if wrong := w.settle(); len(wrong) > 0 {
					t.Fatalf("deleted at operation %d: %v", k, wrong)
				}
				for _, r := range w.runs() {
					if r.State == run.Cancelled && r.Reason == "the job was deleted" {
						cancelled++
					} else if !r.State.Ended() && r.State != run.Fenced {
						t.Errorf("deleted at operation %d: %s is %s", k, show(r.ID), r.State)
					}
				}
				if !again && len(w.starts) > called+1 { // the attempt under way at the most
					t.Errorf("deleted at operation %d: %d attempts began after the answer", k, len(w.starts)-called)
				}
			}
			if cancelled == 0 {
				t.Error("nothing was cancelled")
			}
		})
	}
}

// A tick that has read the job stops, the job is deleted, and the tick goes on to claim what was due before that.
func TestP8_P2_a_tick_that_overlooks_a_delete_starts_nothing(t *testing.T) {
	for k, more := 1, true; more; k++ {
		more = false
		w := newWorld(t)
		w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(time.Second)), 1)))
		w.advance(5*time.Second, time.Second, "ticks")
		w.elapsed += 4 * time.Second // the ticks are a little late
		h := w.host("ticks")
		h.ops, h.before = 0, func(op operation) faulty.Fault {
			if op.n == k {
				more = true
				w.must(w.host("owner").delete(tenant, "a"))
			}
			return faulty.Fault{}
		}
		w.must(h.tick())
		h.before = nil
		answered := len(w.starts)
		w.work()
		if more && len(w.starts) > answered {
			t.Errorf("deleted at operation %d: %s runs", k, show(w.starts[answered].id))
		}
		if wrong := w.settle(); len(wrong) > 0 {
			t.Fatalf("deleted at operation %d: %v", k, wrong)
		}
	}
}

// Where the job cannot be read once the start is durable, nothing is called, and the run is handed back: it costs neither a failure nor a
// crash, also where it may be called once only.
func TestP5_P8_Fault48_a_job_that_cannot_be_read_costs_no_attempt(t *testing.T) {
	w := newWorld(t)
	def := definition(until(15*time.Second, every(10*time.Second)), 1)
	def.Guarantee = job.AtMostOnce
	w.must(w.host("api").put(tenant, "a", def))
	w.advance(9*time.Second, time.Second, "ticks")
	w.elapsed += time.Minute // its message has waited
	refused := 0
	w.host("worker").before = func(op operation) faulty.Fault {
		if op.call.Method == faulty.Get && len(op.call.Keys) == 1 && op.call.Keys[0] == job.Key(tenant, "a") && refused < 3 {
			refused++
			return faulty.Fault{Refuse: store.ErrThrottled}
		}
		return faulty.Fault{}
	}
	for range 20 {
		w.work()
		w.elapsed += time.Second
	}
	r, _ := w.run(tenant, run.FireID("a", base.Add(10*time.Second).UnixMilli()))
	if refused == 0 || r.State != run.Succeeded || r.Failures != 0 || r.Crashes != 0 || len(w.starts) != 1 {
		t.Errorf("after %d refusals: %s with %d failures, %d crashes, %d calls", refused, r.State, r.Failures, r.Crashes, len(w.starts))
	}
	w.wants(w.settle())
}

// A delete looks for runs on demand however far ahead, and while it does so the job is made anew. They are the old job's, and none of them runs,
// whether it is due at once, soon or much later; nor does a fire.
func TestP8_P2_what_a_delete_has_still_to_end_is_no_run_of_the_next_job(t *testing.T) {
	for _, ahead := range []time.Duration{0, 30 * time.Second, 10 * time.Minute} {
		for k, more := 1, true; more; k++ {
			more = false
			w := newWorld(t)
			w.must(w.host("api").put(tenant, "a", definition(until(20*time.Second, every(time.Second)), 1)))
			w.must(w.host("api").trigger(tenant, "a", ahead))
			w.elapsed += 2 * time.Second
			w.must(w.host("ticks").tick())
			h := w.host("owner")
			h.before = func(op operation) faulty.Fault {
				if op.n == k {
					more = true
					w.must(w.host("api").put(tenant, "a", definition(nil, 2)))
				}
				return faulty.Fault{}
			}
			w.must(h.delete(tenant, "a"))
			h.before = nil
			answered := len(w.starts)
			w.work()
			w.elapsed += ahead
			w.work() // a message that is due by now is taken before the ticks come to its time
			w.advance(time.Minute, 10*time.Second, "ticks")
			late := w.starts[answered:]
			if newest := w.job(tenant, "a"); k <= 3 && more && newest.Deleted {
				late = nil // the new definition was deleted with the old one
			}
			for _, s := range late {
				t.Errorf("due in %s, made anew at operation %d: %s ran by generation %d", ahead, k, show(s.id), s.generation)
			}
			if wrong := w.settle(); len(wrong) > 0 {
				t.Errorf("due in %s, made anew at operation %d: %v", ahead, k, wrong)
			}
		}
	}
}

// A delete that is slow comes upon runs of the job that has its name by now: it leaves them alone.
func TestP1_P8_a_slow_delete_leaves_the_next_job_alone(t *testing.T) {
	for k, more := 1, true; more; k++ {
		more = false
		w := newWorld(t)
		w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
		w.must(w.host("api").trigger(tenant, "a", 5*time.Minute))
		var asked []run.ID
		h := w.host("owner")
		h.before = func(op operation) faulty.Fault {
			if op.n == k {
				more = true
				w.must(w.host("api").put(tenant, "a", definition(nil, 2)))
				for _, delay := range []time.Duration{0, 40 * time.Second, 5 * time.Minute} {
					r, _, err := w.host("api").order(tenant, "a", control.Request{Delay: new(delay)})
					w.must(err)
					asked = append(asked, r.ID)
				}
			}
			return faulty.Fault{}
		}
		w.must(h.delete(tenant, "a"))
		h.before = nil
		if !more {
			break
		}
		deleted := w.job(tenant, "a").Deleted
		w.advance(6*time.Minute, 10*time.Second, "ticks")
		for _, id := range asked {
			r, _ := w.run(tenant, id)
			if want := map[bool]run.State{false: run.Succeeded, true: run.Cancelled}[deleted]; r.State != want {
				t.Errorf("made anew at operation %d, deleted after that %v: %s is %s, want %s", k, deleted, show(id), r.State, want)
			}
		}
		if wrong := w.settle(); len(wrong) > 0 {
			t.Errorf("made anew at operation %d: %v", k, wrong)
		}
	}
}

// A run waits for a worker, its job is deleted and made anew, and the new job is paused and resumed, which looks for what the pause has held: the
// run is of the job before, and ends.
func TestP8_P2_no_edit_of_the_next_job_takes_over_a_run_of_a_deleted_one(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.must(w.host("api").trigger(tenant, "a", 0))
	w.elapsed += 40 * time.Second
	w.must(w.host("ticks").tick())
	w.must(w.host("api").delete(tenant, "a"))
	w.must(w.host("api").put(tenant, "a", definition(nil, 2)))
	w.must(w.host("api").pause(tenant, "a"))
	w.elapsed += 2 * time.Second
	w.must(w.host("api").resume(tenant, "a"))
	w.work()
	w.wants(w.settle())
	for _, s := range w.starts {
		t.Errorf("%s ran by generation %d", show(s.id), s.generation)
	}
}

// A delete stops behind its write, or before it has ended the last run, and is repeated or left until every sweep has passed it. Then the job is made
// anew. What was asked of the old one for much later ends.
func TestP8_Fault11_a_delete_that_is_finished_late_ends_what_is_due_much_later(t *testing.T) {
	for name, repeated := range map[string]bool{"repeated": true, "made anew": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k, crashed := 1, true; crashed; k++ {
				crashed = false
				w := newWorld(t)
				w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
				w.must(w.host("api").trigger(tenant, "a", 4*time.Hour))
				h := w.restart("dies")
				h.before = func(op operation) faulty.Fault {
					if crashed = op.n > k; crashed {
						return faulty.Fault{Refuse: errCrashed}
					}
					return faulty.Fault{}
				}
				_ = h.delete(tenant, "a")
				delete(w.hosts, "dies")
				w.advance(2*time.Hour, time.Minute, "ticks")
				if !w.job(tenant, "a").Deleted {
					continue // it had not begun
				}
				if repeated {
					_ = w.host("owner").delete(tenant, "a")
				}
				w.must(w.host("owner").put(tenant, "a", definition(nil, 2)))
				w.must(w.host("owner").put(tenant, "a", definition(nil, 3)))
				w.advance(2*time.Hour+time.Minute, time.Minute, "ticks")
				if wrong := w.settle(); len(wrong) > 0 || len(w.starts) > 0 {
					t.Fatalf("crashed behind operation %d: %d runs of the old job, and %v", k, len(w.starts), wrong)
				}
			}
		})
	}
}

// A clock is ahead, claims a fire in time, and deletes the job while the run waits for a worker. Set back, it comes to the run's time once more. A
// process that was started since knows of it by the horizon.
func TestP8_Fault09_a_run_in_time_once_more_looks_at_its_job(t *testing.T) {
	for name, restarted := range map[string]bool{"one process": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocks(oracle.AnyClock))
			w.must(w.host("worker").put(tenant, "a", definition(until(time.Hour, every(10*time.Second)), 1)))
			w.stepped = 10 * time.Minute
			for range 12 {
				w.elapsed += time.Second
				w.must(w.host("worker").tick())
			}
			w.elapsed += 40 * time.Second
			w.must(w.host("worker").delete(tenant, "a"))
			w.stepped = 0
			if restarted {
				w.restart("worker")
			}
			called := len(w.starts)
			w.advance(12*time.Minute, time.Second, "worker")
			for _, s := range w.starts[called:] {
				t.Errorf("%s ran after the delete", show(s.id))
			}
			w.wants(w.settle())
		})
	}
}

// A request is taken by a clock that is behind: the run's nominal time lies so far back that a delete does not come upon it. The job that is made
// under the name next does not get it.
func TestP8_Fault09_a_request_by_a_clock_behind_is_of_its_job(t *testing.T) {
	const behind = 34 * time.Minute
	refused := func(w *world) { // as the clock is found to be wrong
		h := w.restart("behind")
		h.skew = -behind
		h.before = func(operation) faulty.Fault {
			h.store.SetSkew(behind)
			return faulty.Fault{}
		}
		if err := h.trigger(tenant, "a", 0); err == nil {
			w.Fatal("the request by a clock behind was answered")
		}
		delete(w.hosts, "behind")
	}
	answered := func(w *world) { // as the clock is the one that counts, on one machine
		w.elapsed -= behind
		w.must(w.host("node").tick())
		w.must(w.host("node").trigger(tenant, "a", 0))
		w.must(w.host("node").trigger(tenant, "a", 5*time.Minute))
		w.must(w.host("node").tick())
		w.elapsed += behind
	}
	for _, c := range []struct {
		name   string
		paused bool
		ask    func(*world)
	}{
		{"refused, of a paused job", true, refused},
		{"answered, of a paused job", true, answered},
		{"answered, in part for later", false, answered},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, clocks(oracle.AnyClock))
			w.must(w.host("node").put(tenant, "a", definition(nil, 1)))
			w.advance(20*time.Minute, time.Minute, "node")
			if c.paused {
				w.must(w.host("node").pause(tenant, "a"))
			}
			w.advance(2*time.Minute, time.Minute, "node")
			c.ask(w)
			w.elapsed += 2 * time.Second
			w.must(w.host("node").delete(tenant, "a"))
			w.elapsed += 2 * time.Second
			before := len(w.starts)
			w.must(w.host("node").put(tenant, "a", definition(nil, 2)))
			w.advance(2*time.Hour, 20*time.Second, "node")
			if n := len(w.starts) - before; n > 0 {
				t.Errorf("%d runs of the deleted job started", n)
			}
			w.wants(w.check(w.now()))
		})
	}
}

// What is due and not claimed has no mark of its job yet: a pause holds it, or its claim was put off. A delete does not come upon all of these, as
// where the resume before it has died. They are none of the job that is made under the name next, whichever edits that one sees.
func TestP8_P2_Fault11_what_nobody_has_claimed_yet_is_no_run_of_the_next_job(t *testing.T) {
	dies := func(what func(*host) error, k int) func(*world) bool {
		return func(w *world) (more bool) {
			h := w.restart("dies")
			h.before = func(op operation) faulty.Fault {
				if more = op.n > k; more {
					return faulty.Fault{Refuse: errCrashed}
				}
				return faulty.Fault{}
			}
			_ = what(h)
			delete(w.hosts, "dies")
			return more
		}
	}
	resume := func(h *host) error { return h.resume(tenant, "a") }
	change := func(h *host) error { return h.put(tenant, "a", definition(nil, 3)) }
	ways := map[string]func(w *world, k int) bool{
		"a resume dies":    func(w *world, k int) bool { return dies(resume, k)(w) },
		"a PUT of it dies": func(w *world, k int) bool { return dies(change, k)(w) },
		"a resume dies, and it is paused again": func(w *world, k int) bool {
			more := dies(resume, k)(w)
			w.elapsed += 2 * time.Second
			w.must(w.host("api").pause(tenant, "a"))
			return more
		},
	}
	next := map[string]func(h *host){
		"left alone": func(*host) {},
		"paused and resumed": func(h *host) {
			h.must(h.pause(tenant, "a"))
			h.elapsed += 2 * time.Second
			h.must(h.resume(tenant, "a"))
		},
	}
	for before, way := range ways {
		for after, edits := range next {
			t.Run(before+", the next is "+after, func(t *testing.T) {
				t.Parallel()
				for k, more := 1, true; more; k++ {
					w := newWorld(t, lookAhead(20*time.Second))
					w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
					w.must(w.host("api").pause(tenant, "a"))
					w.must(w.host("api").trigger(tenant, "a", 0))
					w.must(w.host("api").trigger(tenant, "a", 3*time.Minute))
					w.advance(4*time.Minute, 20*time.Second, "ticks")
					more = way(w, k)
					w.elapsed += 20 * time.Second
					w.must(w.host("api").delete(tenant, "a"))
					w.must(w.host("api").put(tenant, "a", definition(nil, 2)))
					called := len(w.starts)
					edits(w.host("api"))
					w.advance(20*time.Minute, 30*time.Second, "ticks")
					if wrong := w.settle(); len(wrong) > 0 || len(w.starts) > called {
						t.Fatalf("died behind operation %d: %d runs of the deleted job, and %v", k, len(w.starts)-called, wrong)
					}
				}
			})
		}
	}
	t.Run("a claim is put off", func(t *testing.T) {
		w := newWorld(t, lookAhead(2*time.Minute))
		w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
		w.must(w.host("api").trigger(tenant, "a", 5*time.Minute))
		w.elapsed += 4 * time.Minute
		refused := false
		w.host("ticks").before = func(op operation) faulty.Fault {
			if op.writes() && strings.Contains(op.text(), "run#") && !refused {
				refused = true
				return faulty.Fault{Refuse: store.ErrTooLarge}
			}
			return faulty.Fault{}
		}
		w.must(w.host("ticks").tick())
		w.elapsed += 80 * time.Second
		w.must(w.host("api").delete(tenant, "a"))
		w.must(w.host("api").put(tenant, "a", definition(nil, 2)))
		w.advance(20*time.Minute, 30*time.Second, "ticks")
		if wrong := w.settle(); !refused || len(wrong) > 0 || len(w.starts) > 0 {
			t.Errorf("refused %v: %d runs of the deleted job, and %v", refused, len(w.starts), wrong)
		}
	})
}

// A run is of the job that stands as it is put, however long ago it was first asked for, and whatever clock made that job.
func TestP1_P8_P9_Fault09_what_is_put_for_the_next_job_is_its_own(t *testing.T) {
	again := func(w *world) {
		w.must(w.host("api").delete(tenant, "a"))
		w.elapsed += time.Minute
		w.must(w.host("api").put(tenant, "a", definition(nil, 2)))
	}
	for name, ask := range map[string]func(w *world, req control.Request) run.ID{
		"a request is repeated": func(w *world, req control.Request) run.ID {
			req.Key = "k"
			w.diesBehind("idem#", func(h *host) error { _, _, err := h.order(tenant, "a", req); return err })
			again(w)
			r, _, err := w.host("api").order(tenant, "a", req)
			w.must(err)
			return r.ID
		},
		"a request is slow": func(w *world, req control.Request) run.ID {
			h := w.host("slow")
			h.before = func(op operation) faulty.Fault {
				if op.writes() {
					h.before = nil
					again(w)
				}
				return faulty.Fault{}
			}
			r, _, err := h.order(tenant, "a", req)
			w.must(err)
			return r.ID
		},
		"a request is finished by a sweep": func(w *world, req control.Request) run.ID {
			w.diesBehind("due#", func(h *host) error { _, _, err := h.order(tenant, "a", req); return err })
			again(w)
			for _, tm := range w.timers() {
				if tm.Kind == timer.Request {
					return tm.Run
				}
			}
			w.Fatal("no timer stands for the request")
			return run.ID{}
		},
		"the job is by a clock ahead": func(w *world, req control.Request) run.ID {
			w.must(w.host("api").delete(tenant, "a"))
			w.byAClockAhead(30*time.Minute, func(h *host) error { return h.put(tenant, "a", definition(nil, 2)) })
			r, _, err := w.host("api").order(tenant, "a", req)
			w.must(err)
			return r.ID
		},
	} {
		for _, delay := range []time.Duration{0, 10 * time.Minute} {
			for _, paused := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, due in %s, of a job that is paused %v", name, delay, paused), func(t *testing.T) {
					w := newWorld(t)
					first := definition(nil, 1)
					first.Paused = paused
					w.must(w.host("api").put(tenant, "a", first))
					w.must(w.host("slow").put(tenant, "other", first))
					id := ask(w, control.Request{Delay: new(delay)})
					w.advance(40*time.Minute, 20*time.Second, "ticks")
					w.wants(w.settle())
					if r, _ := w.run(tenant, id); r.State != run.Succeeded {
						t.Errorf("%s is %s: %s", show(id), r.State, r.Reason)
					}
				})
			}
		}
	}
}

// A request died behind its timer or its key, and a sweep or a repetition finishes it while the job is deleted and made anew: at each operation. Its
// run is of the one job or of the other, and comes to its end as such.
func TestP1_P2_P8_Fault11_a_request_is_finished_while_its_job_is_made_anew(t *testing.T) {
	for _, behind := range []string{"idem#", "due#"} {
		for _, delay := range []time.Duration{0, 3 * time.Minute} {
			for _, first := range []bool{false, true} {
				t.Run(fmt.Sprintf("died behind %s, due in %s, paused %v", behind, delay, first), func(t *testing.T) {
					t.Parallel()
					for k, more := 1, true; more; k++ {
						more = false
						w := newWorld(t)
						def := definition(nil, 1)
						def.Paused = first
						w.must(w.host("api").put(tenant, "a", def))
						req := control.Request{Delay: new(delay), Key: "k"}
						w.diesBehind(behind, func(h *host) error { _, _, err := h.order(tenant, "a", req); return err })
						n := 0
						acting := func(operation) faulty.Fault {
							if n++; n == k {
								more = true
								w.must(w.host("owner").delete(tenant, "a"))
								w.must(w.host("owner").put(tenant, "a", definition(nil, 2)))
							}
							return faulty.Fault{}
						}
						w.elapsed += 40 * time.Second
						w.host("ticks").before, w.host("again").before = acting, acting
						_, _, _ = w.host("again").order(tenant, "a", req)
						w.advance(6*time.Minute, 30*time.Second, "ticks")
						w.host("ticks").before, w.host("again").before = nil, nil
						if wrong := w.settle(); len(wrong) > 0 {
							t.Fatalf("made anew at operation %d: %v", k, wrong)
						}
						for _, r := range w.runs() {
							if !r.State.Ended() && !first {
								t.Errorf("made anew at operation %d: %s is %s", k, show(r.ID), r.State)
							}
						}
					}
				})
			}
		}
	}
}

// A tick has claimed fires ahead, the edit that was to fence them dies, and their time comes. A delete then ends what may start without a look at
// the job, though it is of a generation that was over by then.
func TestP8_P2_Fault11_a_delete_ends_what_an_edit_that_died_has_left(t *testing.T) {
	for name, second := range map[string]job.Definition{
		"other fires": definition(until(time.Minute, every(7*time.Second)), 2),
		"no fires":    definition(nil, 2),
		"the same":    definition(until(time.Minute, every(10*time.Second)), 2),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, lookAhead(20*time.Second))
			w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(10*time.Second)), 1)))
			w.elapsed += 5 * time.Second
			w.must(w.host("ticks").tick())
			w.elapsed += 3 * time.Second
			w.diesBehind("job#", func(h *host) error { return h.put(tenant, "a", second) })
			w.elapsed += 13 * time.Second
			w.must(w.host("api").delete(tenant, "a"))
			w.work()
			w.wants(w.settle())
			for _, s := range w.starts {
				t.Errorf("%s ran by generation %d", show(s.id), s.generation)
			}
		})
	}
}
