package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Run is one execution of a job.
type Run struct {
	ID            string            `json:"id" doc:"names the run"`
	Job           string            `json:"job"`
	Generation    int64             `json:"generation" doc:"of the definition that it runs; 0 until it is bound to one"`
	State         string            `json:"state" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown"`
	NominalTime   time.Time         `json:"nominal_time" doc:"when it was asked for"`
	Trigger       string            `json:"trigger" enum:"schedule,request,callback" doc:"what asked for it"`
	Priority      string            `json:"priority,omitempty"`
	Attempt       int               `json:"attempt" doc:"attempts started so far"`
	Fence         uint64            `json:"fence" doc:"version that the newest attempt started under; it only grows"`
	CreatedAt     time.Time         `json:"created_at,omitzero"`
	StartedAt     time.Time         `json:"started_at,omitzero" doc:"start of the newest attempt"`
	EndedAt       time.Time         `json:"ended_at,omitzero"`
	ChangedAt     time.Time         `json:"changed_at,omitzero" doc:"when it came to where it stands: was made or due, came into a line or out of it, when an attempt began or ended, or it did"`
	NextAttemptAt time.Time         `json:"next_attempt_at,omitzero" doc:"of a retrying run, or one that makes up for a missed fire: not before"`
	EndBy         time.Time         `json:"end_by,omitzero" doc:"under deadline of its job: until when it is to have ended; later it is stopped, over all its attempts. Left out where it has none, before it is queued, and once it has ended"`
	StartBy       time.Time         `json:"start_by,omitzero" doc:"under expires_after of its job: until when it may start; later it is skipped. Left out where it may however late, before it is queued, and once it has started"`
	ReleasedAt    time.Time         `json:"released_at,omitzero" doc:"when somebody let it go to the front of the line that it waited in"`
	ReleasedBy    string            `json:"released_by,omitempty" example:"on-call (0123456789abcdef)" doc:"who did: name and ID of the token, or how whatever stands in front of Belfry knows the caller; left out where nobody is asked who they are"`
	ReleasedFor   string            `json:"released_for,omitempty" doc:"the reason that they gave"`
	IgnorePause   bool              `json:"ignore_pause,omitempty" doc:"it was asked for with ignore_pause: no pause of its job holds it"`
	Overlap       string            `json:"overlap,omitempty" enum:"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict" doc:"the policy that it was asked for with, in place of its job's; left out where it goes by its job"`
	Worker        string            `json:"worker,omitempty" doc:"who runs it"`
	Reason        string            `json:"reason,omitempty" doc:"why it was cancelled, skipped, reopened or given up, or has no result; and that it makes up for a missed fire"`
	Skipped       *Skipped          `json:"skipped,omitempty" doc:"of a skipped run that stands for other than one missed fire"`
	Callback      *CallbackOf       `json:"callback,omitempty" doc:"of a run that tells of another one's end, or of missed fires: of which"`
	Why           *Why              `json:"why,omitempty" doc:"of a run that was skipped at a gate: what was in its way; of one that gave way to a later run, or was asked to: to which. So it stands on running, cancelled and unknown runs, too"`
	Discarded     *Discarded        `json:"discarded,omitempty" doc:"of a dead letter that somebody has settled without running it again"`
	Result        json.RawMessage   `json:"result,omitempty" doc:"what the target answered: its JSON, or else text; left out of lists"`
	ResultType    string            `json:"result_type,omitempty" doc:"media type that the target named, of a result that is not JSON; left out where it named none. It ends with ;base64 where the result is base64, since it is no text"`
	ResultCut     bool              `json:"result_cut,omitempty" doc:"only the beginning of the result was kept; told in lists, too"`
	ResultSize    int64             `json:"result_size,omitempty" doc:"of a result over 256 KiB, which is left out here: how many bytes it has. result_type is its media type then, also of JSON. GET /v1/runs/{run}/result gives them"`
	Labels        map[string]string `json:"labels,omitempty" doc:"of the definition that it runs"`
	Trace         string            `json:"trace,omitempty" doc:"ID of the trace that its attempts belong to; none where traces are off, or this one was not chosen"`
	Waiting       []Waiting         `json:"waiting,omitempty" doc:"of a run alone, that has not ended: why it does not go on, what has to end first standing first; a few at most"`
	On            *RunCallbacks     `json:"on,omitempty" doc:"of a run on demand whose own request named whom to call: whom"`
	Attempts      []Attempt         `json:"attempts" doc:"the newest few, oldest first"`
	Steps         []StepSummary     `json:"steps,omitempty" doc:"of a workflow's run alone: its steps, in the order of the workflow"`
}

