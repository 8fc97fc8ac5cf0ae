package oracle

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Answered is told what a client was answered, or that it gave up.
func (j *Judge) Answered(n int, a Answer) {
	j.event++
	q := j.asked[n]
	if q == nil {
		panic("oracle: an answer to a request that was not asked, or a second one")
	}
	delete(j.asked, n)
	if a.Status == http.StatusTooManyRequests && a.RetryAfter <= 0 {
		j.violate("P11", "%s %s%s was refused for load, and not told when to come again", q.Op, q.Job, q.Run)
	}
	if a.Unknown {
		return
	}
	done := a.Status < 300
	switch q.Op {
	case PutJob, PauseJob, ResumeJob, DeleteJob:
		j.edited(q, a, done)
	case GetJob:
		j.gotJob(q, a, done)
	case ListJobs:
		if done {
			j.listedJobs(q, a.Jobs)
		}
	case Trigger:
		j.triggered(q, a, done)
	case GetRun:
		j.gotRun(q, a, done)
	case ListRuns:
		if done {
			j.listedRuns(q, a.Runs)
		}
	case DeadLetters:
		if done {
			j.listedLetters(q, a.Letters)
		}
	case Cancel:
		j.cancelled(q, a, done)
	case Retry:
		j.retried(q, a, done)
	case Discard:
		for _, id := range a.Discarded {
			j.wasDiscarded(q, id)
		}
	case Redrive:
		for _, id := range a.Reopened {
			j.wasReopened(q, id)
		}
	}
}

// edited: an edit that was answered stood, and from now on nothing older starts beyond it.
func (j *Judge) edited(q *asking, a Answer, done bool) {
	js := j.job(q.Tenant, q.Job)
	stood := js.standing(q.since, j.event)
	if !done {
		j.refusedEdit(q, a, js, stood)
		return
	}
	upTo := forever // what is told may be of a later edit, which was settled with it
	if a.Job != nil && a.Job.Status != nil {
		upTo = a.Job.Status.Generation
		j.showsJob(q, js, *a.Job)
	}
	own := -1
	for i, e := range stood {
		if e.Generation <= upTo && q.made(e) {
			own = i
		}
	}
	if own < 0 && q.Op == DeleteJob && js.absent(q.since, j.event) {
		return // it was gone, as was wanted
	}
	if own < 0 {
		j.violate("P1", "%s of %s of %s was answered with %d, and no such generation stood", q.Op, q.Job, q.Tenant, a.Status)
		return
	}
	js.answer(stood[own])
	if upTo != forever {
		if e := js.byGeneration[upTo]; e != nil {
			js.answer(e)
		}
	}
	if q.Op == PutJob && stood[own].since > q.since {
		j.guarded(q, js, stood[:own+1])
	}
}

// made tells whether a generation is what was asked for.
func (q *asking) made(e *edition) bool {
	switch q.Op {
	case DeleteJob:
		return e.deleted
	case PauseJob:
		return !e.deleted && e.Def.Paused
	case ResumeJob:
		return !e.deleted && !e.Def.Paused
	}
	return !e.deleted && q.Def != nil && sameDefinition(asWritten(e.Def), *q.Def)
}

// guarded: a PUT under a condition replaced what the condition names. Of several edits that made the same, any may be its own.
func (j *Judge) guarded(q *asking, js *jobState, stood []*edition) {
	var wrong string
	for _, e := range stood {
		if e.since <= q.since || !q.made(e) {
			continue
		}
		at := slices.Index(js.editions, e)
		exists := at > 0 && !js.editions[at-1].deleted
		switch {
		case q.Absent && exists:
			wrong = fmt.Sprintf("job %s of %s was to be made where there is none, and replaced generation %d", q.Job, q.Tenant, js.editions[at-1].Generation)
		case q.Match != "" && (!exists || q.Match != "*" && q.Match != js.editions[at-1].etag()):
			wrong = fmt.Sprintf("job %s of %s was to replace %s, and made generation %d over another", q.Job, q.Tenant, q.Match, e.Generation)
		default:
			return
		}
	}
	j.violate("P1", "%s", wrong)
}

// refusedEdit: what is refused for what stands was so at some time.
func (j *Judge) refusedEdit(q *asking, a Answer, js *jobState, stood []*edition) {
	absent := js.absent(q.since, j.event)
	switch control.Code(a.Code) {
	case control.CodeJobNotFound:
		if !absent {
			j.violate("P1", "%s: there is no job %s of %s, it was told, and it stood all the time", q.Op, q.Job, q.Tenant)
		} else if q.Op == DeleteJob { // a repeated delete is settled too
			for _, e := range stood {
				if e.deleted {
					js.answer(e)
					return
				}
			}
		}
	case control.CodeStale, control.CodeJobExists:
		if q.Op != PutJob {
			return
		}
		other := absent && q.Match != "" // it cannot be replaced
		for _, e := range stood {
			if q.Match == "" && !q.Absent {
				break // there is no condition that could fail
			}
			other = other || !e.deleted && !q.made(e) && (q.Absent || q.Match != "*" && q.Match != e.etag())
		}
		if !other {
			j.violate("P9", "PUT of %s of %s was refused with %d, and what it asks for stood, or what it was to replace", q.Job, q.Tenant, a.Status)
		}
	}
}

