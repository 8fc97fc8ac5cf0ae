package run

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Callback says of a run that it tells of another one's end, or of missed fires.
type Callback struct {
	Event string `cbor:"1,keyasint,omitempty"` // a job.Event
	Run   string `cbor:"2,keyasint,omitempty"` // ID of the run that has ended, or of the record of the fires
	Count int    `cbor:"3,keyasint,omitempty"` // of one that tells of all within a window: how many ends or records; Run is the first
}

// Callees names the jobs that a run's own request wants to be called when it ends, "" for what its job says.
type Callees struct {
	Succeeded string `cbor:"1,keyasint,omitempty"`
	Failed    string `cbor:"2,keyasint,omitempty"`
}

// IsZero tells whether the job alone says who is called.
func (c Callees) IsZero() bool { return c == Callees{} }

// Of is who is called on an event, "" for whom the job says.
func (c Callees) Of(e job.Event) string {
	switch e {
	case job.OnSucceeded:
		return c.Succeeded
	case job.OnFailed:
		return c.Failed
	}
	return ""
}

// Over gives what a run calls whose definition says on.
func (c Callees) Over(on job.Callbacks) job.Callbacks {
	if c.Succeeded != "" {
		on.Succeeded = &job.Callback{Job: c.Succeeded}
	}
	if c.Failed != "" {
		on.Failed = &job.Callback{Job: c.Failed}
	}
	return on
}

// ByCallback is the trigger of a callback as a user sees it. Its record says ByRequest.
const ByCallback = "callback"

// IsZero tells whether the run tells of nothing: it is no callback.
func (c Callback) IsZero() bool { return c == Callback{} }

// MaxTold is how large a result may be that a callback is told, in bytes. A larger one is read by the run's ID.
const MaxTold = 1 << 10

// Ends gives what the run's end is, as jobs name it; false where it has not ended, or in a way that calls nothing: it was cancelled, for another reason than its deadline, or skipped.
func (r Run) Ends() (job.Event, bool) {
	switch r.State {
	case Succeeded:
		return job.OnSucceeded, true
	case Failed, Dead, Unknown:
		return job.OnFailed, true
	case Cancelled:
		if r.Why.Code == WhyDeadline {
			return job.OnFailed, true
		}
	}
	return "", false
}

// CallsBack tells whether the run's end may call something, by its definition or by its own request. A callback has no callbacks, so nothing goes round in circles.
func (r Run) CallsBack(on job.Callbacks) bool {
	e, ends := r.Ends()
	on = r.Callees.Over(on)
	return ends && (on.Of(e) != nil || on.Recovered != nil) && r.Callback.IsZero()
}

// CallsMissed tells whether the run is the record of missed fires that call something by their definition. One that counts none is part of another's stretch.
func (r Run) CallsMissed(on job.Callbacks) bool { return on.Missed != nil && r.Missed() && r.Count > 0 }

// Call gives the run on demand of the named job that tells of this one's end, as it is to be put: due at the end. It is the same whoever asks for it: its ID
// is made of that end, and of nothing else.
func (r Run) Call(e job.Event, name string) Run { return r.CallAt(e, name, r.Ended) }

// CallAt is Call, due at another time (Unix ms): of a callback with a window, when that is over.
func (r Run) CallAt(e job.Event, name string, due int64) Run {
	end := r.ID.String() + "#" + string(e) + "#" + strconv.FormatInt(r.Ended, 10)
	return Run{ID: RequestID(name, due, job.Hash(r.Tenant, end)), Tenant: r.Tenant, State: Scheduled, Trigger: ByRequest, Created: r.Ended, Trace: r.Trace,
		Payload: Ref{Inline: r.told(e)}, Callback: Callback{Event: string(e), Run: r.ID.String()}}
}

// Told is what a callback is given as its payload, as JSON. The fields of its run are those that the API shows of it.
type Told struct {
	Event  job.Event    `json:"event"`
	Run    ToldRun      `json:"run"`              // of a window: the first
	Missed *MissedFires `json:"missed,omitempty"` // of OnMissed, whose run is their record

	// Of a callback with a window, which tells of all that came in it.
	Window *ToldWindow    `json:"window,omitempty"`
	Count  int            `json:"count,omitempty"` // of ends, or of records of missed fires
	Jobs   map[string]int `json:"jobs,omitempty"`  // how many of them each job has, for MaxTogether jobs at most
	Runs   []ToldOf       `json:"runs,omitempty"`  // MaxTogether of them at most, the first ones
}

// ToldRun is what is told of a run.
type ToldRun struct {
	ID            string          `json:"id"`
	Job           string          `json:"job"`
	Generation    int64           `json:"generation"`
	State         string          `json:"state"`
	NominalTime   time.Time       `json:"nominal_time"`
	StartedAt     time.Time       `json:"started_at,omitzero"`
	EndedAt       time.Time       `json:"ended_at"`
	Attempt       int             `json:"attempt"`
	Reason        string          `json:"reason,omitempty"`
	Error         string          `json:"error,omitempty"` // of the newest attempt
	Result        json.RawMessage `json:"result,omitempty"`
	ResultType    string          `json:"result_type,omitempty"`
	ResultCut     bool            `json:"result_cut,omitempty"`
	ResultLeftOut bool            `json:"result_left_out,omitempty"` // it is larger than MaxTold
}

// MissedFires is a stretch of fires that the catch-up policy dropped.
type MissedFires struct {
	Count int       `json:"count"` // at least so many where it is 100,000
	First time.Time `json:"first"` // nominal times
	Last  time.Time `json:"last"`
}

func (r Run) told(e job.Event) []byte {
	t := Told{Event: e}
	t.Run.ID, t.Run.Job, t.Run.Generation, t.Run.State = r.ID.String(), r.ID.Job, r.Generation, r.State.String()
	t.Run.NominalTime, t.Run.EndedAt = r.ID.Time(), time.UnixMilli(r.Ended).UTC()
	if r.Started != 0 {
		t.Run.StartedAt = time.UnixMilli(r.Started).UTC()
	}
	t.Run.Attempt, t.Run.Reason = r.Attempt, r.Reason
	if n := len(r.Attempts); n > 0 {
		t.Run.Error = r.Attempts[n-1].Error
	}
	if r.Missed() {
		t.Missed = &MissedFires{Count: r.Count, First: r.ID.Time(), Last: time.UnixMilli(r.Through).UTC()}
	}
	switch {
	case r.Result.IsZero():
	case r.Result.Blob != "" || len(r.Result.Inline) > MaxTold:
		t.Run.ResultLeftOut, t.Run.ResultCut = true, r.Result.Cut
	default:
		t.Run.Result, t.Run.ResultType = ShownResult(r.Result.Inline, r.Result.Type, r.Result.Cut)
		t.Run.ResultCut = r.Result.Cut
	}
	return t.text()
}

func (t Told) text() []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(t) // which never fails: a result is JSON by then
	return bytes.TrimSpace(text.Bytes())
}

// ShownResult is how a result that its target gave that media type is shown in JSON: JSON as it is, and everything else as text, with the type where one was
// named. Bytes that are no text are shown as base64, which is how JSON carries them, and their type ends with ";base64". cut tells that only the beginning is there.
func ShownResult(data []byte, mediaType string, cut bool) (shown json.RawMessage, as string) {
	if !cut && target.IsJSON(mediaType) && json.Valid(data) && utf8.Valid(data) {
		return data, ""
	}
	var value any = string(data)
	if !utf8.Valid(data) {
		value = data
		mediaType += ";base64"
	}
	shown, _ = json.Marshal(value) // text and bytes always have a JSON form
	return shown, mediaType
}