// RunCallbacks names what is called when a run has ended whose own request says so. It goes before what the job says of the same event.
type RunCallbacks struct {
	Succeeded *Callee `json:"succeeded,omitempty" doc:"when the run has succeeded"`
	Failed    *Callee `json:"failed,omitempty" doc:"when the run is given up: its state is failed, dead or unknown"`
}

// Callee is what a request's own callback calls: a job of the same tenant. It tells of that run alone.
type Callee struct {
	Job string `json:"job" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" example:"tell-ops" doc:"the job that runs then, with what happened as its payload; it must exist"`
}

// Calling names jobs, "" for none of an event; nil for none at all.
func Calling(succeeded, failed string) *RunCallbacks {
	var on RunCallbacks
	if succeeded != "" {
		on.Succeeded = &Callee{Job: succeeded}
	}
	if failed != "" {
		on.Failed = &Callee{Job: failed}
	}
	if on == (RunCallbacks{}) {
		return nil
	}
	return &on
}

// CallbackOf is the end of a run, or the missed fires, that another run tells of.
type CallbackOf struct {
	Event string `json:"event" enum:"succeeded,failed,recovered,missed" doc:"what has happened, as the job's field on names it"`
	Run   string `json:"run" doc:"ID of the run that has ended; of missed: of the skipped run that stands for all of the fires"`
	Count int    `json:"count,omitempty" doc:"of a callback with a window: how many ends, or stretches of missed fires, it tells of, of which this is the first"`
}

// Waiting is a reason why a run, or a step of one, does not go on.
type Waiting struct {
	Code  string    `json:"code" enum:"clock_off,job_deleted,paused,not_due,not_claimed,tick_behind,expired,claimed_ahead,paced,backing_off,no_worker,queued,gate,blocked,cancelling,running,steps,not_released,lease_over,suspended,unreadable" doc:"stable; docs/run.md says what each means"`
	Text  string    `json:"text" doc:"a sentence for people"`
	Until time.Time `json:"until,omitzero" doc:"until when at least; of a running attempt, when its lease is over unless it is renewed"`
	Who   string    `json:"who,omitempty" doc:"who or what can end it, for people; none where time alone does"`

	Gate      string    `json:"gate,omitempty" example:"job:daily-report" doc:"of codes gate and blocked: in whose line it waits; job:NAME is the job's own limit"`
	Key       string    `json:"key,omitempty" example:"acme" doc:"of codes gate and blocked, where the run passes the gate by a key: the value; of one longer than 40 bytes, or that cannot be shown, sha256: and its hash"`
	Since     time.Time `json:"since,omitzero" doc:"of codes gate and blocked: since when it waits; of code lease_over: since when the lease is over"`
	WaitUntil time.Time `json:"wait_until,omitzero" doc:"of code gate, under max_wait of the gate: until when it may wait in that line; later it is skipped"`

	Behind   *int     `json:"behind,omitempty" doc:"of codes gate and blocked: how many runs are before it in line; 1000 means at least so many. Of code queued: about how many others are ready in its priority or a higher one; left out for none, and where the server does not see it"`
	InTheWay []string `json:"in_the_way,omitempty" maxItems:"10" doc:"of codes gate and blocked: IDs of runs that are in progress there, or hold up the line, at most 10"`

	BlockedBy []BlockedBy `json:"blocked_by,omitempty" maxItems:"20" doc:"of code blocked: the runs that ended badly and behind which the line stands still"`

	Steps []string  `json:"steps,omitempty" maxItems:"300" example:"[\"extract\", \"parts/index\"]" doc:"of code steps, of a step alone: the paths of the steps that it waits for, in the order of the workflow"`
	Queue string    `json:"queue,omitempty" example:"default" doc:"of codes claimed_ahead, queued and no_worker: where it waits"`
	Need  string    `json:"need,omitempty" example:"handler resize" doc:"of code no_worker: what no worker of the queue offers; none where no worker serves it"`
	Ticks time.Time `json:"ticks,omitzero" doc:"of code tick_behind: up to where the ticks have come"`
}

