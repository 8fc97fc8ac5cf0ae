package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// operation is what a client does in one turn.
type operation uint8

const (
	opPut     operation = iota // create or replace
	opEdit                     // read, change a part, write back
	opGuarded                  // the same, unless somebody has changed it meanwhile
	opStale                    // the same, with what was read some time ago
	opCreate                   // only where there is none
	opPause
	opResume
	opDelete
	opAnew // delete, and create again at once
	opPutBatch
	opTrigger
	opTriggerAt
	opTriggerDelay
	opTriggerKey
	opRepeat // an earlier request again, under its key
	opReuse  // another request under an earlier key
	opTwice  // two requests under one key at once
	opRunBatch
	opCancel
	opRetry
	opForce
	opCancelMany
	opRetryMany
	opRedrive    // by ID
	opRedriveAll // by filter
	opGetJob
	opGetRun
	opListJobs
	opListRuns
	opListRunsOfJob
	opDeadLetters
	opLogs
	opPreview
	opStatus
	opForeign // of another tenant
	operations
)

var operationNames = [operations]string{"put", "edit", "guarded", "stale", "create", "pause", "resume", "delete", "anew", "put-batch",
	"trigger", "trigger-at", "trigger-delay", "trigger-key", "repeat", "reuse", "twice", "run-batch", "cancel", "retry", "force", "cancel-many", "retry-many",
	"redrive", "redrive-all", "get-job", "get-run", "list-jobs", "list-runs", "list-runs-of-job", "dead-letters", "logs", "preview", "status", "foreign"}

func (o operation) String() string { return operationNames[o] }

// usual are the weights of the operations where they are on.
var usual = [operations]float64{opPut: 2, opEdit: 2, opGuarded: 2, opStale: 0.5, opCreate: 1, opPause: 1.5, opResume: 2.5, opDelete: 0.7, opAnew: 0.7,
	opPutBatch: 0.5, opTrigger: 3, opTriggerAt: 1, opTriggerDelay: 2, opTriggerKey: 2, opRepeat: 2, opReuse: 0.7, opTwice: 0.7, opRunBatch: 0.7,
	opCancel: 1.5, opRetry: 1.5, opForce: 0.7, opCancelMany: 0.3, opRetryMany: 0.3, opRedrive: 1, opRedriveAll: 0.4,
	opGetJob: 1, opGetRun: 2, opListJobs: 0.7, opListRuns: 0.7, opListRunsOfJob: 0.7, opDeadLetters: 0.7, opLogs: 0.5, opPreview: 0.1, opStatus: 0.2, opForeign: 0.5}

// user is a client: it asks, and remembers a little of what it was answered.
type user struct {
	*Actor
	Role
	server *client.Client
	names  []string // of the tenant's jobs
	runs   []string // that it heard of lately
	keys   []keyed  // that it used lately
	etags  []tagged // that it read lately
	made   int      // keys

	bringing *rand.Rand // of requests that bring a policy, likewise
	opening  *rand.Rand // of lines that stand still, likewise
	ignoring *rand.Rand // of requests that ignore a pause: a world in which none does is as it was before there were such
}

// keyed is a request that was made under a key.
type keyed struct {
	job, key string
	order    order
}

// tagged is a job as it was once read.
type tagged struct{ job, etag string }

const remembered = 40 // of each

// remember adds to what is remembered, and forgets the oldest.
func remember[T any](some []T, one T) []T {
	if len(some) >= remembered {
		some = slices.Delete(some, 0, 1)
	}
	return append(some, one)
}

// clients starts the clients of the mix. They end with ctx.
func (w *World) clients(ctx context.Context) {
	for n, role := range w.Mix.Clients {
		if role.Off {
			continue
		}
		w.Go(fmt.Sprintf("client %d", n), func(world context.Context, a *Actor) {
			ctx, cancel := merged(world, ctx)
			defer cancel()
			newUser(a, role).live(ctx)
		})
	}
}

