package protocol_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// checkStats holds the counts of each minute and hour since the world began against the runs that stand. What is not swept is left out, and what has
// ended behind the last look that was taken is open. Once nothing is looked at again, that is told apart.
func (w *world) checkStats() (wrong []string) {
	reader := w.reader()
	swept := int64(math.MaxInt64)
	for n := range w.layout.Shards {
		s, err := timer.ShardFromItem(n, w.get(timer.ShardKey(n)))
		w.must(err)
		swept = min(swept, s.Swept[timer.Sweeps-1])
	}
	lag := timer.Lags[timer.Sweeps-1].Milliseconds()
	settled := stats.Settled(swept)
	for _, tenant := range []string{tenant, other} {
		for _, step := range []time.Duration{time.Minute, time.Hour} {
			to := w.clock().Truncate(time.Hour).Add(time.Hour)
			got, err := reader.Stats(context.Background(), tenant, base, to, step)
			w.must(err)
			want := map[time.Time]*stats.Counts{}
			var total stats.Counts
			unended := 0
			for _, r := range w.runs() {
				at := r.ID.Time()
				if r.Tenant != tenant || r.State == run.Fenced || !at.Truncate(time.Minute).Before(got.Swept) {
					continue
				}
				looked := at.Truncate(time.Minute).Add(time.Minute).UnixMilli() + lag
				last := at.UnixMilli() < settled
				if last { // it was looked at with all of its hour
					looked = at.Truncate(time.Hour).Add((1+stats.LateHours)*time.Hour).UnixMilli() + lag
				}
				if at = at.Truncate(step); want[at] == nil {
					want[at] = new(stats.Counts)
				}
				var one stats.Counts
				if open := !r.State.Ended() || r.Ended > looked; open && !last {
					one.Open = 1 // what else there is to be counted is known later
				} else {
					if open {
						r.State = run.Running
						unended++
					}
					one.Add(r)
				}
				want[at].Merge(&one)
				total.Merge(&one)
			}
			for _, p := range got.Points {
				if want[p.At] == nil || *want[p.At] != p.Counts {
					wrong = append(wrong, fmt.Sprintf("%s, %s from %s: counted are %+v, want %+v", tenant, step, clock(p.At.UnixMilli()), p.Counts, want[p.At]))
				}
				delete(want, p.At)
			}
			for at, missing := range want {
				wrong = append(wrong, fmt.Sprintf("%s, %s from %s: nothing is counted, want %+v", tenant, step, clock(at.UnixMilli()), *missing))
			}
			if len(wrong) == 0 && (total != got.Totals || unended != got.Unended) {
				wrong = append(wrong, fmt.Sprintf("%s: in all %+v are counted and %d are given up, want %+v and %d", tenant, got.Totals, got.Unended, total, unended))
			}
		}
	}
	return wrong
}

// passes has a host tick now and then until an instant. Runs that are held stay so.
func (w *world) passes(name string, until, step time.Duration) {
	for w.elapsed < until {
		w.elapsed += min(step, until-w.elapsed)
		w.renews()
		w.must(w.host(name).tick())
		w.work()
	}
}

// renews has the worker that holds runs renew its leases.
func (w *world) renews() {
	for _, r := range w.runs() {
		if r.State == run.Running && r.Worker == "busy" {
			w.puts(r.Extend(w.now(), 30*time.Second))
		}
	}
}

func (w *world) puts(r run.Run) {
	op, err := r.Item(w.newID())
	w.must(err)
	_, err = w.store.Write(context.Background(), op)
	w.must(err)
}

// begin starts queued runs of a job that are due, up to n, by a worker that holds them.
func (w *world) begin(name string, n int) (held []run.Run) {
	for _, r := range w.runs() {
		if r.ID.Job == name && r.State == run.Queued && r.ID.Nominal <= w.now() && len(held) < n {
			held = append(held, w.hold(r, "busy"))
		}
	}
	return held
}

// end ends runs as their worker does.
func (w *world) end(held []run.Run) {
	for _, r := range held {
		now, _ := w.run(r.Tenant, r.ID)
		w.puts(now.Succeed(w.now(), run.Ref{}, "", run.Limits{Retention: 90 * 24 * time.Hour}))
	}
}

