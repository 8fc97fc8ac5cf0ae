package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// ledger keeps account of each run from what is written of it, for as long as the simulation lasts: records keep their newest attempts only,
// and expire. No call of the store ends by a context, since these have bounds in real time.
type ledger struct {
	store.Store

	cut int              // the process dies at each such write; 0: at none
	now func() time.Time // by the clocks of hosts

	mu       sync.Mutex
	writes   int  // since the process began
	dead     bool // the process is, and does nothing any more
	runs     map[run.ID]*account
	states   [run.Unknown + 1]int // how many runs are in each
	progress map[string]int       // by job: runs that have started and not ended
	most     map[string]int       // of progress

	lined map[run.ID]*account  // who waits in line
	moved time.Time            // when a run went on for the last time, or somebody did something
	gates map[store.Key][]byte // of each gate, as it was written last

	// Of gates that jobs name:
	taken map[store.Key]int      // units in progress, of all runs or of a value, as counted last
	stale map[store.Key]struct{} // where that may be otherwise by now
	total map[string]int         // by name: taken, of all values together
	units map[string]int         // by name: the most that total has been

	nodes int   // of the workflows of all runs that have begun
	data  int64 // bytes of results and inputs

	watch  func(*store.Op)    // is told of each item that was written, of timers and renewals too, which are no events; nil where nobody asks. It is not to call the ledger
	events map[run.ID][]Event // of each run and each step; nil where nobody asks for them
	told   int                // how many of them there are

	// What the player has still to heed:
	begun   []*account // workflows' runs that have begun
	stopped []run.ID   // runs and steps with an attempt under way, which are to stop
	kept    []string   // blobs of results
}

// account is what is known of a run. Times are Unix ms, 0 for none.
type account struct {
	id         run.ID
	state      run.State
	stage      run.State
	generation int64
	opening    uint64
	line       string // the gate of the record: where it waits, if it does
	failures   int
	reason     string
	ended      int64
	next       int64 // not before
	startBy    int64
	waitUntil  int64
	endBy      int64
	attempts   []try
	waits      []Wait
	result     run.Ref
	why        run.Why
	key        string // as gate.ShownKey shows it
	through    int64  // of a stretch of missed fires
	count      int
	progress   bool
	stops      bool
	callback   bool
	own        string      // the policy that it brought
	entered    []store.Key // the gates that jobs name where it has been counted

	// Of a workflow's run that has begun:
	head     run.Run
	workflow *flow.Workflow
	steps    map[string]*step // that stand somewhere, by their paths
}

// step is what is known of a step of a workflow's run.
type step struct {
	row      run.Run
	attempts []try
	input    json.RawMessage // what its target was handed
}

type try struct {
	run.Attempt
	code string
}

func newLedger(s store.Store, cut int, now func() time.Time) *ledger {
	return &ledger{Store: s, cut: cut, now: now, runs: map[run.ID]*account{}, progress: map[string]int{}, most: map[string]int{},
		lined: map[run.ID]*account{}, gates: map[store.Key][]byte{},
		taken: map[store.Key]int{}, stale: map[store.Key]struct{}{}, total: map[string]int{}, units: map[string]int{}}
}

// errKilled is what a process hears of the store that was killed. It is not there to hear it.
var errKilled = errors.New("the process was killed")

// killed tells whether the process was.
func (l *ledger) killed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// lives begins a process.
func (l *ledger) lives() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.writes = false, 0
}

// wrote counts a write, behind which the process may be killed.
func (l *ledger) wrote() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes++; l.cut > 0 && l.writes >= l.cut {
		l.dead = true
		return errKilled
	}
	return nil
}

func (l *ledger) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	if l.killed() {
		return nil, errKilled
	}
	return l.Store.Get(context.WithoutCancel(ctx), keys...)
}

func (l *ledger) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return l.Get(ctx, keys...)
}

func (l *ledger) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if l.killed() {
		return store.Page{}, errKilled
	}
	return l.Store.Query(context.WithoutCancel(ctx), r)
}

func (l *ledger) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if l.killed() {
		return nil, errKilled
	}
	versions, err := l.Store.Write(context.WithoutCancel(ctx), ops...)
	if err != nil {
		return nil, err
	}
	l.note(ops)
	return versions, l.wrote()
}

func (l *ledger) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	if l.killed() {
		return nil, errKilled
	}
	verdicts, err := l.Store.WriteEach(context.WithoutCancel(ctx), ops...)
	if err != nil {
		return nil, err
	}
	var done []store.Op
	for i, v := range verdicts {
		if v.Err == nil {
			done = append(done, ops[i])
		}
	}
	if len(done) > 0 {
		l.note(done)
		err = l.wrote()
	}
	return verdicts, err
}

