package belfry

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Option changes how [Open] opens.
type Option struct{ apply func(*config) }

type config struct {
	concurrency int
	log         *slog.Logger
	token       string
	queue       string
	callbacks   dispatch.DefaultCallbacks
}

// Concurrency is how many handlers run at once in this process. Default 50: most of them wait for others.
func Concurrency(n int) Option { return Option{func(c *config) { c.concurrency = n }} }

// Logger takes what Belfry itself has to say, the end of each attempt included. Default: warnings and errors go to
// [slog.Default]. What handlers log is kept with their runs instead; see [Job].
func Logger(log *slog.Logger) Option { return Option{func(c *config) { c.log = log }} }

// Token is the credential for a remote Belfry, as `belfry token create` prints it. To handle and schedule jobs it needs the scopes read, write,
// run and work; to enqueue and look, read and run.
func Token(token string) Option { return Option{func(c *config) { c.token = token }} }

// RemoteQueue is the queue of a remote Belfry whose runs programs like this one work on, as `belfry serve --remote-queue` was told.
// Default "default". A scheduler in this process has no use for it, nor for a [Token]: a program may give them always, and choose by
// its address.
func RemoteQueue(name string) Option { return Option{func(c *config) { c.queue = name }} }

// OnAnyFailed is the job that is called when a run of any job is given up that names none for that itself, by its own `on` or by [OnFailed]. Its run gets
// what happened as its payload: a [Told]. It need not be stored yet; while there is no such job, nobody is told. Runs of the job itself call nothing.
//
// It is a setting of the scheduler in this process. A remote Belfry goes by its own, which `belfry serve --on-failed` names: there Open warns that this is not
// in force.
func OnAnyFailed(job string) Option {
	return Option{func(c *config) { c.callbacks.Failed = dispatch.DefaultCallee{"": job} }}
}

// OnAnyMissed is OnAnyFailed for fires that were missed, and dropped as the job says by [CatchUpNone] and the like: once for a whole stretch of them.
func OnAnyMissed(job string) Option {
	return Option{func(c *config) { c.callbacks.Missed = dispatch.DefaultCallee{"": job} }}
}

// OnAnyRecovered is OnAnyFailed for a run that has succeeded while the one that had ended before it was given up. Every run that succeeds reads two records for
// it.
func OnAnyRecovered(job string) Option {
	return Option{func(c *config) { c.callbacks.Recovered = dispatch.DefaultCallee{"": job} }}
}

// forAll is an option that names a job for all jobs.
type forAll struct {
	option string
	callee dispatch.DefaultCallee
}

// named are those that the options name.
func (c *config) named() []forAll {
	all := []forAll{{"OnAnyFailed", c.callbacks.Failed}, {"OnAnyMissed", c.callbacks.Missed}, {"OnAnyRecovered", c.callbacks.Recovered}}
	return slices.DeleteFunc(all, func(f forAll) bool { return f.callee == nil })
}

func (c *config) checkCallbacks() error {
	var wrong []error
	for _, f := range c.named() {
		if name := f.callee[""]; job.ValidName(name) != nil {
			wrong = append(wrong, invalid.Field(f.option, name, "the name of a job: 1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit"))
		}
	}
	return errors.Join(wrong...)
}

// JobOption changes how [Handle] has a job run.
type JobOption struct{ apply func(*job.Definition) }

// Timeout is how long one attempt may take, from 1s to 24h: then the handler's context ends, and the attempt has failed. Default
// 30s.
func Timeout(d time.Duration) JobOption {
	return JobOption{func(def *job.Definition) { def.Timeout = schedule.Duration(d) }}
}

// MaxAttempts is how many attempts a run has before it is [Dead], 1 to 100. Default 15.
func MaxAttempts(n int) JobOption {
	return JobOption{func(def *job.Definition) { def.Retry.MaxAttempts = n }}
}

// Backoff is the shortest wait between attempts, and the longest. The wait before the second attempt is drawn evenly from initial to twice
// that, so that what failed together is not tried together; each further wait is twice as long. Default 1s and 1h, by which 15 attempts go on
// for about 3 h.
func Backoff(initial, most time.Duration) JobOption {
	return JobOption{func(def *job.Definition) {
		def.Retry.Initial, def.Retry.Max = schedule.Duration(initial), schedule.Duration(most)
	}}
}

