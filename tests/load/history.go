package load

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// change is an edit, pause, resume or delete of a job that was answered with success, perhaps after tries whose answers were
// lost. All times are Unix ms on this host's clock, which is the server's too.
type change struct {
	what       string
	edit       int                // of the definition, as the sink sees it; a pause and a resume keep it
	fires      *schedule.Schedule // nil: makes no scheduled runs
	generation int64              // 0: a delete, which tells none
	at         int64              // from when it is in force, as it was answered; 0 for a delete
	sent       int64              // the first try
	answered   int64
}

// ask is a request for a run, sent until it was answered, or once where it had no key.
type ask struct {
	number int
	key    string
	ids    []string // as answered, by every repetition
	lost   bool     // without a key and without an answer: it may have been accepted
}

// history is what the clients of one job did, one after another.
type history struct {
	job     string
	kind    Kind
	changes []change
	asks    []ask

	cancels  map[string]bool // runs that somebody asked to be cancelled
	redrives map[string]bool // runs that somebody opens again when they are dead, until they have succeeded; false: not any more
}

// run is one as it is listed.
type run = wire.Run

// sighting is a run seen ended while others were under way.
type sighting struct {
	state string
	ended time.Time
	fence uint64
}

// evidence is all that is known when everything has come to rest.
type evidence struct {
	histories []history
	runs      map[string][]run  // by job
	results   map[string]output // of each succeeded run
	calls     []call
	sightings map[string]sighting
}

// violations holds the evidence against the promises.
func (e evidence) violations() []string {
	v := &verdict{evidence: e, byRun: map[string][]call{}, asked: map[int]map[string]bool{}}
	for _, c := range e.calls {
		v.byRun[c.run] = append(v.byRun[c.run], c)
		if c.ask != 0 {
			if v.asked[c.ask] == nil {
				v.asked[c.ask] = map[string]bool{}
			}
			v.asked[c.ask][c.run] = true
		}
	}
	known := map[string]bool{}
	for _, h := range e.histories {
		for _, r := range e.runs[h.job] {
			if known[r.ID] {
				v.add("P2", "run %s is listed twice", r.ID)
			}
			known[r.ID] = true
			v.end(h, r)
		}
		v.fires(h)
		v.requests(h)
	}
	for id, calls := range v.byRun {
		if !known[id] {
			v.add("P1", "run %s was called %d times and is not there", id, len(calls))
		}
		v.attempts(id, calls)
	}
	for id := range e.sightings {
		if !known[id] {
			v.add("P1", "run %s was seen and is gone", id)
		}
	}
	slices.Sort(v.found)
	return v.found
}

type verdict struct {
	evidence
	byRun map[string][]call
	asked map[int]map[string]bool // runs called for each request
	found []string
}

func (v *verdict) add(promise, format string, args ...any) {
	v.found = append(v.found, promise+": "+fmt.Sprintf(format, args...))
}

// end looks at how a run ended, and at whose result it has.
func (v *verdict) end(h history, r run) {
	calls := v.byRun[r.ID]
	crashed := 0
	for _, a := range r.Attempts {
		if a.Outcome == "crashed" {
			crashed++
		}
	}
	onDemand := r.Trigger == "request"
	switch r.State {
	case "succeeded":
		told, kept := string(answered(r.Fence)), v.results[r.ID]
		if fence := FenceIn(json.RawMessage(kept.result)); fence != r.Fence {
			v.add("P6", "run %s ended under fence %d with the result of fence %d", r.ID, r.Fence, fence)
		}
		if kept.result != told || kept.logs && kept.log != told {
			v.add("P1", "run %s ended under fence %d, was told %.40q in %d bytes, and keeps the result %.40q in %d, and the log %.40q in %d", r.ID, r.Fence,
				told, len(told), kept.result, len(kept.result), kept.log, len(kept.log))
		}
		accepted := slices.ContainsFunc(calls, func(c call) bool { return c.fence == r.Fence && c.answer == 200 })
		if !accepted {
			v.add("P1", "run %s succeeded under fence %d, and no target said so: %+v", r.ID, r.Fence, calls)
		}
	case "cancelled":
		deleted := r.Reason == "the job was deleted" && slices.ContainsFunc(h.changes, func(c change) bool { return c.what == "delete" })
		if !h.cancels[r.ID] && !deleted {
			v.add("P2", "run %s was cancelled, and nobody asked for it: %s", r.ID, r.Reason)
		}
	case "dead":
		again, given := h.redrives[r.ID]
		if h.kind.AtMostOnce || crashed < 3 && !given || again {
			v.add("P2", "run %s is dead after %d crashes: %s", r.ID, crashed, r.Reason)
		}
	case "failed", "unknown":
		if !h.kind.AtMostOnce {
			v.add("P2", "run %s of an at-least-once job is %s: %s %+v", r.ID, r.State, r.Reason, r.Attempts)
		}
	default:
		v.add("P4", "run %s is %s and not ended: %+v", r.ID, r.State, r)
	}
	if seen, ok := v.sightings[r.ID]; ok && (seen.state != r.State || !seen.ended.Equal(r.EndedAt) || seen.fence != r.Fence) {
		v.add("P7", "run %s had ended as %+v, and is %s at %s under fence %d", r.ID, seen, r.State, r.EndedAt, r.Fence)
	}
	for _, c := range calls {
		if c.fence > r.Fence || c.attempt > r.Attempt {
			v.add("P6", "run %s stands at fence %d, attempt %d, and its target saw fence %d, attempt %d", r.ID, r.Fence, r.Attempt, c.fence, c.attempt)
		}
		if of := h.of(r.Generation); of == nil || of.edit != c.edit {
			v.add("P8", "run %s of generation %d was called by edit %d", r.ID, r.Generation, c.edit)
		}
		if !c.nominal.Equal(r.NominalTime) || c.job != r.Job {
			v.add("P2", "run %s of %s at %s was called as %s at %s", r.ID, r.Job, r.NominalTime, c.job, c.nominal)
		}
	}
	if h.kind.AtMostOnce && len(calls) > 1 {
		v.add("P5", "at-most-once run %s was called %d times: %+v", r.ID, len(calls), calls)
	}
	if onDemand && len(calls) > 0 {
		if after := h.after(r.Generation); after != nil && after.answered < r.NominalTime.UnixMilli() {
			v.add("P8", "run %s asked for at %s started under generation %d, which had ended at %s", r.ID, r.NominalTime, r.Generation, time.UnixMilli(after.answered))
		}
	}
}

