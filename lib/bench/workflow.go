package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Workflow is how long each way is tried, and how. All fields are required.
type Workflow struct {
	For     time.Duration // each way
	Callers int           // that ask for a run each and wait for its end, where it is not one
	Workers int           // attempts at once
}

func (w Workflow) check() error {
	switch {
	case w.For < time.Millisecond || w.For > 24*time.Hour:
		return invalid.Field("for", w.For.String(), "1ms to 24h")
	case w.Callers < 2 || w.Callers > 1000:
		return invalid.Field("callers", strconv.Itoa(w.Callers), "2 to 1000")
	case w.Workers < 1 || w.Workers > mostWorkers:
		return invalid.Field("workers", strconv.Itoa(w.Workers), fmt.Sprintf("1 to %d", mostWorkers))
	}
	return nil
}

// WorkflowReport is what came of it.
type WorkflowReport struct {
	Bench   string        `json:"bench"`
	Machine Machine       `json:"machine"`
	Workers int           `json:"workers"`
	Rows    []WorkflowRow `json:"rows"`
	Steps   []StepsRow    `json:"steps"`
	PeakRSS int64         `json:"peak_rss_bytes,omitempty"`
}

// WorkflowRow is one kind of work, each of which is asked for when the caller's one before has ended. Its times are from the request to the durable
// end of all of it.
type WorkflowRow struct {
	Kind           string  `json:"kind"`
	Callers        int     `json:"callers"`
	Rounds         int     `json:"rounds"` // of all callers
	Calls          int     `json:"calls"`  // of targets, in each
	Seconds        float64 `json:"seconds"`
	PerSecond      float64 `json:"per_second"`       // rounds
	CallsPerSecond float64 `json:"calls_per_second"` // of targets
	Spread
	Reads  float64 `json:"reads_per_call"` // calls of the store
	Items  float64 `json:"items_per_call"` // that these gave
	Synced Synced  `json:"synced"`         // a run is a call of a target
}

// StepsRow is what some steps of a workflow took, of which each waits for the one before, or for many: from the end of the last call that it waits
// for to its own call. Reads, items and ops are what the half of the steps took at most, since ticks ask the store as well.
type StepsRow struct {
	Kind  string `json:"kind"`
	First int    `json:"first_step"`
	Last  int    `json:"last_step"`
	Steps int    `json:"steps"` // that were measured, of all rounds
	Spread
	Reads int64 `json:"reads"`
	Items int64 `json:"items"`
	Ops   int64 `json:"ops"`
	Bytes int64 `json:"bytes"` // of the keys and values that were put
}

// What is run. The longest workflow has as many steps as one may have.
const (
	OneRun    = "a run of no workflow"
	ManyRuns  = "100 runs asked for at once"
	ShortFlow = "a chain of 10 steps"
	WideFlow  = "100 steps at once and a join"
	LongFlow  = "a chain of 300 steps"

	shortSteps, wideSteps, longSteps = 10, 100, flow.MaxNodes
	someSteps                        = 10 // at either end of the longest chain
)

const (
	flowHandler = "step"
	oneJob      = "one"
	shortJob    = "short"
	wideJob     = "wide"
	longJob     = "long"
)

// Run measures it.
func (w Workflow) Run(ctx context.Context, h Host) (report WorkflowReport, err error) {
	if err := w.check(); err != nil {
		return report, err
	}
	report = WorkflowReport{Bench: "workflow", Machine: MachineOf(h.Folder, h.Version), Workers: w.Workers}
	err = h.in(func() (err error) {
		p := &probe{elapsed: h.Elapsed, ended: map[store.Key]chan run.State{}}
		handlers := new(target.Registry)
		if err := handlers.Register(flowHandler, p.call); err != nil {
			return err
		}
		r, err := h.open(ctx, "workflow", setup{workers: w.Workers, handlers: handlers})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		r.store.durable, p.calls = p.wrote, r.store.calls
		if err := r.putFlows(ctx); err != nil {
			return err
		}
		r.start(ctx)
		if err := w.measure(ctx, r, p, &report); err != nil {
			return err
		}
		_, report.PeakRSS = resident()
		return nil
	})
	return report, err
}