// AtMostOnce has a run started once and never again: for effects that are worse twice than not at all. A run whose process died
// in it, or that ran into its timeout, ends as [Unknown].
func AtMostOnce() JobOption {
	return JobOption{func(def *job.Definition) { def.Guarantee = job.AtMostOnce }}
}

// SkipOverlap lets at most n runs of a job be in progress at once, 1 to 1000: a run that is due while as many are is [Skipped], and its Why
// names them. A run is in progress from its start until it has ended: the waits between its attempts count. Default: any number.
func SkipOverlap(n int) JobOption {
	return JobOption{func(def *job.Definition) { bound(def, job.Overlap{Policy: job.OverlapSkip, Limit: n}) }}
}

// QueueOverlap lets at most n runs of a job be in progress at once, 1 to 1000: a run that is due while as many are is [Waiting], and starts in its turn: by
// when it was due, then by when it was asked for. Up to waiting runs may wait, 0 to 100000; the next one is [Skipped], and its Why says so.
func QueueOverlap(n, waiting int) JobOption {
	return JobOption{func(def *job.Definition) {
		bound(def, job.Overlap{Policy: job.OverlapQueue, Limit: n, MaxWaiting: &waiting})
	}}
}

// QueueOneOverlap lets at most n runs of a job be in progress at once, 1 to 1000, and one more wait: a run that is due while one waits is [Skipped].
func QueueOneOverlap(n int) JobOption {
	return JobOption{func(def *job.Definition) { bound(def, job.Overlap{Policy: job.OverlapQueueOne, Limit: n}) }}
}

// QueueLatestOverlap lets at most n runs of a job be in progress at once, 1 to 1000, and the latest of the others wait: whoever waited before it is [Skipped].
// So what starts next is always about the newest state of things.
func QueueLatestOverlap(n int) JobOption {
	return JobOption{func(def *job.Definition) { bound(def, job.Overlap{Policy: job.OverlapQueueLatest, Limit: n}) }}
}

// CancelOverlap lets at most n runs of a job be in progress at once, 1 to 1000. A later run has the earliest of them asked to stop, as by [Belfry.Cancel], and starts when that
// has ended; no attempt follows it. One run waits at most: whoever waited before is [Skipped].
func CancelOverlap(n int) JobOption {
	return JobOption{func(def *job.Definition) { bound(def, job.Overlap{Policy: job.OverlapCancel, Limit: n}) }}
}

// ReplaceOverlap lets at most n runs of a job be in progress at once, 1 to 1000. A later run ends the earliest of them and starts at once: that one is [Cancelled], or
// [Unknown] where it may start at most once and had. Its handler is told to stop, and whatever it returns is not kept. Whoever waited is [Skipped].
func ReplaceOverlap(n int) JobOption {
	return JobOption{func(def *job.Definition) { bound(def, job.Overlap{Policy: job.OverlapReplace, Limit: n}) }}
}

// StrictOverlap lets one run of a job be in progress at once: a run that is due meanwhile is [Waiting], and starts in its turn. After a run that ended as [Failed], [Dead] or [Unknown] nobody
// starts until that run is retried and succeeds, or somebody opens the gate of the job, see [Belfry.OpenLine]. Up to waiting runs may wait, 0 to 100000; the next one is [Skipped], and its Why says so.
func StrictOverlap(waiting int) JobOption {
	return JobOption{func(def *job.Definition) {
		bound(def, job.Overlap{Policy: job.OverlapStrict, Limit: 1, MaxWaiting: &waiting})
	}}
}

// OverlapKey gives each value of a text with expressions a limit and a line of its own, beside [SkipOverlap], [QueueOverlap], [QueueOneOverlap],
// [QueueLatestOverlap], [CancelOverlap], [ReplaceOverlap] or [StrictOverlap]: under "${ .payload.customer }" one run of a customer waits for another of the same customer, and for no other. The expressions are jq
// over .payload, .job, .labels and .nominal_time. Where one fails, or the value is no text, number or boolean, the run is [Failed].
func OverlapKey(key string) JobOption {
	return JobOption{func(def *job.Definition) { def.Overlap.Key = key }}
}

// bound leaves a key that was given before.
func bound(def *job.Definition, o job.Overlap) {
	o.Key = def.Overlap.Key
	def.Overlap = o
}

// Gates has each run of a job pass gates that have names of their own, and take one unit of each: however many jobs name a gate, no more units than its limit are
// in progress at once. A run that finds no room is [Waiting]. The gates are made beforehand, by [Belfry.SetGate] or belfry gate apply. May be given several times, with 8 gates in all.
func Gates(names ...string) JobOption {
	return JobOption{func(def *job.Definition) {
		for _, name := range names {
			def.Gates = append(def.Gates, job.GateUse{Gate: name, Units: job.DefaultUnits})
		}
	}}
}