// attempts looks at what the target saw of a run.
func (v *verdict) attempts(id string, calls []call) {
	fences := map[int]uint64{}
	for _, c := range calls {
		if c.arrived.Before(c.nominal) {
			v.add("P3", "run %s was called %s before its time", id, c.nominal.Sub(c.arrived))
		}
		if _, twice := fences[c.attempt]; twice {
			v.add("P6", "attempt %d of run %s called twice: %+v", c.attempt, id, calls)
		}
		fences[c.attempt] = c.fence
	}
	for a, fence := range fences {
		for b, other := range fences {
			if a < b && fence >= other {
				v.add("P6", "run %s: attempt %d had fence %d, attempt %d fence %d", id, a, fence, b, other)
			}
		}
	}
}

// of is the change that made a generation.
func (h history) of(generation int64) *change {
	for i := range h.changes {
		if h.changes[i].generation == generation && generation != 0 {
			return &h.changes[i]
		}
	}
	return nil
}

func (h history) after(generation int64) *change {
	for i := range h.changes {
		if h.changes[i].generation == generation && i+1 < len(h.changes) {
			return &h.changes[i+1]
		}
	}
	return nil
}

// fires holds the runs of a job's fires against its changes. A generation's fires up to the change that ended it have a run
// each. Those between that change and its answer may have one: a claim made ahead may have started before the fence. After the
// answer there is none.
func (v *verdict) fires(h history) {
	var reigns []oracle.Reign
	for i, c := range h.changes {
		if c.fires == nil {
			continue
		}
		if i+1 == len(h.changes) {
			panic("history of " + h.job + " ends while it still fires")
		}
		next := h.changes[i+1]
		surely := next.at
		if surely == 0 {
			surely = next.sent
		}
		reigns = append(reigns, oracle.Reign{Generation: c.generation, Fires: c.fires, From: c.at, Until: surely, Answered: next.answered})
	}
	var fates []oracle.Fate
	for _, r := range v.runs[h.job] {
		if r.Trigger == "schedule" { // one that was dropped is for itself: it has no run
			fates = append(fates, oracle.Fate{Run: r.ID, Nominal: r.NominalTime.UnixMilli(), Generation: r.Generation})
		}
	}
	v.found = append(v.found, oracle.Match(h.job, reigns, fates, math.MaxInt64)...)
}

// requests holds the runs on demand of a job against what was asked for.
func (v *verdict) requests(h history) {
	there := map[string]bool{}
	for _, r := range v.runs[h.job] {
		if r.Trigger == "request" {
			there[r.ID] = true
		}
	}
	maybe := 0
	for _, a := range h.asks {
		if a.lost {
			maybe++
		}
		for _, id := range a.ids {
			if id != a.ids[0] {
				v.add("P9", "key %s gave runs %v", a.key, a.ids)
			}
			if !there[id] {
				v.add("P1", "run %s was accepted and is not there", id)
			}
		}
		for id := range v.asked[a.number] {
			if len(a.ids) > 0 && id != a.ids[0] {
				v.add("P9", "request %d, answered with %s, also made run %s", a.number, a.ids[0], id)
			}
		}
		if len(v.asked[a.number]) > 1 {
			v.add("P9", "request %d made runs %v", a.number, v.asked[a.number])
		}
	}
	for _, a := range h.asks {
		for _, id := range a.ids {
			delete(there, id)
		}
	}
	if len(there) > maybe {
		v.add("P9", "%d runs of %s that no answer named, %d requests without a key or an answer: %v", len(there), h.job, maybe, there)
	}
}
