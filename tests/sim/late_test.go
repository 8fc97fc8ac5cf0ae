package sim

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/process"
)

var lateSeeds = flag.Int("late-seeds", 0, "TestLateness: how many worlds of each class of fault; 0: one of each of three classes, which a drawn BELFRY_SEED chooses")

var only = flag.String("late-only", "", "TestLateness: the classes of fault whose names hold this")

// onTime is how late a run starts at the most where nothing goes wrong.
const onTime = time.Second

// class is one kind of fault by itself.
type class struct {
	name string
	set  func(m *Mix)

	// Bounds, of one process alone and of several on one store: from a run's nominal time to the start of its first attempt, and from the
	// end of the fault to the last start that is late for it.
	late, after func(p pulse) time.Duration
}

// outage is a class of which what was due is found after its end, and then runs or is dropped, as catch-up decides. found is how late
// that is with what was accepted or claimed before. Faults end with it.
func outage(name string, o Outage, found func(p pulse) time.Duration) class {
	after := func(p pulse) time.Duration { return found(p) + caughtUp(p, o.For) + onTime }
	return class{name, func(m *Mix) {
		if o.For > 24*time.Hour {
			m.Pace, m.Names = Hours, 40 // of which few fire, and some far apart
			for i := range m.Clients {  // that do not ask all the time in vain
				m.Clients[i].Think, m.Clients[i].Persist = time.Hour, 0
			}
		}
		o.After = m.Length
		m.Outages, m.Length = []Outage{o}, m.Length+o.For
		m.Jobs.Windows = 0.3
	}, func(p pulse) time.Duration { return o.For + after(p) }, after}
}

// back is how long it takes processes and the store to go on where they were: alone a start sends all that is open; else what was
// accepted and not sent waits for its check. A run that was in hand waits for its lease, which is not judged in the length of one.
func back(p pulse) time.Duration {
	if p.Ahead < time.Minute {
		return restart + 2*p.Lease
	}
	return restart + nextCheck(p) + 2*p.Lease
}

// setRight is the same of clocks. A message that was hidden by a wrong one is replaced by the check. On a shared store a host may take a
// request before it hears that its clock was set: the timer of that lies where two sweeps have been.
func setRight(p pulse) time.Duration {
	if p.Ahead < time.Minute {
		return nextCheck(p) + 2*p.Lease
	}
	return timer.Lags[timer.Sweeps-1] + time.Minute + p.Ahead + 2*p.Every + nextCheck(p) + 2*p.Lease
}

// restart is how long a host is down at the most where nothing is wrong any more, or a worker waits that was told to come again.
const restart = 10 * time.Second

