package wire

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// FiresOf gives up to count fires after an instant.
func FiresOf(compiled *schedule.Schedule, from time.Time, count int) []Fire {
	fires := make([]Fire, 0, count)
	for at, ok := compiled.Next(from); ok && len(fires) < count; at, ok = compiled.Next(at) {
		fires = append(fires, FireForm(compiled.Fire(at)))
	}
	return fires
}

// FireForm shows a fire.
func FireForm(f schedule.Fire) Fire {
	return Fire{At: f.At, Local: f.Local, Mark: string(f.Mark), Asked: f.Asked}
}

// CronForm shows what a cron expression means, and its next fires after an instant.
func CronForm(compiled *schedule.Schedule, from time.Time, count int) Cron {
	fires := FiresOf(compiled, from, count)
	c := Cron{Description: compiled.Describe(), Next: make([]time.Time, len(fires)), Fires: fires, Fields: []CronField{}, Elsewhere: []CronElsewhere{}}
	for i, f := range fires {
		c.Next[i] = f.At
	}
	for _, p := range compiled.Parts() {
		c.Fields = append(c.Fields, CronField(p))
	}
	for _, e := range compiled.Elsewhere(from) {
		c.Elsewhere = append(c.Elsewhere, CronElsewhere{e.System, append([]string{}, e.Expressions...), append([]string{}, e.Notes...)})
	}
	return c
}
