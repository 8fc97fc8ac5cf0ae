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
		ID            string          `json:"id"`
		Job           string          `json:"job"`
		State         string          `json:"state"`
		NominalTime   time.Time       `json:"nominal_time"`
		StartedAt     time.Time       `json:"started_at"`
		EndedAt       time.Time       `json:"ended_at"`
		Attempt       int             `json:"attempt"`
		Reason        string          `json:"reason"`
		Error         string          `json:"error"`
		Result        json.RawMessage `json:"result"`
		ResultCut     bool            `json:"result_cut"`
		ResultLeftOut bool            `json:"result_left_out"`
	} `json:"run"`
	Missed *struct {
		Count int       `json:"count"`
		First time.Time `json:"first"`
		Last  time.Time `json:"last"`
	} `json:"missed"` // of the event "missed"
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

// Title says in some words what is told, such as "report failed" or "report missed 6 fires": ASCII, without anything that could end a line.
func (e Ending) Title() string {
	title := e.Run.Job + " " + e.Event
	if n := e.MissedFires(); n != "" {
		title += " " + n
	}
	return title
}

// MissedFires says how many fires were missed, such as "6 fires", "" where it is not told.
func (e Ending) MissedFires() string {
	switch {
	case e.Missed == nil || e.Missed.Count < 1:
		return ""
	case e.Missed.Count == 1:
		return "1 fire"
	case e.Missed.Count >= manyMissed:
		return fmt.Sprintf("%d fires or more", manyMissed)
	}
	return fmt.Sprintf("%d fires", e.Missed.Count)
}
