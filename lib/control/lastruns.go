package control

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// Bounds of one call of LastRuns.
const (
	MaxLastJobs  = 100
	MaxLastRuns  = 20
	examinedLast = 100 // records of one job: what edits have left among its runs is passed over
	jobsAtOnce   = 8   // of which each reads its partitions side by side
)

// LastRuns is the newest runs of a job whose nominal time has come, newest first.
type LastRuns struct {
	Job  string
	Runs []run.Run
	More bool // older records were not looked at, and fewer runs were found than asked for
}

// LastRuns lists the newest runs of up to MaxLastJobs jobs, up to MaxLastRuns of each, in the order of the names. A job that does not exist
// has those that it left behind, or none.
func (s *Service) LastRuns(ctx context.Context, tenant string, jobs []string, limit int) ([]LastRuns, error) {
	last := make([]LastRuns, len(jobs))
	come := s.Now().Add(time.Millisecond) // exclusive: what is due now has come
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobsAtOnce)
	for i, name := range jobs {
		group.Go(func() error {
			runs, next, err := s.history(ctx, tenant, RunFilter{Job: name, To: come}, run.ID{}, limit, examinedLast)
			last[i] = LastRuns{Job: name, Runs: runs, More: next != "" && len(runs) < limit}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list the last runs of jobs: %w", err)
	}
	return last, nil
}
