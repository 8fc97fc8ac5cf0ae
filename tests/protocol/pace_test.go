package protocol_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// second lets a second pass, at whose end a host ticks where ticks is, and the worker works. It gives the starts of it.
func (w *world) second(ticks bool) []start {
	before := len(w.starts)
	w.elapsed += time.Second
	if ticks {
		w.must(w.host("ticks").tick())
	}
	w.work()
	return w.starts[before:]
}

// made tells of a start whether it makes up for a fire of before an outage's end, Unix ms.
func (s start) made(back int64) bool { return s.id.Nominal < back-5*60_000 }

// outOf has jobs in an outage: what they missed is over five minutes old, so that none of it is spared. It gives when the outage ends.
func (w *world) outOf(outage time.Duration, jobs map[string]job.Definition) (back int64) {
	for name, def := range jobs {
		w.must(w.host("api").put(tenant, name, def))
	}
	w.must(w.host("ticks").tick())
	w.elapsed += outage
	back = w.now()
	w.tickThrough()
	w.work()
	return back
}

func catchUp(mode job.CatchUpMode, def job.Definition) job.Definition {
	def.CatchUp.Mode = mode
	return def
}

// After an outage what is made up for starts at the rate and no faster, over all shards together, whether ticks come each second or each
// minute; and it takes no longer than a few times what the rate takes.
func TestP11_Fault17_a_herd_is_made_up_for_at_its_rate(t *testing.T) {
	for name, options := range map[string][]option{"one shard": nil, "four shards": {shards(4)}, "each minute": {shards(4), byMinute()}, "more shards than starts": {shards(64), byMinute()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const herd, rate = 150, 20
			w := newWorld(t, append(options, catchUpRate(rate))...)
			jobs := map[string]job.Definition{}
			for i := range herd {
				jobs[fmt.Sprintf("job-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
			}
			back := w.outOf(27*time.Minute, jobs)
			seconds := 0
			for ; len(w.starts) < herd && seconds < 20*herd/rate; seconds++ {
				made := 0
				for _, s := range w.second(w.lookAhead < time.Minute || seconds%60 == 0) {
					if s.made(back) {
						made++
					}
				}
				if made > rate {
					t.Errorf("%d started in a second, want %d at the most", made, rate)
				}
			}
			if len(w.starts) != herd || seconds < herd/rate-1 {
				t.Errorf("%d of %d started in %d seconds", len(w.starts), herd, seconds)
			}
			w.wants(w.check(w.now()))
		})
	}
}

// A job that catches up in full does so a start a second, the oldest first. Its live fires wait for none of it, and neither does another job's.
func TestP3_P11_Fault17_live_fires_go_on_in_time_beside_those_made_up_for(t *testing.T) {
	w := newWorld(t)
	const missed = 400
	back := w.outOf((missed+1)*time.Second, map[string]job.Definition{
		"each-second": catchUp(job.CatchUpAll, definition(every(time.Second), 1)),
		"beside":      catchUp(job.CatchUpNone, definition(every(2*time.Second), 1)),
	})
	var last int64
	var made []start
	for range missed + 10 {
		for _, s := range w.second(true) {
			switch {
			case s.id.Nominal > back && s.at > s.id.Nominal+1000:
				t.Errorf("%s, of %s, started at %s", s.id, clock(s.id.Nominal), clock(s.at))
			case s.id.Job == "each-second" && s.id.Nominal < back-1000:
				if s.id.Nominal <= last {
					t.Errorf("%s started behind %s", clock(s.id.Nominal), clock(last))
				}
				made, last = append(made, s), s.id.Nominal
			}
		}
	}
	for i, s := range made[1:] {
		if s.at-made[i].at < 1000 {
			t.Errorf("%s and %s started %d ms apart", made[i].id, s.id, s.at-made[i].at)
		}
	}
	if len(made) < missed-5 {
		t.Errorf("%d were made up for, want about %d", len(made), missed)
	}
	w.wants(w.check(w.now() - 2000))
}

// Several timers owe the same fires where passes died or were late again and again. What is left is made up for by one after the other all the same: a fire a
// second, and none of the places goes to what has begun.
func TestP11_Fault17_timers_that_owe_the_same_fires_share_their_places(t *testing.T) {
	for name, several := range map[string]func(w *world, first, last int64){
		"armed by themselves": func(w *world, first, last int64) {
			for i := range int64(6) {
				owing := timer.Timer{Tenant: tenant, Job: "a", Generation: w.job(tenant, "a").Generation}.Owing(first+10_000*i, last, w.now()+5000+2000*i)
				w.must(w.host("ticks").dispatch.Arm(t.Context(), owing))
			}
		},
		"by passes that died": func(w *world, _, _ int64) {
			for range 6 {
				w.elapsed += 7 * time.Second
				w.unfinished("dies")
			}
		},
		"by passes that died, and once more five minutes later": func(w *world, _, _ int64) {
			for range 6 {
				w.elapsed += 7 * time.Second
				w.unfinished("dies")
			}
			w.elapsed += 6 * time.Minute
			w.unfinished("dies")
			w.elapsed += 6 * time.Minute
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			const outage, spare = 400 * time.Second, 30
			w.outOf(outage, map[string]job.Definition{"a": catchUp(job.CatchUpAll, definition(every(time.Second), 1))})
			for range 100 {
				w.second(true)
			}
			first := w.starts[0].id.Nominal
			several(w, first, base.Add(outage-10*time.Second).UnixMilli())
			made, end := map[int64]int{}, w.now()
			for _, s := range w.starts {
				made[s.id.Nominal]++
			}
			seconds := int(end-first)/1000 - len(made) + spare
			for range seconds {
				for _, s := range w.second(true) {
					made[s.id.Nominal]++
				}
			}
			left := 0
			for fire := first; fire <= end; fire += 1000 {
				if made[fire] > 1 {
					t.Errorf("%s started %d times", clock(fire), made[fire])
				} else if made[fire] == 0 {
					left++
				}
			}
			if left > 0 {
				t.Errorf("%d of the fires up to %s have not started in %d seconds", left, clock(end), seconds)
			}
			w.wants(w.check(w.now() - 2000))
		})
	}
}

