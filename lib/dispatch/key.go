package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A gate that a job passes by a key is one for each of its values. Which ones a run passes is found out when it is about to enter, and is in its record once that says that it
// waits or has started: so it leaves the gates that it has entered, whatever comes of the expressions later. A run that has entered and of which no record says so yet, since
// its worker has died, is asked again. All that a key reads is of the run's own generation, so it has the same value.

// Keyed gives a run that is due with the keys of the gates that it is to enter, where it passes any by a key. False says that it has ended instead, or that another has
// written it.
//
// Durable with false: the run's end, where a key cannot be told. With an error nothing is known.
func (d *Dispatcher) Keyed(ctx context.Context, r run.Run, e *job.Edition) (keyed run.Run, ok bool, err error) {
	keyed, err = d.keysOf(ctx, r, e)
	var failed *expression.Failure
	if !errors.As(err, &failed) {
		return keyed, err == nil, err
	}
	now, err := d.Clock()
	if err != nil {
		return r, false, err
	}
	ended, err := d.PutRun(ctx, r.Unkeyed(now, (&target.Failure{Kind: target.KindExpression, Permanent: true, Message: failed.Message}).Error(), e.Def.Kept()), e.Def.On, now)
	if err != nil {
		return r, false, unlessOvertaken(err)
	}
	if e.Def.Watched() {
		d.Metrics.JobEnded(ended.ID.Job, false, time.UnixMilli(ended.Ended))
	}
	return ended, false, nil
}

// MayHold gives a run that is to end, or has ended, as one that holds a place at a gate where it may do so: it may have been let in, and never
// started. Where its key cannot be told, those that wait behind it are left to their checks.
func (d *Dispatcher) MayHold(ctx context.Context, r run.Run, e *job.Edition) run.Run {
	if r.NamedGates = r.NamedGates || len(e.Def.Gates) > 0; r.Placed || !r.Gated(&e.Def) {
		return r
	}
	if !r.Waits() { // else its record says which
		keyed, err := d.keysOf(ctx, r, e)
		var failed *expression.Failure
		if errors.As(err, &failed) {
			return r // it has entered nothing
		}
		if err != nil {
			d.Log.WarnContext(ctx, "at which gate a run has been is not known: who waits for it is left to a check", "tenant", r.Tenant, "run", r.ID.String(), "error", err)
			return r
		}
		r = keyed
	}
	r.Placed = true
	return r
}

// keysOf gives a run with the keys of the gates that it is to enter, those that its record does not have: one that knows some of them only may have written that. An error is an
// *expression.Failure where it is so for ever.
func (d *Dispatcher) keysOf(ctx context.Context, r run.Run, e *job.Edition) (run.Run, error) {
	if knowsKeys(r, e.Def) {
		return r, nil
	}
	keys, err := e.Keys()
	if err != nil {
		return r, &expression.Failure{Message: err.Error()} // a newer version of Belfry took it
	}
	if r.OverlapUnder(&e.Def).IsZero() { // it passes no gate of its job's own, whose key is none of its business
		keys.Own = nil
	}
	input, err := d.keyInput(ctx, r, e.Def, keys)
	if err != nil {
		return r, failedAs(keys.OfPayload(), err)
	}
	err = d.Evaluating(ctx, r.Tenant, r.ID, func(ctx context.Context) error {
		value := func(recorded string, known bool, field string, key *expression.Key) (string, error) {
			if key == nil || known || recorded != "" {
				return recorded, nil
			}
			value, err := key.Eval(ctx, input)
			return gate.KeyOf(value), failedAs(field, err)
		}
		var err error
		if r.GateKey, err = value(r.GateKey, r.Keeps, job.OverlapKeyField, keys.Own); err != nil {
			return err
		}
		named := make([]string, len(keys.Gates))
		for i, key := range keys.Gates {
			if i < len(r.NamedKeys) {
				named[i] = r.NamedKeys[i]
			}
			if named[i], err = value(named[i], false, job.GateKeyField(i), key); err != nil {
				return err
			}
		}
		if slices.ContainsFunc(named, func(key string) bool { return key != "" }) {
			r.NamedKeys = named
		}
		return nil
	})
	return r, err
}

// knowsKeys tells whether a run's record has the key of each gate that it passes by one.
func knowsKeys(r run.Run, def job.Definition) bool {
	if r.GateKey == "" && !r.Keeps && r.OverlapUnder(&def).Key != "" {
		return false
	}
	for i, use := range def.Gates {
		if use.Key != "" && (i >= len(r.NamedKeys) || r.NamedKeys[i] == "") {
			return false
		}
	}
	return true
}

// failedAs has a failure say of which field it is.
func failedAs(field string, err error) error {
	var failed *expression.Failure
	if !errors.As(err, &failed) {
		return err
	}
	return &expression.Failure{Message: field + ": " + failed.Message}
}

// keyInput is what keys read of a run. The payload is read only where one of them names it: one that is kept apart costs a request.
func (d *Dispatcher) keyInput(ctx context.Context, r run.Run, def job.Definition, keys job.Keys) (map[string]any, error) {
	labels := map[string]any{}
	for name, value := range def.Labels {
		labels[name] = value
	}
	input := map[string]any{"job": r.ID.Job, "labels": labels, "nominal_time": timeShown(r.ID), "payload": nil}
	if keys.OfPayload() == "" {
		return input, nil
	}
	data, err := payloadOf(r, def, func(key, what string) ([]byte, error) {
		data, _, err := d.kept(ctx, r.Tenant, key, what, blob.MaxBytes)
		return data, err
	})
	if err != nil || len(data) == 0 {
		return input, err
	}
	switch v, err := expression.Decode(data); {
	case err == nil:
		input["payload"] = v
	case utf8.Valid(data):
		input["payload"] = string(data)
	default:
		return nil, &expression.Failure{Message: "the payload of the run is neither JSON nor text"}
	}
	return input, nil
}

// refresh writes the gates of values anew where runs are in progress, or wait, and nobody has come or gone for so long that they would soon be
// cleaned up. What fails is left to the next check.
func (d *Dispatcher) refresh(ctx context.Context, unended []run.Run, now int64) {
	seen := map[gate.ID]bool{}
	for _, r := range unended {
		if r.GateKey == "" && len(r.NamedKeys) == 0 || now < gate.Ages(max(r.Created, r.ID.Nominal)) {
			continue
		}
		at := []gate.ID{gate.OwnGate(r)}
		var err error
		if len(r.NamedKeys) > 0 {
			at, err = d.gatesOf(ctx, r)
		}
		for _, at := range at {
			if at.Key == "" || seen[at] {
				continue
			}
			seen[at] = true
			round, failed := d.readGate(at)
			if failed == nil && round.Gate().Fades(d.Now()) {
				failed = d.writeGate(round)
			}
			if store.AsConflict(failed) == nil { // else another has written it
				err = errors.Join(err, failed)
			}
		}
		if err != nil {
			d.Log.WarnContext(ctx, "a gate is not written anew yet", "run", r.ID.String(), "error", err)
		}
	}
}

// payloadOf is what a run brings, or what its job has for all. blob reads what is kept apart.
func payloadOf(r run.Run, def job.Definition, blob func(key, what string) ([]byte, error)) ([]byte, error) {
	switch {
	case r.Payload.Blob != "":
		return blob(r.Payload.Blob, "the payload of the run")
	case len(r.Payload.Inline) > 0:
		return r.Payload.Inline, nil
	}
	return def.Payload, nil
}

// timeShown is the nominal time of a run as expressions see it.
func timeShown(id run.ID) string { return id.Time().UTC().Format("2006-01-02T15:04:05.000Z") }
