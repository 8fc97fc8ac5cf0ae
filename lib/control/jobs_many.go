package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// Seen is a job that somebody names: as it was when they saw it, where ETag is given.
type Seen struct {
	Name string
	ETag string // of job.Job.ETag; "" for the job as it stands
}

// JobBulk says how to change many jobs.
type JobBulk struct {
	Jobs      []Seen    // those named; nil: those that a filter chooses
	Cursor    string    // with a filter: JobOutcome.Next of the call before
	Max       int       // with a filter: change at most so many; 0: MaxLimit
	Since     time.Time // refuse those that somebody has changed after it; zero: none
	PerSecond float64   // 0: as fast as it goes
	DryRun    bool      // change nothing
}

// JobOutcome is what became of many jobs, in the order in which they were come to.
type JobOutcome struct {
	Verdicts  []JobVerdict // of a dry run with a filter, the first of those that would be changed or refused
	Count     int          // how many were changed; of a dry run, how many would be
	Next      string       // more may match: JobBulk.Cursor of the next call
	Remaining []Seen       // of JobBulk.Jobs, those that the time was too short for
	At        time.Time    // when they were looked at: JobBulk.Since of a call that is to change none that was changed since
}

// JobVerdict is what became of one job.
type JobVerdict struct {
	Name    string
	Job     job.Job // as it stands now, where Err is nil
	Changed bool    // or would be
	Err     error   // why it was left as it is
}

// PauseMany pauses jobs. One that is paused already stays as it is, with its reason.
func (s *Service) PauseMany(ctx context.Context, tenant string, f JobFilter, b JobBulk, reason string) (JobOutcome, error) {
	if err := pauseReason(reason); err != nil {
		return JobOutcome{}, err
	}
	return s.alterMany(ctx, tenant, f, b, func(j *job.Job) (bool, error) {
		if j.Def.Paused {
			return false, nil
		}
		j.Def.Paused, j.Reason = true, reason
		return true, nil
	})
}

// ResumeMany resumes jobs, as Resume does.
func (s *Service) ResumeMany(ctx context.Context, tenant string, f JobFilter, b JobBulk) (JobOutcome, error) {
	return s.alterMany(ctx, tenant, f, b, resuming)
}

// DeleteMany deletes jobs, as Delete does.
func (s *Service) DeleteMany(ctx context.Context, tenant string, f JobFilter, b JobBulk) (JobOutcome, error) {
	return s.overJobs(ctx, f, &altering{tenant: tenant, bulk: b, do: deleting, act: func(ctx context.Context, name string, match Match) (job.Job, bool, error) {
		return s.end(ctx, tenant, name, match, b.Since)
	}})
}

// LabelMany gives jobs labels and takes others from them. A job that would have too many is left as it is, by an *invalid.Error.
func (s *Service) LabelMany(ctx context.Context, tenant string, f JobFilter, b JobBulk, set map[string]string, remove []string) (JobOutcome, error) {
	err := CheckLabels(set, remove)
	if len(set)+len(remove) == 0 {
		err = invalid.Missing("set", "labels to set, or remove with names of labels")
	}
	if err != nil {
		return JobOutcome{}, err
	}
	return s.alterMany(ctx, tenant, f, b, func(j *job.Job) (bool, error) {
		labels := maps.Clone(j.Def.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, set)
		for _, name := range remove {
			delete(labels, name)
		}
		if maps.Equal(labels, j.Def.Labels) {
			return false, nil
		}
		j.Def.Labels = labels
		return true, job.CheckLabels("labels", labels)
	})
}

// CheckLabels gives what LabelMany refuses of labels whatever jobs have: joined *invalid.Error.
func CheckLabels(set map[string]string, remove []string) error {
	wrong := []error{job.CheckLabels("set", set)}
	for i, name := range remove {
		if _, both := set[name]; both {
			wrong = append(wrong, invalid.Field(fmt.Sprintf("remove[%d]", i), name, "labels that are not set in the same request"))
		}
	}
	return errors.Join(wrong...)
}

func (s *Service) alterMany(ctx context.Context, tenant string, f JobFilter, b JobBulk, do alteration) (JobOutcome, error) {
	return s.overJobs(ctx, f, &altering{tenant: tenant, bulk: b, do: do, act: func(ctx context.Context, name string, match Match) (job.Job, bool, error) {
		return s.alter(ctx, tenant, name, match, b.Since, do)
	}})
}

// altering is a request over many jobs under way.
type altering struct {
	*Service
	tenant string
	bulk   JobBulk
	do     alteration
	act    func(ctx context.Context, name string, match Match) (j job.Job, changed bool, err error) // does it
	end    time.Duration                                                                            // of the time that it may take, by the clock that is never stepped
	out    JobOutcome
}

