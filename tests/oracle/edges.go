package oracle

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// fields are parts of a run's record.
type fields uint64

const (
	generation fields = 1 << iota
	fired
	trigger
	priority
	epoch
	created
	started
	ended
	attempt
	failures
	crashes
	fence
	worker
	lease
	nextAt
	cancel
	payload
	result
	logKey
	stretch // Through, Upto, Count
	traced
	expires
	opening
	why
	wait
	placed
	discarded
	callback
	ignorePause
	callees
	startBy
	gateKey
	scopes
	endBy
	ownPolicy
)

var fieldNames = [...]string{"generation", "claiming generation", "trigger", "priority", "epoch", "created", "started", "ended", "attempt", "failures", "crashes",
	"fence", "worker", "lease", "next attempt", "cancel", "payload", "result", "log", "skipped stretch", "trace", "expiry", "opening", "reason for which it was skipped", "wait", "place at its gate", "discard", "end that it tells of", "word that no pause holds it", "jobs that its request names", "time to start by", "key of its gate", "scopes that were stopped", "time to end by", "policy that it was asked for with"}

func (f fields) String() (text string) {
	for i, n := range fieldNames {
		if f&(1<<i) != 0 {
			text += ", " + n
		}
	}
	return text[min(2, len(text)):]
}

// differ tells which parts are not the same. Reason and the list of attempts are left out: any write may shed of them what does not fit.
func differ(b, a *run.Run) (f fields) {
	add := func(differs bool, field fields) {
		if differs {
			f |= field
		}
	}
	add(b.Generation != a.Generation, generation)
	add(b.Fired != a.Fired, fired)
	add(b.Trigger != a.Trigger, trigger)
	add(b.Priority != a.Priority, priority)
	add(b.Epoch != a.Epoch, epoch)
	add(b.Created != a.Created, created)
	add(b.Started != a.Started, started)
	add(b.Ended != a.Ended, ended)
	add(b.Attempt != a.Attempt, attempt)
	add(b.Failures != a.Failures, failures)
	add(b.Crashes != a.Crashes, crashes)
	add(b.Fence != a.Fence, fence)
	add(b.Worker != a.Worker, worker)
	add(b.Lease != a.Lease, lease)
	add(b.NextAt != a.NextAt, nextAt)
	add(b.Cancel != a.Cancel, cancel)
	add(!sameRef(b.Payload, a.Payload), payload)
	add(!sameRef(b.Result, a.Result), result)
	add(b.Log != a.Log, logKey)
	add(b.Through != a.Through || b.Upto != a.Upto || b.Count != a.Count, stretch)
	add(b.Trace != a.Trace, traced)
	add(b.Expires != a.Expires, expires)
	add(b.Opening != a.Opening, opening)
	add(!reflect.DeepEqual(b.Why, a.Why), why)
	add(b.Wait != a.Wait || b.Released != a.Released, wait)
	add(b.Placed != a.Placed || b.NamedGates != a.NamedGates, placed)
	add(b.Discarded != a.Discarded, discarded)
	add(b.Callback != a.Callback, callback)
	add(b.IgnorePause != a.IgnorePause, ignorePause)
	add(b.Callees != a.Callees, callees)
	add(b.StartBy != a.StartBy, startBy)
	add(b.GateKey != a.GateKey || b.Keeps != a.Keeps || !slices.Equal(b.NamedKeys, a.NamedKeys), gateKey)
	add(!bytes.Equal(b.Stopped, a.Stopped), scopes)
	add(b.EndBy != a.EndBy, endBy)
	add(b.Overlap != a.Overlap, ownPolicy)
	return f
}

func sameRef(b, a run.Ref) bool {
	return b.Blob == a.Blob && b.Type == a.Type && b.Cut == a.Cut && bytes.Equal(b.Inline, a.Inline)
}

// edge is one way in the graph that docs/run.md draws: what may change on it, and what must be so.
type edge struct {
	may  fields
	rule func(b, a *run.Run) string // what is wrong; nil: nothing can be
}

// nothing is where a run begins.
const nothing run.State = 0

const (
	claims = generation | epoch | priority | wait | placed | gateKey | startBy | endBy
	ends   = ended | worker | lease | nextAt | expires | wait | startBy | endBy
	closes = ends | logKey
	starts = worker | started | nextAt | lease | attempt | fence | wait | placed | gateKey | startBy
	opens  = generation | fired | epoch | failures | crashes | cancel | ended | expires | nextAt | stretch | result | payload | opening | why | wait | placed | gateKey | discarded | startBy | endBy
	births = claims | trigger | created | payload | traced | nextAt
)

