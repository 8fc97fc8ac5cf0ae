package sim

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// TestJobsAreSound: what clients draw is never refused for its form, so that a refusal says something.
func TestJobsAreSound(t *testing.T) {
	t.Parallel()
	var kinds [4]int
	for seed := range uint64(400) {
		m := Draw(seed)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 10 {
			def := m.drawJob(r, m.Start)
			def.Payload = owned(def.Payload, "acme")
			fires, err := def.WithDefaults().Validate(func(string) bool { return true })
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			var w work
			if err := json.Unmarshal(def.Payload, &w); err != nil || w.Of != "acme" {
				t.Fatalf("seed %d: payload %s: %v", seed, def.Payload, err)
			}
			if def.Schedule == nil {
				kinds[0]++
				continue
			}
			if _, ok := fires.Next(m.Start); !ok {
				t.Fatalf("seed %d: %+v has no fire after %s", seed, def.Schedule, m.Start)
			}
			switch {
			case def.Schedule.Cron != "":
				kinds[1]++
			case def.Schedule.Every != 0:
				kinds[2]++
			default:
				kinds[3]++
			}
		}
	}
	for kind, n := range kinds {
		if n < 100 {
			t.Errorf("only %d jobs of kind %d", n, kind)
		}
	}
}

// TestEveryExpressionIsCron: one that does not parse would quietly never be simulated.
func TestEveryExpressionIsCron(t *testing.T) {
	t.Parallel()
	for _, some := range expressions {
		for _, expr := range some {
			for _, zone := range zones {
				if _, err := job.Compile(schedule.Spec{Cron: expr, Timezone: zone}); err != nil {
					t.Errorf("%s in %s: %v", expr, zone, err)
				}
			}
		}
	}
}
