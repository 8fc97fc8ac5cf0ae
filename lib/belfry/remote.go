package belfry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// remote is a Belfry elsewhere. Its handlers run here, in a worker that takes their runs over the API.
type remote struct {
	client  *client.Client
	worker  *worker.Worker
	targets *target.Set
	rush    chan struct{}
	rushed  sync.Once
}

func openRemote(at string, handlers *target.Registry, cfg config) (engine, error) {
	c, err := client.New(client.Config{Address: at, Token: cfg.token, NewKey: newKey})
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Message: err.Error(), cause: err}
	}
	targets, err := target.New(target.Config{Now: clock, Handlers: handlers, Secrets: worker.Secrets})
	if err != nil {
		return nil, err
	}
	e := &remote{client: c, targets: targets, rush: make(chan struct{})}
	e.worker, err = c.Worker(client.WorkerConfig{
		Queue: cfg.queue, Name: workerName(), Targets: targets, HandlersOnly: true, Elapsed: stopwatch(), Log: cfg.log,
		Concurrency: cfg.concurrency, Hurry: e.rush,
		Grace: job.MaxTimeout, // Stop's context is the bound
	})
	return e, err
}

// workerName is this process among all that ever worked for the server.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, host)
	return fmt.Sprintf("go-%.20s-%d-%x", host, os.Getpid(), newID())
}

func (e *remote) local() bool { return false }

func (e *remote) work(ctx context.Context) error {
	if len(e.targets.Able().Handlers) == 0 {
		<-ctx.Done() // it enqueues and looks, and others work
		return nil
	}
	return e.worker.Run(ctx)
}

func (e *remote) hurry()       { e.rushed.Do(func() { close(e.rush) }) }
func (e *remote) close() error { return nil }

func (e *remote) ready(ctx context.Context) error {
	_, err := e.client.Ready(ctx)
	return err
}

func (e *remote) job(ctx context.Context, name string) (job.Definition, control.Match, error) {
	stored, err := e.client.Job(ctx, name)
	if client.HasCode(err, string(CodeJobNotFound)) {
		return job.Definition{}, control.Match{Absent: true}, nil
	}
	return stored.Definition, control.Match{ETag: stored.ETag}, err
}

func (e *remote) put(ctx context.Context, name string, def job.Definition, only control.Match) error {
	_, err := e.client.PutJob(ctx, name, wire.Job{Definition: def}, client.Condition{ETag: only.ETag, Absent: only.Absent})
	return err
}

func (e *remote) remove(ctx context.Context, name string) error {
	return e.client.DeleteJob(ctx, name, client.Condition{})
}

func (e *remote) pause(ctx context.Context, name, reason string) error {
	_, err := e.client.PauseJob(ctx, name, reason)
	return err
}

func (e *remote) resume(ctx context.Context, name string) error {
	_, err := e.client.ResumeJob(ctx, name)
	return err
}

func (e *remote) openLine(ctx context.Context, name string, o Opening) error {
	_, err := e.client.OpenGate(ctx, gate.Name(name), wire.OpenRequest{Run: o.Run, Since: o.Ended, Key: o.Key, Reason: o.Reason})
	return err
}

func (e *remote) gate(ctx context.Context, name string) (gate.Definition, control.Match, error) {
	g, err := e.client.Gate(ctx, name)
	if client.HasCode(err, string(control.CodeGateNotFound)) {
		return gate.Definition{}, control.Match{Absent: true}, nil
	}
	return gate.Definition{Limit: g.Limit, MaxWaiting: g.MaxWaiting, Order: gate.Order(g.Order), MaxWait: g.MaxWait}, control.Match{ETag: g.ETag}, err
}

func (e *remote) putGate(ctx context.Context, name string, def gate.Definition, only control.Match) error {
	_, err := e.client.PutGate(ctx, name, wire.GateDefinition{Definition: def}, client.Condition{ETag: only.ETag, Absent: only.Absent})
	return err
}

func (e *remote) trigger(ctx context.Context, name string, r control.Request) (Run, error) {
	asked, err := e.client.Trigger(ctx, name, triggerOf(r), r.Key)
	return received(asked), err
}

func triggerOf(r control.Request) wire.Trigger {
	return wire.Trigger{At: r.At, Delay: (*schedule.Duration)(r.Delay), Payload: r.Payload, On: wire.Calling(r.Callees.Succeeded, r.Callees.Failed), IgnorePause: r.IgnorePause, Overlap: r.Overlap}
}

var errNoVerdict = errors.New("the answer has no verdict on each request: whether it was done is not known")

func (e *remote) triggerMany(ctx context.Context, name string, requests []control.Request) ([]Enqueued, error) {
	asked := make([]wire.JobTrigger, len(requests))
	for i, r := range requests {
		asked[i] = wire.JobTrigger{Job: name, IdempotencyKey: r.Key, Trigger: triggerOf(r)}
	}
	answered, err := e.client.TriggerMany(ctx, asked)
	if err == nil && len(answered) != len(requests) {
		err = errNoVerdict
	}
	if err != nil {
		return nil, err
	}
	verdicts := make([]Enqueued, len(requests))
	for i, v := range answered {
		switch {
		case v.Problem != nil:
			verdicts[i].Err = &client.Error{Problem: *v.Problem, RetryAfter: v.Problem.RetryAfter.Std()}
		default:
			id, err := run.ParseID(v.ID)
			if err != nil {
				verdicts[i].Err = errNoVerdict
				continue
			}
			verdicts[i].Run = Run{ID: v.ID, Job: id.Job, State: State(v.State), Nominal: id.Time()}
		}
	}
	return verdicts, nil
}

func (e *remote) run(ctx context.Context, id string) (Run, error) {
	r, err := e.client.Run(ctx, id)
	return received(r), err
}

func (e *remote) runs(ctx context.Context, name string, states []State) iter.Seq2[Run, error] {
	filter := client.RunFilter{Job: name}
	for _, s := range states {
		filter.States = append(filter.States, string(s))
	}
	return func(yield func(Run, error) bool) {
		for r, err := range e.client.Runs(ctx, filter) {
			if !yield(received(r), err) {
				return
			}
		}
	}
}

func (e *remote) cancel(ctx context.Context, id, reason string) error {
	_, err := e.client.Cancel(ctx, id, reason)
	return err
}

func (e *remote) retry(ctx context.Context, id string) error {
	_, err := e.client.Retry(ctx, id, wire.RetryRequest{Force: true})
	return err
}

func (e *remote) log(ctx context.Context, id string) ([]byte, error) { return e.client.Logs(ctx, id) }

// received is a run as the server shows it.
func received(r wire.Run) Run {
	s := Run{ID: r.ID, Job: r.Job, State: State(r.State), Nominal: r.NominalTime, Attempt: r.Attempt, Started: r.StartedAt, Ended: r.EndedAt, Result: r.Result,
		Why: (*Why)(r.Why)}
	for _, a := range r.Attempts {
		if a.Error != "" {
			s.Error = a.Error
		}
	}
	return s
}
