package load

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// quiet is evidence of a short life in which all went well: a job that fires every second from 10 s to 12 s, is edited at
// 12.5 s into one that does so at half past, is asked for two runs, and is deleted at 15.2 s.
func quiet(t *testing.T) evidence {
	t.Helper()
	compile := func(s schedule.Spec) *schedule.Schedule {
		compiled, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	second := schedule.Duration(time.Second)
	h := history{job: "j",
		changes: []change{
			{what: "create", edit: 1, generation: 1, sent: 9_500, at: 9_600, answered: 9_700, fires: compile(schedule.Spec{Every: second})},
			{what: "edit", edit: 2, generation: 2, sent: 12_400, at: 12_500, answered: 12_550, fires: compile(schedule.Spec{Every: second, Phase: second / 2})},
			{what: "delete", sent: 15_100, answered: 15_200},
		},
		asks: []ask{{number: 1, key: "k", ids: []string{"j~a", "j~a"}}, {number: 2, lost: true}},
	}
	e := evidence{histories: []history{h}, runs: map[string][]wire.Run{}, results: map[string]output{}, sightings: map[string]sighting{}}
	add := func(id, trigger string, at, generation int64, asked int) {
		nominal := time.UnixMilli(at)
		e.runs["j"] = append(e.runs["j"], wire.Run{ID: id, Job: "j", Generation: generation, State: "succeeded", Trigger: trigger,
			NominalTime: nominal, Attempt: 2, Fence: 5, EndedAt: nominal.Add(time.Second)})
		e.results[id] = output{result: string(answered(5)), logs: true, log: string(answered(5))}
		for attempt, fence := range map[int]uint64{1: 2, 2: 5} {
			e.calls = append(e.calls, call{run: id, job: "j", attempt: attempt, fence: fence, nominal: nominal,
				arrived: nominal.Add(time.Duration(attempt) * time.Millisecond), edit: int(generation), ask: asked, answer: 200})
		}
		e.sightings[id] = sighting{state: "succeeded", ended: nominal.Add(time.Second), fence: 5}
	}
	for _, at := range []int64{10_000, 11_000, 12_000} {
		add("j~"+time.UnixMilli(at).String(), "schedule", at, 1, 0)
	}
	for _, at := range []int64{13_500, 14_500} {
		add("j~"+time.UnixMilli(at).String(), "schedule", at, 2, 0)
	}
	add("j~a", "request", 11_200, 1, 1)
	add("j~b", "request", 11_300, 1, 2)
	return e
}

func TestCheckerFindsWhatIsPlanted(t *testing.T) {
	if found := quiet(t).violations(); len(found) > 0 {
		t.Fatalf("found in what is well: %q", found)
	}
	for name, row := range map[string]struct {
		plant func(e *evidence, runs []wire.Run)
		want  string
	}{
		"an accepted run is gone":           {func(e *evidence, r []wire.Run) { e.runs["j"] = slices.Delete(r, 5, 6) }, "P1"},
		"a run that was called is gone":     {func(e *evidence, r []wire.Run) { e.runs["j"] = slices.Delete(r, 6, 7) }, "P1"},
		"a success that no target gave":     {func(e *evidence, _ []wire.Run) { e.calls = e.calls[2:] }, "P1"},
		"a fire without its run":            {func(e *evidence, r []wire.Run) { e.runs["j"] = slices.Delete(r, 1, 2) }, "P2"},
		"a run listed twice":                {func(e *evidence, r []wire.Run) { e.runs["j"] = append(r, r[0]) }, "P2"},
		"a fire under the wrong definition": {func(_ *evidence, r []wire.Run) { r[3].Generation = 1 }, "P2"},
		"an early call":                     {func(e *evidence, _ []wire.Run) { e.calls[0].arrived = e.calls[0].nominal.Add(-1) }, "P3"},
		"dead, and nobody's fault":          {func(_ *evidence, r []wire.Run) { r[0].State = "dead" }, "P2"},
		"cancelled by nobody":               {func(_ *evidence, r []wire.Run) { r[0].State = "cancelled" }, "P2"},
		"a run that never ends":             {func(_ *evidence, r []wire.Run) { r[0].State = "retrying" }, "P4"},
		"at most once, called twice":        {func(e *evidence, _ []wire.Run) { e.histories[0].kind.AtMostOnce = true }, "P5"},
		"the result of an older fence":      {func(e *evidence, r []wire.Run) { e.results[r[0].ID] = output{result: string(answered(2))} }, "P6"},
		"a result that lost its end":        {func(e *evidence, r []wire.Run) { e.results[r[0].ID] = output{result: string(answered(5)[:9])} }, "P1"},
		"a log of another attempt": {func(e *evidence, r []wire.Run) {
			e.results[r[0].ID] = output{result: string(answered(5)), logs: true, log: string(answered(2))}
		}, "P1"},
		"one fence for two attempts":            {func(e *evidence, _ []wire.Run) { e.calls[0].fence, e.calls[1].fence = 5, 5 }, "P6"},
		"an attempt called twice":               {func(e *evidence, _ []wire.Run) { e.calls = append(e.calls, e.calls[0]) }, "P6"},
		"a target saw more than the run tells":  {func(_ *evidence, r []wire.Run) { r[0].Attempt = 1 }, "P6"},
		"another end than the one seen":         {func(_ *evidence, r []wire.Run) { r[0].EndedAt = r[0].EndedAt.Add(1) }, "P7"},
		"an old definition's run after an edit": {func(_ *evidence, r []wire.Run) { r[2].NominalTime = time.UnixMilli(13_000) }, "P8"},
		"a run after the delete": {func(e *evidence, r []wire.Run) {
			r[4].NominalTime = time.UnixMilli(15_500)
		}, "P8"},
		"called by another definition": {func(e *evidence, _ []wire.Run) { e.calls[0].edit = 2 }, "P8"},
		"on demand under an old definition": {func(_ *evidence, r []wire.Run) {
			r[5].NominalTime = time.UnixMilli(12_600)
		}, "P8"},
		"one key, two answers":             {func(e *evidence, _ []wire.Run) { e.histories[0].asks[0].ids[1] = "j~b" }, "P9"},
		"one key, two runs":                {func(e *evidence, _ []wire.Run) { e.calls[len(e.calls)-1].ask = 1 }, "P9"},
		"a run on demand nobody asked for": {func(e *evidence, _ []wire.Run) { e.histories[0].asks[1].lost = false }, "P9"},
	} {
		t.Run(name, func(t *testing.T) {
			e := quiet(t)
			row.plant(&e, e.runs["j"])
			found := e.violations()
			if !slices.ContainsFunc(found, func(v string) bool { return strings.HasPrefix(v, row.want+": ") }) {
				t.Errorf("want one of %s, found %q", row.want, found)
			}
		})
	}
}
