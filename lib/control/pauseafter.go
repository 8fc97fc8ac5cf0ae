package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// pauseAfter pauses the job of runs with whose ends as many have ended badly in a row as the job says; all are of one job. One that was edited since a run's generation has
// begun to count anew: it goes on, and so does one that was resumed. Asked for again, it finishes what an earlier call for one of the runs has left. Of many that end badly at
// once each asks, and one pauses: the others read the job, and no more.
func (s *Service) pauseAfter(ctx context.Context, ended ...run.Run) error {
	var last run.Run // which is the one too many
	paused := false
	_, err := s.editTelling(ctx, ended[0].Tenant, ended[0].ID.Job, func(j *job.Job) (bool, error) {
		reason := func(r run.Run) string {
			return fmt.Sprintf("pause_after: %s in a row ended badly, the last of them %s, which is %s", countOf(j.Def.PauseAfter), r.ID, r.State)
		}
		i := slices.IndexFunc(ended, func(r run.Run) bool { return j.Generation == r.Generation })
		paused = i >= 0 && !j.Deleted && !j.Def.Paused && j.Def.PauseAfter > 0
		switch {
		case paused:
			last = ended[i]
			j.Def.Paused, j.Reason = true, reason(last)
			return true, nil
		case j.Def.Paused && slices.ContainsFunc(ended, func(r run.Run) bool { return j.Reason == reason(r) }):
			return false, nil // whoever did so may have died before its fences stood
		}
		return false, errOthers
	}, func() {
		if paused {
			s.Dispatch.Metrics.JobsPaused.Inc()
			s.Log.WarnContext(ctx, "a job is paused, since its runs end badly", "tenant", last.Tenant, "job", last.ID.Job, "run", last.ID.String())
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
