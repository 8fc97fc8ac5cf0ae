package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Here ticks are called once a minute, each in a process that knows nothing of the one before.

// tickAnew is one of them.
func (w *world) tickAnew() error { return w.restart("ticks").tick() }

// byMinute is the look-ahead of such ticks.
func byMinute() option { return lookAhead(150 * time.Second) }

// Ticks come anywhere in their minute, up to 119 s apart, some twice, and for four minutes none. What is due in reach of them starts to
// the second, the rest late, and each once.
func TestP2_P3_Fault05_ticks_anywhere_in_the_minute_fire_to_the_second(t *testing.T) {
	w := newWorld(t, byMinute())
	const length = 14 * 60
	w.must(w.host("api").put(tenant, "a", definition(every(7*time.Second), 1)))
	w.must(w.host("api").put(other, "b", definition(&schedule.Spec{Cron: "* * * * *"}, 1)))
	ticks := []int{0, 119, 120, 180, 181, 299, 300, 419, 420, 420, 481, 599, 600 /* away */, 780, 839}
	for second := range length {
		w.elapsed = time.Duration(second) * time.Second
		for _, at := range ticks {
			if at == second {
				w.must(w.tickAnew())
			}
		}
		w.work()
	}
	// The tick at 600 saw what is due up to 12:59.999 of the world.
	away := base.Add(780 * time.Second).UnixMilli()
	seen := map[string]int{}
	late := 0
	for _, s := range w.starts {
		seen[s.id.String()]++
		switch {
		case s.at < s.id.Nominal:
			t.Errorf("%s started %d ms early", s.id, s.id.Nominal-s.at)
		case s.at > s.id.Nominal && s.id.Nominal < away:
			t.Errorf("%s started %d ms late", s.id, s.at-s.id.Nominal)
		case s.at > s.id.Nominal:
			late++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s started %d times", id, n)
		}
	}
	sevens := base.Add((length-1)*time.Second).Unix()/7 - base.Unix()/7
	if want := int(sevens) + (length-1)/60; len(seen) != want || late != 0 {
		t.Errorf("%d runs started, want %d; %d of them late", len(seen), want, late)
	}
	w.wants(w.settle())
}

// The ticks are away for longer than they look ahead: what came due meanwhile starts late, and once.
func TestP2_P3_Fault10_ticks_missed_for_minutes(t *testing.T) {
	w := newWorld(t, byMinute())
	w.must(w.host("api").put(tenant, "a", definition(until(15*time.Minute, every(20*time.Second)), 1)))
	for second := range 16 * 60 {
		w.elapsed = time.Duration(second) * time.Second
		if minute := second / 60; second%60 == 0 && (minute < 3 || minute > 9) {
			w.must(w.tickAnew())
		}
		w.work()
	}
	seen := map[int64]bool{}
	for _, s := range w.starts {
		if seen[s.id.Nominal] || s.at < s.id.Nominal {
			t.Errorf("%s started twice or early", s.id)
		}
		seen[s.id.Nominal] = true
	}
	// Up to 00:04:59 a tick had claimed ahead. What was due from then on was missed, but for the newest, at 00:10:00.
	if want := 15*3 - 1 - 5*3; len(seen) != want {
		t.Errorf("%d runs started, want %d", len(seen), want)
	}
	w.wants(w.settle())
}

// hold has a worker hold a run, as its start writes it.
func (w *world) hold(r run.Run, worker string) run.Run {
	op, err := r.Start(worker, w.now(), 30*time.Second).Item(w.newID())
	w.must(err)
	_, err = w.store.Write(context.Background(), op)
	w.must(err)
	held, _ := w.run(r.Tenant, r.ID)
	return held
}

// The store was away for all: a worker that lives could not renew its lease. The first tick afterwards judges none. The worker that is
// dead is found by a later one.
func TestP4_Fault09_Fault45_no_lease_is_judged_right_after_the_store_was_away(t *testing.T) {
	w := newWorld(t, byMinute())
	w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(20*time.Second)), 1)))
	w.must(w.tickAnew())
	w.elapsed = 41 * time.Second
	runs := w.runs()
	if len(runs) < 2 {
		t.Fatalf("%d runs were claimed, want 2", len(runs))
	}
	living, dead := w.hold(runs[0], "living"), w.hold(runs[1], "dead")
	for minute := 1; minute < 6; minute++ { // the first sweep gives each a check
		w.elapsed = time.Duration(minute) * time.Minute
		living = w.hold(living, "living") // it renews
		w.must(w.tickAnew())
	}
	w.elapsed += 20 * time.Minute // nobody reaches the store
	w.must(w.tickAnew())
	for _, r := range []run.Run{living, dead} {
		if now, _ := w.run(tenant, r.ID); now.State != run.Running {
			t.Errorf("right after the store came back %s of the worker %s is %s, want running", r.ID, r.Worker, now.State)
		}
	}
	for range 20 {
		w.elapsed += 5 * time.Second
		living = w.hold(living, "living")
	}
	for range 4 {
		w.elapsed += time.Minute
		living = w.hold(living, "living")
		w.must(w.tickAnew())
	}
	if now, _ := w.run(tenant, dead.ID); now.Crashes != 1 {
		t.Errorf("%s of the dead worker is %s after %d crashes, want it found dead", dead.ID, now.State, now.Crashes)
	}
	if now, _ := w.run(tenant, living.ID); now.State != run.Running || now.Crashes != 0 {
		t.Errorf("%s of the living worker is %s after %d crashes, want running", living.ID, now.State, now.Crashes)
	}
}

