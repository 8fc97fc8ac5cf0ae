package wire

import "time"

// Gate is how the own gate of a job stands that bounds its overlap.
type Gate struct {
	Name       string `json:"name" example:"job:daily-report" doc:"job:NAME is a job's own"`
	Job        string `json:"job"`
	Policy     string `json:"policy" enum:"allow,skip,queue" doc:"what becomes of a run that finds no room, as the job says it"`
	Limit      int    `json:"limit" doc:"how many runs may be in progress at once"`
	MaxWaiting *int   `json:"max_waiting,omitempty" doc:"how many may wait before the next is skipped; none where any number may"`
	InProgress int    `json:"in_progress" doc:"runs that were let in and have not ended; of a gate with more than 100, what ended a short while ago may be among them"`
	Waiting    int    `json:"waiting" doc:"runs in its line"`
	Key        string `json:"key,omitempty" example:"${ .payload.customer }" doc:"where the job has a gate for each value of a key: that key, as the job says it. in_progress and waiting are those of all values that were looked at"`

	Keys     []KeyGate `json:"keys,omitempty" maxItems:"20" doc:"the values at whose gates runs are in progress or wait, in their order, at most 20. Of the values that were in use in the last 30 days, the first 100 in that order are looked at"`
	MoreKeys bool      `json:"more_keys,omitempty" doc:"there may be more values than those; the line of each can be listed"`

	Paused bool `json:"paused,omitempty" doc:"its job is paused: only runs with ignore_pause are let in"`
}

// KeyGate is the gate of one value of a key.
type KeyGate struct {
	Key        string `json:"key" example:"acme" doc:"the value; of one longer than 40 bytes, or that cannot be shown, sha256: and its hash"`
	InProgress int    `json:"in_progress"`
	Waiting    int    `json:"waiting"`
}

// GatePage is a page of gates, by the name of the job.
type GatePage struct {
	Items []Gate `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// InLine is a run that waits in the line of a gate.
type InLine struct {
	ID          string    `json:"id" doc:"names the run"`
	Key         string    `json:"key,omitempty" doc:"where the job has a gate for each value of a key: at which it waits"`
	NominalTime time.Time `json:"nominal_time" doc:"when it was asked for"`
	Since       time.Time `json:"since" doc:"since when it waits"`
	StartBy     time.Time `json:"start_by,omitzero" doc:"under expires_after of its job: until when it may start; later it is skipped. Left out where it may however late"`
}

// LinePage is a page of a line, from its front on.
type LinePage struct {
	Items []InLine `json:"items"`
	Next  string   `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}