// note takes what was written at once: gates first, at which runs may begin to wait by the same write.
func (l *ledger) note(ops []store.Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range ops {
		if isGate(&ops[i]) {
			l.gates[ops[i].Key] = ops[i].Value
		}
	}
	for i := range ops {
		if l.watch != nil {
			l.watch(&ops[i])
		}
		l.noteRun(&ops[i])
	}
	l.noteUnits(ops)
}

const gatePrefix = "gate#" + tenant + "#"

func isGate(op *store.Op) bool {
	return op.Kind == store.Put && strings.HasPrefix(op.Key.Partition, gatePrefix)
}

// isNamed tells of the item of a gate whether jobs name that.
func isNamed(at store.Key) bool {
	_, own := gate.OwnOf(strings.TrimPrefix(at.Partition, gatePrefix))
	return !own
}

// noteUnits takes how much of the limits of gates that jobs name is taken once these were written. The gate of a value whose runs have gone on since is counted
// anew, though nobody has written it.
func (l *ledger) noteUnits(ops []store.Op) {
	var names []string
	for i := range ops {
		if isGate(&ops[i]) && isNamed(ops[i].Key) {
			l.stale[ops[i].Key] = struct{}{}
			names = append(names, strings.TrimPrefix(ops[i].Key.Partition, gatePrefix))
		}
	}
	if len(names) == 0 {
		return
	}
	for at := range l.stale {
		l.countUnits(at)
	}
	clear(l.stale)
	for _, name := range names {
		l.units[name] = max(l.units[name], l.total[name])
	}
}

// countUnits counts the units that are in progress at a gate.
func (l *ledger) countUnits(at store.Key) {
	round := l.inProgress(at)
	if round == nil {
		return
	}
	g := round.Gate()
	for _, e := range g.Entries {
		if a := l.runs[g.Run(e)]; a != nil && !slices.Contains(a.entered, at) {
			a.entered = append(a.entered, at)
		}
	}
	units := round.Units() - len(round.Blockers()) // which have ended, though nobody is let in for them
	l.total[g.Name] += units - l.taken[at]
	l.taken[at] = units
}

// inProgress has looked at all runs that have places at a gate. It is nil where the gate cannot be read.
func (l *ledger) inProgress(at store.Key) *gate.Round {
	g, err := gate.FromItem(tenant, strings.TrimPrefix(at.Partition, gatePrefix), store.Item{Key: at, Version: 1, Value: l.gates[at]})
	if err != nil {
		return nil
	}
	round := g.Begin()
	ids := round.Unsure(len(g.Entries))
	standing := make([]run.Run, len(ids))
	for i, id := range ids {
		if a := l.runs[id]; a != nil {
			standing[i] = run.Run{ID: id, Tenant: tenant, Version: 1, State: a.state, Generation: a.generation, Opening: a.opening, Wait: run.Wait{Gate: a.line}}
		}
	}
	round.Learn(standing)
	return round
}

// inTheWay names the runs that a run finds in progress at the gate where it begins to wait.
func (l *ledger) inTheWay(r run.Run) (ids []string) {
	at := gate.Of(r).Item()
	if l.gates[at] == nil {
		return nil
	}
	round := l.inProgress(at)
	if round == nil {
		return nil
	}
	g := round.Gate()
	for _, e := range g.Entries[:min(len(g.Entries), run.MaxInTheWay)] {
		ids = append(ids, g.Run(e).String())
	}
	return ids
}

// recordOf is the record of a run or a step that an operation writes, false where it writes none.
func recordOf(op *store.Op) (run.Run, bool) {
	if op.Kind != store.Put {
		return run.Run{}, false
	}
	of, id, ok := run.IDFromKey(op.Key)
	if !ok {
		return run.Run{}, false
	}
	r, ok, err := run.FromItem(of, id, store.Item{Key: op.Key, Version: 1, Value: op.Value})
	return r, ok && err == nil
}

