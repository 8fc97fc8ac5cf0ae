package wire

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// WorkRequest asks for runs to work on.
type WorkRequest struct {
	Queue       string            `json:"queue" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"the pool that the worker serves"`
	Worker      string            `json:"worker" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"its name, unique over all starts of all workers"`
	Max         int               `json:"max" minimum:"1" maximum:"10" doc:"how many runs at most"`
	Wait        schedule.Duration `json:"wait,omitempty" doc:"how long to wait for the first, up to 20s"`
	Handlers    []string          `json:"handlers,omitempty" maxItems:"1000" minLength:"1" maxLength:"128" doc:"the Go functions that it has"`
	HTTP        bool              `json:"http,omitempty" doc:"it calls http targets"`
	Exec        bool              `json:"exec,omitempty" doc:"it starts processes"`
	AWS         bool              `json:"aws,omitempty" doc:"it calls resources of AWS"`
	Email       bool              `json:"email,omitempty" doc:"it sends mails"`
	Labels      map[string]string `json:"labels,omitempty" doc:"for people, up to 16"`
	Concurrency int               `json:"concurrency,omitempty" minimum:"1" maximum:"10000" doc:"attempts at most"`
	Running     int               `json:"running,omitempty" minimum:"0" maximum:"10000" doc:"attempts under way"`
}

// Offer is a run that a worker may start. It is reserved for some seconds.
type Offer struct {
	Run     string            `json:"run" doc:"its ID"`
	Kind    string            `json:"kind" enum:"http,exec,handler,aws,email" doc:"what it calls"`
	Handler string            `json:"handler,omitempty" doc:"of kind handler: the name of the function"`
	Suspect bool              `json:"suspect,omitempty" doc:"it has killed workers: to be run alone among its kind"`
	First   bool              `json:"first,omitempty" doc:"it was not offered before"`
	Lease   schedule.Duration `json:"lease" doc:"how long an attempt is held without renewing"`
	Ticket  string            `json:"ticket" doc:"to be given back with the start"`
}

// OfferList is what there is to do; empty when the wait was over.
type OfferList struct {
	Items []Offer `json:"items"`
}

// Holder names who starts a run.
type Holder struct {
	Worker string `json:"worker" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"the worker's name"`
	Start  string `json:"start" minLength:"1" maxLength:"20" pattern:"^[0-9a-z]{1,20}$" doc:"the worker's own name of this start, new for each: by it a repeated start is known"`
}

// WorkStart begins an attempt of an offered run.
type WorkStart struct {
	Holder
	Run    string `json:"run" minLength:"11" maxLength:"802" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"the run's ID; of a workflow's step, RUN/PATH"`
	Ticket string `json:"ticket" minLength:"1" maxLength:"8192" doc:"as it was offered"`
}

// WorkTask is an attempt that has begun: what to call, and with what.
type WorkTask struct {
	Run         string            `json:"run"`
	Tenant      string            `json:"tenant"`
	Job         string            `json:"job"`
	Attempt     int               `json:"attempt"`
	Fence       uint64            `json:"fence" doc:"guards every later word about this attempt"`
	NominalTime time.Time         `json:"nominal_time"`
	Target      target.Spec       `json:"target"`
	Secrets     map[string]string `json:"secrets,omitempty" doc:"what the target's secrets hold"`
	Withheld    map[string]string `json:"withheld,omitempty" doc:"of the others, why the server has them not"`
	Payload     string            `json:"payload,omitempty" doc:"base64"`
	Timeout     schedule.Duration `json:"timeout"`
	AtMostOnce  bool              `json:"at_most_once,omitempty"`
	Lease       schedule.Duration `json:"lease" doc:"how long the attempt is held without renewing"`
	Failure     *WorkFailure      `json:"failure,omitempty" doc:"why there is nothing to call: the attempt is to end with it"`
	Traceparent string            `json:"traceparent,omitempty" doc:"the trace of the run, in the form of W3C Trace Context"`
	Ticket      string            `json:"ticket" doc:"to be given back with every word about this attempt"`
}