// BlockedBy is a run that ended badly under overlap strict, and behind which a line stands still until it is retried and succeeds, or somebody opens the gate.
type BlockedBy struct {
	Run   string    `json:"run" example:"daily-report~0mi4lf3k0" doc:"ID of the run"`
	Key   string    `json:"key,omitempty" example:"acme" doc:"where the job has a line for each value of a key: the value; of one longer than 40 bytes, or that cannot be shown, sha256: and its hash"`
	State string    `json:"state" enum:"failed,dead,unknown" doc:"how it ended"`
	Since time.Time `json:"since" doc:"when it ended"`
}

// Attempt is one try of a run.
type Attempt struct {
	Attempt   int       `json:"attempt" doc:"counted from 1"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Outcome   string    `json:"outcome" enum:"running,succeeded,failed,crashed,cancelled,handed_back"`
	Error     string    `json:"error,omitempty"`
}

// Skipped is a stretch of fires that the catch-up policy dropped.
type Skipped struct {
	Count   int       `json:"count" doc:"how many; 0 where the record that its reason names counts them"`
	Through time.Time `json:"through" doc:"the last of them"`
}

// Discarded says who has settled a dead letter.
type Discarded struct {
	At   time.Time `json:"at"`
	By   string    `json:"by,omitempty" example:"on-call (0123456789abcdef)" doc:"name and ID of the token that asked for it, or how whatever stands in front of Belfry knows the caller; left out where nobody is asked who they are"`
	Note string    `json:"note,omitempty" doc:"what they had to say"`
}

// ReleaseRequest lets a run go to the front of its line.
type ReleaseRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"for people; it is shown with the run"`
}

// Why says what a run was skipped for, for whom it has given way, or that its deadline has stopped it.
type Why struct {
	Code     string    `json:"code" example:"overlap" doc:"overlap: as many runs of the job were in progress as its field overlap allows, and under queue_one another waited, or under queue_latest a later one came; under cancel and replace a later one takes its place, also of a run that was in progress; full: besides, as many waited as max_waiting allows; closed: the gate was closed, and as many waited as it lets wait; max_wait: it had waited in line for longer than max_wait of the gate allows; expired: it had not started within expires_after, deadline: it had not ended within deadline; of these two the other fields are empty"`
	Gate     string    `json:"gate" example:"job:daily-report" doc:"where it was skipped: job:NAME is the job's own limit, and any other name that of a gate which jobs share"`
	Key      string    `json:"key,omitempty" example:"acme" doc:"where the run passes the gate by a key: the value; of one longer than 40 bytes, or that cannot be shown, sha256: and its hash"`
	Policy   string    `json:"policy" example:"skip" doc:"of the gate, as the job says it; empty at a gate which jobs share"`
	Since    time.Time `json:"since,omitzero" doc:"of max_wait: since when it had waited in line"`
	InTheWay []string  `json:"in_the_way" doc:"IDs of the runs that were in progress, and of those that waited, at most 10; under queue_latest, cancel and replace, of the later run that takes its place"`
	Text     string    `json:"text" example:"daily-report~0mi4lf3k0 was in progress (overlap: skip)" doc:"a clause for people, as after: it was skipped, since"`
}

