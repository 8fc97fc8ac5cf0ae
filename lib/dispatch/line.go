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
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
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
)

// calling is what was asked for at the line of a gate: to let in whoever can be.
type calling struct {
	tenant, job string
	gone        []run.Run // hold no place any more, as they stood when they did, or waited in line
	look        bool      // at all that hold places
	done        chan struct{}
	err         error
}

// Left tells the gate of a run's job that the run has ended, or waits there no longer, so that the next in line are let in. gone is the run as it has
// ended; of one that waited, or that may have been let in and not started, as it stood before. It is called before the message of the run is deleted.
//
// Durable afterwards: whoever there is room for is let in. A crash before leaves it to the run's message, which comes again, or to the checks of those
// that wait.
func (d *Dispatcher) Left(ctx context.Context, gone run.Run) error {
	return d.call(ctx, &calling{tenant: gone.Tenant, job: gone.ID.Job, gone: []run.Run{gone}})
}

// LetIn lets in whoever waits at the gate of a job and can be, after a look at all that hold places: for edits and checks, and after anything else
// that may have made room without a word.
func (d *Dispatcher) LetIn(ctx context.Context, tenant, name string) error {
	return d.call(ctx, &calling{tenant: tenant, job: name, look: true})
}

// call is made for all of this process that ask for the same gate at about the same time, and with those that want in.
func (d *Dispatcher) call(ctx context.Context, c *calling) error {
	c.done = make(chan struct{})
	d.visit(gate.Key(c.tenant, c.job), func(at *atGate) { at.calling = append(at.calling, c) })
	<-c.done // bounded by the time-outs of the requests
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
	all := calling{tenant: group[0].tenant, job: group[0].job}
	slices.SortFunc(group, func(a, b *calling) int { return compareGone(a.gone, b.gone) }) // what is asked of the store does not depend on who came first
	for _, c := range group {
		all.gone, all.look = append(all.gone, c.gone...), all.look || c.look
	}
	err := d.callIn(&all, false)
	for _, c := range group {
		c.err = err
		close(c.done)
	}
}

func compareGone(a, b []run.Run) int {
	return slices.CompareFunc(a, b, func(a, b run.Run) int {
		return cmp.Or(cmp.Compare(a.ID.Nominal, b.ID.Nominal), strings.Compare(a.ID.Random, b.ID.Random), cmp.Compare(a.Version, b.Version))
	})
}

