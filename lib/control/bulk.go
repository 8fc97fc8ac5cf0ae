package control

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Time and work of one bulk request.
const (
	// BulkTime is how long one may take its time: less than clients and gateways wait, so that it can tell what it did.
	BulkTime = 15 * time.Second

	// bulkPage is how many runs a filter chooses at once while they are acted on.
	bulkPage = 100

	// countedPages bounds a dry run's count, in pages of a listing.
	countedPages = 20

	// Sampled is how many runs a dry run with a filter shows.
	Sampled = 20

	// slowest is the lowest rate: one a day.
	slowest = 1.0 / (24 * 60 * 60)
)

// chosen is a page of runs that a filter chose: after says, for each, with which cursor to go on behind it.
type chosen struct {
	ids   []run.ID
	after func(i int) string
	next  string
}

// chooser gives the pages of a filter.
type chooser func(ctx context.Context, cursor string, limit int) (chosen, error)

// deed is what is done to each run: do changes it, try only tells whether do would.
type deed struct {
	do, try func(ctx context.Context, id run.ID) (run.Run, error)
}

// CancelMany cancels runs. A filter without states chooses all that have not ended.
func (s *Service) CancelMany(ctx context.Context, tenant string, f RunFilter, b Bulk, reason string) (Outcome, error) {
	if len(f.States) == 0 {
		f.States = []run.State{run.Scheduled, run.Queued, run.Waiting, run.Running, run.Retrying}
	}
	return s.bulk(ctx, s.chooseRuns(tenant, f), b, deed{
		do: func(ctx context.Context, id run.ID) (run.Run, error) { return s.Cancel(ctx, tenant, id, reason) },
		try: func(ctx context.Context, id run.ID) (run.Run, error) {
			r, err := s.Run(ctx, tenant, id)
			if err == nil {
				err = mayCancel(r)
			}
			return r, err
		},
	})
}

// RetryMany opens ended runs again. A filter without states chooses those that are failed or dead; none chooses dead letters that were discarded.
func (s *Service) RetryMany(ctx context.Context, tenant string, f RunFilter, b Bulk, force bool) (Outcome, error) {
	if len(f.States) == 0 {
		f.States = []run.State{run.Failed, run.Dead}
	}
	f.spare = true
	return s.bulk(ctx, s.chooseRuns(tenant, f), b, s.reopening(tenant, reopening{reason: retried, force: force, spare: b.Runs == nil}))
}

// Redrive opens dead letters again. One that was discarded is opened where it is named.
func (s *Service) Redrive(ctx context.Context, tenant string, f DeadFilter, b Bulk) (Outcome, error) {
	return s.bulk(ctx, s.chooseDeadLetters(tenant, f), b, s.reopening(tenant, reopening{reason: "redriven", spare: b.Runs == nil}))
}

func (s *Service) reopening(tenant string, how reopening) deed {
	return deed{
		do: func(ctx context.Context, id run.ID) (run.Run, error) { return s.reopen(ctx, tenant, id, how) },
		try: func(ctx context.Context, id run.ID) (run.Run, error) {
			if _, err := s.reopenable(ctx, tenant, id); err != nil {
				return run.Run{}, err
			}
			r, err := s.Run(ctx, tenant, id)
			if err == nil {
				err = how.may(r)
			}
			return r, err
		},
	}
}

func (s *Service) chooseRuns(tenant string, f RunFilter) chooser {
	return func(ctx context.Context, cursor string, limit int) (chosen, error) {
		runs, next, err := s.Runs(ctx, tenant, f, cursor, limit)
		ids := make([]run.ID, len(runs))
		for i, r := range runs {
			ids[i] = r.ID
		}
		return chosen{ids: ids, next: next, after: func(i int) string { return AfterRun(ids[i]) }}, err
	}
}

// bulk acts on runs one after the other, at the rate asked for. Each has its own verdict; the error is for what ended the
// whole, and the outcome so far is given with it.
func (s *Service) bulk(ctx context.Context, choose chooser, b Bulk, d deed) (Outcome, error) {
	if b.PerSecond != 0 && !(b.PerSecond >= slowest) {
		return Outcome{}, invalid.Field("per_second", fmt.Sprint(b.PerSecond), fmt.Sprintf("a rate of at least %v", slowest))
	}
	work := &labour{Service: s, bulk: b, deed: d, end: s.Dispatch.Elapsed() + BulkTime}
	switch {
	case b.Runs != nil:
		n, err := work.all(ctx, b.Runs)
		work.out.Remaining = b.Runs[n:]
		return work.out, err
	case b.DryRun:
		return s.count(ctx, choose, b, d)
	}
	most := b.Max
	if most == 0 {
		most = MaxLimit
	}
	for work.out.Next = b.Cursor; len(work.out.Verdicts) < most; {
		page, err := choose(ctx, work.out.Next, min(bulkPage, most-len(work.out.Verdicts)))
		if err != nil && len(work.out.Verdicts) > 0 {
			return work.out, nil // what was done is told, and Next says where to go on; an error would say that nothing was
		}
		if err != nil {
			return work.out, err
		}
		n, err := work.all(ctx, page.ids)
		if n > 0 {
			work.out.Next = page.after(n - 1)
		}
		if err != nil || n < len(page.ids) {
			return work.out, err
		}
		if work.out.Next = page.next; page.next == "" || work.over() {
			break
		}
	}
	return work.out, nil
}

// count tells how many runs a filter chooses, and what would become of the first.
func (s *Service) count(ctx context.Context, choose chooser, b Bulk, d deed) (Outcome, error) {
	out := Outcome{Next: b.Cursor}
	for range countedPages {
		page, err := choose(ctx, out.Next, MaxLimit)
		if err != nil {
			return out, err
		}
		for _, id := range page.ids[:min(len(page.ids), Sampled-len(out.Verdicts))] {
			r, err := d.try(ctx, id)
			out.Verdicts = append(out.Verdicts, Verdict{ID: id, Run: r, Err: err})
		}
		out.Count += len(page.ids)
		if out.Next = page.next; out.Next == "" {
			break
		}
	}
	return out, nil
}

// labour is a bulk request under way.
type labour struct {
	*Service
	bulk Bulk
	deed deed
	end  time.Duration // of the time that it may take, by the clock that is never stepped
	out  Outcome
}

func (l *labour) over() bool { return l.Dispatch.Elapsed() >= l.end }

// all acts on runs and gives how many it came to.
func (l *labour) all(ctx context.Context, ids []run.ID) (int, error) {
	act := l.deed.do
	if l.bulk.DryRun {
		act = l.deed.try
	}
	for i, id := range ids {
		if len(l.out.Verdicts) > 0 && l.bulk.PerSecond > 0 && !l.bulk.DryRun {
			wait := time.NewTimer(time.Duration(float64(time.Second) / l.bulk.PerSecond))
			select {
			case <-wait.C:
			case <-ctx.Done():
				wait.Stop()
			}
		}
		if ctx.Err() != nil {
			return i, ctx.Err()
		}
		if l.over() {
			return i, nil
		}
		r, err := act(ctx, id)
		if err == nil {
			l.out.Count++
		}
		l.out.Verdicts = append(l.out.Verdicts, Verdict{ID: id, Run: r, Err: err})
	}
	return len(ids), nil
}
