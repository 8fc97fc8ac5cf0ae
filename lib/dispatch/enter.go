package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Entrance is what came of a run that wanted to enter the gate of its job.
type Entrance uint8

// What may come of it.
const (
	Passed    Entrance = iota + 1 // it holds a place, and may be started
	Skipped                       // it has ended as skipped, with the reason
	Joined                        // it waits in line, and is sent when it is let in
	Contended                     // others are changing the gate: it is to come again in a moment
	Overtaken                     // it stands otherwise than was believed
)

// Places at a gate are given to groups, by one write each: a group is the runs that want in at about the same time, and while the one before is
// on its way.
const (
	enterGroup  = 250                    // runs in one group
	enterGather = 200 * time.Microsecond // how long a group waits for others that are on their way

	// enterTries is how often others may change a gate between reading and writing it, before the runs of a group give up their workers' slots.
	enterTries = 2
)

// entering is what this process wants of gates: by gate, as long as somebody sees to it.
type entering struct {
	mu sync.Mutex
	at map[gate.ID]*atGate
}

// atGate is what is wanted of one gate.
type atGate struct {
	wanting []*wanting
	calling []*calling
}

// wanting is a run that wants in.
type wanting struct {
	at     gate.ID
	run    run.Run
	due    int64 // Unix ms
	def    job.Definition
	own    job.Overlap   // that of def, as it holds for the run
	units  int           // how much of the limit it wants
	placed bool          // it has passed narrower gates
	past   bool          // no pause holds it, and one holds the line of its job
	passes bool          // it goes past a line at a named gate of which nobody is let in, however long that is
	by     string        // the receipt of the message that brought it: of several of one run the first by that goes first
	done   chan struct{} // closed when what follows stands

	entrance Entrance
	wider    []gate.ID // where it has left places with the write by which it joined
	given    []given   // runs that have given way to it, or were asked to
	err      error
}

func (w *wanting) came(to Entrance, err error) {
	w.entrance, w.err = to, err
	close(w.done)
}

// Enter has a run pass the gates that its definition has it pass, from narrow to wide: its job's own, where that bounds how many are in progress at once, and the
// named ones by their names. So no two runs wait for places of one another. The run is as its start is to be decided over, queued or retrying, Keyed has said which
// own gate it is, and it was due at that time (Unix ms): who enters before its time is in the way of those that are due.
//
// A run that waits at one gate keeps the places that it was given at those before. Whoever delivers it again begins with the first, and finds them.
//
// Durable with Passed: its place, which it holds until it has ended. A crash behind it leaves the place to the run's next delivery, or to its check.
// Durable with Joined: that it waits, and its place in line. A crash behind it leaves it to whoever makes room, or to its check.
// Durable with Skipped: its end. With an error nothing is known; whoever asks again finds what was written.
func (d *Dispatcher) Enter(ctx context.Context, r run.Run, due int64, def job.Definition) (Entrance, error) {
	for i, way := range waysOf(r, def) {
		w := &wanting{at: way.at, run: r, due: due, def: def, own: r.OverlapUnder(&def), units: way.units, placed: i > 0, by: messageOf(ctx), done: make(chan struct{})}
		came, err := d.enterOne(ctx, w)
		if err == nil && came == Skipped && i > 0 { // the places before are free again
			err = d.Left(ctx, w.run)
		}
		for _, at := range w.wider {
			if err := d.LetIn(ctx, at); err != nil {
				d.Log.WarnContext(ctx, "who waits for a place that a run has left is not let in yet", "gate", at.String(), "error", err)
			}
		}
		d.seeOff(ctx, w.given)
		if err != nil || came != Passed {
			return came, err
		}
	}
	return Passed, nil
}

// way is a gate that runs of a job pass.
type way struct {
	at    gate.ID
	units int
}

