package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// drawStops draws how many scopes of workflows stop, from a stream of its own: a world in which none does stays as it was before they could.
func (m *Mix) drawStops(r *rand.Rand) {
	if m.Jobs.Workflows > 0 && chance(r, 0.5) {
		m.Jobs.Stops = pick(r, []float64{0.4, 0.7, 1})
	}
}

// stops has some scopes of a graph stop for failures, and some have a time of their own.
func (m *Mix) stops(r *rand.Rand, steps map[string]flow.Step) {
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		s := steps[name]
		if len(s.Steps) == 0 {
			continue
		}
		m.stops(r, s.Steps)
		if chance(r, m.Jobs.Stops) {
			s.OnFailure = flow.Stop
		}
		if chance(r, m.Jobs.Stops/2) {
			s.Timeout = schedule.Duration(rate(r, 1, time.Second, 2*m.Pace.longest()))
		}
		steps[name] = s
	}
}
