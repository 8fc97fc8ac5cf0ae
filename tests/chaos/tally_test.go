package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/belfry-scheduler/belfry/tests/load"
)

// tally counts how often processes were killed, by where: at random moments, or at a named point.
type tally struct {
	mu    sync.Mutex
	kills map[string]map[string]int // by kind of kill, then by where
	loads []string                  // what each load came to
}

var killed = tally{kills: map[string]map[string]int{}}

func (t *tally) add(kind, where string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kills[kind] == nil {
		t.kills[kind] = map[string]int{}
	}
	t.kills[kind][where]++
}

func (t *tally) judged(name string, o load.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loads = append(t.loads, fmt.Sprintf("%s: %s", name, o))
}

// show prints the table that a run ends with.
func (t *tally) show(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kills) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(t.kills)) {
		for _, where := range slices.Sorted(maps.Keys(t.kills[kind])) {
			all += t.kills[kind][where]
			fmt.Fprintf(table, "%s\t%s\t%d\n", kind, where, t.kills[kind][where])
		}
	}
	fmt.Fprintf(table, "all\t\t%d\n", all)
	_ = table.Flush()
	for _, line := range t.loads {
		fmt.Fprintln(out, line)
	}
}