// waysOf gives the gates that a run passes by its definition, from narrow to wide. Keyed has said by which keys.
func waysOf(r run.Run, def job.Definition) []way {
	var ways []way
	if !r.OverlapUnder(&def).IsZero() {
		ways = append(ways, way{gate.OwnGate(r), 1})
	}
	for i, use := range def.Gates {
		at := gate.ID{Tenant: r.Tenant, Name: use.Gate}
		if use.Key != "" {
			if i >= len(r.NamedKeys) { // it has not been found out, so it has entered none
				continue
			}
			at.Key = r.NamedKeys[i]
		}
		ways = append(ways, way{at, max(1, use.Units)})
	}
	slices.SortFunc(ways, func(a, b way) int { return a.at.Compare(b.at) })
	return ways
}

type messageKey struct{}

// ByMessage says which message brought the run that is to Enter. Where this process has two of one run, as a queue may hand out, and both want in at
// about the same time, the one whose receipt is lower goes first: who was faster decides nothing. Without it they go in as they come.
func ByMessage(ctx context.Context, receipt string) context.Context {
	return context.WithValue(ctx, messageKey{}, receipt)
}

func messageOf(ctx context.Context) string {
	by, _ := ctx.Value(messageKey{}).(string)
	return by
}

func (d *Dispatcher) enterOne(ctx context.Context, w *wanting) (Entrance, error) {
	d.visit(w.at, func(at *atGate) { at.wanting = append(at.wanting, w) })
	<-w.done // bounded too. What was asked for may be written already, so nobody goes away from it halfway, as from a start
	if w.err != nil && ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return w.entrance, w.err
}

// visit adds to what is wanted of a gate, and has somebody see to it.
func (d *Dispatcher) visit(of gate.ID, add func(*atGate)) {
	d.entering.mu.Lock()
	at, served := d.entering.at[of]
	if !served {
		at = &atGate{}
		d.entering.at[of] = at
	}
	add(at)
	d.entering.mu.Unlock()
	switch {
	case served:
	case d.Still:
		d.serve(of)
	default:
		go d.serve(of) // bounded by the time-outs of its requests
	}
}

// serve sees to a gate until nobody of this process wants anything of it.
func (d *Dispatcher) serve(of gate.ID) {
	for more := true; more; more = d.entering.more(of) {
		if !d.Still {
			<-time.After(enterGather)
		}
		calling, wanting := d.entering.take(of)
		d.callGroup(calling)
		d.letGroup(wanting)
	}
}

// more tells who sees to a gate whether to go on.
func (e *entering) more(of gate.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.at[of]; len(at.wanting)+len(at.calling) == 0 {
		delete(e.at, of)
		return false
	}
	return true
}

// take takes a group of those that tell a gate to let in, and one of those that want in, each run once: another message of the same run finds what became
// of this one. What is asked of the store for it does not depend on who of them came first.
func (e *entering) take(of gate.ID) (calls []*calling, group []*wanting) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.at[of]
	n := 0
	for left := 0; n < len(at.calling) && left < lineBatch; n++ {
		left += max(1, len(at.calling[n].gone))
	}
	calls, at.calling = slices.Clone(at.calling[:n]), slices.Delete(at.calling, 0, n)
	var rest []*wanting
	for _, w := range at.wanting {
		other := slices.IndexFunc(group, func(other *wanting) bool { return other.run.ID == w.run.ID })
		if other >= 0 && w.by < group[other].by {
			group[other], w = w, group[other]
		}
		if other >= 0 || len(group) == enterGroup {
			rest = append(rest, w)
		} else {
			group = append(group, w)
		}
	}
	at.wanting = rest
	slices.SortFunc(group, func(a, b *wanting) int {
		return cmp.Or(cmp.Compare(a.run.ID.Nominal, b.run.ID.Nominal), strings.Compare(a.run.ID.Random, b.run.ID.Random), strings.Compare(a.run.ID.Job, b.run.ID.Job))
	})
	return calls, group
}