// noteRun takes what was written of a run.
func (l *ledger) noteRun(op *store.Op) {
	r, ok := recordOf(op)
	if !ok {
		return
	}
	id := r.ID
	a := l.runs[id.Whole()]
	if id.IsStep() {
		l.noteStep(a, r)
		return
	}
	before, tries := run.State(0), 0
	if a == nil {
		a = &account{id: id}
		l.runs[id] = a
	} else {
		before, tries = a.stage, len(a.attempts)
		l.states[a.state]--
	}
	l.states[r.State]++
	l.noteResult(a.result, r.Result)
	if stopping := stops(r); stopping != a.stops {
		if a.stops = stopping; stopping {
			l.stopped = append(l.stopped, id)
		}
	}
	if r.Heads() && a.steps == nil {
		l.begun, a.steps = append(l.begun, a), map[string]*step{}
	}
	if a.steps != nil {
		a.head = r
	}
	if lined := l.lined[id] != nil; r.State != a.state || r.Waits() != lined {
		l.moved = l.now()
	}
	for _, at := range a.entered {
		l.stale[at] = struct{}{}
	}
	if delete(l.lined, id); r.Waits() {
		l.lined[id] = a
	}
	a.state, a.generation, a.failures, a.reason, a.ended, a.next, a.result, a.why, a.key = r.State, r.Generation, r.Failures, r.Reason, r.Ended, r.NextAt, r.Result, r.Why, gate.ShownKey(gate.WhyKey(r))
	a.opening, a.startBy, a.endBy, a.line = r.Opening, r.StartBy, r.EndBy, r.Wait.Gate
	a.waitUntil = r.Wait.Until
	a.own = r.Overlap.String()
	a.through, a.count, a.callback = 0, 0, !r.Callback.IsZero()
	if r.Missed() {
		a.through, a.count = max(r.Through, id.Nominal), max(r.Count, 1)
	}
	for _, one := range r.Attempts {
		a.attempts = tried(a.attempts, one)
	}
	l.changed(r, before, tries, a.attempts)
	a.stage = r.Stage()
	l.wait(a, r)
	switch progress := r.State == run.Running || a.progress && (r.State == run.Retrying || r.State == run.Queued); {
	case progress && !a.progress:
		a.progress = true
		l.progress[id.Job]++
		l.most[id.Job] = max(l.most[id.Job], l.progress[id.Job])
	case a.progress && !progress:
		a.progress = false
		l.progress[id.Job]--
	}
}

// noteStep takes what was written of a step of a run.
func (l *ledger) noteStep(of *account, r run.Run) {
	if of == nil || of.steps == nil {
		return
	}
	s := of.steps[r.ID.Step]
	if s == nil {
		s = &step{}
		of.steps[r.ID.Step] = s
	}
	l.noteResult(s.row.Result, r.Result)
	if stops(r) && !stops(s.row) {
		l.stopped = append(l.stopped, r.ID)
	}
	before, tries := s.row.Stage(), len(s.attempts)
	s.row = r
	for _, one := range r.Attempts {
		s.attempts = tried(s.attempts, one)
	}
	l.changed(r, before, tries, s.attempts)
}

// stops tells whether an attempt is under way that is to stop, or whose run was ended.
func stops(r run.Run) bool { return r.Cancel && r.State == run.Running || r.GaveWay() }

// noteResult counts a result that was written. How large one is that stands in a blob, the player is to find out.
func (l *ledger) noteResult(before, now run.Ref) {
	switch {
	case now.Blob != "" && now.Blob != before.Blob:
		l.kept = append(l.kept, now.Blob)
	case len(before.Inline) == 0:
		l.data += int64(len(now.Inline))
	}
}

// handed notes what the target of a step is handed, at its first attempt: it is the same at each.
func (l *ledger) handed(id run.ID, input json.RawMessage) {
	s := l.runs[id.Whole()].steps[id.Step]
	if s.input != nil || len(input) == 0 || len(input) > job.MaxPayload {
		return
	}
	s.input, _ = run.ShownResult(input, "application/json", false) // it may be a text that another step gave
	l.data += int64(len(s.input))
}

// failures are those of a run or step that its retries count, and the generation of its definition.
func (l *ledger) failures(id run.ID) (generation int64, failures int) {
	a := l.runs[id.Whole()]
	if id.IsStep() {
		row := a.steps[id.Step].row
		return row.Generation, row.Failures
	}
	return a.generation, a.failures
}

// wait takes what a run's record says of its wait in line.
func (l *ledger) wait(a *account, r run.Run) {
	key := gate.ShownKey(gate.Of(r).Key)
	if n := len(a.waits); n > 0 && a.waits[n-1].To == nil {
		if r.Waits() && r.Wait.Gate == a.waits[n-1].Gate && key == a.waits[n-1].Key && r.Wait.Since == a.waits[n-1].From.UnixMilli() {
			return
		}
		now := l.now().UTC()
		a.waits[n-1].To = &now
	}
	if r.Waits() {
		a.waits = append(a.waits, Wait{Gate: r.Wait.Gate, Key: key, From: time.UnixMilli(r.Wait.Since).UTC(), InTheWay: l.inTheWay(r)})
	}
}

// shown is the state that a user sees.
func (p *player) shown(ctx context.Context, a *account) run.State {
	if n := len(a.waits); n > 0 && a.waits[n-1].To == nil {
		return run.Waiting
	}
	return p.control.Shown(ctx, run.Run{ID: a.id, Tenant: tenant, State: a.state, Generation: a.generation, NextAt: a.next})
}

