package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// drawJob gives a definition as a client of such a world would send it. now is the true time. It is a pure function of its
// arguments, and what it gives is never refused for its form.
func (m *Mix) drawJob(r *rand.Rand, now time.Time) job.Definition {
	j := m.Jobs
	def := job.Definition{
		Schedule: m.drawSchedule(r, now),
		Target:   target.Spec{Handler: &target.Handler{Name: Handlers[r.IntN(len(Handlers))]}},
		Queue:    pick(r, m.Pools),
		Priority: pick(r, []queue.Priority{queue.High, queue.Normal, queue.Normal, queue.Low}),
		Paused:   chance(r, j.PausedAtBirth),
	}
	if chance(r, j.Labels) {
		def.Labels = map[string]string{"team": pick(r, teams)}
	}
	if chance(r, j.AtMostOnce) {
		def.Guarantee = job.AtMostOnce
	}
	def.CatchUp = m.drawCatchUp(r)
	def.Retry = tryOnce
	if def.Guarantee != job.AtMostOnce {
		def.Retry = m.drawRetry(r)
	}
	if chance(r, j.ShortLived) {
		def.Retention = schedule.Duration(job.MinRetention)
	}
	w := m.drawWork(r)
	if chance(r, j.Overlap) {
		def.Overlap = job.Overlap{Policy: job.OverlapSkip, Limit: 1 + r.IntN(3)}
		if chance(r, j.Queued) { // up to so many that the world comes to its end
			most := pick(r, []int{0, 1, 4, 20})
			def.Overlap.Policy, def.Overlap.MaxWaiting = pick(r, []job.OverlapPolicy{job.OverlapQueue, job.OverlapAllow}), &most
		}
		if chance(r, j.OneWaits) {
			def.Overlap.Policy, def.Overlap.MaxWaiting = pick(r, []job.OverlapPolicy{job.OverlapQueueOne, job.OverlapQueueLatest, job.OverlapQueueLatest}), nil
		}
		if chance(r, j.Keyed) {
			def.Overlap.Key = pick(r, keys)
		}
		if j.Displace > 0 && chance(r, j.Displace) {
			def.Overlap.Policy, def.Overlap.MaxWaiting = pick(r, []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace}), nil
		}
		if j.Strict > 0 && chance(r, j.Strict) {
			most := pick(r, []int{1, 4, 20})
			def.Overlap.Policy, def.Overlap.Limit, def.Overlap.MaxWaiting = job.OverlapStrict, 1, &most
		}
		w.For = schedule.Duration(rate(r, 1, m.Pace.unit()/4, 4*m.Pace.unit())) // else its fires hardly meet
	}
	if chance(r, j.Named) {
		for _, name := range namedGates {
			if r.IntN(2) == 0 {
				def.Gates = append(def.Gates, job.GateUse{Gate: name, Units: 1 + r.IntN(2)})
				if j.NamedKeyed > 0 && chance(r, j.NamedKeyed) {
					def.Gates[len(def.Gates)-1].Key = pick(r, keys)
				}
			}
		}
		w.For = schedule.Duration(rate(r, 1, m.Pace.unit()/4, 2*m.Pace.unit()))
	}
	if chance(r, j.Expiring) {
		def.ExpiresAfter = schedule.Duration(rate(r, 1, 2*time.Second, 4*m.Pace.unit()).Truncate(time.Second))
	}
	if chance(r, j.Counted) && def.Schedule != nil {
		def.MaxRuns = 1 + r.IntN(30)
	}
	if chance(r, j.Pausing) {
		def.PauseAfter = 1 + r.IntN(4)
	}
	if j.Deadlines > 0 && chance(r, j.Deadlines) {
		def.Deadline = def.ExpiresAfter + schedule.Duration(rate(r, 1, 5*time.Second, 4*m.Pace.unit()).Truncate(time.Second))
	}
	def.Timeout = w.timeout(r)
	def.Payload = w.payload(pick(r, []int{0, 0, 100, 500, 4000}))
	if chance(r, j.Callbacks) {
		def.On = m.drawCalled(r)
	}
	if chance(r, j.Missed) {
		def.On.Missed = m.drawCallee(r)
	}
	for _, called := range []*job.Callback{def.On.Failed, def.On.Missed} {
		if called != nil && chance(r, j.Within) {
			called.Job, called.Window = nameOf(0), m.Jobs.Window // the same, so that some are told of together
		}
	}
	if chance(r, j.Workflows) {
		def.Gates = nil // its run passes none
		return m.branches(r, def)
	}
	return def
}