var edges = map[[2]run.State]edge{
	{nothing, run.Queued}:          {births | callback | callees | ignorePause | ownPolicy, born},
	{nothing, run.Scheduled}:       {births | callback | callees | ignorePause | ownPolicy, onDemand},
	{nothing, run.Skipped}:         {births | ends | stretch, skips},
	{nothing, run.Fenced}:          {generation | expires, fires},
	{nothing, run.Cancelled}:       {births | ends, all(born, fires, over)}, // a fire that a delete withdrew
	{run.Fenced, run.Fenced}:       {generation | expires, rises},
	{run.Fenced, run.Queued}:       {births | expires, all(born, keeps)},
	{run.Fenced, run.Skipped}:      {births | ends | stretch, all(skips, keeps)},
	{run.Fenced, run.Cancelled}:    {births | ends, all(born, fires, over, keeps)},
	{run.Scheduled, run.Scheduled}: {generation | epoch | wait, all(onDemand, rises)},
	{run.Scheduled, run.Queued}:    {claims, all(onDemand, keeps)},
	{run.Scheduled, run.Cancelled}: {ends, over},
	{run.Queued, run.Queued}:       {claims | nextAt | opening, all(born, unstarted, placedOrRises)},
	{run.Queued, run.Running}:      {starts, begins},
	{run.Queued, run.Cancelled}:    {claims | ends | why, over},
	{run.Queued, run.Dead}:         {ends, over},
	{run.Queued, run.Failed}:       {ends, all(over, hasNoKey)},
	{run.Queued, run.Scheduled}:    {generation | epoch | wait | placed | gateKey | endBy, all(onDemand, unstarted, rises)},
	{run.Queued, run.Waiting}:      {wait | gateKey | placed, joins},
	{run.Waiting, run.Waiting}:     {wait, isReleased},
	{run.Waiting, run.Queued}:      {claims | nextAt, leavesLine},
	{run.Waiting, run.Cancelled}:   {claims | ends | why, over},
	{run.Waiting, run.Scheduled}:   {generation | epoch | wait | placed | gateKey | endBy, all(onDemand, unstarted, rises)},
	{run.Waiting, run.Fenced}:      {births | expires, all(fires, unstarted, rises)},
	{run.Waiting, run.Skipped}:     {claims | ends | stretch | why, all(missedOrReplaced, skipsWaiting)},
	{run.Queued, run.Fenced}:       {births | expires, all(fires, unstarted, rises)},
	{run.Queued, run.Skipped}:      {claims | ends | stretch | why, skipsWaiting},
	// What was dropped ahead of an edit, by a clock that was ahead, is the edit's.
	{run.Skipped, run.Fenced}:     {births | ends | stretch | why, all(missed, fires, unstarted, rises)},
	{run.Skipped, run.Queued}:     {births | ends | stretch | opens, afterSkip},
	{run.Skipped, run.Cancelled}:  {births | ends | stretch | why, all(missed, born, fires, unstarted, rises, over)},
	{run.Skipped, run.Skipped}:    {births | ends | stretch | why, all(missed, skips, unstarted, rises)},
	{run.Running, run.Running}:    {lease | cancel | why, asksToStop},
	{run.Running, run.Succeeded}:  {closes | result | why, all(over, closed(run.OutcomeSucceeded))},
	{run.Running, run.Failed}:     {closes | failures, all(over, closed(run.OutcomeFailed))},
	{run.Running, run.Dead}:       {closes | failures | crashes, all(over, closed(run.OutcomeFailed, run.OutcomeCrashed))},
	{run.Running, run.Unknown}:    {closes | failures | crashes | why, all(over, closedUnknown)},
	{run.Running, run.Cancelled}:  {closes | failures | crashes | why, all(over, closed(run.OutcomeFailed, run.OutcomeCrashed, run.OutcomeCancelled, run.OutcomeHandedBack), wasCancelled)},
	{run.Running, run.Retrying}:   {worker | lease | nextAt | failures | logKey, closed(run.OutcomeFailed)},
	{run.Running, run.Queued}:     {worker | lease | crashes | logKey, closed(run.OutcomeCrashed, run.OutcomeHandedBack)},
	{run.Retrying, run.Running}:   {starts, begins},
	{run.Retrying, run.Cancelled}: {ends | why, over},
	{run.Retrying, run.Dead}:      {ends, over},
	{run.Succeeded, run.Queued}:   {opens, reopened},
	{run.Failed, run.Queued}:      {opens, reopened},
	{run.Dead, run.Queued}:        {opens, reopened},
	{run.Failed, run.Failed}:      {discarded, settles},
	{run.Dead, run.Dead}:          {discarded, settles},
	{run.Cancelled, run.Queued}:   {opens, reopened},
	{run.Unknown, run.Queued}:     {opens, reopened},
	// Retried before its time: it was cancelled ahead of it, or a clock that was ahead was set back.
	{run.Cancelled, run.Scheduled}: {opens, all(onDemand, reopened)},
	{run.Succeeded, run.Scheduled}: {opens, all(onDemand, reopened)},
	{run.Failed, run.Scheduled}:    {opens, all(onDemand, reopened)},
	{run.Dead, run.Scheduled}:      {opens, all(onDemand, reopened)},
	{run.Unknown, run.Scheduled}:   {opens, all(onDemand, reopened)},
	{run.Skipped, run.Scheduled}:   {opens, all(onDemand, reopened)},
}

