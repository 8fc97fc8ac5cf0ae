package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// The drawing in docs/run.md has the edges of lib/run/decide.go, no more and no fewer.
func TestTheStateDiagramIsTheCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "run.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```mermaid\n")
	diagram, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/run.md has no diagram")
	}
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(\S+) --> (\w+)`).FindAllStringSubmatch(diagram, -1) {
		drawn[m[1]+" -> "+m[2]] = true
	}
	coded := edges()
	for _, edge := range slices.Sorted(maps.Keys(coded)) {
		if !drawn[edge] {
			t.Errorf("%s is in the code, not in the drawing", edge)
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(drawn)) {
		if !coded[edge] {
			t.Errorf("%s is in the drawing, not in the code", edge)
		}
	}
}

// edges tries every decision on every state that its callers let it meet.
func edges() map[string]bool {
	const generation = 5
	found := map[string]bool{}
	name := func(r run.Run) string {
		if r.Version == 0 {
			return "[*]"
		}
		return r.Stage().String()
	}
	add := func(from, to run.Run) {
		if to.Version = 1; name(from) != name(to) {
			found[name(from)+" -> "+name(to)] = true
		}
	}
	limits := []run.Limits{{MaxFailures: 1, MaxCrashes: 1}, {MaxFailures: 9, MaxCrashes: 9}, {MaxFailures: 1, MaxCrashes: 9, AtMostOnce: true}}

	fire, request := run.FireID("j", 1000), run.RequestID("j", 1000, 7)
	fires := []run.Run{{ID: fire}}
	requests := []run.Run{{ID: request}}
	for _, s := range append(run.States(), run.Fenced) {
		r := run.Run{ID: fire, Version: 1, State: s, Generation: 1}
		if s == run.Waiting {
			r.State = run.Queued
			r = r.Join("job:j", 1, 1)
		}
		if s != run.Scheduled {
			fires = append(fires, r)
		}
		if s != run.Fenced && s != run.Skipped {
			r.ID = request
			requests = append(requests, r)
		}
	}
	requests = append(requests, run.Run{ID: request, Version: 1, State: run.Skipped, Generation: 1, Why: run.Why{Code: run.WhyOverlap}})
	// What a request puts, before any decision: see control.Service.Trigger.
	add(run.Run{}, run.Run{State: run.Scheduled})
	add(run.Run{}, run.Run{State: run.Queued})
	// What a retry makes of a run whose time has not come, because it was cancelled or a clock was set back: see control.Service.Retry.
	for _, s := range []run.State{run.Cancelled, run.Succeeded, run.Failed, run.Dead, run.Unknown, run.Skipped} {
		add(run.Run{Version: 1, State: s}, run.Run{State: run.Scheduled})
	}

	for _, r := range fires {
		if next, verdict := r.Claim(run.Claim{Generation: generation}); verdict == run.Claimed {
			add(r, next)
		}
		if next, verdict := r.Skip(run.Stretch{Generation: generation}, 1, 1); verdict == run.Claimed {
			add(r, next)
		}
		if next, ok := r.FenceOff(generation, 1); ok {
			add(r, next)
		}
		if next, verdict := r.Withdraw(run.Claim{Generation: generation}, "", 1); verdict == run.Claimed {
			add(r, next)
		}
	}
	for _, r := range requests {
		if r.Version == 0 {
			continue // a run on demand is put, then claimed
		}
		if next, verdict := r.Claim(run.Claim{Generation: generation}); verdict == run.Claimed {
			add(r, next)
		}
		if next, ok := r.Unbind(generation); ok {
			add(r, next)
		}
		if next, ok := r.Hold(generation); ok {
			add(r, next)
		}
	}
	for _, r := range append(fires[1:], requests[1:]...) {
		if next, ok := r.AskCancel(1, "", 1); ok {
			add(r, next)
		}
		if next, ok := r.Restored(1, "", 1); ok {
			add(r, next)
		}
		if r.State == run.Queued || r.State == run.Running || r.State == run.Retrying {
			add(r, r.Replaced(run.Why{}, 1, run.Limits{}))
		}
		switch {
		case r.Waits(): // nobody starts it before it is let in
			add(r, r.LetIn(1))
			add(r, r.Unjoin())
		case r.State == run.Queued || r.State == run.Retrying:
			if r.State == run.Queued {
				add(r, r.Join("job:j", 1, 1))
				add(r, r.Unkeyed(1, "", 1))
			}
			add(r, r.Start("w", 1, 1))
			if !r.Spared() && r.State == run.Queued { // what is retrying has had an attempt
				add(r, r.Overlapping(run.Why{Code: run.WhyOverlap}, false, 1, 1))
			}
			add(r, r.GiveUp(1, "", run.Limits{}))
		}
		if r.State.Ended() && !r.Missed() {
			add(r, r.Reopen(generation, 0, ""))
		}
		if r.State != run.Running {
			continue
		}
		cancelled := r
		cancelled.Cancel = true
		for _, r := range []run.Run{r, cancelled} {
			for _, l := range limits {
				for _, permanent := range []bool{false, true} {
					add(r, r.Fail(1, run.Failure{Permanent: permanent}, l))
				}
				add(r, r.Crash(1, "", l))
				add(r, r.Succeed(1, run.Ref{}, "", l))
				add(r, r.Cancelled(1, "", l))
			}
			add(r, r.HandBack(1, "", "", run.Limits{}))
		}
	}
	return found
}
