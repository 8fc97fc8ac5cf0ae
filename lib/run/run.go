package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// State is where a run stands. docs/run.md draws the graph; the methods in decide.go are its only edges.
type State uint8

// The states. Their numbers are stored.
const (
	// Fenced is no run: the mark of an edit that no claim of a generation below Run.Generation may pass.
	Fenced    State = iota + 1
	Scheduled       // on demand, not yet claimed: waits for its time or for its job to be resumed
	Queued          // claimed, and sent or about to be
	Running         // an attempt holds the lease
	Retrying        // between attempts, waits for NextAt
	Succeeded
	Failed    // failed for good
	Cancelled // by request, or because its job was deleted
	Skipped   // dropped by the catch-up policy, or one too many at a gate: see Missed
	Dead      // attempts spent, or killed its workers
	Unknown   // at most once, and its worker died in it
)

var stateNames = [...]string{Fenced: "fenced", Scheduled: "scheduled", Queued: "queued", Running: "running", Retrying: "retrying",
	Succeeded: "succeeded", Failed: "failed", Cancelled: "cancelled", Skipped: "skipped", Dead: "dead", Unknown: "unknown"}

func (s State) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Suspended:
		return "suspended"
	}
	if int(s) < len(stateNames) && stateNames[s] != "" {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", s)
}

// Waiting is a Queued run that waits in the line of a gate. No record holds it: see Run.Stage.
const Waiting State = 100

// Suspended is a step that waits for a time to come, and then ends. No record holds it either: see Run.Suspended.
const Suspended State = 101

// States lists those that a user sees, in the order of a run's life.
func States() []State {
	return []State{Scheduled, Queued, Waiting, Running, Retrying, Succeeded, Failed, Cancelled, Skipped, Dead, Unknown}
}

