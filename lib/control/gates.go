package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Line is how a run stands that waits in the line of a gate.
type Line struct {
	Gate     string
	Key      string       // as gate.ShownKey shows it, where the job has a gate for each value of a key
	Since    int64        // Unix ms
	Until    int64        // until when it may wait there, Unix ms; 0: for as long as it takes
	Behind   int          // runs that are before it in line, at most MaxBehind
	InTheWay []string     // IDs of runs that are in progress at the gate, those that were let in first; at most run.MaxInTheWay
	Stopping int          // how many of those that are in progress were asked to stop
	Closed   *gate.Change // where somebody has closed the gate
	Blocked  []Blocker    // runs that ended badly, behind which the line stands still; they are among InTheWay
}

// MaxBehind is up to where the runs are counted that are before one in line; a Behind that is MaxBehind means "at least".
const MaxBehind = 1000

// lineOf looks up how a waiting run stands in line. It is no snapshot: places are given and taken meanwhile.
func (s *Service) lineOf(ctx context.Context, r run.Run) (Line, error) {
	of := gate.Of(r)
	line := Line{Gate: r.Wait.Gate, Key: gate.ShownKey(of.Key), Since: r.Wait.Since, Until: r.Wait.Until}
	g, err := s.Dispatch.ReadGate(ctx, of)
	if err != nil {
		return line, err
	}
	var ended []run.Run
	if line.InTheWay, line.Stopping, ended, err = s.inProgress(ctx, g); err != nil {
		return line, err
	}
	line.Blocked = blockersOf(of, ended)
	page, err := s.Store.Query(ctx, g.Before(gate.PlaceOf(r), MaxBehind))
	if err != nil {
		return line, fmt.Errorf("read the line of %s: %w", line.Gate, err)
	}
	line.Behind, line.Closed = len(page.Items), g.Def.Closed
	return line, nil
}

// inProgress names the first few runs that hold places at a gate, and counts those of them that were asked to stop. blocking are those of them that have ended badly.
func (s *Service) inProgress(ctx context.Context, g gate.Gate) (ids []string, stopping int, blocking []run.Run, err error) {
	for round := g.Begin(); len(ids) < run.MaxInTheWay; {
		more, err := s.Dispatch.LookAt(ctx, round, s.Dispatch.PeekRuns)
		if err != nil || !more {
			return ids, stopping, blocking, err
		}
		if _, err := s.Dispatch.Settle(round); err != nil {
			return nil, 0, nil, err
		}
		ids, stopping, blocking = nil, round.Stopping(), round.Blockers()
		for _, e := range round.Gate().Entries {
			if len(ids) < run.MaxInTheWay {
				ids = append(ids, g.Run(e).String())
			}
		}
	}
	return ids, stopping, blocking, nil
}

// Gate is how a gate stands: one that has a name of its own, or the own gate of a job. Where the job has one for each value of a key, it is all of them together.
type Gate struct {
	Named gate.Named // of one that has a name of its own; else Version is 0
	Job   job.Job    // of a job's own gate

	InProgress int // runs: of those that were let in last, beyond GateLook, some may have ended
	Units      int // how much of the limit they take
	Waiting    int

	MoreWaiting   bool // at least Waiting wait: it has more values than were read, and more places in their lines
	waitingForAll int  // of them at the gate of all runs, and of no value

	// Blocked are, of the own gate of a strict job, the runs that ended badly and behind which a line stands still, at most MaxKeyGates. LetGo is who has let one go on last since the job is strict.
	Blocked []Blocker
	LetGo   gate.LetGo

	// Keys are, where runs pass it by a key, the values at which runs are in progress or wait, by their keys, at most MaxKeyGates. A run at a value that
	// was not looked at counts nowhere: values are kept for long after their last run has ended.
	Keys []KeyGate
	More bool // there are more of them, or may be
}

// KeyGate is how the gate of one value stands.
type KeyGate struct {
	Key        string // as gate.ShownKey shows it
	InProgress int
	Waiting    int
}

// MaxGates is the largest page of gates. GateLook is how many runs are looked at for each of them, at how many values, and at least how many runs at all of these
// together; ValueLook is how many these are for all gates of a page, where it has few. Where a gate has more values, at most as many places in their lines are counted.
// MaxKeyGates is how many values are told of.
const (
	MaxGates    = 100
	GateLook    = 100
	ValueLook   = 1000
	MaxKeyGates = 20
)