// along says what is wrong with a change of a run's record, and which promise it breaks; "" where it goes along an edge.
func along(b, a *run.Run) (promise, wrong string) {
	e, ok := edgesOf(b, a)[[2]run.State{b.Stage(), a.Stage()}]
	switch more := differ(b, a) &^ e.may; {
	case !ok && b.State.Ended():
		return "P7", "an ended run"
	case !ok:
		return "P6", "no edge of the graph"
	case (b.State == run.Queued || b.Missed()) && a.State == run.Fenced: // a mark takes the place of a claim
	case more != 0:
		return "P6", "it must not change the " + more.String()
	case b.Overdue != a.Overdue && !(a.Overdue && a.Cancel && a.Heads()):
		return "W5", "only the run of a workflow that is to stop is over its time"
	}
	if e.rule != nil {
		if wrong = e.rule(b, a); wrong != "" {
			return "P6", wrong
		}
	}
	return "", ""
}

func all(rules ...func(b, a *run.Run) string) func(b, a *run.Run) string {
	return func(b, a *run.Run) string {
		for _, rule := range rules {
			if wrong := rule(b, a); wrong != "" {
				return wrong
			}
		}
		return ""
	}
}

func unless(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}

func born(_, a *run.Run) string {
	return all(func(_, a *run.Run) string {
		return unless(a.Generation > 0 && a.Trigger != 0, "a claim names its generation and what asked for it")
	}, func(_, a *run.Run) string {
		return unless(a.NextAt == 0 || !a.ID.OnDemand() && a.Reason == run.CaughtUp, "only what makes up for a missed fire has a place, and says so")
	})(nil, a)
}

func fires(_, a *run.Run) string { return unless(!a.ID.OnDemand(), "only fires are skipped or fenced") }

func onDemand(_, a *run.Run) string {
	return unless(a.ID.OnDemand() && a.Trigger == run.ByRequest, "only runs on demand are scheduled")
}

func skips(b, a *run.Run) string {
	return all(fires, over, func(_, a *run.Run) string {
		return unless(a.Count >= 0 && a.Through >= a.ID.Nominal && a.Reason != "", "what is skipped has an end and a reason")
	})(b, a)
}

// skipsWaiting: a claim is skipped for overlap, or gives way to the decision of a newer generation over missed fires.
func skipsWaiting(b, a *run.Run) string {
	if a.Missed() {
		return all(skips, unstarted, rises)(b, a)
	}
	return all(over, func(b, a *run.Run) string {
		return unless(a.Why.Code == run.WhyExpired || b.Attempt == 0 && (b.Opening == 0 || b.Reason == run.CaughtUp), "only what waits for its first attempt, and was not opened by hand, is skipped for overlap")
	}, func(b, a *run.Run) string {
		return unless(differ(b, a)&(claims|stretch)&^(wait|placed|gateKey|startBy|endBy) == 0 && a.Reason != "", "it keeps its claim, and has a reason")
	})(b, a)
}

// afterSkip: a decision over missed fires gives way to a newer generation, and what was skipped for overlap may be opened again.
func afterSkip(b, a *run.Run) string {
	if b.Missed() {
		return all(born, fires, unstarted, rises)(b, a)
	}
	return reopened(b, a)
}

// missed: what was skipped for overlap was claimed, and that was its fate.
func missed(b, _ *run.Run) string {
	return unless(b.Missed(), "a newer generation takes back what was dropped as missed, and nothing else")
}

