package oracle_test

import (
	"bytes"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// first is before the first event.
const first = -1

// broken is a record that cannot be read.
var broken = []byte{record.Format, 0xff}

// again puts a run once more, changed, behind the event that puts it into a state.
func again(jobName string, state run.State, change func(r *run.Run)) func(p *plot) {
	return func(p *plot) {
		i := p.run(first, jobName, state)
		r, _ := p.of(p.life[i])
		change(&r)
		p.insert(i+1, p.item(r))
	}
}

// spoilt changes a run where it is put into a state.
func spoilt(jobName string, state run.State, change func(r *run.Run)) func(p *plot) {
	return func(p *plot) { p.spoil(p.run(first, jobName, state), change) }
}

// withdraw has the first fire of the plain job be cancelled instead of claimed, a little later.
func (p *plot) withdraw(later int64) {
	i := p.run(first, "plain", run.Queued)
	r, _ := p.of(p.life[i])
	r.ID.Nominal += later
	r.State, r.Ended, r.Expires = run.Cancelled, r.Created, r.Created+job.MinRetention.Milliseconds()
	p.insert(i, p.item(r))
}

var ofRuns = map[string]row{
	"a run is unreadable":             {func(p *plot) { p.life[p.run(first, "plain", run.Queued)].value = broken }, "P1: run#.*unreadable record"},
	"a run's key is unreadable":       {func(p *plot) { p.life[p.run(first, "plain", run.Queued)].key.Sort = "x" }, "P1: run#.*sort key"},
	"a run lies in a wrong partition": {func(p *plot) { p.life[p.run(first, "plain", run.Queued)].key.Partition = "run#default#plain#3" }, "P12: run plain.* is kept at"},
	"a run of no job":                 {func(p *plot) { p.life[p.run(first, "plain", run.Queued)].key.Partition = "run#nobody#plain#0" }, "P12: run .* is of no job"},
	"a run vanishes": {func(p *plot) {
		i := p.run(first, "plain", run.Succeeded)
		p.insert(i+1, event{key: p.life[i].key, gone: true})
	}, "P1: run .* is gone as it was succeeded"},
	"a running run vanishes": {func(p *plot) {
		i := p.run(first, "plain", run.Running)
		p.insert(i+1, event{key: p.life[i].key, gone: true, at: base.Add(1000 * time.Hour)})
	}, "P1: run .* is gone as it was running"},
	"claimed for a generation on demand": {func(p *plot) {
		i := p.put(first, "job", func(e event) bool { return e.key.Sort == "plain" })
		p.spoilJob(i, func(j *job.Job) { j.Def.Schedule = nil })
	}, "P8: run .* was claimed for generation .*, which has no fires"},
	"claimed where nothing fires": {func(p *plot) {
		i := p.run(first, "plain", run.Queued)
		r, _ := p.of(p.life[i])
		r.ID.Nominal += 7
		p.insert(i, p.item(r))
	}, "P2: run .* does not fire then"},
	"claimed before the edit": {func(p *plot) {
		i := p.put(first, "job", func(e event) bool { return e.key.Sort == "plain" })
		p.spoilJob(i, func(j *job.Job) { j.Updated += 30_000 })
	}, "P8: run .* was claimed for generation .*, which begins at"},
	"claimed beyond the horizon": {func(p *plot) {
		i := p.run(first, "plain", run.Queued)
		r, _ := p.of(p.life[i])
		r.ID.Nominal += 40_000
		p.insert(i, p.item(r))
	}, "P8: run .* was claimed beyond the horizon"},
	"withdrawn for a generation on demand": {func(p *plot) {
		i := p.put(first, "job", func(e event) bool { return e.key.Sort == "plain" })
		p.spoilJob(i, func(j *job.Job) { j.Def.Schedule = nil })
		p.withdraw(0)
	}, "P8: run .* was cancelled for generation .*, which has no fires"},
	"withdrawn where nothing fires": {func(p *plot) { p.withdraw(7) }, "P2: run .* was cancelled for generation .*, which does not fire then"},
	"an old claim after the answer": {func(p *plot) {
		_, answered := p.answer(first, oracle.PutJob, func(q oracle.Request, _ oracle.Answer) bool { return string(q.Def.Payload) == `{"edit":2}` })
		old, _ := p.of(p.life[p.run(first, "plain", run.Queued)])
		i := p.run(answered, "plain", run.Queued)
		p.spoil(i, func(r *run.Run) { r.Generation = old.Generation })
	}, "P8: run .* was claimed under generation .* after the answer"},
	"started in a pause": {func(p *plot) {
		p.spoilJob(p.put(first, "job", func(e event) bool { return e.key.Sort == "asked" }), func(j *job.Job) { j.Def.Paused = true })
	}, "P8: run asked.* started under generation .*, by which its job is paused"},
	"it ignores pauses, and nobody asked for that": {spoilt("asked", run.Queued, func(r *run.Run) { r.IgnorePause = true }), "P8: run asked.* ignores the pause of its job, and is number 1 of 0"},
	"it forgets that it ignores pauses": {func(p *plot) {
		p.asks(oracle.Trigger, func(q *oracle.Request) { q.Ignore = true })
		spoilt("asked", run.Queued, func(r *run.Run) { r.IgnorePause = true })(p)
	}, "P6: run asked.* it must not change the word that no pause holds it"},
	"it goes by a policy that nobody asked for": {spoilt("asked", run.Queued, func(r *run.Run) { r.Overlap = job.OverlapAllow.Own() }), "G4: run asked.* goes by allow, and no such request was left"},
	"it goes by a policy that none may bring":   {spoilt("asked", run.Queued, func(r *run.Run) { r.Overlap = job.OverlapStrict.Own() }), "G4: run asked.* goes by \"strict\", which no request may bring"},
	"it goes by a policy where nobody is counted": {func(p *plot) {
		p.asks(oracle.Trigger, func(q *oracle.Request) { q.Own = "skip" })
		spoilt("asked", run.Queued, func(r *run.Run) { r.Overlap = job.OverlapSkip.Own() })(p)
	}, "G4: run asked.* goes by skip, and its job never had a limit"},
	"it forgets by which policy it goes": {func(p *plot) {
		p.asks(oracle.Trigger, func(q *oracle.Request) { q.Own = "allow" })
		spoilt("asked", run.Queued, func(r *run.Run) { r.Overlap = job.OverlapAllow.Own() })(p)
	}, "P6: run asked.* it must not change the policy that it was asked for with"},
	"started under a generation that never was": {spoilt("plain", run.Running, func(r *run.Run) { r.Generation++ }), "P8: run .* started under generation .*, which never was"},
	"started early by its worker's clock":       {spoilt("plain", run.Running, func(r *run.Run) { r.Started = r.ID.Nominal - 1 }), "P3: attempt 1 of run .* started 1 ms early"},
	"started early by the true time": {func(p *plot) {
		i := p.run(first, "plain", run.Running)
		p.life[i].at = p.life[i].at.Add(-time.Minute)
	}, "P3: attempt 1 of run .* was started .* ms early"},
	"at most once, started again": {func(p *plot) {
		i := p.run(first, "once", run.Failed)
		r, _ := p.of(p.life[i])
		r.State, r.Ended, r.Expires = run.Queued, 0, 0
		r.Attempts[0].Outcome, r.Failures = run.OutcomeHandedBack, 0
		handedBack := p.item(r)
		r.Version = r.Fence + 1
		r = r.Start("worker", p.life[i].at.UnixMilli(), time.Minute)
		p.life[i] = handedBack
		p.insert(i+1, p.item(r))
		p.life[i].at = p.life[i+1].at
	}, "P5: at-most-once run .* started as attempt 2"},
	"at most once, tried again": {func(p *plot) {
		p.spoil(p.run(first, "once", run.Failed), func(r *run.Run) { r.State, r.Ended, r.NextAt, r.Expires = run.Retrying, 0, r.Ended+1, 0 })
	}, "P5: at-most-once run .* goes on as retrying after an attempt that failed"},
	"tried again after all attempts": {func(p *plot) {
		p.spoil(p.run(first, "fails", run.Dead), func(r *run.Run) { r.State, r.Ended, r.NextAt, r.Expires = run.Retrying, 0, r.Ended+1, 0 })
	}, "P7: run .* is tried again after 2 failures of 2"},
	"tried again after its crashes": {spoilt("plain", run.Succeeded, func(r *run.Run) {
		r.State, r.Ended, r.Expires, r.Crashes = run.Queued, 0, 0, 3
		r.Attempts[0].Outcome = run.OutcomeCrashed
	}), "P7: run .* is tried again after it killed 3 workers"},
	"tried again, and was to be cancelled": {func(p *plot) {
		i := p.run(first, "plain", run.Running)
		r, _ := p.of(p.life[i])
		r.Cancel = true
		p.insert(i+1, p.item(r))
		p.spoil(p.run(i, "plain", run.Succeeded), func(r *run.Run) {
			r.State, r.Ended, r.Expires, r.Crashes, r.Cancel = run.Queued, 0, 0, 1, true
			r.Attempts[0].Outcome = run.OutcomeCrashed
		})
	}, "P7: run .* is tried again, and was to be cancelled"},
	"nobody asked to cancel a running run": {again("plain", run.Running, func(r *run.Run) { r.Cancel = true }), "P2: run .* is to be cancelled, and nobody asked for it"},
	"nobody asked to cancel": {func(p *plot) {
		asked, answered := p.answer(first, oracle.Cancel)
		p.drop(answered)
		p.drop(asked)
	}, "P2: run .* was cancelled as it was queued, and nobody asked for it"},
	"dead too soon": {spoilt("fails", run.Dead, func(r *run.Run) { r.Failures, r.Crashes = 1, 1 }), "P2: run .* is dead after 1 failures"},
	"dead after its first failure": {func(p *plot) {
		p.spoil(p.run(first, "fails", run.Retrying), func(r *run.Run) { r.State, r.Ended, r.Expires, r.NextAt = run.Dead, r.NextAt, r.NextAt+1, 0 })
	}, "P2: run .* is dead after 1 failures and 0 crashes"},
	"unknown, and not at most once": {func(p *plot) {
		p.spoil(p.run(first, "fails", run.Dead), func(r *run.Run) { r.State = run.Unknown })
	}, "P2: at-least-once run .* is unknown"},
	"a success that no target gave": {func(p *plot) { p.drop(p.call(first, "plain") + 1) }, "P1: run .* succeeded under fence .*, and no target said so"},
	"the result of another attempt": {spoilt("plain", run.Succeeded, func(r *run.Run) { r.Result.Inline = []byte(`{"fence":1}`) }), "P6: run .* succeeded under fence .* with the result"},
	"a small result that is lost": {spoilt("plain", run.Succeeded, func(r *run.Run) { r.Result, r.Reason = run.Ref{}, "the result could not be kept" }),
		"P6: run .* succeeded under fence .* with the result"},
	"opened again by nobody": {func(p *plot) {
		asked, answered := p.answer(first, oracle.Retry)
		p.drop(answered)
		p.drop(asked)
	}, "P7: run fails.* had ended as dead, and is queued without a request of its own"},
	"opened again twice on one request": {func(p *plot) {
		asked, answered := p.answer(first, oracle.Redrive)
		p.drop(answered)
		p.drop(asked)
	}, "P7: run fails.* had ended as dead, and is queued without a request of its own"},
	"discarded by nobody": {func(p *plot) {
		asked, answered := p.answer(first, oracle.Discard)
		p.drop(answered)
		p.drop(asked)
	}, "P7: run fails.* was discarded, and nobody asked for it"},
	"discarded before it had ended": {func(p *plot) {
		p.spoil(p.discarded(), func(r *run.Run) { r.Discarded.At = r.Ended - 1 })
	}, "P6: run fails.* went from dead to dead .* to be discarded, and once"},
	"discarded, and not as it was": {func(p *plot) {
		p.spoil(p.discarded(), func(r *run.Run) { r.Ended++ })
	}, "P6: run fails.* went from dead to dead .* it must not change the ended"},
	"discarded twice": {func(p *plot) {
		i := p.discarded()
		r, _ := p.of(p.life[i])
		r.Discarded.By = "bob"
		p.insert(i+1, p.item(r))
	}, "P6: run fails.* went from dead to dead .* to be discarded, and once"},
	"at most once, opened again by nobody": {func(p *plot) {
		asked, answered := p.answer(first, oracle.Retry, func(q oracle.Request, _ oracle.Answer) bool { return q.Run[:4] == "once" })
		p.drop(answered)
		p.drop(asked)
	}, "P5: run once.* without a request of its own"},
	"an unknown run opened again without force": {func(p *plot) {
		asked, _ := p.answer(first, oracle.Retry, func(q oracle.Request, _ oracle.Answer) bool { return q.Run[:4] == "once" })
		q := *p.life[asked].asked
		q.Force = false
		p.life[asked].asked = &q
		p.spoil(p.run(first, "once", run.Failed), func(r *run.Run) { r.State = run.Unknown })
	}, "P5: run once.* had ended as unknown, and is queued without a request of its own"},
	"opened again under a generation to come": {func(p *plot) {
		i := p.run(p.run(first, "fails", run.Dead), "fails", run.Queued)
		p.spoil(i, func(r *run.Run) { r.Generation++ })
	}, "P8: run .* was opened again under generation .*, and the newest is"},
	"dropped in time": {func(p *plot) {
		p.spoilShard(p.shard(3), func(s *timer.Shard) { s.Horizon += 30 * 60_000 }) // somebody has found the fires of the outage ahead of it
	}, "P2: run .* drops fires up to .*: they were not missed"},
	"wrongly counted": {spoilt("plain", run.Skipped, func(r *run.Run) { r.Count++ }), "P2: run .* drops .* fires up to .*, and counts"},
	"counted by none": {spoilt("plain", run.Skipped, func(r *run.Run) { r.Count = 0 }), "P2: run .* counts none of the fires that it drops up to .*, and no record before it does"},
	"dropped, and all was to run": {func(p *plot) {
		i := p.run(first, "plain", run.Skipped)
		r, _ := p.of(p.life[i])
		for k := range p.life {
			if p.life[k].key.Sort == "plain" && p.life[k].key.Partition == job.Key(tenant, "plain").Partition {
				p.spoilJob(k, func(j *job.Job) {
					if j.Generation == r.Generation {
						j.Def.CatchUp.Mode = job.CatchUpAll
					}
				})
			}
		}
	}, "P2: run .* drops fires up to .*, and all since .* are to be caught up"},
	"the newest dropped, too": {spoilt("plain", run.Skipped, func(r *run.Run) { r.Through += 6000; r.Count++ }), "P2: run .* drops fires up to .*, the newest at .* with them"},
	"the newest dropped, and none is to be made up for": {func(p *plot) {
		i := p.run(first, "plain", run.Skipped)
		r, _ := p.of(p.life[i])
		for k := range p.life {
			if p.life[k].key.Sort == "plain" && p.life[k].key.Partition == job.Key(tenant, "plain").Partition {
				p.spoilJob(k, func(j *job.Job) {
					if j.Generation == r.Generation {
						j.Def.CatchUp.Mode = job.CatchUpNone
					}
				})
			}
		}
		p.spoil(i, func(r *run.Run) { r.Through += 6000; r.Count++ })
	}, "P2: run .* drops fires up to .*, the newest at .* with them"},
	"made within five minutes, and not the newest": {func(p *plot) {
		dropped, _ := p.of(p.life[p.run(first, "plain", run.Skipped)])
		i := p.run(p.run(first, "plain", run.Skipped), "plain", run.Queued)
		r, _ := p.of(p.life[i])
		r.ID.Nominal = dropped.Through - 6000
		p.insert(i, p.item(r))
	}, "P2: run .* was made at .*, too late for catch-up of mode one"},
	"made too late": {func(p *plot) {
		i := p.run(first, "plain", run.Queued)
		p.spoil(i, func(r *run.Run) { r.Created += 20 * 60_000 })
	}, "P2: run .* was made at .*, too late for catch-up of mode one"},
	"made up for without a place": {func(p *plot) {
		i := p.run(first, "plain", run.Queued)
		p.spoil(i, func(r *run.Run) { r.Created += 20 * 60_000 })
	}, "P11: run .* makes up for a fire that was missed, and has no place"},
	"a place that is over": {func(p *plot) {
		p.spoil(p.run(first, "plain", run.Queued), func(r *run.Run) { r.NextAt, r.Reason = r.Created-1, run.CaughtUp })
	}, "P11: run .* has the place .*, before it was claimed"},
	"two places of a job in a second": {twoPlaces, "P11: missed fires of plain of .* have the places .*, less than a second apart"},
	"more places than the rate": {func(p *plot) {
		p.cfg.CatchUpRate = 1
		twoPlaces(p)
	}, "P11: more than 1 missed fires have places in the second from .* on"},
	"what no schedule asked for has a place": {spoilt("asked", run.Queued, func(r *run.Run) { r.NextAt, r.Reason = r.Created+1000, run.CaughtUp }),
		"P6: run .*(it must not change the next attempt|only what makes up for a missed fire has a place)"},
}

// twoPlaces has two fires of a job made up for, less than a second apart.
func twoPlaces(p *plot) {
	i := p.run(first, "plain", run.Queued)
	one, _ := p.of(p.life[i])
	p.spoil(i, func(r *run.Run) { r.NextAt, r.Reason = one.Created+20_000, run.CaughtUp })
	p.spoil(p.run(i, "plain", run.Queued), func(r *run.Run) { r.NextAt, r.Reason = one.Created+20_999, run.CaughtUp })
}

var ofEdges = map[string]row{
	"an ended run changes":         {again("plain", run.Succeeded, func(r *run.Run) { r.Attempt++ }), "P7: run .* went from succeeded to succeeded.*an ended run"},
	"an ended run goes on":         {again("plain", run.Succeeded, func(r *run.Run) { r.State = run.Running }), "P7: run .* went from succeeded to running"},
	"from queued to succeeded":     {spoilt("plain", run.Running, func(r *run.Run) { r.State = run.Succeeded }), "P6: run .* went from queued to succeeded.*no edge of the graph"},
	"a field that must not change": {spoilt("plain", run.Running, func(r *run.Run) { r.Generation++ }), "P6: run .*it must not change the generation"},
	"a claim without a generation": {spoilt("plain", run.Queued, func(r *run.Run) { r.Generation = 0 }), "P6: run .*a claim names its generation"},
	"a fire that waits":            {spoilt("plain", run.Queued, func(r *run.Run) { r.State = run.Scheduled }), "P6: run .*only runs on demand are scheduled"},
	"a run on demand that is fenced": {spoilt("asked", run.Queued, func(r *run.Run) {
		*r = run.Run{ID: r.ID, Tenant: r.Tenant, State: run.Fenced, Generation: r.Generation}
	}), "P6: run .*only fires are skipped or fenced"},
	"skipped without a reason":        {spoilt("plain", run.Skipped, func(r *run.Run) { r.Reason = "" }), "P6: run .*what is skipped has an end and a reason"},
	"claimed twice":                   {again("plain", run.Queued, func(r *run.Run) { r.Epoch++ }), "P6: run .*generation .* does not pass"},
	"claimed below its mark":          {func(p *plot) { mark(p, 1) }, "P6: run .*does not pass the mark"},
	"a started run loses its claim":   {func(p *plot) { fencedAfterStart(p) }, "P6: run .*a run that has started keeps its definition"},
	"kept too short":                  {spoilt("plain", run.Succeeded, func(r *run.Run) { r.Expires = r.Ended + 3_600_000 }), "P6: run .*an ended run has its time, is kept"},
	"ended without its time":          {spoilt("plain", run.Succeeded, func(r *run.Run) { r.Ended = 0 }), "P6: run .*an ended run has its time"},
	"two attempts at once":            {spoilt("plain", run.Running, func(r *run.Run) { r.Attempt++ }), "P6: run .*attempt 2 follows 0"},
	"a fence that is not the version": {spoilt("plain", run.Running, func(r *run.Run) { r.Fence++ }), "P6: run .*fence 3 is not the version 2"},
	"an attempt without a lease":      {spoilt("plain", run.Running, func(r *run.Run) { r.Lease = r.Started }), "P6: run .*an attempt has its worker and its lease"},
	"an attempt that is not recorded": {spoilt("plain", run.Running, func(r *run.Run) { r.Attempts = nil }), "P6: run .*not recorded as under way"},
	"a cancel taken back": {func(p *plot) {
		i := p.run(first, "plain", run.Running)
		r, _ := p.of(p.life[i])
		r.Cancel = true
		cancel := p.item(r)
		r.Cancel = false
		p.insert(i+1, cancel, p.item(r))
	}, "P6: run .*a cancel was taken back"},
	"cancelled while it runs, by nobody": {spoilt("plain", run.Succeeded, func(r *run.Run) {
		r.State, r.Result = run.Cancelled, run.Ref{}
		r.Attempts[0].Outcome = run.OutcomeCancelled
	}), "P6: run .*nobody asked to cancel it"},
	"an attempt that has not ended": {spoilt("plain", run.Succeeded, func(r *run.Run) { r.Attempts[0].Ended = 0 }), "P6: run .*not recorded as ended"},
	"a failure that is not counted": {spoilt("fails", run.Retrying, func(r *run.Run) { r.Failures = 0 }), "P6: run .*and counts 0 failures"},
	"a success that failed":         {spoilt("plain", run.Succeeded, func(r *run.Run) { r.Attempts[0].Outcome = run.OutcomeFailed }), "P6: run .*its attempt failed"},
	"opened again under an older generation": {func(p *plot) {
		p.spoil(p.run(p.run(first, "fails", run.Dead), "fails", run.Queued), func(r *run.Run) { r.Generation-- })
	}, "P6: run .*it goes back from generation"},
	"opened again with its old budget": {func(p *plot) {
		p.spoil(p.run(p.run(first, "fails", run.Dead), "fails", run.Queued), func(r *run.Run) { r.Failures = 1 })
	}, "P6: run .*no new budget"},
}

// mark puts a fence of a generation so much higher before the first claim.
func mark(p *plot, higher int64) {
	i := p.run(first, "plain", run.Queued)
	r, _ := p.of(p.life[i])
	p.insert(i, p.item(run.Run{ID: r.ID, Tenant: r.Tenant, State: run.Fenced, Generation: r.Generation + higher, Expires: r.Created}))
}

// fencedAfterStart fences a run that is queued again after an attempt.
func fencedAfterStart(p *plot) {
	i := p.run(first, "plain", run.Succeeded)
	r, _ := p.of(p.life[i])
	r.State, r.Ended, r.Expires, r.Result = run.Queued, 0, 0, run.Ref{}
	r.Attempts[0].Outcome = run.OutcomeHandedBack
	p.spoil(i, func(old *run.Run) { *old = r })
	p.insert(i+1, p.item(run.Run{ID: r.ID, Tenant: r.Tenant, State: run.Fenced, Generation: r.Generation + 1, Expires: r.Created}))
}

var ofCalls = map[string]row{
	"another tenant's run is called": {func(p *plot) { p.calls(p.call(first, "plain"), func(c *oracle.Call) { c.Tenant = "nobody" }) }, "P12: run .* was called for nobody"},
	"called at another time": {func(p *plot) {
		p.calls(p.call(first, "plain"), func(c *oracle.Call) { c.Nominal = c.Nominal.Add(1e6) })
	}, "P2: run .* was called as plain at"},
	"called under no fence":     {func(p *plot) { p.calls(p.call(first, "plain"), func(c *oracle.Call) { c.Fence = 99 }) }, "P6: .* was called under fence 99, and none started under it"},
	"called as another attempt": {func(p *plot) { p.calls(p.call(first, "plain"), func(c *oracle.Call) { c.Attempt = 2 }) }, "P6: .* which is of attempt 1"},
	"called twice":              {func(p *plot) { i := p.call(first, "plain"); p.insert(i, p.life[i]) }, "P6: .* was called twice"},
	"called early":              {func(p *plot) { p.calls(p.call(first, "plain"), func(c *oracle.Call) { c.At = c.At.Add(-time.Minute) }) }, "P3: attempt 1 of run .* was called .* ms early"},
	"called in an attempt that began after the answer to the delete": {func(p *plot) {
		began, call := p.run(first, "plain", run.Running), p.call(first, "plain")
		start, called := p.life[began], p.life[call]
		p.life = slices.DeleteFunc(p.life, func(e event) bool {
			return e.call == called.call || e.key == start.key && slices.ContainsFunc(p.life[began:], func(o event) bool { return o.key == e.key && bytes.Equal(o.value, e.value) })
		})
		_, answered := p.answer(first, oracle.DeleteJob)
		p.insert(answered+1, start, called)
	}, "P8: attempt 1 of run .* was started after the answer to the delete of its job, and called"},
	"called with another edit's payload": {func(p *plot) {
		p.calls(p.call(first, "plain"), func(c *oracle.Call) { c.Payload = []byte(`{"edit":2}`) })
	}, "P8: run .* was called with"},
	"at most once, called twice": {func(p *plot) {
		// An attempt is handed back as not called, another starts, and then both call.
		i := p.run(first, "once", run.Running)
		r, _ := p.of(p.life[i])
		back := r
		back.State, back.Worker, back.Lease = run.Queued, "", 0
		back.Attempts = slices.Clone(r.Attempts)
		back.Attempts[0].Ended, back.Attempts[0].Outcome = r.Started, run.OutcomeHandedBack
		back.Version = r.Fence + 1
		second := back.Start("worker", r.Started, time.Minute)
		call := *p.life[p.call(i, "once")].call
		call.Fence, call.Attempt = second.Fence, 2
		p.insert(i+1, p.item(back), p.item(second), event{call: &call})
	}, "P5: at-most-once run .* was called in attempts 2 and 1"},
	"succeeded before its target answered": {func(p *plot) {
		i := p.run(first, "plain", run.Succeeded)
		ret := p.life[p.call(first, "plain")+1]
		p.insert(i+1, ret)
	}, "P1: run .* had succeeded before its target answered"},
}

// discarded is the index of the put by which a dead letter is discarded.
func (p *plot) discarded() int {
	p.Helper()
	return p.index(first, func(e event) bool {
		r, ok := p.of(e)
		return ok && !r.Discarded.IsZero()
	})
}
