package sim

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// pulse is how fast a shape works: what all bounds are made of.
type pulse struct {
	Every time.Duration // between two ticks
	Ahead time.Duration // how far beyond its clock a tick claims, at the most
	Lease time.Duration // of a run
	Check time.Duration // the longest time between two looks at a run that has not ended
	Steps time.Duration // how long a pass or a request waits for the store and the queue, at the most
	Pass  time.Duration // how long a pass takes that comes upon little
	Unit  time.Duration // between two fires of a job, at the least
	Jobs  int           // of a tenant
}

// pulseOf derives it from the settings.
func pulseOf(m Mix) pulse {
	p := pulse{Every: time.Second, Ahead: 2 * time.Second, Lease: 30 * time.Second, Check: timer.MaxCheckGap,
		Pass:  4 * timer.Buckets / 8 * m.Latency.Store, // it looks into each bucket, as each sweep does, and into several at once
		Steps: 5*time.Second + 300*m.Latency.Store + 100*m.Latency.Queue, Unit: m.Pace.unit(), Jobs: m.Names}
	if !m.Shape.Alone {
		p.Every, p.Ahead = max(m.Shape.Every, time.Minute), node.SharedLookAhead+time.Minute
	}
	return p
}

// mended is how long after the end of all faults whatever was lost is found again: it has a message, or a timer that a tick has read.
//
//   - writes that are under way land
//   - the minutes of what they wrote are swept: by the first sweep, and where writes landed late by the last
//   - the check that a sweep armed, or that was armed before, is read: it wakes at most Check beyond the horizon
func (m Mix) mended() time.Duration {
	p := pulseOf(m)
	f := m.Faults
	if f.Late > 0 || f.Pause > 0 || f.Slow > 0 || f.RequestDelayed > 0 {
		return dispatch.Lateness + m.swept(timer.Sweeps-1) + p.Check + p.Lease
	}
	return m.swept(0) + p.Check + p.Lease
}

// swept is how long after an instant a sweep has passed its minute, and the minutes of what was claimed ahead of it.
func (m Mix) swept(sweep int) time.Duration {
	p := pulseOf(m)
	return p.Ahead + time.Minute + timer.Lags[sweep] + 2*p.Every + p.Steps
}

// backlog is what stood open when the faults ended.
type backlog struct {
	runs     int           // that had not ended
	suspects int           // of these, those that run alone because they may be what kills workers
	missed   int           // of one job, the most fires that nobody has come upon, or that are owed
	longest  time.Duration // that a run may take from its next attempt to its end, all its retries with it
	attempt  time.Duration // the longest that one attempt may take
	attempts int           // the most that a run may have
	steps    int           // of workflows, that may yet be started beside runs
	ahead    time.Duration // until the last of them is due
}

func (b backlog) String() string {
	return fmt.Sprintf("%d runs, %d of them suspects, the last one due in %s, %s for all attempts of one; %d fires of a job missed", b.runs, b.suspects, b.ahead,
		b.longest, b.missed)
}

// letsIn is how long it takes from the end of a run until whoever waits for it at its gate is sent, at the most.
const letsIn = 20 * time.Second

// Of each process.
const (
	concurrency = 50  // attempts at once in each queue
	perPass     = 100 // missed fires of a job that are claimed
)

// bound is how long after the end of all faults everything has ended that was accepted or due by then. docs/simulation.md tells where it
// comes from.
func (m Mix) bound(b backlog) time.Duration {
	p := pulseOf(m)
	rounds := time.Duration((b.runs+b.steps)/concurrency + b.suspects*b.attempts + 1) // a suspect waits for its turn with each retry
	passes := time.Duration(b.missed/perPass + 1)
	starts := time.Duration(b.missed) * (time.Second + p.Pass) // of a job, one a second at the most, and one a pass at the least
	turns := time.Duration(0)
	if m.Jobs.Overlap > 0 || m.Jobs.Named > 0 {
		turns = time.Duration(b.runs) // where one at a time is in progress, those that wait go one after the other
	}
	return m.mended() + b.ahead + passes*(p.Every+p.Steps+time.Minute) + starts + rounds*(b.attempt+p.Lease) + b.longest + turns*(b.longest+letsIn)
}