// keys are those of overlap: of few values, so that some runs meet, and of labels that a job may lack.
var keys = []string{"${ .nominal_time[15:16] }", "${ .nominal_time[18:19] }", "${ .job }-${ .nominal_time[12:13] }-${ .job }-${ .job }-${ .job }-${ .job }-${ .job }", "${ .labels.team }"}

// tryOnce is what a job that runs at most once says of waits. Worlds say all of retries, so that they stay the same whatever the defaults are.
var tryOnce = job.Retry{MaxAttempts: 1, Initial: schedule.Duration(time.Second), Factor: 2, Max: schedule.Duration(5 * time.Minute)}

// nameOf is the n-th name of a tenant's jobs.
func nameOf(n int) string { return fmt.Sprintf("job-%d", n) }

// drawCallee gives a job that may exist: who names one that does not, or itself, is refused.
func (m *Mix) drawCallee(r *rand.Rand) *job.Callback {
	return &job.Callback{Job: nameOf(r.IntN(max(1, m.Names)))}
}

func (m *Mix) drawCalled(r *rand.Rand) (on job.Callbacks) {
	called := func() *job.Callback { return m.drawCallee(r) }
	switch r.IntN(6) {
	case 3:
		on.Recovered = called()
	case 4:
		on.Recovered, on.Failed = called(), called()
	case 5:
		on.Succeeded, on.Failed, on.Recovered = called(), called(), called()
	case 0:
		on.Succeeded = called()
	case 1:
		on.Failed = called()
	default:
		on.Succeeded, on.Failed = called(), called()
	}
	return on
}

// windows are those of callbacks, by the pace of a world.
var windows = [...][]time.Duration{{time.Minute, 2 * time.Minute}, {time.Minute, 5 * time.Minute, 20 * time.Minute}, {10 * time.Minute, time.Hour, 6 * time.Hour}}

// teams are the values of the one label that jobs bear.
var teams = []string{"red", "green", "blue"}

func (m *Mix) drawCatchUp(r *rand.Rand) job.CatchUp {
	c := job.CatchUp{Mode: pick(r, []job.CatchUpMode{job.CatchUpOne, job.CatchUpAll, job.CatchUpNone})}
	if chance(r, m.Jobs.Windows) {
		c.Window = schedule.Duration(pick(r, []time.Duration{job.NewestWithin, 20 * time.Minute, 2 * time.Hour, 30 * time.Hour}))
	}
	return c
}

func (m *Mix) drawRetry(r *rand.Rand) job.Retry {
	if chance(r, m.Jobs.LongRetries) { // waits that the queue cannot hold: they are timers of the store
		first := pick(r, []time.Duration{16 * time.Minute, 20 * time.Minute, 40 * time.Minute})
		return job.Retry{MaxAttempts: 2 + r.IntN(3), Initial: schedule.Duration(first), Factor: 1 + r.Float64(), Max: schedule.Duration(2 * first)}
	}
	first := pick(r, []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second})
	return job.Retry{MaxAttempts: 1 + r.IntN(6), Initial: schedule.Duration(first), Factor: 1 + 2*r.Float64(),
		Max: schedule.Duration(first * time.Duration(1+r.IntN(20)))}
}

