package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/calendar"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func source(t *testing.T, name string, spec schedule.Spec) calendar.Source {
	t.Helper()
	compiled, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return calendar.Source{Tenant: "acme", Name: name, Edition: &job.Edition{Def: job.Definition{Schedule: &spec}, Schedule: compiled}}
}

func at(t time.Time) *time.Time { return &t }

var monday = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func TestLoadCountsWhatIsDue(t *testing.T) {
	sources := []calendar.Source{
		source(t, "hourly", schedule.Spec{Cron: "0 * * * *"}),
		source(t, "nine", schedule.Spec{Cron: "0 9 * * *", Timezone: "Europe/Berlin"}), // 08:00 UTC
		source(t, "often", schedule.Spec{Cron: "*/20 8 * * *"}),
		source(t, "once", schedule.Spec{At: at(monday.Add(8*time.Hour + 30*time.Minute))}),
		source(t, "never", schedule.Spec{At: at(monday.AddDate(1, 0, 0))}),
	}
	got := calendar.Window{From: monday, Step: time.Hour, Bins: 24}.Count(sources, 1000)
	for bin, n := range got.Fires {
		if want := map[bool]int{true: 6, false: 1}[bin == 8]; n != want {
			t.Errorf("hour %d: %d fires, want %d", bin, n, want)
		}
	}
	if got.Total != 29 || got.Jobs != 4 || got.Peak != 8 || got.More != 0 {
		t.Errorf("got %+v", got)
	}
	if want := []calendar.Share{{"often", 3}, {"hourly", 1}, {"nine", 1}, {"once", 1}}; !reflect.DeepEqual(got.At, want) {
		t.Errorf("the peak is of %+v, want %+v", got.At, want)
	}
	if got.Minutes[0] != 26 || got.Minutes[20] != 1 || got.Minutes[30] != 1 || got.Minutes[40] != 1 {
		t.Errorf("by minute: %v", got.Minutes)
	}
}

// A fire at the end of a window is of the next one, and one at its begin is of this.
func TestLoadTakesTheBeginAndLeavesTheEnd(t *testing.T) {
	each := []calendar.Source{source(t, "a", schedule.Spec{Cron: "*/5 * * * *"})}
	for _, bins := range []int{1, 7, 33, 300} {
		w := calendar.Window{From: monday, Step: 5 * time.Minute, Bins: bins}
		if got := w.Count(each, 1000); got.Total != bins || len(got.Fires) != bins {
			t.Errorf("%d bins: %d fires in %d", bins, got.Total, len(got.Fires))
		}
	}
}

func TestLoadIsWhenRunsAreDueAndNotWhenJobsFire(t *testing.T) {
	var sources []calendar.Source
	for i := range 40 {
		sources = append(sources, source(t, fmt.Sprintf("spread-%d", i), schedule.Spec{Cron: "0 9 * * *", Jitter: schedule.Duration(10 * time.Minute)}))
	}
	w := calendar.Window{From: monday.Add(9 * time.Hour), Step: time.Minute, Bins: 15}
	got := w.Count(sources, 1000)
	if got.Total != 40 || got.Fires[0] > 20 {
		t.Errorf("jitter spreads them as %v", got.Fires)
	}
	// What fires before the window, and is due in it, is of it.
	w.From = monday.Add(9*time.Hour + 2*time.Minute)
	if late := w.Count(sources, 1000); late.Total != 40-got.Fires[0]-got.Fires[1] {
		t.Errorf("two minutes later %d are due, want %d", late.Total, 40-got.Fires[0]-got.Fires[1])
	}
}

// However a bound cuts it, what was counted is exact, and is counted up to whole steps.
func TestLoadBeyondItsBoundEndsEarlierAndStaysExact(t *testing.T) {
	random := rand.New(rand.NewPCG(37, 1))
	var sources []calendar.Source
	for i := range 30 {
		spec := schedule.Spec{Cron: fmt.Sprintf("%d */%d * * *", random.IntN(60), 1+random.IntN(6))}
		if i%3 == 0 {
			spec = schedule.Spec{Every: schedule.Duration(time.Duration(1+random.IntN(300)) * time.Minute), Jitter: schedule.Duration(time.Duration(random.IntN(600)) * time.Second)}
		}
		sources = append(sources, source(t, fmt.Sprint("job-", i), spec))
	}
	w := calendar.Window{From: monday, Step: time.Hour, Bins: 168}
	all := w.Count(sources, 1_000_000)
	if len(all.Fires) != 168 || all.Total < 2000 {
		t.Fatalf("%d fires in %d hours", all.Total, len(all.Fires))
	}
	last := -1
	for _, most := range []int{0, 5, 50, 500, 1500, all.Total - 1, all.Total} {
		got := w.Count(sources, most)
		if got.Total > most || len(got.Fires) < last {
			t.Errorf("bound %d: %d fires in %d hours", most, got.Total, len(got.Fires))
		}
		last = len(got.Fires)
		if !reflect.DeepEqual(got.Fires, all.Fires[:last]) {
			t.Errorf("bound %d: what was counted differs from what there is", most)
		}
		minutes := 0
		for _, n := range got.Minutes {
			minutes += n
		}
		if minutes != got.Total {
			t.Errorf("bound %d: %d by minute, %d in all", most, minutes, got.Total)
		}
	}
	if last != 168 {
		t.Errorf("with room for all, %d hours were counted", last)
	}
}

func TestLoadOfNothing(t *testing.T) {
	got := calendar.Window{From: monday, Step: time.Hour, Bins: 3}.Count(nil, 10)
	if got.Peak != -1 || got.Total != 0 || len(got.Fires) != 3 || got.At != nil {
		t.Errorf("got %+v", got)
	}
}

func BenchmarkLoadOfAWeek(b *testing.B) {
	spec := schedule.Spec{Cron: "* * * * *", Timezone: "Europe/Berlin"}
	compiled, err := spec.Compile()
	if err != nil {
		b.Fatal(err)
	}
	sources := make([]calendar.Source, 190)
	for i := range sources {
		sources[i] = calendar.Source{Name: fmt.Sprint(i), Edition: &job.Edition{Def: job.Definition{Schedule: &spec}, Schedule: compiled}}
	}
	for b.Loop() {
		if got := (calendar.Window{From: monday, Step: time.Hour, Bins: 168}).Count(sources, 2_000_000); got.Total < 1_900_000 {
			b.Fatal(got.Total)
		}
	}
}
