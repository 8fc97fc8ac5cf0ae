package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Shrink looks for a simpler world in which the same promise is broken: it switches off whatever is not needed for that, and cuts it
// short, for as long as it may take. It gives the mask, and what came of the world under it.
func Shrink(t *testing.T, failed Result, mask Mask, until time.Time) (Mask, Result) {
	return simplest(failed, mask, func(wider Mask, most uint64) (Result, bool) {
		if time.Now().After(until) {
			return Result{}, false
		}
		return Run(t, Config{Seed: failed.Seed, Without: wider, Most: most}), true
	})
}

// simplest is Shrink of worlds that run gives, until it gives no more. What is undecided broke nothing that could be looked for.
func simplest(failed Result, mask Mask, run func(mask Mask, most uint64) (Result, bool)) (Mask, Result) {
	if failed.Undecided() {
		return mask, failed
	}
	promises := promisesOf(failed)
	best := failed
	try := func(more ...string) bool {
		wider := append(slices.Clone(mask), more...)
		// What needs more steps than before is no simpler.
		r, ok := run(wider, best.Steps+lookEvery)
		if !ok || !slices.ContainsFunc(promisesOf(r), func(p string) bool { return slices.Contains(promises, p) }) {
			return false
		}
		mask, best = wider, r
		return true
	}
	length := func() bool {
		for _, part := range []time.Duration{8, 4, 2} {
			if shorter := (best.Mix.Length / part).Round(time.Second); shorter > 0 && try("length="+shorter.String()) {
				return true
			}
		}
		return false
	}
	for progress := true; progress; {
		progress = length()
		if n := best.Mix.Names; n > 1 && try(fmt.Sprintf("names=%d", (n+1)/2)) {
			progress = true
		}
		for _, s := range best.Mix.switches() {
			if s.on && try(s.name) {
				progress = true
			}
		}
	}
	return mask.shortest(), best
}

// shortest leaves out cuts that a later one overtook.
func (k Mask) shortest() Mask {
	var kept Mask
	for i, name := range k {
		what, _, cut := strings.Cut(name, "=")
		if !cut || !slices.ContainsFunc(k[i+1:], func(later string) bool { return strings.HasPrefix(later, what+"=") }) {
			kept = append(kept, name)
		}
	}
	return kept
}

// promisesOf are those that a world broke, as violations begin.
func promisesOf(r Result) []string {
	var promises []string
	for _, v := range r.Violations {
		promise, _, _ := strings.Cut(v, ":")
		if !slices.Contains(promises, promise) {
			promises = append(promises, promise)
		}
	}
	return promises
}

// Report tells of a world that broke a promise, or is undecided: how, and the command that shows each step of it.
func Report(r Result, mask Mask) string {
	var b strings.Builder
	if r.Undecided() {
		fmt.Fprintf(&b, "seed %d is undecided after its %d steps:\n", r.Seed, r.Steps)
	} else {
		fmt.Fprintf(&b, "seed %d broke a promise; it was known after step %d of %d:\n", r.Seed, r.First, r.Steps)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	fmt.Fprintf(&b, "its world:\n%s", r.Mix)
	fmt.Fprintf(&b, "every step of it: make sim SEED=%d", r.Seed)
	if len(mask) > 0 {
		fmt.Fprintf(&b, " WITHOUT=%s", mask)
	}
	b.WriteByte('\n')
	return b.String()
}