// absent tells whether there was no job at some time between two events.
func (js *jobState) absent(from, to int) bool {
	return len(js.editions) == 0 || js.editions[0].since > from || slices.ContainsFunc(js.standing(from, to), func(e *edition) bool { return e.deleted })
}

// showsJob: what is shown of a job stood at some time since it was asked for.
func (j *Judge) showsJob(q *asking, js *jobState, shown wire.Job) {
	if shown.Status == nil {
		j.violate("P1", "%s: job %s of %s is shown without its generation", q.Op, q.Job, q.Tenant)
		return
	}
	e := js.byGeneration[shown.Status.Generation]
	switch {
	case e == nil:
		j.violate("P1", "%s: job %s of %s is shown in generation %d, which never was", q.Op, js.name, q.Tenant, shown.Status.Generation)
	case e.deleted || !slices.Contains(js.standing(q.since, j.event), e):
		j.violate("P1", "%s: job %s of %s is shown in generation %d, which did not stand then", q.Op, js.name, q.Tenant, e.Generation)
	case !sameDefinition(asWritten(shown.Definition), asWritten(e.Def)):
		j.violate("P1", "%s: generation %d of job %s of %s is shown as what it is not", q.Op, e.Generation, js.name, q.Tenant)
	}
}

func (j *Judge) gotJob(q *asking, a Answer, done bool) {
	js := j.job(q.Tenant, q.Job)
	switch {
	case done && a.Job != nil:
		j.showsJob(q, js, *a.Job)
	case a.Code == string(control.CodeJobNotFound) && !js.absent(q.since, j.event):
		j.violate("P1", "there is no job %s of %s, it was told, and it stood all the time", q.Job, q.Tenant)
	}
}

// triggered: a run that was accepted is there, and one key gives one run.
func (j *Judge) triggered(q *asking, a Answer, done bool) {
	t := j.keyed[name{q.Tenant, q.Key}]
	fresh := t != nil && t.at != 0 && ms(a.At) < t.at+kept.Milliseconds() // an answer is known
	switch {
	case a.Code == string(control.CodeKeyReused):
		if t == nil || len(t.bodies) < 2 {
			j.violate("P9", "key %s of %s was refused as used for another request, and there was none", q.Key, q.Tenant)
		} else if fresh && t.body == q.Body {
			j.violate("P9", "key %s of %s was refused as used for another request, and had given run %s for the same", q.Key, q.Tenant, t.run)
		}
		return
	case a.Code == string(control.CodeJobNotFound):
		if js := j.job(q.Tenant, q.Job); !js.absent(q.since, j.event) {
			j.violate("P1", "there is no job %s of %s, it was told, and it stood all the time", q.Job, q.Tenant)
		}
		return
	case !done || a.Run == nil:
		return
	}
	rs := j.shows(q, *a.Run)
	if rs == nil {
		return
	}
	if rs.run.ID.Job != q.Job || !rs.run.ID.OnDemand() {
		j.violate("P12", "a run of %s of %s was asked for, and %s was given", q.Job, q.Tenant, rs.id())
	}
	if q.Key == "" {
		if rs.byAsk != 0 || rs.byKey != "" {
			j.violate("P9", "run %s of %s was given for two requests", rs.id(), q.Tenant)
		}
		rs.byAsk = q.n
	} else {
		if rs.byAsk != 0 || rs.byKey != "" && rs.byKey != q.Key {
			j.violate("P9", "run %s of %s was given for key %q, and for another request", rs.id(), q.Tenant, q.Key)
		}
		if fresh && (t.run != rs.id() || t.body != q.Body) {
			j.violate("P9", "key %s of %s gave run %s for %q, and gives %s for %q", q.Key, q.Tenant, t.run, t.body, rs.id(), q.Body)
		}
		if !fresh && t.run != rs.id() { // a run that is told of again later keeps the time of its first answer
			t.run, t.body, t.at = rs.id(), q.Body, ms(a.At)
		}
		rs.byKey = q.Key
	}
	j.bringsWhatWasAsked(q, rs)
	if given := rs.run.Payload; q.Given != nil && given.Blob == "" && !bytes.Equal(given.Inline, q.Given) {
		j.violate("P1", "run %s of %s was asked for with %.80q, and has %.80q", rs.id(), q.Tenant, q.Given, given.Inline)
	}
	nominal, want := rs.run.ID.Nominal, ms(q.Due)
	if rs.ahead { // what is past by that clock was due at once
		want = max(want, rs.run.Created)
	}
	if !q.Due.IsZero() && (nominal < ms(q.Due) || want > ms(a.At)+j.cfg.Clocks.Milliseconds() && nominal != want) {
		j.violate("P3", "run %s of %s was asked for at %s, and is due at %s", rs.id(), q.Tenant, instant(ms(q.Due)), instant(nominal))
	}
}

