package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// GateDefinition is what PUT takes of a gate that has a name of its own.
type GateDefinition struct {
	Name string `json:"name,omitempty" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"the gate's name; it may be left out, or be the one in the path"`
	gate.Definition

	// Closed is what GET says of it, so that its answer can be put again.
	Closed json.RawMessage `json:"closed,omitempty" doc:"as the gate stands: it may be left out, or be what GET gives, and null is an open gate. PUT neither closes nor opens a gate, and refuses what says otherwise"`
}

// Stands refuses a definition that says otherwise than the gate stands about whether it is closed: nil for an open one.
func (d GateDefinition) Stands(name string, closed *GateClosure) error {
	if d.Closed == nil {
		return nil
	}
	var said *GateClosure
	readable := json.Unmarshal(d.Closed, &said) == nil
	switch {
	case closed == nil && readable && said == nil:
		return nil
	case closed == nil:
		return invalid.Field("closed", string(d.Closed), fmt.Sprintf("null, or the field left out: the gate is open, and POST /v1/gates/%s/close closes it", name))
	case readable && said != nil && said.Since.Equal(closed.Since) && said.Reason == closed.Reason:
		return nil
	}
	return invalid.Field("closed", string(d.Closed), fmt.Sprintf("what GET gives, or the field left out: the gate is closed; POST /v1/gates/%s/open opens it, and .../close changes the reason", name))
}

// Called refuses a gate whose own name is another than that of its path.
func (d GateDefinition) Called(name string) error {
	if d.Name == "" || d.Name == name {
		return nil
	}
	return invalid.Field("name", d.Name, fmt.Sprintf("%q, which is what this gate is called here, or the field left out", name))
}

// Gate is how a gate stands: one that has a name of its own, or the own gate of a job that bounds its overlap.
type Gate struct {
	Name       string `json:"name" example:"job:daily-report" doc:"job:NAME is a job's own"`
	Job        string `json:"job,omitempty" doc:"of a job's own gate: the job"`
	Policy     string `json:"policy,omitempty" enum:"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict" doc:"of a job's own gate: what becomes of a run that finds no room, as the job says it"`
	Limit      int    `json:"limit" doc:"how many units may be in progress at once; at a job's own gate each run is one"`
	MaxWaiting *int   `json:"max_waiting,omitempty" doc:"how many may wait before the next is skipped; none where any number may"`
	Order      string `json:"order,omitempty" enum:"priority,fifo,deadline" doc:"of a gate that has a name of its own: who is let in first"`

	MaxWait schedule.Duration `json:"max_wait,omitempty" example:"1h" doc:"of a gate that has a name of its own: how long a run may wait that joins the line from now on, before it is skipped; none where they wait for as long as it takes"`

	InProgress int `json:"in_progress" doc:"runs that were let in and have not ended; of a gate with more than 100, what ended a short while ago may be among them"`
	Units      int `json:"units" doc:"how many units they take together"`
	Waiting    int `json:"waiting" doc:"runs in its line; where they pass the gate by a key, in the lines of all values"`

	MoreWaiting bool `json:"more_waiting,omitempty" doc:"at least so many wait: the gate has more than 100 values, and not all runs that wait for them were counted. Of one gate 1,000 are, and in a long list 100 of each"`

	Key string `json:"key,omitempty" example:"${ .payload.customer }" doc:"of the own gate of a job that has one for each value of a key: that key, as the job says it"`

	Keys     []KeyGate `json:"keys,omitempty" maxItems:"20" doc:"where runs pass the gate by a key: the values for which any are in progress or wait, in their order, at most 20. in_progress and units are those of all values that were looked at. Of the values that were in use in the last 30 days, the first 100 in that order are looked at, with up to 1,000 runs of one gate and 100 of each in a long list"`
	MoreKeys bool      `json:"more_keys,omitempty" doc:"there may be more values than those; the line of each can be listed"`

	Paused bool `json:"paused,omitempty" doc:"its job is paused: only runs with ignore_pause are let in"`

	BlockedBy []BlockedBy `json:"blocked_by,omitempty" maxItems:"20" doc:"of the own gate of a job under overlap strict: the runs that ended badly and behind which its line stands still, one for each value of a key, at most 20, of the first 100 values. Nobody is let in until that run is retried and succeeds, or somebody opens the gate"`

	Closed     *GateClosure `json:"closed,omitempty" doc:"somebody has closed it: nobody is let in until it is opened"`
	Opened     *GateOpened  `json:"opened,omitempty" doc:"of a gate that was closed and is open: who opened it last; of the own gate of a job: who has let its line go on last that stood still"`
	Generation int64        `json:"generation,omitempty" doc:"of a gate that has a name of its own: version of its definition and of whether it is closed; it only grows"`
	ETag       string       `json:"etag,omitempty" doc:"of the same, for If-Match"`
	CreatedAt  time.Time    `json:"created_at,omitzero" doc:"when the gate was made"`
	UpdatedAt  time.Time    `json:"updated_at,omitzero" doc:"when this generation was made"`
}

