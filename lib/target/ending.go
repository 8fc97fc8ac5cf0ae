package target

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Ending is what a callback tells: that a run has ended, or fires were missed. docs/callbacks.md shows it. It is run.Told as a target reads it.
type Ending struct {
	Event string `json:"event"`
	Run   struct {
		EndedRun
		Result        json.RawMessage `json:"result"`
		ResultCut     bool            `json:"result_cut"`
		ResultLeftOut bool            `json:"result_left_out"`
	} `json:"run"`
	Missed *Missed `json:"missed"` // of the event "missed"

	// Of a callback that tells of all within a window, of which Run is the first.
	Window struct {
		From  time.Time `json:"from"`
		Until time.Time `json:"until"`
	} `json:"window"`
	Count int            `json:"count"`
	Jobs  map[string]int `json:"jobs"` // how many each job has; not of all jobs, where they are many
	Runs  []struct {
		EndedRun
		Missed *Missed `json:"missed"`
	} `json:"runs"` // the first ones
}

// EndedRun is a run that has ended, or the record of missed fires.
type EndedRun struct {
	ID          string    `json:"id"`
	Job         string    `json:"job"`
	State       string    `json:"state"`
	NominalTime time.Time `json:"nominal_time"`
	StartedAt   time.Time `json:"started_at"`
	EndedAt     time.Time `json:"ended_at"`
	Attempt     int       `json:"attempt"`
	Reason      string    `json:"reason"`
	Error       string    `json:"error"`
}

// Missed is a stretch of missed fires.
type Missed struct {
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// manyMissed is the count of missed fires that means at least so many.
const manyMissed = 100_000

var eventName = regexp.MustCompile(`^[a-z_]{1,32}$`)

// Ending gives what the payload tells where it is a callback's. false is for every other payload: it is told as it is.
func (c Call) Ending() (Ending, bool) {
	var e Ending
	if json.Unmarshal(c.Payload, &e) != nil || !eventName.MatchString(e.Event) || !handlerName.MatchString(e.Run.Job) || e.Run.ID == "" || e.Run.State == "" {
		return Ending{}, false
	}
	return e, true
}

// Title says in some words what is told, such as "report failed", "report missed 6 fires", "report failed 3 times" or "12 runs failed": ASCII, without anything that
// could end a line.
func (e Ending) Title() string {
	if e.Count > 1 {
		return e.titleOfSeveral()
	}
	title := e.Run.Job + " " + e.Event
	if n := e.MissedFires(); n != "" {
		title += " " + n
	}
	return title
}

func (e Ending) titleOfSeveral() string {
	named := 0
	for _, n := range e.Jobs {
		named += n
	}
	all := named == e.Count // the jobs that are named are all
	switch {
	case all && len(e.Jobs) == 1 && e.Event == missedEvent:
		return fmt.Sprintf("%s missed fires %d times", e.Run.Job, e.Count)
	case all && len(e.Jobs) == 1:
		return fmt.Sprintf("%s %s %d times", e.Run.Job, e.Event, e.Count)
	case all && e.Event == missedEvent:
		return fmt.Sprintf("%d jobs missed fires", len(e.Jobs))
	case e.Event == missedEvent && len(e.Jobs) == 0:
		return fmt.Sprintf("fires were missed %d times", e.Count)
	case e.Event == missedEvent:
		return fmt.Sprintf("more than %d jobs missed fires", len(e.Jobs))
	}
	return fmt.Sprintf("%d runs %s", e.Count, e.Event)
}

// missedEvent is the event of which no run has ended: fires were missed.
const missedEvent = "missed"

// MissedFires says how many fires were missed, such as "6 fires", "" where it is not told.
func (e Ending) MissedFires() string { return e.Missed.Fires() }

// Fires says how many they are, such as "6 fires", "" of nil.
func (m *Missed) Fires() string {
	switch {
	case m == nil || m.Count < 1:
		return ""
	case m.Count == 1:
		return "1 fire"
	case m.Count >= manyMissed:
		return fmt.Sprintf("%d fires or more", manyMissed)
	}
	return fmt.Sprintf("%d fires", m.Count)
}
