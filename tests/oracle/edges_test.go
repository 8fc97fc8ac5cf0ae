package oracle

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// TestTheGraphIsTheOneDrawn: a run may go where docs/run.md says, and nowhere else. What a restored backup does is no part of it, since
// nothing is restored while a judge looks on.
func TestTheGraphIsTheOneDrawn(t *testing.T) {
	page, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```mermaid\n")
	diagram, _, _ := strings.Cut(rest, "```")
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(\S+) --> (\w+)(.*)`).FindAllStringSubmatch(diagram, -1) {
		if !strings.HasPrefix(m[3], ": restored") {
			drawn[strings.Replace(m[1], "[*]", "nothing", 1)+" to "+m[2]] = true
		}
	}
	held := map[string]bool{}
	for e := range edges {
		if e[0] != e[1] { // a lease that is renewed, a claim or a mark that a newer one passes
			held[stateName(e[0])+" to "+e[1].String()] = true
		}
	}
	if len(drawn) < 20 || !maps.Equal(drawn, held) {
		t.Errorf("drawn are\n%s\nheld are\n%s", strings.Join(slices.Sorted(maps.Keys(drawn)), "\n"), strings.Join(slices.Sorted(maps.Keys(held)), "\n"))
	}
	for _, s := range []run.State{run.Fenced, run.Scheduled, run.Queued, run.Running} {
		if _, ok := edges[[2]run.State{s, s}]; !ok {
			t.Errorf("%s may not be written again", s)
		}
	}
}