// A tick dies behind its sends, and then there is none for longer than runs are kept. What it had claimed has run, and is gone: it must
// not run again. What nobody can have claimed is caught up with.
func TestP2_Fault10_Fault45_what_ran_and_expired_is_not_made_again(t *testing.T) {
	for _, mode := range []string{"one", "all"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, byMinute())
			def := definition(until(10*time.Minute, every(30*time.Second)), 1)
			def.CatchUp.Mode = jobMode(mode)
			w.must(w.host("api").put(tenant, "a", def))
			h := w.host("ticks")
			h.before = func(op operation) faulty.Fault {
				if len(op.call.Ops) == 1 && op.call.Ops[0].Key.Partition == "shard#00" && len(w.runs()) > 0 {
					return faulty.Fault{Refuse: errCrashed} // behind the sends
				}
				return faulty.Fault{}
			}
			if err := h.tick(); !errors.Is(err, errCrashed) {
				t.Fatalf("the tick ended with %v, want a crash", err)
			}
			for range 200 {
				w.elapsed += time.Second
				w.work()
			}
			first := len(w.starts)
			reach := base.Add(3 * time.Minute).UnixMilli() // the horizon of that tick
			if first != 5 {
				t.Fatalf("%d runs started, want the 5 up to the horizon", first)
			}
			w.elapsed += 26 * time.Hour
			for n, r := range w.runs() { // the runs' retention is over, but for one that somebody has looked at again
				if n == 0 && mode == "one" {
					continue
				}
				_, err := w.store.Write(context.Background(), store.Op{Kind: store.Delete, Key: r.ID.Key(r.Tenant)})
				w.must(err)
			}
			for range 3 {
				w.must(w.tickAnew())
				w.work()
				w.elapsed += time.Minute
			}
			var again, caught []int64
			for _, s := range w.starts[first:] {
				if s.id.Nominal < reach {
					again = append(again, s.id.Nominal)
				}
				caught = append(caught, s.id.Nominal)
			}
			want := map[string]int{"one": 1, "all": 14}[mode] // from 00:03:00 to 00:09:30
			if len(again) > 0 || len(caught) != want || !slices.Contains(caught, base.Add(570*time.Second).UnixMilli()) {
				t.Errorf("%d runs started again, and %d were caught up with, want none and %d: %v", len(again), len(caught), want, caught)
			}
			stretch, _ := w.run(tenant, run.FireID("a", base.Add(30*time.Second).UnixMilli()))
			if mode == "one" {
				if stretch.State != run.Succeeded {
					t.Errorf("what stands is %s, want it as it was", stretch.State)
				}
				return
			}
			if stretch.State != run.Skipped || !strings.Contains(stretch.Reason, "missed") {
				t.Errorf("what nobody can tell is recorded as %s %q, want skipped, with its reason", stretch.State, stretch.Reason)
			}
		})
	}
}

// A bucket cannot be read for minutes, and holds the watermark. Ticks that remember nothing do not send again what the others had.
func TestP10_P11_what_was_done_beside_a_stuck_bucket_is_not_done_over(t *testing.T) {
	w := newWorld(t, byMinute())
	w.must(w.host("api").put(tenant, "a", definition(until(9*time.Minute, every(20*time.Second)), 1)))
	w.must(w.host("api").put(other, "b", definition(every(20*time.Second), 1)))
	stuck := fmt.Sprintf("#%02d", timer.BucketOf(other, "b"))
	sent := 0
	for range 6 {
		h := w.restart("ticks")
		h.before = func(op operation) faulty.Fault {
			if op.sent != nil {
				sent++
			}
			if op.call.Method == faulty.Query && strings.HasSuffix(op.call.Range.Partition, stuck) {
				return faulty.Fault{Refuse: store.ErrThrottled}
			}
			return faulty.Fault{}
		}
		if err := h.tick(); !errors.Is(err, store.ErrThrottled) {
			t.Fatalf("the tick ended with %v, want the stuck bucket", err)
		}
		w.elapsed += time.Minute
	}
	if s := w.shard(); s.Watermark > base.UnixMilli() {
		t.Errorf("the watermark went on to %d, over a bucket that was not read", s.Watermark)
	}
	if runs := len(w.runs()); sent != runs || runs < 9 {
		t.Errorf("%d messages for %d runs, want one each", sent, runs)
	}
}