// A pass that comes upon what passes before it found late, and died over, goes through it once. It does not leave timers to the next one by which that goes
// through it again from each of them.
func TestP11_Fault17_fires_claimed_beside_owed_ones_are_come_upon_once(t *testing.T) {
	w := newWorld(t)
	w.outOf(time.Minute, map[string]job.Definition{"a": catchUp(job.CatchUpAll, definition(every(time.Second), 1))})
	for range 10 {
		w.elapsed += 20 * time.Second
		w.unfinished("dies")
	}
	for range 2 {
		w.elapsed += time.Second
		h := w.restart("counted")
		w.must(h.tick())
		if h.ops > 1500 { // it is 1000 fires at the most, of which one call claims many
			t.Errorf("the pass took %d operations", h.ops)
		}
		w.elapsed += 6 * time.Minute
	}
	w.elapsed = w.elapsed.Truncate(time.Second)
	for range 20 * 60 {
		w.second(true)
	}
	w.wants(w.check(w.now() - 2000))
}

// Passes die one behind the other while fires are owed, at any of their steps. Until all of the fires have started somebody waits, also for those that are owed
// by a timer which was to wake meanwhile; and each starts once.
func TestP2_Fault11_Fault17_passes_die_while_fires_are_owed(t *testing.T) {
	const missed = 30
	for _, dead := range []int{1, 2, 3, 6} {
		for last := 2; last <= 20; last += 3 {
			w := newWorld(t)
			w.outOf((missed+310)*time.Second, map[string]job.Definition{"a": catchUp(job.CatchUpAll, definition(until(missed*time.Second, every(time.Second)), 1))})
			for second := 0; w.waiting() && second < 10*missed; second++ {
				if dies := second%10 >= 10-dead; !dies {
					w.second(true)
					continue
				}
				w.restart("dies").before = func(op operation) faulty.Fault {
					if op.n > last {
						return faulty.Fault{Refuse: errCrashed}
					}
					return faulty.Fault{}
				}
				_ = w.host("dies").tick()
				delete(w.hosts, "dies")
				w.second(false)
			}
			made := map[int64]int{}
			for _, s := range w.starts {
				made[s.id.Nominal]++
			}
			if len(made) < missed-1 || len(w.starts) != len(made) {
				t.Errorf("%d passes that die after step %d: %d starts of %d fires, want one of each of %d", dead, last, len(w.starts), len(made), missed-1)
			}
			w.wants(w.check(w.now()))
		}
	}
}

// A process stops when places have been given, and its queue is gone with it. Nothing is lost, nothing starts twice or before its place.
func TestP2_P3_Fault01_Fault11_a_process_stops_with_places_given(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, 20 * time.Minute} {
		w := newWorld(t, catchUpRate(1))
		jobs := map[string]job.Definition{"all": catchUp(job.CatchUpAll, definition(until(20*time.Minute, every(time.Minute)), 1))}
		for i := range 20 {
			jobs[fmt.Sprintf("one-%d", i)] = catchUp(job.CatchUpOne, definition(until(20*time.Minute, every(10*time.Minute)), 1))
		}
		w.outOf(30*time.Minute, jobs)
		for range 5 {
			w.second(true)
		}
		waiting := 0
		for _, r := range w.runs() {
			if r.State == run.Queued && r.NextAt > w.now() {
				waiting++
			}
		}
		if waiting < 10 {
			t.Fatalf("%d runs wait for their places", waiting)
		}
		w.elapsed += wait
		w.hosts = map[string]*host{}
		w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
		if _, err := w.host("ticks").ticker.Recover(t.Context(), w.now(), nil); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			w.second(true)
		}
		seen := map[string]bool{}
		for _, s := range w.starts {
			if seen[s.id.String()] {
				t.Errorf("%s started twice", s.id)
			}
			seen[s.id.String()] = true
		}
		if len(seen) != 19+20 {
			t.Errorf("after %s: %d runs started, want all 39", wait, len(seen))
		}
		w.wants(w.check(w.now()))
	}
}