// GateUnits is [Gates] for one gate of which each run takes n units, 1 to 1000.
func GateUnits(name string, n int) JobOption {
	return JobOption{func(def *job.Definition) { def.Gates = append(def.Gates, job.GateUse{Gate: name, Units: n}) }}
}

// GateKey is [Gates] for one gate that counts, and has runs wait, for each value of a text with expressions by itself: by "${ .payload.customer }" as many units of a
// customer as the gate's limit are in progress at once, over all jobs. The text is as that of [OverlapKey].
func GateKey(name, key string) JobOption {
	return JobOption{func(def *job.Definition) {
		def.Gates = append(def.Gates, job.GateUse{Gate: name, Units: job.DefaultUnits, Key: key})
	}}
}

// ExpiresAfter skips a run that has not started so long after its time, 1 s to 5 years: its Why has the code "expired". A run that was opened again by hand has its time
// from then on, and one that has had an attempt never expires. Default: a run starts however late that is.
func ExpiresAfter(d time.Duration) JobOption {
	return JobOption{func(def *job.Definition) { def.ExpiresAfter = schedule.Duration(d) }}
}

// PauseAfter pauses a job when so many of its runs in a row, 1 to 1,000, have ended badly: as failed, dead or unknown. A success begins the count anew, and so does
// an edit of the job; a run that was cancelled or skipped changes nothing. The reason of the pause names the last run. Default: none does.
func PauseAfter(n int) JobOption {
	return JobOption{func(def *job.Definition) { def.PauseAfter = n }}
}

// Deadline stops a run that has not ended so long after its time, 1 s to 5 years, over all its attempts: it ends as cancelled, its Why has the code "deadline", and it
// calls what [OnFailed] does. A run that was opened again by hand has its time from then on. Default: only each attempt has its [Timeout].
func Deadline(d time.Duration) JobOption {
	return JobOption{func(def *job.Definition) { def.Deadline = schedule.Duration(d) }}
}

// HighPriority has a job's runs go before others that wait.
func HighPriority() JobOption {
	return JobOption{func(def *job.Definition) { def.Priority = queue.High }}
}

// LowPriority has a job's runs go after others that wait. They keep a share of the workers, so they never starve.
func LowPriority() JobOption {
	return JobOption{func(def *job.Definition) { def.Priority = queue.Low }}
}

// Retention is how long ended runs are kept with their results and logs, from 24h to five years. Default 30 days.
func Retention(d time.Duration) JobOption {
	return JobOption{func(def *job.Definition) { def.Retention = schedule.Duration(d) }}
}

// ScheduleOption changes how [Belfry.Schedule] has a job fire.
type ScheduleOption struct{ apply func(*timetable) }

// timetable is what Schedule is told, as far as a definition holds it.
type timetable struct {
	job     string // "": the handler's
	spec    schedule.Spec
	maxRuns int
	catchUp job.CatchUpMode
	payload any
}

// In is the time zone whose wall clock the cron expression reads, by its IANA name: In("Europe/Berlin"). Default UTC.
func In(zone string) ScheduleOption {
	return ScheduleOption{func(t *timetable) { t.spec.Timezone = zone }}
}

// Payload is what each fire hands to the handler: a value of its payload's type, up to 8 KB of JSON. Default, and for nil: the zero
// value.
func Payload(v any) ScheduleOption { return ScheduleOption{func(t *timetable) { t.payload = v }} }

// As names the job, where one handler has several schedules. Default: the name of the handler.
func As(job string) ScheduleOption { return ScheduleOption{func(t *timetable) { t.job = job }} }

// Jitter spreads the starts over up to d after each fire, at most 10m, so that jobs of the same minute do not all start in its
// first second.
func Jitter(d time.Duration) ScheduleOption {
	return ScheduleOption{func(t *timetable) { t.spec.Jitter = schedule.Duration(d) }}
}

// MaxRuns ends the schedule after so many fires, 1 to 10,000, whatever becomes of them. They are counted from when the schedule or this number was last changed:
// another start of the program, a pause, or another option changes nothing. Default: the schedule goes on.
func MaxRuns(n int) ScheduleOption { return ScheduleOption{func(t *timetable) { t.maxRuns = n }} }