// caughtUp is how long it takes to catch up with what an outage missed: of each job so many fires a pass, and all jobs' runs so many at
// once, none of which takes a second.
func caughtUp(p pulse, outage time.Duration) time.Duration {
	missed := int(outage / p.Unit)
	return time.Duration(missed/perPass+1)*(p.Every+2*time.Second) + time.Duration(missed*p.Jobs/concurrency+1)*time.Second
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
	{"nothing", func(*Mix) {}, fixed(onTime), fixed(onTime)},
	{"messages lost when sent", func(m *Mix) { m.Faults.SendLost = 0.2 }, byCheck(5), nextCheck},
	{"messages lost when received", func(m *Mix) { m.Faults.ReceiveLost = 0.2 },
		func(p pulse) time.Duration { return checks(p, 1) + p.Lease + onTime }, func(p pulse) time.Duration { return p.Lease + onTime }},
	{"messages doubled and reordered", func(m *Mix) { m.Faults.Doubled, m.Faults.Reordered, m.Faults.EndedEarly = 0.3, 0.5, 0.2 }, fixed(onTime), fixed(onTime)},
	{"messages delayed by up to 15 min", func(m *Mix) { m.Faults.Delayed = 0.1 }, fixed(15*time.Minute + onTime), fixed(15*time.Minute + onTime)},
	{"sends that fail", func(m *Mix) { m.Faults.SendFailed, m.Faults.SendUnknown = 0.3, 0.1 },
		func(p pulse) time.Duration { return max(checks(p, 1), p.Ahead+p.Every) + onTime }, nextCheck},
	{"queues that are full", func(m *Mix) { m.Faults.Full, m.Faults.FullFor = 2*time.Minute, away }, byCheck(2), nextCheck},
	{"crash and restart", func(m *Mix) { m.Faults.Crash, m.Faults.CrashFor = 2*time.Minute, away }, gone(away), gone(0)},
	{"graceful stops", func(m *Mix) { m.Faults.Stop = 2 * time.Minute }, gone(time.Second), gone(0)},
	{"processes that stand still", func(m *Mix) { m.Faults.Pause, m.Faults.PauseFor = 2*time.Minute, away }, gone(away), gone(0)},
	{"clocks off by up to 1.5 s", func(m *Mix) { m.Faults.Skew = 1500 * time.Millisecond }, fixed(1500*time.Millisecond + onTime), fixed(1500*time.Millisecond + onTime)},
	{"throttled, failed reads and writes", func(m *Mix) { m.Faults.Throttled, m.Faults.Refused, m.Faults.Lost = 0.1, 0.02, 0.02 },
		func(p pulse) time.Duration { return max(checks(p, 1), p.Ahead+2*p.Every) + p.Lease + onTime }, nextCheck},
	{"a slow store", func(m *Mix) { m.Faults.Slow, m.Faults.SlowFor = 0.1, 2*time.Second },
		func(p pulse) time.Duration { return max(checks(p, 1), p.Ahead+2*p.Every) + onTime }, nextCheck},
	{"the store away", func(m *Mix) { m.Faults.Away, m.Faults.AwayFor = 2*time.Minute, away }, gone(away), gone(0)},
	{"requests and answers lost", func(m *Mix) { m.Faults.RequestLost, m.Faults.AnswerLost, m.Faults.RequestDelayed = 0.2, 0.2, 0.1 }, fixed(onTime), fixed(onTime)},
	outage("no process for an hour", Outage{For: time.Hour}, back),
	outage("no process for three days", Outage{For: 72 * time.Hour}, back),
	outage("no store for an hour", Outage{For: time.Hour, Store: true}, back),
	{"one clock right, the others 30 min off for 10 min", func(m *Mix) {
		m.Outages = []Outage{{After: m.Length / 10, For: 10 * time.Minute, Clock: 30 * time.Minute, Spare: true},
			{After: m.Length / 2, For: 10 * time.Minute, Clock: -30 * time.Minute, Spare: true}}
	}, setRight, setRight},
	outage("all clocks 30 min ahead, for 10 min", Outage{For: 10 * time.Minute, Clock: 30 * time.Minute}, setRight),
	outage("all clocks 30 min behind, for 10 min", Outage{For: 10 * time.Minute, Clock: -30 * time.Minute}, setRight),
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
	c.set(&m)
	return m
}

// lateness is what was seen of it.
type lateness struct {
	runs        int
	skipped     int // fires that catch-up dropped
	worst       time.Duration
	after       time.Duration // the end of the fault to the last late start
	which, last string
}