// missedOrReplaced: who waits is skipped at its gate for a later one alone, or since it has waited for too long.
func missedOrReplaced(_, a *run.Run) string {
	return unless(a.Missed() || a.Why.Code == run.WhyExpired || a.Why.Code == run.WhyMaxWait || a.Why.Policy == string(job.OverlapQueueLatest) || displaces(a), "who waits in line is skipped at its gate for a later one alone")
}

// joins: a run waits in the line of its job's own gate, or of a named one, no earlier than it was due. At a named one it may have passed others before.
func joins(b, a *run.Run) string {
	named := gate.ValidName(a.Wait.Gate) == nil
	switch w := a.Wait; {
	case w.Gate != gate.Name(a.ID.Job) && !named:
		return fmt.Sprintf("it waits at %q", w.Gate)
	case !named && (w.Ahead != 0 || w.Units != 0 || w.Key != "" || w.Until != 0 || a.Placed != b.Placed):
		return "it stands ahead of its rank, wants units, may not wait for ever, or holds a place, at its job's own gate"
	case a.IgnorePause && gate.PlaceOf(*a).Forwarded():
		if w.Rank < gate.Forward(max(a.ID.Nominal, a.Created)) {
			return "it comes before its time among those at the front"
		}
	case w.Rank < a.ID.Nominal || w.Rank < a.Created || w.Rank < b.Wait.Rank:
		return "it comes before its time in line"
	}
	return unless(a.Wait.Since != 0 && a.Wait.LetIn == 0, "a wait says since when")
}

// isReleased: somebody lets it go to the front, once, where it may wait for as long as it takes. It is written as it stands where it leaves a place at a wider gate.
func isReleased(b, a *run.Run) string {
	if differ(b, a) == 0 {
		return ""
	}
	moved := a.Wait
	moved.Ahead, moved.Until = b.Wait.Ahead, b.Wait.Until
	return unless(b.Released == 0 && a.Released != 0 && moved == b.Wait && a.Wait.Until == 0 && gate.PlaceOf(*a).Forwarded(), "who waits goes nowhere but to the front, when it is released")
}

// leavesLine: it is let in and keeps its claim, its claim is a newer one's, or it has to enter anew. Its rank stays.
func leavesLine(b, a *run.Run) string {
	switch {
	case a.Wait.Rank != b.Wait.Rank:
		return "its rank has changed"
	case a.Generation != b.Generation:
		return all(born, unstarted, rises)(b, a)
	case a.Wait.LetIn != 0 && (a.GateKey != b.GateKey || !slices.Equal(a.NamedKeys, b.NamedKeys)):
		return "it is let in at another key than that at which it waited"
	case differ(b, a)&^(wait|placed|gateKey) != 0 || a.Placed != (a.Wait.LetIn != 0 || b.Placed):
		return "it keeps its claim, and holds a place where it was let in"
	}
	return ""
}

// hasNoKey: what fails before it has started is a run whose gate nobody can tell.
func hasNoKey(_, a *run.Run) string {
	return unless(strings.HasPrefix(a.Reason, "expression: overlap.key: ") || strings.HasPrefix(a.Reason, "expression: gates["), "only a run whose key cannot be told fails before it has started")
}

func rises(b, a *run.Run) string {
	return unless(a.Generation > b.Generation, fmt.Sprintf("generation %d does not pass %d", a.Generation, b.Generation))
}

// placedOrRises: a claim gives way to one of a newer generation, and stays but for its place where that has lapsed.
func placedOrRises(b, a *run.Run) string {
	switch differ(b, a) {
	case nextAt | opening:
		if a.Opening != a.Version {
			return "another place is an opening of its own"
		}
		fallthrough
	case nextAt:
		return unless(b.Reason == run.CaughtUp && a.NextAt > b.NextAt && b.Wait.Rank < b.NextAt, "only what makes up for a missed fire, and has joined no line since its place, is given another place, and a later one")
	case epoch:
		// A try of a request that came long before its time has left a timer, and a later one has put the run as claimed. A tick that comes upon the timer takes
		// the run for one that stands unclaimed in its first version.
		if a.ID.OnDemand() && b.Version == 1 && b.Epoch == 0 {
			return ""
		}
	}
	return all(rises, func(b, a *run.Run) string { return unless(a.Opening == b.Opening, "an opening is asked for") })(b, a)
}

func keeps(b, a *run.Run) string {
	return unless(a.Generation >= b.Generation, fmt.Sprintf("generation %d does not pass the mark of %d", a.Generation, b.Generation))
}

