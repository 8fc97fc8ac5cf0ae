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

	found *job.Job // where a filter has just found it
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

// altering is what a request over many jobs does to each.
type altering struct {
	*Service
	tenant string
	bulk   JobBulk
	do     alteration
	act    func(ctx context.Context, name string, match Match) (j job.Job, changed bool, err error) // does it
}

// overJobs changes jobs, several at once unless a rate is asked for. Each has its own verdict; the error is for what ended the whole. A job that
// a filter chooses is changed as the filter found it, or refused. A dry run with a filter counts those that would be changed.
func (s *Service) overJobs(ctx context.Context, f JobFilter, w *altering) (JobOutcome, error) {
	w.Service = s
	at := s.storeTime().UTC().Truncate(time.Millisecond)
	m := many[Seen, JobVerdict]{Service: s, named: w.bulk.Jobs, choose: s.chooseJobs(w.tenant, f), most: w.bulk.Max, perSecond: w.bulk.PerSecond, dryRun: w.bulk.DryRun,
		do: w.change, try: w.try, atOnce: fanOut, spares: true}
	m.count = func(_ context.Context, seen Seen) {
		v, would := w.judge(*seen.found, Match{})
		if would {
			m.done.Count++
		}
		if len(m.done.Verdicts) < Sampled && (would || v.Err != nil) {
			m.done.Verdicts = append(m.done.Verdicts, v)
		}
	}
	err := m.run(ctx, w.bulk.Cursor)
	return JobOutcome{Verdicts: m.done.Verdicts, Count: m.done.Count, Next: m.done.Next, Remaining: m.done.Remaining, At: at}, err
}

func (s *Service) chooseJobs(tenant string, f JobFilter) chooser[Seen] {
	return func(ctx context.Context, cursor string, limit int) (chosen[Seen], error) {
		jobs, next, err := s.Jobs(ctx, tenant, f, cursor, limit)
		seen := make([]Seen, len(jobs))
		for i, j := range jobs {
			seen[i] = Seen{Name: j.Name, ETag: j.ETag(), found: &jobs[i]}
		}
		return chosen[Seen]{things: seen, next: next, after: func(i int) string { return AfterJob(jobs[i]) }}, err
	}
}

// change does it to a job, as it was seen.
func (w *altering) change(ctx context.Context, seen Seen) (JobVerdict, bool) {
	if err := job.ValidName(seen.Name); err != nil {
		return JobVerdict{Name: seen.Name, Err: err}, false
	}
	j, changed, err := w.act(ctx, seen.Name, Match{ETag: seen.ETag})
	changed = changed && err == nil
	return JobVerdict{Name: seen.Name, Job: j, Changed: changed, Err: err}, changed
}

// try tells what change would do to a job as it stands now.
func (w *altering) try(ctx context.Context, seen Seen) (JobVerdict, bool) {
	j, err := w.Job(ctx, w.tenant, seen.Name)
	if err != nil {
		return JobVerdict{Name: seen.Name, Err: err}, false
	}
	return w.judge(j, Match{ETag: seen.ETag})
}

// judge tells what would become of a job that stands.
func (w *altering) judge(j job.Job, match Match) (JobVerdict, bool) {
	after := j
	changed, err := alterable(&after, match, w.bulk.Since, w.do)
	changed = changed && err == nil
	return JobVerdict{Name: j.Name, Job: j, Changed: changed, Err: err}, changed
}
