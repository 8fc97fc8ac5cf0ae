package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/lib/worker"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// base is when every life begins.
var base = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// event is something that a judge is told of; one of its parts is set.
type event struct {
	at       time.Time
	key      store.Key
	value    []byte // of an item that was put
	expires  time.Time
	gone     bool // the item was removed
	skipped  bool // its version grows by two
	call     *oracle.Call
	ret      *oracle.Return
	asked    *oracle.Request
	answered *oracle.Answer
	question int // which of the asked

	forget, back store.Key // the store loses an item, or gives it in the version before
	upTo         time.Time
}

func (e event) stored() bool { return e.key.Partition != "" }

// life is what happened, in its order.
type life []event

// judged is what a judge finds in it.
func (l life) judged(cfg oracle.Config) []string {
	j := oracle.New(cfg)
	standing := map[store.Key]store.Item{}
	all := func() iter.Seq[store.Item] { return maps.Values(standing) }
	questions := map[int]int{}
	for i, e := range l {
		switch {
		case e.stored():
			before := standing[e.key]
			before.Key = e.key
			after := store.Item{Key: e.key}
			if !e.gone {
				after.Version, after.Value, after.Expires = before.Version+1, e.value, e.expires
				if e.skipped {
					after.Version++
				}
			}
			if e.gone {
				delete(standing, e.key)
			} else {
				standing[e.key] = after
			}
			j.Stored(e.at, before, after)
		case e.forget.Partition != "":
			delete(standing, e.forget)
		case e.back.Partition != "":
			item := standing[e.back]
			item.Version--
			standing[e.back] = item
		case e.call != nil:
			j.Called(*e.call)
		case e.ret != nil:
			j.Returned(*e.ret)
		case e.asked != nil:
			questions[e.question] = j.Asked(*e.asked)
		case e.answered != nil:
			j.Answered(questions[e.question], *e.answered)
		case !e.upTo.IsZero():
			j.End(e.at, e.upTo, all())
		}
		if e.asked != nil && i > 0 {
			j.Look(e.at, all())
		}
	}
	return j.Violations()
}

// rig is real parts around one store, and a true time that is moved by hand.
type rig struct {
	testing.TB
	elapsed  time.Duration
	ids      uint64
	told     life
	asks     int
	store    store.Store
	layout   timer.Layout
	queue    *local.Queue
	dispatch *dispatch.Dispatcher
	ticker   *tick.Ticker
	control  *control.Service
	worker   *worker.Worker
	fails    map[string]bool   // jobs whose runs fail, and steps of workflows by their paths
	during   func(step string) // called in each attempt of a step, nil for nothing
	after    time.Duration     // what a failure asks to wait for
}

func (r *rig) now() time.Time { return base.Add(r.elapsed) }

func (r *rig) must(err error) {
	if err != nil {
		r.Helper()
		r.Fatal(err)
	}
}

func (r *rig) tell(e event) {
	e.at = r.now()
	r.told = append(r.told, e)
}

func newRig(t testing.TB) *rig {
	r := &rig{TB: t, fails: map[string]bool{}}
	newID := func() uint64 { r.ids++; return r.ids }
	r.store = oracle.Watch(memory.New(memory.Config{}), func(before, after store.Item) {
		r.tell(event{key: before.Key, value: slices.Clone(after.Value), expires: after.Expires, gone: !after.Exists()})
	})
	var err error
	r.layout, err = timer.Setup(t.Context(), r.store, 1, r.now().UnixMilli(), newID)
	r.must(err)
	r.queue = local.New(local.Config{Now: r.now})
	blobs := blob.New(memblob.OpenBucket(nil))
	r.dispatch, err = dispatch.New(dispatch.Config{Store: r.store, Book: job.NewBook(r.store, job.Compile),
		Queues: map[string]queue.Queue{job.DefaultQueue: r.queue}, Layout: r.layout, Now: r.now,
		Elapsed: func() time.Duration { return r.elapsed }, NewID: newID})
	r.must(err)
	r.ticker, err = tick.New(tick.Config{Dispatch: r.dispatch, Metrics: metrics.New(), Owner: "tick", Parallel: 1})
	r.must(err)
	r.control, err = control.New(control.Config{Store: r.store, Blobs: blobs, Dispatch: r.dispatch, Now: r.now, NewID: newID,
		Can: func(string, target.Spec) error { return nil }})
	r.must(err)
	handlers := new(target.Registry)
	r.must(handlers.Register("work", r.work))
	targets, err := target.New(target.Config{Now: r.now, Handlers: handlers})
	r.must(err)
	desk, err := lease.New(lease.Config{Dispatch: r.dispatch, Queue: job.DefaultQueue, Blobs: blobs, Metrics: metrics.New(), Name: "worker"})
	r.must(err)
	r.worker, err = worker.New(worker.Config{Source: desk, Targets: targets, Elapsed: r.dispatch.Elapsed, Concurrency: 1})
	r.must(err)
	return r
}