func (l *lateness) measure(t *testing.T, seed uint64, m Mix) {
	var first time.Time
	started := map[string]bool{}
	stored := map[store.Key]time.Time{} // by the true time: of what is asked for while a clock is wrong, only that tells since when it waits
	cfg := Config{Seed: seed, Mix: &m, OnStep: func(s Step) {
		if first.IsZero() {
			first = s.At
		}
		if s.What != "call" || started[s.Key] {
			return
		}
		started[s.Key] = true
		tenant, text, _ := strings.Cut(s.Key, "#")
		id, err := run.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		l.runs++
		since := s.At.Sub(first)
		due := id.Time()
		if put := stored[id.Key(tenant)].Add(-dispatch.MaxSkew); id.OnDemand() && put.After(due) {
			due = put
		}
		late := m.Start.Add(since).Sub(due)
		if late > l.worst {
			l.worst, l.which = late, s.Key
		}
		if after := min(since-m.Length, late); late > onTime && after > l.after {
			l.after, l.last = after, s.Key
		}
	}}
	cfg.OnChange = func(before, after store.Item) {
		prefix, rest, _ := strings.Cut(after.Partition, "#")
		if prefix != "run" {
			return
		}
		if !before.Exists() {
			stored[after.Key] = m.Start.Add(time.Since(first))
		}
		tenant, rest, _ := strings.Cut(rest, "#")
		name, _, _ := strings.Cut(rest, "#")
		id, err := run.IDFromSort(name, after.Sort)
		if err != nil {
			t.Fatal(err)
		}
		dropped, _, err := run.FromItem(tenant, id, after)
		if err != nil {
			t.Fatal(err)
		}
		if dropped.State == run.Skipped {
			l.skipped += dropped.Count
		}
	}
	if len(m.Outages) == 0 { // else to its own end, where the judge looks for the run of each fire, or why there is none
		cfg.Until = m.Length + 20*time.Minute
	}
	r := Run(t, cfg)
	if len(r.Violations) > 0 {
		t.Errorf("seed %d: %s\n%s", seed, strings.Join(r.Violations, "\n"), r.Mix)
	}
}

// TestLateness holds the bounds that docs/simulation.md states, class by class, and prints its table.
func TestLateness(t *testing.T) {
	some := classes
	if *only != "" {
		some = slices.DeleteFunc(slices.Clone(classes), func(c class) bool { return !strings.Contains(c.name, *only) })
	} else if *lateSeeds == 0 {
		some = nil
		for n := range 3 {
			some = append(some, classes[(int(process.Seed(t)%1000)*3+n)%len(classes)])
		}
	}
	t.Log("late: bound / worst seen, and after the end: bound / worst seen; alone, then three on one store")
	for _, c := range some {
		row := "| " + c.name + " "
		for _, alone := range []bool{true, false} {
			m := plainMix(c, alone)
			if alone && m.Outages != nil && m.Outages[0].Spare {
				row += "| | "
				continue
			}
			p := pulseOf(m)
			seen := &lateness{}
			for seed := range uint64(max(1, *lateSeeds)) {
				seen.measure(t, seed+1, m)
			}
			// Shorter ones and other trouble may last for longer than job.Grace too.
			if long := m.Outages != nil && m.Outages[0].For > job.NewestWithin && !m.Outages[0].Spare; long && seen.skipped == 0 {
				t.Errorf("%s, alone %t: no fire was dropped", c.name, alone)
			}
			if seen.runs+seen.skipped < 50 {
				t.Errorf("%s, alone %t: only %d runs, and %d fires that were dropped", c.name, alone, seen.runs, seen.skipped)
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

// TestTheBoundsOfLatenessAreThePage: docs/simulation.md states for each class the bounds that TestLateness holds, in the code's order.
func TestTheBoundsOfLatenessAreThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| what goes wrong |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:] // behind what is left of the head, and its rule
	if len(rows) != len(classes) {
		t.Fatalf("the table has %d classes, want %d", len(rows), len(classes))
	}
	for i, c := range classes {
		want := []string{c.name}
		for _, alone := range []bool{true, false} {
			m := plainMix(c, alone)
			if alone && m.Outages != nil && m.Outages[0].Spare {
				want = append(want, "–", "–")
				continue
			}
			p := pulseOf(m)
			want = append(want, short(c.late(p)), short(c.after(p)))
		}
		var told []string
		for cell := range strings.SplitSeq(strings.Trim(rows[i], "| "), " | ") {
			bound, _, _ := strings.Cut(cell, " / ")
			told = append(told, bound)
		}
		if !slices.Equal(told, want) {
			t.Errorf("row %d is of the bounds %q, want %q", i+1, told, want)
		}
	}
}

func short(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
