package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// simulation is where the deterministic simulation lies.
var simulation = suite{Package: "tests/sim", Run: "^TestSeeds$"}

// world is a history of the simulation that was cut short.
type world struct {
	seed  uint64
	steps int64
}

// farthest is how many steps a world may take: ten times what the longest of seeds 1 to 12 takes without a mutant.
const farthest = 3_000_000

var (
	well    = regexp.MustCompile(`\bseed (\d+): (\d+) steps,`)
	cut     = regexp.MustCompile(`\bseed (\d+): cut short after (\d+) steps`)
	wrong   = regexp.MustCompile(`\bseed (\d+) broke a promise; it was known after step (\d+)`)
	unclear = regexp.MustCompile(`\bseed (\d+) is undecided\b`)
)

// simulate plays so many histories from a seed on: nil where none shows the mutant. They are bounded by steps, which a busy machine does
// not change. That a world is cut short shows nothing by itself: it is found where it takes a tenth of that without the mutant, so that
// with it, it does not end.
func (p *planted) simulate(ctx context.Context, from uint64, seeds int) (*death, error) {
	some := func(from uint64, seeds int) []string {
		return []string{"-seeds=" + strconv.Itoa(seeds), "-from=" + strconv.FormatUint(from, 10), "-most=" + strconv.Itoa(farthest)}
	}
	h, err := p.try(ctx, simulation, time.Duration(seeds)*p.bound, some(from, seeds)...)
	if err != nil {
		return nil, err
	}
	if h.Said != "" {
		if h.Seed == 0 {
			h.Seed = from // it broke down in the first
		}
		return h.found(), nil
	}
	for _, w := range h.short {
		plain, err := p.without(ctx, simulation, some(w.seed, 1)...)
		if err != nil {
			return nil, err
		}
		if steps, ok := plain.ended[w.seed]; ok && hangs*steps <= w.steps {
			return &death{Package: simulation.Package, Test: h.Test, Seed: w.seed, Steps: w.steps, Seconds: h.Seconds,
				Said: fmt.Sprintf("it does not end: %s steps, and without the mutant it has %s", thousands(w.steps), thousands(steps))}, nil
		}
	}
	for seed := from; seed < from+uint64(seeds); seed++ {
		if _, ok := h.ended[seed]; !ok {
			p.lateSeeds = append(p.lateSeeds, seed)
		}
	}
	return nil, nil
}

// learn takes from a line of the simulation which seed it speaks of, and tells whether it is a verdict. Until there is one, the seed is
// that behind the last one that has ended: a history that breaks down says nothing.
func (h *heard) learn(line string) bool {
	if m := well.FindStringSubmatch(line); m != nil {
		seed, steps := numbers(m)
		h.ended[seed], h.Seed = steps, seed+1
	}
	if m := cut.FindStringSubmatch(line); m != nil {
		seed, steps := numbers(m)
		h.short, h.Seed = append(h.short, world{seed, steps}), seed+1
	}
	if m := unclear.FindStringSubmatch(line); m != nil {
		seed, _ := numbers(append(m, "0"))
		h.undecided = append(h.undecided, seed)
		delete(h.ended, seed) // it is told of as ended before
	}
	m := wrong.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	h.Seed, h.Steps = numbers(m)
	return true
}

// numbers are a seed and its steps, in digits alone.
func numbers(match []string) (seed uint64, steps int64) {
	seed, _ = strconv.ParseUint(match[1], 10, 64)
	steps, _ = strconv.ParseInt(match[2], 10, 64)
	return seed, steps
}