// seen are the states of a run that stood at some time between two events; what was not there is one too.
func (rs *runState) seen(from, to int) []sight {
	first := 0
	for first+1 < len(rs.past) && rs.past[first+1].since <= from {
		first++
	}
	end := len(rs.past)
	for end > first && rs.past[end-1].since > to {
		end--
	}
	seen := rs.past[first:end]
	if len(seen) == 0 || seen[0].since > from {
		return append([]sight{{}}, seen...)
	}
	return seen
}

// names are those that the state is shown under: which of two a run has that has not begun goes by the clock of who answers.
func (s sight) names() []string {
	if s.state == run.Scheduled || s.state == run.Queued {
		return []string{run.Scheduled.String(), run.Queued.String()}
	}
	return []string{s.state.String()}
}

func (s sight) shown(r wire.Run) bool {
	named := slices.Contains(s.names(), r.State)
	if r.Job == "" { // a verdict on one of many tells no more
		return named
	}
	at := int64(0)
	if !r.EndedAt.IsZero() {
		at = r.EndedAt.UnixMilli()
	}
	return named && s.generation == r.Generation && s.attempt == r.Attempt && s.fence == r.Fence && s.ended == at
}

// shows: what is shown of a run stood at some time since it was asked for. It gives the run, nil where it never was.
func (j *Judge) shows(q *asking, shown wire.Run) *runState {
	rs := j.named(q.Tenant, shown.ID)
	if rs == nil || len(rs.past) == 0 {
		promise := "P1"
		if j.another(q.Tenant, shown.ID) {
			promise = "P12"
		}
		j.violate(promise, "%s: run %s is shown to %s, and there is none", q.Op, shown.ID, q.Tenant)
		return nil
	}
	if !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return s.shown(shown) }) {
		j.violate("P1", "%s: run %s of %s is shown as %s in generation %d, attempt %d, fence %d, ended %s; it was %+v meanwhile", q.Op, shown.ID, q.Tenant,
			shown.State, shown.Generation, shown.Attempt, shown.Fence, shown.EndedAt, rs.seen(q.since, j.event))
	}
	j.showsSteps(q, rs, shown.Steps)
	return rs
}

// another tells whether another tenant has a run of that name.
func (j *Judge) another(tenant, id string) bool {
	for n := range j.jobs {
		if n.tenant != tenant {
			if rs := j.named(n.tenant, id); rs != nil && len(rs.past) > 0 {
				return true
			}
		}
	}
	return false
}

func (j *Judge) gotRun(q *asking, a Answer, done bool) {
	switch {
	case done && a.Run != nil:
		j.shows(q, *a.Run)
	case a.Code == string(control.CodeRunNotFound):
		j.notFound(q)
	}
}

func (j *Judge) notFound(q *asking) {
	rs := j.named(q.Tenant, q.Run)
	if rs != nil && !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return s.state == nothing || s.state == run.Fenced }) {
		j.violate("P1", "%s: there is no run %s of %s, it was told, and it stood all the time", q.Op, q.Run, q.Tenant)
	}
}

func (j *Judge) cancelled(q *asking, a Answer, done bool) {
	rs := j.named(q.Tenant, q.Run)
	switch {
	case a.Code == string(control.CodeRunNotFound):
		j.notFound(q)
	case rs == nil:
	case done:
		if !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return s.state == run.Cancelled || s.cancel }) {
			j.violate("P1", "run %s of %s was told to be cancelled, and is not", q.Run, q.Tenant)
		}
		rs.stops()
	case a.Code == string(control.CodeRunEnded):
		if !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return s.state.Ended() }) {
			j.violate("P1", "run %s of %s was told to have ended, and had not", q.Run, q.Tenant)
		}
	}
}

func (j *Judge) retried(q *asking, a Answer, done bool) {
	rs := j.named(q.Tenant, q.Run)
	switch {
	case a.Code == string(control.CodeRunNotFound):
		j.notFound(q)
	case rs == nil:
	case done:
		j.wasReopened(q, q.Run)
	case a.Status >= 400 && a.Status < 500:
		j.withdraw(rs, q)
	}
}

// wasDiscarded: the run was, since it was asked for or before.
func (j *Judge) wasDiscarded(q *asking, id string) {
	rs := j.named(q.Tenant, id)
	if rs == nil {
		j.violate("P12", "run %s of %s was discarded, it was told, and there is none", id, q.Tenant)
		return
	}
	if !slices.ContainsFunc(rs.seen(q.since, j.event), func(s sight) bool { return s.discarded }) {
		j.violate("P1", "run %s of %s was told to be discarded, and was not", id, q.Tenant)
	}
}

// wasReopened: the run was opened since it was asked for.
func (j *Judge) wasReopened(q *asking, id string) {
	rs := j.named(q.Tenant, id)
	if rs == nil {
		j.violate("P12", "run %s of %s was opened again, it was told, and there is none", id, q.Tenant)
		return
	}
	seen := rs.seen(q.since, j.event)
	for i := range seen[1:] {
		if seen[i].state.Ended() && !seen[i+1].state.Ended() {
			return
		}
	}
	j.violate("P1", "run %s of %s was told to be opened again, and was not", id, q.Tenant)
}
