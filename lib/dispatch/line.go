package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Bounds of what is written of a line at once: each run is an op, and so is its place, beside the gate's own.
const (
	lineBatch = 30  // runs that are let in, or leave, by one write
	joinBatch = 45  // runs that join by one write
	lineLook  = 100 // places that are looked through in a line that looks full

	// lineTries is how often others may change a gate while the next is let in, before that is left to the message of who has ended, or to a check.
	lineTries = 12

	// lineSteps bounds the writes of one who lets in: what is left is for whoever ends next, and for checks.
	lineSteps = 40

	// lineBarren bounds those beside them that let in nobody: all of a line as long as a job may bound it are too late for them.
	lineBarren = job.MaxMaxWaiting/lineBatch + 1
)

// calling is what was asked for at the line of a gate: to let in whoever can be.
type calling struct {
	at   gate.ID
	gone []run.Run // hold no place any more, as they stood when they did, or waited in line
	look bool      // at all that hold places

	given []given // runs that were asked to give way to one that waits

	until time.Duration // by Elapsed: for how long it looks past runs that pauses hold; 0: it has seen none yet

	done chan struct{}
	err  error
}

// Left tells the gates of a run that it has ended, or waits there no longer, so that the next in line are let in. gone is the run as it has
// ended; of one that waited, or that may have been let in and not started, as it stood before. It is called before the message of the run is deleted.
//
// Durable afterwards: whoever there is room for is let in. A crash before leaves it to the run's message, which comes again, or to the checks of those
// that wait. What waits for the end of a step are the steps behind it: see followEnd.
func (d *Dispatcher) Left(ctx context.Context, gone run.Run) error {
	if gone.ID.IsStep() {
		return d.followEnd(ctx, gone)
	}
	var failed error
	if gone.Pauses {
		if _, failed = d.pauseFor(ctx, gone); !gone.Placed {
			return failed
		}
	}
	ways, err := d.gatesOf(ctx, gone) // also where its job is not paused: other jobs wait at them
	failed = errors.Join(failed, err)
	for _, at := range ways {
		failed = errors.Join(failed, d.call(ctx, &calling{at: at, gone: []run.Run{gone}}))
	}
	return failed
}

// gatesOf gives the gates that a run leaves which has ended, from narrow to wide: those of its definition. Where that is gone, only its job's own gate is known, and where
// the run waited. A run that passes its job's own gate alone has no definition read.
func (d *Dispatcher) gatesOf(ctx context.Context, gone run.Run) ([]gate.ID, error) {
	if !gone.NamedGates {
		return []gate.ID{gate.OwnGate(gone)}, nil
	}
	edition, err := d.Book.Edition(ctx, gone.Tenant, gone.ID.Job, gone.Generation)
	switch {
	case Unreadable(err):
	case err != nil:
		return nil, fmt.Errorf("read the definition of run %s, which leaves its gates: %w", gone.ID, err)
	case len(edition.Def.Gates) > 0:
		var at []gate.ID
		for _, way := range waysOf(gone, edition.Def) {
			at = append(at, way.at)
		}
		return at, nil
	}
	if at := gate.Of(gone); at.IsNamed() {
		return []gate.ID{gate.OwnGate(gone), at}, nil
	}
	return []gate.ID{gate.OwnGate(gone)}, nil
}

// LetIn lets in whoever waits at a gate and can be, after a look at all that hold places: for edits and checks, and after anything else that may
// have made room without a word.
func (d *Dispatcher) LetIn(ctx context.Context, at gate.ID) error {
	return d.call(ctx, &calling{at: at, look: true})
}

// lineKeys is at how many values of a key those that wait are let in for an edit, before what is left is for their checks.
const lineKeys = 1000

// LetInAll is LetIn at gates of a job, by their names. Where values is said, so it is at those of their values at which runs wait.
func (d *Dispatcher) LetInAll(ctx context.Context, j job.Job, names []string, values bool) (err error) {
	for _, name := range names {
		err = errors.Join(err, d.LetIn(ctx, gate.ID{Tenant: j.Tenant, Name: name}))
		if values && (j.Keyed || name != gate.Name(j.Name)) {
			err = errors.Join(err, d.letInValues(ctx, j.Tenant, name))
		}
	}
	return err
}