// What waits for its place has been claimed. An edit and a pause leave it as it was defined, since its time was before them; behind a delete
// none of it starts.
func TestP8_Fault17_an_edit_while_fires_wait_for_their_places(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(h *host) error
		starts bool
	}{
		"edit":   {func(h *host) error { return h.put(tenant, "a", definition(until(40*time.Minute, every(time.Hour)), 2)) }, true},
		"pause":  {func(h *host) error { return h.pause(tenant, "a") }, true},
		"delete": {func(h *host) error { return h.delete(tenant, "a") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, lookAhead(10*time.Second))
			w.outOf(30*time.Minute, map[string]job.Definition{"a": catchUp(job.CatchUpAll, definition(until(20*time.Minute, every(time.Minute)), 1))})
			generation := w.job(tenant, "a").Generation
			for range 3 {
				w.second(true)
			}
			begun := len(w.starts)
			if begun == 0 || begun > 5 {
				t.Fatalf("%d have started in three seconds", begun)
			}
			w.must(c.edit(w.host("api")))
			for range 60 {
				w.second(true)
			}
			ended := 0
			for _, r := range w.runs() {
				if r.State == run.Cancelled && r.Reason == dispatch.Deleted {
					ended++
				}
			}
			for _, s := range w.starts {
				if s.generation != generation {
					t.Errorf("%s ran under generation %d, want %d", s.id, s.generation, generation)
				}
			}
			if want := map[bool]int{true: 19, false: begun}[c.starts]; len(w.starts) != want || ended != 19-want {
				t.Errorf("%d of 19 started and %d were cancelled, want %d and %d", len(w.starts), ended, want, 19-want)
			}
			w.wants(w.check(w.now()))
		})
	}
}

// However long a fire waits for its place, it was found in its window, and runs.
func TestP2_Fault17_a_place_makes_no_fire_missed_again(t *testing.T) {
	for _, mode := range []job.CatchUpMode{job.CatchUpOne, job.CatchUpAll} {
		w := newWorld(t)
		def := catchUp(mode, definition(every(10*time.Minute), 1))
		def.CatchUp.Window = schedule.Duration(2 * time.Hour)
		want := map[job.CatchUpMode]int{job.CatchUpOne: 1, job.CatchUpAll: 6}[mode]
		w.must(w.host("api").put(tenant, "a", def))
		w.must(w.host("ticks").tick())
		w.elapsed += 66 * time.Minute
		back := w.now()
		w.tickThrough()
		w.elapsed += 3 * time.Hour // before any of it has started
		w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
		w.hosts = map[string]*host{}
		if _, err := w.host("ticks").ticker.Recover(t.Context(), w.now(), nil); err != nil {
			t.Fatal(err)
		}
		for range 90 {
			w.second(true)
		}
		made := 0
		for _, s := range w.starts {
			if s.made(back) {
				made++
			}
		}
		if made != want {
			t.Errorf("%s: %d of the first outage started, want %d", mode, made, want)
		}
		w.wants(w.check(w.now()))
	}
}

// Places that were given by a clock which was ahead are not waited for by others: what is missed after it was set back starts at once.
func TestP4_Fault09_places_of_a_clock_that_is_set_back(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock), catchUpRate(1))
	for i := range 30 {
		w.must(w.host("api").put(tenant, fmt.Sprintf("early-%d", i), catchUp(job.CatchUpOne, definition(until(2*time.Minute, every(time.Minute)), 1))))
	}
	w.stepped = 2 * time.Hour
	w.must(w.host("ticks").tick())
	w.work()
	early := len(w.starts)
	w.stepped = 0
	w.must(w.host("api").put(tenant, "later", catchUp(job.CatchUpOne, definition(until(4*time.Minute, every(3*time.Minute)), 1))))
	w.second(true)
	w.elapsed += 20 * time.Minute
	for range 10 {
		w.second(true)
	}
	if last := w.starts[len(w.starts)-1]; last.id.Job != "later" || early > 3 {
		t.Errorf("%d had started by the clock that was ahead, and then %v", early, w.starts)
	}
}
