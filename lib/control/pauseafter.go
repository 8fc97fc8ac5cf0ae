package control

import (
	"context"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// pauseAfter pauses the job of a run with whose end as many have ended badly in a row as the job says. One that was edited since the run's generation has begun
// to count anew: it goes on, and so does one that was resumed. Asked for again, it finishes what an earlier call has left.
func (s *Service) pauseAfter(ctx context.Context, r run.Run) error {
	paused := false
	_, err := s.edit(ctx, r.Tenant, r.ID.Job, func(j *job.Job) (bool, error) {
		paused = j.Generation == r.Generation && !j.Deleted && !j.Def.Paused && j.Def.PauseAfter > 0
		if !paused {
			return false, nil
		}
		j.Def.Paused, j.Reason = true, fmt.Sprintf("pause_after: %s in a row ended badly, the last of them %s, which is %s", countOf(j.Def.PauseAfter), r.ID, r.State)
		return true, nil
	})
	if err == nil && paused {
		s.Log.WarnContext(ctx, "a job is paused, since its runs end badly", "tenant", r.Tenant, "job", r.ID.Job, "run", r.ID.String())
	}
	return err
}

func countOf(runs int) string {
	if runs == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", runs)
}
