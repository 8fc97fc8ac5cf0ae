package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// pauseAfter pauses the job of a run with whose end as many have ended badly in a row as the job says. One that was edited since the run's generation has begun
// to count anew: it goes on, and so does one that was resumed. Asked for again, it finishes what an earlier call for the run has left. Of many that end badly at once each
// asks, and one pauses: the others read the job, and no more.
func (s *Service) pauseAfter(ctx context.Context, r run.Run) error {
	paused := false
	_, err := s.editTelling(ctx, r.Tenant, r.ID.Job, func(j *job.Job) (bool, error) {
		reason := fmt.Sprintf("pause_after: %s in a row ended badly, the last of them %s, which is %s", countOf(j.Def.PauseAfter), r.ID, r.State)
		paused = j.Generation == r.Generation && !j.Deleted && !j.Def.Paused && j.Def.PauseAfter > 0
		switch {
		case paused:
			j.Def.Paused, j.Reason = true, reason
			return true, nil
		case j.Def.Paused && j.Reason == reason: // whoever did so may have died before its fences stood
			return false, nil
		}
		return false, errOthers
	}, func() {
		if paused {
			s.Dispatch.Metrics.JobsPaused.Inc()
			s.Log.WarnContext(ctx, "a job is paused, since its runs end badly", "tenant", r.Tenant, "job", r.ID.Job, "run", r.ID.String())
		}
	})
	if errors.Is(err, errOthers) {
		return nil
	}
	return err
}

// errOthers says that a job is as others have left it, who have seen to that.
var errOthers = errors.New("nothing to pause")

func countOf(runs int) string {
	if runs == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", runs)
}
