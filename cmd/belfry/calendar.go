package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// longestBar is how many characters the busiest row of a chart has.
const longestBar = 30

// bar shows a number as a share of the most.
func bar(n, most int) string {
	if n == 0 {
		return ""
	}
	return strings.Repeat("#", max(1, n*longestBar/most))
}

func (c *cli) jobCalendar() *cobra.Command {
	var from, to string
	var everyDay bool
	cmd := &cobra.Command{
		Use:   "calendar NAME",
		Short: "Count a job's runs by day and outcome, and its fires to come",
		Long: `Count a job's runs by day and outcome, and its fires to come: from 52 weeks ago to a week ahead. Days are those of the job's zone, or of --timezone.
FAILED counts failed, dead and unknown runs, SKIPPED skipped and cancelled ones. A day without any is left out, unless --all is given.`,
		Example: `  belfry job calendar report
  belfry job calendar report --from 2026-03-01 --to 2026-03-31 --all`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			for _, given := range []struct{ flag, day string }{{"--from", from}, {"--to", to}} {
				if _, err := time.Parse(time.DateOnly, given.day); given.day != "" && err != nil {
					return misused("%s %q: want a day such as 2026-03-01", given.flag, given.day)
				}
			}
			zone := c.zoned
			if to == "" && from == "" {
				job, err := server.Job(ctx, args[0])
				if err != nil {
					return err
				}
				if to, err = weekAhead(c.now(), zone, job.Job); err != nil {
					return err
				}
				ahead, _ := time.Parse(time.DateOnly, to)
				from = ahead.AddDate(0, 0, -53*7+1).Format(time.DateOnly)
			}
			days, err := server.JobCalendar(ctx, args[0], from, to, zone)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(days)
			}
			if !days.CountedFrom.IsZero() {
				fmt.Fprintf(c.messages(), "runs before %s were not counted: there are more than 20,000\n", c.moment(days.CountedFrom))
			}
			if !days.FiresTo.IsZero() {
				fmt.Fprintf(c.messages(), "fires from %s on were not counted: there are more than 1,000,000\n", c.moment(days.FiresTo))
			}
			shown := days.Days
			if !everyDay {
				shown = slices.DeleteFunc(slices.Clone(shown), func(d wire.CalendarDay) bool { return len(d.Runs) == 0 && d.Fires == 0 })
			}
			headings := []string{"DAY"}
			for _, class := range runs.Classes() {
				headings = append(headings, strings.ToUpper(class.String()))
			}
			return list(c, each(shown), 0, append(headings, "TO COME", "NOTE"), dayRow)
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "first `DAY`, as 2026-03-01; at most 370 days before the last")
	cmd.Flags().StringVar(&to, "to", "", "last `DAY`")
	cmd.Flags().BoolVar(&everyDay, "all", false, "days without runs and fires too")
	return cmd
}

// weekAhead is the day a week from now, in a zone or else that of a job.
func weekAhead(now time.Time, zone string, j wire.Job) (string, error) {
	if zone == "" && j.Schedule != nil {
		zone = j.Schedule.Timezone
	}
	where, err := schedule.LoadZone(zoneName(zone))
	if err != nil {
		return "", err
	}
	return now.In(where).AddDate(0, 0, 7).Format(time.DateOnly), nil
}

func dayRow(d wire.CalendarDay) []string {
	row := []string{d.Date}
	for _, class := range runs.Classes() {
		n := 0
		for _, state := range class.States() {
			n += d.Runs[state.String()]
		}
		row = append(row, orNothing(n))
	}
	note := ""
	if d.Partial {
		note = "more runs than were counted"
	} else if hours := d.To.Sub(d.From); hours != 24*time.Hour {
		note = fmt.Sprintf("%g hours: the clock changes", hours.Hours())
	}
	return append(row, orNothing(d.Fires), note)
}

