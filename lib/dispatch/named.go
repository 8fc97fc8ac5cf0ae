package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// gateTries is how often others may change a gate while somebody changes its definition, or the order of its line.
const gateTries = 20

// Redefined makes a change of a named gate's definition hold, which was written before: of what it says, by a close or an open, or by its deletion, where n has Version
// 0. Once it returns, nobody is let in any more by what the definition said before, and whoever can be by what it says now is let in.
//
// Durable then: the gate, written under the definition, which whoever has read the one before meets. A crash before it leaves a definition that holds for all who read
// it from now on. Where there was none, runs that have found none pass still, and are not counted.
func (d *Dispatcher) Redefined(ctx context.Context, n gate.Named) error {
	all := gate.ID{Tenant: n.Tenant, Name: n.Name}
	if err := d.redefine(ctx, all, nil); err != nil {
		return err
	}
	var failed error // at a value: that of one is no reason to leave the others
	of := gate.Keyed(n.Tenant, n.Name, "", lineLook)
	for keys := 0; keys < lineKeys; {
		page, err := d.Store.Query(ctx, of)
		if err != nil {
			return errors.Join(failed, fmt.Errorf("read the gates of the values of %s: %w", n.Name, err))
		}
		if len(page.Items) > 0 {
			failed = errors.Join(failed, d.redefineValues(ctx, all, page.Items))
		}
		if of.Cursor = page.Cursor; of.Cursor == "" || ctx.Err() != nil {
			return failed
		}
		keys += len(page.Items)
	}
	d.Log.WarnContext(ctx, "a gate has more values of a key than a change writes: at the others it holds once the next run enters, and those beyond are let in where any wait", "gate", n.Name)
	return errors.Join(failed, d.letInValues(ctx, n.Tenant, n.Name))
}

// redefineValues redefines gates of values of one name, as they were read.
func (d *Dispatcher) redefineValues(ctx context.Context, all gate.ID, items []store.Item) error {
	def, err := d.gateDefinition(ctx, all) // behind all of them
	if err != nil {
		return err
	}
	return atGates(d, items, func(item store.Item) error {
		g, err := gate.FromItem(all.Tenant, all.Name, item)
		if err != nil {
			return err
		}
		g.Def = def
		return d.redefine(ctx, g.ID(), &g)
	})
}

// atGates does something at each of several gates, at a few at once. Where the clocks stand, it is done in one order.
func atGates[T any](d *Dispatcher, gates []T, do func(T) error) error {
	most := readers
	if d.Still {
		most = 1
	}
	failed := make([]error, len(gates))
	Parallel(gates, most, func(i int, at T) { failed[i] = do(at) })
	return errors.Join(failed...)
}

// redefine writes a gate under its definition as it stands, and lets in whoever waits there and can be by that. read is how the gate stood, with the definition read behind
// it, nil where nobody has looked.
func (d *Dispatcher) redefine(ctx context.Context, at gate.ID, read *gate.Gate) error {
	waiting := false
	err := d.changeGate(ctx, at, func() error {
		var g gate.Gate
		if read != nil {
			g, read = *read, nil
		} else { // by the definition as it stands: another change may have come since, and nothing older may be written over it
			var err error
			if g, err = d.readBriefly(at); err != nil {
				return err
			}
		}
		waiting = g.Waiting > 0
		if g.Key != "" && g.Version == 0 { // cleaned up since: whoever is first to enter writes it by what the definition says then
			return nil
		}
		if g.Under != 0 && g.Current() { // whoever decided under another definition meets what was written under this one
			return nil
		}
		return d.writeGate(g.Begin())
	})
	if err != nil || !waiting {
		return err
	}
	return d.LetIn(ctx, at)
}

// changeGate does a change until no other meets it.
func (d *Dispatcher) changeGate(ctx context.Context, at gate.ID, change func() error) error {
	for try := range gateTries {
		err := change()
		if store.AsConflict(err) == nil && !passing(err) {
			return err
		}
		if err := d.pause(ctx, min(try, 3)); err != nil {
			return err
		}
	}
	return fmt.Errorf("gate %s: overtaken %d times: %w", at, gateTries, store.ErrThrottled)
}

// ErrNotWaiting says of a run that it waits in no line.
var ErrNotWaiting = errors.New("the run waits at no gate")

// ErrOutwaited says of a run that it has waited in line for as long as it may: its check ends it.
var ErrOutwaited = errors.New("the run has waited in line for as long as it may")

// Release has a run that waits in line go to the front, before all but others that were released, and gives it as it stands then: it may be let in by now. It is
// let in when there is room, as any. The run records by whom, and for what reason: of one that stands there already, what was said first. ErrNotWaiting says that it waits in no line, and
// ErrOutwaited that nobody is to let it in any more.
//
// Durable with the write: its place at the front, and that it was released. A crash behind it leaves letting it in to whoever makes room, or to its check.
func (d *Dispatcher) Release(ctx context.Context, r run.Run, by, reason string) (run.Run, error) {
	var at gate.ID
	err := d.changeGate(ctx, gate.Of(r), func() error {
		standing, err := d.ReadRuns(ctx, []run.Run{r})
		if err != nil {
			return fmt.Errorf("read run %s: %w", r.ID, err)
		}
		if r = standing[0]; !r.Waits() {
			return ErrNotWaiting
		}
		at = gate.Of(r)
		if r.Released != 0 && gate.PlaceOf(r).Forwarded() { // here, and not at a gate before this one
			return nil
		}
		now, err := d.Clock()
		if err != nil {
			return err
		}
		if r.Outwaited(now) {
			return ErrOutwaited
		}
		round, err := d.readGate(at)
		if err != nil {
			return err
		}
		before := gate.PlaceOf(r)
		released := r.ToFront(r.Wait.Rank-gate.Forward(before.Rank), now, by, reason)
		round.Strike()
		round.Join(released, false)
		ops, err := round.Puts(d.Now(), d.NewID)
		if err != nil {
			return err
		}
		return d.writeGate(round, append(ops, store.Op{Kind: store.Delete, Key: before.Key(r.Tenant), If: store.Any})...)
	})
	if err != nil {
		return r, err
	}
	if err := d.LetIn(ctx, at); err != nil {
		d.Log.WarnContext(ctx, "a run that was released is left to its check", "run", r.ID.String(), "error", err)
	}
	standing, err := d.ReadRuns(ctx, []run.Run{r})
	if err != nil {
		return r, fmt.Errorf("read run %s: %w", r.ID, err)
	}
	return standing[0], nil
}

