package main

import (
	"context"
	"regexp"
	"strconv"
)

// simulation is where the deterministic simulation lies.
var simulation = suite{Package: "tests/sim", Run: "^TestSeeds$"}

var (
	well  = regexp.MustCompile(`\bseed (\d+): \d+ steps,`)
	wrong = regexp.MustCompile(`\bseed (\d+) broke a promise; it was known after step (\d+)`)
)

// simulate plays so many histories from a seed on: nil where none shows the mutant.
func (p *planted) simulate(ctx context.Context, from uint64, seeds int) (*death, error) {
	d, err := p.try(ctx, simulation, "-seeds="+strconv.Itoa(seeds), "-from="+strconv.FormatUint(from, 10))
	if d != nil && d.Seed == 0 {
		d.Seed = from // it broke down in the first
	}
	return d, err
}

// learn takes from a line of the simulation which seed it speaks of, and tells whether it is a verdict. Until there is one, the seed is
// that behind the last good one: a history that breaks down says nothing.
func (d *death) learn(line string) bool {
	if m := well.FindStringSubmatch(line); m != nil {
		last, _ := strconv.ParseUint(m[1], 10, 64)
		d.Seed = last + 1
	}
	m := wrong.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	d.Seed, _ = strconv.ParseUint(m[1], 10, 64)
	d.Steps, _ = strconv.ParseInt(m[2], 10, 64)
	return true
}
