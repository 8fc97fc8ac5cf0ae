package plan

import (
	"fmt"
	"math"
)

// mostStacks is how many may share a load. Beyond it somebody has another design to find, not stacks to count.
const mostStacks = 100

// verdictFor is what the limits come to.
func verdictFor(p *Plan, bends []bend) Verdict {
	v := Verdict{Stacks: 1, Reasons: []Reason{}}
	add := func(what string, reached float64) {
		r := Reason{What: what, Reached: reached, Stacks: int(whole(p.Load.Peak / reached))}
		v.Reasons = append(v.Reasons, r)
		v.Stacks = max(v.Stacks, r.Stacks)
	}
	said := map[string]bool{}
	for _, limit := range bends {
		if limit.Exceeds && limit.Of == OfDesign {
			add(limit.Name, limit.Reached)
			said[limit.setting] = true
		}
	}
	for _, s := range p.Settings {
		if s.Short && !said[s.Name] {
			add(fmt.Sprintf("%s=%.0f is the most that there is, and %s are needed", s.Name, s.Value, Count(s.Needs)), p.Load.Peak*s.Value/s.Needs)
			said[s.Name] = true
		}
	}
	if !p.Ticks.Enough && !said["Shards"] {
		add(fmt.Sprintf("%d ticks at once on %d shards, as told, with %.0f%% spare", p.Ticks.AtOnce, p.Ticks.Shards, (1-aim)*100),
			p.Load.Peak*aim*minute/p.Ticks.Seconds)
	}
	v.One = len(v.Reasons) == 0
	v.Beyond = v.Stacks > mostStacks
	if !v.One {
		v.Stacks = max(v.Stacks, 2)
	}
	return v
}

// whole rounds up, but not for what is left of a sum of fractions.
func whole(v float64) float64 { return math.Ceil(v * (1 - 1e-9)) }
