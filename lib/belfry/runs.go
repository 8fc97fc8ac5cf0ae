package belfry

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
)

// State is where a run stands.
type State string

// The states. A run goes from Scheduled or Queued to Running, to Retrying and back as often as it has attempts, and ends in one of
// the others.
const (
	Scheduled State = "scheduled" // waits for its time
	Queued    State = "queued"    // is due, and waits for a worker or for its job to be resumed
	Waiting   State = "waiting"   // waits in line until others of its job have ended, see QueueOverlap
	Running   State = "running"
	Retrying  State = "retrying" // waits for its next attempt
	Succeeded State = "succeeded"
	Failed    State = "failed" // for good: see Permanent
	Cancelled State = "cancelled"
	Skipped   State = "skipped" // missed in a downtime, see CatchUpAll, or one too many at once, see SkipOverlap and QueueOverlap
	Dead      State = "dead"    // all attempts are spent, or it killed its process again and again
	Unknown   State = "unknown" // of AtMostOnce: whether it was done cannot be known
)

// Ended tells whether the state is one that only [Belfry.Retry] leaves.
func (s State) Ended() bool {
	switch s {
	case Scheduled, Queued, Waiting, Running, Retrying:
		return false
	}
	return true
}

// Run is one execution of a job, as it stood when it was read.
type Run struct {
	ID      string    `json:"id"`
	Job     string    `json:"job"`
	State   State     `json:"state"`
	Nominal time.Time `json:"nominal_time"`        // when it was asked for
	Attempt int       `json:"attempt"`             // attempts started so far
	Started time.Time `json:"started_at,omitzero"` // of the newest attempt
	Ended   time.Time `json:"ended_at,omitzero"`
	Error   string    `json:"error,omitempty"` // of the newest attempt that failed

	Why *Why `json:"why,omitempty"` // of one that SkipOverlap, QueueOverlap or ExpiresAfter has skipped, or Deadline has stopped: what for

	// Result is what the handler left in Job.Result. [Belfry.Runs] leaves it out.
	Result json.RawMessage `json:"result,omitempty"`
}

// Why says what a run was skipped for.
type Why struct {
	Code     string    `json:"code"`           // "overlap", or "full" where as many waited as may, "closed" where that was at a closed gate, "max_wait" where it had waited for as long as the gate lets runs wait, or "expired", of which Gate and Policy are empty
	Gate     string    `json:"gate"`           // where it was skipped: "job:NAME" is the job's own limit, another name a gate of Gates
	Key      string    `json:"key,omitempty"`  // where OverlapKey or GateKey gives each value a limit: the value; of one longer than 40 bytes, or that cannot be shown, "sha256:" and its hash
	Policy   string    `json:"policy"`         // "skip", "queue", "queue_one", "queue_latest", "cancel", "replace", "strict" or "allow"; "" at a gate of Gates
	Since    time.Time `json:"since,omitzero"` // of "max_wait": since when it had waited in line
	InTheWay []string  `json:"in_the_way"`     // IDs of the runs that were in progress, and of those that waited, at most 10; under "queue_latest", "cancel" and "replace" of the later one
	Text     string    `json:"text"`           // for people: a clause, as after "it was skipped, since"
}

// Enqueue asks for a run of a job: now, or as [At] and [Delay] say. When it returns nil, the run is durable, and will be run
// whatever happens to this process. Where the handler of the job is in this process, the payload must be of its type. A payload with
// text that is not UTF-8 is refused with [CodeInvalid].
//
// It may be called before and after [Belfry.Start], and by handlers. A request that may be sent twice, as by a form or after an error,
// makes one run if it has a [Key].
func Enqueue[T any](ctx context.Context, b *Belfry, job string, payload T, opts ...EnqueueOption) (Run, error) {
	if err := b.fits(job, payload); err != nil {
		return Run{}, err
	}
	text, err := encode(payload)
	if err != nil {
		return Run{}, err
	}
	request := control.Request{Payload: text}
	for _, o := range opts {
		o.apply(&request)
	}
	if err := b.defineAll(ctx, job, request); err != nil {
		return Run{}, err
	}
	r, err := b.engine.trigger(ctx, job, request)
	return r, refused(err)
}

// Run reads a run.
func (b *Belfry) Run(ctx context.Context, id string) (Run, error) {
	r, err := b.engine.run(ctx, id)
	return r, refused(err)
}

// Wait waits until a run has ended, in whatever state, and gives it with its result; or ctx's error, with the run as it stands. It
// looks again and again, at most a second apart.
func (b *Belfry) Wait(ctx context.Context, id string) (Run, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		r, err := b.Run(ctx, id)
		if err != nil || r.State.Ended() {
			return r, err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return r, ctx.Err()
		}
	}
}

// Runs gives the runs of a job, the newest nominal time first, up to the first error; of all jobs for "". With states, those that
// are in one of them: Runs(ctx, "email", Dead, Failed) gives the dead letters.
func (b *Belfry) Runs(ctx context.Context, job string, states ...State) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for r, err := range b.engine.runs(ctx, job, states) {
			if !yield(r, refused(err)) || err != nil {
				return
			}
		}
	}
}

// Cancel ends a run that has not started, and asks the handler of a running one to stop by ending its context.
func (b *Belfry) Cancel(ctx context.Context, id, reason string) error {
	return refused(b.engine.cancel(ctx, id, reason))
}

// Retry runs an ended run again, with all its attempts. Of one that has succeeded, or is [Unknown], the effect may then happen
// twice.
func (b *Belfry) Retry(ctx context.Context, id string) error {
	return refused(b.engine.retry(ctx, id))
}

// Log gives what the newest attempt of a run has logged through Job.Log, nil for nothing.
func (b *Belfry) Log(ctx context.Context, id string) ([]byte, error) {
	text, err := b.engine.log(ctx, id)
	return text, refused(err)
}

// Pause stops a job from making runs until [Belfry.Resume], over restarts too; what has started goes on. Fires of the time in
// between are not made up; runs that were enqueued wait.
func (b *Belfry) Pause(ctx context.Context, job, reason string) error {
	return refused(b.engine.pause(ctx, job, reason))
}

// Resume ends a pause; of a job that is not paused it is no error.
func (b *Belfry) Resume(ctx context.Context, job string) error {
	return refused(b.engine.resume(ctx, job))
}

// Opening says which line of a job is to go on, see [Belfry.OpenLine]. The zero value: the line of the job, behind whichever run it stands still.
type Opening struct {
	Run    string    // ID of the run behind which the line stands still: only if it is that one
	Ended  time.Time // with Run, its Run.Ended as it was seen: only if it has not been retried, and ended badly again, since
	Key    string    // where [OverlapKey] gives each value a line: the value; not needed with Run
	Reason string    // for people, at most 256 bytes; kept with the gate of the job
}

// OpenLine lets the line of a job with [StrictOverlap] go on that stands still behind a run which ended as [Failed], [Dead] or [Unknown]: whoever is next starts. The run stays as it is;
// [Belfry.Retry] runs it again instead. Without Run it changes nothing where no line stands still.
//
// With Run, the line is opened behind that run alone; with Ended, behind that end alone. The error has [CodeNotBlocking] where the line stands still behind another run or a later end, which
// it names, where that run or its retry is in progress, or where no line stands still behind any run. With both it is safe to ask again after an error, as [CodeUnreachable]: that lets
// nobody go whose end was not seen, and an opening that has been done already is answered as the first time.
func (b *Belfry) OpenLine(ctx context.Context, job string, o Opening) error {
	return refused(b.engine.openLine(ctx, job, o))
}