// work is the target of all runs.
func (r *rig) work(_ context.Context, c target.Call) (target.Result, error) {
	r.tell(event{call: &oracle.Call{At: r.now(), Tenant: c.Tenant, Job: c.Job, Run: c.Run, Attempt: c.Attempt, Fence: c.Fence, Nominal: c.Nominal, Payload: slices.Clone(c.Payload)}})
	_, step, stepped := strings.Cut(c.Run, "/")
	if stepped && r.during != nil {
		r.during(step)
	}
	if r.fails[c.Job] || r.fails[step] {
		r.tell(event{ret: &oracle.Return{At: r.now(), Tenant: c.Tenant, Run: c.Run, Fence: c.Fence}})
		return target.Result{}, target.RetryAfter(r.after, &target.Failure{Message: "no"})
	}
	result := []byte(fmt.Sprintf(`{"fence":%d}`, c.Fence))
	r.tell(event{ret: &oracle.Return{At: r.now(), Tenant: c.Tenant, Run: c.Run, Fence: c.Fence, OK: true, Result: result}})
	return target.Result{Body: result}, nil
}

// delete deletes a job of a tenant.
func (r *rig) delete(of, name string) {
	r.ask(oracle.Request{Op: oracle.DeleteJob, Tenant: of, Job: name}, http.StatusNoContent, func(*oracle.Answer) error { return r.control.Delete(r.Context(), of, name, control.Match{}) })
}

// end has all that was due by now looked at by every sweep, and gives the whole life.
func (r *rig) end() life {
	upTo := r.now()
	r.live(80*time.Minute, time.Minute)
	r.tell(event{upTo: upTo})
	return r.told
}

// live lets time go by, with ticks and a worker.
func (r *rig) live(d, step time.Duration) {
	for end := r.elapsed + d; r.elapsed < end; {
		r.elapsed += step
		_, err := r.ticker.Tick(r.Context())
		r.must(err)
		for {
			depth, err := r.queue.Depth(r.Context())
			r.must(err)
			if depth[queue.Normal].Ready == 0 {
				break
			}
			r.must(r.worker.Pass(r.Context(), 0))
		}
	}
}

// ask has a client ask for something.
func (r *rig) ask(q oracle.Request, status int, do func(*oracle.Answer) error) {
	r.asks++
	n := r.asks
	q.At = r.now()
	if q.Tenant == "" {
		q.Tenant = tenant
	}
	r.tell(event{asked: &q, question: n})
	a := oracle.Answer{Status: status}
	if err := do(&a); err != nil {
		var refused *control.Refusal
		if !errors.As(err, &refused) {
			r.Fatal(err)
		}
		a = oracle.Answer{Status: status, Code: string(refused.Code), RetryAfter: refused.RetryAfter}
	}
	a.At = r.now()
	r.tell(event{answered: &a, question: n})
}

const (
	tenant = "default"
	other  = "acme"
)

func shownJob(j job.Job) *wire.Job {
	return &wire.Job{Name: j.Name, Definition: j.Def, Status: &wire.JobStatus{Generation: j.Generation, ETag: j.ETag()}}
}

