package oracle

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// A schedule with max_runs ends behind so many fires, counted from the edit that says so, and an edit of anything else goes on counting. The end is stored with the
// schedule, so that P1 and P2 are judged by it; whether it is the right one is what P8 is about.

// ends judges the end that an edit has counted, over the edition before it, nil for none.
func (j *Judge) ends(js *jobState, a job.Job, before *edition) {
	if a.Deleted || a.Def.Schedule == nil {
		return
	}
	stored, want := a.Def.Schedule.CountedEnd, j.countedEnd(a.Def, a.Updated)
	if before != nil && !before.deleted && before.Def.Schedule != nil && sameTimes(before.Def, a.Def) {
		stood := before.Def.Schedule.CountedEnd
		if stood != 0 && (before.from <= a.Updated || want == 0 || stood < want) { // else a clock that was ahead has counted
			want = stood
		}
	}
	if stored != want {
		j.violate("P8", "generation %d of job %s of %s has %d fires and ends at %d, want %d", a.Generation, js.name, js.tenant, a.Def.MaxRuns, stored, want)
	}
}

// countedEnd is the instant behind as many fires after another as a definition has, 0 where its schedule has fewer, both Unix ms.
func (j *Judge) countedEnd(def job.Definition, from int64) int64 {
	if def.MaxRuns == 0 {
		return 0
	}
	fires, err := j.cfg.Compile(*def.WithoutCountedEnd().Schedule)
	if err != nil {
		return 0
	}
	at := time.UnixMilli(from)
	for range def.MaxRuns {
		next, ok := fires.Next(at)
		if !ok {
			return 0
		}
		at = next
	}
	return ms(at) + 1
}

// sameTimes tells whether two definitions have the same fires to count.
func sameTimes(a, b job.Definition) bool {
	return a.MaxRuns == b.MaxRuns && sameDefinition(job.Definition{Schedule: a.WithoutCountedEnd().Schedule}, job.Definition{Schedule: b.WithoutCountedEnd().Schedule})
}
