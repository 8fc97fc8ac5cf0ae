package oracle_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// right are changes of a quiet life after which nothing is wrong with it. A judge that knows less of the protocol takes them for faults.
var right = map[string]func(p *plot){
	// As after a step of the clock, below a horizon that stands far ahead: the rest of a long stretch has a timer of its own, which wakes at its
	// nominal time.
	"a timer stands for fires that later timers see to": func(p *plot) {
		i, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.Job == "plain" && t.Tenant == other })
		t.To += 3_600_000
		p.insert(i+1, p.timerItem(t))
	},
	// As where a sweep makes good what is due: it claims up to the horizon, under the timer that it read, which lies behind the first sweep. What it
	// claimed beyond the next timer is seen to by the tick that comes upon that.
	"another timer has grown over what a timer is to see to": func(p *plot) {
		i, grown := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.To > t.Nominal })
		waits := p.index(i, func(e event) bool {
			r, ok := p.of(e)
			return ok && r.Tenant == grown.Tenant && r.ID == run.FireID(grown.Job, grown.To) && r.State == run.Queued
		})
		p.insert(waits+1, event{asked: &oracle.Request{Op: oracle.GetJob, Tenant: grown.Tenant, Job: grown.Job, At: p.life[waits].at}, question: 1000})
		p.life = slices.DeleteFunc(p.life, func(e event) bool {
			if !strings.HasPrefix(e.key.Partition, "due#") || e.gone {
				return false
			}
			t, err := timer.FromItem(store.Item{Key: e.key, Version: 1, Value: e.value})
			return err == nil && t.Key() == grown.Key() && t.To > t.Nominal
		})
	},
}

// TestOnlyItsOwnDropsHideFromATimer: a timer stands for what comes after a fire that the generation before has dropped, however far that
// decision reaches. The life is not right otherwise: no tick goes that way by itself.
func TestOnlyItsOwnDropsHideFromATimer(t *testing.T) {
	p := &plot{TB: t, life: quiet(t), cfg: oracle.Config{Most: 1000, Clocks: oracle.AnyClock}}
	before, _ := p.of(p.life[p.run(first, "plain", run.Queued)])
	queued := func(after int) (int, run.Run) {
		i := p.index(after, func(e event) bool {
			r, ok := p.of(e)
			return ok && r.ID.Job == "plain" && r.Tenant == tenant && r.State == run.Queued && r.Generation > before.Generation
		})
		r, _ := p.of(p.life[i])
		return i, r
	}
	i, dropped := queued(first)
	_, waits := queued(i)
	_, stands := p.timer(first, func(t timer.Timer) bool {
		return t.Kind == timer.Fire && t.Generation == dropped.Generation && t.Nominal == dropped.ID.Nominal
	})
	p.hide(dropped.ID)
	p.insert(i, p.item(run.Run{ID: dropped.ID, Tenant: tenant, State: run.Skipped, Generation: before.Generation, Trigger: run.BySchedule,
		Priority: dropped.Priority, Created: dropped.Created, Through: dropped.ID.Nominal + 3_600_000, Count: 900}))
	stands.To = waits.ID.Nominal
	p.insert(i+1, p.timerItem(stands))
	p.life = slices.DeleteFunc(p.life, func(e event) bool { // what else would wake the run that waits
		if !strings.HasPrefix(e.key.Partition, "due#") || e.gone {
			return false
		}
		t, err := timer.FromItem(store.Item{Key: e.key, Version: 1, Value: e.value})
		return err == nil && (t.Kind == timer.Fire && t.Generation == waits.Generation && t.Nominal == waits.ID.Nominal || t.Kind == timer.Check && t.Run == waits.ID)
	})
	at, _ := queued(i)
	p.insert(at+1, event{asked: &oracle.Request{Op: oracle.GetJob, Tenant: tenant, Job: "plain", At: p.life[at].at}, question: 1000})
	for _, v := range p.judged(p.cfg) {
		if strings.Contains(v, "nothing will wake it") {
			t.Error(v)
		}
	}
}