func shownRun(r run.Run) *wire.Run {
	shown := &wire.Run{ID: r.ID.String(), Job: r.ID.Job, Generation: r.Generation, State: r.State.String(), NominalTime: r.ID.Time(),
		Attempt: r.Attempt, Fence: r.Fence}
	if r.Ended != 0 {
		shown.EndedAt = time.UnixMilli(r.Ended)
	}
	return shown
}

func (r *rig) put(tenant, name string, def job.Definition) {
	r.ask(oracle.Request{Op: oracle.PutJob, Tenant: tenant, Job: name, Def: &def}, http.StatusOK, func(a *oracle.Answer) error {
		j, _, err := r.control.Put(r.Context(), tenant, name, def, control.Match{})
		a.Job = shownJob(j)
		return err
	})
}

func (r *rig) trigger(name, key string, status int, payload string) (id run.ID) {
	r.ask(oracle.Request{Op: oracle.Trigger, Job: name, Key: key, Body: payload, Given: []byte(payload)}, status, func(a *oracle.Answer) error {
		made, _, err := r.control.Trigger(r.Context(), tenant, name, control.Request{Key: key, Payload: []byte(payload)})
		a.Run, id = shownRun(made), made.ID
		return err
	})
	return id
}

func (r *rig) ofRun(op oracle.Op, id run.ID, status int, do func() (run.Run, error)) {
	r.ask(oracle.Request{Op: op, Run: id.String(), Force: true}, status, func(a *oracle.Answer) error {
		shown, err := do()
		a.Run = shownRun(shown)
		return err
	})
}

func every(d time.Duration) *schedule.Spec { return &schedule.Spec{Every: schedule.Duration(d)} }

func works(number int, spec *schedule.Spec) job.Definition {
	return job.Definition{Schedule: spec, Target: target.Spec{Handler: &target.Handler{Name: "work"}}, Payload: fmt.Appendf(nil, `{"edit":%d}`, number),
		Retry: job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}, CatchUp: job.CatchUp{Mode: job.CatchUpOne}}
}

