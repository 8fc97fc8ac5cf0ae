package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// Reign is a definition of a job and the time in which it has a say. All times are Unix ms.
type Reign struct {
	Generation int64
	Fires      job.Fires // nil: it makes no runs by itself
	From       int64     // its fires after it,
	Until      int64     // and up to it, are in force: each has its run

	// Answered is when the edit that ended it was answered, at the latest: a fire between Until and it may have a run, which was claimed
	// ahead and started before the answer. Until or less where there was none.
	Answered int64
}

// Fate is what became of a fire: the run that it made, or the record of what was dropped from it on.
type Fate struct {
	Run        string
	Nominal    int64
	Generation int64
	Withdrawn  bool // a delete put it where nothing stood, and it never ran: what a decision drops may lie there
	Skipped    bool
	Through    int64 // of Skipped: the last one dropped
	Count      int   // of Skipped: how many, 0 where a record before it counts them
	Reason     string

	// Of Skipped: when the pass that decided began, at the earliest, and when the record was written. Two that were decided at the same time
	// may have missed each other, and then both count.
	Began, Written int64
}

// together tells of two decisions whether each was made before the other could be read.
func (f Fate) together(other Fate) bool {
	return max(f.Began, other.Began) <= min(f.Written, other.Written)
}

// counted is up to where dropped fires are counted: a record that holds it means "at least".
const counted = 100_000

// Match holds the runs of a job's schedule against what its definitions asked for, as was done with Chronos (Kingsbury, "Call me maybe:
// Chronos"): each fire in force up to an instant has its own run, of a generation that may have made it, or is counted by one record of dropped
// ones;
// and nothing else ran. Reigns are in the order of their generations. It gives what is wrong, each with the promise that is broken.
func Match(job string, reigns []Reign, fates []Fate, upTo int64) (wrong []string) {
	add := func(promise, format string, args ...any) {
		wrong = append(wrong, promise+": "+job+": "+fmt.Sprintf(format, args...))
	}
	m := matching{of: map[int64]Reign{}, ran: map[int64]Fate{}, dropped: map[int64]Fate{}, add: add}
	for _, r := range reigns {
		m.of[r.Generation] = r
	}
	for _, f := range fates {
		m.take(f)
	}
	allowed := map[int64][]int64{} // generations, by fire
	for _, r := range reigns {
		end := min(max(r.Until, r.Answered), max(upTo, r.From))
		for fire, ok := next(r.Fires, r.From); ok && fire <= end; fire, ok = next(r.Fires, fire) {
			allowed[fire] = append(allowed[fire], r.Generation)
			if fire <= r.Until {
				m.inForce(r, fire, allowed[fire])
			}
		}
	}
	for _, f := range fates {
		if r, ok := m.of[f.Generation]; !ok || f.Nominal <= upTo && !slices.Contains(allowed[f.Nominal], f.Generation) {
			add("P8", "%s at %s is of generation %d, which was not in force then: it was from %s to %s; %v were", f.Run, instant(f.Nominal), f.Generation,
				instant(r.From), instant(max(r.Until, r.Answered)), allowed[f.Nominal])
		}
	}
	return wrong
}

type matching struct {
	of      map[int64]Reign
	ran     map[int64]Fate // by fire
	dropped map[int64]Fate
	add     func(promise, format string, args ...any)
}

// take notes the fires that a fate stands for.
func (m *matching) take(f Fate) {
	if !f.Skipped {
		if other, twice := m.ran[f.Nominal]; twice {
			m.add("P2", "%s and %s are of one fire, at %s", other.Run, f.Run, instant(f.Nominal))
		}
		m.ran[f.Nominal] = f
		return
	}
	if f.Reason == "" {
		m.add("P2", "%s has no reason", f.Run)
	}
	if f.Count == 0 {
		return
	}
	r := m.of[f.Generation]
	through, count := max(f.Through, f.Nominal), 0
	for fire, ok := f.Nominal, true; ok && fire <= through && count < counted; fire, ok = next(r.Fires, fire) {
		count++
		if fire > r.Until {
			continue // another generation's say
		}
		if other, twice := m.dropped[fire]; twice && !f.together(other) {
			m.add("P2", "the fire at %s was dropped by %s and %s", instant(fire), other.Run, f.Run)
		}
		m.dropped[fire] = f
	}
	if count != f.Count {
		m.add("P2", "%s counts %d dropped fires up to %s, and there are %d", f.Run, f.Count, instant(through), count)
	}
}

// inForce looks at what became of a fire that was in force.
func (m *matching) inForce(r Reign, fire int64, allowed []int64) {
	ran, there := m.ran[fire]
	by, dropped := m.dropped[fire]
	switch {
	case there && dropped && ran.Generation < r.Generation && slices.Contains(allowed, ran.Generation):
		// An older definition's run had started before the answer to the edit, as it may; the new one's fire was dropped.
	case there && dropped && ran.Withdrawn:
	case there && dropped:
		m.add("P2", "%s ran, and was dropped by %s", ran.Run, by.Run)
	case !there && !dropped:
		m.add("P2", "the fire at %s of generation %d, in force from %s to %s, has no run", instant(fire), r.Generation, instant(r.From), instant(r.Until))
	case there && !slices.Contains(allowed, ran.Generation):
		m.add("P2", "%s at %s is of generation %d, want one of %v", ran.Run, instant(fire), ran.Generation, allowed)
	}
}

func next(fires job.Fires, after int64) (int64, bool) {
	if fires == nil {
		return 0, false
	}
	at, ok := fires.Next(time.UnixMilli(after).UTC())
	return at.UnixMilli(), ok && at.UnixMilli() > after
}