// ParseState reads the name of a state that a user sees.
func ParseState(name string) (State, bool) {
	for _, s := range States() {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Ended tells whether the state is terminal: only an explicit retry or redrive leaves it.
func (s State) Ended() bool { return s >= Succeeded && s < Waiting }

// Bad tells whether a run has ended other than well, and for nobody's word: under strict its job's line stands still then. What was cancelled or skipped has not.
func (s State) Bad() bool { return s == Failed || s == Dead || s == Unknown }

// DeadLetter tells whether runs of the state are listed as dead letters.
func (s State) DeadLetter() bool { return s == Dead || s == Failed }

// Trigger is what asked for the run.
type Trigger uint8

// The triggers. Their numbers are stored.
const (
	BySchedule Trigger = iota + 1
	ByRequest
)

func (t Trigger) String() string {
	if t == BySchedule {
		return "schedule"
	}
	return "request"
}

// Run is one execution of a job. All times are Unix milliseconds, 0 for none; the record of a run stays under 1 KB, one write
// unit of DynamoDB, which is why larger data is referenced, and errors are cut and old attempts dropped: see fit.
type Run struct {
	ID      ID     `cbor:"-"`
	Tenant  string `cbor:"-"`
	Version uint64 `cbor:"-"` // of its item: grows with every write

	State      State          `cbor:"1,keyasint"`
	Generation int64          `cbor:"2,keyasint,omitempty"`  // of the definition that it runs; of the edit, for a fence
	Fired      int64          `cbor:"27,keyasint,omitempty"` // the generation that claimed it, where it was opened again under another
	Trigger    Trigger        `cbor:"3,keyasint,omitempty"`
	Priority   queue.Priority `cbor:"4,keyasint,omitempty"`
	Epoch      uint64         `cbor:"5,keyasint,omitempty"` // of the tick that claimed it, 0 for a claim by the API
	Created    int64          `cbor:"6,keyasint,omitempty"`
	Started    int64          `cbor:"7,keyasint,omitempty"` // the newest attempt
	Ended      int64          `cbor:"8,keyasint,omitempty"`

	Attempt  int    `cbor:"9,keyasint,omitempty"`  // attempts started, over all redrives
	Failures int    `cbor:"10,keyasint,omitempty"` // of the job, since the last redrive: what the retry budget counts
	Crashes  int    `cbor:"11,keyasint,omitempty"` // of workers and machines, since the last redrive
	Fence    uint64 `cbor:"12,keyasint,omitempty"` // the version that the newest attempt started under
	Worker   string `cbor:"13,keyasint,omitempty"` // who holds the lease
	Lease    int64  `cbor:"14,keyasint,omitempty"` // until when
	NextAt   int64  `cbor:"15,keyasint,omitempty"` // Retrying: not before; Queued to make up for a missed fire: its place; of a step that waits: until when

	Cancel bool   `cbor:"16,keyasint,omitempty"` // asked for while Running
	Reason string `cbor:"17,keyasint,omitempty"` // why it was cancelled, skipped, reopened or given up

	Payload  Ref       `cbor:"18,keyasint,omitzero"` // nothing: the job's own
	Result   Ref       `cbor:"19,keyasint,omitzero"`
	Log      string    `cbor:"20,keyasint,omitempty"` // key of the log of the newest attempt that has ended and wrote something
	Attempts []Attempt `cbor:"21,keyasint,omitempty"` // the last maxAttempts of them, oldest first

	// Of a Skipped run that stands for a whole stretch of missed fires, and is the decision that all ticks adopt:
	Through int64 `cbor:"22,keyasint,omitempty"` // the last skipped fire
	Count   int   `cbor:"23,keyasint,omitempty"` // how many were skipped; at least so many where it is maxCounted, 0 where a record before counts them

	// Pauses says of an ended run that its job is to be paused for it: with this end as many have ended badly in a row as the job says. Whoever finds it so
	// pauses the job, unless that was edited since.
	Pauses bool `cbor:"60,keyasint,omitempty"`

	Trace trace.Context `cbor:"26,keyasint,omitzero"` // the span that the run began with, or the step's own, which its attempts go below; none where nobody looks

	// Opening is the version that the newest reopening wrote, or that gave it another place in time, 0 for a run of which neither was done, or whose job
	// bounded nothing before and after. A place at a gate that the run took in an earlier opening is not its own any more.
	Opening uint64 `cbor:"28,keyasint,omitempty"`

	// Why says of a Skipped run that no missed fires are behind what was in its way, and of one that has given way to a later run, or was asked to, by which policy and to whom.
	Why Why `cbor:"29,keyasint,omitzero"`

	Wait Wait `cbor:"30,keyasint,omitzero"` // of a Queued run that waits in the line of a gate, or has waited there

	// Placed says that the run was let in at a gate, since it began or was opened again: its end makes room at those that its definition has it pass. A run that was
	// cancelled between its entry and its start does not say so.
	Placed bool `cbor:"31,keyasint,omitempty"`

	// GateKey says of a run that has Wait.Gate, Why.Gate or Placed at which of its job's own gates that is, or it is as well, where the job has one for each value of a key: see
	// gate.KeyOf. It is "" where the job has one for all.
	GateKey string `cbor:"54,keyasint,omitempty"`

	// Keeps says of a run that had ended badly under strict, and was opened again, that GateKey is where it has kept its place, whatever its definition says by now: "" for the gate of
	// all runs. It says so in that opening.
	Keeps bool `cbor:"62,keyasint,omitempty"`

	// NamedKeys are of a run that says NamedGates the keys of those gates, as gate.KeyOf gives them, in the order in which its definition names gates: "" for one
	// that it passes without a key. Empty where it passes all so.
	NamedKeys []string `cbor:"58,keyasint,omitempty"`

	// NamedGates says of a run that says Placed, or waits, that its definition has it pass gates that jobs name: its end makes room there too.
	NamedGates bool `cbor:"56,keyasint,omitempty"`

	// Released is when somebody let the run go to the front of the line that it waited in, Unix ms, since it was claimed or opened again.
	Released int64 `cbor:"55,keyasint,omitempty"`

	Releasing Releasing `cbor:"57,keyasint,omitzero"` // who did, and what for

	// Discarded says of a dead letter that somebody has settled it without running it again. Nothing but a reopening writes the run after that.
	Discarded Discarded `cbor:"32,keyasint,omitzero"`

	Callback Callback `cbor:"33,keyasint,omitzero"` // of a run that tells of another one's end

	// Overdue says of a workflow's run that its time was over before it had ended, or that the failure of a step stops it: it is being cancelled for that, and
	// ends as failed.
	Overdue bool    `cbor:"34,keyasint,omitempty"`
	Callees Callees `cbor:"36,keyasint,omitzero"` // of a run on demand, whose own request names whom to call

	IgnorePause bool `cbor:"40,keyasint,omitempty"` // of a run on demand: no pause of its job holds it

	// Overlap is the policy that the run was asked for with, in place of its job's, 0 for that. It keeps it when it is opened again.
	Overlap job.OwnPolicy `cbor:"64,keyasint,omitempty"`

	// StartBy is until when the run may start, Unix ms: once that is over it is skipped. 0 where it may however late, and once an attempt of it
	// has started; the run of a workflow keeps it when it is opened.
	StartBy int64 `cbor:"48,keyasint,omitempty"`

	// EndBy is until when the run is to have ended, Unix ms: once that is over it is stopped, whatever it does. 0 where it has no deadline, before it is
	// queued, and of what has ended.
	EndBy int64 `cbor:"61,keyasint,omitempty"`

	Unended []byte `cbor:"52,keyasint,omitempty"` // of a step: what its input names and had not ended when it was released, a bit for each node of the workflow
	Stopped []byte `cbor:"59,keyasint,omitempty"` // of a workflow's run: which scopes were stopped, and why; see Stops
	Chose   string `cbor:"53,keyasint,omitempty"` // of a switch of a workflow: the path of the step that it chose

	Lag int64 `cbor:"44,keyasint,omitempty"` // of a step: ms from the end that it follows from, or the opening of its run, to its release

	Upto    int64 `cbor:"25,keyasint,omitempty"` // the horizon of the deciding tick: fires from Through to it are not missed
	Expires int64 `cbor:"24,keyasint,omitempty"` // when an ended run may be cleaned up
}

// Discarded is who has settled a dead letter, and when: no listing of dead letters has it any more.
type Discarded struct {
	At   int64  `cbor:"1,keyasint,omitempty"` // Unix ms
	By   string `cbor:"2,keyasint,omitempty"` // who asked for it, "" where nobody was asked who they are; at most MaxBy bytes are kept
	Note string `cbor:"3,keyasint,omitempty"` // for people, at most MaxNote characters
}

// Releasing is who has let a run go to the front of its line, and what for.
type Releasing struct {
	By     string `cbor:"1,keyasint,omitempty"` // who asked for it, "" where nobody was asked who they are; at most MaxBy bytes are kept
	Reason string `cbor:"2,keyasint,omitempty"` // for people, at most MaxNote characters
}

// IsZero tells whether nothing was said.
func (l Releasing) IsZero() bool { return l == Releasing{} }

// How much a record keeps of who has settled a dead letter, or released a run, in bytes, and of what they have to say, in characters.
const (
	MaxBy   = 128
	MaxNote = 200
)

// IsZero tells whether nobody has settled it.
func (d Discarded) IsZero() bool { return d == Discarded{} }

// Missed tells whether the run is a decision over missed fires: nobody ever claimed it. A run that was skipped for another reason was claimed,
// and that was its fate.
func (r Run) Missed() bool { return r.State == Skipped && r.Why.IsZero() }

// ClaimedFor is the generation that claimed a fire: whoever did has armed the next one before.
func (r Run) ClaimedFor() int64 {
	if r.Fired != 0 {
		return r.Fired
	}
	return r.Generation
}

// Tell has the lines of the log that ctx leads to say which run they are about.
func (r Run) Tell(ctx context.Context) context.Context {
	ctx = trace.Tell(ctx, slog.String("tenant", r.Tenant), slog.String("job", r.ID.Job), slog.Any("run", r.ID))
	if r.Trace.IsZero() {
		return ctx
	}
	return trace.With(ctx, trace.Origin{Context: r.Trace})
}

// Ref is data of a run: a few bytes in place, or the key of a blob.
type Ref struct {
	Inline []byte `cbor:"1,keyasint,omitempty"`
	Blob   string `cbor:"2,keyasint,omitempty"`
	Type   string `cbor:"3,keyasint,omitempty"` // media type of a result, "" where its target named none
	Cut    bool   `cbor:"4,keyasint,omitempty"` // only the beginning was kept
}

// Why says what a run was skipped for, or for whom it has given way.
type Why struct {
	Code     string   `cbor:"1,keyasint,omitempty"` // WhyOverlap, WhyFull, WhyClosed, WhyMaxWait, or WhyExpired, beside which stands nothing
	Gate     string   `cbor:"2,keyasint,omitempty"` // its name: job:NAME for a job's own
	Key      string   `cbor:"5,keyasint,omitempty"` // at a named gate: of which value, as gate.KeyOf gives it; "" where it is that of all
	Policy   string   `cbor:"3,keyasint,omitempty"` // by which it was skipped, as the job says it, such as skip
	Since    int64    `cbor:"6,keyasint,omitempty"` // of WhyMaxWait: since when it had waited in line, Unix ms
	InTheWay []string `cbor:"4,keyasint,omitempty"` // IDs of the runs that were in progress, those that entered first, and that waited; under queue_latest, cancel and replace the later one that takes its place; at most MaxInTheWay
}

// Wait is a run's wait in the line of a gate, and what is left of it until the run starts. All times are Unix ms.
type Wait struct {
	Gate  string `cbor:"1,keyasint,omitempty"` // in whose line it waits, "" for none
	Since int64  `cbor:"2,keyasint,omitempty"` // since when it waits

	// Rank orders the line, before nominal time and ID: when the run was due, made or opened again, whichever is last. It stays when the claim of a run is taken
	// away and given again. Of a run that was opened again and has not joined a line, it is when that was.
	Rank int64 `cbor:"3,keyasint,omitempty"`

	LetIn int64 `cbor:"4,keyasint,omitempty"` // when it was let in from the line

	Ahead int64 `cbor:"5,keyasint,omitempty"` // how far ahead of its rank it stands, in ms: by its priority at a named gate, or since somebody has let it go to the front
	Units int   `cbor:"6,keyasint,omitempty"` // how much of the limit of a named gate it wants; 0 stands for 1

	Key string `cbor:"7,keyasint,omitempty"` // at a named gate: of which value, as gate.KeyOf gives it; "" where it is that of all

	Asks string `cbor:"8,keyasint,omitempty"` // the policy by which it asks earlier runs that are in progress to stop, such as cancel; "" where it asks nobody

	// Until is until when it may wait in that line: once that is over it is skipped. 0 where it may wait for ever. It is settled when the run joins, by what the gate says then.
	Until int64 `cbor:"13,keyasint,omitempty"`
}

// IsZero tells whether the run has neither waited, nor a rank of its own.
func (w Wait) IsZero() bool { return w == Wait{} }

// ranked is what is left of a wait when the run has to enter anew.
func (w Wait) ranked() Wait { return Wait{Rank: w.Rank} }

// OverlapUnder gives the overlap of a definition as it holds for the run, which may have brought a policy of its own.
func (r *Run) OverlapUnder(def *job.Definition) job.Overlap {
	return def.Overlap.By(r.Overlap.Policy())
}

// Gated tells whether the run passes any gate under a definition: its job's own, or one that the definition names.
func (r *Run) Gated(def *job.Definition) bool {
	return len(def.Gates) > 0 || !def.Overlap.IsZero() && !r.OverlapUnder(def).IsZero()
}

// Heads tells whether the run is that of a workflow which is under way. It runs without a lease: its steps are what is started.
func (r Run) Heads() bool { return r.State == Running && r.Lease == 0 }

// Headed tells whether the run was begun as that of a workflow: without an attempt.
func (r Run) Headed() bool {
	n := len(r.Attempts)
	return r.Started != 0 && (n == 0 || r.Attempts[n-1].Started != r.Started)
}

// Waits tells whether the run waits in the line of a gate. It starts when somebody has let it in, so no message of it is of use before.
func (r Run) Waits() bool { return r.State == Queued && r.Wait.Gate != "" }

// Stage is where the run stands by its record alone: its State, Waiting, or Suspended. The edges of decide.go lead from one to another.
func (r Run) Stage() State {
	switch {
	case r.Waits():
		return Waiting
	case r.Suspended():
		return Suspended
	}
	return r.State
}

// Shown is the state that a user sees at an instant. What has not begun is Scheduled before it is due and Queued from then on, whichever of
// the two its record says: how far ahead a run is claimed and sent is nobody's business. due is when it may start, now the store's time,
// both Unix ms; control.Service.Shown finds them out.
func (r Run) Shown(due, now int64) State {
	switch stage := r.Stage(); {
	case stage != Scheduled && stage != Queued:
		return stage
	case due > now:
		return Scheduled
	default:
		return Queued
	}
}

// Changed is when the run came to where it stands, by its record: when it was made, became due, came into a line or out of it, when an attempt
// of it began or ended, or it did. due and now are those of Shown, all of it is Unix ms. What no record tells is left out: when a run that has
// ended was opened again, unless that gave it a rank.
func (r Run) Changed(due, now int64) int64 {
	at := max(r.Created, r.Started, r.Ended, r.Wait.Since, r.Wait.LetIn, r.Wait.Rank)
	for _, a := range r.Attempts {
		at = max(at, a.Started, a.Ended)
	}
	if r.Shown(due, now) == Queued {
		at = max(at, due)
	}
	return at
}

// CaughtUp is the reason of a run that makes up for a missed fire at a place in time, until it ends.
const CaughtUp = "catch-up of a missed fire"

// The codes of a run that was skipped since it was one too many at its job's own gate, or too late, and of a step whose condition was false.
const (
	WhyWhen    = "when"    // of a step: what it asks did not hold
	WhyOverlap = "overlap" // its policy lets nobody wait, or one at most
	WhyExpired = "expired" // it had not started within the time that its job gives it

	WhyMaxWait = "max_wait" // it had waited in line for as long as the gate lets runs wait
	// WhyDeadline is of one that was stopped since it had not ended by then.
	WhyDeadline = "deadline"
	WhyFull     = "full"   // as many wait as the policy allows
	WhyClosed   = "closed" // its gate was closed, and as many waited there as may
)

// MaxInTheWay is how many of the runs that were in the way a skipped run names; fewer where its record would grow over its size.
const MaxInTheWay = 10

// IsZero tells whether there is no reason.
func (y Why) IsZero() bool {
	return y.Code == "" && y.Gate == "" && y.Policy == "" && len(y.InTheWay) == 0
}

// IsZero tells whether there is no data.
func (r Ref) IsZero() bool { return len(r.Inline) == 0 && r.Blob == "" }

// MaxInline is how large a payload may be that a run holds in place; what is more goes to a blob. It is written with each change of the
// run.
const MaxInline = 400

// MaxResult is the same of a result, which is written once, with the end: a unit for each KB, where an object costs as much as eight
// units. With it an item is read in one unit still, of 4 KB.
const MaxResult = 3 << 10

// Outcome is how an attempt ended.
type Outcome uint8

// The outcomes. Their numbers are stored.
const (
	OutcomeRunning Outcome = iota
	OutcomeSucceeded
	OutcomeFailed
	OutcomeCrashed // the worker or its machine died, or its lease ran out
	OutcomeCancelled
	OutcomeHandedBack // the worker was stopped, or could not begin the call, and gave it back
)

var outcomeNames = [...]string{"running", "succeeded", "failed", "crashed", "cancelled", "handed_back"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", o)
}

// Attempt is one try.
type Attempt struct {
	Number  int     `cbor:"1,keyasint"`
	Started int64   `cbor:"2,keyasint,omitempty"`
	Ended   int64   `cbor:"3,keyasint,omitempty"`
	Outcome Outcome `cbor:"4,keyasint,omitempty"`
	Error   string  `cbor:"5,keyasint,omitempty"`
}

// How much of the attempts a record keeps at the most; less where it would grow over maxRecord.
const (
	maxAttempts   = 5
	newestError   = 240                // bytes of the newest attempt's error
	olderError    = 200 + len(cutMark) // bytes of each older one's
	leastError    = 40                 // bytes of the newest one's that stay whatever else the record holds
	maxReasonSize = 120
)

// Item gives the put of the run, under the condition that what was read (r.Version) still stands.
func (r Run) Item(attempt uint64) (store.Op, error) {
	key := r.ID.Key(r.Tenant)
	op := store.Op{Kind: store.Put, Key: key, If: store.At(store.Item{Version: r.Version}), Value: r.encode(key), Attempt: attempt}
	if r.Expires != 0 {
		op.Expires = time.UnixMilli(r.Expires)
	}
	return op, nil
}

// FromItem reads a run; an item that is not there gives ok false.
func FromItem(tenant string, id ID, item store.Item) (r Run, ok bool, err error) {
	if !item.Exists() {
		return Run{ID: id, Tenant: tenant}, false, nil
	}
	if r, err = read(item.Value); err != nil {
		return Run{}, false, fmt.Errorf("run %s: %w", id, err)
	}
	r.ID, r.Tenant, r.Version = id, tenant, item.Version
	r.Payload.Blob, r.Result.Blob, r.Log = r.longKey(r.Payload.Blob), r.longKey(r.Result.Blob), r.longKey(r.Log)
	r.Why, r.Wait = r.Why.with(id.Job), r.Wait.with(id.Job)
	return r, true, nil
}
