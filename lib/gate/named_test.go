package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// of a job, n seconds on.
func fireOf(job string, n int) run.Run {
	r := fire(n)
	r.ID.Job = job
	return r
}

// stripe is a named gate with so many units, which these runs hold, one unit each.
func stripe(limit int, runs ...run.Run) gate.Gate {
	g := gate.Gate{Tenant: "acme", Name: "stripe", Version: 3, Under: 7,
		Def: gate.Named{Tenant: "acme", Name: "stripe", Version: 2, Generation: 7, Def: gate.Definition{Limit: limit}}}
	for _, r := range runs {
		e := entry(r)
		e.Job = r.ID.Job
		g.Entries = append(g.Entries, e)
	}
	return g
}

func units(n int, g gate.Gate) gate.Gate {
	g.Entries = slices.Clone(g.Entries)
	g.Entries[len(g.Entries)-1].Units = n
	return g
}

func closed(g gate.Gate) gate.Gate {
	g.Def.Closed = &gate.Change{At: nominal}
	return g
}

func waiting(g gate.Gate, at run.Run) gate.Gate {
	g.Waiting, g.Front = 1, at.ID.Nominal
	return g
}

// What a named gate says to a run that wants so many units.
func TestG1_G3_AdmitUnits(t *testing.T) {
	a1, b1, b2 := fireOf("a", 1), fireOf("b", 1), fireOf("b", 2)
	for name, row := range map[string]struct {
		g     gate.Gate
		r     run.Run
		units int
		want  gate.Verdict
		then  gate.Gate // where it enters
	}{
		"runs of two jobs at one time are two":     {stripe(2, a1), b1, 1, gate.Enters, stripe(2, a1, b1)},
		"it holds its place":                       {stripe(1, a1), a1, 1, gate.Holds, gate.Gate{}},
		"that of another job is in its way":        {stripe(1, a1), b1, 1, gate.Full, gate.Gate{}},
		"two units of three":                       {stripe(3, a1), b1, 2, gate.Enters, units(2, stripe(3, a1, b1))},
		"two units of two, one is held":            {stripe(2, a1), b1, 2, gate.Full, gate.Gate{}},
		"one unit, where another holds two of two": {units(2, stripe(2, a1)), b1, 1, gate.Full, gate.Gate{}},
		"more than there are counts as all":        {stripe(2), b1, 9, gate.Enters, units(2, stripe(2, b1))},
		"more than there are, and one is held":     {stripe(2, a1), b1, 9, gate.Full, gate.Gate{}},
		"others wait":                              {waiting(stripe(3, a1), b2), b1, 1, gate.Behind, gate.Gate{}},
		"it is closed":                             {closed(stripe(3, a1)), b1, 1, gate.Behind, gate.Gate{}},
		"it is closed, and it was let in before":   {closed(stripe(3, a1)), a1, 1, gate.Holds, gate.Gate{}},
		"its own units are not in its way":         {units(2, stripe(2, a1)), opened(a1, 9), 2, gate.Enters, units(2, stripe(2, opened(a1, 9)))},
		"beyond a lowered limit":                   {stripe(1, a1, b1), b1, 1, gate.Holds, gate.Gate{}},
	} {
		t.Run(name, func(t *testing.T) {
			round := row.g.Begin()
			if got := round.Admit(row.r, row.units, round.Limit(), false); got != row.want {
				t.Fatalf("the verdict is %d, want %d", got, row.want)
			}
			want := row.then
			if row.want != gate.Enters {
				want = row.g
			}
			if got := round.Gate(); !slices.Equal(got.Entries, want.Entries) {
				t.Errorf("it holds %+v, want %+v", got.Entries, want.Entries)
			}
		})
	}
}

// Who waits at a gate holds none there, and keeps what it was given at others: a delivery of it may have found that.
func TestG1_G5_WhoWaitsElsewhereHoldsAPlace(t *testing.T) {
	let := fireOf("a", 1)
	for at, want := range map[string]map[string]bool{ // where it waits: where it holds a place
		"job:a":  {"job:a": false, "gpu": true, "stripe": true},
		"gpu":    {"job:a": true, "gpu": false, "stripe": true},
		"stripe": {"job:a": true, "gpu": true, "stripe": false},
	} {
		for name, holds := range want {
			g := stripe(1, let)
			if g.Name = name; name == "job:a" {
				g.Entries[0].Job, g.Def = "", gate.Named{}
			}
			round := g.Begin()
			round.Unsure(10)
			round.Learn([]run.Run{let.Join(at, nominal, nominal)})
			if got := round.Held() == 1; got != holds {
				t.Errorf("who waits at %s holds a place at %s: %t", at, name, got)
			}
		}
	}
	for _, pair := range [][2]gate.ID{
		{{Name: "job:z"}, {Name: "a"}}, {{Name: "a"}, {Name: "b"}}, {{Name: "A"}, {Name: "a"}},
		{{Name: "job:z"}, {Name: "a", Key: "=x"}}, {{Name: "job:z", Key: "=x"}, {Name: "a", Key: "=x"}}, {{Name: "z", Key: "=z"}, {Name: "a"}},
		{{Name: "a", Key: "=z"}, {Name: "b", Key: "=x"}}, {{Name: "a", Key: "=x"}, {Name: "a", Key: "=y"}},
	} {
		if a, b := pair[0], pair[1]; a.Compare(b) >= 0 || b.Compare(a) <= 0 || a.Compare(a) != 0 {
			t.Errorf("%v is not passed before %v", a, b)
		}
	}
}

