package cost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/cost"
)

// workflows are what the table of docs/cost.md tells of: so many steps, one after the other, or all but the last at once.
var workflows = []struct {
	what  string
	steps int
	text  string
}{
	{"10 steps, each behind the one before", 10, chainOf(10)},
	{"100 steps, each behind the one before", 100, chainOf(100)},
	{"9 steps at once, and one behind them", 10, fanOf(10)},
	{"99 steps at once, and one behind them", 100, fanOf(100)},
}

func step(n int, needs ...string) string {
	return fmt.Sprintf(`"s%03d": {"needs": [%s], "handler": {"name": "h"}}`, n, strings.Join(needs, ","))
}

func chainOf(steps int) string {
	all := []string{step(0)}
	for n := 1; n < steps; n++ {
		all = append(all, step(n, fmt.Sprintf(`"s%03d"`, n-1)))
	}
	return strings.Join(all, ",")
}

func fanOf(steps int) string {
	var all, names []string
	for n := range steps - 1 {
		all, names = append(all, step(n)), append(names, fmt.Sprintf(`"s%03d"`, n))
	}
	return strings.Join(append(all, step(steps-1, names...)), ",")
}

// workflowTable is the block "workflows": what a run takes that comes alone, by request, and what each of its steps does, the run's own share among it.
func workflowTable(t *testing.T, a *cost.Tariff, got *cost.Units) string {
	var table strings.Builder
	fmt.Fprintf(&table, "| a workflow of | write units | read units | requests to SQS | worker | $ a million runs | $ a million steps |\n|---|---|---|---|---|---|---|\n")
	for _, w := range workflows {
		s := scenario{batch: lone, handler: ok, workflow: w.text}
		takes, _ := s.count(t, got.Idle)
		dollars := cost.Sum(a.Bill(cost.Amount{}.Plus(million, takes)))
		fmt.Fprintf(&table, "| %s | %.2f | %.2f | %.2f | %.2f | %s | **%s** |\n", w.what, takes.Writes, takes.Reads, takes.SQS, takes.Worker, money(dollars), money(dollars/float64(w.steps)))
		each := float64(w.steps)
		t.Logf("%s: %.2f write units and %.2f read units a step", w.what, takes.Writes/each, takes.Reads/each)
		if takes.Writes/each > 3.5 || takes.Reads/each > 4 || takes.Writes/each < 3 || takes.Reads/each < 1.9 {
			t.Errorf("%s: %.2f write units and %.2f read units a step, want three writes and little more, and two to four reads", w.what, takes.Writes/each, takes.Reads/each)
		}
	}
	return table.String()
}