// mayTake is how long a run of a definition may take from its next attempt to its end, where nothing else goes wrong; one attempt, and how many one thing
// may have. Steps of a workflow may each wait for all others.
func mayTake(def job.Definition, p pulse) (all, attempt time.Duration, attempts int) {
	for _, task := range tasks(def) {
		whole, one := mayTakeAlone(task, p)
		all, attempt, attempts = all+whole, max(attempt, one), max(attempts, task.Retry.MaxAttempts)
		if def.Target.Workflow != nil {
			all += p.Steps
		}
	}
	return all + waits(def), attempt, attempts
}

func mayTakeAlone(def job.Definition, p pulse) (all, attempt time.Duration) {
	attempt = def.Timeout.Std() + deafFor + p.Steps
	attempts := time.Duration(max(1, def.Retry.MaxAttempts))
	wait := max(def.Retry.Max.Std(), longestAfter)
	if def.Retry.Max.Std() > 15*time.Minute {
		wait += p.Ahead + p.Every // by a timer
	}
	return attempts*attempt + (attempts-1)*(wait+p.Steps), attempt
}

// settle is the second phase: nothing goes wrong any more. Jobs go on firing for a while, then their clients take the schedules away, and
// within the bound all has ended. Then the judge looks for the last time. It tells whether it came to that.
func (w *World) settle(ctx context.Context, a *Actor) (ended bool) {
	calm := w.Now()
	if a.Sleep(ctx, w.Mix.watch()) != nil {
		return false
	}
	b := w.backlog()
	w.retire(ctx, a)
	asked := w.Now()
	latest := asked.Add(w.Mix.bound(b))
	for earliest := calm.Add(w.Mix.mended()); w.Now().Before(latest); {
		if a.Sleep(ctx, 5*time.Minute) != nil {
			return false
		}
		if w.Now().After(earliest) && w.backlog().runs == 0 && len(w.Judge.Owed(w.Now(), asked, w.items())) == 0 {
			break
		}
	}
	if left := w.backlog(); left.runs > 0 {
		w.Violate("P4", "%s after the end of all faults there are %s; within %s all was to have ended: %s", w.Now().Sub(calm), left, latest.Sub(calm), b)
	}
	w.Judge.End(w.Now(), asked, w.items())
	return true
}

// watch is how long jobs go on firing without faults: where clocks were ahead, until the time has come to where they were, since what they
// published and decided reaches that far.
func (m Mix) watch() time.Duration {
	length := 2*time.Minute + 3*m.Pace.unit()
	if by := m.stepsBy(); by > 0 {
		length += by + pulseOf(m).Ahead
		if by > timer.Lags[0] { // what was decided by such a clock is looked at again by all sweeps, and the last lags by an hour
			length = max(length, timer.Lags[timer.Sweeps-1])
		}
	}
	return length
}

// stepsBy is how far a clock may be from the true time at the most.
func (m Mix) stepsBy() time.Duration {
	by := time.Duration(0)
	if m.Faults.Step > 0 {
		by = m.Faults.StepBy
	}
	for _, o := range m.Outages {
		by = max(by, o.Clock.Abs())
	}
	return by
}

// retire has every job's schedule taken away, and lets go what pauses hold.
func (w *World) retire(ctx context.Context, a *Actor) {
	for _, tenant := range w.Mix.Tenants {
		u := newUser(a, Role{Tenant: tenant, Persist: 1})
		for _, j := range u.listJobs(ctx).Jobs {
			def := j.Definition
			def.Schedule, def.MaxRuns, def.Paused, def.PauseAfter = nil, 0, false, 0 // who is still to end badly holds nobody up
			if def.Overlap.Policy == job.OverlapStrict {                             // nor does who has
				def.Overlap.Policy = job.OverlapQueue
			}
			u.put(ctx, j.Name, def, client.Condition{})
		}
	}
}

