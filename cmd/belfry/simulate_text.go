package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// shownIn is the zone that times are shown in: UTC, as in the file, unless another is asked for.
func (s *simulation) shownIn() *time.Location {
	if s.zoned == "" {
		return time.UTC
	}
	return s.zone
}

// show prints a report for people: runs, fires that were missed, lines that were refused, and all of it in a sentence.
func (s *simulation) show(p played) error {
	r := *p.Report
	zone := s.shownIn()
	names := simulate.Names(r)
	columns, cells := []string{"JOB", "AS", "DUE", "STATE", "STARTED", "ENDED", "ATTEMPTS", "WHY"}, [][]string{}
	shown := s.shown(r.Runs)
	unnamed := !slices.ContainsFunc(r.Runs, func(one simulate.Run) bool { return one.As != nil })
	for _, one := range shown {
		row := []string{one.Job, "", clockOf(&one.NominalTime, time.Time{}, zone), one.State, clockOf(one.StartedAt, one.NominalTime, zone),
			clockOf(one.EndedAt, one.NominalTime, zone), fmt.Sprint(len(one.Attempts)), whyOf(one, names)}
		if one.As != nil {
			row[1] = *one.As
		}
		if len(one.Steps) > 0 {
			row[6] = "" // it has none of its own
		}
		rows := append([][]string{row}, stepRows(one, zone)...)
		for i := range rows {
			if unnamed {
				rows[i] = slices.Delete(rows[i], 1, 2)
			}
		}
		cells = append(cells, rows...)
	}
	if unnamed {
		columns = slices.Delete(columns, 1, 2)
	}
	sections := []func() error{}
	section := func(title string, headings []string, rows [][]string) {
		if len(rows) > 0 {
			sections = append(sections, func() error { return s.section(title, headings, rows) })
		}
	}
	section("", columns, cells)
	if left := len(r.Runs) - len(shown); left > 0 {
		sections = append(sections, func() error { return s.say("and %s more; -n 0 shows all", exactly(left, "run")) })
	}
	section("Events:", []string{"AT", "RUN", "EVENT", "ATTEMPT", "UNTIL"}, eventRows(shown, names, zone))
	section("Gates:", []string{"GATE", "MOST UNITS", "WAITS", "MEAN", "LONGEST"}, gateRows(r, simulate.Last(r)))
	var skipped, refused [][]string
	for _, k := range r.Skipped {
		skipped = append(skipped, []string{k.Job, fmt.Sprint(k.Count), clockOf(&k.From, time.Time{}, zone), clockOf(&k.Through, k.From, zone), k.Reason})
	}
	section("Missed fires that catch_up dropped:", []string{"JOB", "FIRES", "FIRST", "LAST", "WHY"}, skipped)
	for _, k := range r.Refused {
		refused = append(refused, []string{fmt.Sprint(k.Line), clockOf(&k.At, time.Time{}, zone), k.Code, k.Detail})
	}
	section("Lines of the script that Belfry refused:", []string{"LINE", "AT", "CODE", "WHY"}, refused)
	sections = append(sections, func() error { return s.say("%s", summary(r)) })
	if p.scenario.Expect != nil && len(p.Differences) == 0 {
		sections = append(sections, func() error { return s.say("All that the file expects holds.") })
	}
	for i, print := range sections {
		if i > 0 {
			if _, err := io.WriteString(s.stdout, "\n"); err != nil {
				return err
			}
		}
		if err := print(); err != nil {
			return err
		}
	}
	return nil
}

// shown are the runs that a table has room for, the first of them in any case: a run is shown with all of its steps.
func (s *simulation) shown(all []simulate.Run) []simulate.Run {
	lines := 0
	for i := range all {
		if lines += 1 + len(all[i].Steps); s.most > 0 && lines > s.most && i > 0 {
			return all[:i]
		}
	}
	return all
}

// stepRows tell of the steps of a run, below it, as outcomes name them.
func stepRows(of simulate.Run, zone *time.Location) (rows [][]string) {
	for _, one := range of.Steps {
		attempts := ""
		if n := len(one.Attempts); n > 0 {
			attempts = fmt.Sprint(n)
		}
		rows = append(rows, []string{of.Job + "/" + one.Path, "", "", one.State, clockOf(one.StartedAt, of.NominalTime, zone), clockOf(one.EndedAt, of.NominalTime, zone), attempts, whyOfStep(one)})
	}
	return rows
}

// eventRows tell of each run, and of its steps, what became of them, event for event.
func eventRows(all []simulate.Run, names map[string]string, zone *time.Location) (rows [][]string) {
	of := func(name string, events []simulate.Event) {
		for _, e := range events {
			attempt := ""
			if e.Attempt > 0 {
				attempt = fmt.Sprint(e.Attempt)
			}
			rows = append(rows, []string{clockOf(&e.At, time.Time{}, zone), name, e.Event, attempt, clockOf(e.Until, e.At, zone)})
		}
	}
	for _, one := range all {
		of(names[one.ID], one.Events)
		for _, s := range one.Steps {
			of(names[one.ID]+"/"+s.Path, s.Events)
		}
	}
	return rows
}

// whyOfStep says what is to be known of a step: why it ended as it did, the last error, and who handles that.
func whyOfStep(s simulate.Step) string {
	said := []string{s.Reason}
	if s.Error != nil {
		said = append(said, s.Error.Code, s.Error.Message)
		if s.Error.Message == s.Reason {
			said = said[1:]
		}
	}
	return caughtNote(s.CaughtBy, strings.Join(slices.DeleteFunc(said, func(text string) bool { return text == "" }), ": "))
}