// leaveWider gives the writes by which runs that are about to join the line of a named gate leave places at wider ones, which an earlier delivery was given before this gate was made anew. They
// are made with the joining: so nobody who waits holds a place at a wider gate, and no two runs wait for places of one another.
func (d *Dispatcher) leaveWider(joining []*wanting) ([]store.Op, error) {
	of := map[gate.ID][]run.ID{}
	for _, w := range joining {
		for _, at := range widerThan(w.run, w.def, w.at) {
			of[at] = append(of[at], w.run.ID)
		}
	}
	ops, had, err := d.without(of)
	for _, w := range joining {
		w.wider = nil
		for at, runs := range had {
			if slices.Contains(runs, w.run.ID) {
				w.wider = append(w.wider, at)
			}
		}
		slices.SortFunc(w.wider, gate.ID.Compare)
	}
	return ops, err
}

// without gives the writes of those of gates at which any of these runs have entries, without them, and whose these are.
func (d *Dispatcher) without(of map[gate.ID][]run.ID) (ops []store.Op, had map[gate.ID][]run.ID, err error) {
	had = map[gate.ID][]run.ID{}
	for some := range slices.Chunk(slices.SortedFunc(maps.Keys(of), gate.ID.Compare), store.MaxKeys) {
		keys := make([]store.Key, len(some))
		for i, at := range some {
			keys[i] = at.Item()
		}
		ctx, cancel := d.brief()
		items, err := d.Store.Get(ctx, keys...)
		cancel()
		if err != nil {
			return nil, nil, fmt.Errorf("read wider gates: %w", err)
		}
		for i, at := range some {
			g, err := gate.FromItem(at.Tenant, at.Name, items[i])
			if err != nil {
				return nil, nil, err
			}
			round := g.Begin()
			for _, id := range of[at] {
				if round.Forget(id) {
					had[at] = append(had[at], id)
				}
			}
			if len(had[at]) == 0 {
				continue
			}
			op, err := round.Gate().Put(d.Now(), d.NewID())
			if err != nil {
				return nil, nil, err
			}
			ops = append(ops, op)
		}
	}
	return ops, had, nil
}

// widerThan gives the gates that a run passes behind a named one.
func widerThan(r run.Run, def job.Definition, at gate.ID) (wider []gate.ID) {
	if !at.IsNamed() { // whose place a run keeps as long as it is claimed as it is
		return nil
	}
	for _, way := range waysOf(r, def) {
		if at.Compare(way.at) < 0 {
			wider = append(wider, way.at)
		}
	}
	return wider
}

// leaveWiderStill does for a run that waits what leaveWider does for one that joins: another delivery of it may have passed the gate where it waits before that was made anew, and been given places
// since. The run is written with the gates, as it stands: so it waits still, and no delivery of it has gone on.
func (d *Dispatcher) leaveWiderStill(ctx context.Context, r run.Run) error {
	at := gate.Of(r)
	if !at.IsNamed() {
		return nil
	}
	edition, err := d.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if errors.Is(err, job.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	of := map[gate.ID][]run.ID{}
	for _, wider := range widerThan(r, edition.Def, at) {
		of[wider] = []run.ID{r.ID}
	}
	ops, had, err := d.without(of)
	if err != nil || len(ops) == 0 {
		return err
	}
	op, err := r.Item(d.NewID())
	if err != nil {
		return err
	}
	// Durable with this write: that it holds no wider place, at any of these gates. A crash behind it leaves those that wait there to their checks.
	if _, err := d.writeBriefly(append(ops, op)...); err != nil {
		return unlessOvertaken(err) // then the next check looks again
	}
	for _, left := range slices.SortedFunc(maps.Keys(had), gate.ID.Compare) {
		err = errors.Join(err, d.LetIn(ctx, left))
	}
	return err
}

// endDeleted ends those of waiting runs at named gates whose jobs were deleted, and gives the others. At its own gate the line of a deleted job is ended by whoever lets in;
// at one of several, such a run may stand far behind.
func (d *Dispatcher) endDeleted(ctx context.Context, waiting []run.Run) ([]run.Run, error) {
	var kept, named []run.Run
	for _, r := range waiting {
		if gate.Of(r).IsNamed() {
			named = append(named, r)
		} else {
			kept = append(kept, r)
		}
	}
	for tenant, mine := range GroupBy(named, func(r run.Run) string { return r.Tenant }) {
		jobs, err := d.newest(ctx, tenant, mine)
		if err != nil {
			return nil, err
		}
		for _, r := range mine {
			if !waitsForNone(*jobs[r.ID.Job], r) {
				kept = append(kept, r)
				continue
			}
			now, err := d.Clock()
			if err != nil {
				return nil, err
			}
			ended, _ := r.AskCancel(now, Deleted, job.DefaultRetention)
			if _, err = d.PutRun(ctx, ended, job.Callbacks{}, now); store.AsConflict(err) != nil {
				continue
			}
			if err == nil {
				err = d.Left(ctx, r)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}
