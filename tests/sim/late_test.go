package sim

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

var lateSeeds = flag.Int("late-seeds", 0, "TestLateness: how many worlds of each class of fault; 0: one of each of three classes, each day others")

// onTime is how late a run starts at the most where nothing goes wrong.
const onTime = time.Second

// class is one kind of fault by itself.
type class struct {
	name string
	set  func(f *Faults)

	// Bounds, of one process alone and of several on one store: from a run's nominal time to the start of its first attempt, and from the
	// end of the fault to the last start that is late for it.
	late, after func(p pulse) time.Duration
}

// Of a fault with a length, the longest that is drawn is taken to be so many times its mean: the draw is exponential.
const longest = 10

// checks is when the n-th look at a run that has not started comes, from its nominal time: 4, 8, 16 minutes and then each 15. Where ticks
// claim further ahead than the first, it is the second.
func checks(p pulse, n int) time.Duration {
	at := []time.Duration{4 * time.Minute, 8 * time.Minute, 16 * time.Minute}
	if p.Ahead > time.Minute {
		at = at[1:]
	}
	if n <= len(at) {
		return at[n-1]
	}
	return at[len(at)-1] + time.Duration(n-len(at))*15*time.Minute
}

func fixed(d time.Duration) func(pulse) time.Duration { return func(pulse) time.Duration { return d } }

// byCheck is the bound of what a look at the run mends, which may itself go wrong again n-1 times.
func byCheck(n int) func(pulse) time.Duration {
	return func(p pulse) time.Duration { return checks(p, n) + onTime }
}

// nextCheck is the same from the end of a fault.
func nextCheck(p pulse) time.Duration { return p.Check + p.Every + onTime }

// gone is how long a process is away, and what it takes to go on: alone nobody can stand in; else others take its shards, and a run that
// it held in hand, or had accepted and not sent, waits for its check.
func gone(mean time.Duration) func(pulse) time.Duration {
	return func(p pulse) time.Duration {
		if p.Ahead < time.Minute {
			return longest*mean + 5*time.Second
		}
		return max(longest*mean+p.Every, checks(p, 1)) + p.Lease
	}
}

const away = 10 * time.Second

var classes = []class{
	{"nothing", func(*Faults) {}, fixed(onTime), fixed(onTime)},
	{"messages lost when sent", func(f *Faults) { f.SendLost = 0.2 }, byCheck(5), nextCheck},
	{"messages lost when received", func(f *Faults) { f.ReceiveLost = 0.2 },
		func(p pulse) time.Duration { return checks(p, 1) + p.Lease + onTime }, func(p pulse) time.Duration { return p.Lease + onTime }},
	{"messages doubled and reordered", func(f *Faults) { f.Doubled, f.Reordered, f.EndedEarly = 0.3, 0.5, 0.2 }, fixed(onTime), fixed(onTime)},
	{"messages delayed by up to 15 min", func(f *Faults) { f.Delayed = 0.1 }, fixed(15*time.Minute + onTime), fixed(15*time.Minute + onTime)},
	{"sends that fail", func(f *Faults) { f.SendFailed, f.SendUnknown = 0.3, 0.1 },
		func(p pulse) time.Duration { return max(checks(p, 1), p.Ahead+p.Every) + onTime }, nextCheck},
	{"queues that are full", func(f *Faults) { f.Full, f.FullFor = 2*time.Minute, away }, byCheck(2), nextCheck},
	{"crash and restart", func(f *Faults) { f.Crash, f.CrashFor = 2*time.Minute, away }, gone(away), gone(0)},
	{"graceful stops", func(f *Faults) { f.Stop = 2 * time.Minute }, gone(time.Second), gone(0)},
	{"processes that stand still", func(f *Faults) { f.Pause, f.PauseFor = 2*time.Minute, away }, gone(away), gone(0)},
	{"clocks off by up to 1.5 s", func(f *Faults) { f.Skew = 1500 * time.Millisecond }, fixed(1500*time.Millisecond + onTime), fixed(1500*time.Millisecond + onTime)},
	{"throttled, failed reads and writes", func(f *Faults) { f.Throttled, f.Refused, f.Lost = 0.1, 0.02, 0.02 },
		func(p pulse) time.Duration { return max(checks(p, 1), p.Ahead+2*p.Every) + p.Lease + onTime }, nextCheck},
	{"a slow store", func(f *Faults) { f.Slow, f.SlowFor = 0.1, 2*time.Second },
		func(p pulse) time.Duration { return max(checks(p, 1), p.Ahead+2*p.Every) + onTime }, nextCheck},
	{"the store away", func(f *Faults) { f.Away, f.AwayFor = 2*time.Minute, away }, gone(away), gone(0)},
	{"requests and answers lost", func(f *Faults) { f.RequestLost, f.AnswerLost, f.RequestDelayed = 0.2, 0.2, 0.1 }, fixed(onTime), fixed(onTime)},
}