// An hour of runs of two tenants, with look-aheads as of a server and of functions: to the millisecond on a minute, some each minute, failures that are tried
// again, on demand. Some end 5, 30 and 90 minutes late, some after three hours and some never. A job is edited, paused and resumed, one is deleted, and ticks are away
// for a quarter of an hour. Each run is counted once, as it stood an hour after its minute, and five hours later as it stands then.
func TestStatsOfAnHourAreTheRuns(t *testing.T) {
	for _, row := range []struct {
		name      string
		lookAhead time.Duration
		every     time.Duration // between ticks
		shards    int
	}{{"server", 2 * time.Second, time.Second, 1}, {"function", 150 * time.Second, time.Minute, 4}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, counting(), lookAhead(row.lookAhead), shards(row.shards))
			api := w.host("api")
			refused := definition(until(time.Hour, every(4*time.Minute)), 1)
			refused.Target = target.Spec{Handler: &target.Handler{Name: "refuse"}}
			refused.Retry = job.Retry{MaxAttempts: 3, Initial: schedule.Duration(time.Second)}
			w.must(api.put(tenant, "refused", refused))
			w.must(api.put(tenant, "often", definition(until(time.Hour, every(7*time.Second)), 1)))
			w.must(api.put(tenant, "minutely", definition(until(time.Hour, every(time.Minute)), 1)))
			w.must(api.put(other, "minutely", definition(until(time.Hour, every(time.Minute)), 1)))
			w.must(api.put(other, "asked", definition(nil, 1)))
			slow := map[time.Duration]time.Duration{3 * time.Minute: 5 * time.Minute, 10 * time.Minute: 30 * time.Minute, 20 * time.Minute: 90 * time.Minute,
				22 * time.Minute: 3 * time.Hour, 24 * time.Minute: 9 * time.Hour}
			ends := map[time.Duration][]run.Run{}
			for w.elapsed < 2*time.Hour {
				if w.elapsed += time.Second; w.elapsed > 61*time.Minute {
					w.elapsed += 59 * time.Second
				}
				if w.elapsed%(10*time.Second) == 0 {
					w.renews()
				}
				switch w.elapsed {
				case 15*time.Minute + 13*time.Second:
					w.must(api.put(tenant, "often", definition(until(time.Hour, every(11*time.Second)), 2)))
				case 25*time.Minute + 17*time.Second:
					w.must(api.pause(tenant, "often"))
				case 27*time.Minute + 3*time.Second:
					w.must(api.resume(tenant, "often"))
				case 31*time.Minute + 40*time.Second:
					w.must(api.delete(tenant, "minutely"))
				}
				if away := w.elapsed > 38*time.Minute && w.elapsed < 53*time.Minute; w.elapsed%row.every == 0 && !away {
					if row.shards > 1 {
						w.must(w.tickAnew())
					} else {
						w.must(w.host("ticks").tick())
					}
				}
				if after, ok := slow[w.elapsed]; ok {
					w.must(api.trigger(other, "asked", 0))
					ends[w.elapsed+after] = append(w.begin("asked", 9), w.begin("minutely", 9)...)
				}
				w.end(ends[w.elapsed])
				w.work()
			}
			for _, at := range []time.Duration{3*time.Hour + 10*time.Minute, 3*time.Hour + 22*time.Minute, 7*time.Hour + 10*time.Minute} {
				w.passes("ticks", at, time.Minute)
				w.end(ends[at])
				if wrong := w.checkStats(); len(wrong) > 0 {
					t.Errorf("after %s:\n%s", at, strings.Join(wrong, "\n"))
				}
			}
			if at := 22*time.Minute + 3*time.Hour; len(ends[at]) == 0 || len(ends[24*time.Minute+9*time.Hour]) == 0 {
				t.Error("no run was held for hours")
			}
		})
	}
}