// NewWhy gives what a run was skipped for, at a gate or "", with its text. key is the value that the gate is of, "" for that of all. reason is
// that of the run's record.
func NewWhy(code, at, key, policy string, inTheWay []string, reason string) *Why {
	w := &Why{Code: code, Gate: at, Key: key, Policy: policy, InTheWay: append([]string{}, inTheWay...)}
	w.Text = w.clause(reason)
	return w
}

// orInLine is what the reason of a run that was skipped ends in where some that waited were in its way.
const orInLine = " or in line"

// clause says it in words, such as "report~0mi4lf3k0 was in progress (overlap: skip)".
func (w *Why) clause(reason string) string {
	var runs string
	were := "were"
	switch n := len(w.InTheWay); n {
	case 0:
		runs = "as many runs as are allowed"
	case 1:
		runs, were = w.InTheWay[0], "was"
	case 2, 3:
		runs = strings.Join(w.InTheWay[:n-1], ", ") + " and " + w.InTheWay[n-1]
	default: // the record names only so many
		runs = fmt.Sprintf("%s, %s and at least %d more", w.InTheWay[0], w.InTheWay[1], n-2)
	}
	policy, at := w.Policy, w.Gate
	if w.Key != "" {
		policy += ", key: " + w.Key
		at += ", key: " + w.Key
	}
	switch {
	case w.Code == "expired":
		return reason + " (expires_after)"
	case w.Code == "max_wait" && len(w.InTheWay) == 0:
		return fmt.Sprintf("%s (gate: %s, max_wait)", reason, at)
	case w.Code == "max_wait":
		return fmt.Sprintf("%s, while %s %s in progress or before it in line (gate: %s, max_wait)", reason, runs, were, at)
	case w.Code == "deadline":
		return strings.TrimPrefix(reason, "deadline: ") + " (deadline)"
	case w.Code == "closed" && len(w.InTheWay) == 0:
		return fmt.Sprintf("the gate was closed, and nobody may wait there (gate: %s)", at)
	case w.Code == "closed":
		return fmt.Sprintf("the gate was closed, and %s waited, as many as may (gate: %s)", runs, at)
	case job.OverlapPolicy(w.Policy).LatestWaits():
		return fmt.Sprintf("%s came later and took its place (%s: %s)", runs, w.Code, policy)
	case w.Policy == string(job.OverlapQueueOne):
		return fmt.Sprintf("another run of the job waited already, and in its way %s %s (%s: %s)", were, runs, w.Code, policy)
	case w.Code == "full" && w.Policy == "":
		return fmt.Sprintf("%s %s in progress or in line, which was full (gate: %s)", runs, were, at)
	case w.Code == "full":
		return fmt.Sprintf("%s %s in progress or in line, which was full (overlap: %s)", runs, were, policy)
	case strings.HasSuffix(reason, orInLine):
		were += " in progress" + orInLine
	default:
		were += " in progress"
	}
	return fmt.Sprintf("%s %s (%s: %s)", runs, were, w.Code, policy)
}

// RunPage is a page of runs, newest nominal time first, or in the order that was asked for.
type RunPage struct {
	Items []Run  `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`

	LookedBackTo time.Time `json:"looked_back_to,omitzero" doc:"of sort=changed: runs of an older nominal time were not looked at; left out where all were"`
}

// LastRunsRequest asks for the newest runs of jobs.
type LastRunsRequest struct {
	Jobs  []string `json:"jobs" minItems:"1" maxItems:"100" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"names of jobs, each once"`
	Limit int      `json:"limit,omitempty" minimum:"1" maximum:"20" doc:"how many runs of each job at most, 10 by default"`
}

// LastRunsList is the answer, in the order of the request.
type LastRunsList struct {
	Items []LastRuns `json:"items"`
}

