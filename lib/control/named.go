package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// GateMatch is what a gate has to be for an edit to be made.
type GateMatch struct {
	Match

	// Stands refuses the gate as it stands, of Version 0 where there is none, also where nothing would change; nil: it may stand in any way.
	Stands func(gate.Named) error
}

// PutGate creates or replaces the definition of a gate that has a name of its own. One that is closed stays closed. The same definition again changes
// nothing, and finishes what an earlier try left unfinished, so that a PutGate whose answer was lost can be repeated, with its old Match too. Errors: those of
// match.Stands, joined *invalid.Error, *Refusal.
func (s *Service) PutGate(ctx context.Context, tenant, name string, def gate.Definition, match GateMatch) (gate.Named, Change, error) {
	def = def.WithDefaults()
	if err := def.Validate(); err != nil {
		return gate.Named{}, 0, err
	}
	change := Unchanged
	n, err := s.editGate(ctx, tenant, name, func(n *gate.Named) (bool, error) {
		if match.Stands != nil {
			if err := match.Stands(*n); err != nil {
				return false, err
			}
		}
		exists := n.Version != 0
		if exists && n.Def.Equal(def) {
			change = Unchanged
			return false, nil
		}
		if err := match.holds("gate "+name, n.ETag(), exists, CodeGateExists); err != nil {
			return false, err
		}
		change = Updated
		if !exists {
			change = Created
			n.Created, n.Closed, n.Opened, n.Deleted = 0, nil, nil, false
		}
		n.Def = def
		return true, nil
	})
	return n, change, err
}

// DeleteGate deletes a gate. Jobs that name it go on naming it: their runs pass as if it were not there, and those that wait are let in.
func (s *Service) DeleteGate(ctx context.Context, tenant, name string, match Match) error {
	gone := false
	_, err := s.editGate(ctx, tenant, name, func(n *gate.Named) (bool, error) {
		if gone = n.Version == 0; gone {
			return false, nil // an earlier delete may have stopped before those that wait were let in
		}
		if err := match.holds("gate "+name, n.ETag(), true, CodeGateExists); err != nil {
			return false, err
		}
		n.Deleted, n.Def, n.Closed, n.Opened = true, gate.Definition{}, nil, nil
		return true, nil
	})
	if err == nil && gone {
		return noGate(name)
	}
	return err
}

// CloseGate has a gate let nobody in until it is opened; runs in progress go on. by and reason are kept with the gate. Closing one that is closed for another reason
// changes these two alone, and without a reason nothing. match is as of Pause.
func (s *Service) CloseGate(ctx context.Context, tenant, name, by, reason string, match Match) (gate.Named, error) {
	if err := gateReason(reason); err != nil {
		return gate.Named{}, err
	}
	return s.turnGate(ctx, tenant, name, match, func(n *gate.Named, now int64) bool {
		if n.Closed != nil && (reason == "" || n.Closed.Reason == reason) {
			return false
		}
		since := now
		if n.Closed != nil {
			since = n.Closed.At
		}
		n.Closed = &gate.Change{At: since, Reason: reason, By: by}
		n.Opened = nil
		return true
	})
}

// OpenGate has a closed gate let runs in again. by and reason are kept with the gate until it is closed again; opening one that is open changes nothing. match is as of Pause.
func (s *Service) OpenGate(ctx context.Context, tenant, name, by, reason string, match Match) (gate.Named, error) {
	if err := gateReason(reason); err != nil {
		return gate.Named{}, err
	}
	return s.turnGate(ctx, tenant, name, match, func(n *gate.Named, now int64) bool {
		if n.Closed == nil {
			return false
		}
		n.Closed, n.Opened = nil, &gate.Change{At: now, Reason: reason, By: by}
		return true
	})
}

// gateReason refuses what is too long to be kept with a gate, or is no text.
func gateReason(reason string) error {
	if len(reason) > gate.MaxReason {
		return invalid.Field("reason", reason, fmt.Sprintf("at most %d bytes", gate.MaxReason))
	}
	return isText("reason", reason)
}

// turnGate closes or opens a gate that there is.
func (s *Service) turnGate(ctx context.Context, tenant, name string, match Match, turn func(n *gate.Named, now int64) bool) (gate.Named, error) {
	return s.editGate(ctx, tenant, name, func(n *gate.Named) (bool, error) {
		if n.Version == 0 {
			return false, noGate(name)
		}
		if err := match.holds("gate "+name, n.ETag(), true, CodeGateExists); err != nil {
			return false, err
		}
		return turn(n, s.storeTime().UnixMilli()), nil
	})
}

func noGate(name string) error { return refuse(CodeGateNotFound, "there is no gate %s", name) }

