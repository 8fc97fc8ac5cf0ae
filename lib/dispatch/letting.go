package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// letting is one step of letting in: what is decided over the gate and its line as read, by one write.
type letting struct {
	*Dispatcher
	calling *calling
	whole   bool // the line is looked through, past who stays in it
	far     bool // who may be let in is looked for further back: a step before this one let in nobody
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

// barren tells of a step that has only taken places out of the line: of runs that were too late, or had left it. Who is in time stands behind them.
func (l *letting) barren() bool { return len(l.in) == 0 && len(l.ops) > 0 && !l.gone() }

// read reads gate, job and line, and decides.
func (l *letting) read() error {
	var err error
	if l.round, err = l.readGate(l.calling.at); err != nil {
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
	jobs, err := l.Book.Jobs(ctx, l.calling.at.Tenant, l.calling.at.Job)
	if err != nil {
		return fmt.Errorf("read job %s, whose runs wait: %w", l.calling.at.Job, err)
	}
	if l.job = jobs[0]; l.job.Broken != nil {
		return l.job.Broken
	}
	if err := l.leave(ctx); err != nil {
		return err
	}
	if l.gone() || !l.job.Def.Paused || l.round.Forwarded() || l.whole { // places of nobody go in a pause, too
		return l.line(ctx)
	}
	return nil
}

// holds tells whether the pause of the job keeps a run in line.
func (l *letting) holds(r run.Run) bool { return l.job.Def.Paused && !r.IgnorePause }

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
			unsure = append(unsure, run.Run{ID: id, Tenant: l.calling.at.Tenant})
		}
		if len(unsure) == 0 {
			break
		}
		standing, err := l.ReadRuns(ctx, unsure)
		if err != nil {
			return fmt.Errorf("read the runs at the gate of %s: %w", l.calling.at.Job, err)
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
		return fmt.Errorf("read places in the line of %s: %w", l.calling.at.Job, err)
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
	if l.whole || l.far {
		limit = lineLook
	}
	page, err := l.Store.Query(ctx, l.round.Gate().Line(limit))
	if err != nil {
		return fmt.Errorf("read the line of %s: %w", l.calling.at.Job, err)
	}
	places, standing, err := l.places(ctx, page.Items)
	if err != nil {
		return err
	}
	var first *gate.Place // that stays
	for i, p := range places {
		by := standing[i]
		taken := slices.ContainsFunc(l.ops, func(op store.Op) bool { return op.Key == p.Key(l.calling.at.Tenant) })
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
		case p.Named(by) && by.Expired(l.now):
			if len(l.ended) < lineBatch {
				l.ended = append(l.ended, by.Expire(l.now, l.job.Def.Kept()))
				l.strike(p)
				continue
			}
		case !p.Named(by):
			l.strike(p)
			continue
		case len(l.in) < lineBatch && !l.gone() && !l.holds(by) && first == nil && l.round.Call(p, by, l.limit()) == gate.LetIn:
			l.in, l.waited = append(l.in, by.LetIn(l.now)), append(l.waited, l.now-by.Wait.Since)
			l.ops = append(l.ops, store.Op{Kind: store.Delete, Key: p.Key(l.calling.at.Tenant), If: store.Any})
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
		p, err := gate.PlaceFromItem(l.calling.at.Job, item)
		if err != nil {
			l.Log.ErrorContext(ctx, "a place in a line is unreadable", "key", item.Key.String(), "error", err)
			continue
		}
		places, runs = append(places, p), append(runs, run.Run{ID: p.Run, Tenant: l.calling.at.Tenant})
	}
	standing, err := l.ReadRuns(ctx, runs)
	if err != nil {
		return nil, nil, fmt.Errorf("read the runs in the line of %s: %w", l.calling.at.Job, err)
	}
	return places, standing, nil
}

// strike takes a place out of the line.
func (l *letting) strike(p gate.Place) {
	l.round.Strike()
	l.ops = append(l.ops, store.Op{Kind: store.Delete, Key: p.Key(l.calling.at.Tenant), If: store.Any})
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
	name := l.Metrics.Gate(gate.Name(l.calling.at.Job), gate.OwnSeries(l.job.Def.Labels))
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
	if !gate.OwnSeries(labels) || g.Key != "" { // of the gates of several values, none shows how they all stand
		return
	}
	name := d.Metrics.Gate(gate.Name(g.Job), true)
	if name == metrics.Other {
		return
	}
	d.Metrics.GateWaiting.Set(float64(g.Waiting), name)
	d.Metrics.GateInProgress.Set(float64(len(g.Entries)), name)
}
