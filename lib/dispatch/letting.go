package dispatch

import (
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
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// letting is one step of letting in: what is decided over the gate and its line as read, by one write.
type letting struct {
	*Dispatcher
	calling *calling
	whole   bool // the line is looked through, past who stays in it
	far     bool // who may be let in is looked for further back: a step before this one let in nobody
	round   *gate.Round
	job     job.Job            // whose own gate it is
	jobs    map[string]job.Job // of the runs that wait at a named gate
	now     int64

	changed bool       // the gate is to be written
	in      []run.Run  // as they are let in
	waited  []int64    // for how long, ms
	ended   []run.Run  // of a deleted job, or too late
	ops     []store.Op // of places that go
	again   bool       // there may be more to let in
}

func (l *letting) idle() bool { return !l.changed }

// barren tells of a step that has only taken places out of the line: of runs that were too late, or had left it. Who is in time stands behind them.
func (l *letting) barren() bool { return len(l.in) == 0 && len(l.ops) > 0 && !l.gone() }

// read reads gate, job and line, and decides.
func (l *letting) read() error {
	var err error
	if l.round, err = l.readLine(l.calling.at); err != nil {
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
	if name, own := gate.OwnOf(l.calling.at.Name); own {
		jobs, err := l.Book.Jobs(ctx, l.calling.at.Tenant, name)
		if err != nil {
			return fmt.Errorf("read job %s, whose runs wait: %w", name, err)
		}
		if l.job = jobs[0]; l.job.Broken != nil {
			return l.job.Broken
		}
	}
	l.round.Under(l.job.StrictSince())
	if l.round.Asks() || l.job.Def.Overlap.Policy.Displaces() {
		l.round.Ranks()
	}
	if err := l.leave(ctx); err != nil {
		return err
	}
	if l.gone() || !l.job.Def.Paused || l.round.Forwarded() || l.whole { // places of nobody go in a pause, too
		return l.line()
	}
	return nil
}

// named tells whether it is a gate that jobs name.
func (l *letting) named() bool { return l.calling.at.IsNamed() }

// of is the job of a run that waits.
func (l *letting) of(r run.Run) job.Job {
	if l.named() {
		return l.jobs[r.ID.Job]
	}
	return l.job
}

// learn reads the jobs of runs that wait at a named gate. They are read behind the gate: so a pause that stood before it was last written is seen.
func (l *letting) learn(ctx context.Context, places []gate.Place) error {
	if !l.named() {
		return nil
	}
	if l.jobs == nil {
		l.jobs = map[string]job.Job{}
	}
	var names []string
	for _, p := range places {
		if _, known := l.jobs[p.Run.Job]; !known {
			l.jobs[p.Run.Job] = job.Job{}
			names = append(names, p.Run.Job)
		}
	}
	for some := range slices.Chunk(names, store.MaxKeys) {
		jobs, err := l.Book.Jobs(ctx, l.calling.at.Tenant, some...)
		if err != nil {
			return fmt.Errorf("read the jobs whose runs wait at gate %s: %w", l.calling.at, err)
		}
		for _, j := range jobs {
			l.jobs[j.Name] = j
		}
	}
	return nil
}

// holds tells whether the pause of its job keeps a run in line. So does a job that cannot be read, at a gate of several.
func (l *letting) holds(r run.Run) bool {
	j := l.of(r)
	return j.Def.Paused && !r.IgnorePause || j.Broken != nil
}

// bar is what keeps a run that waits from being let in, however much room there is.
type bar uint8

const (
	barNone    bar = iota
	barDeleted     // its job was deleted
	barExpired     // it may not start any more
	barOverdue     // its time in line is over, or its deadline: its own check ends it, which says who was in the way, or calls back
	barHeld        // the pause of its job holds it
)

// bars tells what keeps a run that waits from being let in. Who asks others to make room, and who lets in, go by the same.
func (l *letting) bars(by run.Run) bar {
	switch {
	case l.deleted(by):
		return barDeleted
	case by.Expired(l.now):
		return barExpired
	case by.Outwaited(l.now), by.PastDeadline(l.now):
		return barOverdue
	case l.holds(by):
		return barHeld
	}
	return barNone
}

// gone tells whether nobody is let in any more, since the job whose own gate it is was deleted.
func (l *letting) gone() bool { return !l.named() && (l.job.Generation == 0 || l.job.Deleted) }

// limit is how much may be in progress, in units, 0 for any number: as the job or the gate says now, whatever it said when a run was claimed.
func (l *letting) limit() int {
	if l.named() {
		return l.round.Limit()
	}
	return l.job.Def.Overlap.Limit
}

// leave leaves out who holds no place any more, and takes the places of those that have left the line.
func (l *letting) leave(ctx context.Context) error {
	var left []run.Run
	for _, g := range l.calling.gone {
		if g.Wait.Gate == l.calling.at.Name && (!l.named() || g.Wait.Key == l.calling.at.Key) {
			left = append(left, g)
		}
		went, doubtful := l.round.Leave(g)
		l.changed = l.changed || went
		l.calling.look = l.calling.look || doubtful
	}
	before := l.round.Held()
	for more := l.calling.look; more; {
		var err error
		if more, err = l.LookAt(ctx, l.round, l.ReadRuns); err != nil {
			return err
		}
	}
	l.round.Settle(l.job.StrictSince())
	l.changed = l.changed || l.round.Held() != before
	if len(l.round.Blockers()) > 0 {
		l.Metrics.GateBlocked.Inc(l.Metrics.Gate(l.calling.at.Series(), gate.OwnSeries(l.job.Def.Labels)))
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
		return fmt.Errorf("read places in the line of gate %s: %w", l.calling.at, err)
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
func (l *letting) line() error {
	most := lineBatch
	switch {
	case l.gone():
	case (l.round.Closed() || !l.round.Room(l.limit())) && !l.whole:
		return nil
	case l.limit() == 0:
	default:
		most = min(lineBatch, max(1, l.limit()-l.round.Units()))
	}
	limit := most + 1
	if l.whole || l.far {
		limit = lineLook
	}
	var seen seenLine
	line := l.round.Gate().Line(limit)
	for cut := false; !cut; line.Limit = lineLook {
		if err := l.look(&line, &seen); err != nil {
			return err
		}
		if !seen.more || seen.stays || seen.held == 0 || !l.round.Room(l.limit()) {
			break
		}
		if cut = seen.pages == linePages || l.late(); cut {
			l.Log.Warn("a line begins with more runs of paused jobs than are looked past: those behind wait until there are fewer", "gate", l.calling.at.String(), "pages", seen.pages)
		}
	}
	more := seen.first != nil || seen.more
	if seen.first == nil {
		seen.first = &seen.last
	}
	if before := l.round.Waiting(); seen.any || !more {
		l.round.Begins(*seen.first, more)
		l.changed = l.changed || before != l.round.Waiting()
	}
	l.again = more && l.changed && !seen.noRoom && (l.gone() || l.round.Room(l.limit()))
	return nil
}

// How far somebody who lets in looks for a run that can be, past those that the pauses of their jobs hold.
const (
	linePages = 20              // pages of a line, for one write
	lineTime  = 5 * time.Second // for all writes of a call, and at most a third of a lease: a page of each is looked at, however long that takes
)

// late tells whether the time is over that a call may take to look past runs that pauses hold. It begins when the first of them were seen.
func (l *letting) late() bool {
	now := l.Elapsed()
	if l.calling.until == 0 {
		l.calling.until = now + min(lineTime, l.Lease/3)
	}
	return now >= l.calling.until
}

// look reads a page of the line, decides over it, and goes on to the next.
func (l *letting) look(line *store.Range, seen *seenLine) error {
	ctx, cancel := l.brief()
	defer cancel()
	page, err := l.Store.Query(ctx, *line)
	if err != nil {
		return fmt.Errorf("read the line of gate %s: %w", l.calling.at, err)
	}
	line.Cursor, seen.more, seen.pages = page.Cursor, page.Cursor != "", seen.pages+1
	return l.page(ctx, page.Items, seen)
}

// seenLine is what was seen of a line, from its front on.
type seenLine struct {
	first  *gate.Place // that stays
	last   gate.Place
	any    bool // there was one
	more   bool // the line goes on
	held   int  // those that stay since their jobs are paused, or their time is over: others pass them
	stays  bool // one stays that nobody passes
	noRoom bool // since there is no room for it
	pages  int
}

// page decides over a page of the line.
func (l *letting) page(ctx context.Context, items []store.Item, seen *seenLine) error {
	places, standing, err := l.places(ctx, items)
	if err != nil {
		return err
	}
	if err := l.learn(ctx, places); err != nil {
		return err
	}
	for i, p := range places {
		by := standing[i]
		seen.any, seen.last = true, p
		taken := slices.ContainsFunc(l.ops, func(op store.Op) bool { return op.Key == p.Key(l.calling.at.Tenant) })
		if taken {
			continue
		}
		named, barred := p.Named(by), barNone
		if named {
			barred = l.bars(by)
		}
		switch {
		case 3+len(l.ops)+len(l.in)+len(l.ended) > store.MaxOps: // with the gate, and what this one would take
		case by.Version != 0 && by.State == 0: // of a newer version of Belfry, which lets it in
		case !named:
			l.strike(p)
			continue
		case barred == barDeleted || barred == barExpired:
			if len(l.ended) < lineBatch {
				l.ended = append(l.ended, l.ends(by, barred))
				l.strike(p)
				continue
			}
		case barred == barOverdue, barred == barHeld && (l.named() || by.Released != 0):
			if seen.held++; seen.first == nil {
				seen.first = &p
			}
			continue
		case len(l.in) < lineBatch && !l.gone() && barred == barNone && !seen.stays:
			if l.round.Call(p, by, l.limit()) == gate.LetIn {
				l.in, l.waited = append(l.in, by.LetIn(l.now)), append(l.waited, l.now-by.Wait.Since)
				l.ops = append(l.ops, store.Op{Kind: store.Delete, Key: p.Key(l.calling.at.Tenant), If: store.Any})
				l.changed = true
				continue
			}
			seen.noRoom = true
		}
		if seen.stays = true; seen.first == nil {
			seen.first = &p
		}
		if !l.whole && !l.gone() {
			break
		}
	}
	return nil
}

// ends ends a run that waits, for what keeps it from being let in for ever.
func (l *letting) ends(by run.Run, barred bar) run.Run {
	if barred == barExpired {
		return by.Expire(l.now, l.of(by).Def.Kept())
	}
	ended, _ := by.AskCancel(l.now, Deleted, job.DefaultRetention)
	return ended
}

// deleted tells whether a run that waits is of a job that was deleted, though another may have its name by now.
func (l *letting) deleted(r run.Run) bool {
	return waitsForNone(l.of(r), r)
}

// waitsForNone tells whether a run that waits in line is of a job that was deleted.
func waitsForNone(j job.Job, r run.Run) bool {
	switch {
	case j.Broken != nil:
		return false
	case r.ID.OnDemand():
		return DeletedFor(j, r)
	}
	return j.Generation == 0 || j.Deleted || j.Gone(r.Generation)
}

// leaveNarrower tells the gates that runs had passed before this one which have ended in its line. What fails is left to the checks of those that wait there.
func (l *letting) leaveNarrower() {
	if !l.named() {
		return
	}
	for _, r := range l.ended {
		ctx, cancel := l.brief()
		ways, err := l.gatesOf(ctx, r)
		for _, at := range ways {
			if at.Compare(l.calling.at) < 0 {
				err = errors.Join(err, l.call(ctx, &calling{at: at, gone: []run.Run{r}}))
			}
		}
		if cancel(); err != nil {
			l.Log.Warn("who waits for a run that has ended in line is not let in yet", "run", r.ID.String(), "error", err)
		}
	}
}

// places gives the places of items, and the runs that they are of, as they stand. What is no place is left where it is.
func (l *letting) places(ctx context.Context, items []store.Item) ([]gate.Place, []run.Run, error) {
	var places []gate.Place
	var runs []run.Run
	for _, item := range items {
		p, err := gate.PlaceFromItem(l.calling.at.Name, item)
		if err != nil {
			l.Log.ErrorContext(ctx, "a place in a line is unreadable", "key", item.Key.String(), "error", err)
			continue
		}
		places, runs = append(places, p), append(runs, run.Run{ID: p.Run, Tenant: l.calling.at.Tenant})
	}
	standing, err := l.ReadRuns(ctx, runs)
	if err != nil {
		return nil, nil, fmt.Errorf("read the runs in the line of gate %s: %w", l.calling.at, err)
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
	name := l.Metrics.Gate(l.calling.at.Series(), l.named() || gate.OwnSeries(l.job.Def.Labels))
	for i := range l.in {
		l.in[i].Version = versions[1+i]
		l.Metrics.GateLetIn.Inc(name)
		l.Metrics.GateWait.Observe(time.Duration(l.waited[i])*time.Millisecond, name)
	}
	for i := range l.ended {
		l.ended[i].Version = versions[1+len(l.in)+i]
		l.CountEnd(l.ended[i])
	}
	l.gauge(l.round, l.job.Def.Labels)
	return nil
}