func orNothing(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (c *cli) jobHistory() *cobra.Command {
	var diff bool
	var most int
	cmd := &cobra.Command{
		Use:   "history NAME [GENERATION [GENERATION]]",
		Short: "List the definitions that a job has had, and how they differ",
		Long: `List the definitions that a job has had, newest first, with what each changed of the one before. A deleted job's are listed too. They are kept for
400 days after they were replaced. Belfry does not record who made a change.

With --diff the definitions themselves are compared: the newest two, a generation and the one before it, or any two, by the numbers that the list shows.`,
		Example: `  belfry job history report
  belfry job history report --diff`,
		Args: cobra.RangeArgs(1, 3),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if len(args) > 1 && !diff {
				return misused("generations are compared with --diff: belfry job history %s %s --diff", args[0], strings.Join(args[1:], " "))
			}
			if diff {
				return c.generationDiff(ctx, server, args[0], args[1:])
			}
			if c.structured() {
				return list(c, server.Generations(ctx, args[0], most), most, nil, func(wire.Generation) []string { return nil })
			}
			if most < 0 {
				return misused("-n %d: want 0 for all, or more", most)
			}
			// What each changed is seen beside the one before it.
			one := 0
			if most > 0 {
				one = most + 1
			}
			var rows []generationRow
			for g, err := range server.Generations(ctx, args[0], one) {
				if err != nil {
					return err
				}
				if len(rows) > 0 {
					rows[len(rows)-1].before = &g
				}
				rows = append(rows, generationRow{Generation: g})
			}
			return list(c, each(rows), most, []string{"GENERATION", "MADE", "REPLACED", "WHAT"}, func(r generationRow) []string {
				return []string{strconv.FormatInt(r.Generation.Generation, 10), clock(r.From), clock(r.To), r.changed()}
			})
		}),
	}
	cmd.Flags().BoolVar(&diff, "diff", false, "compare two definitions, as a unified diff of YAML")
	cmd.Flags().IntVarP(&most, "limit", "n", 20, "`NUMBER` of them at most; 0 for all")
	return cmd
}

// generationRow is a generation beside the one before it, nil where none is kept.
type generationRow struct {
	wire.Generation
	before *wire.Generation
}

// changed names the fields of the definition that a generation changed.
func (r generationRow) changed() string {
	switch {
	case r.Deleted:
		return "deleted"
	case r.before == nil:
		return "the oldest that is kept"
	case r.before.Deleted:
		return "made again"
	}
	was, err := jobfile.Of(*r.before.Definition)
	if err != nil {
		return err.Error()
	}
	is, err := jobfile.Of(*r.Definition)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, m := range slices.Concat(was.Members, is.Members) {
		if a, b := was.Member(m.Name), is.Member(m.Name); (a == nil || b == nil || !bytes.Equal(a.JSON(), b.JSON())) && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// generationDiff compares the newest two definitions of a job, one and the one before it, or any two.
func (c *cli) generationDiff(ctx context.Context, server *client.Client, name string, chosen []string) error {
	numbers := make([]int64, len(chosen))
	for i, text := range chosen {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return misused("generation %q: want a number, as belfry job history %s shows it", text, name)
		}
		numbers[i] = n
	}
	slices.Sort(numbers)
	var old, next *wire.Generation
	for g, err := range server.Generations(ctx, name, 0) {
		if err != nil {
			return err
		}
		switch {
		case next == nil && (len(numbers) == 0 || g.Generation == numbers[len(numbers)-1]):
			next = &g
		case next != nil && old == nil && (len(numbers) < 2 || g.Generation == numbers[0]):
			old = &g
		}
		if old != nil {
			break
		}
	}
	switch {
	case len(numbers) == 2 && numbers[0] == numbers[1]:
		return misused("generation %d is given twice: want two, or one to compare with the one before it", numbers[0])
	case next == nil && len(numbers) > 0:
		return exiting(exitNotFound, fmt.Errorf("there is no generation %d of job %s that is kept: belfry job history %s lists them", numbers[len(numbers)-1], name, name))
	case old == nil && len(numbers) == 2:
		return exiting(exitNotFound, fmt.Errorf("there is no generation %d of job %s that is kept: belfry job history %s lists them", numbers[0], name, name))
	case old == nil || next == nil:
		return exiting(exitNotFound, fmt.Errorf("job %s has no other definition before that is kept", name))
	}
	if c.structured() {
		return c.print([]wire.Generation{*old, *next})
	}
	was, err := generationText(*old)
	if err != nil {
		return err
	}
	is, err := generationText(*next)
	if err != nil {
		return err
	}
	var text strings.Builder
	c.writeDiff(&text, c.named(name, *old), was, c.named(name, *next), is)
	_, err = io.WriteString(c.stdout, text.String())
	return err
}

func generationText(g wire.Generation) (string, error) {
	if g.Definition == nil {
		return "", nil
	}
	return definitionText(&wire.Job{Definition: *g.Definition})
}

func (c *cli) named(name string, g wire.Generation) string {
	text := fmt.Sprintf("%s, generation %d of %s", name, g.Generation, c.moment(g.From))
	if g.Deleted {
		text += ": deleted"
	}
	return text
}
