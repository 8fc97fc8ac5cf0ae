package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The bounds of a Service, in addition to those of a document.
const (
	ServedRuns     = 5_000
	ServedAttempts = 10_000
	ServedEvents   = 50_000
	ServedLooks    = 3
	ServedResult   = 256 // bytes
	ServedData     = 16 << 20
)

// Service plays scenarios for people far away, within the bounds of a server that has other work.
type Service struct{}

// Check gives what Play refuses of a scenario: joined *invalid.Errors.
func (Service) Check(document wire.Scenario) error {
	_, err := served(document)
	return err
}

// Play plays a scenario. The errors are those of Check, that of ctx, or of a simulation that went wrong by itself.
func (Service) Play(ctx context.Context, document wire.Scenario) (Report, error) {
	s, err := served(document)
	if err != nil {
		return Report{}, err
	}
	return Play(ctx, s, Options{Runs: ServedRuns, Attempts: ServedAttempts, Events: ServedEvents, Data: ServedData})
}

func served(document wire.Scenario) (Scenario, error) {
	s, err := Resolve(document)
	return s, errors.Join(err, servable(s))
}

// servable refuses what would take much memory although there are few runs.
func servable(s Scenario) error {
	var wrong []error
	small := func(field string, outcomes []Outcome) {
		for i, o := range outcomes {
			if len(o.Result) > ServedResult {
				wrong = append(wrong, invalid.Field(fmt.Sprintf("%s[%d].result", field, i), fmt.Sprintf("%d bytes", len(o.Result)),
					fmt.Sprintf("at most %d bytes here; belfry simulate takes more", ServedResult)))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Outcomes)) {
		of := s.Outcomes[name]
		field := "outcomes." + name
		for _, value := range slices.Sorted(maps.Keys(of.Is)) {
			small(field+".is."+value, of.Is[value])
		}
		if !of.By.isZero() {
			field += ".else"
		}
		small(field, of.Else)
	}
	looks := 0
	for _, l := range s.Script {
		if l.Do == Look {
			looks++
		}
		if l.Do == Look && looks > ServedLooks {
			wrong = append(wrong, invalid.Missing(fmt.Sprintf("script[%d].do", l.Number-1), fmt.Sprintf("at most %d looks here; belfry simulate takes more", ServedLooks)))
			break
		}
	}
	return errors.Join(wrong...)
}