// editGate changes the definition of a gate, or says that nothing is to be changed. change may be called again after a conflict.
func (s *Service) editGate(ctx context.Context, tenant, name string, change func(*gate.Named) (bool, error)) (gate.Named, error) {
	if err := notOwn(name); err != nil {
		return gate.Named{}, err
	}
	if err := gate.ValidName(name); err != nil {
		return gate.Named{}, err
	}
	for range maxRounds {
		n, err := s.namedGate(ctx, tenant, name)
		if err != nil {
			return gate.Named{}, err
		}
		now, err := s.Dispatch.Clock() // behind the definition: the store's answer may tell that this clock was stepped
		if err != nil {
			return gate.Named{}, skewed(err)
		}
		changed, err := change(&n)
		if err != nil {
			return gate.Named{}, err
		}
		if changed {
			n.Generation, n.Updated = n.Next(now), now
			if n.Created == 0 {
				n.Created = now
			}
			op, err := n.Put(s.NewID())
			if err != nil {
				return gate.Named{}, err
			}
			versions, err := s.Dispatch.Write(ctx, op)
			if store.AsConflict(err) != nil && !errors.Is(err, store.ErrUnknown) {
				continue
			}
			if err != nil {
				return gate.Named{}, fmt.Errorf("write gate %s: %w", name, err)
			}
			n = n.Written(versions[0])
		}
		if n.Generation == 0 { // a delete of what never was: no gate is written for it
			return n, nil
		}
		// Durable now. A crash here leaves a definition of which the gate does not know: who enters next sees it, those that wait are left to their
		// checks, and a repeated request finishes it.
		if err := s.Dispatch.Redefined(ctx, n); changed && err != nil {
			return gate.Named{}, halfDone(err)
		} else if err != nil {
			return gate.Named{}, err
		}
		return n, nil
	}
	return gate.Named{}, &Refusal{Code: CodeBusy, Message: "gate " + name + " is being edited by many at once; try again", RetryAfter: time.Second}
}

// notOwn refuses to edit the own gate of a job.
func notOwn(name string) error {
	of, own := gate.OwnOf(name)
	if !own {
		return nil
	}
	return refuse(CodeOwnGate, "%s is the own gate of a job: its limit is the field overlap of %s, and to keep its runs out, pause that job", name, of)
}

// namedGate reads the definition of a gate. One that there is not has Version 0.
func (s *Service) namedGate(ctx context.Context, tenant, name string) (gate.Named, error) {
	items, err := s.Store.Get(ctx, gate.NamedKey(tenant, name))
	if err != nil {
		return gate.Named{}, fmt.Errorf("read gate %s: %w", name, err)
	}
	return gate.NamedFromItem(tenant, items[0])
}

// impassable is what a definition says of a gate that cannot be so: there is no such gate, or it has fewer units.
type impassable struct {
	use job.GateUse
	err error
}

// passable notes of each draft which of its gates there are not, and which have a limit below the units that it asks for.
func (s *Service) passable(ctx context.Context, tenant string, drafts ...*put) error {
	gates := map[string]gate.Named{}
	for _, p := range drafts {
		p.impassable = nil
		for _, use := range p.def.Gates {
			gates[use.Gate] = gate.Named{}
		}
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(gates)), store.MaxKeys) {
		keys := make([]store.Key, len(some))
		for i, name := range some {
			keys[i] = gate.NamedKey(tenant, name)
		}
		items, err := s.Store.Get(ctx, keys...)
		if err != nil {
			return fmt.Errorf("read the gates that are named: %w", err)
		}
		for i, name := range some {
			n, err := gate.NamedFromItem(tenant, items[i])
			if err != nil { // it exists, and what it says is not known
				s.unreadable(tenant, items[i], err)
				n = gate.Named{Version: items[i].Version, Def: gate.Definition{Limit: gate.MaxLimit}}
			}
			gates[name] = n
		}
	}
	for _, p := range drafts {
		for i, use := range p.def.Gates {
			field := fmt.Sprintf("gates[%d]", i)
			switch n := gates[use.Gate]; {
			case n.Version == 0:
				p.impassable = append(p.impassable, impassable{use, invalid.Field(field+".gate", use.Gate, "a gate that exists; make it first, by PUT /v1/gates/"+use.Gate+" or belfry gate apply")})
			case use.Units > n.Def.Limit:
				p.impassable = append(p.impassable, impassable{use, invalid.Field(field+".units", strconv.Itoa(use.Units), fmt.Sprintf("at most %d, the limit of the gate %s", n.Def.Limit, use.Gate))})
			}
		}
	}
	return nil
}

// refuseGates refuses what a job does not say as it stands. It may be edited although one of its gates is gone by now, or lower.
func refuseGates(impassable []impassable, standing job.Definition) error {
	var wrong []error
	for _, i := range impassable {
		if !slices.Contains(standing.Gates, i.use) {
			wrong = append(wrong, i.err)
		}
	}
	return errors.Join(wrong...)
}

// Release lets a run that waits at a gate go to the front of its line, where it is let in as soon as there is room: the limit holds. The run records it, by whom and for what reason.
func (s *Service) Release(ctx context.Context, tenant string, id run.ID, by, reason string) (run.Run, error) {
	if err := isText("reason", reason); err != nil {
		return run.Run{}, err
	}
	if n := utf8.RuneCountInString(reason); n > run.MaxNote {
		return run.Run{}, invalid.Field("reason", reason, fmt.Sprintf("at most %d characters", run.MaxNote))
	}
	r, err := s.Run(ctx, tenant, id)
	if err != nil {
		return run.Run{}, err
	}
	if r.Waits() {
		r, err = s.Dispatch.Release(ctx, r, by, reason)
	} else {
		err = dispatch.ErrNotWaiting
	}
	if errors.Is(err, dispatch.ErrNotWaiting) {
		return run.Run{}, refuse(CodeNotWaiting, "run %s is %s, and does not wait at a gate", id, s.Shown(ctx, r))
	}
	if errors.Is(err, dispatch.ErrOutwaited) {
		return run.Run{}, refuse(CodeNotWaiting, "run %s has waited at gate %s for as long as it may, until %s: it is skipped at its next check, and may be retried then", id, r.Wait.Gate, time.UnixMilli(r.Wait.Until).UTC().Format(time.RFC3339))
	}
	return r, err
}