// putFlows stores a job of each kind.
func (r *rig) putFlows(ctx context.Context) error {
	err := r.put(ctx, oneJob, onDemand(flowHandler))
	for name, steps := range map[string]string{shortJob: chainOf(shortSteps), wideJob: joinOf(wideSteps), longJob: chainOf(longSteps)} {
		err = errors.Join(err, r.put(ctx, name, job.Definition{Target: target.Spec{Workflow: []byte(`{"steps": {` + steps + `}}`)}}))
	}
	return err
}

// chainOf is so many steps, each behind the one before; a step is named by its number, from 1.
func chainOf(n int) string {
	steps := make([]string, n)
	for i := range steps {
		needs := ""
		if i > 0 {
			needs = fmt.Sprintf(`"needs": ["%d"], `, i)
		}
		steps[i] = fmt.Sprintf(`"%d": {%s"handler": {"name": "%s"}}`, i+1, needs, flowHandler)
	}
	return strings.Join(steps, ",")
}

// joinOf is so many steps at once, and one behind all of them.
func joinOf(n int) string {
	steps, names := make([]string, n), make([]string, n)
	for i := range steps {
		names[i] = fmt.Sprintf(`"%d"`, i+1)
		steps[i] = fmt.Sprintf(`%s: {"handler": {"name": "%s"}}`, names[i], flowHandler)
	}
	return fmt.Sprintf(`%s, "%d": {"needs": [%s], "handler": {"name": "%s"}}`, strings.Join(steps, ","), n+1, strings.Join(names, ","), flowHandler)
}

func (w Workflow) measure(ctx context.Context, r *rig, p *probe, report *WorkflowReport) error {
	ways := []struct {
		kind    string
		job     string
		runs    int // of the job, asked for together
		callers int
		calls   int
	}{
		{OneRun, oneJob, 1, 1, 1},
		{ShortFlow, shortJob, 1, 1, shortSteps},
		{OneRun, oneJob, 1, w.Callers, 1},
		{ShortFlow, shortJob, 1, w.Callers, shortSteps},
		{ManyRuns, oneJob, wideSteps, 1, wideSteps},
		{WideFlow, wideJob, 1, 1, wideSteps + 1},
		{LongFlow, longJob, 1, 1, longSteps},
	}
	add, end := r.host.Tell("running workflows", len(ways))
	defer end()
	for _, way := range ways {
		row := WorkflowRow{Kind: way.kind, Callers: way.callers, Calls: way.calls}
		if err := p.round(ctx, r, way.job, way.runs); err != nil { // what is only done once is done by then
			return fmt.Errorf("%s: %w", way.kind, err)
		}
		p.note(way.callers == 1 && way.runs == 1 && way.calls > 1)
		if err := row.measure(ctx, r, w.For, func(ctx context.Context) error { return p.round(ctx, r, way.job, way.runs) }); err != nil {
			return fmt.Errorf("%s: %w", way.kind, err)
		}
		report.Rows = append(report.Rows, row)
		switch seen := p.note(false); way.kind {
		case WideFlow:
			report.Steps = append(report.Steps, seen.of(way.kind, way.calls, way.calls))
		case LongFlow:
			report.Steps = append(report.Steps, seen.of(way.kind, 2, someSteps+1), seen.of(way.kind, way.calls-someSteps+1, way.calls))
		}
		add(1)
	}
	return nil
}

