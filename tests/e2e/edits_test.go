//go:build emulators

package e2e

import (
	"net/http"
	"testing"
	"time"
)

// The look-ahead is 150 s, so that fires are claimed and sent long before an edit ends them.
func editHolds(t *testing.T, f fixture) {
	old, young := f.target.at("edit-old"), f.target.at("edit-new")
	name := f.stack.put(t, "edit", object{"schedule": object{"every": "2s"}, "target": old.get()})
	f.stack.tick(t)
	old.wait(t, 2)
	f.stack.must(t, http.StatusOK, "PUT", "/v1/jobs/"+name, object{"schedule": object{"every": "2s"}, "target": young.get()})
	answered := time.Now()
	young.wait(t, 4)
	for _, h := range old.seen() {
		if h.nominal.After(answered) {
			t.Errorf("the old definition was called for %v, and the edit was answered at %v", h.nominal, answered)
		}
	}
	inOrder(t, 2*time.Second, old, young)
}

func pauseHolds(t *testing.T, f fixture) {
	p, clock := f.target.at("pause"), f.target.at("pause-clock")
	name := f.stack.put(t, "pause", object{"schedule": object{"every": "2s"}, "target": p.get()})
	f.stack.put(t, "pause-clock", object{"schedule": object{"every": "1s"}, "target": clock.get()})
	f.stack.tick(t)
	p.wait(t, 2)
	f.stack.must(t, http.StatusOK, "POST", "/v1/jobs/"+name+"/pause", object{"reason": "to see that it holds"})
	paused := time.Now()
	clock.wait(t, len(clock.seen())+8) // meanwhile others go on
	resuming := time.Now()
	f.stack.must(t, http.StatusOK, "POST", "/v1/jobs/"+name+"/resume", object{})
	resumed := time.Now()
	for hits := 0; ; {
		all := p.wait(t, hits+1)
		hits = len(all)
		if all[hits-1].nominal.After(resumed) {
			break
		}
	}
	for _, h := range p.seen() {
		if h.nominal.After(paused) && h.nominal.Before(resuming) {
			t.Errorf("called for %v, in the pause from %v to %v", h.nominal, paused, resuming)
		}
	}
}