// letInValues is LetIn at the gates of a name at which runs wait for values of a key.
func (d *Dispatcher) letInValues(ctx context.Context, tenant, name string) (err error) {
	after := ""
	for found := 0; found < lineKeys && ctx.Err() == nil; {
		var at []gate.ID
		for len(at) < lineLook {
			key, failed := d.nextLine(ctx, tenant, name, after)
			if failed != nil {
				return errors.Join(err, failed)
			}
			if key == "" {
				break
			}
			at, after = append(at, gate.ID{Tenant: tenant, Name: name, Key: key}), key
		}
		err = errors.Join(err, atGates(d, at, func(at gate.ID) error { return d.LetIn(ctx, at) }))
		if found += len(at); len(at) < lineLook {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.Log.WarnContext(ctx, "runs wait for more values of a key than an edit lets in: the others are left to their checks", "gate", name)
	return err
}

// nextLine finds the next key of the gates of a name for which runs wait, "" for none.
func (d *Dispatcher) nextLine(ctx context.Context, tenant, name, after string) (string, error) {
	for r := gate.KeyedLines(tenant, name, after); ; {
		page, err := d.Store.Query(ctx, r)
		if err != nil {
			return "", fmt.Errorf("read the lines of %s: %w", name, err)
		}
		for _, item := range page.Items {
			p, err := gate.PlaceFromItem(name, item)
			if err == nil && p.Of != "" {
				return p.Of, nil
			}
			d.Log.ErrorContext(ctx, "a place in a line is unreadable", "key", item.Key.String(), "error", err)
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return "", nil
		}
	}
}

// call is made for all of this process that ask for the same gate at about the same time, and with those that want in.
func (d *Dispatcher) call(ctx context.Context, c *calling) error {
	c.done = make(chan struct{})
	d.visit(c.at, func(at *atGate) { at.calling = append(at.calling, c) })
	<-c.done // bounded by the time-outs of the requests
	d.seeOff(ctx, c.given)
	if c.err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return c.err
}

// callGroup sees to what was asked for at one gate.
func (d *Dispatcher) callGroup(group []*calling) {
	if len(group) == 0 {
		return
	}
	all := calling{at: group[0].at}
	slices.SortFunc(group, func(a, b *calling) int { return compareGone(a.gone, b.gone) }) // what is asked of the store does not depend on who came first
	for _, c := range group {
		all.gone, all.look = append(all.gone, c.gone...), all.look || c.look
	}
	err := d.callIn(&all, false)
	group[0].given = all.given // where any has given way, this one has asked for a look, and sees to no other gate meanwhile
	for _, c := range group {
		c.err = err
		close(c.done)
	}
}

func compareGone(a, b []run.Run) int {
	return slices.CompareFunc(a, b, func(a, b run.Run) int {
		return cmp.Or(cmp.Compare(a.ID.Nominal, b.ID.Nominal), strings.Compare(a.ID.Random, b.ID.Random), strings.Compare(a.ID.Job, b.ID.Job), cmp.Compare(a.Version, b.Version))
	})
}

// callIn lets in until there is no room, or no line. Where whole is said, it looks through a short line for places that are of nobody.
func (d *Dispatcher) callIn(c *calling, whole bool) error {
	var unsure []run.Run // let in by a write of which nothing is known
	tries, far := 0, false
	for steps, barren := 0, 0; steps < lineSteps && barren < lineBarren; {
		step := &letting{Dispatcher: d, calling: c, whole: whole, far: far}
		err := step.read()
		if err == nil && step.idle() {
			if len(step.round.Blockers()) > 0 { // what was seen of them is not written
				step.gauge(step.round, step.job.Def.Labels)
			}
			var again bool
			if again, err = step.ask(); err == nil && again { // who has ended makes room at once
				steps++
				continue
			}
			if err == nil {
				return d.sendLetIn(unsure, true)
			}
		} else if err == nil {
			err = step.write()
		}
		switch {
		case err == nil:
			if err := d.sendLetIn(step.in, false); err != nil {
				return err
			}
			step.leaveNarrower()
			if !step.again && !step.mayAsk() {
				return d.sendLetIn(unsure, true)
			}
			if c.gone, whole, far = nil, false, step.barren(); far {
				barren++
			} else {
				steps++
			}
		case (store.AsConflict(err) != nil || passing(err)) && tries < lineTries:
			if errors.Is(err, store.ErrUnknown) {
				unsure = append(unsure, step.in...)
			}
			tries++
			if tries > 1 {
				if err := d.pause(context.Background(), min(tries-1, 3)); err != nil {
					return err
				}
			}
		default:
			return err
		}
	}
	return d.sendLetIn(unsure, true)
}

// sendLetIn sends runs that were let in. Those that it is not sure of are read first. What cannot be sent has its check.
func (d *Dispatcher) sendLetIn(in []run.Run, unsure bool) error {
	if len(in) == 0 {
		return nil
	}
	ctx, cancel := d.brief()
	defer cancel()
	if unsure {
		var err error
		if in, err = d.ReadRuns(ctx, distinct(in)); err != nil {
			return err
		}
		in = slices.DeleteFunc(in, func(r run.Run) bool { return r.State != run.Queued || r.Waits() })
	}
	send := make([]Outgoing, 0, len(in))
	for _, r := range in {
		edition, err := d.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
		if err != nil {
			if Unreadable(err) {
				continue
			}
			return err
		}
		send = append(send, Outgoing{Run: r, Queue: edition.Def.Queue})
	}
	if unsent, err := d.Send(ctx, send); err != nil || len(unsent) > 0 {
		d.Log.WarnContext(ctx, "runs that were let in wait for their checks", "runs", len(unsent), "error", err)
	}
	return nil
}

// tend does for runs that wait in lines what a check does for others: whoever can be is let in. A run that has no place in the line any more enters anew, and so does
// one that stands behind others in a pause that it ignores.
func (d *Dispatcher) tend(ctx context.Context, waiting []run.Run) ([]Outgoing, error) {
	seen := map[gate.ID]bool{}
	for _, r := range waiting {
		if at := gate.Of(r); !seen[at] {
			seen[at] = true
			if err := d.LetIn(ctx, at); err != nil {
				return nil, err
			}
		}
	}
	standing, err := d.ReadRuns(ctx, waiting)
	if err != nil {
		return nil, err
	}
	standing = slices.DeleteFunc(standing, func(r run.Run) bool { return !r.Waits() })
	if standing, err = d.endDeleted(ctx, standing); err != nil {
		return nil, err
	}
	for _, r := range standing {
		if err := d.leaveWiderStill(ctx, r); err != nil {
			return nil, err
		}
	}
	keys := make([]store.Key, len(standing))
	for i, r := range standing {
		keys[i] = gate.PlaceOf(r).Key(r.Tenant)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	places, err := d.Store.Get(ctx, keys...) // behind the runs: who joins writes both at once
	if err != nil {
		return nil, fmt.Errorf("read places in line: %w", err)
	}
	gates := map[gate.ID]gate.Gate{}
	var lost, moved []run.Run
	for i, r := range standing {
		at := gate.Of(r)
		g, read := gates[at]
		if !read {
			round, err := d.readGate(at)
			if err != nil {
				return nil, err
			}
			g = round.Gate()
			gates[at] = g
		}
		if !places[i].Exists() || g.Waiting == 0 || g.Front > gate.PlaceOf(r).Rank {
			lost = append(lost, r)
		} else if r.IgnorePause && !at.IsNamed() && !gate.PlaceOf(r).Forwarded() {
			paused, err := d.paused(r)
			if err != nil {
				return nil, err
			}
			if paused { // since it joined: it enters anew, at the front or past those that are held
				moved = append(moved, r)
			}
		}
	}
	if len(lost) > 0 {
		d.Log.WarnContext(ctx, "runs wait that have no place in line any more: they enter anew", "runs", len(lost), "first", lost[0].ID.String())
	}
	anew := slices.Concat(lost, moved)
	if len(anew) == 0 {
		return nil, nil
	}
	wishes := make([]*wish, len(anew))
	for i, r := range anew {
		version := r.Version
		wishes[i] = &wish{run: r, decide: func(r run.Run) (run.Run, run.ClaimVerdict) {
			if r.Version != version {
				return r, run.Taken
			}
			return r.Unjoin(), run.Claimed
		}}
	}
	if err := d.granted(ctx, wishes); err != nil {
		return nil, err
	}
	var send []Outgoing
	for _, w := range wishes {
		if w.verdict != run.Claimed {
			continue
		}
		edition, err := d.Book.Edition(ctx, w.run.Tenant, w.run.ID.Job, w.run.Generation)
		if Unreadable(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		send = append(send, Outgoing{Run: w.run, Queue: edition.Def.Queue})
	}
	return send, nil
}
