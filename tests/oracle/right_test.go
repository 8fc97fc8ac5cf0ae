package oracle_test

import (
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// right are changes of a quiet life after which nothing is wrong with it. A judge that knows less of the protocol takes them for faults.
var right = map[string]func(p *plot){
	// As after a step of the clock, below a horizon that stands far ahead: the rest of a long stretch has a timer of its own, which wakes at its
	// nominal time.
	"a timer stands for fires that later timers see to": func(p *plot) {
		i, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.Job == "plain" && t.Tenant == other })
		t.To += 3_600_000
		p.insert(i+1, p.timerItem(t))
	},
}

// TestWhatIsRightIsNotToldOf wants no word of the judge about a life in which something unusual is right.
func TestWhatIsRightIsNotToldOf(t *testing.T) {
	whole := quiet(t)
	for name, change := range right {
		t.Run(name, func(t *testing.T) {
			p := &plot{TB: t, life: slices.Clone(whole), cfg: oracle.Config{Most: 1000, Clocks: oracle.AnyClock}}
			change(p)
			if found := p.judged(p.cfg); len(found) > 0 {
				t.Errorf("found %.3000q", found)
			}
		})
	}
}