// drawSchedule gives a schedule with a fire still to come, nil for a job on demand.
func (m *Mix) drawSchedule(r *rand.Rand, now time.Time) *schedule.Spec {
	for range 20 {
		spec := m.anySchedule(r, now)
		if spec == nil {
			return nil
		}
		compiled, err := spec.Compile()
		if err != nil {
			continue // bounds that leave no fire
		}
		// A client's request takes its time: what fires once fires some time from now.
		if _, ok := compiled.Next(now.Add(time.Second)); ok {
			return spec
		}
	}
	return &schedule.Spec{Every: schedule.Duration(m.Pace.unit())}
}

func (m *Mix) anySchedule(r *rand.Rand, now time.Time) *schedule.Spec {
	j, unit := m.Jobs, m.Pace.unit()
	spec := &schedule.Spec{}
	switch weighted(r, j.Cron, j.Every, j.At, j.OnDemand) {
	case 0:
		spec.Cron, spec.Timezone = pick(r, m.Pace.expressions()), pick(r, m.Zones)
	case 1:
		every := unit * time.Duration(1+r.IntN(6))
		if chance(r, 0.3) {
			every += time.Duration(r.IntN(1000)) * time.Millisecond
		}
		spec.Every = schedule.Duration(every)
		if chance(r, 0.5) {
			spec.Phase = schedule.Duration(time.Duration(r.Int64N(every.Milliseconds())) * time.Millisecond)
		}
	case 2:
		at := now.Add(2*time.Second + time.Duration(r.Float64()*float64(20*unit))).Truncate(time.Millisecond)
		spec.At = &at
	default:
		return nil
	}
	if spec.At == nil && chance(r, j.Bounds) {
		start := now.Add(time.Duration((r.Float64()*20 - 10) * float64(unit))).Truncate(time.Millisecond)
		if chance(r, 0.6) {
			spec.Start = &start
		}
		if chance(r, 0.6) {
			end := start.Add(time.Duration(5+r.IntN(60)) * unit)
			spec.End = &end
		}
	}
	if chance(r, j.Jitter) {
		spec.Jitter = schedule.Duration(min(unit*time.Duration(1+r.IntN(5)), 10*time.Minute))
	}
	return spec
}

// Pace is how far apart the fires of a world are, and so how long it has to be looked at.
type Pace uint8

// The paces.
const (
	Seconds Pace = iota
	Minutes
	Hours
)

func (p Pace) String() string { return [...]string{"seconds", "minutes", "hours"}[p] }

// unit is the shortest distance of two fires.
func (p Pace) unit() time.Duration { return [...]time.Duration{time.Second, time.Minute, time.Hour}[p] }

// longest is about how long the longest attempts take.
func (p Pace) longest() time.Duration {
	return [...]time.Duration{10 * time.Minute, 90 * time.Minute, 6 * time.Hour}[p]
}

// busy is how many operations the busiest clients do. In a world of seconds each edit claims and fences hundreds of fires.
func (p Pace) busy() time.Duration { return [...]time.Duration{300, 1000, 1500}[p] }

func (p Pace) expressions() []string { return expressions[p] }

// expressions of cron, by pace. Those of hours meet what clocks do at night: gaps, repeated hours, ends of months, days of the week.
var expressions = [...][]string{
	Seconds: {"* * * * * *", "*/2 * * * * *", "*/7 * * * * *", "1-50/7 * * * * *", "0,15,30,45 * * * * *", "5/20 * * * * *",
		"* * * * *", "30 * * * * *", "*/10 */2 * * * *", "0-3 * * * * *"},
	Minutes: {"* * * * *", "*/5 * * * *", "3-59/7 * * * *", "0 */10 * * * *", "30 */3 * * * *", "@hourly", "0,1,2,30 * * * *",
		"*/20 1-3 * * *", "15 2 * * *", "30 1,2,3 * * *", "*/2 0-4 * * *"},
	Hours: {"@hourly", "30 2 * * *", "15 1,2,3 * * *", "0 */6 * * *", "30 * * * *", "*/20 2-4 * * *", "@daily", "@midnight", "0 0 L * *",
		"0 12 LW * *", "0 3 15W * *", "0 9 * * mon#1", "0 9 * jan-dec fri", "0 2 * * sun", "5 4 1W * *", "0 1 L-3 * *", "0 9 * * 5L",
		"0 0 1,15 * mon-wed", "45 23 * * *", "0 0 0 * * *", "30 30 1-2 * * *", "@weekly"},
}

