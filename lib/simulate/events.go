package simulate

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// Events of a run are the changes of its record, as the ledger reads them, and what mailboxes do with its messages. Both are the scheduler's own doing;
// that a worker dies, the scenario says.

// What is done with a message, and what happens to a worker; other events of a run are the states of its record.
const (
	eventSent    = "message_sent"
	eventTaken   = "message_taken"
	eventHidden  = "message_hidden"
	eventDeleted = "message_deleted"
	eventDied    = "worker_died"
)

// event adds an event of a run. until is in Unix ms, 0 for none.
func (l *ledger) event(id run.ID, event string, attempts []try, until int64) {
	e := Event{At: l.now().UTC(), Event: event, Until: instant(until)}
	if n := len(attempts); n > 0 {
		e.Attempt = attempts[n-1].Number
	}
	l.events[id] = append(l.events[id], e)
	l.told++
}

// changed tells of a record that was written what it was not before: where it stands, or a newer attempt. before is where it stood, 0 for a record that
// is new; it had so many attempts then.
func (l *ledger) changed(r run.Run, before run.State, tries int, attempts []try) {
	stage := r.Stage()
	if l.events == nil || stage == run.Fenced || r.Missed() || stage == before && len(attempts) == tries {
		return
	}
	until := int64(0)
	switch stage {
	case run.Scheduled:
		until = r.ID.Nominal
	case run.Retrying, run.Suspended:
		until = r.NextAt
	}
	l.event(r.ID, stage.String(), attempts, until)
}

// message tells what was done with a message of a run, and for how long nobody can take it then.
func (l *ledger) message(id run.ID, event string, hidden time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, attempts := l.standing(id)
	if event == eventHidden && state == run.Running {
		return // a renewal of its lease, which is made up for when somebody looks
	}
	until := int64(0)
	if hidden > 0 {
		until = l.now().Add(hidden).UnixMilli()
	}
	l.event(id, event, attempts, until)
}

// died tells that the worker of an attempt has died.
func (l *ledger) died(id run.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events != nil {
		_, attempts := l.standing(id)
		l.event(id, eventDied, attempts, 0)
	}
}

// standing is what is known of a run or a step.
func (l *ledger) standing(id run.ID) (run.State, []try) {
	a := l.runs[id.Whole()]
	switch {
	case a == nil:
	case !id.IsStep():
		return a.state, a.attempts
	case a.steps[id.Step] != nil:
		return a.steps[id.Step].row.State, a.steps[id.Step].attempts
	}
	return 0, nil
}