// LastRuns is the newest runs of one job whose nominal time has come.
type LastRuns struct {
	Job     string    `json:"job"`
	Runs    []LastRun `json:"runs" doc:"newest nominal time first, none later than now; none of a job that does not exist"`
	Partial bool      `json:"partial,omitempty" doc:"100 records of the job were looked at, and fewer runs found than asked for: there may be older ones"`

	LastSucceededAt time.Time `json:"last_succeeded_at,omitzero" doc:"when the last run that succeeded ended; left out where none did of these runs and of the 100 before them"`
}

// LastRun is a run in a few words.
type LastRun struct {
	ID          string    `json:"id"`
	State       string    `json:"state" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown"`
	NominalTime time.Time `json:"nominal_time" doc:"when it was asked for"`
	StartedAt   time.Time `json:"started_at,omitzero" doc:"start of the newest attempt"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	Attempt     int       `json:"attempt" doc:"attempts started so far"`
	Error       string    `json:"error,omitempty" doc:"of the newest attempt"`
}

// Trigger asks for a run: now, at a time, or after a delay.
type Trigger struct {
	At      *time.Time         `json:"at,omitempty" doc:"when; without it and delay, now"`
	Delay   *schedule.Duration `json:"delay,omitempty" doc:"how long from now"`
	Payload json.RawMessage    `json:"payload,omitempty" doc:"any JSON, instead of the job's own payload"`
	On      *RunCallbacks      `json:"on,omitempty" doc:"which job is called when this run has ended, before what its own job says"`

	IgnorePause bool `json:"ignore_pause,omitempty" doc:"the run starts although its job is paused, now or later; without it, it is held until the job is resumed"`

	Overlap job.OwnOverlap `json:"overlap,omitzero" doc:"what becomes of the run while others of the job are in progress, in place of the job's policy; key, limit and max_waiting stay the job's. Only allow is taken for a job without an overlap policy, and strict only for one whose own policy that is"`
}

// JobTrigger is a Trigger in a batch.
type JobTrigger struct {
	Job            string `json:"job" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"the job to run"`
	IdempotencyKey string `json:"idempotency_key,omitempty" maxLength:"255" pattern:"^[!-~]+$" doc:"as the header Idempotency-Key of a single request"`
	Trigger
}

// RunBatch asks for many runs.
type RunBatch struct {
	Runs []JobTrigger `json:"runs" minItems:"1" maxItems:"1000" doc:"the runs to start"`
}

// RunVerdict is what became of one run that was asked for, cancelled, retried, redriven or discarded. It has nothing of the run that may be large.
type RunVerdict struct {
	Status  int      `json:"status" doc:"the HTTP status that this request alone would have had"`
	ID      string   `json:"id,omitempty" doc:"of the run"`
	State   string   `json:"state,omitempty" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown" doc:"in which it stands now"`
	Problem *Problem `json:"problem,omitempty" doc:"why it was refused"`
}

// RunVerdicts is the answer to a batch, in the order of the request.
type RunVerdicts struct {
	Items []RunVerdict `json:"items"`
}

// CancelRequest cancels a run.
type CancelRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"120" doc:"for people"`
}

// RetryRequest runs an ended run again.
type RetryRequest struct {
	Force bool `json:"force,omitempty" doc:"also a run that succeeded or whose outcome is unknown: its effect may then happen twice"`

	EndedBefore *time.Time `json:"ended_before,omitempty" doc:"only if the run ended before this time, else it is refused with precondition_failed: a request that is sent a second time does not retry a run that the first one has, and that has ended again"`
}

// DeadLetter is a run that ended dead or failed and was neither redriven nor discarded since.
type DeadLetter struct {
	ID      string    `json:"id" doc:"names the run"`
	Job     string    `json:"job"`
	State   string    `json:"state" enum:"failed,dead"`
	EndedAt time.Time `json:"ended_at"`
	Error   string    `json:"error,omitempty" doc:"the last one"`
}

// DeadLetterPage is a page of dead letters.
type DeadLetterPage struct {
	Items []DeadLetter `json:"items"`
	Next  string       `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// DeadLetterGroups is dead letters by the pattern of their errors.
