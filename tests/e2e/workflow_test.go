//go:build emulators

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// width is how many steps of a workflow are released at once. The deep suite has more.
var width = 10

// Many steps end at once, in as many functions as there are, and the join behind them is released by one of these, once. Steps are called in
// attempts of their own, as the steps of the run.
func fanOut(t *testing.T, f fixture) {
	p := f.target.at("fan-out")
	steps, needs := object{}, []string{}
	for n := range width {
		name := fmt.Sprintf("s%03d", n)
		steps[name] = p.get()
		needs = append(needs, name)
	}
	join := p.get()
	join["needs"] = needs
	steps["join"] = join
	name := f.stack.put(t, "fan-out", object{"target": object{"workflow": object{"steps": steps}}})
	run := f.stack.start(t, name, object{"payload": object{"day": "monday"}})
	if ended := f.stack.ended(t, run); ended.text("state") != "succeeded" {
		t.Errorf("ended as %v", ended)
	}
	before, last := map[string]bool{}, 0
	for _, h := range p.seen() {
		of, step, _ := strings.Cut(h.run, "/")
		switch {
		case of != run || h.body != `{"day":"monday"}`:
			t.Errorf("a call of %s with %s, want steps of %s", h.run, h.body, run)
		case step == "join":
			if last++; len(before) != width {
				t.Errorf("the join was called when %d of %d steps had been", len(before), width)
			}
		case before[step]:
			t.Errorf("step %s was called again, in attempt %d", step, h.attempt)
		}
		before[step] = true
	}
	if last != 1 || len(before) != width+1 {
		t.Errorf("%d steps were called, and the join %d times, want %d and once", len(before), last, width+1)
	}
	seen := 0
	for cursor := ""; ; {
		page := f.stack.must(t, http.StatusOK, "GET", "/v1/runs/"+url.PathEscape(run)+"/steps?limit=100"+cursor, nil)
		for _, s := range page.list("items") {
			if seen++; s.text("state") != "succeeded" || s.number("attempt") != 1 {
				t.Errorf("step %s is %s after %d attempts", s.text("path"), s.text("state"), s.number("attempt"))
			}
		}
		if page.text("next") == "" {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.text("next"))
	}
	if seen != width+1 {
		t.Errorf("%d steps are listed, want %d", seen, width+1)
	}
}
