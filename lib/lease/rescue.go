package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// RescueConfig is what a Rescue stands on. Fields without a default are required.
type RescueConfig struct {
	Dispatch *dispatch.Dispatcher
	Blobs    *blob.Bucket
	Metrics  *metrics.Registry
	Log      *slog.Logger // default: discards
}

// Rescue sees to the runs of messages that a queue has given up, after it has handed them out as often as it may. The run as it stands
// decides: what is well goes back to work, and what no worker survives is dead.
type Rescue struct {
	RescueConfig
}

func (r *Rescue) keep(ctx context.Context, m queue.Message, why error) error {
	return lost{r.Dispatch, r.Blobs, r.Metrics, r.Log}.keep(ctx, m, why)
}

// NewRescue checks the configuration.
func NewRescue(cfg RescueConfig) (*Rescue, error) {
	if cfg.Dispatch == nil || cfg.Blobs == nil || cfg.Metrics == nil {
		return nil, errors.New("lease: Dispatch, Blobs and Metrics are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Rescue{cfg}, nil
}

// See sees to a message; nil says that nothing more is to be done for it, and that it may be deleted. What goes back to work does so
// after a while at the earliest, so that those which were given up together come apart.
func (r *Rescue) See(ctx context.Context, m queue.Message, after time.Duration) error {
	message, err := run.DecodeMessage(m.Body)
	if err != nil {
		return r.keep(ctx, m, err)
	}
	for range maxRounds {
		standing, err := r.Dispatch.ReadRuns(ctx, []run.Run{message.Run})
		if err != nil {
			return fmt.Errorf("read run %s: %w", message.Run.ID, err)
		}
		err = r.decide(ctx, standing[0], message, after)
		if store.AsConflict(err) == nil {
			return err
		}
	}
	return fmt.Errorf("run %s: overtaken %d times", message.Run.ID, maxRounds)
}

// maxReturns is how often a message comes back that was given up though nothing has happened to its run. Once: workers may have been
// away, or the function that they are refused to start, and its neighbours in a batch may have been at fault. What is given up again
// is.
const maxReturns = 1

// decide does what the run asks for. A *store.Conflict says that it stands otherwise by now.
func (r *Rescue) decide(ctx context.Context, standing run.Run, message run.Message, after time.Duration) error {
	now, err := r.Dispatch.Clock()
	if err != nil {
		return err
	}
	switch {
	case standing.Version != 0 && standing.State == 0:
		return errors.New("the run's record is of a newer version: deploy that here, too")
	case standing.Version == 0, standing.State == run.Fenced, standing.State == run.Scheduled, standing.State.Ended(), standing.Waits(), standing.Suspended(), standing.Heads():
		return found(ctx, r.Dispatch, standing) // there is no run, or it needs no message: what is scheduled has its timer, and who waits is let in
	}
	edition, err := r.Dispatch.EditionOf(ctx, standing)
	if errors.Is(err, job.ErrNotFound) {
		r.Log.ErrorContext(ctx, "a run's definition is gone", "tenant", standing.Tenant, "run", standing.ID.String())
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the job of run %s: %w", standing.ID, err)
	}
	limits := dispatch.Limits(edition.Def)
	due := standing.NextAt
	switch {
	case standing.State == run.Running && !r.Dispatch.LeaseOver(standing.Lease, now):
		due = standing.Lease + 1000 // whoever gets it then sees whether its worker lives
	case standing.State == run.Running:
		ended, err := r.Dispatch.PutRun(ctx, standing.Crash(now, "its lease ran out", limits), edition.Def.On, now)
		if err != nil {
			return err
		}
		count(r.Metrics, ended, run.OutcomeCrashed)
		if ended.State != run.Queued {
			return left(ctx, r.Dispatch, ended)
		}
		standing = ended
	case standing.TooLate(now):
		_, err := r.Dispatch.Expire(ctx, standing, now)
		return err
	case standing.Version == message.Run.Version && message.Returns >= maxReturns:
		// Durable with this write: that the run is dead, why, and its listing among the dead letters. A crash before it leaves the message,
		// which comes again; one after it, too, and then finds the end.
		dead, err := r.Dispatch.PutRun(ctx, standing.GiveUp(now, "no worker could start it: its message was given up twice", limits), edition.Def.On, now)
		if err != nil {
			return err
		}
		r.Log.ErrorContext(ctx, "a run is dead that no worker could start", "tenant", dead.Tenant, "run", dead.ID.String())
		return left(ctx, r.Dispatch, r.Dispatch.MayHold(ctx, dead, edition)) // it may have been let in, and never started
	}
	if dispatch.WaitsInStore(standing, now) {
		return nil // its timer sends it
	}
	next := run.Message{Run: standing, Sent: now, Returns: 1}
	if standing.Version == message.Run.Version {
		next.Returns = message.Returns + 1
	}
	q := r.Dispatch.Queues[edition.Def.Queue]
	if q == nil {
		r.Log.ErrorContext(ctx, "no workers of that name here", "queue", edition.Def.Queue, "run", standing.ID.String())
		return nil // its check tries again
	}
	// The message that was given up is deleted after this: a crash in between leaves both, and one start wins (P10).
	if err := resend(ctx, q, standing.Priority, next, max(after, time.Duration(due-now)*time.Millisecond)); err != nil {
		return fmt.Errorf("send run %s: %w", standing.ID, err)
	}
	r.Log.WarnContext(ctx, "a run goes back to work whose message was given up", "tenant", standing.Tenant, "run", standing.ID.String(),
		"state", standing.State.String(), "returns", next.Returns)
	return nil
}
