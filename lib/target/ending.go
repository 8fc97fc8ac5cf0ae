package target

import (
	"encoding/json"
	"regexp"
	"time"
)

// Ending is what a callback tells: that a run has ended. docs/callbacks.md shows it. It is run.Told as a target reads it.
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
}

var eventName = regexp.MustCompile(`^[a-z_]{1,32}$`)

// Ending gives what the payload tells where it is a callback's. false is for every other payload: it is told as it is.
func (c Call) Ending() (Ending, bool) {
	var e Ending
	if json.Unmarshal(c.Payload, &e) != nil || !eventName.MatchString(e.Event) || !handlerName.MatchString(e.Run.Job) || e.Run.ID == "" || e.Run.State == "" {
		return Ending{}, false
	}
	return e, true
}

// Title says in some words what is told, such as "report failed": ASCII, without anything that could end a line.
func (e Ending) Title() string { return e.Run.Job + " " + e.Event }
