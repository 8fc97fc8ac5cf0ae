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
