package dispatch_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Who is let in and who is skipped counts once, under the gate's name where its job asks for that; who finds its own place does not count again.
func TestWhatGatesCount(t *testing.T) {
	g := newGated(t)
	own := bounds(1)
	own.Labels = map[string]string{gate.SeriesLabel: gate.SeriesGate}
	first, second := g.put(0, nil), g.put(1, nil)
	for _, c := range []struct {
		n    int
		want dispatch.Entrance
	}{{0, dispatch.Passed}, {0, dispatch.Passed}, {1, dispatch.Skipped}} {
		r := first
		if c.n == 1 {
			r = second
		}
		if came, err := g.Enter(t.Context(), r, r.ID.Nominal, own); err != nil || came != c.want {
			t.Fatalf("run %d came to %d, %v, want %d", c.n, came, err, c.want)
		}
	}
	if in, out := g.Metrics.GateLetIn.Value("job:report"), g.Metrics.GateSkipped.Value("job:report"); in != 1 || out != 1 {
		t.Errorf("%d let in and %d skipped by name, want one each", in, out)
	}
	g.enter(g.put(2, nil), 2)
	g.enter(g.put(3, nil), 2)
	if in, out := g.Metrics.GateLetIn.Value(metrics.OwnGates), g.Metrics.GateSkipped.Value(metrics.OwnGates); in != 1 || out != 1 {
		t.Errorf("%d let in and %d skipped of jobs that did not ask for a name, want one each", in, out)
	}
}

// Jobs of one name of two tenants have gates of their own, and each shows how its own stands.
func TestGatesOfTwoTenantsShowThemselves(t *testing.T) {
	g := newGated(t)
	own := bounds(2)
	own.Labels = map[string]string{gate.SeriesLabel: gate.SeriesGate}
	for n, tenant := range []string{"acme", "acme", "default"} {
		r := g.put(n, func(r run.Run) run.Run { r.Tenant = tenant; return r })
		if came, err := g.Enter(t.Context(), r, r.ID.Nominal, own); err != nil || came != dispatch.Passed {
			t.Fatalf("run %d came to %d, %v", n, came, err)
		}
	}
	same(t, "in progress", gauges(g.Metrics, "belfry_gate_in_progress"), map[string]float64{"job:report": 1, "acme/job:report": 2})
}

// Of a gate that runs pass by a key, the gauge of who waits is of all values together. A value of which nothing was seen for long counts no more: another process
// may have let in who waited there.
func TestTheGaugeOfWhoWaitsIsOfAllValues(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload }"})
	s.passes("b", job.Overlap{}, nil, job.GateUse{Gate: "customer", Units: 1})
	s.saysAt("customer", limited(1))
	waits := func(want map[string]float64) {
		t.Helper()
		same(t, "waiting", gauges(s.Metrics, "belfry_gate_waiting"), want)
	}
	for n, customer := range []string{"acme", "acme", "acme", "bolt", "bolt"} {
		s.of(customer, "a", n)
		s.comes("a", n)
	}
	waits(map[string]float64{"customer": 3})
	s.comes("b", 5)
	s.comes("b", 6)
	waits(map[string]float64{"customer": 4})
	s.over("a", 3)
	waits(map[string]float64{"customer": 3})
	s.now = s.now.Add(time.Hour)
	s.over("b", 5)
	waits(map[string]float64{"customer": 0})
}

// gauges gives the series of a gauge with one label, by its value.
func gauges(r *metrics.Registry, name string) map[string]float64 {
	series := map[string]float64{}
	r.Each(time.Time{}, func(f metrics.Family, all []metrics.Sample) {
		for _, s := range all {
			if f.Name == name {
				series[s.Values[0]] = s.Value
			}
		}
	})
	return series
}

// A gate that jobs name always counts by its name.
func TestWhatNamedGatesCount(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	none := 0
	s.says(func(d *gate.Named) { d.Def = gate.Definition{Limit: 1, MaxWaiting: &none} })
	s.comes("a", 0)
	s.comes("a", 1)
	s.says(func(d *gate.Named) { d.Def.MaxWaiting = nil })
	s.comes("a", 2)
	s.over("a", 0)
	s.says(limited(1))
	if in, out := s.Metrics.GateLetIn.Value("stripe"), s.Metrics.GateSkipped.Value("stripe"); in != 2 || out != 1 {
		t.Errorf("%d let in and %d skipped, want two and one", in, out)
	}
}

// A run behind which a line stands still is not in progress, whoever joins behind it.
func TestTheGaugeOfALineThatStandsStill(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	def.Labels = map[string]string{gate.SeriesLabel: gate.SeriesGate}
	g.edit(func(j *job.Job) { j.Def = def })
	runs := g.fires(4)
	g.enters(def, runs[:2]...)
	is := func(want float64) {
		t.Helper()
		same(t, "in progress", gauges(g.Metrics, "belfry_gate_in_progress"), map[string]float64{"job:report": want})
	}
	is(1)
	g.begins(runs[0])
	g.fails(runs[0], true)
	is(0)
	g.enters(def, runs[2:]...)
	is(0)
	if _, err := g.GoOn(t.Context(), own, run.ID{}, 0, "", ""); err != nil {
		t.Fatal(err)
	}
	is(1)
}

// Where nobody may wait, each run that is turned away for one that ended badly counts.
func TestALineThatStandsStillCountsWhereNobodyMayWait(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	none := 0
	def.Overlap.MaxWaiting = &none
	g.define(def)
	runs := g.fires(3)
	same(t, "they come to", g.enters(def, runs[:2]...), []dispatch.Entrance{dispatch.Passed, dispatch.Skipped})
	if n := g.Metrics.GateBlocked.Value(metrics.OwnGates); n != 0 {
		t.Errorf("%d stood still while one was in progress", n)
	}
	g.begins(runs[0])
	g.fails(runs[0], true)
	same(t, "it comes to", g.enters(def, runs[2]), []dispatch.Entrance{dispatch.Skipped})
	if n := g.Metrics.GateBlocked.Value(metrics.OwnGates); n != 1 {
		t.Errorf("%d stood still behind one that ended badly, want 1", n)
	}
}