// GateClosure is that somebody has closed a gate.
type GateClosure struct {
	Since  time.Time `json:"since" doc:"when it was closed"`
	Reason string    `json:"reason,omitempty" doc:"what was said"`
	By     string    `json:"by,omitempty" example:"on-call (0123456789abcdef)" doc:"name and ID of the token that asked for it, or how whatever stands in front of Belfry knows the caller; left out where nobody is asked who they are"`
}

// GateOpened is that somebody has opened a gate which was closed.
type GateOpened struct {
	At     time.Time `json:"at" doc:"when it was opened"`
	Reason string    `json:"reason,omitempty" doc:"what was said"`
	By     string    `json:"by,omitempty" example:"on-call (0123456789abcdef)" doc:"as of closed"`
	Runs   []string  `json:"runs,omitempty" maxItems:"10" doc:"of the own gate of a job: IDs of the runs behind which the line stood still"`
}

// CloseRequest closes a gate.
type CloseRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"256" doc:"for people, of at most 256 bytes"`
}

// OpenRequest opens a gate that was closed, or lets the line of a job's own gate go on that stands still.
type OpenRequest struct {
	Run   string    `json:"run,omitempty" minLength:"11" maxLength:"152" example:"daily-report~0mi4lf3k0" doc:"of the own gate of a job: only if its line stands still behind this run"`
	Since time.Time `json:"since,omitzero" doc:"with run: only if it ended then, as blocked_by shows it; one that was retried and has ended badly again since is refused with 409"`
	Key   string    `json:"key,omitempty" minLength:"1" maxLength:"8192" example:"acme" doc:"of the own gate of a job that has a line for each value of a key: the value; needed without run"`

	Reason string `json:"reason,omitempty" maxLength:"256" doc:"for people, of at most 256 bytes"`
}

// KeyGate is the gate of one value of a key.
type KeyGate struct {
	Key        string `json:"key" example:"acme" doc:"the value; of one longer than 40 bytes, or that cannot be shown, sha256: and its hash"`
	InProgress int    `json:"in_progress"`
	Waiting    int    `json:"waiting"`
}

// GatePage is a page of gates: those that have names of their own, then those of jobs by the names of the jobs.
type GatePage struct {
	Items []Gate `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// InLine is a run that waits in the line of a gate.
type InLine struct {
	ID          string    `json:"id" doc:"names the run"`
	Key         string    `json:"key,omitempty" doc:"where it passes the gate by a key: for which value it waits"`
	NominalTime time.Time `json:"nominal_time" doc:"when it was asked for"`
	Since       time.Time `json:"since" doc:"since when it waits"`
	StartBy     time.Time `json:"start_by,omitzero" doc:"under expires_after of its job: until when it may start; later it is skipped. Left out where it may however late"`
	WaitUntil   time.Time `json:"wait_until,omitzero" doc:"under max_wait of the gate: until when it may wait in this line; later it is skipped. Left out where it may wait for as long as it takes"`
	EndBy       time.Time `json:"end_by,omitzero" doc:"under deadline of its job: until when it is to have ended"`
	Overlap     string    `json:"overlap,omitempty" enum:"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict" doc:"the policy that it was asked for with, in place of its job's; left out where it goes by its job"`
}

// LinePage is a page of a line, from its front on.
type LinePage struct {
	Items []InLine `json:"items"`
	Next  string   `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}
