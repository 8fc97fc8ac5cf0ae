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
	Since    int64    // Unix ms
	Behind   int      // runs that are before it in line, at most MaxBehind
	InTheWay []string // IDs of runs that are in progress at the gate, those that were let in first; at most run.MaxInTheWay
}

// MaxBehind is up to where the runs are counted that are before one in line; a Behind that is MaxBehind means "at least".
const MaxBehind = 1000

// lineOf looks up how a waiting run stands in line. It is no snapshot: places are given and taken meanwhile.
func (s *Service) lineOf(ctx context.Context, r run.Run) (Line, error) {
	line := Line{Gate: r.Wait.Gate, Since: r.Wait.Since}
	g, err := s.gateOf(ctx, r.Tenant, r.ID.Job)
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

func (s *Service) gateOf(ctx context.Context, tenant, job string) (gate.Gate, error) {
	items, err := s.Store.Get(ctx, gate.Key(tenant, job))
	if err != nil {
		return gate.Gate{}, fmt.Errorf("read the gate of %s: %w", job, err)
	}
	return gate.FromItem(tenant, job, items[0])
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
			return nil, fmt.Errorf("read the runs at the gate of %s: %w", g.Job, err)
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

// Gate is how the own gate of a job stands.
type Gate struct {
	Job        job.Job
	InProgress int // of those that were let in last, beyond GateLook, some may have ended
	Waiting    int
}

// MaxGates is the largest page of gates, and GateLook how many runs are looked at for each of them.
const (
	MaxGates = 100
	GateLook = 100
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
		g, err := gate.FromItem(tenant, j.Name, items[i])
		if err != nil {
			s.unreadable(tenant, items[i], err)
			continue
		}
		round := g.Begin()
		var some []run.Run
		for _, id := range round.Unsure(GateLook) {
			some = append(some, run.Run{ID: id, Tenant: tenant})
		}
		standing, err := s.Dispatch.PeekRuns(ctx, some)
		if err != nil {
			return nil, "", fmt.Errorf("read the runs at the gate of %s: %w", j.Name, err)
		}
		round.Learn(standing)
		gates = append(gates, Gate{Job: j, InProgress: round.Held(), Waiting: g.Waiting})
	}
	return gates, next, nil
}

// AfterGate is the cursor of a page that ends with this gate, in place of the one that Gates gave.
func AfterGate(g Gate) string { return AfterJob(g.Job) }

// GateLine lists the runs that wait at a gate, from the front of its line on.
func (s *Service) GateLine(ctx context.Context, tenant, name, cursor string, limit int) (runs []run.Run, next string, err error) {
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
		_, err := gate.PlaceFromItem(jobName, store.Item{Key: store.Key{Sort: sort}})
		return err == nil
	})
	if err != nil {
		return nil, "", err
	}
	g, err := s.gateOf(ctx, tenant, jobName)
	if err != nil {
		return nil, "", err
	}
	r := g.Line(min(pageLimit(limit), store.MaxKeys))
	if after != "" {
		r.From = after + "\x00"
	}
	page, err := s.Store.Query(ctx, r)
	if err != nil {
		return nil, "", fmt.Errorf("read the line of %s: %w", name, err)
	}
	places := make(map[run.ID]gate.Place, len(page.Items))
	var some []run.Run
	for _, item := range page.Items {
		p, err := gate.PlaceFromItem(jobName, item)
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
	if n := len(page.Items); page.Cursor != "" && n > 0 {
		next = cursorAfter(page.Items[n-1].Sort)
	}
	return runs, next, nil
}

// AfterInLine is the cursor of a page of a line that ends with this run.
func AfterInLine(r run.Run) string { return cursorAfter(gate.PlaceOf(r).Key(r.Tenant).Sort) }
