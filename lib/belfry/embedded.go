package belfry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// tenant owns the jobs of programs that embed Belfry: they are alone on their store.
const tenant = "default"

// embedded is a node in this process.
type embedded struct {
	desk
	data   *embed.Data
	node   *node.Node
	logger *slog.Logger
	rush   chan struct{}
	rushed sync.Once
}

func openEmbedded(ctx context.Context, folder string, handlers *target.Registry, cfg config) (engine, error) {
	targets, err := target.New(target.Config{Now: clock, Handlers: handlers})
	if err != nil {
		return nil, err
	}
	data, err := embed.Open(ctx, folder, cfg.log)
	if err != nil {
		return nil, err
	}
	e := &embedded{data: data, logger: cfg.log, rush: make(chan struct{})}
	e.node, err = data.Node(ctx, node.Config{
		Targets: targets, Now: clock, Elapsed: stopwatch(), NewID: newID, Log: cfg.log, Concurrency: cfg.concurrency, Hurry: e.rush, Callbacks: cfg.callbacks,
		Grace: job.MaxTimeout, // Stop's context is the bound
	})
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	e.desk = desk{e.node.Control}
	return e, nil
}

func (e *embedded) work(ctx context.Context) error {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { e.strays(ctx) })
	watching.Go(func() {
		select {
		case <-e.data.Failed():
			e.logger.Error("the disk failed, and Belfry stopped: nothing that was acknowledged is lost; end the process")
		case <-done:
		}
	})
	err := e.node.Run(ctx)
	close(done)
	watching.Wait()
	return err
}

// strays tells of schedules that fire for handlers which this program has not: an earlier version of it had them. There may be millions
// of jobs, so it looks beside the work, and takes a tenth of the time.
func (e *embedded) strays(ctx context.Context) {
	for cursor := ""; ; {
		began := clock()
		jobs, next, err := e.control.Jobs(ctx, tenant, control.JobFilter{}, cursor, control.MaxLimit)
		if err != nil {
			return // whatever it is, the node tells of it
		}
		for _, j := range jobs {
			if j.Active() && e.control.Can(j.Def.Queue, j.Def.Target) != nil {
				e.logger.Warn("a job fires, and nothing here handles it: its runs wait. Handle it again, or Unschedule it",
					"job", j.Name, "target", j.Def.Target.String())
			}
		}
		if cursor = next; cursor == "" {
			return
		}
		select {
		case <-time.After(9 * clock().Sub(began)):
		case <-ctx.Done():
			return
		}
	}
}

func (e *embedded) hurry()       { e.rushed.Do(func() { close(e.rush) }) }
func (e *embedded) close() error { return e.data.Close() }

func (e *embedded) ready(ctx context.Context) error { return e.node.Ready(ctx) }

// desk is the part of an engine that a control plane in this process answers.
type desk struct{ control *control.Service }

func (desk) local() bool { return true }

func (d desk) job(ctx context.Context, name string) (job.Definition, control.Match, error) {
	j, err := d.control.Job(ctx, tenant, name)
	if HasCode(refused(err), CodeJobNotFound) {
		return job.Definition{}, control.Match{Absent: true}, nil
	}
	return j.Def, control.Match{ETag: j.ETag()}, err
}

func (d desk) put(ctx context.Context, name string, def job.Definition, only control.Match) error {
	_, _, err := d.control.Put(ctx, tenant, name, def, only)
	return err
}

func (d desk) remove(ctx context.Context, name string) error {
	return d.control.Delete(ctx, tenant, name, control.Match{})
}

func (d desk) pause(ctx context.Context, name, reason string) error {
	_, err := d.control.Pause(ctx, tenant, name, reason, control.Match{})
	return err
}

func (d desk) resume(ctx context.Context, name string) error {
	_, err := d.control.Resume(ctx, tenant, name, control.Match{})
	return err
}

func (d desk) openLine(ctx context.Context, name string, o Opening) error {
	which := control.Opening{Run: o.Run, Key: o.Key, Reason: o.Reason}
	if !o.Ended.IsZero() {
		which.Since = o.Ended.UnixMilli()
	}
	_, err := d.control.OpenLine(ctx, tenant, gate.Name(name), "", which, control.Match{})
	return err
}