// WorkLeave gives an offered run back.
type WorkLeave struct {
	Worker string `json:"worker" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"the worker's name"`
	Start  string `json:"start,omitempty" minLength:"1" maxLength:"20" pattern:"^[0-9a-z]{1,20}$" doc:"of a start whose answer never came: nothing was called"`
	Run    string `json:"run" minLength:"11" maxLength:"802" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"the run's ID; of a workflow's step, RUN/PATH"`
	Ticket string `json:"ticket" minLength:"1" maxLength:"8192" doc:"as it was offered"`
	Reason string `json:"reason" enum:"stopping,busy,incapable" doc:"why it is not started"`
}

// WorkClaim names an attempt under way.
type WorkClaim struct {
	Holder
	Run    string `json:"run" minLength:"11" maxLength:"802" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"the run's ID; of a workflow's step, RUN/PATH"`
	Fence  uint64 `json:"fence" minimum:"1" doc:"as the start gave it"`
	Ticket string `json:"ticket" minLength:"1" maxLength:"8192" doc:"as the start gave it"`
}

// WorkLease is a lease that was renewed.
type WorkLease struct {
	Cancel bool `json:"cancel,omitempty" doc:"a cancel was asked for: stop the call, and finish as cancelled"`
	Read   bool `json:"read,omitempty" doc:"somebody reads the log: show it, now and every few seconds while it is read"`
}

// WorkLog is what an attempt under way has written so far.
type WorkLog struct {
	WorkClaim
	Log string `json:"log" maxLength:"524288" pattern:"^[A-Za-z0-9+/]*={0,2}$" doc:"as in the end of the attempt"`
}

// WorkShown tells whether a log is still read.
type WorkShown struct {
	Read bool `json:"read" doc:"show it again in a few seconds"`
}

// WorkFailure is why a target did not do its work.
type WorkFailure struct {
	Kind       string            `json:"kind" minLength:"1" maxLength:"40" pattern:"^[a-z][a-z_]{0,39}$" doc:"as docs/targets.md lists them"`
	Code       string            `json:"code,omitempty" maxLength:"28" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,27}$" doc:"of a failure of a handler: what the handler tells it apart by, for catch in workflows"`
	Message    string            `json:"message" maxLength:"2000" doc:"for people"`
	Permanent  bool              `json:"permanent,omitempty" doc:"another attempt would fail the same way"`
	RetryAfter schedule.Duration `json:"retry_after,omitempty" doc:"how long the target asked to be left alone"`
}

// WorkEnd says how an attempt ended.
type WorkEnd struct {
	WorkClaim
	Outcome     string       `json:"outcome" enum:"succeeded,failed,crashed,cancelled,handed_back"`
	Result      string       `json:"result,omitempty" maxLength:"349528" pattern:"^[A-Za-z0-9+/]*={0,2}$" doc:"of succeeded: base64 of up to 256 KB"`
	ContentType string       `json:"content_type,omitempty" maxLength:"255" doc:"of the result"`
	Truncated   bool         `json:"truncated,omitempty" doc:"only the result's beginning was kept"`
	Failure     *WorkFailure `json:"failure,omitempty" doc:"of failed"`
	Cause       string       `json:"cause,omitempty" maxLength:"2000" doc:"of crashed, and of handed_back where the worker is not being stopped"`
	Log         string       `json:"log,omitempty" maxLength:"524288" pattern:"^[A-Za-z0-9+/]*={0,2}$" doc:"what the target wrote, up to 256 KB of it: base64 of its text, or of the form with the times of lines in which workers of Belfry send it"`
}

// WorkEnded is what an attempt's end made of its run.
type WorkEnded struct {
	State string `json:"state" enum:"queued,retrying,succeeded,failed,cancelled,dead,unknown"`
}