// letGroup decides over a group, by one write of the gate for all that enter, one for those that join its line, and one of each run that is skipped. Those
// that found no room beside others of the group are decided anew when these are in: what is in the way of who is skipped holds its place.
func (d *Dispatcher) letGroup(open []*wanting) {
	failed := func(err error) {
		for _, w := range open {
			w.came(0, err)
		}
	}
	for tries := 0; len(open) > 0; {
		if tries == enterTries {
			for _, w := range open {
				w.came(Contended, nil)
			}
			return
		}
		round, err := d.readGate(open[0].at)
		if err != nil {
			failed(err)
			return
		}
		if round.Free() {
			for _, w := range open {
				w.came(Passed, nil)
			}
			return
		}
		if err := d.lookPast(open); err != nil {
			failed(err)
			return
		}
		var enter, full []*wanting
		for i, w := range open {
			verdict, err := d.admit(round, w)
			if err != nil {
				open = slices.Concat(enter, full, open[i:])
				failed(err)
				return
			}
			switch verdict {
			case gate.Holds:
				w.came(Passed, nil)
			case gate.Late:
				w.came(Overtaken, nil)
			case gate.Enters:
				enter = append(enter, w)
			default:
				full = append(full, w)
			}
		}
		if len(enter) == 0 {
			var met bool
			if open, met, err = d.turnAway(round, full); err != nil {
				failed(err)
				return
			}
			if met {
				tries++
			}
			continue
		}
		d.tidy(round)
		// Durable with this write: the places of all that enter. Of a write that may have been done nothing is believed: the gate is read again.
		switch err := d.writeGate(round); {
		case err == nil:
			d.gauge(round, open[0].def.Labels)
			for _, w := range enter {
				d.Metrics.GateLetIn.Inc(d.countedAs(w))
				w.came(Passed, nil)
			}
			open = full
		case store.AsConflict(err) != nil, passing(err):
			open = slices.Concat(enter, full)
			tries++
		default:
			open = slices.Concat(enter, full)
			failed(err)
			return
		}
	}
}

// brief bounds what is asked of the store at once and runs wait for before they start: their workers' slots are taken meanwhile.
func (d *Dispatcher) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(tryFor, d.Lease/3))
}

// ReadGate reads a gate, and of a named one the definition that is in force until the gate is written again.
func (d *Dispatcher) ReadGate(ctx context.Context, of gate.ID) (gate.Gate, error) {
	if !of.IsNamed() {
		g, _, err := d.gateItem(ctx, of)
		return g, err
	}
	g, more, err := d.gateItem(ctx, of, gate.NamedKey(of.Tenant, of.Name))
	if err != nil {
		return gate.Gate{}, err
	}
	if g.Def, err = gate.NamedFromItem(of.Tenant, more[0]); err == nil && !g.Current() {
		// One call is no snapshot: the definition may be older than the gate.
		g.Def, err = d.gateDefinition(ctx, of)
	}
	return g, err
}

// readGate is ReadGate for a round over the gate.
func (d *Dispatcher) readGate(of gate.ID) (*gate.Round, error) {
	g, err := d.readBriefly(of)
	return g.Begin(), err
}

func (d *Dispatcher) readBriefly(of gate.ID) (gate.Gate, error) {
	ctx, cancel := d.brief()
	defer cancel()
	return d.ReadGate(ctx, of)
}

// readLine is readGate for whoever lets in: where nobody waits, it needs no definition.
func (d *Dispatcher) readLine(of gate.ID) (*gate.Round, error) {
	ctx, cancel := d.brief()
	defer cancel()
	g, _, err := d.gateItem(ctx, of)
	if err == nil && of.IsNamed() && g.Waiting > 0 {
		g.Def, err = d.gateDefinition(ctx, of)
	}
	return g.Begin(), err
}

// gateDefinition reads the definition of a named gate. Of one that was read before, it is in force until the gate is written again.
func (d *Dispatcher) gateDefinition(ctx context.Context, of gate.ID) (n gate.Named, err error) {
	items, err := d.Store.Get(ctx, gate.NamedKey(of.Tenant, of.Name))
	if err == nil {
		n, err = gate.NamedFromItem(of.Tenant, items[0])
	}
	if err != nil {
		return n, fmt.Errorf("read the definition of gate %s: %w", of, err)
	}
	return n, nil
}

// gateItem reads the item of a gate, and others beside it.
func (d *Dispatcher) gateItem(ctx context.Context, of gate.ID, beside ...store.Key) (gate.Gate, []store.Item, error) {
	items, err := d.Store.Get(ctx, append([]store.Key{of.Item()}, beside...)...)
	if err != nil {
		return gate.Gate{}, nil, fmt.Errorf("read gate %s: %w", of, err)
	}
	g, err := gate.FromItem(of.Tenant, of.Name, items[0])
	return g, items[1:], err
}