// The line of a named gate: runs of several jobs stand in it by rank, which their priority moves by ten minutes, and a place is read as it was written.
func TestG3_PlacesInTheLineOfANamedGate(t *testing.T) {
	g := stripe(1)
	fifo := stripe(1)
	fifo.Def.Def.Order = gate.OrderFIFO
	join := func(g gate.Gate, r run.Run, p queue.Priority) run.Run {
		r.Priority = p
		round := g.Begin()
		round.Orders()
		return r.JoinNamed("stripe", "", r.ID.Nominal, round.Lead(r, r.ID.Nominal), 1, false, nominal)
	}
	minute := func(n int) run.Run { return fireOf("b", n*60) }
	line := []run.Run{
		join(g, minute(0), queue.High), join(g, minute(9), queue.High), join(g, minute(0), queue.Normal), join(g, fireOf("c", 0), queue.Normal),
		join(g, minute(11), queue.High), join(g, minute(9), queue.Normal), join(g, minute(0), queue.Low), join(g, minute(11), queue.Normal), join(g, minute(9), queue.Low),
	}
	var places []gate.Place
	for i, r := range line {
		p := gate.PlaceOf(r)
		places = append(places, p)
		if i > 0 && places[i-1].Compare(p) >= 0 {
			t.Errorf("%d does not stand before %d: %+v, %+v", i-1, i, places[i-1], p)
		}
		key := p.Key("acme")
		if i > 0 && (key.Partition != "line#acme#stripe" || places[i-1].Key("acme").Sort >= key.Sort) {
			t.Errorf("%d is kept at %s, behind %s", i, key, places[i-1].Key("acme"))
		}
		back, err := gate.PlaceFromItem("stripe", store.Item{Key: key})
		if err != nil || back != p || !back.Named(r) {
			t.Errorf("%s is read as %+v, %v", key, back, err)
		}
		if other := r.Join("gpu", r.Wait.Rank, nominal); p.Named(other) {
			t.Error("a place is that of a run which waits at another gate")
		}
		if high, low := gate.PlaceOf(join(fifo, r, queue.High)), gate.PlaceOf(join(fifo, r, queue.Low)); high != low || high.Rank != r.ID.Nominal {
			t.Errorf("first in, first out, by priority: %+v and %+v", high, low)
		}
	}
	for _, sort := range []string{"", "0001768435200000", "0001768435200000#0001768435200000#", "0001768435200000#0001768435200000", "x#y##b"} {
		if p, err := gate.PlaceFromItem("stripe", store.Item{Key: store.Key{Sort: sort}}); err == nil && p.Run.Job != "" {
			t.Errorf("%q is read as %+v", sort, p)
		}
	}
}

// Whoever is first in line and wants more than is free blocks those behind, and a closed gate lets nobody in. Where there is no definition, all are let in, and none
// is counted.
func TestG3_TheHeadOfALineBlocks(t *testing.T) {
	head := fireOf("b", 1).JoinNamed("stripe", "", nominal, 0, 2, false, nominal)
	g := waiting(stripe(2, fireOf("a", 0)), head)
	if got := g.Begin().Call(gate.PlaceOf(head), head, 2); got != gate.NoRoom {
		t.Errorf("a head that wants two units where one is free is told %d", got)
	}
	round := waiting(stripe(3, fireOf("a", 0)), head).Begin()
	if got := round.Call(gate.PlaceOf(head), head, 3); got != gate.LetIn || round.Units() != 3 || round.Gate().Entries[1] != (gate.Entry{Nominal: head.ID.Nominal, Generation: 1, Units: 2, Job: "b"}) {
		t.Errorf("where there is room it is told %d, and the gate is %+v", got, round.Gate())
	}
	if got := waiting(closed(stripe(9)), head).Begin().Call(gate.PlaceOf(head), head, 9); got != gate.NoRoom {
		t.Errorf("at a closed gate it is told %d", got)
	}
	free := waiting(stripe(9), head)
	free.Def = gate.Named{}
	round = free.Begin()
	if got := round.Call(gate.PlaceOf(head), head, 0); got != gate.LetIn || round.Held() != 0 || !round.Free() || round.Closed() {
		t.Errorf("at a gate without a definition it is told %d, and the gate is %+v", got, round.Gate())
	}
}

// A named gate is written and read back with the jobs of its entries, and says under which definition that was.
func TestANamedGateIsWrittenAndReadBack(t *testing.T) {
	var runs []run.Run
	for n := range 40 {
		runs = append(runs, fireOf(fmt.Sprint("a-job-with-a-long-name-", n%4), n))
	}
	g := units(3, stripe(100, runs...))
	op, err := g.Put(time.UnixMilli(nominal), 5)
	if err != nil || op.Key.Partition != "gate#acme#stripe" || op.Key.Sort != "-" {
		t.Fatalf("written as %+v, %v", op, err)
	}
	if len(op.Value) > 1000 {
		t.Errorf("40 entries take %d bytes", len(op.Value))
	}
	back, err := gate.FromItem("acme", "stripe", store.Item{Key: op.Key, Version: 4, Value: op.Value})
	if err != nil || !slices.Equal(back.Entries, g.Entries) || back.Under != 7 || back.Run(back.Entries[39]) != runs[39].ID {
		t.Fatalf("read back as %+v, %v", back, err)
	}
	if back.Def = g.Def; !back.Current() {
		t.Error("it is not written under the definition that it was written under")
	}
	if back.Def.Generation++; back.Current() {
		t.Error("it is written under a later definition")
	}
	if back.Def = (gate.Named{}); back.Current() || !back.Free() {
		t.Error("it is written under a definition that was deleted")
	}
}
