package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
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
	run  run.Run
	due  int64 // Unix ms
	def  job.Definition
	past bool          // no pause holds it, and one holds the line of its job
	done chan struct{} // closed when what follows stands

	entrance Entrance
	err      error
}

func (w *wanting) came(to Entrance, err error) {
	w.entrance, w.err = to, err
	close(w.done)
}

// Enter has a run pass a gate of its job, whose definition bounds how many are in progress at once. The run is as its start is to be decided
// over, queued or retrying, Keyed has said which gate it is, and it was due at that time (Unix ms): who enters before its time is in the way of those that are due.
//
// Durable with Passed: its place, which it holds until it has ended. A crash behind it leaves the place to the run's next delivery, or to its check.
// Durable with Joined: that it waits, and its place in line. A crash behind it leaves it to whoever makes room, or to its check.
// Durable with Skipped: its end. With an error nothing is known; whoever asks again finds what was written.
func (d *Dispatcher) Enter(ctx context.Context, r run.Run, due int64, def job.Definition) (Entrance, error) {
	w := &wanting{run: r, due: due, def: def, done: make(chan struct{})}
	d.visit(gate.Of(r), func(at *atGate) { at.wanting = append(at.wanting, w) })
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
		twice := slices.ContainsFunc(group, func(other *wanting) bool { return other.run.ID == w.run.ID })
		if twice || len(group) == enterGroup {
			rest = append(rest, w)
		} else {
			group = append(group, w)
		}
	}
	at.wanting = rest
	slices.SortFunc(group, func(a, b *wanting) int {
		return cmp.Or(cmp.Compare(a.run.ID.Nominal, b.run.ID.Nominal), strings.Compare(a.run.ID.Random, b.run.ID.Random))
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
		round, err := d.readGate(gate.Of(open[0].run))
		if err != nil {
			failed(err)
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
			d.gauge(round.Gate(), open[0].def.Labels)
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

// brief bounds one request that runs wait for before they start: their workers' slots are taken meanwhile.
func (d *Dispatcher) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(tryFor, d.Lease/3))
}

func (d *Dispatcher) readGate(of gate.ID) (*gate.Round, error) {
	ctx, cancel := d.brief()
	defer cancel()
	items, err := d.Store.Get(ctx, of.Item())
	if err != nil {
		return nil, fmt.Errorf("read the gate of %s: %w", of.Job, err)
	}
	g, err := gate.FromItem(of.Tenant, of.Job, items[0])
	if err != nil {
		return nil, err
	}
	return g.Begin(), nil
}

func (d *Dispatcher) writeGate(round *gate.Round, beside ...store.Op) error {
	op, err := round.Gate().Put(d.Now(), d.NewID())
	if err != nil {
		return err
	}
	ctx, cancel := d.brief()
	defer cancel()
	if _, err = d.Store.Write(ctx, append([]store.Op{op}, beside...)...); err != nil && ctx.Err() != nil && store.AsConflict(err) == nil {
		return fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	return err
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
	for {
		verdict := round.Admit(w.run, w.def.Overlap.Limit, w.past)
		if verdict != gate.Full {
			return verdict, nil
		}
		var unsure []run.Run
		for _, id := range round.Unsure(store.MaxKeys) {
			unsure = append(unsure, run.Run{ID: id, Tenant: w.run.Tenant})
		}
		if len(unsure) == 0 {
			return verdict, nil
		}
		ctx, cancel := d.brief()
		standing, err := d.ReadRuns(ctx, unsure)
		cancel()
		if err != nil {
			return 0, fmt.Errorf("read the runs at the gate of %s: %w", w.run.ID.Job, err)
		}
		round.Learn(standing)
	}
}

// Bounded tells whether a run that has ended may have entered the gate of its job, or may do so when it is opened again under the job as it
// stands.
func (d *Dispatcher) Bounded(ctx context.Context, ended run.Run, j job.Job) (bool, error) {
	if !j.Def.Overlap.IsZero() || ended.Opening != 0 {
		return true, nil
	}
	def, err := d.definition(ctx, ended)
	switch {
	case errors.Is(err, job.ErrNotFound), errors.Is(err, job.ErrSchedule), errors.Is(err, record.ErrBroken), errors.Is(err, record.ErrNewer):
		return false, nil
	case err != nil:
		return false, err
	}
	return !def.Overlap.IsZero(), nil
}

// countedAs is the name under which metrics have the gate that a run wants to enter.
func (d *Dispatcher) countedAs(w *wanting) string {
	return d.Metrics.Gate(gate.Name(w.run.ID.Job), gate.OwnSeries(w.def.Labels))
}
