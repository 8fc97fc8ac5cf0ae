package control

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// counted has a definition end as its MaxRuns says, counted after an instant, unless it does already.
func (s *Service) counted(def job.Definition, after time.Time) job.Definition {
	if _, ends := def.FinalRun(); ends || def.MaxRuns == 0 {
		return def
	}
	fires, err := s.Dispatch.Book.Draft(def)
	if err != nil || fires == nil {
		return def // it has none: its job is parked, which says why
	}
	return def.CountEnd(fires, after)
}

// recounted is counted for a definition whose end may have been counted after a later instant. One that was counted before that, and comes sooner, stands.
func (s *Service) recounted(def job.Definition, after time.Time) job.Definition {
	anew := s.counted(def.WithoutCountedEnd(), after)
	stands, ends := def.FinalRun()
	if final, ok := anew.FinalRun(); ends && (!ok || stands.Before(final)) {
		return def
	}
	return anew
}
