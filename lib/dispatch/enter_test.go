package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// gated is a dispatcher at the gate of the job "report", and what is asked of its store.
type gated struct {
	*leased
	t *testing.T

	mu   sync.Mutex
	hook faulty.Hook
	ops  []string // methods, with what the first key is of
}

func newGated(t *testing.T) *gated {
	g := &gated{t: t}
	g.leased = newLeased(t, func(ctx context.Context, c faulty.Call) faulty.Fault {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ops = append(g.ops, describe(c))
		if g.hook != nil {
			return g.hook(ctx, c)
		}
		return faulty.Fault{}
	})
	return g
}

// describe says what a call is about: get gate, write gate, get run, write run.
func describe(c faulty.Call) string {
	text := map[faulty.Method]string{faulty.Get: "get", faulty.Peek: "peek", faulty.Query: "query", faulty.Write: "write", faulty.WriteEach: "write"}[c.Method]
	key := store.Key{}
	switch {
	case len(c.Keys) > 0:
		key = c.Keys[0]
	case len(c.Ops) > 0:
		key = c.Ops[0].Key
	}
	return fmt.Sprintf("%s %.4s", text, key.Partition)
}

// forget gives what was asked of the store so far, and begins anew.
func (g *gated) forget() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	ops := g.ops
	g.ops = nil
	return ops
}

func (g *gated) fail(hook faulty.Hook) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hook = hook
}

// define has the job say how many of its runs may be in progress, in the same generation.
func (g *gated) define(def job.Definition) {
	g.t.Helper()
	g.edit(func(j *job.Job) { j.Def.Overlap = def.Overlap })
}

func (g *gated) edit(change func(*job.Job)) {
	g.t.Helper()
	j, err := g.Book.Job(g.t.Context(), "default", "report")
	if err == nil {
		change(&j)
		var op store.Op
		if op, err = j.Put(g.NewID()); err == nil {
			_, err = g.Store.Write(g.t.Context(), op)
		}
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

func bounds(limit int) job.Definition {
	return job.Definition{Overlap: job.Overlap{Policy: job.OverlapSkip, Limit: limit}}.WithDefaults()
}

// put puts a run of a fire, n seconds on.
func (g *gated) put(n int, change func(run.Run) run.Run) run.Run {
	g.t.Helper()
	r := run.Run{ID: run.FireID("report", g.now.UnixMilli()+int64(n)*1000), Tenant: "default", State: run.Queued, Generation: 1, Trigger: run.BySchedule, Priority: queue.Normal}
	if change != nil {
		r = change(r)
	}
	return g.write(r)
}

func (g *gated) write(r run.Run) run.Run {
	g.t.Helper()
	written, err := g.PutRun(g.t.Context(), r, job.Callbacks{}, g.now.UnixMilli())
	if err != nil {
		g.t.Fatal(err)
	}
	return written
}

func (g *gated) enter(r run.Run, limit int) dispatch.Entrance {
	g.t.Helper()
	came, err := g.Enter(g.t.Context(), r, r.ID.Nominal, bounds(limit))
	if err != nil {
		g.t.Fatal(err)
	}
	return came
}

func (g *gated) stands(r run.Run) run.Run {
	g.t.Helper()
	standing, err := g.ReadRuns(context.Background(), []run.Run{r})
	if err != nil {
		g.t.Fatal(err)
	}
	return standing[0]
}

func (g *gated) gate() gate.Gate {
	g.t.Helper()
	items, err := g.Store.Get(context.Background(), gate.Key("default", "report"))
	if err != nil {
		g.t.Fatal(err)
	}
	at, err := gate.FromItem("default", "job:report", items[0])
	if err != nil {
		g.t.Fatal(err)
	}
	return at
}

// then is when what these tests do to runs happens, Unix ms: what ended before today would be cleaned up.
const then = 1_800_000_000_000

func started(r run.Run) run.Run { return r.Start("w", then, time.Second) }

func succeeded(r run.Run) run.Run {
	return started(r).Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour})
}