func (d *Dispatcher) writeGate(round *gate.Round, beside ...store.Op) error {
	_, err := d.writeGateWith(nil, round, beside...)
	return err
}

// writeGateWith is writeGate, with what makes the room that the gate gives away, and gives the versions of that.
func (d *Dispatcher) writeGateWith(room []store.Op, round *gate.Round, beside ...store.Op) ([]uint64, error) {
	g := round.Gate()
	op, err := g.Put(d.Now(), d.NewID())
	if err != nil {
		return nil, err
	}
	if g.Version == 0 && g.Key != "" && g.ID().IsNamed() { // whoever has changed the definition since has found no gate to write: see Redefined
		beside = append(beside, store.Op{Kind: store.Check, Key: gate.NamedKey(g.Tenant, g.Name), If: store.At(store.Item{Version: g.Def.Version})})
	}
	versions, err := d.writeBriefly(slices.Concat(room, []store.Op{op}, beside)...)
	if err != nil {
		return nil, err
	}
	return versions[:len(room)], nil
}

// writeBriefly writes once, within the time that runs wait for it. Of a write that it gives up, the outcome is unknown.
func (d *Dispatcher) writeBriefly(ops ...store.Op) ([]uint64, error) {
	ctx, cancel := d.brief()
	defer cancel()
	versions, err := d.Store.Write(ctx, ops...)
	if err != nil && ctx.Err() != nil && store.AsConflict(err) == nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	return versions, err
}

// tidy leaves out of a long gate what a cheap read shows to have ended, before the gate is written: else it would grow up to its limit.
func (d *Dispatcher) tidy(round *gate.Round) {
	var old []run.Run
	for _, id := range round.Old() {
		old = append(old, run.Run{ID: id, Tenant: round.Tenant()})
	}
	if len(old) == 0 {
		return
	}
	ctx, cancel := d.brief()
	defer cancel()
	if standing, err := d.PeekRuns(ctx, old); err == nil { // else the next one that enters does it
		round.Shed(standing)
	}
}

// admit asks a gate for a run. Where it looks full, the runs of its entries are read, as many as it takes to find room.
func (d *Dispatcher) admit(round *gate.Round, w *wanting) (gate.Verdict, error) {
	comes := w.run
	if !w.at.IsNamed() {
		round.Under(w.def.Overlap.StrictSince()) // whatever the run has brought: it is of all that are let in
	}
	if !w.at.IsNamed() && w.own.Policy.Displaces() {
		round.Ranks()
		comes.Wait.Rank = w.rank()
	}
	for {
		verdict := round.Admit(comes, w.units, w.limit(round), w.past)
		if verdict != gate.Full {
			return verdict, nil
		}
		ctx, cancel := d.brief()
		more, err := d.LookAt(ctx, round, d.ReadRuns)
		cancel()
		if err != nil {
			return 0, err
		}
		if more {
			continue
		}
		if room, err := d.Settle(round); err != nil || !room {
			return verdict, err
		}
	}
}

// Bounded tells whether a run that has ended may have entered a gate, or may do so when it is opened again under the job as it
// stands.
func (d *Dispatcher) Bounded(ctx context.Context, ended run.Run, j job.Job) (bool, error) {
	if j.Def.Gated() || ended.Opening != 0 {
		return true, nil
	}
	def, err := d.definition(ctx, ended)
	switch {
	case Unreadable(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return def.Gated(), nil
}

// limit is how much may be in progress at the gate, in units.
func (w *wanting) limit(round *gate.Round) int {
	if w.at.IsNamed() {
		return round.Limit()
	}
	return w.own.Limit
}

// countedAs is the name under which metrics have the gate that a run wants to enter.
func (d *Dispatcher) countedAs(w *wanting) string {
	return d.Metrics.Gate(w.at.Series(), w.at.IsNamed() || gate.OwnSeries(w.def.Labels))
}
