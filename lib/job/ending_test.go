package job_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

var began = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

func limited(t *testing.T, n int, change ...func(*schedule.Spec)) job.Definition {
	t.Helper()
	spec := schedule.Spec{Cron: "*/5 * * * *", Timezone: "UTC"}
	for _, c := range change {
		c(&spec)
	}
	def := job.Definition{Schedule: &spec, MaxRuns: n}
	fires, err := job.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	ending := def.CountEnd(fires, began)
	if spec.CountedEnd != 0 {
		t.Fatal("the schedule that was given was changed")
	}
	return ending
}

func TestTheScheduleEndsBehindItsLastFire(t *testing.T) {
	def := limited(t, 3)
	fires, err := job.Compile(*def.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	if n, more := fires.Count(began.Add(time.Millisecond), began.AddDate(1, 0, 0), 100); n != 3 || more {
		t.Errorf("%d fires, and more: %v; want 3", n, more)
	}
	last := began.Add(15 * time.Minute)
	if final, ok := def.FinalRun(); !ok || !final.Equal(last) {
		t.Errorf("the last is %v (%v), want %v", final, ok, last)
	}
	if at, ok := fires.Last(began, began.AddDate(1, 0, 0)); !ok || !at.Equal(last) {
		t.Errorf("the schedule's last is %v (%v), want %v", at, ok, last)
	}
	if at, ok := fires.Next(last); ok {
		t.Errorf("and fires at %v", at)
	}
}

func TestAScheduleThatEndsBeforeHasNoOtherEnd(t *testing.T) {
	end := began.Add(12 * time.Minute)
	def := limited(t, 3, func(s *schedule.Spec) { s.End = &end })
	if at, ok := def.FinalRun(); ok {
		t.Errorf("it ends at %v, want its own end alone", at)
	}
}

// What is counted stands until the schedule or the number is another.
func TestAnEditOfAnythingElseGoesOnCounting(t *testing.T) {
	standing := limited(t, 3)
	over := standing.Schedule.CountedEnd
	for name, c := range map[string]struct {
		change func(*job.Definition)
		keeps  bool
	}{
		"nothing":     {func(*job.Definition) {}, true},
		"description": {func(d *job.Definition) { d.Description = "other" }, true},
		"paused":      {func(d *job.Definition) { d.Paused = true }, true},
		"number":      {func(d *job.Definition) { d.MaxRuns = 4 }, false},
		"no number":   {func(d *job.Definition) { d.MaxRuns = 0 }, false},
		"schedule":    {func(d *job.Definition) { d.Schedule = &schedule.Spec{Cron: "*/10 * * * *", Timezone: "UTC"} }, false},
		"an end":      {func(d *job.Definition) { d.Schedule.End = &began }, false},
		"none":        {func(d *job.Definition) { d.Schedule = nil }, false},
	} {
		spec := *standing.Schedule
		spec.CountedEnd = 0
		def := job.Definition{Schedule: &spec, MaxRuns: 3}
		c.change(&def)
		got := def.KeepCountedEnd(standing)
		if kept := got.Schedule != nil && got.Schedule.CountedEnd == over; kept != c.keeps {
			t.Errorf("%s: the end is kept: %v", name, kept)
		}
		if !c.keeps && got.Schedule != nil && got.Schedule.CountedEnd != 0 {
			t.Errorf("%s: it ends at %d, want it counted anew", name, got.Schedule.CountedEnd)
		}
	}
}