// What comes of a run at its gate, by who has entered before and how they stand, and what is asked of the store for it.
func TestG1_Enter(t *testing.T) {
	reopened := func(r run.Run) run.Run { return r.Reopen(1, 0, "retried on request").Reopened(time.Now().UnixMilli()) }
	for name, row := range map[string]struct {
		limit  int
		before []func(run.Run) run.Run // who entered, and what became of them since; nil: nothing
		late   func(run.Run) run.Run   // what becomes of the run itself first
		want   dispatch.Entrance
		ops    []string
		inside int // entries after
	}{
		"the first":     {1, nil, nil, dispatch.Passed, []string{"get gate", "write gate"}, 1},
		"there is room": {3, []func(run.Run) run.Run{nil, started}, nil, dispatch.Passed, []string{"get gate", "write gate"}, 3},
		"one is over":   {1, []func(run.Run) run.Run{succeeded}, nil, dispatch.Passed, []string{"get gate", "get run#", "write gate"}, 1},
		"one is queued": {1, []func(run.Run) run.Run{nil}, nil, dispatch.Skipped, []string{"get gate", "get run#", "write run#"}, 1},
		"it makes up for a missed fire": {1, []func(run.Run) run.Run{started}, func(r run.Run) run.Run { r.NextAt, r.Reason = then, run.CaughtUp; return r },
			dispatch.Skipped, []string{"get gate", "get run#", "write run#"}, 1},
		"one is running": {1, []func(run.Run) run.Run{started}, nil, dispatch.Skipped, []string{"get gate", "get run#", "write run#"}, 1},
		"one of two":     {2, []func(run.Run) run.Run{succeeded, started}, nil, dispatch.Passed, []string{"get gate", "get run#", "write gate"}, 2},
		"one waits for a retry": {1, []func(run.Run) run.Run{func(r run.Run) run.Run {
			return started(r).Fail(then, run.Failure{NextAt: then + 5000}, run.Limits{MaxFailures: 3})
		}}, nil, dispatch.Skipped, []string{"get gate", "get run#", "write run#"}, 1},
		"one was opened again": {1, []func(run.Run) run.Run{func(r run.Run) run.Run { return reopened(succeeded(r)) }}, nil,
			dispatch.Passed, []string{"get gate", "get run#", "write gate"}, 1},
		"opened by hand, no room": {1, []func(run.Run) run.Run{started}, func(r run.Run) run.Run { return reopened(succeeded(r)) },
			dispatch.Joined, []string{"get gate", "get run#", "write gate", "get gate", "get job#", "get run#"}, 1},
		"opened by hand, room": {1, []func(run.Run) run.Run{succeeded}, func(r run.Run) run.Run { return reopened(succeeded(r)) },
			dispatch.Passed, []string{"get gate", "get run#", "write gate"}, 1},
		"tried before, without a place": {1, []func(run.Run) run.Run{started}, func(r run.Run) run.Run { return started(r).HandBack(then, "", "", run.Limits{}) },
			dispatch.Joined, []string{"get gate", "get run#", "write gate", "get gate", "get job#", "get run#"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			g.define(bounds(row.limit))
			for n, becomes := range row.before {
				r := g.put(n, nil)
				if came := g.enter(r, 100); came != dispatch.Passed {
					t.Fatalf("%d came to %d", n, came)
				}
				if becomes != nil {
					g.write(becomes(r))
				}
			}
			r := g.put(50, nil)
			if row.late != nil {
				r = g.write(row.late(r))
			}
			g.forget()
			if came := g.enter(r, row.limit); came != row.want {
				t.Fatalf("it came to %d, want %d", came, row.want)
			}
			if ops := g.forget(); !slices.Equal(ops, row.ops) {
				t.Errorf("asked of the store: %v, want %v", ops, row.ops)
			}
			at := g.gate()
			if len(at.Entries) != row.inside {
				t.Errorf("%d entries, want %d", len(at.Entries), row.inside)
			}
			has := slices.Contains(at.Entries, gate.Entry{Nominal: r.ID.Nominal, Opening: r.Opening, Generation: r.Generation})
			if has != (row.want == dispatch.Passed) {
				t.Errorf("it holds a place: %t", has)
			}
			stands := g.stands(r)
			if stands.Waits() != (row.want == dispatch.Joined) {
				t.Errorf("it waits: %t", stands.Waits())
			}
			if row.want == dispatch.Passed {
				if stands.Version != r.Version {
					t.Errorf("it was written, as %s", stands.State)
				}
				return
			}
			if row.want == dispatch.Joined {
				return
			}
			if w := stands.Why; stands.State != run.Skipped || stands.Missed() || w.Code != "overlap" || w.Gate != "job:report" || w.Policy != "skip" ||
				len(w.InTheWay) != len(row.before) || stands.Expires == 0 || stands.Count != 0 {
				t.Errorf("it was skipped as %+v", stands)
			}
		})
	}
}