// Gates lists gates: those that have names of their own, by their names, then those of jobs that bound their overlap, by the names of the jobs.
func (s *Service) Gates(ctx context.Context, tenant, cursor string, limit int) (gates []Gate, next string, err error) {
	after, err := readCursor(cursor, isGate)
	if err != nil {
		return nil, "", err
	}
	limit = min(pageLimit(limit), MaxGates)
	afterJob, own := gate.OwnOf(after)
	if !own {
		if gates, err = s.namedGates(ctx, tenant, after, limit); err != nil {
			return nil, "", err
		}
		if len(gates) == limit {
			return gates, AfterGate(gates[limit-1]), s.stand(ctx, tenant, gates)
		}
		afterJob = "" // those of jobs come behind all that have names
	}
	jobs, more, err := s.boundedJobs(ctx, tenant, afterJob, limit-len(gates))
	if err != nil {
		return nil, "", err
	}
	if more != "" {
		next = cursorAfter(gate.Name(more))
	}
	for _, j := range jobs {
		gates = append(gates, Gate{Job: j})
	}
	return gates, next, s.stand(ctx, tenant, gates)
}

// isGate tells whether a gate may be called so.
func isGate(name string) bool {
	of, own := gate.OwnOf(name)
	return own && job.ValidName(of) == nil || gate.ValidName(name) == nil
}

// namedGates lists gates that have names of their own, behind a name, by their definitions.
func (s *Service) namedGates(ctx context.Context, tenant, after string, limit int) ([]Gate, error) {
	wanted := gate.AllNamed(tenant, "", limit)
	if after != "" {
		wanted.From = after + "\x00"
	}
	var gates []Gate
	for len(gates) < limit {
		page, err := s.Store.Query(ctx, wanted)
		if err != nil {
			return nil, fmt.Errorf("list gates: %w", err)
		}
		for _, item := range page.Items {
			n, err := gate.NamedFromItem(tenant, item)
			if err != nil {
				s.unreadable(tenant, item, err)
			} else if n.Version != 0 && len(gates) < limit {
				gates = append(gates, Gate{Named: n})
			}
		}
		if wanted.Cursor = page.Cursor; wanted.Cursor == "" {
			break
		}
	}
	return gates, nil
}

