package protocol_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// outage is the rule for missed fires as a user is told it, for one outage: from the last horizon that was published before it, to the passes
// that came after it, of which all but the last died as soon as they had published their own.
type outage struct {
	horizon int64   // up to it fires had been claimed ahead
	passes  []int64 // by their clocks
	ahead   func(now int64) int64
}

// late: found more than 3 s after its time by the pass that found it, or left for over 5 minutes by those that did.
func (o outage) late(fire int64) bool {
	horizon := o.horizon
	for _, now := range o.passes {
		if fire > horizon && fire < now-3000 {
			return true
		}
		horizon = max(horizon, o.ahead(now))
	}
	return fire > o.horizon && fire < o.passes[len(o.passes)-1]-5*60_000
}

// runs: what is not missed, and what the policy has run of the rest.
func (o outage) runs(fire, newest int64, policy job.CatchUp) bool {
	now := o.passes[len(o.passes)-1]
	switch {
	case !o.late(fire), fire == newest && fire >= now-5*60_000:
		return true
	case fire < now-policy.Window.Std().Milliseconds():
		return false
	}
	return policy.Mode == job.CatchUpAll || policy.Mode == job.CatchUpOne && fire == newest
}

// After any outage each job starts what the rule says: of what was missed none, the newest, or all of it, the oldest first. Everything else is
// counted in records that say why. What is made up for starts at its pace, whatever passes die meanwhile, and however long the ticks are away
// once more. Intervals are from a second to a day, outages from seconds to hours, with ticks each second and each minute; and passes
// that die right after they have published a horizon. The same seed gives the same history: go test ./tests/protocol -run any_outage -from-seed N -seeds 4.
func TestP2_Fault10_Fault17_after_any_outage_each_job_starts_what_the_rule_says(t *testing.T) {
	intervals := []time.Duration{time.Second, 2 * time.Second, 7 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 17 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
	lengths := []time.Duration{4 * time.Second, 20 * time.Second, 3 * time.Minute, 6 * time.Minute, 20 * time.Minute, 2 * time.Hour, 11 * time.Hour}
	n := *seeds / 4
	if testing.Short() {
		n /= 10
	}
	// In these passes died behind gaps of their own, and all that was missed in several gaps was to run in its order; in 5058 it was owed still when a sweep came
	// upon it, older than the window by then.
	for lane, found := range [][]uint64{{5002}, {5023}, {5058}, {5088}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			drawn := found
			for seed := *fromSeed + uint64(lane); seed < *fromSeed+uint64(n); seed += 4 {
				drawn = append(drawn, seed)
			}
			for _, seed := range drawn {
				r := rand.New(rand.NewPCG(seed, 7))
				pick := func(from []time.Duration) time.Duration { return from[r.IntN(len(from))] }
				some := func(d time.Duration) time.Duration {
					return time.Duration(r.Int64N(int64(d/time.Millisecond)+1)) * time.Millisecond
				}
				w, period := newWorld(t), time.Second
				if r.IntN(3) == 0 {
					w, period = newWorld(t, byMinute()), time.Minute
				}
				w.elapsed = some(24 * time.Hour)
				w.tickThrough()
				down := some(pick(lengths))
				policies := map[string]job.CatchUp{}
				specs := map[string]*schedule.Spec{}
				for _, mode := range []job.CatchUpMode{job.CatchUpNone, job.CatchUpOne, job.CatchUpAll} {
					for _, interval := range []time.Duration{pick(intervals), pick(intervals)} {
						policy := job.CatchUp{Mode: mode, Window: schedule.Duration(job.DefaultWindow)}
						missed := down / interval
						if missed > 400 && mode == job.CatchUpAll {
							continue
						}
						if missed < 90 && r.IntN(3) == 0 { // more are caught up with by several passes, each with a window of its own
							policy.Window = schedule.Duration(5*time.Minute + some(30*time.Minute))
						}
						name := fmt.Sprintf("%s-%s-%d", mode, interval, len(specs))
						policies[name], specs[name] = policy, every(interval)
						def := definition(specs[name], 1)
						def.CatchUp = policy
						w.must(w.host("api").put(tenant, name, def))
					}
				}
				from := w.now()
				w.advance(period*time.Duration(1+r.IntN(20)), period, "ticks")
				o := outage{horizon: w.host("ticks").dispatch.HorizonAt(w.now()), ahead: w.host("ticks").dispatch.HorizonAt}

				w.elapsed += down
				for r.IntN(4) == 0 {
					o.passes = append(o.passes, w.now())
					h := w.restart("dies")
					h.before = func(op operation) faulty.Fault {
						if op.n > 2 {
							return faulty.Fault{Refuse: errCrashed}
						}
						return faulty.Fault{}
					}
					_ = h.tick()
					delete(w.hosts, "dies")
					w.elapsed += some(pick(lengths[:4]))
				}
				back := w.now()
				o.passes = append(o.passes, back)
				w.tickThrough()
				w.work()
				away := r.IntN(3) > 0
				for second := time.Duration(1); second < 40 || w.waiting() && second < 2000; second++ {
					w.elapsed += time.Second
					switch {
					case second*time.Second%period != 0:
					case r.IntN(20) == 0:
						h, last := w.restart("dies"), 2+r.IntN(20)
						h.before = func(op operation) faulty.Fault {
							if op.n > last {
								return faulty.Fault{Refuse: errCrashed}
							}
							return faulty.Fault{}
						}
						_ = h.tick()
						delete(w.hosts, "dies")
					case !away && r.IntN(10) == 0:
						w.elapsed, away = w.elapsed+some(20*time.Minute), true
					default:
						w.must(w.host("ticks").tick())
					}
					w.work()
				}
				w.advance(8*max(period, 5*time.Second), period, "ticks")
				made := func(fire, newest int64) bool { return o.late(fire) && (fire != newest || fire < back-5*60_000) }

				for name, policy := range policies {
					fires, err := job.Compile(*specs[name])
					w.must(err)
					var want, got []int64
					dropped, records := 0, 0
					last, _ := fires.Last(time.UnixMilli(from+1), time.UnixMilli(back))
					for at, ok := fires.Next(time.UnixMilli(from)); ok && at.UnixMilli() <= back; at, ok = fires.Next(at) {
						if o.runs(at.UnixMilli(), last.UnixMilli(), policy) {
							want = append(want, at.UnixMilli())
						} else {
							dropped++
						}
					}
					for _, r := range w.runs() {
						switch {
						case r.ID.Job != name || r.ID.Nominal > back:
						case r.State == run.Skipped:
							records += r.Count
							if r.Reason == "" {
								t.Errorf("seed %d: %s gives no reason", seed, r.ID)
							}
						default:
							got = append(got, r.ID.Nominal)
						}
					}
					var late []int64
					for _, s := range w.starts {
						if s.id.Job == name && s.id.Nominal <= back && made(s.id.Nominal, last.UnixMilli()) {
							late = append(late, s.id.Nominal)
						}
					}
					if missed := slices.DeleteFunc(slices.Clone(want), func(fire int64) bool { return !made(fire, last.UnixMilli()) }); !slices.Equal(late, missed) {
						t.Errorf("seed %d: %s started late %v, want %v", seed, name, instants(late), instants(missed))
					}
					slices.Sort(got)
					if !slices.Equal(got, want) || records != dropped {
						t.Errorf("seed %d: %s, window %s, away from %s for %s, passes at %v: ran %v and dropped %d, want %v and %d", seed, name, policy.Window,
							clock(o.horizon), down, o.passes, instants(got), records, instants(want), dropped)
					}
				}
				w.wants(w.check(w.now()))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// waiting tells whether fires that were missed are still to start. What owes some of them is so until a pass has come upon it, however long ago it
// was to wake: passes may have died since.
func (w *world) waiting() bool {
	read := map[int]int64{} // by shard
	for n := range w.shards {
		s, err := timer.ShardFromItem(n, w.get(timer.ShardKey(n)))
		w.must(err)
		read[n] = s.Watermark
	}
	for _, item := range w.items("due#") {
		if t, err := timer.FromItem(item); err == nil && t.Owed != 0 && t.Wake > read[w.layout.ShardOf(t.Bucket())] {
			return true
		}
	}
	return slices.ContainsFunc(w.runs(), func(r run.Run) bool { return r.State == run.Queued && r.NextAt != 0 })
}

// tickThrough has passes follow one another at once, as they do behind an outage of which one pass cannot read every minute.
func (w *world) tickThrough() {
	for behind := true; behind; {
		report, err := w.host("ticks").ticker.Tick(context.Background())
		w.must(err)
		behind = report.Behind
	}
}

// instants shows the last of some instants.
func instants(all []int64) (shown []string) {
	for _, at := range all[max(0, len(all)-12):] {
		shown = append(shown, clock(at))
	}
	return shown
}