func (row *WorkflowRow) measure(ctx context.Context, r *rig, most time.Duration, round func(context.Context) error) error {
	var took times
	before := r.mark()
	group, ctx := errgroup.WithContext(ctx)
	for range row.Callers {
		group.Go(func() error {
			for began := r.host.Elapsed(); began-before.at < most; {
				if err := round(ctx); err != nil {
					return err
				}
				now := r.host.Elapsed()
				took.add(now - began)
				began = now
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after := r.mark()
	row.Rounds = len(took.all)
	calls := row.Rounds * row.Calls
	asked := after.calls.Since(before.calls)
	row.Seconds, row.PerSecond, row.CallsPerSecond = (after.at - before.at).Seconds(), rate(row.Rounds, after.at-before.at), rate(calls, after.at-before.at)
	row.Reads, row.Items = ratio(float64(asked.Reads), float64(calls)), ratio(float64(asked.Items), float64(calls))
	row.Spread, row.Synced = took.spread(), after.synced(before, calls)
	return nil
}

// probe is the target of all steps, and looks at what is written.
type probe struct {
	elapsed func() time.Duration
	calls   func() Calls

	mu    sync.Mutex
	ended map[store.Key]chan run.State // whose ends are waited for, or have come
	seen  *seen                        // nil while steps are not noted
}

// seen is when steps were called, and had been asked of the store by then, one workflow at a time.
type seen struct {
	last  time.Duration // that a call ended
	calls Calls         // asked of the store when the last one began
	steps map[int][]gap // by the number of the step
}

// gap is what came between the call of a step and the end of the last call before it.
type gap struct {
	took  time.Duration
	calls Calls
}

// note begins to note steps, or ends it, and gives what was noted before.
func (p *probe) note(begin bool) *seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.seen
	p.seen = nil
	if begin {
		p.seen = &seen{steps: map[int][]gap{}}
	}
	return was
}

func (p *probe) call(_ context.Context, call target.Call) (target.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seen; s != nil {
		now, calls := p.elapsed(), p.calls()
		_, name, _ := strings.Cut(call.Run, "/")
		if step, err := strconv.Atoi(name); err == nil {
			s.steps[step] = append(s.steps[step], gap{now - s.last, calls.Since(s.calls)})
		}
		s.last, s.calls = p.elapsed(), calls
	}
	return target.Result{}, nil
}

// of is what the steps from first to last took.
func (s *seen) of(kind string, first, last int) StepsRow {
	var took []time.Duration
	var reads, items, ops, bytes []int64
	for step := first; step <= last; step++ {
		for _, g := range s.steps[step] {
			took, reads, items = append(took, g.took), append(reads, g.calls.Reads), append(items, g.calls.Items)
			ops, bytes = append(ops, g.calls.Ops), append(bytes, g.calls.Bytes)
		}
	}
	return StepsRow{Kind: kind, First: first, Last: last, Steps: len(took), Spread: spreadOf(took), Reads: middle(reads), Items: middle(items), Ops: middle(ops), Bytes: middle(bytes)}
}

func middle(all []int64) int64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// round asks for runs of a job at once, and waits until all have ended.
func (p *probe) round(ctx context.Context, r *rig, name string, runs int) error {
	asked := make([]control.Asked, runs)
	for i := range asked {
		asked[i].Job = name
	}
	for _, a := range r.node.Control.TriggerMany(ctx, tenant, asked) {
		if a.Err != nil {
			return a.Err
		}
		key := a.Run.ID.Key(tenant)
		select {
		case state := <-p.end(key):
			p.forget(key)
			if state != run.Succeeded {
				return fmt.Errorf("run %s ended as %s", a.Run.ID, state)
			}
		case <-r.data.Failed():
			return errors.New("the disk failed")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// end is told the state that a run has ended in, as soon as that is durable.
func (p *probe) end(key store.Key) <-chan run.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told(key)
}

func (p *probe) told(key store.Key) chan run.State {
	told := p.ended[key]
	if told == nil {
		told = make(chan run.State, 1)
		p.ended[key] = told
	}
	return told
}

func (p *probe) forget(key store.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ended, key)
}

// wrote is told of what has become durable.
func (p *probe) wrote(op store.Op) {
	if op.Kind != store.Put || !strings.HasPrefix(op.Key.Partition, "run#") {
		return
	}
	var r run.Run
	if record.Decode(op.Value, &r) != nil || !r.State.Ended() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.told(op.Key) <- r.State:
	default: // a second time, as where an answer was lost
	}
}
