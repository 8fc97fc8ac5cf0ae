package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) cron() *cobra.Command {
	cmd := &cobra.Command{Use: "cron", Short: "Try cron expressions; works without a server"}
	cmd.AddCommand(c.cronNext(), c.cronDescribe(), c.cronExplain())
	return cmd
}

// compileCron reads an expression from the command line. What is wrong with it is no mistake in the command line.
func compileCron(expr, zone string) (*schedule.Schedule, error) {
	compiled, err := schedule.Spec{Cron: expr, Timezone: zone}.Check()
	if err == nil {
		return compiled, nil
	}
	var lines []string
	for _, e := range invalid.All(err) {
		lines = append(lines, e.Error())
	}
	return nil, errors.New(strings.Join(lines, "\n"))
}

// mostFires bounds one answer.
const mostFires = 100_000

func (c *cli) cronNext() *cobra.Command {
	var zone, from string
	var count int
	var marked bool
	cmd := &cobra.Command{
		Use:   "next EXPR",
		Short: "Print the next fires of an expression, one instant a line, in its zone",
		Long: `Print the next fires of an expression, one instant a line, in its zone. With --marks a line also says where a change of the clock
has moved a fire, merged several, or shows its time twice; -o json always does.`,
		Example: `  belfry cron next "30 9 * * 1-5" --timezone Europe/Berlin
  belfry cron next "30 2 * * *" --timezone Europe/Berlin --from 2026-03-28 --marks
  belfry cron next "0 0 29 2 *" --from 2097-01-01T00:00:00Z -n 1`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if count < 1 || count > mostFires {
				return misused("-n %d: want 1 to %d", count, mostFires)
			}
			where, err := schedule.LoadZone(zoneName(zone))
			if err != nil {
				return err
			}
			at, err := c.instant("--from", from, where)
			if err != nil {
				return err
			}
			if at.IsZero() {
				at = time.Now()
			}
			compiled, err := compileCron(args[0], zone)
			if err != nil {
				return err
			}
			preview := wire.CronForm(compiled, at, count)
			for i, next := range preview.Next {
				preview.Next[i] = next.In(where)
			}
			if c.structured() {
				return c.print(preview)
			}
			for i, next := range preview.Next {
				line := next.Format(time.RFC3339)
				if note := clockNote(preview.Fires[i]); marked && note != "" {
					line += gap + note
				}
				fmt.Fprintln(c.stdout, line)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the `ZONE`; UTC by default")
	cmd.Flags().StringVar(&from, "from", "", "fires after this `TIME`, as 2026-11-21T09:00:00Z, or \"2026-11-21 10:00\" in its zone; now by default")
	cmd.Flags().IntVarP(&count, "count", "n", 5, "`NUMBER` of fires")
	cmd.Flags().BoolVar(&marked, "marks", false, "say behind an instant what a change of the clock does to it")
	return cmd
}

// clockNote says what a change of the clock does to a fire, "" for nothing.
func clockNote(f wire.Fire) string {
	times := make([]string, len(f.Asked))
	for i, wall := range f.Asked {
		_, times[i], _ = strings.Cut(wall, "T")
	}
	switch schedule.Mark(f.Mark) {
	case schedule.Unmarked:
		return ""
	case schedule.Shifted:
		return "shifted: the clock skips " + strings.Join(times, ", ")
	case schedule.Merged:
		return "merged: stands for " + strings.Join(times, ", ")
	case schedule.FirstOfTwo:
		return "first of two: the clock shows this time again"
	case schedule.SecondOfTwo:
		return "second of two: the clock has shown this time before"
	}
	return f.Mark // of a newer server
}

func zoneName(zone string) string {
	if zone == "" {
		return "UTC"
	}
	return zone
}

func (c *cli) cronDescribe() *cobra.Command {
	var zone string
	cmd := &cobra.Command{
		Use:     "describe EXPR",
		Short:   "Say an expression in plain English",
		Example: `  belfry cron describe "30 9 * * 1-5" --timezone Europe/Berlin`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			compiled, err := compileCron(args[0], zone)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(map[string]string{"description": compiled.Describe()})
			}
			fmt.Fprintln(c.stdout, compiled.Describe())
			return nil
		},
	}
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the `ZONE`; UTC by default")
	return cmd
}

func (c *cli) cronExplain() *cobra.Command {
	var zone string
	cmd := &cobra.Command{
		Use:   "explain EXPR",
		Short: "Explain an expression field by field, and say how other schedulers take it",
		Long: `Explain an expression field by field, and say how the same is written for Kubernetes, Quartz, systemd and EventBridge Scheduler, and what
they do otherwise.`,
		Example: `  belfry cron explain "30 2 * * 1-5" --timezone Europe/Berlin`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			compiled, err := compileCron(args[0], zone)
			if err != nil {
				return err
			}
			explained := wire.CronForm(compiled, time.Now(), 0)
			if c.structured() {
				return c.print(map[string]any{"description": explained.Description, "fields": explained.Fields, "elsewhere": explained.Elsewhere})
			}
			out := newPaper(c)
			out.say("%s", explained.Description)
			out.head("FIELDS")
			var rows [][]string
			for _, f := range explained.Fields {
				rows = append(rows, []string{f.Field, f.Text, f.Means})
			}
			out.grid(rows)
			for _, e := range explained.Elsewhere {
				out.head(strings.ToUpper(e.System))
				for _, expression := range e.Expressions {
					out.text.WriteString("  " + expression + "\n") // to be copied: no line of it is broken
				}
				for _, note := range e.Notes {
					out.say("  %s", note)
				}
			}
			return out.print()
		},
	}
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the `ZONE`; UTC by default")
	return cmd
}