// callIn lets in until there is no room, or no line. Where whole is said, it looks through a short line for places that are of nobody.
func (d *Dispatcher) callIn(c *calling, whole bool) error {
	var unsure []run.Run // let in by a write of which nothing is known
	tries := 0
	for range lineSteps {
		step := &letting{Dispatcher: d, calling: c, whole: whole}
		err := step.read()
		if err == nil && step.idle() {
			return d.sendLetIn(unsure, true)
		}
		if err == nil {
			err = step.write()
		}
		switch {
		case err == nil:
			if err := d.sendLetIn(step.in, false); err != nil {
				return err
			}
			if !step.again {
				return d.sendLetIn(unsure, true)
			}
			c.gone, whole = nil, false
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

// letting is one step of letting in: what is decided over the gate and its line as read, by one write.
type letting struct {
	*Dispatcher
	calling *calling
	whole   bool
	round   *gate.Round
	job     job.Job
	now     int64

	changed bool       // the gate is to be written
	in      []run.Run  // as they are let in
	waited  []int64    // for how long, ms
	ended   []run.Run  // of a deleted job
	ops     []store.Op // of places that go
	again   bool       // there may be more to let in
}

func (l *letting) idle() bool { return !l.changed }

// read reads gate, job and line, and decides.
func (l *letting) read() error {
	var err error
	if l.round, err = l.readGate(run.Run{Tenant: l.calling.tenant, ID: run.ID{Job: l.calling.job}}); err != nil {
		return err
	}
	if l.round.Waiting() == 0 {
		return nil
	}
	if l.now, err = l.Clock(); err != nil {
		return err
	}
	ctx, cancel := l.brief()
	defer cancel()
	jobs, err := l.Book.Jobs(ctx, l.calling.tenant, l.calling.job)
	if err != nil {
		return fmt.Errorf("read job %s, whose runs wait: %w", l.calling.job, err)
	}
	if l.job = jobs[0]; l.job.Broken != nil {
		return l.job.Broken
	}
	if err := l.leave(ctx); err != nil {
		return err
	}
	if l.gone() || !l.job.Def.Paused {
		return l.line(ctx)
	}
	return nil
}

// gone tells whether nobody is let in any more.
func (l *letting) gone() bool { return l.job.Generation == 0 || l.job.Deleted }

// limit is how many may be in progress, 0 for any number: as the job says now, whatever it said when a run was claimed.
func (l *letting) limit() int { return l.job.Def.Overlap.Limit }

// leave leaves out who holds no place any more, and takes the places of those that have left the line.
func (l *letting) leave(ctx context.Context) error {
	var left []run.Run
	for _, g := range l.calling.gone {
		if g.Wait.Gate != "" {
			left = append(left, g)
		}
		if l.round.Leave(g) {
			l.changed = true
		}
	}
	for l.calling.look {
		var unsure []run.Run
		for _, id := range l.round.Unsure(store.MaxKeys) {
			unsure = append(unsure, run.Run{ID: id, Tenant: l.calling.tenant})
		}
		if len(unsure) == 0 {
			break
		}
		standing, err := l.ReadRuns(ctx, unsure)
		if err != nil {
			return fmt.Errorf("read the runs at the gate of %s: %w", l.calling.job, err)
		}
		before := l.round.Held()
		l.round.Learn(standing)
		l.changed = l.changed || l.round.Held() != before
	}
	if len(left) == 0 {
		return nil
	}
	keys := make([]store.Key, len(left))
	for i, g := range left {
		keys[i] = gate.PlaceOf(g).Key(g.Tenant)
	}
	slices.SortFunc(keys, func(a, b store.Key) int { return strings.Compare(a.Sort, b.Sort) })
	keys = slices.Compact(keys)
	items, err := l.Store.Get(ctx, keys...)
	if err != nil {
		return fmt.Errorf("read places in the line of %s: %w", l.calling.job, err)
	}
	items = slices.DeleteFunc(items, func(i store.Item) bool { return !i.Exists() })
	places, standing, err := l.places(ctx, items)
	if err != nil {
		return err
	}
	for i, p := range places {
		if !p.Named(standing[i]) {
			l.strike(p)
		}
	}
	return nil
}

// line decides over the line from its front on.
func (l *letting) line(ctx context.Context) error {
	most := lineBatch
	switch {
	case l.gone(), l.limit() == 0:
	case !l.round.Room(l.limit()) && !l.whole:
		return nil
	default:
		most = min(lineBatch, max(1, l.limit()-l.round.Held()))
	}
	limit := most + 1
	if l.whole {
		limit = lineLook
	}
	page, err := l.Store.Query(ctx, l.round.Gate().Line(limit))
	if err != nil {
		return fmt.Errorf("read the line of %s: %w", l.calling.job, err)
	}
	places, standing, err := l.places(ctx, page.Items)
	if err != nil {
		return err
	}
	var first *gate.Place // that stays
	for i, p := range places {
		by := standing[i]
		taken := slices.ContainsFunc(l.ops, func(op store.Op) bool { return op.Key == p.Key(l.calling.tenant) })
		switch {
		case taken:
			continue
		case 3+len(l.ops)+len(l.in)+len(l.ended) > store.MaxOps: // with the gate, and what this one would take
		case by.Version != 0 && by.State == 0: // of a newer version of Belfry, which lets it in
		case p.Named(by) && l.deleted(by):
			if len(l.ended) < lineBatch {
				ended, _ := by.AskCancel(l.now, Deleted, job.DefaultRetention)
				l.ended = append(l.ended, ended)
				l.strike(p)
				continue
			}
		case !p.Named(by):
			l.strike(p)
			continue
		case len(l.in) < lineBatch && !l.gone() && first == nil && l.round.Call(p, by, l.limit()) == gate.LetIn:
			l.in, l.waited = append(l.in, by.LetIn(l.now)), append(l.waited, l.now-by.Wait.Since)
			l.ops = append(l.ops, store.Op{Kind: store.Delete, Key: p.Key(l.calling.tenant), If: store.Any})
			l.changed = true
			continue
		}
		if first == nil {
			first = &p
		}
		if !l.whole && !l.gone() {
			break
		}
	}
	more := first != nil || page.Cursor != ""
	if first == nil && len(places) > 0 {
		first = &places[len(places)-1]
	}
	if first == nil {
		first = &gate.Place{}
	}
	if before := l.round.Waiting(); len(places) > 0 || !more {
		l.round.Ahead(*first, more)
		l.changed = l.changed || before != l.round.Waiting()
	}
	l.again = more && l.changed && (l.gone() || l.round.Room(l.limit()))
	return nil
}

// deleted tells whether a run that waits is of a job that was deleted, though another may have its name by now.
func (l *letting) deleted(r run.Run) bool {
	if r.ID.OnDemand() {
		return DeletedFor(l.job, r)
	}
	return l.gone() || l.job.Gone(r.Generation)
}

// places gives the places of items, and the runs that they are of, as they stand. What is no place is left where it is.
func (l *letting) places(ctx context.Context, items []store.Item) ([]gate.Place, []run.Run, error) {
	var places []gate.Place
	var runs []run.Run
	for _, item := range items {
		p, err := gate.PlaceFromItem(l.calling.job, item)
		if err != nil {
			l.Log.ErrorContext(ctx, "a place in a line is unreadable", "key", item.Key.String(), "error", err)
			continue
		}
		places, runs = append(places, p), append(runs, run.Run{ID: p.Run, Tenant: l.calling.tenant})
	}
	standing, err := l.ReadRuns(ctx, runs)
	if err != nil {
		return nil, nil, fmt.Errorf("read the runs in the line of %s: %w", l.calling.job, err)
	}
	return places, standing, nil
}

// strike takes a place out of the line.
func (l *letting) strike(p gate.Place) {
	l.round.Strike()
	l.ops = append(l.ops, store.Op{Kind: store.Delete, Key: p.Key(l.calling.tenant), If: store.Any})
	l.changed = true
}

// write writes what was decided.
//
// Durable before it: a check of each run that is let in, so that one whose message is lost waits for no longer than that. Durable with it: the entries and the runs, and that
// their places are gone. A crash behind it leaves runs that their checks send.
func (l *letting) write() error {
	reach := l.now + l.Directly().Milliseconds()
	var checks []timer.Timer
	ops := []store.Op{{}}
	for i := range l.in {
		checks = append(checks, timer.NewCheck(l.in[i].Tenant, l.in[i].ID, reach))
	}
	for _, r := range append(slices.Clone(l.in), l.ended...) {
		op, err := r.Item(l.NewID())
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	ops = append(ops, l.ops...)
	var err error
	if ops[0], err = l.round.Gate().Put(l.Now(), l.NewID()); err != nil {
		return err
	}
	ctx, cancel := l.brief()
	defer cancel()
	if err := l.Arm(ctx, checks...); err != nil {
		return err
	}
	versions, err := l.Write(ctx, ops...)
	if err != nil {
		if ctx.Err() != nil && store.AsConflict(err) == nil {
			err = fmt.Errorf("%w: %w", store.ErrUnknown, err)
		}
		return err
	}
	name := l.Metrics.Gate(gate.Name(l.calling.job), gate.OwnSeries(l.job.Def.Labels))
	for i := range l.in {
		l.in[i].Version = versions[1+i]
		l.Metrics.GateLetIn.Inc(name)
		l.Metrics.GateWait.Observe(time.Duration(l.waited[i])*time.Millisecond, name)
	}
	for i := range l.ended {
		l.ended[i].Version = versions[1+len(l.in)+i]
		l.CountEnd(l.ended[i])
	}
	l.gauge(l.round.Gate(), l.job.Def.Labels)
	return nil
}

// gauge shows how a gate that has series of its own stands. All others together have none: what each process last saw of each does not add up.
func (d *Dispatcher) gauge(g gate.Gate, labels map[string]string) {
	if !gate.OwnSeries(labels) {
		return
	}
	name := d.Metrics.Gate(gate.Name(g.Job), true)
	if name == metrics.Other {
		return
	}
	d.Metrics.GateWaiting.Set(float64(g.Waiting), name)
	d.Metrics.GateInProgress.Set(float64(len(g.Entries)), name)
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
			if errors.Is(err, job.ErrNotFound) || errors.Is(err, record.ErrBroken) || errors.Is(err, record.ErrNewer) {
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

// tend does for runs that wait in lines what a check does for others: whoever can be is let in. A run that has no place in the line any more enters anew.
func (d *Dispatcher) tend(ctx context.Context, waiting []run.Run) ([]Outgoing, error) {
	type line struct{ tenant, job string }
	seen := map[line]bool{}
	for _, r := range waiting {
		if at := (line{r.Tenant, r.ID.Job}); !seen[at] {
			seen[at] = true
			if err := d.LetIn(ctx, r.Tenant, r.ID.Job); err != nil {
				return nil, err
			}
		}
	}
	standing, err := d.ReadRuns(ctx, waiting)
	if err != nil {
		return nil, err
	}
	standing = slices.DeleteFunc(standing, func(r run.Run) bool { return !r.Waits() })
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
	gates := map[line]gate.Gate{}
	var lost []run.Run
	for i, r := range standing {
		at := line{r.Tenant, r.ID.Job}
		g, read := gates[at]
		if !read {
			round, err := d.readGate(r)
			if err != nil {
				return nil, err
			}
			g = round.Gate()
			gates[at] = g
		}
		if !places[i].Exists() || g.Waiting == 0 || g.Front > r.Wait.Rank {
			lost = append(lost, r)
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	d.Log.WarnContext(ctx, "runs wait that have no place in line any more: they enter anew", "runs", len(lost), "first", lost[0].ID.String())
	wishes := make([]*wish, len(lost))
	for i, r := range lost {
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
		if errors.Is(err, job.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		send = append(send, Outgoing{Run: w.run, Queue: edition.Def.Queue})
	}
	return send, nil
}
