package gate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// lineUp is a gate in whose line runs join, each by what the definition says then.
type lineUp struct {
	*testing.T
	gate.Gate
	runs []run.Run
}

func (l *lineUp) joins(order gate.Order, r run.Run) run.Run {
	l.Helper()
	l.Def.Def.Order = order
	round := l.Begin()
	round.Orders()
	joined := r.JoinNamed("stripe", "", r.ID.Nominal, round.Lead(r, r.ID.Nominal), 1, false, nominal)
	round.Join(joined, false)
	l.written(round)
	l.runs = append(l.runs, joined)
	return joined
}

// written has the gate be written and read again.
func (l *lineUp) written(round *gate.Round) {
	l.Helper()
	g := round.Gate()
	op, err := g.Put(time.UnixMilli(nominal), 1)
	if err != nil {
		l.Fatal(err)
	}
	def := l.Def
	if l.Gate, err = gate.FromItem("acme", "stripe", store.Item{Key: op.Key, Value: op.Value, Version: g.Version + 1}); err != nil {
		l.Fatal(err)
	}
	l.Def = def
}

// order is the numbers of the runs, in which they joined, in the order of the line.
func (l *lineUp) order() (at []int) {
	for i := range l.runs {
		at = append(at, i)
	}
	slices.SortFunc(at, func(a, b int) int { return gate.PlaceOf(l.runs[a]).Compare(gate.PlaceOf(l.runs[b])) })
	return at
}

func (l *lineUp) is(want ...int) {
	l.Helper()
	if got := l.order(); !slices.Equal(got, want) {
		l.Errorf("they stand as %v, want %v", got, want)
	}
}

// endsBy is a run of a minute that is to have ended by another one; 0: it has no deadline.
func endsBy(n, by int) run.Run {
	r := fireOf("b", n*60)
	if by != 0 {
		r.EndBy = nominal + int64(by)*60_000
	}
	return r
}

// By deadlines whoever is to have ended first stands first, whatever its priority, and those without a deadline behind all others, by when they were due.
func TestG3_ALineByDeadlines(t *testing.T) {
	l := &lineUp{T: t, Gate: stripe(1)}
	urgent := endsBy(5, 0)
	urgent.Priority = queue.High
	for _, r := range []run.Run{endsBy(0, 60), endsBy(1, 30), endsBy(2, 0), endsBy(3, 600_000), urgent, endsBy(1, 0), endsBy(6, 60), endsBy(4, 60)} {
		l.joins(gate.OrderDeadline, r)
	}
	l.is(1, 0, 7, 6, 3, 5, 2, 4)
	for i, r := range l.runs {
		p := gate.PlaceOf(r)
		if back, err := gate.PlaceFromItem("stripe", store.Item{Key: p.Key("acme")}); err != nil || back != p || !back.Named(r) {
			t.Errorf("%d is read as %+v, %v", i, back, err)
		}
	}
	if l.Shift != 0 || !l.ByDeadline || l.Front != gate.PlaceOf(l.runs[1]).Rank {
		t.Errorf("the gate is %+v", l.Gate)
	}
}

// G7: who has no deadline is not overtaken for ever by those that have one.
func TestG7_NobodyWithoutADeadlineWaitsForEver(t *testing.T) {
	l := &lineUp{T: t, Gate: stripe(1)}
	const day = 24 * 60
	l.joins(gate.OrderDeadline, endsBy(0, 0))
	l.joins(gate.OrderDeadline, endsBy(5*365*day, 5*365*day+1))
	l.joins(gate.OrderDeadline, endsBy(5*365*day-1, 5*365*day))
	l.is(2, 0, 1)
}

