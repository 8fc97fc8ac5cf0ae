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