// A message that comes again finds the place that its run was given.
func TestG1_WhoHoldsAPlacePassesAgain(t *testing.T) {
	g := newGated(t)
	r, other := g.put(1, nil), g.put(2, nil)
	for range 2 {
		if came := g.enter(r, 1); came != dispatch.Passed {
			t.Fatalf("it came to %d", came)
		}
	}
	if n := g.gate().Version; n != 1 {
		t.Errorf("the gate was written %d times", n)
	}
	if came := g.enter(other, 1); came != dispatch.Skipped {
		t.Errorf("another came to %d", came)
	}
}

// What others do between the read of the gate and its write, and what the store leaves open.
func TestG1_TheGateIsOvertaken(t *testing.T) {
	g := newGated(t)
	r, other := g.put(1, nil), g.put(2, nil)
	overtake := func(times int) faulty.Hook {
		return func(_ context.Context, c faulty.Call) faulty.Fault {
			if describe(c) != "write gate" || times == 0 {
				return faulty.Fault{}
			}
			times--
			return faulty.Fault{Refuse: &store.Conflict{Standing: store.Item{Key: c.Ops[0].Key}}}
		}
	}
	g.fail(overtake(1))
	if came := g.enter(r, 2); came != dispatch.Passed {
		t.Errorf("overtaken once it came to %d", came)
	}
	g.fail(overtake(2))
	if came := g.enter(other, 2); came != dispatch.Contended {
		t.Errorf("overtaken twice it came to %d, want its slot given up", came)
	}
	g.fail(nil)
	lost := false
	g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
		if describe(c) != "write gate" || lost {
			return faulty.Fault{}
		}
		lost = true
		return faulty.Fault{Lose: store.ErrUnknown}
	})
	g.forget()
	if came := g.enter(other, 2); came != dispatch.Passed {
		t.Errorf("with a lost answer it came to %d", came)
	}
	if ops := g.forget(); !slices.Equal(ops, []string{"get gate", "write gate", "get gate"}) {
		t.Errorf("with a lost answer the store was asked for %v", ops)
	}
	if at := g.gate(); len(at.Entries) != 2 {
		t.Errorf("the gate holds %d", len(at.Entries))
	}
}

// A run that is skipped was overtaken by a cancel: nothing is written over that. And a delivery of an opening that is over leaves the newer one's
// place alone.
func TestG1_TheRunIsOvertaken(t *testing.T) {
	g := newGated(t)
	g.enter(g.put(1, nil), 1)
	r := g.put(2, nil)
	cancelled, _ := r.AskCancel(then, "no longer needed", time.Hour)
	g.write(cancelled)
	if came := g.enter(r, 1); came != dispatch.Overtaken {
		t.Errorf("cancelled meanwhile it came to %d", came)
	}
	if s := g.stands(r); s.State != run.Cancelled {
		t.Errorf("it stands as %s", s.State)
	}
	first := g.put(3, nil)
	again := g.write(g.write(succeeded(first)).Reopen(1, 0, "retried on request").Reopened(time.Now().UnixMilli()))
	if came := g.enter(again, 5); came != dispatch.Passed {
		t.Fatalf("opened again it came to %d", came)
	}
	before := g.gate()
	if came := g.enter(first, 5); came != dispatch.Overtaken {
		t.Errorf("the late delivery came to %d", came)
	}
	if after := g.gate(); after.Version != before.Version {
		t.Errorf("the late delivery wrote %+v", after)
	}
}

// A run was opened again before its time, and an edit has fenced it off and claimed it anew: its openings begin anew, and the place of the later one
// is nobody's.
func TestG1_OpeningsBeginAnew(t *testing.T) {
	g := newGated(t)
	r := g.put(1, func(r run.Run) run.Run { r.Opening = 9; return r })
	if came := g.enter(r, 1); came != dispatch.Passed {
		t.Fatal(came)
	}
	r.Opening, r.Generation = 0, r.Generation+1
	r = g.write(r)
	if came := g.enter(r, 1); came != dispatch.Passed {
		t.Errorf("it came to %d", came)
	}
	if at := g.gate(); len(at.Entries) != 1 || at.Entries[0].Opening != 0 {
		t.Errorf("the gate holds %+v", at.Entries)
	}
}

