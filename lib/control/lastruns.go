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

	// Succeeded is when the last of its runs that succeeded ended, among those given and, where none of these has, as many records before
	// them as are looked at; zero where none of all these has.
	Succeeded time.Time
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
			newest := RunFilter{Job: name, To: come}
			runs, next, err := s.history(ctx, tenant, newest, run.ID{}, limit, examinedLast)
			if err != nil {
				return err
			}
			last[i] = LastRuns{Job: name, Runs: runs, More: next != "" && len(runs) < limit, Succeeded: succeeded(runs)}
			if next == "" || !last[i].Succeeded.IsZero() {
				return nil
			}
			behind, err := newest.behind(next)
			if err != nil {
				return err
			}
			older, _, err := s.history(ctx, tenant, RunFilter{Job: name, States: []run.State{run.Succeeded}}, behind, examinedLast, examinedLast)
			last[i].Succeeded = succeeded(older)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list the last runs of jobs: %w", err)
	}
	return last, nil
}

// succeeded is when the last of some runs that succeeded ended, zero for none.
func succeeded(runs []run.Run) time.Time {
	var ended int64
	for _, r := range runs {
		if r.State == run.Succeeded {
			ended = max(ended, r.Ended)
		}
	}
	if ended == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ended).UTC()
}
