package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/stats"
)

// What counts as failed, and how long a run is followed, the pages of the console know from here.
func TestTheConsoleCountsAsTheServerDoes(t *testing.T) {
	var classes strings.Builder
	for _, class := range run.Classes() {
		var states []string
		for _, s := range class.States() {
			states = append(states, "'"+s.String()+"'")
		}
		fmt.Fprintf(&classes, "  %s: [%s],\n", class, strings.Join(states, ", "))
	}
	path := filepath.Join("..", "console", "web", "src", "outcomes.ts")
	want := fmt.Sprintf(`// Written by make generate: how runs are counted.
import type { State } from './model'

/** followed is for how many hours at least a run is looked at that has not ended. */
export const followed = %d

/** outcomes are the states that are counted together. */
export const outcomes: Record<'%s', State[]> = {
%s}
`, stats.Within/time.Hour, joined(run.Classes(), "' | '"), classes.String())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not how the server counts (%v); make generate writes it", path, err)
	}
}

func joined(classes []run.Class, by string) string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = c.String()
	}
	return strings.Join(names, by)
}

// TestAnOpenRunIsCountedOnce: as one that is to be looked at again, or as one that is not.
func TestAnOpenRunIsCountedOnce(t *testing.T) {
	c := stats.Counts{Open: 5}
	c.Add(run.Run{State: run.Succeeded})
	if got := countsForm(&c, 2); got.Open != 3 || got.Unended != 2 || got.Due != 6 || got.Succeeded != 1 {
		t.Errorf("%+v", got)
	}
}