// plainMix is a world in which jobs fire and are triggered, and nobody edits anything.
func plainMix(c class, alone bool) Mix {
	m := Mix{Start: time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC), Length: 8 * time.Minute, Pace: Seconds, Shape: Shape{Alone: alone, Hosts: 3},
		Latency: Latency{Store: 10 * time.Millisecond, Queue: 10 * time.Millisecond, Net: 10 * time.Millisecond},
		Zones:   []string{"UTC", "Europe/Berlin"}, Tenants: []string{"default"}, Pools: []string{job.DefaultQueue}, Names: 8,
		Jobs: JobRates{Cron: 1, Every: 1}, Work: WorkRates{Short: 1}}
	if alone {
		m.Shape.Hosts = 1
	} else {
		m.Length = 30 * time.Minute
		m.Pace = Minutes
		m.Names = 20
	}
	role := Role{Tenant: "default", Think: 10 * time.Second, Persist: 1, Begins: true}
	role.Weights[opCreate], role.Weights[opTrigger], role.Weights[opTriggerDelay], role.Weights[opTriggerKey] = 1, 1, 1, 1
	m.Clients = []Role{role, {Tenant: "default", Think: 10 * time.Second, Persist: 1, Weights: role.Weights}}
	c.set(&m.Faults)
	return m
}

// lateness is what was seen of it.
type lateness struct {
	runs        int
	worst       time.Duration
	after       time.Duration // the end of the fault to the last late start
	which, last string
}

func (l *lateness) measure(t *testing.T, seed uint64, m Mix) {
	var first time.Time
	started := map[string]bool{}
	r := Run(t, Config{Seed: seed, Mix: &m, Until: m.Length + 20*time.Minute, OnStep: func(s Step) {
		if first.IsZero() {
			first = s.At
		}
		if s.What != "call" || started[s.Key] {
			return
		}
		started[s.Key] = true
		_, text, _ := strings.Cut(s.Key, "#")
		id, err := run.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		l.runs++
		since := s.At.Sub(first)
		late := m.Start.Add(since).Sub(id.Time())
		if late > l.worst {
			l.worst, l.which = late, s.Key
		}
		if after := since - m.Length; late > onTime && after > l.after {
			l.after, l.last = after, s.Key
		}
	}})
	if len(r.Violations) > 0 {
		t.Errorf("seed %d: %s\n%s", seed, strings.Join(r.Violations, "\n"), r.Mix)
	}
}

// TestLateness holds the bounds that docs/simulation.md states, class by class, and prints its table.
func TestLateness(t *testing.T) {
	some := classes
	if *lateSeeds == 0 {
		some = nil
		for n := range 3 {
			some = append(some, classes[(int(time.Now().Unix()/86_400)*3+n)%len(classes)])
		}
	}
	t.Log("late: bound / worst seen, and after the end: bound / worst seen; alone, then three on one store")
	for _, c := range some {
		row := "| " + c.name + " "
		for _, alone := range []bool{true, false} {
			m := plainMix(c, alone)
			p := pulseOf(m)
			seen := &lateness{}
			for seed := range uint64(max(1, *lateSeeds)) {
				seen.measure(t, seed+1, m)
			}
			if seen.runs < 50 {
				t.Errorf("%s, alone %t: only %d runs", c.name, alone, seen.runs)
			}
			if bound := c.late(p); seen.worst > bound {
				t.Errorf("%s, alone %t: %s was %s late, want at most %s", c.name, alone, seen.which, seen.worst, bound)
			}
			if bound := c.after(p); seen.after > bound {
				t.Errorf("%s, alone %t: %s still started late %s after the end, want at most %s", c.name, alone, seen.last, seen.after, bound)
			}
			row += fmt.Sprintf("| %s / %s | %s / %s ", short(c.late(p)), short(seen.worst), short(c.after(p)), short(seen.after))
		}
		t.Log(row + "|")
	}
}

func short(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
