package bench_test

import (
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

// What a step reads, writes and puts is the same at the end of the longest chain as at its beginning, but for what ticks ask for beside it.
func TestWorkflowCountsTheSameForTheLastStep(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	var told atomic.Int64
	r, err := bench.Workflow{For: 200 * time.Millisecond, Callers: 4, Workers: 20}.Run(t.Context(), hostOf(folder, &told))
	if err != nil {
		t.Fatal(err)
	}
	type way struct {
		kind           string
		callers, calls int
	}
	want := []way{{bench.OneRun, 1, 1}, {bench.ShortFlow, 1, 10}, {bench.OneRun, 4, 1}, {bench.ShortFlow, 4, 10}, {bench.ManyRuns, 1, 100}, {bench.WideFlow, 1, 101}, {bench.LongFlow, 1, 300}}
	var got []way
	for _, row := range r.Rows {
		got = append(got, way{row.Kind, row.Callers, row.Calls})
		if row.Rounds < row.Callers || row.PerSecond <= 0 || row.CallsPerSecond <= 0 || row.P50 <= 0 || row.P50 > row.P99 || row.P99 > row.Max ||
			row.Synced.Syncs == 0 || row.Synced.PerRun < 2.5 {
			t.Errorf("got %+v", row)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(r.Steps) != 3 {
		t.Fatalf("got %+v", r.Steps)
	}
	join, first, last := r.Steps[0], r.Steps[1], r.Steps[2]
	if join.First != 101 || join.Last != 101 || join.Steps != r.Rows[5].Rounds || join.Ops < 3 || join.P50 <= 0 {
		t.Errorf("the join: %+v", join)
	}
	if first.First != 2 || first.Last != 11 || last.First != 291 || last.Last != 300 || first.Steps != 10*r.Rows[6].Rounds || last.Steps != first.Steps || first.P50 <= 0 || last.P50 <= 0 {
		t.Errorf("the longest chain: %+v and %+v", first, last)
	}
	const ticks = 5
	if first.Ops < 3 || last.Reads > first.Reads+ticks || last.Items > first.Items+ticks || last.Ops > first.Ops+ticks {
		t.Errorf("a step asks the store for %+v at the beginning, and for %+v at the end", first, last)
	}
	gone(t, folder)
}
