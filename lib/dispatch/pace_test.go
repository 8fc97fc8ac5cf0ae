package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Whatever the rate and the shards: each place is one shard's, no second has more than the rate, all of them together have it, and those of a
// job are a second apart or more.
func TestP11_the_places_of_a_second(t *testing.T) {
	for _, rate := range []int64{1, 2, 3, 7, 16, 60, 100, 333, 1000} {
		for _, shards := range []int64{1, 2, 4, 16, 64} {
			const begin, length = 1_767_571_200_123, 130_000
			var all []int64
			for shard := range shards {
				g := grid{rate, shards, shard}
				if g.phases() < 1 {
					t.Fatalf("rate %d, %d shards: shard %d has no place", rate, shards, shard)
				}
				for phase := range g.phases() {
					for at := g.next(phase, begin); at <= begin+length; {
						all = append(all, at)
						next := g.next(phase, at)
						if next-at < 1000 {
							t.Fatalf("rate %d, %d shards: places %d ms apart", rate, shards, next-at)
						}
						at = next
					}
				}
			}
			slices.Sort(all)
			for i := range all[:len(all)-int(rate)] {
				if apart := all[i+int(rate)] - all[i]; apart < 1000 {
					t.Fatalf("rate %d, %d shards: %d places in %d ms", rate, shards, rate+1, apart)
				}
			}
			if want := rate * length / 1000; int64(len(all)) < want-1 {
				t.Errorf("rate %d, %d shards: %d places in %d s, want %d", rate, shards, len(all), length/1000, want)
			}
			for i := range 50 {
				g := grid{rate, shards, int64(i) % shards}
				if phase := g.phaseOf("acme", fmt.Sprint("job-", i)); phase < 0 || phase >= g.phases() {
					t.Errorf("rate %d, %d shards: a job has phase %d of %d", rate, shards, phase, g.phases())
				}
			}
		}
	}
}

