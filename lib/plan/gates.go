package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// What a pass of a gate takes, in units: tests/cost counts it. A gate's item is 1 KB larger for each entriesOfUnit runs or so that are in progress.
const (
	gateWrites    = 1
	gateReads     = 3.5
	entriesOfUnit = 24
)

// ParseGate reads NAME=LIMIT.
func ParseGate(text string) (Gate, error) {
	name, limit, found := strings.Cut(text, "=")
	n, err := ParseWhole(limit)
	if !found || err != nil {
		return Gate{}, invalid.Field("", text, "a gate and its limit, such as stripe=10")
	}
	return Gate{Name: name, Limit: n}, nil
}

// ParsePass reads NAME=SHARE, or NAME=SHARExUNITS.
func ParsePass(text string) (Pass, error) {
	want := invalid.Field("", text, "a gate, the share of the runs that pass it, and where that is more than one the units that each takes, such as stripe=40% or gpu=5%x2")
	name, rest, found := strings.Cut(text, "=")
	share, units, many := strings.Cut(rest, "x")
	p := Pass{Gate: name, Units: 1}
	var err error
	if p.Share, err = ParseShare(share); !found || err != nil {
		return Pass{}, want
	}
	if many {
		if p.Units, err = strconv.Atoi(units); err != nil {
			return Pass{}, want
		}
	}
	return p, nil
}

// checkGates tells what is wrong with the gates of a load.
func (l Load) checkGates(by Asker) (errs []error) {
	refuse := func(flag, got, want string) { errs = append(errs, invalid.Field(by.Name(flag), got, want)) }
	limits, shares := map[string]int{}, map[string]float64{}
	var names []string
	for _, g := range l.Gates {
		switch {
		case !job.NamesGate(g.Name):
			refuse("gate", g.Name, job.WantGateName)
		case limits[g.Name] != 0:
			refuse("gate", g.Name, "each gate once")
		case g.Limit < 1 || g.Limit > gate.MaxLimit:
			refuse("gate", fmt.Sprintf("%s=%d", g.Name, g.Limit), fmt.Sprintf("a limit from 1 to %d", gate.MaxLimit))
		}
		limits[g.Name] = max(g.Limit, 1)
		names = append(names, g.Name)
	}
	for _, p := range l.Passes {
		given := fmt.Sprintf("%s=%g%%x%d", p.Gate, p.Share*100, p.Units)
		limit, known := limits[p.Gate]
		if !known {
			want := "a gate that --gate gives, such as --gate " + p.Gate + "=10"
			if near := invalid.Nearest(p.Gate, names); near != "" {
				want += fmt.Sprintf("; did you mean %q?", near)
			}
			refuse("passes", p.Gate, want)
			continue
		}
		if p.Units < 1 || p.Units > limit {
			refuse("passes", given, fmt.Sprintf("1 to %d units, the limit of the gate %s", limit, p.Gate))
		}
		if shares[p.Gate] += p.Share; !(p.Share >= leastShare && shares[p.Gate] <= 1+1e-9) {
			refuse("passes", given, fmt.Sprintf("%g%% of the runs or more, and at most 100%% for all that pass %s", leastShare*100, p.Gate))
		}
	}
	return errs
}

// passesOf are the passes of a gate: all runs, a unit each, where none are given.
func (l Load) passesOf(g Gate) (passes []Pass) {
	for _, p := range l.Passes {
		if p.Gate == g.Name {
			passes = append(passes, p)
		}
	}
	if passes == nil {
		passes = []Pass{{Gate: g.Name, Share: 1, Units: 1}}
	}
	return passes
}

// passing is how many gates a run passes, on average.
func (l Load) passing() (passing float64) {
	for _, g := range l.Gates {
		for _, p := range l.passesOf(g) {
			passing += p.Share
		}
	}
	return passing
}

// held is how long a run keeps its units, in seconds: a retry keeps them while it waits, which is an ordinary job's first wait here.
func (l Load) held(attempt float64) float64 {
	least, most := job.Definition{}.WithDefaults().Retry.Wait(1)
	return attempt*(1+l.Retries) + l.Retries*(least+most).Seconds()/2
}

// gatesFor gives the gates of a load, that first which is the bottleneck. attempt is how long one lasts, in seconds.
func gatesFor(l Load, attempt float64) []GateLoad {
	var all []GateLoad
	for _, g := range l.Gates {
		of := GateLoad{CapacityGate: g, Held: l.held(attempt)}
		share, units := 0.0, 0.0
		for _, p := range l.passesOf(g) {
			share += p.Share
			units += p.Share * float64(p.Units)
		}
		ofTenant := l.Peak / float64(l.Tenants)
		of.Runs = ofTenant * share
		of.Units = ofTenant * units * of.Held
		of.Utilization = of.Units / float64(g.Limit)
		of.Reached = l.Peak / of.Utilization
		// Who comes at a minute's first second shares what the others leave.
		if spare := 1 - of.Utilization*(1-l.AtOnce); of.Utilization <= 1 && spare > 0 {
			of.LastStart = max(0, of.Utilization*l.AtOnce*minute/spare-of.Held)
		}
		of.Late = of.Utilization > 1 || of.LastStart > l.latest()
		all = append(all, of)
	}
	slices.SortStableFunc(all, func(a, b GateLoad) int { return cmp.Compare(b.Utilization, a.Utilization) })
	return all
}

// gateKeys are the items of the gates, each of which all runs write that pass it.
func gateKeys(l Load, attempt float64, add func(key, what, unit string, perRun float64)) {
	for _, g := range gatesFor(l, attempt) {
		entries := min(g.Units, float64(g.Limit))
		add("gate#TENANT#"+g.Name, "a gate, which each run writes that passes it", "write", g.Runs/l.Peak*gateWrites*max(1, math.Ceil(entries/entriesOfUnit)))
	}
}
