package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// What a named gate says of those that wait is settled when they join: where they stand, and for how long they may. The figures are those of docs/gates.md.
const (
	aheadByPriority = 10 * 60_000
	withoutDeadline = 5*365*24*60*60_000 + 1 // how far behind its rank a run stands that has no deadline, in a line by deadlines
	betweenOrders   = 2*withoutDeadline + 2*aheadByPriority

	// settling is for how long the definition may have been read, before a run joined by it.
	settling = 60_000
)

// joinedNamed: whoever joins the line of a named gate stands where its order has it stand (G3), and may wait for as long as it says (G4).
func (j *Judge) joinedNamed(rs *runState, b *run.Run) {
	a := &rs.run
	if !a.Waits() || !isNamedGate(a.Wait.Gate) || a.Wait.Since == b.Wait.Since && b.Waits() {
		return
	}
	stands, lasts := false, false
	for _, p := range j.gateNamed(a.Tenant, a.Wait.Gate).spans {
		if p.none() || p.until < a.Wait.Since-j.cfg.Clocks.Milliseconds()-settling {
			continue
		}
		off := gate.PlaceOf(*a).Rank - keyIn(p.Def.Order, a)
		stands = stands || off >= 0 && off%betweenOrders == 0
		until := int64(0)
		if most := p.Def.MaxWait.Std(); most != 0 && !a.Spared() {
			until = a.Wait.Since + most.Milliseconds()
		}
		lasts = lasts || a.Wait.Until == until
	}
	if !stands {
		j.violate("G3", "run %s of %s joins the line of gate %s at %d, which no order of the gate says", a.ID, a.Tenant, a.Wait.Gate, gate.PlaceOf(*a).Rank)
	}
	if !lasts {
		j.violate("G4", "run %s of %s joins the line of gate %s since %s until %s, which the gate does not say", a.ID, a.Tenant, a.Wait.Gate, instant(a.Wait.Since), instant(a.Wait.Until))
	}
}

// keyIn is by what a run stands in the line of a gate with an order.
func keyIn(order gate.Order, r *run.Run) int64 {
	switch {
	case order == gate.OrderDeadline && r.EndBy != 0:
		return r.EndBy
	case order == gate.OrderDeadline:
		return r.Wait.Rank + withoutDeadline
	case order == gate.OrderFIFO:
	case r.Priority == queue.High:
		return r.Wait.Rank - aheadByPriority
	case r.Priority == queue.Low:
		return r.Wait.Rank + aheadByPriority
	}
	return r.Wait.Rank
}

// outwaited: who is skipped since it has waited for too long had joined the line of the gate that it names, and its time there is over. It says since when it waited, and
// names others that waited there or were in progress; one at least, where one was all along, and neither was the gate closed nor its job paused (G4).
func (j *Judge) outwaited(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	of, until := gate.Of(*b), b.Wait.Until
	switch {
	case !b.Waits() || !of.IsNamed() || a.Why.Gate != of.Name || a.Why.Key != of.Key || a.Why.Policy != "" || a.Why.Since != b.Wait.Since:
		j.violate("G4", "run %s of %s is skipped since it has waited at gate %s since %s, where it did not", a.ID, a.Tenant, a.Why.Gate, instant(a.Why.Since))
		return
	case until == 0:
		j.violate("G4", "run %s of %s is skipped since it has waited for too long, and may wait for ever", a.ID, a.Tenant)
	case ms(at)+j.cfg.Clocks.Milliseconds() <= until:
		j.violate("G4", "run %s of %s is skipped since it has waited for too long at %s, and may wait until %s", a.ID, a.Tenant, instant(ms(at)), instant(until))
	}
	if rs.byHand {
		j.violate("G4", "run %s of %s was opened by hand, and is skipped", a.ID, a.Tenant)
	}
	key := spotOf(of)
	for _, id := range a.Why.InTheWay {
		if other := j.named(a.Tenant, id); other == nil || other == rs || len(other.stays(key)) == 0 {
			j.violate("G4", "run %s of %s is skipped at gate %s, and run %s in its way was never there", a.ID, a.Tenant, a.Why.Gate, id)
		}
	}
	closed := slices.ContainsFunc(j.gateNamed(a.Tenant, of.Name).spans, func(p *namedSpan) bool { return (p.Closed != nil || p.none()) && p.until >= until-settling })
	paused := strings.HasSuffix(a.Reason, " paused")
	if paused && !rs.job.pausedSince(rs.past[0].since) {
		j.violate("G4", "run %s of %s is skipped at gate %s since its job was paused, which it was not", a.ID, a.Tenant, a.Why.Gate)
	}
	if len(a.Why.InTheWay) > 0 || closed || paused {
		return
	}
	for other := range j.gateNamed(a.Tenant, of.Name).value(of.Key).came {
		if other != rs && slices.ContainsFunc(other.namedAt(key), func(p place) bool { return p.since <= until-settling && p.until >= ms(at) }) {
			j.violate("G4", "run %s of %s is skipped at gate %s and names nobody, and run %s was in its way", a.ID, a.Tenant, a.Why.Gate, other.id())
			return
		}
	}
}

// waitsOn: nobody waits on in the line of a named gate whose time there is over for long (G4): a check comes then, and if that fails, the next one.
func (j *Judge) waitsOn(at time.Time) {
	if !j.upToDate(at) {
		return
	}
	for _, js := range j.ordered() {
		for _, rs := range js.runs {
			if over := ms(at) - (20 * time.Minute).Milliseconds(); rs.stands() && rs.run.Outwaited(over) && rs.written < over && !rs.late {
				j.violate("G4", "run %s of %s waits on at gate %s, where it may wait until %s", rs.id(), js.tenant, rs.run.Wait.Gate, instant(rs.run.Wait.Until))
			}
		}
	}
}
