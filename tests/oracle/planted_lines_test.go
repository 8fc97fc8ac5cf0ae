package oracle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// queueing is a life of a job whose runs wait their turn: one waits long for its retry, while others join the line until it is full, and are let in one after the other.
func queueing(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	most := 3
	def := works(1, every(2*beat))
	def.Overlap = job.Overlap{Policy: job.OverlapQueue, MaxWaiting: &most}
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 3*time.Minute
	r.put(tenant, "one", def)
	r.live(12*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.fails["one"] = false
	r.live(30*time.Minute, time.Minute)
	r.delete(tenant, "one")
	return r.end()
}

func TestNothingIsFoundWhereRunsWaitTheirTurn(t *testing.T) {
	l := queueing(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	var joined, left, full int
	for _, e := range l {
		if r, ok := p.of(e); ok && r.Waits() {
			joined++
		}
		if strings.HasPrefix(e.key.Partition, "line#") && e.gone {
			left++
		}
		if r, ok := p.of(e); ok && r.State == run.Skipped && r.Why.Code == run.WhyFull {
			full++
		}
	}
	if joined < 3 || left != joined || full < 2 {
		t.Errorf("%d joined, %d places are gone, and %d were skipped since the line was full", joined, left, full)
	}
}

// joins is the index of the first event after another that has a run join the line, and the run.
func (p *plot) joins(after int) (int, run.Run) {
	p.Helper()
	i := p.index(after, func(e event) bool { r, ok := p.of(e); return ok && r.Waits() })
	r, _ := p.of(p.life[i])
	return i, r
}

// letsIn is the index of the event of the gate that lets in the first one from the line, and that run.
func (p *plot) letsIn() (int, run.Run) {
	p.Helper()
	i := p.index(first, func(e event) bool { r, ok := p.of(e); return ok && r.State == run.Queued && r.Wait.LetIn != 0 })
	r, _ := p.of(p.life[i])
	for p.life[i].key != gate.Key(tenant, "one") {
		i--
	}
	return i, r
}

// place is the index of the first event that puts a place.
func (p *plot) place() int {
	p.Helper()
	return p.index(first, func(e event) bool { return strings.HasPrefix(e.key.Partition, "line#") && !e.gone })
}

var ofLines = map[string]row{
	"a place without a run's name": {func(p *plot) { p.life[p.place()].key.Sort = "x" }, "G3: line#.* is no place in line"},
	"a place of no run": {func(p *plot) {
		i, r := p.joins(first)
		r.ID.Nominal++
		p.insert(i+1, event{key: gate.PlaceOf(r).Key(tenant), value: []byte{}})
	}, "G3: line#.* is a place of a run that never was"},
	"overtaken from outside": {func(p *plot) {
		i, _ := p.joins(first)
		j, later := p.joins(i)
		for p.life[j].key != gate.Key(tenant, "one") {
			j--
		}
		later.Wait = run.Wait{}
		p.insert(j, p.puts(p.holds(j), later))
	}, "G3: run .* entered past the line, in which run .* waits"},
	"overtaken from behind": {func(p *plot) {
		i, _ := p.letsIn()
		_, second := p.joins(p.firstJoin())
		p.spoilGate(i, func(g *gate.Gate) {
			g.Entries[len(g.Entries)-1] = gate.Entry{Nominal: second.ID.Nominal, Random: second.ID.Random, Opening: second.Opening, Generation: second.Generation}
		})
	}, "G3: run .* was let in before run .*, which stands before it in line"},
	"let in in a pause": {func(p *plot) {
		one := func(e event) bool { return e.key.Sort == "one" }
		p.spoilJob(p.put(p.put(first, "job", one), "job", one), func(j *job.Job) { j.Def.Paused = true })
	}, "P8: run .* was let in from the line, and its job is paused since generation"},
	"skipped though more may wait": {func(p *plot) {
		many := 30
		for i, e := range p.life {
			if strings.HasPrefix(e.key.Partition, "job#") && !e.gone && e.key.Sort == "one" {
				if j, err := job.FromItem(tenant, "one", store.Item{Version: 1, Value: e.value}); err == nil && !j.Def.Overlap.IsZero() {
					p.spoilJob(i, func(j *job.Job) { j.Def.Overlap.MaxWaiting = &many })
				}
			}
		}
	}, "G4: run .* is skipped, 3 wait, and its job lets 30 wait"},
	"it waits at another gate": {func(p *plot) {
		i, _ := p.joins(first)
		p.spoil(i, func(r *run.Run) { r.Wait.Gate = "stripe" })
	}, "G1: run .* is at gate stripe, which its job does not name"},
	"it comes before its time": {func(p *plot) {
		i, _ := p.joins(first)
		p.spoil(i, func(r *run.Run) { r.Wait.Rank -= 60_000 })
	}, "P6: run .*it comes before its time in line"},
	"it does not say since when it waits": {func(p *plot) {
		i, _ := p.joins(first)
		p.spoil(i, func(r *run.Run) { r.Wait.Since = 0 })
	}, "P6: run .*a wait says since when"},
	"its rank has changed": {func(p *plot) {
		i, _ := p.letsIn()
		p.spoil(p.index(i, func(e event) bool { _, ok := p.of(e); return ok }), func(r *run.Run) { r.Wait.Rank++ })
	}, "P6: run .*its rank has changed"},
	"let in without a place": {func(p *plot) {
		i, _ := p.letsIn()
		p.spoil(p.index(i, func(e event) bool { _, ok := p.of(e); return ok }), func(r *run.Run) { r.Placed = false })
	}, "P6: run .*holds a place where it was let in"},
	"skipped as it waits": {func(p *plot) {
		i, r := p.joins(first)
		full, _ := p.of(p.life[p.index(i, func(e event) bool { r, ok := p.of(e); return ok && r.Why.Code == run.WhyFull })])
		r.State, r.Wait, r.Why, r.Ended, r.Expires = run.Skipped, run.Wait{}, full.Why, full.Ended, full.Expires
		p.insert(i+1, p.item(r))
	}, "P6: run .*who waits in line is skipped at its gate for a later one alone"},
	"started as it waits": {func(p *plot) {
		i, r := p.joins(first)
		p.insert(i+1, p.item(r.Start("w", r.Wait.Since, time.Minute)))
	}, "P6: run .* went from waiting to running .*no edge of the graph"},
}

func (p *plot) firstJoin() int {
	i, _ := p.joins(first)
	return i
}

// holds is the run that holds the place at the time of an event.
func (p *plot) holds(at int) run.Run {
	p.Helper()
	for i := at - 1; i >= 0; i-- {
		if r, ok := p.of(p.life[i]); ok && r.ID.Job == "one" && (r.State == run.Running || r.State == run.Retrying) {
			return r
		}
	}
	p.Fatal("nobody is in progress")
	return run.Run{}
}
