package run

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// ToldWindow is the time within which all of one event are told of together.
type ToldWindow struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"` // excluded
}

// ToldOf is what is told of one run among several: without its result, and with the beginning of its error.
type ToldOf struct {
	ToldRun
	Missed *MissedFires `json:"missed,omitempty"` // of OnMissed, whose run is their record
}

const (
	// MaxTogether is how many runs, and how many jobs, a callback that tells of several names. All are counted.
	MaxTogether = 20

	// maxErrorTogether is how long an error may be that is told beside others, in bytes.
	maxErrorTogether = 200
)

// Together has a callback tell of all that calls tell of, whose ends are to lie in one window of that length. Each of them may tell of several already. It is the first of calls, as they are to be told, and stays in all else what it is.
func Together(calls []Run, window time.Duration) Run {
	first := calls[0]
	until := time.UnixMilli(job.Callback{Window: schedule.Duration(window)}.Until(first.Created)).UTC()
	var all Told
	for i := range calls {
		var one Told
		// What cannot be read is counted: a newer Belfry may have written it.
		_ = json.Unmarshal(calls[i].Payload.Inline, &one)
		if one.Count == 0 {
			one = one.alone()
		}
		if i == 0 {
			all = one
			all.Window = &ToldWindow{From: until.Add(-window), Until: until}
			continue
		}
		all.join(one)
	}
	first.Callback.Count = all.Count
	first.Payload.Inline = all.text()
	return first
}

// alone is what tells of one run, as if it told of several.
func (t Told) alone() Told {
	of := ToldOf{ToldRun: t.Run, Missed: t.Missed}
	of.Result, of.ResultType, of.ResultCut, of.ResultLeftOut = nil, "", false, false
	of.Error = cut(of.Error, maxErrorTogether)
	t.Count, t.Jobs, t.Runs = 1, map[string]int{of.Job: 1}, []ToldOf{of}
	return t
}

// join adds what another one tells of.
func (t *Told) join(other Told) {
	t.Count += other.Count
	for _, of := range other.Runs { // whose jobs are named first
		if n := other.Jobs[of.Job]; n > 0 {
			t.name(of.Job, n)
			delete(other.Jobs, of.Job)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(other.Jobs)) {
		t.name(name, other.Jobs[name])
	}
	t.Runs = append(t.Runs, other.Runs[:min(len(other.Runs), MaxTogether-len(t.Runs))]...)
}

func (t *Told) name(of string, n int) {
	if _, named := t.Jobs[of]; named || len(t.Jobs) < MaxTogether {
		t.Jobs[of] += n
	}
}