// backlog counts what has not ended.
func (w *World) backlog() backlog {
	p, now := pulseOf(w.Mix), w.Now()
	b := backlog{attempts: 1}
	most := 0 // steps of one workflow
	grow := func(def job.Definition) {
		all, one, attempts := mayTake(def, p)
		b.longest, b.attempt, b.attempts = max(b.longest, all), max(b.attempt, one), max(b.attempts, attempts)
		if def.Target.Workflow != nil {
			most = max(most, len(tasks(def)))
		}
	}
	watermark := int64(math.MaxInt64)
	var owed []timer.Timer
	for item := range w.items() {
		if prefix, rest, _ := strings.Cut(item.Partition, "#"); prefix == "run" {
			tenant, rest, _ := strings.Cut(rest, "#")
			name, _, _ := strings.Cut(rest, "#")
			id, err := run.IDFromSort(name, item.Sort)
			if err != nil {
				w.Fatal(err)
			}
			r, _, err := run.FromItem(tenant, id, item)
			if err != nil {
				w.Fatal(err)
			}
			if r.State.Ended() || r.State == run.Fenced {
				continue
			}
			b.runs++
			if r.Crashes >= dispatch.MaxCrashes-1 {
				b.suspects++
			}
			b.ahead = max(b.ahead, id.Time().Sub(now), time.UnixMilli(r.NextAt).Sub(now))
		} else if prefix == "step" {
			w.suspectStep(item, &b)
		} else if prefix == "def" { // a run that has begun goes on as it was defined
			var past struct {
				Def   job.Definition `cbor:"1,keyasint"`
				Until int64          `cbor:"2,keyasint"`
			}
			if err := record.Decode(item.Value, &past); err != nil {
				w.Fatal(err)
			}
			grow(past.Def)
		} else if prefix == "job" {
			j, err := job.FromItem("", "", item)
			if err != nil {
				w.Fatal(err)
			}
			grow(j.Def)
			if j.Active() {
				b.missed = max(b.missed, int(w.Mix.span()/w.Mix.Pace.unit()))
			}
		} else if prefix == "shard" {
			s, err := timer.ShardFromItem(0, item)
			if err != nil {
				w.Fatal(err)
			}
			watermark = min(watermark, s.Watermark)
		} else if prefix == "due" {
			t, err := timer.FromItem(item)
			if err != nil {
				w.Fatal(err)
			}
			if t.Owed != 0 {
				owed = append(owed, t)
			}
		}
	}
	for _, t := range owed { // what a clock's step, or passes that took long, have left to be made up for
		if t.Wake > watermark {
			b.missed = max(b.missed, int((now.UnixMilli()-t.Nominal)/w.Mix.Pace.unit().Milliseconds()))
		}
	}
	b.steps = b.runs * most
	return b
}

// span is the longest time without anybody.
func (m Mix) span() time.Duration {
	longest := m.Faults.AwayFor + m.Faults.CrashFor
	for _, o := range m.Outages {
		longest += o.For
	}
	return longest
}

// suspectStep counts a step that runs alone.
func (w *World) suspectStep(item store.Item, b *backlog) {
	_, rest, _ := strings.Cut(item.Partition, "#")
	tenant, of, _ := strings.Cut(rest, "#")
	id, err := run.ParseID(of)
	if err != nil {
		w.Fatal(err)
	}
	s, err := run.StepFromItem(tenant, id, item)
	if err != nil {
		w.Fatal(err)
	}
	if !s.State.Ended() && s.Crashes >= dispatch.MaxCrashes-1 {
		b.suspects++
	}
}