func unstarted(b, _ *run.Run) string {
	return unless(b.Attempt == 0, "a run that has started keeps its definition")
}

func over(_, a *run.Run) string {
	return unless(a.Ended > 0 && a.Expires >= a.Ended+job.MinRetention.Milliseconds() && a.Worker == "" && a.Lease == 0, "an ended run has its time, is kept, and has no lease")
}

func begins(b, a *run.Run) string {
	switch n := len(a.Attempts); {
	case a.Attempt != b.Attempt+1:
		return fmt.Sprintf("attempt %d follows %d", a.Attempt, b.Attempt)
	case a.Fence != a.Version || a.Fence <= b.Fence:
		return fmt.Sprintf("fence %d is not the version %d, above %d", a.Fence, a.Version, b.Fence)
	case a.Worker == "" || a.Lease <= a.Started || a.NextAt != 0:
		return "an attempt has its worker and its lease"
	case n == 0 || a.Attempts[n-1].Number != a.Attempt || a.Attempts[n-1].Ended != 0:
		return "the attempt is not recorded as under way"
	}
	return ""
}

func asksToStop(b, a *run.Run) string {
	return unless(a.Cancel || !b.Cancel, "a cancel was taken back") + unless(a.Why.IsZero() || a.Cancel && (displaces(a) || atDeadline(a)), "who gives way, or is late, is asked to stop")
}

// displaces tells whether a run gives way to a later one, or was asked to.
func displaces(r *run.Run) bool { return job.OverlapPolicy(r.Why.Policy).Displaces() }

// atDeadline tells whether a run was stopped by its deadline, or asked to stop.
func atDeadline(r *run.Run) bool { return r.Why.Code == run.WhyDeadline }

// closedUnknown: an attempt that may have had its effect has failed, crashed, or given way to a later run at once.
func closedUnknown(b, a *run.Run) string {
	if a.GaveWay() {
		return closed(run.OutcomeCancelled)(b, a)
	}
	if atDeadline(a) {
		return closed(run.OutcomeCancelled, run.OutcomeFailed, run.OutcomeCrashed)(b, a)
	}
	return closed(run.OutcomeFailed, run.OutcomeCrashed)(b, a)
}

// deletedJob is the reason of what a delete has cancelled.
const deletedJob = "the job was deleted"

// noJob is the reason of a callback whose job is not there: the operator names it, so nobody has seen to that.
const noJob = "there is no such job"

func wasCancelled(b, a *run.Run) string {
	return unless(b.Cancel || a.GaveWay() || atDeadline(a) || a.Reason == deletedJob || a.Reason == noJob && !a.Callback.IsZero(), "nobody asked to cancel it")
}

// closed: the attempt ended in one of these ways, and was counted so.
func closed(outcomes ...run.Outcome) func(b, a *run.Run) string {
	return func(b, a *run.Run) string {
		n := len(a.Attempts)
		if n == 0 || a.Attempts[n-1].Number != b.Attempt || a.Attempts[n-1].Ended == 0 {
			return "the attempt is not recorded as ended"
		}
		var failed, crashed int
		switch a.Attempts[n-1].Outcome {
		case run.OutcomeFailed:
			failed = 1
		case run.OutcomeCrashed:
			crashed = 1
		}
		for _, o := range outcomes {
			if a.Attempts[n-1].Outcome == o {
				return unless(a.Failures == b.Failures+failed && a.Crashes == b.Crashes+crashed,
					fmt.Sprintf("it %s, and counts %d failures and %d crashes after %d and %d", o, a.Failures, a.Crashes, b.Failures, b.Crashes))
			}
		}
		return fmt.Sprintf("its attempt %s", a.Attempts[n-1].Outcome)
	}
}

// settles: a dead letter is discarded once, and stays so until it is opened again.
func settles(b, a *run.Run) string {
	return unless(b.Discarded.IsZero() && a.Discarded.At >= a.Ended, "an ended run is written again to be discarded, and once")
}

func reopened(b, a *run.Run) string {
	switch {
	case a.Generation < b.Generation:
		return fmt.Sprintf("it goes back from generation %d to %d", b.Generation, a.Generation)
	case a.Failures != 0 || a.Crashes != 0 || a.Cancel || a.Ended != 0 || a.Expires != 0 || !a.Result.IsZero() || !a.Why.IsZero() || !a.Discarded.IsZero():
		return "it has no new budget, or its old end"
	}
	return ""
}
