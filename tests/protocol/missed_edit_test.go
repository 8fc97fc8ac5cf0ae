package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// changes are what an owner does to a job that has just missed fires.
func changes() map[string]func(h *host) error {
	next := func(number int) job.Definition { return definition(until(lasting, every(time.Second)), number) }
	remove := func(h *host) error {
		err := h.delete(tenant, "a")
		if refused := (*control.Refusal)(nil); errors.As(err, &refused) && refused.Code == control.CodeJobNotFound {
			return nil // it is repeated
		}
		return err
	}
	return map[string]func(h *host) error{
		"deleted":   remove,
		"edited":    func(h *host) error { return h.put(tenant, "a", next(2)) },
		"paused":    func(h *host) error { return h.pause(tenant, "a") },
		"made anew": func(h *host) error { return errors.Join(remove(h), h.put(tenant, "a", next(3))) },
	}
}

// A job misses fires for some seconds, and beside the tick that decides over them it is deleted, edited, paused, or made anew: with a crash behind
// each write of the one or the other, and each at each operation of the other. Every fire of each definition's time is a run of it, or counted once.
func TestP2_P8_Fault11_Fault17_a_change_beside_what_was_just_missed_loses_and_doubles_nothing(t *testing.T) {
	tick := func(h *host) error { return h.tick() }
	for what, change := range changes() {
		for _, mode := range []job.CatchUpMode{job.CatchUpNone, job.CatchUpOne, job.CatchUpAll} {
			for _, o := range []struct{ away, lookAhead, jitter time.Duration }{{19 * time.Second, 2 * time.Second, 0}, {3500 * time.Millisecond, 2 * time.Second, 0},
				{9 * time.Second, 2 * time.Second, 0}, {12 * time.Second, 2 * time.Second, 6 * time.Second}, {28 * time.Second, 20 * time.Second, 0}} {
				if o.away != 19*time.Second && (testing.Short() || mode != job.CatchUpOne) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", what, mode, o.away), func(t *testing.T) {
					t.Parallel()
					for _, play := range []struct {
						order      string
						crash      bool
						acts, then func(*host) error
					}{
						{"the tick crashed, then the change", true, tick, change},
						{"the change crashed, then the tick", true, change, tick},
						{"the change amid the tick", false, tick, change},
						{"the tick amid the change", false, change, tick},
					} {
						for k, more := 1, true; more; k++ {
							w := newWorld(t, lookAhead(o.lookAhead))
							def := definition(until(lasting, every(time.Second)), 1)
							def.CatchUp.Mode, def.Schedule.Jitter = mode, schedule.Duration(o.jitter)
							w.must(w.host("api").put(tenant, "a", def))
							w.advance(5*time.Second, time.Second, "ticks")
							w.elapsed += o.away
							more = w.beside(k, play.crash, play.acts, play.then)
							w.elapsed += 200 * time.Millisecond
							w.must(w.host("ticks").tick())
							w.must(change(w.host("again"))) // a client repeats what it has no answer to
							at := w.now()
							if wrong := append(w.settle(), w.accounts(at, !play.crash)...); len(wrong) > 0 {
								t.Fatalf("%s, at operation %d:\n%s", play.order, k, strings.Join(wrong, "\n"))
							}
						}
					}
				})
			}
		}
	}
}

// beside has a host act, and another before its k-th operation. One that crashes is dead behind its k-th write, and the other acts then. It tells
// whether there was such an operation.
func (w *world) beside(k int, crash bool, acts, then func(*host) error) (more bool) {
	h, writes := w.restart("acting"), 0
	h.before = func(op operation) faulty.Fault {
		switch {
		case op.n == k && !crash:
			more = true
			w.must(then(w.host("other")))
		case writes == k && crash:
			more = true
			return faulty.Fault{Refuse: errCrashed}
		case op.writes():
			writes++
		}
		return faulty.Fault{}
	}
	if err := acts(h); !more || !crash {
		w.must(err)
	}
	delete(w.hosts, "acting")
	if crash || !more {
		w.must(then(w.host("other")))
	}
	return more
}

// accounts gives what is wrong with the fires of each second up to an instant: each is of the definition that was in force, which has a run of it or
// counts it among what it dropped, once. A delete at the moment of a decision may have ended fires that the decision counts, too.
func (w *world) accounts(upTo int64, together bool) (wrong []string) {
	j := w.job(tenant, "a")
	fires := func(generation int64) bool {
		e, err := w.host("judge").dispatch.Book.Edition(context.Background(), tenant, "a", generation)
		w.must(err)
		return e.Schedule != nil && !e.Def.Paused
	}
	runs := w.runs()
	for at := base.Add(time.Second).UnixMilli(); at <= upTo; at += 1000 {
		generation, want := j.Generation, 0
		for i := len(j.Past) - 1; i >= 0 && at <= j.Past[i].Until; i-- {
			generation = j.Past[i].Generation
		}
		if generation != j.Generation && fires(generation) || generation == j.Generation && j.Active() {
			want = 1
		}
		ran, ended, dropped := 0, 0, 0
		for _, r := range runs {
			switch {
			case r.State == run.Fenced, r.ID.Job != "a":
			case r.State == run.Skipped && r.Generation == generation && r.Count > 0 && r.ID.Nominal <= at && at <= r.Through:
				dropped++
			case r.ID.Nominal == at && r.ClaimedFor() == generation && r.State == run.Cancelled && r.Reason == dispatch.Deleted:
				ended++
			case r.State != run.Skipped && r.ID.Nominal == at && r.ClaimedFor() == generation:
				ran++
			case r.ID.Nominal == at && r.State != run.Skipped:
				wrong = append(wrong, fmt.Sprintf("%s is %s of generation %d, want %d", show(r.ID), r.State, r.ClaimedFor()-base.UnixMilli(), generation-base.UnixMilli()))
			}
		}
		if together && dropped == 1 {
			ended = 0
		}
		if ran+ended+dropped != want {
			wrong = append(wrong, fmt.Sprintf("the fire at %s has %d runs and is dropped %d times, want %d in all", clock(at), ran+ended, dropped, want))
		}
	}
	return wrong
}
