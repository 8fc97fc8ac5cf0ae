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
	hits := p.wait(t, 20)
	inOrder(t, hits, 3*time.Second)
	late := lateness(hits)
	t.Logf("%d fires, late by %v in the middle and %v at most", len(hits), late(0.5), late(1))
	if late(0.5) > time.Second {
		t.Errorf("half of the fires are late by %v or more, want less than 1s", late(0.5))
	}
	seen := map[string]bool{}
	for _, r := range f.stack.runs(t, job) {
		if at := r.text("nominal_time"); seen[at] {
			t.Errorf("two runs for %s", at)
		} else {
			seen[at] = true
		}
	}
}

// inOrder fails where a call came early, where two stand for one fire, or where one is missing.
func inOrder(t *testing.T, hits []hit, every time.Duration) {
	t.Helper()
	nominals := make([]time.Time, 0, len(hits))
	for _, h := range hits {
		if h.at.Before(h.nominal) {
			t.Errorf("P3: called %v before %v", h.nominal.Sub(h.at), h.nominal)
		}
		nominals = append(nominals, h.nominal)
	}
	slices.SortFunc(nominals, time.Time.Compare)
	for i, at := range nominals[1:] {
		if apart := at.Sub(nominals[i]); apart != every {
			t.Errorf("P2: the fires %v and %v are %v apart, want %v", nominals[i], at, apart, every)
		}
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
	if !hits[0].nominal.Equal(at) || hits[0].at.Before(at) || hits[0].late() > 5*time.Second {
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
