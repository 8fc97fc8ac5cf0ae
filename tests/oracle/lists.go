package oracle

import (
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// listedJobs: each job that stood all the time is listed, once, and what is listed stood.
func (j *Judge) listedJobs(q *asking, jobs []wire.Job) {
	seen := map[string]bool{}
	for _, shown := range jobs {
		if shown.Status == nil || seen[shown.Name] {
			j.violate("P1", "jobs of %s: one is listed twice, or without its name", q.Tenant)
			continue
		}
		seen[shown.Name] = true
		js := j.jobs[name{q.Tenant, shown.Name}]
		if js == nil || len(js.editions) == 0 {
			j.violate("P12", "jobs of %s: %s is listed, and is none of theirs", q.Tenant, shown.Name)
			continue
		}
		j.showsJob(q, js, shown)
	}
	for _, js := range j.ordered() {
		if js.tenant == q.Tenant && !seen[js.name] && !js.absent(q.since, j.event) {
			j.violate("P1", "jobs of %s: %s stood all the time, and is not listed", q.Tenant, js.name)
		}
	}
}

// ordered are all jobs, in an order that does not depend on chance.
func (j *Judge) ordered() []*jobState {
	all := make([]*jobState, 0, len(j.jobs))
	for _, js := range j.jobs {
		all = append(all, js)
	}
	slices.SortFunc(all, func(a, b *jobState) int { return a.born - b.born })
	return all
}

// listedRuns: each run that was to be listed all the time is, once, and what is listed stood.
func (j *Judge) listedRuns(q *asking, runs []wire.Run) {
	listed := map[*runState]bool{}
	asked := func(state string) bool { return len(q.States) == 0 || slices.Contains(q.States, state) }
	wanted := func(s sight) bool {
		return s.state != nothing && s.state != run.Fenced && !slices.ContainsFunc(s.names(), func(name string) bool { return !asked(name) })
	}
	for i, shown := range runs {
		rs := j.shows(q, shown)
		if rs == nil {
			continue
		}
		if listed[rs] {
			j.violate("P1", "runs of %s: %s is listed twice", q.Tenant, shown.ID)
		}
		listed[rs] = true
		if !asked(shown.State) || q.Job != "" && q.Job != shown.Job || !q.within(rs.run.ID.Nominal) {
			j.violate("P12", "runs of %s: %s is listed, and was not asked for", q.Tenant, shown.ID)
		}
		if i > 0 && shown.NominalTime.After(runs[i-1].NominalTime) {
			j.violate("P1", "runs of %s: %s is listed behind an older one", q.Tenant, shown.ID)
		}
	}
	if q.Job == "" && !j.upToDate(q.At) {
		return
	}
	for _, js := range j.ordered() {
		if js.tenant != q.Tenant || q.Job != "" && q.Job != js.name {
			continue
		}
		for _, rs := range js.runs {
			if listed[rs] || len(rs.past) == 0 || !q.within(rs.run.ID.Nominal) || q.Job == "" && (rs.lateListed() || j.astray(rs, q.At)) {
				continue
			}
			if !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return !wanted(s) }) {
				j.violate("P1", "runs of %s: %s stood all the time as was asked for, and is not listed", q.Tenant, rs.id())
			}
		}
	}
}

func (q *asking) within(nominal int64) bool {
	return (q.From.IsZero() || nominal >= ms(q.From)) && (q.To.IsZero() || nominal < ms(q.To))
}

// upToDate tells whether listings of all jobs are complete: in a downtime of over an hour they are not, nor after it before the sweeps
// have caught up.
func (j *Judge) upToDate(at time.Time) bool {
	for _, s := range j.shards {
		if s.stood && max(s.shard.Horizon, ms(at))-s.shard.Swept[0] > (50*time.Minute).Milliseconds() {
			return false
		}
	}
	return true
}

// lateListed tells of a run whose timer came late that only a later sweep lists it.
func (rs *runState) lateListed() bool {
	if e := rs.job.byGeneration[rs.run.Generation]; e != nil && e.late {
		return true
	}
	return rs.late
}

// astray tells of a run that a clock ahead has put, and that no answer has named, whether it is listed when its time has come.
func (j *Judge) astray(rs *runState, at time.Time) bool {
	return rs.run.ID.OnDemand() && rs.byAsk == 0 && rs.byKey == "" && rs.run.Created > ms(at)
}

// listedLetters: each run that had failed or was dead all the time is listed, once, and nothing else is.
func (j *Judge) listedLetters(q *asking, letters []wire.DeadLetter) {
	listed := map[*runState]bool{}
	for _, letter := range letters {
		rs := j.named(q.Tenant, letter.ID)
		switch {
		case rs == nil:
			j.violate("P12", "dead letters of %s: %s is listed, and is none of theirs", q.Tenant, letter.ID)
			continue
		case listed[rs]:
			j.violate("P1", "dead letters of %s: %s is listed twice", q.Tenant, letter.ID)
		case !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool {
			return s.state.DeadLetter() && !s.discarded && s.state.String() == letter.State && s.ended == letter.EndedAt.UnixMilli()
		}):
			j.violate("P1", "dead letters of %s: %s is listed as %s since %s, and was not", q.Tenant, letter.ID, letter.State, letter.EndedAt)
		}
		listed[rs] = true
	}
	for _, js := range j.ordered() {
		if js.tenant != q.Tenant || q.Job != "" && q.Job != js.name {
			continue
		}
		for _, rs := range js.runs {
			if !listed[rs] && len(rs.past) > 0 && !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return !s.state.DeadLetter() || s.discarded }) {
				j.violate("P1", "dead letters of %s: %s had failed all the time, and is not listed", q.Tenant, rs.id())
			}
		}
	}
}
