//go:build emulators

package e2e

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// A job fires every three seconds while ticks come together, and more of them than anybody needs.
func firesComeAtTheirSecond(t *testing.T, f fixture) {
	p := f.target.at("fires")
	job := f.stack.put(t, "fires", object{"schedule": object{"every": "3s"}, "target": p.get()})
	for range 3 {
		var ticks sync.WaitGroup
		for range 3 {
			ticks.Go(func() { f.stack.tick(t) })
		}
		ticks.Wait()
		p.wait(t, len(p.seen())+2)
	}
	p.wait(t, 20)
	hits := inOrder(t, 3*time.Second, p)
	late := lateness(hits)
	t.Logf("%d fires, late by %v in the middle and %v at most", len(hits), late(0.5), late(1))
	seen := map[string]bool{}
	for _, r := range f.stack.runs(t, job) {
		if at := r.text("nominal_time"); seen[at] {
			t.Errorf("two runs for %s", at)
		} else {
			seen[at] = true
		}
	}
}

// inOrder waits for the calls of all fires up to the last that was called for, and gives them. It fails where a call came early, where
// two stand for one fire, or where one never comes.
func inOrder(t *testing.T, every time.Duration, paths ...*path) []hit {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var hits []hit
		for _, p := range paths {
			hits = append(hits, p.seen()...)
		}
		slices.SortFunc(hits, func(a, b hit) int { return a.nominal.Compare(b.nominal) })
		missing := time.Time{}
		for i, h := range hits {
			if h.at.Before(h.nominal) {
				t.Fatalf("P3: called %v before %v", h.nominal.Sub(h.at), h.nominal)
			}
			if i == 0 {
				continue
			}
			switch apart := h.nominal.Sub(hits[i-1].nominal); {
			case apart < every:
				t.Fatalf("P2: the fires %v and %v are %v apart, want %v", hits[i-1].nominal, h.nominal, apart, every)
			case apart > every && missing.IsZero():
				missing = hits[i-1].nominal.Add(every)
			}
		}
		if missing.IsZero() {
			return hits
		}
		if time.Now().After(deadline) {
			t.Fatalf("P2: no call for %v", missing)
		}
		<-time.After(100 * time.Millisecond) // calls may come out of order, and one of several paths
	}
}

// lateness gives the function that tells a quantile of it.
func lateness(hits []hit) func(float64) time.Duration {
	late := make([]time.Duration, 0, len(hits))
	for _, h := range hits {
		late = append(late, h.late())
	}
	slices.Sort(late)
	return func(q float64) time.Duration { return late[int(q*float64(len(late)-1))].Round(time.Millisecond) }
}

// Nobody asks the second stack for a tick, so that what is further away than one tick sees is claimed by a tick of its schedule.
// What one stack has, the other does not know.
func theScheduleTicks(t *testing.T, f fixture) {
	if f.stack.name == f.second.name {
		t.Fatalf("both stacks are %s", f.stack.name)
	}
	p := f.target.at("scheduled")
	at := time.Now().Add(155 * time.Second).Truncate(time.Second) // the look-ahead is 150 s
	job := f.second.put(t, "scheduled", object{"schedule": object{"at": at.Format(time.RFC3339)}, "target": p.get()})
	f.stack.must(t, http.StatusNotFound, "GET", "/v1/jobs/"+job, nil)
	hits := p.wait(t, 1)
	if !hits[0].nominal.Equal(at) || hits[0].at.Before(at) {
		t.Errorf("called at %v for %v, want %v", hits[0].at, hits[0].nominal, at)
	}
	t.Logf("late by %v", hits[0].late().Round(time.Millisecond))
	if ended := f.second.ended(t, hits[0].run); ended.text("state") != "succeeded" {
		t.Errorf("ended as %v", ended)
	}
	if n := len(p.seen()); n != 1 {
		t.Errorf("%d calls, want one", n)
	}
}
