package belfry

import (
	"context"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Schedule has the job of a handler fire by a cron expression: five fields, six with leading seconds, a macro such as "@daily",
// or "@every 90s". Each fire makes one run, whatever restarts in between. It may be called before and after [Belfry.Start].
//
// The schedule is stored. The same call at the next start of the program changes nothing; another expression replaces the old one
// from then on. It stays when the call goes from the code: put [Belfry.Unschedule] in its place. What an operator has paused
// stays paused.
func (b *Belfry) Schedule(ctx context.Context, handler, cron string, opts ...ScheduleOption) error {
	spec, err := specOf(cron)
	if err != nil {
		return refused(err)
	}
	t := timetable{job: handler, spec: spec}
	for _, o := range opts {
		o.apply(&t)
	}
	var payload []byte
	if t.payload != nil {
		if err := b.fits(handler, t.payload); err != nil {
			return err
		}
		if payload, err = encode(t.payload); err != nil {
			return err
		}
	}
	k := b.kind(handler)
	if k == nil && b.engine.local() {
		return &Error{Code: CodeInvalid, Message: "schedule " + handler + ": there is no handler of that name; call Handle first"}
	}
	err = b.put(ctx, t.job, func(standing job.Definition) job.Definition {
		def := b.defined(k, handler, standing)
		def.Schedule, def.MaxRuns, def.Payload, def.CatchUp = &t.spec, t.maxRuns, payload, job.CatchUp{Mode: t.catchUp}
		return def
	})
	if err != nil {
		return err
	}
	b.standsAs(t.job, handler)
	return nil
}

// Unschedule ends the schedule of a job; one that has none is no error. Its runs that have started go on. A job named by [As], or
// whose handler is not here, is deleted.
func (b *Belfry) Unschedule(ctx context.Context, name string) error {
	if k := b.kind(name); k != nil {
		return b.put(ctx, name, func(standing job.Definition) job.Definition {
			def := b.defined(k, name, standing)
			def.Schedule, def.MaxRuns, def.Payload, def.CatchUp = nil, 0, nil, job.CatchUp{}
			return def
		})
	}
	err := refused(b.engine.remove(ctx, name))
	if HasCode(err, CodeJobNotFound) {
		return nil
	}
	return err
}

// SetGate makes a gate, or changes its limit, 1 to 1000: handlers with [Gates] share it, those of other jobs and programs too. It is to stand before
// the first of them is scheduled or enqueued.
//
// The gate is stored. The same call at the next start of the program changes nothing. What an operator has said of the gate beside its limit stays, unless an option says otherwise. A gate that is closed stays closed.
func (b *Belfry) SetGate(ctx context.Context, name string, limit int, options ...GateOption) error {
	err := overEdits(func() error {
		def, only, err := b.engine.gate(ctx, name)
		if err != nil {
			return err
		}
		def.Limit = limit
		for _, o := range options {
			o.set(&def)
		}
		if def = def.WithDefaults(); def.Validate() != nil {
			return def.Validate()
		}
		return b.engine.putGate(ctx, name, def, only)
	})
	if err != nil {
		return fmt.Errorf("gate %s: %w", name, err)
	}
	return nil
}

func (b *Belfry) kind(name string) *kind {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[name]
}

// defined is what the code says of a job, over what stands. When it fires and with what is left as it is, and so is what only
// operators say. A process that has not the handler (nil) leaves all to the one that has.
func (b *Belfry) defined(k *kind, handler string, standing job.Definition) job.Definition {
	if k == nil {
		standing.Target, standing.Queue = target.Spec{Handler: &target.Handler{Name: handler}}, b.queue
		return standing
	}
	def := k.policy
	def.Queue = b.queue
	def.Schedule, def.MaxRuns, def.Payload, def.CatchUp = standing.Schedule, standing.MaxRuns, standing.Payload, standing.CatchUp
	def.Description, def.Labels, def.Paused, def.On = standing.Description, standing.Labels, standing.Paused, standing.On
	return def
}

// define stores the job of a handler that is here, unless this process has done so.
func (b *Belfry) define(ctx context.Context, name string) error {
	b.mu.Lock()
	k := b.kinds[name]
	done := k == nil || k.stored
	b.mu.Unlock()
	if done {
		return nil
	}
	if err := b.put(ctx, name, func(standing job.Definition) job.Definition { return b.defined(k, name, standing) }); err != nil {
		return err
	}
	b.standsAs(name, name)
	return nil
}

// defineAll is define for a job that runs are asked of, and for those that the requests have called.
func (b *Belfry) defineAll(ctx context.Context, name string, requests ...control.Request) error {
	err := b.define(ctx, name)
	for i := 0; err == nil && i < len(requests); i++ {
		callees := requests[i].Callees
		for _, called := range []string{callees.Succeeded, callees.Failed} {
			if err == nil && called != "" {
				err = b.define(ctx, called)
			}
		}
	}
	return err
}

// standsAs notes that the job of a handler was stored.
func (b *Belfry) standsAs(name, handler string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.kinds[name]; k != nil && name == handler {
		k.stored = true
	}
}

// maxRounds bounds how often somebody else's edit may come in between.
const maxRounds = 8

// put brings a job to what change makes of it, over edits of others.
func (b *Belfry) put(ctx context.Context, name string, change func(job.Definition) job.Definition) error {
	err := overEdits(func() error {
		standing, only, err := b.engine.job(ctx, name)
		if err != nil {
			return err
		}
		return b.engine.put(ctx, name, change(standing), only)
	})
	if err != nil {
		return fmt.Errorf("job %s: %w", name, err)
	}
	return nil
}

// overEdits edits what was read again where somebody else's edit came in between.
func overEdits(edit func() error) error {
	var err error
	for range maxRounds {
		err = refused(edit())
		if !HasCode(err, Code(control.CodeStale)) && !HasCode(err, Code(control.CodeJobExists)) && !HasCode(err, Code(control.CodeGateExists)) {
			break
		}
	}
	return err
}