// work is what a run does when its target is called. It is the payload, so that every trace and every listing shows it.
type work struct {
	Of     string            `json:"of,omitempty"`          // the tenant whose client wrote this
	For    schedule.Duration `json:"for"`                   // how long an attempt takes; each draws its own between half of it and twice
	Fail   float64           `json:"fail,omitempty"`        // share of the attempts that fail, and may be tried again
	Bad    float64           `json:"bad,omitempty"`         // share that fails for good
	Panic  float64           `json:"panic,omitempty"`       // share that panics
	Kill   float64           `json:"kill,omitempty"`        // share that takes its host with it
	Wait   schedule.Duration `json:"retry_after,omitempty"` // what a failure asks for
	Deaf   bool              `json:"deaf,omitempty"`        // goes on although it was told to stop
	Result int               `json:"result,omitempty"`      // bytes
	Log    int               `json:"log,omitempty"`         // bytes
	Fences bool              `json:"fences,omitempty"`      // the target remembers the highest fence of each run, and refuses a lower one
	Pad    string            `json:"pad,omitempty"`         // makes the payload large
}

// longestAfter is the longest wait that a failing target asks for.
const longestAfter = 2 * time.Minute

func (m *Mix) drawWork(r *rand.Rand) work {
	k := m.Work
	w := work{Fences: chance(r, k.Fences), Deaf: chance(r, k.Deaf)}
	switch weighted(r, k.Short, k.Medium, k.Long) {
	case 0:
		w.For = millis(1+r.IntN(300), time.Millisecond)
	case 1:
		w.For = millis(300+r.IntN(45_000), time.Millisecond)
	default:
		w.For = schedule.Duration(rate(r, 1, time.Minute, m.Pace.longest()))
	}
	some := func(rate float64) float64 {
		if chance(r, rate) {
			return pick(r, []float64{0.05, 0.3, 0.7, 1})
		}
		return 0
	}
	w.Fail, w.Bad, w.Panic = some(k.Fail), some(k.Bad)/4, some(k.Panic)/2
	w.Kill = some(k.Poison)
	if w.Fail > 0 && chance(r, k.RetryAfter) {
		w.Wait = millis(1+r.IntN(int(longestAfter/time.Second)), time.Second)
	}
	if chance(r, k.Large) {
		w.Result, w.Log = pick(r, []int{10, 3000, 4000, 20_000, target.MaxResultBytes + 10}), pick(r, []int{0, 100, 9000, 300_000})
	}
	return w
}

// timeout gives one that most attempts keep to, and in some worlds some do not.
func (w work) timeout(r *rand.Rand) schedule.Duration {
	longest := 2*w.For.Std() + time.Second
	if chance(r, 0.1) {
		longest = w.For.Std() / 2
	}
	return schedule.Duration(min(max(longest.Truncate(time.Millisecond), time.Second), job.MaxTimeout))
}

// payload is the work as JSON, of size bytes at least.
func (w work) payload(size int) json.RawMessage {
	text, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("work as JSON: %v", err))
	}
	if lack := size - len(text); lack > 0 {
		w.Pad = strings.Repeat("x", lack)
		text, _ = json.Marshal(w)
	}
	return text
}

func millis(n int, unit time.Duration) schedule.Duration {
	return schedule.Duration(time.Duration(n) * unit)
}

// chance tells whether something of such a rate happens.
func chance(r *rand.Rand, rate float64) bool { return rate > 0 && r.Float64() < rate }

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// weighted picks one of several by their weights, of which one at least must be positive.
func weighted(r *rand.Rand, weights ...float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	at := r.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 && w > 0 {
			return i
		}
	}
	for i := len(weights) - 1; ; i-- {
		if weights[i] > 0 {
			return i
		}
	}
}