// Where the order is changed from or to deadlines, those that wait keep their places, and those that join stand behind them, also where it is changed back. When nobody waits any more, nothing is left of it.
func TestG3_AChangeOfOrderKeepsWhoWaits(t *testing.T) {
	l := &lineUp{T: t, Gate: stripe(1)}
	low := endsBy(0, 0)
	low.Priority = queue.Low
	l.joins(gate.OrderPriority, low)                // 0
	l.joins(gate.OrderFIFO, endsBy(2, 0))           // 1: stands before it
	l.joins(gate.OrderDeadline, endsBy(3, 4))       // 2
	l.joins(gate.OrderDeadline, endsBy(3, 0))       // 3
	l.joins(gate.OrderDeadline, endsBy(4, 500_000)) // 4
	l.joins(gate.OrderPriority, endsBy(5, 0))       // 5
	high := endsBy(5, 0)
	high.Priority = queue.High
	l.joins(gate.OrderPriority, high)         // 6
	l.joins(gate.OrderDeadline, endsBy(6, 7)) // 7
	l.is(1, 0, 2, 4, 3, 6, 5, 7)

	round := l.Begin()
	round.Begins(gate.Place{}, false)
	l.written(round)
	if l.Shift != 0 || l.ByDeadline {
		t.Errorf("an empty line is left as %+v", l.Gate)
	}
	l.runs = nil
	l.joins(gate.OrderFIFO, endsBy(9, 0))
	if rank := gate.PlaceOf(l.runs[0]).Rank; rank != l.runs[0].ID.Nominal {
		t.Errorf("it stands %d ms from its time", rank-l.runs[0].ID.Nominal)
	}
}

// Whoever joins after a change of the order stands behind all that wait, also where it was due long before them: it came late, from the line of another gate.
func TestG3_AChangeOfOrderKeepsWhoWaitsFromThoseDueBefore(t *testing.T) {
	l := &lineUp{T: t, Gate: stripe(1)}
	const day = 24 * 60
	l.joins(gate.OrderPriority, endsBy(400*day, 0))
	l.joins(gate.OrderDeadline, endsBy(399*day, 0))
	l.joins(gate.OrderDeadline, endsBy(1, 500*day))
	l.joins(gate.OrderPriority, endsBy(1, 0))
	high := endsBy(0, 0)
	high.Priority = queue.High
	l.joins(gate.OrderPriority, high)
	l.joins(gate.OrderDeadline, endsBy(2, 501*day))
	l.is(0, 2, 1, 4, 3, 5)
}

// However often the order is changed while some wait, places are read as they were written, and are none at the front.
func TestG3_ManyChangesOfOrder(t *testing.T) {
	l := &lineUp{T: t, Gate: stripe(1)}
	for i := range 5000 {
		r := l.joins([]gate.Order{gate.OrderFIFO, gate.OrderDeadline}[i%2], endsBy(i, 0))
		p := gate.PlaceOf(r)
		if back, err := gate.PlaceFromItem("stripe", store.Item{Key: p.Key("acme")}); err != nil || back != p {
			t.Fatalf("after %d changes: %+v, %v", i, back, err)
		}
		if front := r.ToFront(r.Wait.Rank-gate.Forward(p.Rank), nominal, "", ""); !gate.PlaceOf(front).Forwarded() {
			t.Fatalf("after %d changes it cannot be released", i)
		}
	}
}

// A gate that says nothing of deadlines keeps its bytes.
func TestAnOrdinaryGateKeepsItsBytes(t *testing.T) {
	l := &lineUp{T: t, Gate: stripe(1)}
	l.joins(gate.OrderPriority, endsBy(0, 60))
	if l.Shift != 0 || l.ByDeadline || l.runs[0].Wait.Until != 0 || l.runs[0].Wait.Ahead != 0 {
		t.Errorf("it says %+v of %+v", l.Gate, l.runs[0].Wait)
	}
}

// Until when a run may wait counts from when it joins; where there is no definition, for ever.
func TestG4_WaitUntil(t *testing.T) {
	g := stripe(1)
	if until := g.WaitUntil(nominal); until != 0 {
		t.Errorf("without max_wait until %d", until)
	}
	g.Def.Def.MaxWait = schedule.Duration(time.Minute)
	if until := g.WaitUntil(nominal); until != nominal+60_000 {
		t.Errorf("until %d ms on", until-nominal)
	}
	g.Def.Version = 0
	if until := g.WaitUntil(nominal); until != 0 {
		t.Errorf("where there is no gate until %d", until)
	}
}