// Every operation of a tick that sweeps and counts is broken in each way: the first sweep of a minute, a later one that finds what has ended meanwhile, the
// last one of an hour, and the one that looks at runs of hours ago. Whoever goes on counts each run once. Worlds of hours take seconds each: there an operation is broken
// in one way, another for each.
func TestStatsHoldWhateverBreaks(t *testing.T) {
	jobs := func(w *world) {
		api := w.host("api")
		w.must(api.put(tenant, "a", definition(until(lasting, every(7*time.Second)), 1)))
		w.must(api.put(other, "a", definition(until(lasting, every(20*time.Second)), 1)))
		w.must(api.put(tenant, "b", definition(nil, 1)))
		for range 2 {
			w.passes("before", w.elapsed+20*time.Second, time.Second)
			w.must(api.trigger(tenant, "b", 0))
			w.begin("b", 1)
		}
		w.passes("before", 2*time.Minute+50*time.Second, 10*time.Second)
	}
	later := func(w *world, at time.Duration) {
		w.passes("before", at, 4*time.Minute)
		w.elapsed += time.Second
	}
	busy := func(w *world) (held []run.Run) {
		for _, r := range w.runs() {
			if r.ID.Job == "b" && r.State == run.Running {
				held = append(held, r)
			}
		}
		return held
	}
	running := func(w *world) (held []run.Run) {
		if held = busy(w); len(held) != 2 {
			w.Fatalf("%d runs are held, want 2", len(held))
		}
		return held
	}
	ways := []string{"stopped", "stopped for an hour", "crash", "answer_lost", "lost"}
	for name, prepare := range map[string]func(w *world){
		"first": func(w *world) { jobs(w); w.elapsed += 11 * time.Second },
		"second": func(w *world) {
			jobs(w)
			later(w, 10*time.Minute+50*time.Second)
			w.end(running(w))
			w.elapsed += 20 * time.Second
		},
		"last": func(w *world) {
			jobs(w)
			later(w, 20*time.Minute)
			w.end(running(w)[:1])
			later(w, 61*time.Minute-time.Second)
		},
		"hour": func(w *world) { jobs(w); later(w, 2*time.Hour-time.Second) },
		"late": func(w *world) {
			jobs(w)
			later(w, 3*time.Hour)
			w.end(running(w)[:1])
			w.passes("before", 6*time.Hour-time.Second, 30*time.Minute)
			w.elapsed += time.Second
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted := false
			for k := 1; ; k++ {
				met := false
				hows := ways
				if name != "first" && name != "second" {
					hows = ways[k%len(ways):][:1]
				}
				for _, how := range hows {
					w := newWorld(t, counting())
					prepare(w)
					h := w.host("acting")
					var last string
					kind, then := how, func() { w.advance(5*time.Second, time.Second, "other") }
					if how == "stopped for an hour" {
						kind, then = "stopped", func() {
							if name == "first" || name == "second" { // of the others it is open whether the end was seen
								w.end(busy(w))
							}
							w.passes("other", w.elapsed+65*time.Minute, 10*time.Minute)
						}
					}
					stop := breaks[kind](h, k, then)
					h.before = func(op operation) (f faulty.Fault) {
						if op.n == k {
							last, met = op.text(), true
							counted = counted || op.writes() && strings.Contains(op.text(), stats.Partition(tenant))
						}
						return stop(op)
					}
					w.renews()
					err := h.tick()
					h.before = nil
					if how == "crash" {
						delete(w.hosts, "acting")
					}
					until := 65 * time.Minute
					switch name {
					case "hour":
						until *= 2
					case "late":
						until = 7 * time.Hour
					}
					w.passes("calm", until, 10*time.Minute)
					if wrong := w.checkStats(); len(wrong) > 0 {
						t.Errorf("%s at operation %d (%s, answer %v):\n%s", how, k, last, err, strings.Join(wrong, "\n"))
					}
				}
				if !met {
					break
				}
			}
			if !counted {
				t.Error("the tick has counted nothing")
			}
		})
	}
}

// A store that refuses to write counts holds up nothing: what a minute lacks is its point.
func TestStatsHoldUpNoSweep(t *testing.T) {
	w := newWorld(t, counting())
	w.must(w.host("api").put(tenant, "a", definition(until(lasting, every(7*time.Second)), 1)))
	h := w.host("ticks")
	refused := 0
	h.before = func(op operation) (f faulty.Fault) {
		for _, o := range op.call.Ops {
			if strings.HasPrefix(o.Key.Partition, stats.Partition(tenant)) {
				refused++
				f.Refuse = store.ErrThrottled
			}
		}
		return f
	}
	w.advance(5*time.Minute, time.Second, "ticks")
	if swept := w.shard().Swept[0]; refused == 0 || swept < base.Add(2*time.Minute).UnixMilli() {
		t.Errorf("%d writes of counts were refused, and minutes up to %s are swept", refused, clock(swept))
	}
	got, err := w.reader().Stats(context.Background(), tenant, base, base.Add(time.Hour), time.Minute)
	w.must(err)
	if len(got.Points) != 0 || got.Swept.Before(base.Add(2*time.Minute)) {
		t.Errorf("got %+v, want no points of swept minutes", got)
	}
	w.wants(w.settle())
}

// Counts that cannot be read are left out, and all others are there.
func TestStatsLeaveOutWhatIsUnreadable(t *testing.T) {
	w := newWorld(t, counting())
	w.must(w.host("api").put(tenant, "a", definition(until(3*time.Minute, every(20*time.Second)), 1)))
	w.advance(4*time.Minute, 5*time.Second, "ticks")
	first := w.items(stats.Partition(tenant))[0] // of the first minute
	_, err := w.store.Write(context.Background(), store.Op{Kind: store.Put, Key: first.Key, Value: []byte{1, 0xff}, Attempt: w.newID()})
	w.must(err)
	w.passes("ticks", 2*time.Hour+5*time.Minute, time.Minute)
	for step, points := range map[time.Duration]int{time.Minute: 2, time.Hour: 1} {
		got, err := w.reader().Stats(context.Background(), tenant, base, base.Add(time.Hour), step)
		w.must(err)
		if len(got.Points) != points || got.Totals.In(run.Succeeded) != 6 {
			t.Errorf("by %s: %+v, want the six runs of two minutes", step, got)
		}
	}
	w.wants(w.check(w.now()))
}