// CatchUpAll runs every fire that was missed, oldest first. A fire that is found more than 3 s after its time is missed, unless it is its
// job's newest and at most 5 minutes old. By default the newest fire runs, and the others are recorded as [Skipped].
func CatchUpAll() ScheduleOption {
	return ScheduleOption{func(t *timetable) { t.catchUp = job.CatchUpAll }}
}

// CatchUpNone runs none of the fires that were missed, which are those that CatchUpAll says; they are recorded as [Skipped].
func CatchUpNone() ScheduleOption {
	return ScheduleOption{func(t *timetable) { t.catchUp = job.CatchUpNone }}
}

// EnqueueOption changes when and how often [Enqueue] makes a run.
type EnqueueOption struct{ apply func(*control.Request) }

// At is when the run is to start; a time that is over means now. At most five years ahead.
func At(t time.Time) EnqueueOption { return EnqueueOption{func(r *control.Request) { r.At = &t }} }

// Delay is how long from now the run is to start. At most five years.
func Delay(d time.Duration) EnqueueOption {
	return EnqueueOption{func(r *control.Request) { r.Delay = &d }}
}

// IgnorePause has the run start although its job is paused, by [Belfry.Pause] or an operator. Without it, the run is held until the job is resumed.
func IgnorePause() EnqueueOption {
	return EnqueueOption{func(r *control.Request) { r.IgnorePause = true }}
}

// An OverlapPolicy says what becomes of a run that is due while as many others of its job are in progress as may be.
type OverlapPolicy = job.OverlapPolicy

// The policies that [Overlap] takes. What each does is said at the option of the job that has it: OverlapSkip at [SkipOverlap], and so on.
const (
	OverlapAllow       = job.OverlapAllow // the run starts, whatever else is in progress, and is in nobody's way
	OverlapSkip        = job.OverlapSkip
	OverlapQueue       = job.OverlapQueue
	OverlapQueueOne    = job.OverlapQueueOne
	OverlapQueueLatest = job.OverlapQueueLatest
	OverlapCancel      = job.OverlapCancel  // those that wait are skipped, of a strict job as well
	OverlapReplace     = job.OverlapReplace // so are they here
)

// Overlap has the run go by this policy in place of that of its job, whose key, limit and bound of the line it keeps to. Of a job without such a policy only OverlapAllow is
// taken, another one is refused with [CodeInvalid].
func Overlap(policy OverlapPolicy) EnqueueOption {
	return EnqueueOption{func(r *control.Request) { r.Overlap.Policy = policy }}
}

// Told is the payload of a job that is called when a run of another has ended, as by [OnFailed]: what happened, and the run as the API shows it.
type Told = run.Told

// OnFailed is the job that is called when the run is given up, in place of what its own job names. It must exist, and its run gets what happened as
// its payload: a [Told].
func OnFailed(job string) EnqueueOption {
	return EnqueueOption{func(r *control.Request) { r.Callees.Failed = job }}
}

// OnSucceeded is OnFailed for a run that has succeeded.
func OnSucceeded(job string) EnqueueOption {
	return EnqueueOption{func(r *control.Request) { r.Callees.Succeeded = job }}
}

// Key makes the request idempotent: for a week after the run was due, the same request under the same key gives the same run, however
// often it is sent. Another request under the key is refused with [CodeKeyReused]. Up to 255 bytes.
func Key(key string) EnqueueOption { return EnqueueOption{func(r *control.Request) { r.Key = key }} }

// specOf reads a cron expression, or "@every 90s".
func specOf(cron string) (schedule.Spec, error) {
	every, found := strings.CutPrefix(cron, "@every ")
	if !found {
		return schedule.Spec{Cron: cron}, nil
	}
	d, err := schedule.ParseDuration(strings.TrimSpace(every))
	if err != nil {
		return schedule.Spec{}, fmt.Errorf("schedule.every: %w", err)
	}
	return schedule.Spec{Every: d}, nil
}

// encode gives the JSON of a payload. It refuses text that whoever decodes it would have to change.
func encode(payload any) (json.RawMessage, error) {
	text, err := wire.Encode(payload)
	if wrong := invalid.All(err); len(wrong) > 0 {
		return nil, refused(invalid.Under("payload", err))
	}
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Message: fmt.Sprintf("payload: %T has no JSON form: %v", payload, err), cause: err}
	}
	if broken := invalid.BrokenText(text); broken != nil {
		return nil, refused(invalid.Under("payload", broken.Err()))
	}
	return text, nil
}
