package control

import (
	"context"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Line is how a run stands that waits in the line of a gate.
type Line struct {
	Gate     string
	Key      string        // as gate.ShownKey shows it, where the job has a gate for each value of a key
	Since    int64         // Unix ms
	Behind   int           // runs that are before it in line, at most MaxBehind
	InTheWay []string      // IDs of runs that are in progress at the gate, those that were let in first; at most run.MaxInTheWay
	Closed   *gate.Closure // where somebody has closed the gate
}

// MaxBehind is up to where the runs are counted that are before one in line; a Behind that is MaxBehind means "at least".
const MaxBehind = 1000

// lineOf looks up how a waiting run stands in line. It is no snapshot: places are given and taken meanwhile.
func (s *Service) lineOf(ctx context.Context, r run.Run) (Line, error) {
	of := gate.Of(r)
	line := Line{Gate: r.Wait.Gate, Key: gate.ShownKey(of.Key), Since: r.Wait.Since}
	g, err := s.gateOf(ctx, of)
	if err != nil {
		return line, err
	}
	if line.InTheWay, err = s.inProgress(ctx, g); err != nil {
		return line, err
	}
	page, err := s.Store.Query(ctx, g.Before(gate.PlaceOf(r), MaxBehind))
	if err != nil {
		return line, fmt.Errorf("read the line of %s: %w", line.Gate, err)
	}
	line.Behind, line.Closed = len(page.Items), g.Def.Closed
	return line, nil
}

// gateOf reads a gate; one that has a name of its own, with its definition.
func (s *Service) gateOf(ctx context.Context, of gate.ID) (gate.Gate, error) {
	keys := []store.Key{of.Item()}
	if of.IsNamed() {
		keys = append(keys, gate.NamedKey(of.Tenant, of.Name))
	}
	items, err := s.Store.Get(ctx, keys...)
	if err != nil {
		return gate.Gate{}, fmt.Errorf("read gate %s: %w", of.Name, err)
	}
	g, err := gate.FromItem(of.Tenant, of.Name, items[0])
	if err == nil && of.IsNamed() {
		g.Def, err = gate.NamedFromItem(of.Tenant, items[1])
	}
	return g, err
}

// inProgress names the first few runs that hold places at a gate.
func (s *Service) inProgress(ctx context.Context, g gate.Gate) (ids []string, err error) {
	for round := g.Begin(); len(ids) < run.MaxInTheWay; {
		var some []run.Run
		for _, id := range round.Unsure(store.MaxKeys) {
			some = append(some, run.Run{ID: id, Tenant: g.Tenant})
		}
		if len(some) == 0 {
			return ids, nil
		}
		standing, err := s.Dispatch.PeekRuns(ctx, some)
		if err != nil {
			return nil, fmt.Errorf("read the runs at gate %s: %w", g.Name, err)
		}
		round.Learn(standing)
		ids = nil
		for _, e := range round.Gate().Entries {
			if len(ids) < run.MaxInTheWay {
				ids = append(ids, g.Run(e).String())
			}
		}
	}
	return ids, nil
}

// Gate is how a gate stands: one that has a name of its own, or the own gate of a job. Where the job has one for each value of a key, it is all of them together.
type Gate struct {
	Named gate.Named // of one that has a name of its own; else Version is 0
	Job   job.Job    // of a job's own gate

	InProgress int // runs: of those that were let in last, beyond GateLook, some may have ended
	Units      int // how much of the limit they take
	Waiting    int

	Keys []KeyGate // where runs pass it by a key: the values at which runs are in progress or wait, by their keys, at most MaxKeyGates
	More bool      // there are more of them, or may be
}

// KeyGate is how the gate of one value stands.
type KeyGate struct {
	Key        string // as gate.ShownKey shows it
	InProgress int
	Waiting    int
}

// MaxGates is the largest page of gates, GateLook how many runs are looked at for each of them, and of how many values, and MaxKeyGates how many of these are
// told of.
const (
	MaxGates    = 100
	GateLook    = 100
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
			return gates, AfterGate(gates[limit-1]), nil
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
	ours, err := s.ownGates(ctx, tenant, jobs)
	return append(gates, ours...), next, err
}

// isGate tells whether a gate may be called so.
func isGate(name string) bool {
	of, own := gate.OwnOf(name)
	return own && job.ValidName(of) == nil || gate.ValidName(name) == nil
}

// namedGates lists gates that have names of their own, behind a name.
func (s *Service) namedGates(ctx context.Context, tenant, after string, limit int) ([]Gate, error) {
	wanted := gate.AllNamed(tenant, "", limit)
	if after != "" {
		wanted.From = after + "\x00"
	}
	var all []gate.Named
	for len(all) < limit {
		page, err := s.Store.Query(ctx, wanted)
		if err != nil {
			return nil, fmt.Errorf("list gates: %w", err)
		}
		for _, item := range page.Items {
			n, err := gate.NamedFromItem(tenant, item)
			if err != nil {
				s.unreadable(tenant, item, err)
			} else if n.Version != 0 && len(all) < limit {
				all = append(all, n)
			}
		}
		if wanted.Cursor = page.Cursor; wanted.Cursor == "" {
			break
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	gates := make([]Gate, len(all))
	for i, n := range all {
		var err error
		if gates[i], err = s.Stands(ctx, n); err != nil {
			return nil, err
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

// ownGates gives the own gates of jobs.
func (s *Service) ownGates(ctx context.Context, tenant string, jobs []job.Job) ([]Gate, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	keys := make([]store.Key, len(jobs))
	for i, j := range jobs {
		keys[i] = gate.Key(tenant, j.Name)
	}
	items, err := s.Store.Get(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("read gates: %w", err)
	}
	gates := make([]Gate, len(jobs))
	for i, j := range jobs {
		gates[i].Job = j
		of := items[i : i+1]
		if j.Keyed {
			page, err := s.Store.Query(ctx, gate.Gates(tenant, gate.Name(j.Name), GateLook))
			if err != nil {
				return nil, fmt.Errorf("read the gates of %s: %w", j.Name, err)
			}
			of, gates[i].More = page.Items, page.Cursor != ""
		}
		if err := s.stand(ctx, &gates[i], tenant, gate.Name(j.Name), of); err != nil {
			return nil, err
		}
	}
	return gates, nil
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
	gates, err := s.ownGates(ctx, tenant, []job.Job{j})
	if err != nil {
		return Gate{}, err
	}
	return gates[0], nil
}

// Stands reads how a gate stands that has this definition.
func (s *Service) Stands(ctx context.Context, n gate.Named) (Gate, error) {
	shown := Gate{Named: n}
	page, err := s.Store.Query(ctx, gate.Gates(n.Tenant, n.Name, GateLook))
	if err != nil {
		return Gate{}, fmt.Errorf("read gate %s: %w", n.Name, err)
	}
	shown.More = page.Cursor != ""
	return shown, s.stand(ctx, &shown, n.Tenant, n.Name, page.Items)
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

// stand adds how gates of one name stand, by their items. Of all of them together, GateLook runs are looked at.
func (s *Service) stand(ctx context.Context, shown *Gate, tenant, name string, items []store.Item) error {
	var rounds []*gate.Round
	var looked []int
	var some []run.Run
	for _, item := range items {
		g, err := gate.FromItem(tenant, name, item)
		if err != nil {
			s.unreadable(tenant, item, err)
			continue
		}
		round := g.Begin()
		ids := round.Unsure(GateLook - len(some))
		for _, id := range ids {
			some = append(some, run.Run{ID: id, Tenant: tenant})
		}
		rounds, looked = append(rounds, round), append(looked, len(ids))
	}
	standing, err := s.Dispatch.PeekRuns(ctx, some)
	if err != nil {
		return fmt.Errorf("read the runs at gate %s: %w", name, err)
	}
	for i, round := range rounds {
		round.Learn(standing[:looked[i]])
		standing = standing[looked[i]:]
		one := KeyGate{gate.ShownKey(round.Gate().Key), round.Held(), round.Waiting()}
		shown.InProgress, shown.Units, shown.Waiting = shown.InProgress+one.InProgress, shown.Units+round.Units(), shown.Waiting+one.Waiting
		switch {
		case round.Gate().Key == "" || one.InProgress+one.Waiting == 0:
		case len(shown.Keys) == MaxKeyGates:
			shown.More = true
		default:
			shown.Keys = append(shown.Keys, one)
		}
	}
	return nil
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
	g, err := s.gateOf(ctx, of)
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
