package oracle_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// waitingTooLong is a life of a job whose runs wait a minute at a gate by deadlines: one waits long for its retry, and those behind it are skipped, but for one that comes late.
func waitingTooLong(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.redefine(func(n *gate.Named) {
		n.Def = gate.Definition{Limit: 1, MaxWait: schedule.Duration(time.Minute), Order: gate.OrderDeadline}
	})
	def := works(1, nil)
	def.Gates = []job.GateUse{{Gate: "stripe", Units: 1}}
	def.Deadline = schedule.Duration(time.Hour)
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 3*time.Minute
	r.put(tenant, "one", def)
	for range 3 {
		r.trigger("one", "", 202, "")
		r.live(2*beat, beat)
	}
	r.fails["one"] = false
	r.live(140*time.Second, 10*time.Second)
	r.trigger("one", "", 202, "")
	r.live(30*time.Minute, time.Minute)
	return r.end()
}

func TestNothingIsFoundWhereRunsWaitTooLong(t *testing.T) {
	l := waitingTooLong(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	skipped, waited := 0, 0
	for _, e := range l {
		r, ok := p.of(e)
		if ok && r.Why.Code == run.WhyMaxWait {
			skipped++
		}
		if ok && r.Wait.LetIn != 0 && r.State == run.Queued {
			waited++
		}
	}
	if skipped != 2 || waited != 1 {
		t.Errorf("%d were skipped, and %d let in from the line", skipped, waited)
	}
}

// outwaited is the index of the first end of a run that has waited for too long.
func (p *plot) outwaited() int { return p.run(first, "one", run.Skipped) }

// joinsBy changes how the first run that waits has joined the line, in all its records before its end.
func joinsBy(change func(w *run.Wait)) func(p *plot) {
	return func(p *plot) {
		end := p.outwaited()
		late, _ := p.of(p.life[end])
		for i := range end {
			if r, ok := p.of(p.life[i]); ok && r.ID == late.ID && r.Waits() {
				p.spoil(i, func(r *run.Run) { change(&r.Wait) })
			}
		}
	}
}

func saysOfItsWait(change func(y *run.Why)) func(p *plot) {
	return func(p *plot) { p.spoil(p.outwaited(), func(r *run.Run) { change(&r.Why) }) }
}

var ofWaitingTooLong = map[string]row{
	"may wait longer than the gate says": {joinsBy(func(w *run.Wait) { w.Until++ }), "G4: run .* joins the line of gate stripe since .* until .*, which the gate does not say"},
	"may wait for ever":                  {joinsBy(func(w *run.Wait) { w.Until = 0 }), "G4: run .* is skipped since it has waited for too long, and may wait for ever"},
	"skipped in time":                    {joinsBy(func(w *run.Wait) { w.Until += time.Hour.Milliseconds() }), "G4: run .* is skipped since it has waited for too long at .*, and may wait until"},
	"stands by when it was due":          {joinsBy(func(w *run.Wait) { w.Ahead = 0 }), "G3: run .* joins the line of gate stripe at .*, which no order of the gate says"},
	"skipped at another gate":            {saysOfItsWait(func(y *run.Why) { y.Gate = "gpu" }), "G4: run .* is skipped since it has waited at gate gpu since .*, where it did not"},
	"says otherwise since when":          {saysOfItsWait(func(y *run.Why) { y.Since++ }), "G4: run .* is skipped since it has waited at gate stripe since .*, where it did not"},
	"names nobody":                       {saysOfItsWait(func(y *run.Why) { y.InTheWay = nil }), "G4: run .* is skipped at gate stripe and names nobody, and run .* was in its way"},
	"names one that was never there":     {saysOfItsWait(func(y *run.Why) { y.InTheWay = []string{"one~0000000rs"} }), "G4: run .* is skipped at gate stripe, and run .* in its way was never there"},
	"says that its job was paused": {func(p *plot) {
		p.spoil(p.outwaited(), func(r *run.Run) { r.Reason += ", and its job was paused" })
	}, "G4: run .* is skipped at gate stripe since its job was paused, which it was not"},
	"waits on": {func(p *plot) {
		end := p.outwaited()
		late, _ := p.of(p.life[end])
		for i := len(p.life) - 1; i >= end; i-- {
			if r, ok := p.of(p.life[i]); ok && r.ID == late.ID {
				p.drop(i)
			}
		}
	}, "G4: run .* waits on at gate stripe, where it may wait until"},
}
