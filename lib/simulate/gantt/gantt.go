// Package gantt draws what became of a scenario over time: for a terminal, in plain characters, and as a picture that stands for itself.
package gantt

import (
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// Chart is a report over the time from From to To, both included.
type Chart struct {
	Title    string
	Report   simulate.Report
	From, To time.Time
	Zone     *time.Location // that times are shown in. Default: UTC
}

func (c Chart) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// Bounds of a chart: nobody can read more.
const (
	mostLanes = 20   // of a job
	mostRows  = 400  // in all
	mostMarks = 5000 // in a picture
)

// kind is what a mark stands for.
type kind uint8

const (
	waiting   kind = iota // due, and not in an attempt
	succeeded             // an attempt, by its outcome
	failed
	stopped // cancelled, or handed back
	running // at the end of the simulation
	skipped // a run that did not start
	missed  // a stretch of fires that the catch-up policy dropped
)

// mark is something that lasts, from 0 to To.
type mark struct {
	kind     kind
	from, to time.Time
	about    string
}

// row is a lane of a job, or below it of a step of its workflow, whose runs do not meet.
type row struct {
	job   string
	step  string // its path, "" for the job itself
	first bool   // of its job or step
	more  int    // runs that the lanes had no room for; in the last row
	steps int    // steps of the job that there was no room for; in its last row
	marks []mark
	end   time.Time
}

// rows are the lanes of all jobs, by name. gap is what stays free between two runs of a lane; left is how many jobs have no lane.
func (c Chart) rows(gap time.Duration) (rows []row, left int) {
	runs := map[string][][]mark{}
	flows := map[string]*flow{}
	for _, s := range c.Report.Skipped {
		about := fmt.Sprintf("%s: %s missed, %s to %s: %s", s.Job, count(s.Count, "fire"), c.stamp(s.From), c.stamp(s.Through), s.Reason)
		runs[s.Job] = append(runs[s.Job], []mark{{missed, s.From, s.Through, about}})
	}
	names := simulate.Names(c.Report)
	for _, r := range c.Report.Runs {
		runs[r.Job] = append(runs[r.Job], c.marks(r, names))
		if len(r.Steps) > 0 {
			if flows[r.Job] == nil {
				flows[r.Job] = &flow{runs: map[string][][]mark{}}
			}
			flows[r.Job].add(c, r)
		}
	}
	jobs := make([]string, 0, len(runs))
	for job := range runs {
		jobs = append(jobs, job)
	}
	slices.Sort(jobs)
	for i, job := range jobs {
		lanes := pack(job, "", runs[job], gap)
		if len(rows)+len(lanes) > mostRows {
			return rows, len(jobs) - i
		}
		rows = append(rows, lanes...)
		if f := flows[job]; f != nil {
			for k, path := range f.paths {
				if lanes = pack(job, path, f.runs[path], gap); len(rows)+len(lanes) > mostRows {
					rows[len(rows)-1].steps = len(f.paths) - k
					break
				}
				rows = append(rows, lanes...)
			}
		}
	}
	return rows, 0
}

// flow is what the steps of a job's runs did.
type flow struct {
	paths []string            // of those that did something, as runs came to them
	runs  map[string][][]mark // by path
}

func (f *flow) add(c Chart, r simulate.Run) {
	for _, s := range r.Steps {
		marks := c.stepMarks(r, s)
		if len(marks) == 0 {
			continue
		}
		if f.runs[s.Path] == nil {
			f.paths = append(f.paths, s.Path)
		}
		f.runs[s.Path] = append(f.runs[s.Path], marks)
	}
}

// pack puts each run of a job, or of a step, into the first lane that is free by then.
func pack(job, step string, runs [][]mark, gap time.Duration) []row {
	slices.SortStableFunc(runs, func(a, b []mark) int { return a[0].from.Compare(b[0].from) })
	lanes := []row{{job: job, step: step, first: true}}
	more := 0
	for _, marks := range runs {
		at := slices.IndexFunc(lanes, func(l row) bool { return len(l.marks) == 0 || !l.end.Add(gap).After(marks[0].from) })
		switch {
		case at < 0 && len(lanes) == mostLanes:
			more++
			continue
		case at < 0:
			lanes = append(lanes, row{job: job, step: step})
			at = len(lanes) - 1
		}
		lanes[at].marks = append(lanes[at].marks, marks...)
		lanes[at].end = marks[len(marks)-1].to
	}
	lanes[len(lanes)-1].more = more
	return lanes
}

// marks are a run's, one behind the other. names are what runs are called.
func (c Chart) marks(r simulate.Run, names map[string]string) []mark {
	due, name := r.NominalTime, c.name(r)
	if len(r.Steps) > 0 { // it has no attempts of its own
		end := c.until(r.EndedAt)
		about := fmt.Sprintf("%s: %s, %s to %s", name, r.State, c.stamp(*r.StartedAt), c.stamp(end))
		if r.Reason != "" {
			about += ": " + r.Reason
		}
		whole := mark{kindOf(r.State), *r.StartedAt, end, about}
		if !r.StartedAt.After(due) {
			return []mark{whole}
		}
		return append(c.waits(r, due, *r.StartedAt, name, "waits", names), whole)
	}
	if len(r.Attempts) == 0 {
		if r.State == "skipped" {
			about := name + ": skipped"
			if r.Reason != "" {
				about += ", " + r.Reason
			}
			return []mark{{skipped, due, due, about}}
		}
		return c.waits(r, due, c.until(r.EndedAt), name, r.State, names)
	}
	all, at := c.attempts(r.Attempts, due, name, func(from, to time.Time) []mark { return c.waits(r, from, to, name, "waits", names) })
	if end := c.until(r.EndedAt); end.After(at) {
		all = append(all, c.waits(r, at, end, name, r.State, names)...)
	}
	return all
}

// name is what a run is called.
func (c Chart) name(r simulate.Run) string {
	name := r.Job + " at " + c.stamp(r.NominalTime)
	if r.As != nil {
		name = *r.As + ", " + name
	}
	return name
}

// attempts are those of a run or step that may start from an instant on, with what it does before each. at is when the last one ended.
func (c Chart) attempts(tries []simulate.Attempt, from time.Time, name string, between func(from, to time.Time) []mark) (all []mark, at time.Time) {
	at = from
	for _, a := range tries {
		if a.StartedAt.After(at) {
			all = append(all, between(at, a.StartedAt)...)
		}
		at = c.until(a.EndedAt)
		about := fmt.Sprintf("%s, attempt %d: %s, %s to %s", name, a.Attempt, a.Outcome, c.stamp(a.StartedAt), c.stamp(at))
		if a.Error != "" {
			about += ": " + a.Error
		}
		all = append(all, mark{kindOf(a.Outcome), a.StartedAt, at, about})
	}
	return all, at
}

// stepMarks are those of a step of a run, none where it did nothing that lasts. What a scope does, its steps say.
func (c Chart) stepMarks(r simulate.Run, s simulate.Step) []mark {
	if s.ReleasedAt == nil || s.Kind == "scope" {
		return nil
	}
	name := c.name(r) + ", step " + s.Path
	waits := func(about string) func(from, to time.Time) []mark {
		return func(from, to time.Time) []mark { return []mark{{waiting, from, to, name + ": " + about}} }
	}
	all, at := c.attempts(s.Attempts, *s.ReleasedAt, name, waits("waits"))
	if end := c.until(s.EndedAt); end.After(at) {
		all = append(all, waits(s.State)(at, end)...)
	}
	return all
}

// waits are what a run does between two instants at which it is in no attempt: first and last what is said, and in between how it waited at gates.
func (c Chart) waits(r simulate.Run, from, to time.Time, name, said string, names map[string]string) (all []mark) {
	add := func(until time.Time, about string) {
		if until.After(from) {
			all = append(all, mark{waiting, from, until, name + ": " + about})
			from = until
		}
	}
	for _, w := range r.Waits {
		end := c.until(w.To)
		if !end.After(from) || !w.From.Before(to) {
			continue
		}
		add(w.From, said)
		if end.After(to) {
			end = to
		}
		add(end, simulate.Waited(w, names))
	}
	if add(to, said); len(all) == 0 { // it has no length, and is to be seen
		all = append(all, mark{waiting, from, to, name + ": " + said})
	}
	return all
}

// until is when something ended, or the end of the chart.
func (c Chart) until(ended *time.Time) time.Time {
	if ended == nil {
		return c.To
	}
	return *ended
}

// kindOf is the kind of an attempt's outcome, or of the state of a workflow's run.
func kindOf(outcome string) kind {
	switch outcome {
	case "succeeded":
		return succeeded
	case "failed", "crashed", "dead", "unknown":
		return failed
	case "running":
		return running
	}
	return stopped
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (c Chart) stamp(at time.Time) string { return at.In(c.zone()).Format("2006-01-02 15:04:05") }

// span is how long the chart is, more than 0.
func (c Chart) span() time.Duration { return max(c.To.Sub(c.From), time.Second) }

// ticks are times on the axis, and what stands there.
func (c Chart) ticks(n int) []string {
	form := "01-02 15:04"
	oneDay := c.From.In(c.zone()).Format(time.DateOnly) == c.To.In(c.zone()).Format(time.DateOnly)
	switch span := c.span(); {
	case !oneDay && span > time.Duration(n)*24*time.Hour:
		form = time.DateOnly
	case oneDay && span < time.Hour:
		form = time.TimeOnly
	case oneDay:
		form = "15:04"
	}
	labels := make([]string, n+1)
	for i := range labels {
		labels[i] = c.From.Add(time.Duration(float64(c.span()) * float64(i) / float64(n))).In(c.zone()).Format(form)
	}
	return labels
}
