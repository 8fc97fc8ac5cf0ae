package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Line is how a run stands that waits in the line of a gate.
type Line struct {
	Gate     string
	Key      string   // as gate.ShownKey shows it, where the job has a gate for each value of a key
	Since    int64    // Unix ms
	Behind   int      // runs that are before it in line, at most MaxBehind
	InTheWay []string // IDs of runs that are in progress at the gate, those that were let in first; at most run.MaxInTheWay
}

// MaxBehind is up to where the runs are counted that are before one in line; a Behind that is MaxBehind means "at least".
const MaxBehind = 1000

// lineOf looks up how a waiting run stands in line. It is no snapshot: places are given and taken meanwhile.
func (s *Service) lineOf(ctx context.Context, r run.Run) (Line, error) {
	line := Line{Gate: r.Wait.Gate, Key: gate.ShownKey(r.GateKey), Since: r.Wait.Since}
	g, err := s.gateOf(ctx, gate.Of(r))
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
	line.Behind = len(page.Items)
	return line, nil
}

func (s *Service) gateOf(ctx context.Context, of gate.ID) (gate.Gate, error) {
	items, err := s.Store.Get(ctx, of.Item())
	if err != nil {
		return gate.Gate{}, fmt.Errorf("read gate %s: %w", of.Name, err)
	}
	return gate.FromItem(of.Tenant, of.Name, items[0])
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

// Gate is how the own gate of a job stands; where the job has one for each value of a key, all of them together.
type Gate struct {
	Job        job.Job
	InProgress int // of those that were let in last, beyond GateLook, some may have ended
	Waiting    int

	Keys []KeyGate // where there is one for each value: those at which runs are in progress or wait, by their keys, at most MaxKeyGates
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

// Gates lists the gates of jobs that bound their overlap, by the name of the job.
func (s *Service) Gates(ctx context.Context, tenant, cursor string, limit int) (gates []Gate, next string, err error) {
	jobs, next, err := s.Jobs(ctx, tenant, JobFilter{Bounded: true}, cursor, min(pageLimit(limit), MaxGates))
	if err != nil || len(jobs) == 0 {
		return nil, next, err
	}
	keys := make([]store.Key, len(jobs))
	for i, j := range jobs {
		keys[i] = gate.Key(tenant, j.Name)
	}
	items, err := s.Store.Get(ctx, keys...)
	if err != nil {
		return nil, "", fmt.Errorf("read gates: %w", err)
	}
	for i, j := range jobs {
		shown := Gate{Job: j}
		of := items[i : i+1]
		if j.Keyed {
			page, err := s.Store.Query(ctx, gate.Gates(tenant, j.Name, GateLook))
			if err != nil {
				return nil, "", fmt.Errorf("read the gates of %s: %w", j.Name, err)
			}
			of, shown.More = page.Items, page.Cursor != ""
		}
		if err := s.stand(ctx, &shown, of); err != nil {
			return nil, "", err
		}
		gates = append(gates, shown)
	}
	return gates, next, nil
}

// stand adds how gates of a job stand, by their items. Of all of them together, GateLook runs are looked at.
func (s *Service) stand(ctx context.Context, shown *Gate, items []store.Item) error {
	tenant, name := shown.Job.Tenant, shown.Job.Name
	var rounds []*gate.Round
	var looked []int
	var some []run.Run
	for _, item := range items {
		g, err := gate.FromItem(tenant, gate.Name(name), item)
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
		return fmt.Errorf("read the runs at the gate of %s: %w", name, err)
	}
	for i, round := range rounds {
		round.Learn(standing[:looked[i]])
		standing = standing[looked[i]:]
		one := KeyGate{gate.ShownKey(round.Gate().Key), round.Held(), round.Waiting()}
		shown.InProgress, shown.Waiting = shown.InProgress+one.InProgress, shown.Waiting+one.Waiting
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
func AfterGate(g Gate) string { return AfterJob(g.Job) }

// GateLine lists the runs that wait at a gate, from the front of its line on. Where the job has a gate for each value of a key, key is that of one, as the
// value or as gate.ShownKey shows it, and "" for all of them, one line after the other.
func (s *Service) GateLine(ctx context.Context, tenant, name, key, cursor string, limit int) (runs []run.Run, next string, err error) {
	jobName, own := strings.CutPrefix(name, gate.Name(""))
	if !own || job.ValidName(jobName) != nil {
		return nil, "", refuse(CodeGateNotFound, "there is no gate %s: the own gate of a job is %sNAME", name, gate.Name(""))
	}
	j, err := s.Dispatch.Book.Job(ctx, tenant, jobName)
	if err != nil {
		return nil, "", err
	}
	if err := existing(&j); err != nil {
		return nil, "", refuse(CodeGateNotFound, "there is no gate %s: there is no such job", name)
	}
	after, err := readCursor(cursor, func(sort string) bool {
		_, err := gate.PlaceFromItem(gate.Name(jobName), store.Item{Key: store.Key{Sort: sort}})
		return err == nil
	})
	if err != nil {
		return nil, "", err
	}
	of := gate.Own(tenant, jobName)
	if key != "" {
		of.Key = gate.KeyAsked(key)
	}
	g, err := s.gateOf(ctx, of)
	if err != nil {
		return nil, "", err
	}
	limit = min(pageLimit(limit), store.MaxKeys)
	lines := []store.Range{g.Line(limit)}
	if key == "" && j.Keyed {
		lines = append(lines, gate.KeyedLines(tenant, jobName, ""))
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
		p, err := gate.PlaceFromItem(gate.Name(jobName), item)
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

// AfterInLine is the cursor of a page of a line that ends with this run.
func AfterInLine(r run.Run) string { return cursorAfter(gate.PlaceOf(r).Key(r.Tenant).Sort) }