// TestWhatIsRightIsNotToldOf wants no word of the judge about a life in which something unusual is right.
func TestWhatIsRightIsNotToldOf(t *testing.T) {
	whole := quiet(t)
	for name, change := range right {
		t.Run(name, func(t *testing.T) {
			p := &plot{TB: t, life: slices.Clone(whole), cfg: oracle.Config{Most: 1000, Clocks: oracle.AnyClock}}
			change(p)
			if found := p.judged(p.cfg); len(found) > 0 {
				t.Errorf("found %.3000q", found)
			}
		})
	}
}

// TestARunOfAClockAheadIsDueByThat: a host whose clock was stepped learns it by an answer of the store's, and a run that it had begun by then was
// due at once for it, though not when the client said.
func TestARunOfAClockAheadIsDueByThat(t *testing.T) {
	const ahead = 10 * time.Minute
	at := base.Add(time.Minute)
	for name, c := range map[string]struct {
		created time.Time
		due     time.Duration // that the client asked for, from at
		want    string
	}{
		"by a clock ahead":              {at.Add(ahead), 30 * time.Second, ""},
		"by a right clock":              {at, 30 * time.Second, "P3"},
		"by a clock that is little off": {at.Add(time.Second), 30 * time.Second, "P3"},
		"beyond where that clock is":    {at.Add(ahead), 2 * ahead, "P3"},
		"before it was asked for":       {at.Add(-ahead), 2 * ahead, "P3"},
	} {
		t.Run(name, func(t *testing.T) {
			judge := oracle.New(oracle.Config{})
			stored := func(op store.Op, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				judge.Stored(at, store.Item{}, store.Item{Key: op.Key, Value: op.Value, Version: 1})
			}
			stored(job.Job{Tenant: tenant, Name: "asked", Generation: 1, Def: works(1, nil), Created: base.UnixMilli(), Updated: base.UnixMilli()}.Put(1))
			n := judge.Asked(oracle.Request{Op: oracle.Trigger, Tenant: tenant, Job: "asked", Key: "key", At: at, Due: at.Add(c.due)})
			r := run.Run{ID: run.RequestID("asked", at.Add(ahead).UnixMilli(), 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest, Created: c.created.UnixMilli()}
			stored(r.Item(2))
			judge.Answered(n, oracle.Answer{At: at, Status: http.StatusAccepted, Run: &wire.Run{ID: r.ID.String(), Job: "asked", State: r.State.String()}})
			if found := strings.Join(judge.Violations(), "\n"); c.want == "" && found != "" || !strings.HasPrefix(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestARunEndsWithTheJobThatItSaysItIsOf, also where it is put when another job has the name: its request was under way when that was made anew. One
// that says nothing, or was asked for since, is of the next job.
func TestARunEndsWithTheJobThatItSaysItIsOf(t *testing.T) {
	at := func(minute int) int64 { return base.Add(time.Duration(minute) * time.Minute).UnixMilli() }
	for name, c := range map[string]struct {
		generation, created int64
		want                string
	}{
		"of the job that was deleted":   {1, at(1), ""},
		"it does not say of which":      {0, at(1), "P2"},
		"of the next job":               {3, at(1), "P2"},
		"asked for since that was made": {1, at(5), "P2"},
	} {
		t.Run(name, func(t *testing.T) {
			judge := oracle.New(oracle.Config{})
			standing := map[store.Key]store.Item{}
			stored := func(op store.Op, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				before := standing[op.Key]
				after := store.Item{Key: op.Key, Value: op.Value, Version: before.Version + 1}
				judge.Stored(base.Add(5*time.Minute), before, after)
				standing[op.Key] = after
			}
			j := job.Job{Tenant: tenant, Name: "asked", Generation: 1, Def: works(1, nil), Created: at(0), Updated: at(0)}
			stored(j.Put(1))
			j.Generation, j.Updated, j.Deleted, j.Past = 2, at(2), true, []job.Past{{Generation: 1, Until: at(2)}}
			stored(j.Put(2))
			j.Generation, j.Updated, j.Created, j.Deleted, j.Born, j.Past = 3, at(3), at(3), false, 3, append(j.Past, job.Past{Generation: 2, Until: at(3)})
			stored(j.Put(3))
			judge.Asked(oracle.Request{Op: oracle.Trigger, Tenant: tenant, Job: "asked", At: base})
			r := run.Run{ID: run.RequestID("asked", at(9), 7), Tenant: tenant, State: run.Scheduled, Generation: c.generation, Trigger: run.ByRequest, Created: c.created}
			stored(r.Item(4))
			r, _ = r.AskCancel(at(5), "the job was deleted", job.DefaultRetention)
			stored(r.Item(5))
			if found := strings.Join(judge.Violations(), "\n"); c.want == "" && found != "" || !strings.HasPrefix(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestOneWriteLetsInRunsOfDifferentLimits: each comes in as one of so many as its own definition allows, whichever is told of first.
func TestOneWriteLetsInRunsOfDifferentLimits(t *testing.T) {
	at := func(minute int) int64 { return base.Add(time.Duration(minute) * time.Minute).UnixMilli() }
	for name, c := range map[string]struct {
		limits [2]int // of the generations
		want   string
	}{
		"the older allows more": {[2]int{3, 2}, ""},
		"the newer allows more": {[2]int{2, 3}, ""},
		"both allow two":        {[2]int{2, 2}, "G1"},
	} {
		t.Run(name, func(t *testing.T) {
			judge := oracle.New(oracle.Config{})
			standing := map[store.Key]store.Item{}
			put := func(key store.Key, value []byte) {
				before := standing[key]
				after := store.Item{Key: key, Value: value, Version: before.Version + 1}
				judge.Stored(base.Add(5*time.Minute), before, after)
				standing[key] = after
			}
			stored := func(op store.Op, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				put(op.Key, op.Value)
			}
			def := func(n int) job.Definition {
				d := works(n, nil)
				d.Overlap = job.Overlap{Policy: job.OverlapSkip, Limit: c.limits[n-1]}
				return d
			}
			j := job.Job{Tenant: tenant, Name: "one", Generation: 1, Def: def(1), Created: at(0), Updated: at(0)}
			stored(j.Put(1))
			j.Generation, j.Updated, j.Def, j.Past = 2, at(2), def(2), []job.Past{{Generation: 1, Until: at(2)}}
			stored(j.Put(2))
			p := &plot{TB: t}
			var runs []run.Run
			for i, generation := range []int64{2, 2, 1} {
				judge.Asked(oracle.Request{Op: oracle.Trigger, Tenant: tenant, Job: "one", At: base})
				r := run.Run{ID: run.RequestID("one", at(i), uint64(i+1)), Tenant: tenant, State: run.Queued, Generation: generation, Trigger: run.ByRequest, Created: at(i)}
				stored(r.Item(uint64(i)))
				runs = append(runs, r)
			}
			put(gate.Key(tenant, "one"), p.puts(runs[:1]...).value)
			put(gate.Key(tenant, "one"), p.puts(runs...).value)
			if found := strings.Join(judge.Violations(), "\n"); c.want == "" && found != "" || !strings.HasPrefix(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestAStepHasNoShareOfTheJitter: the run of a workflow is opened when its share of the jitter is over. Where a clock that was ahead is set back behind
// that, its steps wait for the fire again, and for no more.
func TestAStepHasNoShareOfTheJitter(t *testing.T) {
	def := workflow(`{"steps": {"first": {"handler": {"name": "work"}}}}`)
	def.Schedule = every(time.Minute)
	def.Schedule.Jitter = schedule.Duration(30 * time.Second)
	edition := job.Edition{Def: def, Generation: base.UnixMilli()}
	fire := base.Add(time.Minute).UnixMilli()
	share := edition.Due(tenant, "flow", fire) - fire
	for share < 2 {
		fire += time.Minute.Milliseconds()
		share = edition.Due(tenant, "flow", fire) - fire
	}
	for name, c := range map[string]struct {
		opened, started int64 // from the fire, ms
		want            string
	}{
		"at the fire":                  {share, 0, ""},
		"within the jitter":            {share, share - 1, ""},
		"before the fire":              {share, -1, "P3: attempt 1 of run flow~.*/first of default started 1 ms early"},
		"of a run that was not due":    {share - 1, share, "P3: run flow~.* of default was opened 1 ms early"},
		"of a run opened at the fire":  {0, share, "P3: run flow~.* of default was opened .* ms early"},
		"when its run is due, as most": {share, share, ""},
	} {
		t.Run(name, func(t *testing.T) {
			judge := oracle.New(oracle.Config{Clocks: oracle.AnyClock})
			standing := map[store.Key]store.Item{}
			stored := func(op store.Op, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				before := standing[op.Key]
				after := store.Item{Key: op.Key, Value: op.Value, Version: before.Version + 1}
				judge.Stored(base, before, after)
				standing[op.Key] = after
			}
			stored(job.Job{Tenant: tenant, Name: "flow", Generation: base.UnixMilli(), Def: def, Created: base.UnixMilli(), Updated: base.UnixMilli()}.Put(1))
			head := run.Run{ID: run.FireID("flow", fire), Tenant: tenant, State: run.Queued, Generation: base.UnixMilli(), Trigger: run.BySchedule, Created: fire}
			stored(head.Item(2))
			head.Version = 1
			head = head.Open(fire + c.opened)
			stored(head.Item(3))
			step := head.Release("first", head.Started, head.Started, kept(head))
			stored(step.Item(4))
			step.Version = 1
			stored(step.Start("worker", fire+c.started, time.Minute).Item(5))
			found := slices.DeleteFunc(judge.Violations(), func(v string) bool { return !strings.HasPrefix(v, "P3") && !strings.HasPrefix(v, "W") })
			if text := strings.Join(found, "; "); (c.want == "") != (text == "") || !regexp.MustCompile("^"+c.want).MatchString(text) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestARepeatedRequestMayBeClaimedOnceMore: a later try of a request has put the run as claimed, and a tick that comes upon the timer of an earlier one
// takes it for unclaimed. Nothing but the claimer changes by that, and only where nobody else has written the run.
func TestARepeatedRequestMayBeClaimedOnceMore(t *testing.T) {
	asked := run.RequestID("asked", base.Add(time.Minute).UnixMilli(), 7)
	by := func(epoch uint64) func(r *run.Run) { return func(r *run.Run) { r.Epoch = epoch } }
	for name, c := range map[string]struct {
		writes []func(r *run.Run)
		want   string
	}{
		"by a tick":             {[]func(r *run.Run){by(7)}, ""},
		"by two ticks":          {[]func(r *run.Run){by(7), by(8)}, "P6: run asked.* went from queued to queued in version 3: generation 1 does not pass 1"},
		"with another priority": {[]func(r *run.Run){func(r *run.Run) { r.Epoch, r.Priority = 7, "high" }}, "P6: run asked.* went from queued to queued in version 2: generation 1 does not pass 1"},
		"with a time to start":  {[]func(r *run.Run){func(r *run.Run) { r.Epoch, r.StartBy = 7, 9 }}, "P6: run asked.* went from queued to queued in version 2: generation 1 does not pass 1"},
		"by nobody":             {[]func(r *run.Run){by(0)}, "P6: run asked.* went from queued to queued in version 2: generation 1 does not pass 1"},
	} {
		t.Run(name, func(t *testing.T) {
			judge := oracle.New(oracle.Config{})
			standing := map[store.Key]store.Item{}
			stored := func(op store.Op, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				before := standing[op.Key]
				after := store.Item{Key: op.Key, Value: op.Value, Version: before.Version + 1}
				judge.Stored(base, before, after)
				standing[op.Key] = after
			}
			stored(job.Job{Tenant: tenant, Name: "asked", Generation: 1, Def: works(1, nil), Created: base.UnixMilli(), Updated: base.UnixMilli()}.Put(1))
			judge.Asked(oracle.Request{Op: oracle.Trigger, Tenant: tenant, Job: "asked", At: base})
			r := run.Run{ID: asked, Tenant: tenant, State: run.Queued, Generation: 1, Trigger: run.ByRequest, Created: base.UnixMilli()}
			stored(r.Item(2))
			for i, change := range c.writes {
				change(&r)
				r.Version = uint64(i + 1)
				stored(r.Item(uint64(3 + i)))
			}
			if text := strings.Join(judge.Violations(), "; "); (c.want == "") != (text == "") || !regexp.MustCompile("^"+c.want).MatchString(text) {
				t.Errorf("found %q, want %q", text, c.want)
			}
		})
	}
}
