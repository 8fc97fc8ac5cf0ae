package sim

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// read does what changes nothing.
func (u *user) read(ctx context.Context, op operation) {
	switch op {
	case opGetJob:
		u.getJob(ctx, u.name())
	case opGetRun:
		if id := u.someRun(); id != "" {
			u.getRun(ctx, id)
		}
	case opListJobs:
		u.listJobs(ctx)
	case opListRuns:
		u.listRuns(ctx, client.RunFilter{})
	case opListRunsOfJob:
		u.listRuns(ctx, client.RunFilter{Job: u.name()})
	case opDeadLetters:
		u.deadLetters(ctx)
	case opLogs:
		if id := u.someRun(); id != "" {
			_, _ = u.server.Logs(ctx, id) // any answer will do: what a log holds is checked where it is written
		}
	case opPreview:
		_, _ = u.server.Cron(ctx, pick(u.Rand, u.Mix.Pace.expressions()), pick(u.Rand, u.Mix.Zones), u.Now(), 5)
	case opStatus:
		_, _ = u.server.Queues(ctx)
		_, _ = u.server.Workers(ctx)
		_, _ = u.server.Ready(ctx)
	case opForeign:
		u.trespass(ctx)
	}
}

func (u *user) getRun(ctx context.Context, id string) oracle.Answer {
	return u.ask(ctx, oracle.Request{Op: oracle.GetRun, Run: id}, func(ctx context.Context) oracle.Answer {
		return u.ofRun(http.StatusOK, func() (wire.Run, error) { return u.server.Run(ctx, id) })
	})
}

// all reads a listing to its end.
func all[T any](listing iter.Seq2[T, error]) (items []T, err error) {
	for item, err := range listing {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (u *user) listJobs(ctx context.Context) oracle.Answer {
	return u.ask(ctx, oracle.Request{Op: oracle.ListJobs}, func(ctx context.Context) oracle.Answer {
		jobs, err := all(u.server.Jobs(ctx, client.JobFilter{}))
		a := oracle.AnswerOf(u.Now(), http.StatusOK, err)
		a.Jobs = jobs
		return a
	})
}

// listRuns lists runs, of some states or times or all.
func (u *user) listRuns(ctx context.Context, f client.RunFilter) {
	if chance(u.Rand, 0.3) {
		f.States = shuffled(u.Rand, []string{"queued", "running", "succeeded", "dead", "failed", "retrying", "scheduled"}, 2)
	}
	if chance(u.Rand, 0.5) {
		f.From = u.Now().Add(-time.Duration(u.Rand.Float64() * float64(u.Mix.Length))).Truncate(time.Millisecond)
	}
	if chance(u.Rand, 0.3) {
		f.To = u.Now().Add(-time.Duration(u.Rand.Float64() * float64(u.Mix.Length) / 10)).Truncate(time.Millisecond)
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		f.From = time.Time{}
	}
	q := oracle.Request{Op: oracle.ListRuns, Job: f.Job, States: f.States, From: f.From, To: f.To}
	u.ask(ctx, q, func(ctx context.Context) oracle.Answer {
		runs, err := all(u.server.Runs(ctx, f))
		a := oracle.AnswerOf(u.Now(), http.StatusOK, err)
		a.Runs = runs
		for _, r := range runs[:min(len(runs), 5)] {
			u.runs = remember(u.runs, r.ID)
		}
		return a
	})
}

func (u *user) deadLetters(ctx context.Context) oracle.Answer {
	return u.ask(ctx, oracle.Request{Op: oracle.DeadLetters}, func(ctx context.Context) oracle.Answer {
		letters, err := all(u.server.DeadLetters(ctx, wire.DeadFilter{}))
		a := oracle.AnswerOf(u.Now(), http.StatusOK, err)
		a.Letters = letters
		return a
	})
}

// trespass asks for what may be another tenant's: its jobs have the same names, and its runs names that may be guessed.
func (u *user) trespass(ctx context.Context) {
	other := newUser(u.Actor, Role{Tenant: pick(u.Rand, u.Mix.Tenants)})
	if other.Tenant == u.Tenant {
		return
	}
	if id := u.someRun(); id != "" { // ours: the other must not see it
		switch u.Rand.IntN(3) {
		case 0:
			other.getRun(ctx, id)
		case 1:
			other.change(ctx, opCancel, id)
		default:
			other.change(ctx, opForce, id)
		}
	}
}
