package calendar

import (
	"cmp"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// Source is a job that fires by a schedule.
type Source struct {
	Tenant, Name string
	Edition      *job.Edition
}

// Window is a stretch of time in Bins of Step each, which is whole milliseconds.
type Window struct {
	From time.Time
	Step time.Duration
	Bins int
}

// Load is how many runs are due when.
type Load struct {
	Fires   []int   // by bin, as many as were counted: fewer than the window has where the bound was met
	Total   int     // of them together
	Jobs    int     // that have any of them
	Minutes [60]int // by the minute of the hour, in UTC
	Peak    int     // the first bin with the most; -1 where there is no fire
	At      []Share // the jobs that make the peak, most fires first, at most PeakJobs
	More    int     // other jobs that make it
}

// Share is how many of a bin's fires are of one job.
type Share struct {
	Job   string
	Fires int
}

// PeakJobs is how many jobs a peak names.
const PeakJobs = 5

// slices of a window are counted one after the other for all jobs, so that a bound cuts time and not jobs.
const parts = 32

// Count counts the fires of all sources in a window. It visits at most thrice as many fires as most, and each source once for each part of the window.
func (w Window) Count(sources []Source, most int) Load {
	counted := w.within(sources, w.Bins, (w.Bins+parts-1)/parts, most)
	if counted == 0 && w.Bins > 1 {
		counted = w.within(sources, 1, 1, most)
	}
	load := Load{Fires: make([]int, counted), Peak: -1}
	for _, s := range sources {
		any := false
		s.visit(w.at(0), w.at(counted), func(due int64) bool {
			load.Fires[(due-w.at(0))/w.Step.Milliseconds()]++
			load.Minutes[due/time.Minute.Milliseconds()%60]++
			any = true
			return true
		})
		if any {
			load.Jobs++
		}
	}
	for bin, n := range load.Fires {
		load.Total += n
		if n > 0 && (load.Peak < 0 || n > load.Fires[load.Peak]) {
			load.Peak = bin
		}
	}
	if load.Peak >= 0 {
		load.At, load.More = w.share(sources, load.Peak)
	}
	return load
}

// at is where a bin begins, in Unix ms.
func (w Window) at(bin int) int64 { return w.From.UnixMilli() + int64(bin)*w.Step.Milliseconds() }

// within gives how many of the first bins have no more than most fires together, in parts of so many.
func (w Window) within(sources []Source, bins, part, most int) int {
	for bin := 0; bin < bins; bin += part {
		end := min(bin+part, bins)
		for _, s := range sources {
			s.visit(w.at(bin), w.at(end), func(int64) bool { most--; return most >= 0 })
			if most < 0 {
				return bin
			}
		}
	}
	return bins
}

// share gives the jobs that make a bin.
func (w Window) share(sources []Source, bin int) (most []Share, more int) {
	var all []Share
	for _, s := range sources {
		n := 0
		s.visit(w.at(bin), w.at(bin+1), func(int64) bool { n++; return true })
		if n > 0 {
			all = append(all, Share{s.Name, n})
		}
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Or(b.Fires-a.Fires, cmp.Compare(a.Job, b.Job)) })
	shown := min(len(all), PeakJobs)
	return all[:shown], len(all) - shown
}

// visit calls do with when each run of a fire is due that is due from one instant up to another (Unix ms), as long as do says so.
func (s Source) visit(from, to int64, do func(due int64) bool) {
	jitter := s.Edition.Def.Schedule.Jitter.Std().Milliseconds()
	for at, ok := s.Edition.Schedule.Next(time.UnixMilli(from - jitter - 1)); ok && at.UnixMilli() < to; at, ok = s.Edition.Schedule.Next(at) {
		if due := s.Edition.Due(s.Tenant, s.Name, at.UnixMilli()); due >= from && due < to && !do(due) {
			return
		}
	}
}