func (d desk) gate(ctx context.Context, name string) (gate.Definition, control.Match, error) {
	g, err := d.control.Gate(ctx, tenant, name)
	if HasCode(refused(err), Code(control.CodeGateNotFound)) {
		return gate.Definition{}, control.Match{Absent: true}, nil
	}
	return g.Named.Def, control.Match{ETag: g.Named.ETag()}, err
}

func (d desk) putGate(ctx context.Context, name string, def gate.Definition, only control.Match) error {
	_, _, err := d.control.PutGate(ctx, tenant, name, def, control.GateMatch{Match: only})
	return err
}

func (d desk) trigger(ctx context.Context, name string, request control.Request) (Run, error) {
	r, _, err := d.control.Trigger(ctx, tenant, name, request)
	return d.shown(ctx, r), err
}

func (d desk) triggerMany(ctx context.Context, name string, requests []control.Request) ([]Enqueued, error) { //nolint:unparam // a remote engine has errors of the whole
	asked := make([]control.Asked, len(requests))
	for i, request := range requests {
		asked[i] = control.Asked{Job: name, Request: request}
	}
	verdicts := make([]Enqueued, len(requests))
	for i, answer := range d.control.TriggerMany(ctx, tenant, asked) {
		verdicts[i] = Enqueued{Err: answer.Err}
		if answer.Err == nil {
			verdicts[i].Run = d.shown(ctx, answer.Run)
		}
	}
	return verdicts, nil
}

func (d desk) run(ctx context.Context, id string) (Run, error) {
	r, err := d.read(ctx, id)
	if err != nil {
		return Run{}, err
	}
	text := d.shown(ctx, r)
	text.Result, _, err = d.control.Result(ctx, r)
	return text, err
}

func (d desk) read(ctx context.Context, id string) (run.Run, error) {
	parsed, err := parse(id)
	if err != nil {
		return run.Run{}, err
	}
	return d.control.Run(ctx, tenant, parsed)
}

func parse(id string) (run.ID, error) {
	parsed, err := run.ParseID(id)
	if err != nil {
		return run.ID{}, invalid.Field("run", id, "the ID of a run, as Belfry gave it")
	}
	return parsed, nil
}

func (d desk) runs(ctx context.Context, name string, states []State) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		filter := control.RunFilter{Job: name}
		for _, s := range states {
			state, ok := run.ParseState(string(s))
			if !ok {
				yield(Run{}, invalid.Field("state", string(s), "a state of a run"))
				return
			}
			filter.States = append(filter.States, state)
		}
		for cursor := ""; ; {
			page, next, err := d.control.Runs(ctx, tenant, filter, cursor, 200)
			if err != nil {
				yield(Run{}, err)
				return
			}
			for _, r := range page {
				if !yield(d.shown(ctx, r), nil) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

func (d desk) cancel(ctx context.Context, id, reason string) error {
	parsed, err := parse(id)
	if err == nil {
		_, err = d.control.Cancel(ctx, tenant, parsed, reason)
	}
	return err
}

func (d desk) retry(ctx context.Context, id string) error {
	parsed, err := parse(id)
	if err == nil {
		_, err = d.control.Retry(ctx, tenant, parsed, true, time.Time{})
	}
	return err
}

func (d desk) log(ctx context.Context, id string) ([]byte, error) {
	r, err := d.read(ctx, id)
	if err != nil {
		return nil, err
	}
	log, err := d.control.LogOf(ctx, r, 0)
	if err != nil {
		return nil, fmt.Errorf("log of run %s: %w", id, err)
	}
	return log.Text(), nil
}

// shown is a run without its result.
func (d desk) shown(ctx context.Context, r run.Run) Run {
	s := Run{ID: r.ID.String(), Job: r.ID.Job, State: State(d.control.Shown(ctx, r).String()), Nominal: r.ID.Time(), Attempt: r.Attempt,
		Started: instant(r.Started), Ended: instant(r.Ended)}
	if y := r.Why; !y.IsZero() {
		s.Why = (*Why)(wire.NewWhy(y.Code, y.Gate, gate.ShownKey(gate.WhyKey(r)), y.Policy, y.InTheWay, r.Reason))
		s.Why.Since = instant(y.Since)
	}
	for _, a := range r.Attempts {
		if a.Error != "" {
			s.Error = a.Error
		}
	}
	return s
}

// instant shows Unix ms, 0 as no time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
