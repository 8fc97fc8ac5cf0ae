package dispatch_test

import (
	"maps"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// What a delete ends of the fires before it: those of each generation in its own time, whose runs could yet start in time, late by their
// share of the jitter too.
func TestRecentFires(t *testing.T) {
	const at = int64(1_000_000_000_000)
	edition := func(every, jitter time.Duration) *job.Edition {
		spec := schedule.Spec{Every: schedule.Duration(every), Jitter: schedule.Duration(jitter)}
		fires, err := job.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		return &job.Edition{Def: job.Definition{Schedule: &spec}, Schedule: fires}
	}
	ids := func(runs []run.Run) map[int64]int64 {
		found := map[int64]int64{}
		for _, r := range runs {
			found[r.ID.Nominal-at] = r.Generation - at
		}
		return found
	}
	j := job.Job{Tenant: "default", Name: "a", Deleted: true, Created: at - 60_000, Past: []job.Past{{Generation: at - 60_000, Until: at - 9_000}, {Generation: at - 9_000, Until: at}}}

	fires, strays := dispatch.RecentFires(j, at, []*job.Edition{edition(2*time.Second, 0), edition(3*time.Second, 0)})
	found := ids(fires)
	want := map[int64]int64{-14_000: -60_000, -12_000: -60_000, -10_000: -60_000}
	for f := at - 9_000 + 1; f <= at; f++ {
		if f%3000 == 0 {
			want[f-at] = -9_000
		}
	}
	if len(found) != len(want) {
		t.Errorf("found %v, want %v", found, want)
	}
	for f, g := range want {
		if found[f] != g {
			t.Errorf("the fire at %d ms is of generation %d, want %d", f, found[f], g)
		}
	}

	if left, want := ids(strays), (map[int64]int64{-8_000: -60_000, -6_000: -60_000, -4_000: -60_000, -2_000: -60_000, 0: -60_000}); !maps.Equal(left, want) {
		t.Errorf("behind the end of a generation there are %v, want %v", left, want)
	}

	spread := edition(time.Second, 10*time.Minute)
	j.Created, j.Past = at-3_600_000, []job.Past{{Generation: at - 3_600_000, Until: at}}
	runs, _ := dispatch.RecentFires(j, at, []*job.Edition{spread})
	early := 0
	for _, r := range runs {
		if due := spread.Due(j.Tenant, j.Name, r.ID.Nominal); due < dispatch.Recent(at) {
			t.Errorf("the run of %d ms was due at %d ms", r.ID.Nominal-at, due-at)
		}
		if r.ID.Nominal < at-60_000 {
			early++
		}
	}
	if early == 0 || len(runs) < 200 {
		t.Errorf("%d runs, %d of fires of more than a minute ago: the jitter is not looked at", len(runs), early)
	}
}