func TestG1_AStoreThatIsUnwell(t *testing.T) {
	away := errors.New("away")
	for _, op := range []string{"get gate", "get run#", "write gate", "write run#"} {
		t.Run(op, func(t *testing.T) {
			g := newGated(t)
			r := g.put(2, nil)
			if op != "write gate" {
				g.enter(g.put(1, nil), 1)
			}
			g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
				if describe(c) == op {
					return faulty.Fault{Refuse: away}
				}
				return faulty.Fault{}
			})
			if came, err := g.Enter(t.Context(), r, r.ID.Nominal, bounds(1)); err == nil {
				t.Errorf("it came to %d", came)
			}
			g.fail(nil)
			if s := g.stands(r); s.Version != r.Version {
				t.Errorf("it stands as %s", s.State)
			}
		})
	}
	g := newGated(t)
	r := g.put(1, nil)
	g.fail(func(ctx context.Context, c faulty.Call) faulty.Fault {
		<-ctx.Done() // the store does not answer
		return faulty.Fault{Refuse: ctx.Err()}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Enter(ctx, r, r.ID.Nominal, bounds(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("who is told to stop waits for the store: %v", err)
	}
}

// Runs that want in at the same time enter by one write, and those of them that find no room are skipped when the others are in.
func TestG1_AGroupEntersTogether(t *testing.T) {
	g := newGated(t)
	var runs []run.Run
	for n := range 40 {
		runs = append(runs, g.put(n, nil))
	}
	runs = append(runs, runs[7]) // whose message was doubled
	g.forget()
	came := make([]dispatch.Entrance, len(runs))
	var all sync.WaitGroup
	for i, r := range runs {
		all.Go(func() { came[i], _ = g.Enter(t.Context(), r, r.ID.Nominal, bounds(25)) })
	}
	all.Wait()
	counts := map[dispatch.Entrance]int{}
	for _, c := range came[:40] {
		counts[c]++
	}
	if !maps.Equal(counts, map[dispatch.Entrance]int{dispatch.Passed: 25, dispatch.Skipped: 15}) {
		t.Errorf("they came to %v", counts)
	}
	if last := came[40]; came[7] == dispatch.Passed && last != dispatch.Passed || came[7] == dispatch.Skipped && last != dispatch.Overtaken {
		t.Errorf("the one came to %d, and its double to %d", came[7], last)
	}
	for i, c := range came[:40] {
		if s := g.stands(runs[i]); (s.State == run.Skipped) != (c == dispatch.Skipped) {
			t.Errorf("%d came to %d and stands as %s", i, c, s.State)
		}
	}
	if at := g.gate(); len(at.Entries) != 25 || at.Version > 25 {
		t.Errorf("%d entries after %d writes", len(at.Entries), at.Version)
	}
}

// Several processes on one store, whose runs end and are opened again at any time: never more in progress than the limit, and nobody is skipped but
// for others that were in.
func TestG1_SeveralProcessesAtOneGate(t *testing.T) {
	const limit, processes, each = 3, 4, 60
	g := newGated(t)
	var runs []run.Run
	for n := range processes * each {
		runs = append(runs, g.put(n, nil))
	}
	var busy, most atomic.Int64
	skipped := atomic.Int64{}
	var all sync.WaitGroup
	for p := range processes {
		d, err := dispatch.New(g.Dispatcher.Config)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(p), 7))
		var ids atomic.Uint64
		d.NewID = func() uint64 { return uint64(p+1)<<32 | ids.Add(1) }
		for w := range 3 {
			var pauses []time.Duration
			for range each / 3 {
				pauses = append(pauses, time.Duration(random.IntN(2000))*time.Microsecond)
			}
			all.Go(func() {
				for n, pause := range pauses {
					r := runs[p*each+w*each/3+n]
					for {
						came, err := d.Enter(t.Context(), r, r.ID.Nominal, bounds(limit))
						if err != nil {
							t.Error(err)
							return
						}
						if came == dispatch.Skipped {
							skipped.Add(1)
							break
						}
						if came != dispatch.Passed {
							continue
						}
						for n := busy.Add(1); n > most.Load() && !most.CompareAndSwap(most.Load(), n); {
						}
						<-time.After(pause)
						busy.Add(-1)
						if _, err := d.PutRun(t.Context(), succeeded(r), job.Callbacks{}, 0); err != nil {
							t.Error(err)
						}
						break
					}
				}
			})
		}
	}
	all.Wait()
	if most.Load() > limit {
		t.Errorf("%d were in progress at once, limit %d", most.Load(), limit)
	}
	if n := skipped.Load(); n == 0 || n == int64(len(runs)) {
		t.Errorf("%d of %d were skipped", n, len(runs))
	}
	for _, r := range runs {
		if s := g.stands(r); s.State == run.Skipped && len(s.Why.InTheWay) != limit {
			t.Errorf("skipped for %v", s.Why.InTheWay)
		}
	}
	if at := g.gate(); len(at.Entries) > limit {
		t.Errorf("the gate holds %d", len(at.Entries))
	}
}