// overJobs changes jobs, several at once unless a rate is asked for. Each has its own verdict; the error is for what ended the whole. A job that
// a filter chooses is changed as the filter found it, or refused.
func (s *Service) overJobs(ctx context.Context, f JobFilter, w *altering) (out JobOutcome, err error) {
	b := w.bulk
	if b.PerSecond != 0 && !(b.PerSecond >= slowest) {
		return out, invalid.Field("per_second", fmt.Sprint(b.PerSecond), fmt.Sprintf("a rate of at least %v", slowest))
	}
	w.Service, w.end = s, s.Dispatch.Elapsed()+BulkTime
	w.out = JobOutcome{At: s.storeTime().UTC().Truncate(time.Millisecond), Next: b.Cursor}
	switch {
	case b.Jobs != nil:
		var n int
		n, err = w.all(ctx, b.Jobs)
		w.out.Remaining = b.Jobs[n:]
	case b.DryRun:
		err = w.count(ctx, f)
	default:
		err = w.matching(ctx, f)
	}
	return w.out, err
}

// paced tells whether a rate is to be kept.
func (w *altering) paced() bool { return w.bulk.PerSecond > 0 && !w.bulk.DryRun }

func (w *altering) over() bool { return w.Dispatch.Elapsed() >= w.end }

// most is how many jobs it may still change.
func (w *altering) most() int {
	if w.bulk.Jobs != nil {
		return len(w.bulk.Jobs)
	}
	most := w.bulk.Max
	if most == 0 {
		most = MaxLimit
	}
	return most - w.out.Count
}

// matching changes the jobs of a filter.
func (w *altering) matching(ctx context.Context, f JobFilter) error {
	for w.most() > 0 && len(w.out.Verdicts) < MaxLimit {
		jobs, next, err := w.Jobs(ctx, w.tenant, f, w.out.Next, min(bulkPage, MaxLimit-len(w.out.Verdicts)))
		if err != nil && len(w.out.Verdicts) > 0 {
			return nil // what was done is told, and Next says where to go on; an error would say that nothing was
		}
		if err != nil {
			return err
		}
		seen := make([]Seen, len(jobs))
		for i, j := range jobs {
			seen[i] = Seen{j.Name, j.ETag()}
		}
		n, err := w.all(ctx, seen)
		if n > 0 {
			w.out.Next = AfterJob(jobs[n-1])
		}
		if err != nil || n < len(jobs) {
			return err
		}
		if w.out.Next = next; next == "" || w.over() {
			break
		}
	}
	return nil
}

// count tells how many jobs of a filter would be changed.
func (w *altering) count(ctx context.Context, f JobFilter) error {
	for range countedPages {
		jobs, next, err := w.Jobs(ctx, w.tenant, f, w.out.Next, MaxLimit)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			v := w.try(j, Match{})
			if v.Changed {
				w.out.Count++
			}
			if len(w.out.Verdicts) < Sampled && (v.Changed || v.Err != nil) {
				w.out.Verdicts = append(w.out.Verdicts, v)
			}
		}
		if w.out.Next = next; next == "" {
			break
		}
	}
	return nil
}

// try tells what would become of a job that stands.
func (w *altering) try(j job.Job, match Match) JobVerdict {
	after := j
	changed, err := alterable(&after, match, w.bulk.Since, w.do)
	return JobVerdict{Name: j.Name, Job: j, Changed: changed && err == nil, Err: err}
}

// all changes jobs, and gives how many it came to.
func (w *altering) all(ctx context.Context, seen []Seen) (came int, err error) {
	for came < len(seen) && w.most() > 0 && !w.over() {
		several := min(fanOut, w.most(), len(seen)-came)
		if w.paced() {
			several = 1
		}
		if ctx.Err() != nil {
			return came, ctx.Err()
		}
		verdicts := make([]JobVerdict, several)
		places := make([]int, several)
		for i := range places {
			places[i] = i
		}
		parallel(places, func(i int) { verdicts[i] = w.one(ctx, seen[came+i]) })
		for _, v := range verdicts {
			if v.Changed {
				w.out.Count++
			}
		}
		w.out.Verdicts = append(w.out.Verdicts, verdicts...)
		came += several
	}
	return came, nil
}

func (w *altering) one(ctx context.Context, seen Seen) JobVerdict {
	match := Match{ETag: seen.ETag}
	if w.bulk.DryRun || w.paced() {
		j, err := w.Job(ctx, w.tenant, seen.Name)
		if err != nil {
			return JobVerdict{Name: seen.Name, Err: err}
		}
		if v := w.try(j, match); w.bulk.DryRun || !v.Changed {
			return v // nothing that would keep a rate
		}
		if w.out.Count > 0 {
			w.wait(ctx)
		}
	}
	if err := job.ValidName(seen.Name); err != nil {
		return JobVerdict{Name: seen.Name, Err: err}
	}
	j, changed, err := w.act(ctx, seen.Name, match)
	return JobVerdict{Name: seen.Name, Job: j, Changed: changed && err == nil, Err: err}
}

// wait keeps the rate.
func (w *altering) wait(ctx context.Context) {
	next := time.NewTimer(time.Duration(float64(time.Second) / w.bulk.PerSecond))
	defer next.Stop()
	select {
	case <-next.C:
	case <-ctx.Done():
	}
}