// tried takes an attempt as the record has it among those before. Records shorten the errors of those that have ended before.
func tried(attempts []try, one run.Attempt) []try {
	i := slices.IndexFunc(attempts, func(t try) bool { return t.Number == one.Number })
	switch {
	case i < 0:
		return append(attempts, try{Attempt: one})
	case attempts[i].Ended == 0:
		attempts[i].Attempt = one
	}
	return attempts
}

// code notes the code of a failed attempt, "" for none.
func (l *ledger) code(id run.ID, number int, code string) {
	attempts := l.runs[id.Whole()].attempts
	if id.IsStep() {
		attempts = l.runs[id.Whole()].steps[id.Step].attempts
	}
	for i := range attempts {
		if t := &attempts[i]; t.Number == number {
			t.code = code
		}
	}
}

// count is how many runs there are, with those that were skipped, and steps of those that have begun.
func (l *ledger) count() int { return len(l.runs) - l.states[run.Fenced] + l.nodes }

// unended is how many runs have not ended.
func (l *ledger) unended() int {
	return l.states[run.Scheduled] + l.states[run.Queued] + l.states[run.Running] + l.states[run.Retrying]
}

// going is how many runs go on by themselves: those of which an attempt is under way, or seems to be, and where there are workers, also those that
// wait for one. What is scheduled waits for its time, or for its job to be resumed.
func (l *ledger) going(workers bool) int {
	going := l.states[run.Running]
	if workers {
		going += l.states[run.Queued] + l.states[run.Retrying]
	}
	return going
}

// lasting is how long runs may wait in line, while nothing else goes on, until nobody is going to let them in: a gate's timer looks each minute whether
// there is room, and a check of each run each hour.
const lasting = 2 * time.Hour

// stuck tells whether all that has not ended waits in line for what nobody does any more: a gate is closed, say, or a job paused. Who may be too late to
// start is skipped one day, and who has a deadline is stopped.
func (l *ledger) stuck(workers bool) bool {
	if len(l.lined) == 0 || l.going(workers) > len(l.lined) || l.now().Sub(l.moved) < lasting {
		return false
	}
	for _, a := range l.lined {
		if a.startBy != 0 || a.endBy != 0 || a.waitUntil != 0 {
			return false
		}
	}
	return true
}

// report says what became of all runs so far.
func (p *player) report(ctx context.Context) (Report, error) {
	r := Report{Runs: []Run{}, Skipped: []Stretch{}, Refused: slices.Clone(p.refused), Open: p.ledger.unended(),
		Most: Most{Jobs: maps.Clone(p.ledger.most), Gates: maps.Clone(p.ledger.units), Workers: p.most}}
	all := slices.SortedFunc(maps.Values(p.ledger.runs), func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.id.Nominal, b.id.Nominal), strings.Compare(a.id.Job, b.id.Job), strings.Compare(a.id.Random, b.id.Random))
	})
	for _, a := range all {
		switch {
		case a.state == run.Fenced:
		case a.count > 0:
			r.Skipped = append(r.Skipped, Stretch{Job: a.id.Job, From: a.id.Time(), Through: time.UnixMilli(a.through).UTC(), Count: a.count, Reason: a.reason})
		default:
			one, err := p.reported(ctx, a)
			if err != nil {
				return Report{}, err
			}
			r.Runs = append(r.Runs, one)
		}
	}
	return r, nil
}

func (p *player) reported(ctx context.Context, a *account) (Run, error) {
	r := Run{ID: a.id.String(), Job: a.id.Job, Trigger: run.BySchedule.String(), Overlap: a.own, NominalTime: a.id.Time(), State: p.shown(ctx, a).String(), Reason: a.reason,
		EndedAt: instant(a.ended), Waits: slices.Clone(a.waits), Attempts: reportedTries(a.attempts),
		Events: slices.Clone(p.ledger.events[a.id])}
	switch {
	case a.callback:
		r.Trigger = run.ByCallback
	case a.id.OnDemand():
		r.Trigger = run.ByRequest.String()
	}
	if as, ok := p.as[a.id]; ok {
		r.As = &as
	}
	switch {
	case len(r.Attempts) > 0:
		r.StartedAt = &r.Attempts[0].StartedAt
	case a.workflow != nil:
		r.StartedAt = instant(a.head.Started)
	}
	var err error
	if r.Steps, err = p.stepsOf(ctx, a); err != nil {
		return Run{}, err
	}
	if r.Result, err = p.result(ctx, a.result); err != nil {
		return Run{}, err
	}
	if !a.why.IsZero() {
		r.Why = wire.NewWhy(a.why.Code, a.why.Gate, a.key, a.why.Policy, a.why.InTheWay, a.reason)
		if a.why.Since != 0 {
			r.Why.Since = time.UnixMilli(a.why.Since).UTC()
		}
	}
	return r, nil
}

// instant is a time of a record, nil for none.
func instant(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	at := time.UnixMilli(ms).UTC()
	return &at
}
