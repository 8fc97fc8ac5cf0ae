package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// again has everything away for some time: crashed, with the queue gone, where restarts is, else frozen as it is.
func (w *world) again(away time.Duration, restarts bool) {
	w.elapsed += away
	if !restarts {
		return
	}
	w.hosts = map[string]*host{}
	w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
	if _, err := w.host("ticks").ticker.Recover(w.Context(), w.now(), nil); err != nil {
		w.Fatal(err)
	}
}

// What waits for its place when a second outage comes, and a third, is given another one: the rate holds as after the first. Nothing is lost,
// nothing starts twice, and a job's fires start a second apart and in their order, whoever comes upon them first: the recovery, a tick, or a worker
// with the message that it had.
func TestP2_P11_Fault17_places_that_lapse_in_another_outage(t *testing.T) {
	for name, c := range map[string]struct {
		away     time.Duration
		restarts bool
		works    bool // the worker is there before the first tick
		rate     int
		options  []option
	}{
		"crashed":                       {away: 15 * time.Second, restarts: true, rate: 1},
		"crashed, and the worker first": {away: 15 * time.Second, restarts: true, works: true, rate: 1},
		"crashed for long":              {away: 20 * time.Minute, restarts: true, rate: 20},
		"frozen":                        {away: 15 * time.Second, rate: 1},
		"frozen, and the worker first":  {away: 40 * time.Second, works: true, rate: 20},
		"four shards":                   {away: 15 * time.Second, works: true, rate: 20, options: []option{shards(4)}},
		"each minute":                   {away: 7 * time.Minute, works: true, rate: 1, options: []option{byMinute()}},
		"each minute, and soon back":    {away: 100 * time.Second, works: true, rate: 1, options: []option{byMinute()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const herd, missed = 60, 24
			w := newWorld(t, append(c.options, catchUpRate(c.rate))...)
			jobs := map[string]job.Definition{"all": catchUp(job.CatchUpAll, definition(until(25*time.Minute, every(time.Minute)), 1))}
			for i := range herd {
				jobs[fmt.Sprintf("job-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
			}
			w.outOf(31*time.Minute, jobs)
			const all = herd + missed
			for seconds := 0; len(w.starts) < all && seconds < 40*60; seconds++ {
				if seconds == 2 || seconds == 5 {
					w.again(c.away, c.restarts)
					begun := len(w.starts)
					if c.works {
						w.work()
					}
					if n := len(w.starts) - begun; n > c.rate+1 { // what lapsed within the last second
						t.Errorf("%d started at once when all were back, want %d at the most", n, c.rate+1)
					}
				}
				starts := w.second(w.lookAhead < time.Minute || seconds%60 == 0 || seconds == 2 || seconds == 5)
				if len(starts) > c.rate+1 {
					t.Errorf("%d started in second %d, want %d at the most", len(starts), seconds, c.rate)
				}
			}
			seen := map[string]bool{}
			last := map[string]start{}
			near := 0
			for _, s := range w.starts {
				if seen[s.id.String()] {
					t.Errorf("%s started twice", s.id)
				}
				seen[s.id.String()] = true
				if s.id.Nominal < base.Add(4*time.Minute).UnixMilli() {
					continue // claimed ahead, in time
				}
				before, ok := last[s.id.Job]
				if ok && w.lookAhead < time.Minute && s.id.Nominal < before.id.Nominal {
					t.Errorf("%s started at %s, and then %s at %s", before.id, clock(before.at), s.id, clock(s.at))
				}
				if ok && s.at-before.at < 1000 {
					near++
				}
				last[s.id.Job] = s
			}
			if near > 2 { // each time when all were back, one that lapsed within the last second
				t.Errorf("%d fires of a job started within a second of the one before", near)
			}
			if len(w.starts) != all {
				t.Errorf("%d of %d started", len(w.starts), all)
			}
			w.wants(w.check(w.now()))
		})
	}
}

// What waits for a worker that is busy or away, while ticks go on, has had its place: it starts as soon as there is one, in its order, and is given
// no other place.
func TestP3_Fault17_who_waits_for_a_worker_keeps_its_place(t *testing.T) {
	for name, options := range map[string][]option{"each second": nil, "each minute": {byMinute()}} {
		w := newWorld(t, options...)
		w.outOf(60*time.Minute, map[string]job.Definition{"a": catchUp(job.CatchUpAll, definition(until(50*time.Minute, every(time.Minute)), 1))})
		begun := len(w.starts)
		for second := range 5 * 60 {
			w.elapsed += time.Second
			if w.lookAhead < time.Minute || second%60 == 0 {
				w.must(w.host("ticks").tick())
			}
		}
		w.work()
		starts := w.starts[begun:]
		for i, s := range starts {
			if i > 0 && s.id.Nominal < starts[i-1].id.Nominal {
				t.Errorf("%s: %s started before %s", name, starts[i-1].id, s.id)
			}
		}
		if len(starts) < 40 {
			t.Errorf("%s: %d started when the worker was back", name, len(starts))
		}
		for _, r := range w.runs() {
			if r.State == run.Succeeded && r.Version != 3 {
				t.Errorf("%s: %s was written %d times", name, r.ID, r.Version)
			}
		}
		w.wants(w.check(w.now()))
	}
}

// Two servers share a store and a queue, and one crashes, or both: the rate holds for what they start together.
func TestP11_Fault17_places_that_lapse_while_servers_that_share_a_store_are_away(t *testing.T) {
	const herd, rate = 60, 4
	w := newWorld(t, catchUpRate(rate), shards(4))
	jobs := map[string]job.Definition{}
	for i := range herd {
		jobs[fmt.Sprintf("job-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
	}
	w.outOf(31*time.Minute, jobs)
	for seconds := 0; len(w.starts) < herd && seconds < 600; seconds++ {
		before := len(w.starts)
		w.elapsed += time.Second
		if seconds == 3 || seconds == 9 {
			w.elapsed += 20 * time.Second
			w.hosts = map[string]*host{} // what was sent is in the queue, and is had by whoever is first
			w.work()
		}
		for _, name := range []string{"one", "other"} {
			w.must(w.host(name).tick())
		}
		w.work()
		if n := len(w.starts) - before; n > rate+2 {
			t.Errorf("%d started in second %d, want %d at the most", n, seconds, rate)
		}
	}
	if len(w.starts) != herd {
		t.Errorf("%d of %d started", len(w.starts), herd)
	}
	w.wants(w.check(w.now()))
}

// An edit and a pause leave what waits for another place as it was defined; behind a delete none of it starts.
func TestP8_Fault17_an_edit_while_places_lapse(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(h *host) error
		starts bool
	}{
		"edit":   {func(h *host) error { return h.put(tenant, "a", definition(until(40*time.Minute, every(time.Hour)), 2)) }, true},
		"pause":  {func(h *host) error { return h.pause(tenant, "a") }, true},
		"delete": {func(h *host) error { return h.delete(tenant, "a") }, false},
	} {
		for _, asked := range []bool{false, true} { // before the worker has asked for the places, or behind that
			w := newWorld(t, lookAhead(10*time.Second))
			w.outOf(30*time.Minute, map[string]job.Definition{"a": catchUp(job.CatchUpAll, definition(until(20*time.Minute, every(time.Minute)), 1))})
			generation := w.job(tenant, "a").Generation
			for range 3 {
				w.second(true)
			}
			begun := len(w.starts)
			w.again(time.Minute, true)
			if asked {
				w.work()
			}
			w.must(c.edit(w.host("api")))
			for range 60 {
				w.second(true)
			}
			for _, s := range w.starts {
				if s.generation != generation {
					t.Errorf("%s: %s ran under generation %d, want %d", name, s.id, s.generation, generation)
				}
			}
			ended := 0
			for _, r := range w.runs() {
				if r.State == run.Cancelled && r.Reason == dispatch.Deleted {
					ended++
				}
			}
			if want := map[bool]int{true: 19, false: begun}[c.starts]; len(w.starts) != want || ended != 19-want {
				t.Errorf("%s: %d of 19 started and %d were cancelled, want %d and %d", name, len(w.starts), ended, want, 19-want)
			}
			w.wants(w.check(w.now()))
		}
	}
}

// A clock that jumps an hour ahead makes all places lapse at once, and they are given again. When it is set back, what waits for a place of that
// hour is none the worse for it, and what comes after is given its places once.
func TestP4_P11_Fault09_places_that_lapse_by_a_step_of_the_clock(t *testing.T) {
	t.Parallel() // it waits 16 seconds, and works a tenth of one
	const herd = 40
	w := newWorld(t, clocks(oracle.AnyClock), catchUpRate(1))
	jobs := map[string]job.Definition{}
	for i := range herd {
		jobs[fmt.Sprintf("job-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
	}
	w.outOf(31*time.Minute, jobs)
	for seconds := range 5 * 3600 / 60 {
		switch seconds {
		case 3:
			w.stepped = time.Hour
		case 20:
			w.stepped = 0
		}
		if n := len(w.second(true)); n > 2 {
			t.Errorf("%d started in second %d", n, seconds)
		}
	}
	w.elapsed += time.Hour
	for range 2 * herd {
		if n := len(w.second(true)); n > 2 {
			t.Errorf("%d started in a second when the clock came to that hour", n)
		}
	}
	if len(w.starts) != herd {
		t.Errorf("%d of %d started", len(w.starts), herd)
	}
	for _, r := range w.runs() {
		if r.Version > 6 {
			t.Errorf("%s was written %d times", r.ID, r.Version)
		}
	}
}

// A worker asks for another place in several steps. Whatever passes come by between two of them, the run is given one at once, and waits for no check.
func TestP3_P4_Fault17_passes_come_by_while_a_place_is_asked_for(t *testing.T) {
	for name, c := range map[string]struct {
		away, within time.Duration
		options      []option
	}{
		"each second": {15 * time.Second, 10 * time.Second, nil},
		"each minute": {7 * time.Minute, 5 * time.Minute, []option{byMinute()}},
	} {
		for k, more := 1, true; more; k++ {
			w := newWorld(t, append(c.options, catchUpRate(1))...)
			jobs := map[string]job.Definition{}
			for i := range 3 {
				jobs[fmt.Sprintf("job-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
			}
			w.outOf(31*time.Minute, jobs)
			w.elapsed += c.away
			h := w.host("worker")
			more = false
			first := h.ops
			h.before = func(op operation) faulty.Fault {
				if op.n == first+k {
					more = true
					for range 4 {
						w.must(w.host("ticks").tick())
						w.elapsed += time.Second
					}
				}
				return faulty.Fault{}
			}
			w.work()
			h.before = nil
			for end, last := w.elapsed+c.within, time.Duration(0); w.elapsed < end; {
				ticks := w.lookAhead < time.Minute || w.elapsed >= last+time.Minute
				if w.second(ticks); ticks {
					last = w.elapsed
				}
			}
			if len(w.starts) != 3 {
				t.Errorf("%s: passes before step %d: %d of 3 have started within %s", name, k, len(w.starts), c.within)
			}
			w.wants(w.check(w.now()))
		}
	}
}

// Outages of any length come at any time, as crashes and as frozen hosts, while fires of another one are made up for. All of them start, once, and
// each job's in their order, at no more than the rate, but for what an outage held up that was too short for ticks to notice. The same seed gives
// the same history: go test ./tests/protocol -run any_outages -from-seed N -seeds 1.
func TestP2_P11_Fault01_Fault17_after_any_outages_the_rate_holds(t *testing.T) {
	n := uint64(*seeds / 10)
	if testing.Short() {
		n /= 4
	}
	for seed := *fromSeed; seed < *fromSeed+max(n, 1); seed++ {
		r := rand.New(rand.NewPCG(seed, 17))
		rate := []int{1, 3, 20, 100}[r.IntN(4)]
		w := newWorld(t, catchUpRate(rate), shards(1<<r.IntN(3)))
		w.elapsed = time.Duration(r.IntN(1000)) * time.Millisecond
		jobs := map[string]job.Definition{}
		for i := range 3 {
			jobs[fmt.Sprintf("all-%d", i)] = catchUp(job.CatchUpAll, definition(until(25*time.Minute, every(time.Duration(20+20*i)*time.Second)), 1))
		}
		for i := range 10 + r.IntN(40) {
			jobs[fmt.Sprintf("one-%d", i)] = catchUp(job.CatchUpOne, definition(until(25*time.Minute, every(20*time.Minute)), 1))
		}
		back := w.outOf(31*time.Minute, jobs)
		outages := 1 + r.IntN(4)
		ordered := rate == 100 // else a job may have a place further ahead than an outage is long, and what lapsed comes behind that
		for quiet := 0; quiet < 20; quiet++ {
			begun, allowed := len(w.starts), 2*rate+1
			if outages > 0 && r.IntN(4) == 0 {
				outages--
				away := time.Duration(r.IntN([]int{3000, 20_000, 200_000}[r.IntN(3)])) * time.Millisecond
				if away <= 6*time.Second { // which ticks need not notice: all that it held up is sent at once, in any order
					allowed += 7 * rate
					ordered = false
				}
				w.again(away, r.IntN(2) == 0)
				if r.IntN(2) == 0 {
					w.work()
				}
			}
			w.second(true)
			made := 0
			for _, s := range w.starts[begun:] {
				if s.made(back) {
					made++
				}
			}
			if made > allowed {
				t.Errorf("seed %d: at %s %d started, want %d at the most", seed, clock(w.now()), made, allowed)
			}
			if w.waiting() {
				quiet = 0
			}
			if w.elapsed > 12*time.Hour {
				t.Fatalf("seed %d: something waits for ever", seed)
			}
		}
		last := map[string]int64{}
		seen := map[string]bool{}
		for _, s := range w.starts {
			if seen[s.id.String()] || ordered && s.id.Nominal < last[s.id.Job] {
				t.Errorf("seed %d: %s, of %s, started at %s behind %s", seed, s.id, clock(s.id.Nominal), clock(s.at), clock(last[s.id.Job]))
			}
			seen[s.id.String()], last[s.id.Job] = true, s.id.Nominal
		}
		w.wants(w.check(w.now()))
		if t.Failed() {
			return
		}
	}
}
