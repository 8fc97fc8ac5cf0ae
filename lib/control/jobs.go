package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Job reads a job.
func (s *Service) Job(ctx context.Context, tenant, name string) (job.Job, error) {
	if err := job.ValidName(name); err != nil {
		return job.Job{}, err
	}
	j, err := s.Dispatch.Book.Job(ctx, tenant, name)
	if err != nil {
		return job.Job{}, err
	}
	return j, existing(&j)
}

// Named reads jobs by name, in the order of the names. What is not there has Generation 0.
func (s *Service) Named(ctx context.Context, tenant string, names []string) ([]job.Job, error) {
	for _, name := range names {
		if err := job.ValidName(name); err != nil {
			return nil, err
		}
	}
	jobs, err := s.Dispatch.Book.Jobs(ctx, tenant, names...)
	for i, j := range jobs {
		if j.Broken != nil {
			return nil, j.Broken
		}
		if existing(&j) != nil {
			jobs[i] = job.Job{Tenant: tenant, Name: names[i]}
		}
	}
	return jobs, err
}

// examinedJobs bounds how many jobs one call of their listing looks at: as many as the largest page holds, so that none takes longer.
const examinedJobs = MaxLimit

// maxJobBytes is how many bytes the records of one page of jobs have together, or it holds one job.
const maxJobBytes = 8 << 20

// Jobs lists jobs by name. A page may be shorter than limit and still have a next one, where the filter leaves out many or jobs are large.
func (s *Service) Jobs(ctx context.Context, tenant string, f JobFilter, cursor string, limit int) (jobs []job.Job, next string, err error) {
	after, err := readCursor(cursor, func(name string) bool { return job.ValidName(name) == nil })
	if err != nil {
		return nil, "", err
	}
	limit = pageLimit(limit)
	ranges := make([]store.Range, job.Spread)
	from, to := f.Prefix, ""
	if f.Prefix != "" {
		to = f.Prefix + "\xff" // names are ASCII
	}
	if after != "" {
		from = max(from, after+"\x00")
	}
	read := limit
	if len(f.Labels) > 0 || f.Paused != nil || f.Bounded || f.Contains != "" { // most will be left out
		read = examinedJobs
	}
	for n := range ranges {
		ranges[n] = store.Range{Partition: job.Partition(tenant, n), From: from, To: to, Limit: pageOf(read, job.Spread)}
	}
	seen, bytes := 0, 0
	err = s.merge(ctx, ranges, func(_ int, item store.Item) (bool, error) {
		if len(jobs) == limit || seen == examinedJobs || len(jobs) > 0 && bytes+item.Size() > maxJobBytes {
			next = cursorAfter(after)
			return false, nil
		}
		seen++
		after = item.Sort
		j, err := job.FromItem(tenant, item.Sort, item)
		if err != nil {
			s.unreadable(tenant, item, err)
		} else if !j.Deleted && f.matches(j) {
			jobs = append(jobs, j)
			bytes += item.Size()
		}
		return true, nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	return jobs, next, nil
}

// AfterJob is the cursor of a page that ends with this job, in place of the one that Jobs gave.
func AfterJob(j job.Job) string { return cursorAfter(j.Name) }

func (f JobFilter) matches(j job.Job) bool {
	if f.Bounded && j.Def.Overlap.IsZero() || f.Paused != nil && *f.Paused != j.Def.Paused || !strings.HasPrefix(j.Name, f.Prefix) ||
		f.Contains != "" && !strings.Contains(strings.ToLower(j.Name), strings.ToLower(f.Contains)) {
		return false
	}
	for key, want := range f.Labels {
		if got, ok := j.Def.Labels[key]; !ok || got != want {
			return false
		}
	}
	return true
}

// NextRuns is when a job fires next, up to n times; none for one that is paused or on demand.
func (s *Service) NextRuns(j job.Job, n int) []time.Time {
	if !j.Active() {
		return nil
	}
	schedule, err := s.Dispatch.Book.Draft(j.Def) // not remembered: pages of jobs would push out what the ticks need
	if err != nil {
		return nil // Fault says why
	}
	var fires []time.Time
	for at, ok := schedule.Next(s.Now()); ok && len(fires) < n; at, ok = schedule.Next(at) {
		fires = append(fires, at)
	}
	return fires
}
