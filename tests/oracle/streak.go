package oracle

import (
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// A job that is paused after so many bad ends has each end counted in the same write, once, and is paused for the one that is one too many, in the end. That is
// what its definition says, which P8 is about.

// streak is how many runs of a job have ended badly in a row.
type streak struct {
	run.Streak
	since int          // the event that has written it
	were  []pastStreak // those before it, oldest first
	owes  *run.Streak  // what its record has to say next, by the newest end
	may   *run.Streak  // what it may say next, though it need not
	by    *runState    // of which that is
}

// pastStreak is a streak that stood until an event.
type pastStreak struct {
	run.Streak
	until int
}

// counts notes how the end of a run of a generation is to be counted. A success must have seen a record that stood when the state before it was written. A bad end
// behind as many as pause the job is not counted, and pauses it too. Where a success has come between, it may have seen them still, or be the first behind that: of
// two ends at once neither is the earlier one. Where one pauses the job, that says the same of either.
func (j *Judge) counts(rs *runState, e *edition) {
	a, s := &rs.run, &rs.job.streak
	j.counted(rs.job)
	_, ends := a.Ends()
	if e == nil || e.Def.PauseAfter == 0 || !ends || a.State == run.Cancelled || a.Generation < s.Generation {
		if a.Pauses {
			j.violate("P8", "run %s of %s is to pause its job, and is not counted", rs.id(), rs.job.tenant)
		}
		return
	}
	s.by = rs
	began := 0
	for _, p := range rs.past {
		if !p.state.Ended() {
			began = p.since
		}
	}
	full := func(seen run.Streak) bool { return seen.Generation == a.Generation && seen.Count >= e.Def.PauseAfter }
	switch {
	case a.State == run.Succeeded:
		if s.Count > 0 && s.since < began {
			s.owes = &run.Streak{}
		}
		return
	case a.Pauses && full(s.Streak):
		return
	}
	next := run.Streak{Generation: a.Generation, Count: 1}
	if s.Generation == a.Generation {
		next.Count += s.Count
	}
	pauses := next.Count >= e.Def.PauseAfter
	if a.Pauses && slices.ContainsFunc(s.were, func(was pastStreak) bool { return was.until > began && full(was.Streak) }) {
		if pauses {
			s.may = &next
		}
		return
	}
	s.owes = &next
	if a.Pauses != pauses {
		j.violate("P8", "run %s of %s is the %d. in a row that ended badly, of %d that pause its job, and says of that %v", rs.id(), rs.job.tenant, next.Count, e.Def.PauseAfter, a.Pauses)
	}
}

// counted: the record of a job has followed its last end.
func (j *Judge) counted(js *jobState) {
	if owes := js.streak.owes; owes != nil {
		j.violate("P8", "run %s of %s ended as %s, and was not counted with that: want %d in a row", js.streak.by.id(), js.tenant, js.streak.by.run.State, owes.Count)
	}
	js.streak.owes, js.streak.may = nil, nil
}

func (j *Judge) storedStreak(key store.Key, rest string, before, after store.Item) {
	j.storedOther(key, before, after)
	tenant, named, _ := strings.Cut(rest, "#")
	s := &j.job(tenant, named).streak
	read, err := run.StreakFromItem(after)
	switch {
	case err != nil:
		j.violate("P8", "%s: %v", key, err)
	case s.owes != nil && read == *s.owes, s.may != nil && read == *s.may:
	case s.owes == nil && !after.Exists() && s.by != nil && s.by.run.State == run.Succeeded: // which has seen one that was written meanwhile
	default:
		j.violate("P8", "%s says that %d runs of generation %d ended badly in a row, and the runs do not", key, read.Count, read.Generation)
	}
	s.were = append(s.were, pastStreak{s.Streak, j.event})
	s.Streak, s.since, s.owes, s.may = read, j.event, nil, nil
}

// pausedFor: a job that was paused for its runs has one that says so, of the generation that was in force.
func (j *Judge) pausedFor(js *jobState, a job.Job, before *edition) {
	if a.Def.Paused && !before.Def.Paused && strings.HasPrefix(a.Reason, "pause_after:") &&
		!slices.ContainsFunc(js.runs, func(rs *runState) bool { return rs.run.Pauses && rs.run.Generation == before.Generation }) {
		j.violate("P8", "job %s of %s was paused for its runs, and none of generation %d says so", js.name, js.tenant, before.Generation)
	}
}

// unpaused: a run that ended up to an instant and is to pause its job has done so in the end, unless that was edited since.
func (j *Judge) unpaused(js *jobState, upTo int64) {
	j.counted(js)
	for _, rs := range js.runs {
		if newest := js.newest(); rs.stands() && rs.run.Pauses && rs.run.Ended <= upTo && newest != nil && newest.Generation == rs.run.Generation {
			j.violate("P8", "run %s of %s was to pause its job, which goes on", rs.id(), js.tenant)
		}
	}
}