// merged ends with either of two.
func merged(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

func newUser(a *Actor, role Role) *user {
	u := &user{Actor: a, Role: role, server: a.Client(a, role.Tenant), ignoring: a.World.Rand(a.Name + " ignoring"), opening: a.World.Rand(a.Name + " opening"), bringing: a.World.Rand(a.Name + " bringing")}
	for n := range a.Mix.Names {
		u.names = append(u.names, nameOf(n))
	}
	return u
}

// live asks for one thing after another.
func (u *user) live(ctx context.Context) {
	if u.Begins {
		patience := u.Persist
		u.Persist = 1
		for _, name := range shuffled(u.Rand, u.names, (len(u.names)+1)/2) {
			def := u.Mix.drawJob(u.Rand, u.Now())
			def.On = job.Callbacks{} // nobody is there yet who could be called
			u.put(ctx, name, def, client.Condition{})
		}
		u.Persist = patience
	}
	for u.Sleep(ctx, time.Duration(u.Rand.ExpFloat64()*float64(u.Think))) == nil {
		u.turn(ctx, operation(weighted(u.Rand, u.Weights[:]...)))
	}
}

func (u *user) name() string { return pick(u.Rand, u.names) }

// someRun is a run that the user heard of, "" where it heard of none.
func (u *user) someRun() string {
	if len(u.runs) == 0 {
		return ""
	}
	return pick(u.Rand, u.runs)
}

func (u *user) turn(ctx context.Context, op operation) {
	switch op {
	case opPut, opCreate:
		u.put(ctx, u.name(), u.Mix.drawJob(u.Rand, u.Now()), client.Condition{Absent: op == opCreate})
	case opEdit, opGuarded:
		u.edit(ctx, u.name(), op == opGuarded)
	case opStale:
		if len(u.etags) > 0 {
			old := pick(u.Rand, u.etags)
			u.put(ctx, old.job, u.Mix.drawJob(u.Rand, u.Now()), client.Condition{ETag: old.etag})
		}
	case opPause:
		u.pause(ctx, u.name())
	case opResume:
		u.resume(ctx, u.name())
	case opDelete:
		u.remove(ctx, u.name())
	case opAnew:
		name := u.name()
		u.remove(ctx, name)
		u.put(ctx, name, u.Mix.drawJob(u.Rand, u.Now()), client.Condition{})
	case opPutBatch:
		u.putBatch(ctx)
	case opTrigger, opTriggerAt, opTriggerDelay, opTriggerKey, opRepeat, opReuse, opTwice, opRunBatch:
		u.order(ctx, op)
	case opCancel, opRetry, opForce:
		if u.Mix.Jobs.Strict > 0 && chance(u.opening, 0.5) {
			u.open(ctx, pick(u.opening, u.names))
		}
		if id := u.someRun(); id != "" {
			u.change(ctx, op, id)
		}
	case opCancelMany, opRetryMany:
		u.changeMany(ctx, op)
	case opRedrive, opRedriveAll:
		u.redrive(ctx, op == opRedriveAll)
	default:
		u.read(ctx, op)
	}
}

// open lets the line of a job go on where it stands still. Nobody tells the judge: the gate says so.
func (u *user) open(ctx context.Context, name string) {
	_, _ = u.server.OpenGate(ctx, gate.Name(name), wire.OpenRequest{Reason: "a client's wish"})
}

// ask puts a request to Belfry, again and again as far as the user persists, and tells the judge what was asked and what answered.
func (u *user) ask(ctx context.Context, q oracle.Request, send func(ctx context.Context) oracle.Answer) oracle.Answer {
	q.At, q.Tenant = u.Now(), u.Tenant
	n := u.Judge.Asked(q)
	a := u.persist(ctx, repeatable(q.Op), send)
	if q.Op == oracle.DeleteJob && a.Status == http.StatusNotFound && a.Unknown {
		a.Unknown, a.Status = false, http.StatusNoContent // as lib/client says: what an earlier try may have deleted is gone, as was wanted
	}
	u.Judge.Answered(n, a)
	return a
}

// repeatable tells whether a user may ask twice for it and get it once.
func repeatable(op oracle.Op) bool {
	return op != oracle.Cancel && op != oracle.Retry && op != oracle.Redrive
}

// persist sends a request until it is answered or the user loses patience. The answer is Unknown where an earlier try may have
// been carried out and the last one was refused.
func (u *user) persist(ctx context.Context, again bool, send func(ctx context.Context) oracle.Answer) oracle.Answer {
	doubt := false
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		tries := u.Requests
		a := send(ctx)
		a.At = u.Now()
		// lib/client sends more than once where it got no answer, or was told to come again.
		doubt = doubt || a.Unknown || u.Requests > tries+1
		refused := a.Status >= 300
		a.Unknown = a.Unknown || refused && doubt
		if !a.Unknown || !again || ctx.Err() != nil || a.Status != 0 && a.Status < http.StatusInternalServerError || !chance(u.Rand, u.Persist) {
			return a
		}
		if u.Sleep(ctx, wait) != nil {
			return a
		}
	}
}

// key makes an idempotency key.
func (u *user) key() string {
	u.made++
	return fmt.Sprintf("%s.%d", strings.ReplaceAll(u.Name, " ", "-"), u.made)
}

// fork is the same user in another actor, for what is done at the same time.
func (u *user) fork(ctx context.Context, what string, do func(ctx context.Context, u *user)) {
	u.made++
	u.Go(fmt.Sprintf("%s %s %d", u.Name, what, u.made), func(world context.Context, a *Actor) {
		ctx, cancel := merged(world, ctx)
		defer cancel()
		twin := newUser(a, u.Role)
		do(ctx, twin)
	})
}

// shuffled gives up to n different ones of some.
func shuffled[T any](r *rand.Rand, some []T, n int) []T {
	all := slices.Clone(some)
	r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all[:min(n, len(all))]
}