func (s *simulation) say(format string, args ...any) error {
	_, err := fmt.Fprintf(s.stdout, format+"\n", args...)
	return err
}

func (s *simulation) section(title string, headings []string, rows [][]string) error {
	if title != "" {
		if err := s.say("%s", title); err != nil {
			return err
		}
	}
	out := newRows(s.cli, headings)
	for _, row := range rows {
		if err := out.add(nil, row); err != nil {
			return err
		}
	}
	return out.end()
}

// clockOf is a time in a table; where it is of the same day as another one beside it, of that day's clock alone.
func clockOf(at *time.Time, beside time.Time, zone *time.Location) string {
	if at == nil {
		return ""
	}
	t := at.In(zone)
	form := time.TimeOnly
	if t.Format(time.DateOnly) != beside.In(zone).Format(time.DateOnly) {
		form = time.DateTime
	}
	if t.Nanosecond() != 0 {
		form += ".000"
	}
	return t.Format(form)
}

// whyOf says what is to be known of a run: what was in its way, why it ended as it did, or the last error.
func whyOf(r simulate.Run, names map[string]string) string {
	if r.Why != nil {
		var inTheWay []string
		for _, id := range r.Why.InTheWay {
			if name := names[id]; name != "" {
				id = name
			}
			inTheWay = append(inTheWay, id)
		}
		return wire.NewWhy(r.Why.Code, r.Why.Gate, r.Why.Key, r.Why.Policy, inTheWay, r.Reason).Text
	}
	failure := ""
	if n := len(r.Attempts); n > 0 {
		failure = r.Attempts[n-1].Error
	}
	switch {
	case r.Reason == "" && failure == "":
		return waitedOf(r.Waits, names)
	case strings.HasSuffix(r.Reason, failure):
		return r.Reason
	case r.Reason == "":
		return failure
	}
	return r.Reason + ": " + failure
}

// waitedOf says how long a run waited in line, at which gates and for whom; "" where it never did.
func waitedOf(waits []simulate.Wait, names map[string]string) string {
	var told []string
	for _, w := range waits {
		if w.To == nil || w.To.After(w.From) {
			told = append(told, simulate.Waited(w, names))
		}
	}
	return strings.Join(told, "; ")
}

// gateRows tell of each gate that jobs name how much of it was taken at once, how many runs waited there, and how long: all of them, and the one that waited
// longest. Who waits still has waited until last.
func gateRows(r simulate.Report, last time.Time) (rows [][]string) {
	type line struct {
		runs         int
		all, longest time.Duration
	}
	lines := map[string]*line{}
	for name := range r.Most.Gates {
		lines[name] = &line{}
	}
	for _, one := range r.Runs {
		for _, w := range one.Waits {
			if _, own := gate.OwnOf(w.Gate); own {
				continue
			}
			if lines[w.Gate] == nil {
				lines[w.Gate] = &line{}
			}
			to := last
			if w.To != nil {
				to = *w.To
			}
			waited := max(0, to.Sub(w.From))
			l := lines[w.Gate]
			l.runs, l.all, l.longest = l.runs+1, l.all+waited, max(l.longest, waited)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		l := lines[name]
		row := []string{name, fmt.Sprint(r.Most.Gates[name]), fmt.Sprint(l.runs), "", ""}
		if l.runs > 0 {
			row[3] = schedule.Duration((l.all / time.Duration(l.runs)).Truncate(time.Millisecond)).String()
			row[4] = schedule.Duration(l.longest).String()
		}
		rows = append(rows, row)
	}
	return rows
}

// summary is a report in a sentence or two.
func summary(r simulate.Report) string {
	states, attempts, steps, missed := map[string]int{}, 0, 0, 0
	for _, one := range r.Runs {
		states[one.State]++
		attempts += len(one.Attempts)
		steps += len(one.Steps)
		for _, s := range one.Steps {
			attempts += len(s.Attempts)
		}
	}
	for _, k := range r.Skipped {
		missed += k.Count
	}
	var counted []string
	for _, state := range runs.States() {
		if n := states[state.String()]; n > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := exactly(len(r.Runs), "run")
	if len(counted) > 0 {
		text += ": " + strings.Join(counted, ", ")
	}
	if steps > 0 {
		text += "; " + exactly(steps, "step")
	}
	text += "; " + exactly(attempts, "attempt")
	for _, more := range []struct {
		n    int
		what string
	}{{missed, "missed fire"}, {len(r.Refused), "refused line"}} {
		if more.n > 0 {
			text += "; " + exactly(more.n, more.what)
		}
	}
	if r.Open > 0 {
		text += fmt.Sprintf("; %d not ended", r.Open)
	}
	text += "."
	if most := busiest(r.Most.Jobs); r.Most.Workers > 0 {
		text += fmt.Sprintf(" At most %s at once", exactly(r.Most.Workers, "attempt"))
		if most != "" {
			text += fmt.Sprintf(", and %s of %s", exactly(r.Most.Jobs[most], "run"), most)
		}
		text += "."
	}
	return text
}

// busiest is the job with the most runs in progress at once, "" where no job had two.
func busiest(jobs map[string]int) string {
	best := ""
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		if jobs[job] > max(jobs[best], 1) {
			best = job
		}
	}
	return best
}

// exactly is a number with its noun; plan rounds, a report does not.
func exactly(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