// boundedJobs lists jobs that bound their overlap, behind a name. more is the name behind which there may be others, "" for none.
func (s *Service) boundedJobs(ctx context.Context, tenant, after string, limit int) (jobs []job.Job, more string, err error) {
	cursor := ""
	if after != "" {
		cursor = cursorAfter(after)
	}
	jobs, next, err := s.Jobs(ctx, tenant, JobFilter{Bounded: true}, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	more, err = readCursor(next, func(string) bool { return true })
	return jobs, more, err
}

// Gate reads how a gate stands.
func (s *Service) Gate(ctx context.Context, tenant, name string) (Gate, error) {
	of, own := gate.OwnOf(name)
	if !own {
		n, err := s.existingGate(ctx, tenant, name)
		if err != nil {
			return Gate{}, err
		}
		return s.Stands(ctx, n)
	}
	j, err := s.jobOfGate(ctx, tenant, name, of)
	if err != nil {
		return Gate{}, err
	}
	if j.Def.Overlap.IsZero() {
		return Gate{}, refuse(CodeGateNotFound, "there is no gate %s: the job has no limit in its overlap", name)
	}
	shown := []Gate{{Job: j}}
	err = s.stand(ctx, tenant, shown)
	return shown[0], err
}

// Stands reads how a gate stands that has this definition.
func (s *Service) Stands(ctx context.Context, n gate.Named) (Gate, error) {
	shown := []Gate{{Named: n}}
	err := s.stand(ctx, n.Tenant, shown)
	return shown[0], err
}

// existingGate reads the definition of a gate that has a name of its own.
func (s *Service) existingGate(ctx context.Context, tenant, name string) (gate.Named, error) {
	if gate.ValidName(name) != nil {
		return gate.Named{}, noGate(name)
	}
	n, err := s.namedGate(ctx, tenant, name)
	if err == nil && n.Version == 0 {
		err = noGate(name)
	}
	return n, err
}

// jobOfGate reads the job whose own gate has a name.
func (s *Service) jobOfGate(ctx context.Context, tenant, name, of string) (job.Job, error) {
	if job.ValidName(of) != nil {
		return job.Job{}, noGate(name)
	}
	j, err := s.Dispatch.Book.Job(ctx, tenant, of)
	if err != nil {
		return job.Job{}, err
	}
	if existing(&j) != nil {
		return job.Job{}, refuse(CodeGateNotFound, "there is no gate %s: there is no such job", name)
	}
	return j, nil
}

// stand adds to gates of a page how they stand, as their items and runs say. All that is read of the store is read for the whole page.
func (s *Service) stand(ctx context.Context, tenant string, gates []Gate) error {
	all, many, err := s.gateItems(ctx, tenant, gates)
	if err != nil {
		return err
	}
	rounds := make([][]*gate.Round, len(gates))
	var looked []look
	for i := range gates {
		for _, item := range all[i] {
			g, err := gate.FromItem(tenant, gates[i].Name(), item)
			if err != nil {
				s.unreadable(tenant, item, err)
				continue
			}
			rounds[i] = append(rounds[i], g.Begin())
		}
		looked = append(looked, looks(rounds[i], max(GateLook, ValueLook/len(gates)))...)
	}
	if err := s.learn(ctx, looked); err != nil {
		return err
	}
	for i := range gates {
		for _, round := range rounds[i] {
			gates[i].count(round)
		}
	}
	return s.countLines(ctx, tenant, gates, many)
}

// gateItems reads the items of gates: of each that of all runs, and those of values where it may have any. many are the gates that have more.
func (s *Service) gateItems(ctx context.Context, tenant string, gates []Gate) (items [][]store.Item, many []int, err error) {
	items = make([][]store.Item, len(gates))
	var plain, several []int
	var keys []store.Key
	for i, g := range gates {
		if g.Named.Version != 0 || g.Job.Keyed { // jobs name a gate with a key, or without
			several = append(several, i)
		} else {
			plain, keys = append(plain, i), append(keys, gate.Key(tenant, g.Job.Name))
		}
	}
	if len(plain) > 0 {
		read, err := s.Store.Get(ctx, keys...)
		if err != nil {
			return nil, nil, fmt.Errorf("read gates: %w", err)
		}
		for k, i := range plain {
			items[i] = read[k : k+1]
		}
	}
	failed := make([]error, len(several))
	dispatch.Parallel(several, fanOut, func(k, i int) {
		page, err := s.Store.Query(ctx, gate.Gates(tenant, gates[i].Name(), GateLook))
		if err != nil {
			failed[k] = fmt.Errorf("read the gates of %s: %w", gates[i].Name(), err)
		}
		items[i], gates[i].More = page.Items, page.Cursor != ""
	})
	for i := range gates {
		if gates[i].More {
			many = append(many, i)
		}
	}
	return items, many, errors.Join(failed...)
}

// countLines has gates of more values than were read tell how many runs wait for all of them, by the places in their lines. For a page of gates as many of these are
// read as entries are looked at.
func (s *Service) countLines(ctx context.Context, tenant string, gates []Gate, many []int) error {
	failed := make([]error, len(many))
	dispatch.Parallel(many, fanOut, func(k, i int) {
		g, places := &gates[i], 0
		lines := gate.KeyedLines(tenant, g.Name(), "")
		for most := max(GateLook, ValueLook/len(many)); ; { // a page may be short
			lines.Limit = most - places
			page, err := s.Store.Query(ctx, lines)
			if err != nil {
				failed[k] = fmt.Errorf("count who waits at %s: %w", g.Name(), err)
				return
			}
			places += len(page.Items)
			if lines.Cursor = page.Cursor; lines.Cursor == "" || places >= most {
				break
			}
		}
		g.Waiting, g.MoreWaiting = max(g.Waiting, g.waitingForAll+places), lines.Cursor != ""
	})
	return errors.Join(failed...)
}

// look is what of a gate is looked at: runs of its entries.
type look struct {
	at   *gate.Round
	runs []run.Run
}

// looks gives what is looked at of gates of one name: GateLook runs of the gate of all, and so many of those of values, first where any wait, then where somebody
// came or went last.
func looks(rounds []*gate.Round, most int) (all []look) {
	rounds = slices.Clone(rounds)
	slices.SortStableFunc(rounds, func(a, b *gate.Round) int {
		return cmp.Or(cmp.Compare(min(b.Waiting(), 1), min(a.Waiting(), 1)), b.Gate().Expires.Compare(a.Gate().Expires))
	})
	for _, round := range rounds {
		one, of := look{at: round}, most
		if round.ID().Key == "" {
			of = GateLook
		}
		for _, id := range round.Unsure(of) {
			one.runs = append(one.runs, run.Run{ID: id, Tenant: round.Tenant()})
		}
		if round.ID().Key != "" {
			most -= len(one.runs)
		}
		all = append(all, one)
	}
	return all
}

// learn reads the runs that are looked at, and tells the gates.
func (s *Service) learn(ctx context.Context, looked []look) error {
	var some []run.Run
	for _, one := range looked {
		some = append(some, one.runs...)
	}
	standing := make([]run.Run, len(some))
	chunks := slices.Collect(slices.Chunk(some, store.MaxKeys))
	failed := make([]error, len(chunks))
	dispatch.Parallel(chunks, fanOut, func(k int, chunk []run.Run) {
		read, err := s.Dispatch.PeekRuns(ctx, chunk)
		if err != nil {
			failed[k] = fmt.Errorf("read the runs at gates: %w", err)
		}
		copy(standing[k*store.MaxKeys:], read)
	})
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, one := range looked {
		one.at.Learn(standing[:len(one.runs)])
		standing = standing[len(one.runs):]
	}
	return nil
}

// count adds one of the gates of its name, of which runs were looked at.
func (g *Gate) count(round *gate.Round) {
	key := round.ID().Key
	if key != "" && round.LeaveUnsure() {
		g.More = true
	}
	round.Settle(g.Job.StrictSince())
	blocked := blockersOf(round.ID(), round.Blockers())
	g.Blocked = append(g.Blocked, blocked[:min(len(blocked), MaxKeyGates-len(g.Blocked))]...)
	if let := round.Gate().LetGo; let.Change.At > g.LetGo.Change.At && let.Strict == g.Job.StrictSince() {
		g.LetGo = let
	}
	one := KeyGate{gate.ShownKey(key), round.Held() - len(blocked), round.Waiting()}
	if key == "" {
		g.waitingForAll = one.Waiting
	}
	g.InProgress, g.Units, g.Waiting = g.InProgress+one.InProgress, g.Units+round.Units()-len(blocked), g.Waiting+one.Waiting
	switch {
	case key == "" || one.InProgress+one.Waiting == 0:
	case len(g.Keys) == MaxKeyGates:
		g.More = true
	default:
		g.Keys = append(g.Keys, one)
	}
}

// AfterGate is the cursor of a page that ends with this gate, in place of the one that Gates gave.
func AfterGate(g Gate) string { return cursorAfter(g.Name()) }

// Name is how the gate is called.
func (g Gate) Name() string {
	if g.Named.Version != 0 {
		return g.Named.Name
	}
	return gate.Name(g.Job.Name)
}

// GateLine lists the runs that wait at a gate, from the front of its line on. Where jobs pass it by a key, key is one of its values, as that or as
// gate.ShownKey shows it, and "" for all of them, one line after the other.
func (s *Service) GateLine(ctx context.Context, tenant, name, key, cursor string, limit int) (runs []run.Run, next string, err error) {
	keyed, err := s.hasLine(ctx, tenant, name)
	if err != nil {
		return nil, "", err
	}
	after, err := readCursor(cursor, func(sort string) bool {
		_, err := gate.PlaceFromItem(name, store.Item{Key: store.Key{Sort: sort}})
		return err == nil
	})
	if err != nil {
		return nil, "", err
	}
	of := gate.ID{Tenant: tenant, Name: name}
	if key != "" {
		of.Key = gate.KeyAsked(key)
	}
	g, err := s.Dispatch.ReadGate(ctx, of)
	if err != nil {
		return nil, "", err
	}
	limit = min(pageLimit(limit), store.MaxKeys)
	lines := []store.Range{g.Line(limit)}
	if key == "" && keyed {
		lines = append(lines, gate.KeyedLines(tenant, name, ""))
	}
	var items []store.Item
	for i, line := range lines {
		if line.Limit = limit - len(items); line.Limit == 0 {
			next = cursorAfter(items[len(items)-1].Sort)
			break
		}
		if after != "" && gate.InKeyedLine(after) == (i > 0 || key != "") {
			line.From = after + "\x00"
		} else if after != "" && i < len(lines)-1 {
			continue // it has been read to its end
		}
		page, err := s.Store.Query(ctx, line)
		if err != nil {
			return nil, "", fmt.Errorf("read the line of %s: %w", name, err)
		}
		items = append(items, page.Items...)
		if n := len(items); page.Cursor != "" && n > 0 {
			next = cursorAfter(items[n-1].Sort)
			break
		}
	}
	places := make(map[run.ID]gate.Place, len(items))
	var some []run.Run
	for _, item := range items {
		p, err := gate.PlaceFromItem(name, item)
		if err != nil {
			s.unreadable(tenant, item, err)
			continue
		}
		places[p.Run] = p
		some = append(some, run.Run{ID: p.Run, Tenant: tenant})
	}
	standing, err := s.Dispatch.ReadRuns(ctx, some)
	if err != nil {
		return nil, "", fmt.Errorf("read the runs in the line of %s: %w", name, err)
	}
	for _, r := range standing {
		if places[r.ID].Named(r) {
			runs = append(runs, r)
		}
	}
	return runs, next, nil
}

// hasLine refuses gates that there are not. keyed tells whether there may be one for each value of a key.
func (s *Service) hasLine(ctx context.Context, tenant, name string) (keyed bool, err error) {
	of, own := gate.OwnOf(name)
	if !own {
		_, err := s.existingGate(ctx, tenant, name)
		return true, err // jobs may name it with a key, or without
	}
	j, err := s.jobOfGate(ctx, tenant, name, of)
	return j.Keyed, err
}

// AfterInLine is the cursor of a page of a line that ends with this run.
func AfterInLine(r run.Run) string { return cursorAfter(gate.PlaceOf(r).Key(r.Tenant).Sort) }