// quiet is a life in which all goes well, and much happens.
func quiet(t testing.TB) life {
	r := newRig(t)
	ctx := t.Context()
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "plain", works(1, every(2*beat)))
	r.put(other, "plain", works(1, every(3*beat)))
	r.put(tenant, "asked", works(1, nil))
	once := works(1, nil)
	once.Guarantee, once.Retry = job.AtMostOnce, job.Retry{}
	r.put(tenant, "once", once)
	r.fails["once"] = true
	r.fails["fails"] = true
	r.put(tenant, "fails", works(1, nil))
	r.live(10*beat, beat)

	good := r.trigger("asked", "key", http.StatusAccepted, `{"a":1}`)
	r.trigger("asked", "key", http.StatusOK, `{"a":1}`)
	r.trigger("asked", "key", http.StatusConflict, `{"a":2}`)
	failing := r.trigger("fails", "", http.StatusAccepted, `{}`)
	single := r.trigger("once", "", http.StatusAccepted, `{}`)
	r.live(5*beat, beat)
	r.ask(oracle.Request{Op: oracle.DeadLetters}, http.StatusOK, func(a *oracle.Answer) error {
		letters, _, err := r.control.DeadLetters(ctx, tenant, control.DeadFilter{}, "", 0)
		for _, l := range letters {
			a.Letters = append(a.Letters, wire.DeadLetter{ID: l.Run.String(), Job: l.Run.Job, State: l.State.String(), EndedAt: l.Ended})
		}
		return err
	})
	r.ofRun(oracle.Retry, failing, http.StatusOK, func() (run.Run, error) { return r.control.Retry(ctx, tenant, failing, false, time.Time{}) })
	r.ofRun(oracle.Retry, single, http.StatusOK, func() (run.Run, error) { return r.control.Retry(ctx, tenant, single, true, time.Time{}) })
	r.ofRun(oracle.GetRun, good, http.StatusOK, func() (run.Run, error) { return r.control.Run(ctx, tenant, good) })
	r.live(3*beat, beat)
	r.ask(oracle.Request{Op: oracle.Redrive, Runs: []string{failing.String()}}, http.StatusOK, func(a *oracle.Answer) error {
		out, err := r.control.Redrive(ctx, tenant, control.DeadFilter{}, control.Bulk{Runs: []run.ID{failing}})
		a.Reopened = []string{out.Verdicts[0].ID.String()}
		return err
	})
	cancelled := r.trigger("asked", "", http.StatusAccepted, `{}`)
	r.ofRun(oracle.Cancel, cancelled, http.StatusOK, func() (run.Run, error) { return r.control.Cancel(ctx, tenant, cancelled, "") })

	r.put(tenant, "plain", works(2, every(3*beat)))
	r.live(5*beat, beat)
	r.ask(oracle.Request{Op: oracle.PauseJob, Job: "plain"}, http.StatusOK, func(a *oracle.Answer) error {
		j, err := r.control.Pause(ctx, tenant, "plain", "", control.Match{})
		a.Job = shownJob(j)
		return err
	})
	r.live(5*beat, beat)
	r.ask(oracle.Request{Op: oracle.ResumeJob, Job: "plain"}, http.StatusOK, func(a *oracle.Answer) error {
		j, err := r.control.Resume(ctx, tenant, "plain", control.Match{})
		a.Job = shownJob(j)
		return err
	})
	r.ask(oracle.Request{Op: oracle.Discard, Runs: []string{failing.String()}}, http.StatusOK, func(a *oracle.Answer) error {
		out, err := r.control.Discard(ctx, tenant, control.DeadFilter{}, control.Bulk{Runs: []run.ID{failing}}, "ann", "of no use")
		if err == nil {
			err = out.Verdicts[0].Err
		}
		a.Discarded = []string{failing.String()}
		return err
	})
	r.elapsed += 10 * time.Minute // nobody ticks
	r.live(60*beat, beat)
	r.ask(oracle.Request{Op: oracle.GetJob, Job: "plain"}, http.StatusOK, func(a *oracle.Answer) error {
		j, err := r.control.Job(ctx, tenant, "plain")
		a.Job = shownJob(j)
		return err
	})
	r.ask(oracle.Request{Op: oracle.ListJobs}, http.StatusOK, func(a *oracle.Answer) error {
		jobs, _, err := r.control.Jobs(ctx, tenant, control.JobFilter{}, "", 100)
		for _, j := range jobs {
			a.Jobs = append(a.Jobs, *shownJob(j))
		}
		return err
	})
	r.ask(oracle.Request{Op: oracle.ListRuns}, http.StatusOK, func(a *oracle.Answer) error {
		runs, _, err := r.control.Runs(ctx, tenant, control.RunFilter{}, "", 1000)
		for _, one := range runs {
			a.Runs = append(a.Runs, *shownRun(one))
		}
		return err
	})
	r.delete(tenant, "plain")
	r.delete(other, "plain")
	return r.end()
}

// TestAListingInADowntimeMayBeShort: while nobody ticks for hours, nobody lists what was asked for before.
func TestAListingInADowntimeMayBeShort(t *testing.T) {
	for down, want := range map[time.Duration]int{10 * time.Minute: 1, 3 * time.Hour: 0} {
		r := newRig(t)
		r.elapsed = time.Second
		r.put(tenant, "asked", works(1, nil))
		r.live(10*time.Second, 2*time.Second)
		r.trigger("asked", "", http.StatusAccepted, `{}`)
		r.elapsed += down
		r.ask(oracle.Request{Op: oracle.ListRuns}, http.StatusOK, func(*oracle.Answer) error { return nil })
		if found := r.told.judged(oracle.Config{}); len(found) != want {
			t.Errorf("%s down: found %v, want %d", down, found, want)
		}
	}
}

func TestNothingIsFoundInWhatIsWell(t *testing.T) {
	l := quiet(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	var calls, stored int
	for _, e := range l {
		if e.call != nil {
			calls++
		}
		if e.stored() {
			stored++
		}
	}
	if calls < 40 || stored < 500 {
		t.Errorf("only %d calls and %d changes in it", calls, stored)
	}
}