// A pass gives its own places without a word, and has further ones published before they are used. Another goes on behind both.
func TestP11_places_of_one_pass_and_the_next(t *testing.T) {
	d := &Dispatcher{Config: Config{CatchUpRate: 1, Layout: timer.Layout{Shards: 1}}}
	published := 0
	fail := errors.New("the shard is another's")
	var publish func(context.Context) error
	pass := func(from, own int64, given map[int64]int64) *Pace {
		return d.NewPace(0, own, func() int64 { return from }, given, func(ctx context.Context) error { return publish(ctx) })
	}
	publish = func(context.Context) error { published++; return nil }
	take := func(p *Pace, name string, own bool) int64 {
		place, ok := p.take(missed{"acme", name, 1}, own)
		if !ok {
			return 0
		}
		return place
	}
	first := pass(10_500, 12_500, nil)
	got := []int64{take(first, "a", false), take(first, "b", true), take(first, "a", true), take(first, "c", true), take(first, "c", false), take(first, "d", false)}
	if want := []int64{11_000, 12_000, 11_000, 0, 13_000, 14_000}; !reflect.DeepEqual(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
	if given := first.Given(); !maps.Equal(given, map[int64]int64{0: 14_000}) {
		t.Errorf("given beyond its own: %v", given)
	}
	for place, want := range map[int64]int{12_000: 0, 13_000: 1} {
		published = 0
		if err := first.keep(t.Context(), []*firing{{plan: plan{Places: map[int64]int64{1: place}}}}); err != nil || published != want {
			t.Errorf("a claim for %d: published %d times, %v", place, published, err)
		}
	}
	publish = func(context.Context) error { return fail }
	if err := first.keep(t.Context(), []*firing{{plan: plan{Places: map[int64]int64{1: 13_000}}}}); !errors.Is(err, fail) {
		t.Errorf("a claim whose place was not published: %v", err)
	}
	second := pass(12_500, 20_500, first.Given())
	if got := []int64{take(second, "e", true), take(second, "f", true)}; !reflect.DeepEqual(got, []int64{15_000, 16_000}) {
		t.Errorf("then places %v", got)
	}
	if given := second.Given(); given != nil {
		t.Errorf("nothing is beyond its own, and it tells of %v", given)
	}
}

func TestTheCatchUpRateIsChecked(t *testing.T) {
	for _, rate := range []int{-1, MaxCatchUpRate + 1} {
		if _, err := New(Config{Store: memory.New(memory.Config{}), Book: new(job.Book), Queues: map[string]queue.Queue{"default": nil}, Layout: timer.Layout{Shards: 1},
			Now: time.Now, Elapsed: func() time.Duration { return 0 }, NewID: func() uint64 { return 1 }, CatchUpRate: rate}); err == nil {
			t.Errorf("a rate of %d was taken", rate)
		}
	}
}

// What a timer asks for whose fires were missed: those with a place are claimed, the rest is owed by a timer of its own, and what is not missed
// waits for neither.
func TestP2_P11_a_plan_of_missed_fires(t *testing.T) {
	const minute, now = int64(60_000), int64(1_767_571_200_000)
	every, err := job.Compile(schedule.Spec{Every: schedule.Duration(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	b := Bounds{Now: now + 1000, Horizon: now + 3000, Reach: now + 3000, Resume: now + 5000, Next: now + 3001,
		Gaps: []timer.Gap{{After: now - 30*minute, Before: now - 2000}}}
	ahead := b
	ahead.Horizon, ahead.Next = now+2*minute+1, now+2*minute+2
	fire := func(n int64) int64 { return now + n*minute }
	fires := func(from, to int64) (all []int64) {
		for n := from; n <= to; n++ {
			all = append(all, fire(n))
		}
		return all
	}
	owing := timer.Timer{Tenant: "acme", Job: "a", Generation: 1}.Owing
	ordinary := func(nominal, wake int64) timer.Timer { return timer.NewFire("acme", "a", 1, nominal, wake) }
	for name, c := range map[string]struct {
		mode      job.CatchUpMode
		timer     timer.Timer
		bounds    Bounds
		room      int // places of the pass's own
		fires     []int64
		placed    int
		owed      [3]int64 // nominal, up to, wake; 0 for none
		successor [3]int64 // nominal, to, wake
		beside    bool
		to        int64
	}{
		"all, and room for all": {job.CatchUpAll, ordinary(fire(-9), fire(-9)), b, 20, fires(-9, 0), 9, [3]int64{}, [3]int64{fire(1), fire(1), fire(1)}, false, fire(0)},
		"all, and room for three": {job.CatchUpAll, ordinary(fire(-9), fire(-9)), b, 3, fires(-9, -7), 3, [3]int64{fire(-6), fire(-1), now + 3001},
			[3]int64{fire(0), fire(0), now + 3001}, true, fire(-7)},
		"all, and room for none": {job.CatchUpAll, ordinary(fire(-9), fire(-9)), b, 0, fires(-9, -9), 1, [3]int64{fire(-8), fire(-1), now + 100_001},
			[3]int64{fire(0), fire(0), now + 3001}, true, fire(-9)},
		"all, claimed far ahead": {job.CatchUpAll, ordinary(fire(-9), fire(-9)), ahead, 1, fires(-9, -9), 1, [3]int64{fire(-8), fire(-1), now + 2*minute + 2},
			[3]int64{fire(0), fire(2), now + 2*minute + 2}, true, fire(-9)},
		"none":                    {job.CatchUpNone, ordinary(fire(-9), fire(-9)), b, 20, fires(0, 0), 0, [3]int64{}, [3]int64{fire(1), fire(1), fire(1)}, false, fire(0)},
		"what is owed, with room": {job.CatchUpAll, owing(fire(-9), fire(-5), now), b, 20, fires(-9, -5), 5, [3]int64{}, [3]int64{}, false, fire(-5)},
		"what is owed, and room for two": {job.CatchUpAll, owing(fire(-9), fire(-5), now), b, 2, fires(-9, -8), 2, [3]int64{fire(-7), fire(-5), now + 3001},
			[3]int64{}, false, fire(-8)},
		"what is owed was decided": {job.CatchUpNone, owing(fire(-9), fire(-9), now), b, 2, fires(-9, -9), 1, [3]int64{}, [3]int64{}, false, fire(-9)},
	} {
		t.Run(name, func(t *testing.T) {
			e := &job.Edition{Generation: 1, Schedule: every, Def: job.Definition{CatchUp: job.CatchUp{Mode: c.mode, Window: schedule.Duration(job.DefaultWindow)}}}
			given := 0
			p, err := planFires(c.timer, c.timer.Nominal, 0, e, Forever, c.bounds, func(_ int64, first bool) (int64, bool) {
				if given++; given > c.room && !first {
					return 0, false
				}
				if c.room == 0 {
					return now + 100_000, true // beyond the pass's own
				}
				return now + int64(given), true
			})
			if err != nil {
				t.Fatal(err)
			}
			shown := func(t *timer.Timer, upTo func(timer.Timer) int64) [3]int64 {
				if t == nil {
					return [3]int64{}
				}
				return [3]int64{t.Nominal, upTo(*t), t.Wake}
			}
			owed := shown(p.Owed, func(t timer.Timer) int64 { return t.Owed })
			successor := shown(p.Successor, func(t timer.Timer) int64 { return t.To })
			if !slices.Equal(p.Fires, c.fires) || len(p.Places) != c.placed || owed != c.owed || successor != c.successor || p.Beside != c.beside || p.To != c.to {
				t.Errorf("fires %v with %d places, owed %v, successor %v, beside %v, to %d", p.Fires, len(p.Places), owed, successor, p.Beside, p.To)
			}
		})
	}
}