type DeadLetterGroups struct {
	Items      []DeadLetterGroup `json:"items" doc:"most letters first, at most 200"`
	MoreGroups int               `json:"more_groups,omitempty" doc:"how many groups are left out"`
	LookedAt   int               `json:"looked_at" doc:"how many dead letters match of the newest 5000, and are counted in the groups"`
	Since      time.Time         `json:"since,omitzero" doc:"how far back was looked: when the oldest one ended"`
	More       bool              `json:"more,omitempty" doc:"there are older dead letters, which were not looked at: ask with to"`
}

// DeadLetterGroup is the dead letters whose last errors have one pattern.
type DeadLetterGroup struct {
	Pattern  string    `json:"pattern" doc:"the error with # for numbers, hexadecimal and other IDs, addresses, times and quoted text: the filter pattern of the list and of redrive"`
	Kind     string    `json:"kind,omitempty" doc:"what the error begins with, such as exit, http_status or timeout"`
	Sample   string    `json:"sample" doc:"the newest error"`
	Run      string    `json:"run" doc:"ID of the run that had it"`
	Count    int       `json:"count"`
	Jobs     []string  `json:"jobs" doc:"whose they are, most letters first, at most 10"`
	JobCount int       `json:"job_count" doc:"of how many jobs they are"`
	FirstAt  time.Time `json:"first_at" doc:"when the oldest ended"`
	LastAt   time.Time `json:"last_at" doc:"when the newest ended"`
}

// Redrive queues dead letters again: either those listed, or up to max of those that match.
type Redrive struct {
	Runs      []string    `json:"runs,omitempty" minItems:"1" maxItems:"1000" minLength:"11" maxLength:"152" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$" doc:"IDs of runs"`
	Matching  *DeadFilter `json:"matching,omitempty" doc:"instead of runs; {} matches all"`
	Cursor    string      `json:"cursor,omitempty" minLength:"1" maxLength:"4096" doc:"of matching: next of the answer before, with the same filter"`
	Max       int         `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"of matching: how many at most; by default as many as 15 s allow, up to 1000"`
	PerSecond float64     `json:"per_second,omitempty" minimum:"0.1" maximum:"10000" doc:"how fast the runs start, 10 by default"`
	DryRun    bool        `json:"dry_run,omitempty" doc:"only count, and show what would become of the first few"`

	EndedBefore *time.Time `json:"ended_before,omitempty" doc:"only dead letters that ended before this time: a request that is sent a second time does not redrive what the first one has, and has ended again. Of runs, the others are refused with precondition_failed"`
}

// Discard settles dead letters without running them again: either those listed, or up to max of those that match.
type Discard struct {
	Runs     []string    `json:"runs,omitempty" minItems:"1" maxItems:"1000" minLength:"11" maxLength:"152" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$" doc:"IDs of runs"`
	Matching *DeadFilter `json:"matching,omitempty" doc:"instead of runs; {} matches all"`
	Cursor   string      `json:"cursor,omitempty" minLength:"1" maxLength:"4096" doc:"of matching: next of the answer before, with the same filter"`
	Max      int         `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"of matching: how many at most, 1000 by default"`
	DryRun   bool        `json:"dry_run,omitempty" doc:"only count, and show what would become of the first few"`
	Note     string      `json:"note,omitempty" maxLength:"200" doc:"for people, kept with each run"`
}

// DeadFilter chooses dead letters; what is left out chooses all.
type DeadFilter struct {
	Job     string     `json:"job,omitempty" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"`
	Error   string     `json:"error,omitempty" minLength:"1" maxLength:"240" doc:"part of the last error, in any letter case"`
	Pattern string     `json:"pattern,omitempty" minLength:"1" maxLength:"100" doc:"pattern of the last error, as the groups of dead letters have it"`
	From    *time.Time `json:"from,omitempty" doc:"ended at this time or later"`
	To      *time.Time `json:"to,omitempty" doc:"ended before this time"`
}
