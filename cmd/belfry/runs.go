package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) runs() *cobra.Command {
	cmd := &cobra.Command{Use: "run", Short: "See runs, stop them and run them again"}
	cmd.AddCommand(c.runList(), c.runGet(), c.runCancel(), c.runRetry(), c.runLogs(), c.runPayload(), c.runWait(), c.runSteps(), c.runStep())
	return cmd
}

// window reads --from, --to and --since.
type window struct{ from, to, since string }

func (w *window) flags(cmd *cobra.Command, of string) {
	cmd.Flags().StringVar(&w.from, "from", "", of+" at this `TIME` or later, as 2026-11-21T09:00:00Z, \"2026-11-21 10:00\" or 2026-11-21")
	cmd.Flags().StringVar(&w.to, "to", "", of+" before this `TIME`")
	cmd.Flags().StringVar(&w.since, "since", "", of+" no longer ago than this `DURATION`, as 90s, 2h or 7d; instead of --from")
}

func (w *window) times(c *cli) (from, to time.Time, err error) {
	if from, err = c.instant("--from", w.from, c.zone); err != nil {
		return
	}
	if w.since != "" {
		if w.from != "" {
			return from, to, misused("--since and --from exclude each other")
		}
		d, err := schedule.ParseDuration(w.since)
		if err != nil {
			return from, to, misused("--since: %w", err)
		}
		from = c.now().Add(-d.Std()).Truncate(time.Second)
	}
	to, err = c.instant("--to", w.to, c.zone)
	return
}

func (c *cli) runList() *cobra.Command {
	var f runFilter
	var most int
	var watching bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs of one job or of all, newest first",
		Long: `List runs of one job or of all, newest first. With --watch the list is drawn anew every second; where it does not go to a
terminal, a line is added for each run that is new or has another state, with -o json an object a line. An interrupt ends it:

  belfry run list --state queued,running,retrying --watch`,
		Example: `  belfry run list --job report -n 10
  belfry run list --state failed,dead --since 2h
  belfry run list --label team=billing --from 2026-11-20T00:00:00Z`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			filter, err := f.forList(c)
			if err != nil {
				return err
			}
			if most < 0 {
				return misused("-n %d: want 0 for all, or more", most)
			}
			if watching && c.output != formTable && c.output != formJSON {
				return misused("--watch adds to what it has printed: want --output table or json")
			}
			if watching {
				w := &watch{cli: c, server: server, filter: filter, most: most, title: "belfry run list"}
				return w.run(ctx)
			}
			filter.Most = most
			return list(c, server.Runs(ctx, filter), most, runHeadings, runRow)
		}),
	}
	f.flags(cmd)
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "`NUMBER` of them at most; 0 for all")
	cmd.Flags().BoolVarP(&watching, "watch", "w", false, "go on until interrupted, and show what changes")
	return cmd
}

// forList reads the flags for a listing.
func (f *runFilter) forList(c *cli) (client.RunFilter, error) {
	if err := f.check(); err != nil {
		return client.RunFilter{}, err
	}
	from, to, err := f.times(c)
	return client.RunFilter{Job: f.job, States: f.states, Labels: f.labels.values, From: from, To: to}, err
}

var runHeadings = []string{"RUN", "STATE", "NOMINAL", "STARTED", "TOOK", "ATTEMPT", "WHY"}

func runRow(r wire.Run) []string {
	return []string{r.ID, r.State, clock(r.NominalTime), clock(r.StartedAt), took(r), fmt.Sprint(r.Attempt), why(r)}
}

func took(r wire.Run) string {
	if r.StartedAt.IsZero() || r.EndedAt.IsZero() || r.EndedAt.Before(r.StartedAt) {
		return ""
	}
	return r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
}

// cutResult says that a result is not whole.
const cutResult = "only the beginning of the result was kept"

// why is the reason of a run's end, or why it waits and until when, or the error of its newest attempt, or what there is to know about its result.
func why(r wire.Run) string {
	parts := []string{}
	if reason := reasonOf(r); reason != "" {
		if r.State == "queued" && !r.NextAttemptAt.IsZero() {
			reason += ", not before " + clock(r.NextAttemptAt)
		}
		parts = append(parts, reason)
	}
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Error != "" && r.Attempts[n-1].Error != r.Reason {
		parts = append(parts, r.Attempts[n-1].Error)
	}
	if r.ResultCut {
		parts = append(parts, cutResult)
	}
	return strings.Join(parts, ": ")
}

// reasonOf is why a run is in its state, where that is known: of one that was skipped at a gate, what was in its way.
func reasonOf(r wire.Run) string {
	if r.Why != nil {
		return r.Why.String()
	}
	return r.Reason
}

// howItWent is "failed after 5s: exit: exit code 3".
func howItWent(a wire.Attempt) string {
	text := strings.ReplaceAll(a.Outcome, "_", " ")
	if !a.EndedAt.IsZero() && a.EndedAt.After(a.StartedAt) {
		text += " after " + a.EndedAt.Sub(a.StartedAt).Round(time.Millisecond).String()
	}
	if a.Error != "" {
		text += ": " + a.Error
	}
	return text
}

func (c *cli) showRun(r wire.Run) error {
	return show(c, r, func(r wire.Run) [][2]string {
		rows := [][2]string{{"run", r.ID}, {"job", r.Job}, {"state", r.State}, {"reason", reasonOf(r)}, {"trigger", r.Trigger},
			{"nominal", clock(r.NominalTime)}, {"created", clock(r.CreatedAt)}, {"started", clock(r.StartedAt)}, {"ended", clock(r.EndedAt)},
			{"took", took(r)}, {"next attempt", clock(r.NextAttemptAt)}, {"worker", r.Worker}, {"fence", fmt.Sprint(r.Fence)}, {"trace", r.Trace}}
		for _, w := range r.Waiting {
			rows = append(rows, [2]string{"waits", c.whyWaiting(w)})
		}
		for _, a := range r.Attempts {
			rows = append(rows, [2]string{fmt.Sprintf("attempt %d", a.Attempt), c.moment(a.StartedAt) + ", " + howItWent(a)})
		}
		for _, s := range r.Steps {
			rows = append(rows, [2]string{"step " + s.Path, s.State})
		}
		switch {
		case r.Skipped == nil:
		case r.Skipped.Count == 0:
			rows = append(rows, [2]string{"skipped", "up to " + c.moment(r.Skipped.Through) + ", counted elsewhere"})
		default:
			rows = append(rows, [2]string{"skipped", fmt.Sprintf("%d fires, up to %s", r.Skipped.Count, c.moment(r.Skipped.Through))})
		}
		rows = append(rows, [2]string{"result", short(string(r.Result), 200)})
		if r.ResultCut {
			rows = append(rows, [2]string{"", cutResult})
		}
		return rows
	})
}

// whyWaiting is a reason why a run does not go on, with its time and who can end it.
func (c *cli) whyWaiting(w wire.Waiting) string {
	text := w.Text
	if !w.Until.IsZero() {
		text += " Until: " + c.moment(w.Until) + "."
	}
	if w.Who != "" {
		text += " Up to: " + w.Who + "."
	}
	return text
}

func (c *cli) runGet() *cobra.Command {
	return &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run with its attempts and its result, or why it does not go on",
		Long: `Show a run with its attempts and its result. Of one that has not ended it says why it does not go on: what it waits for, until when
at least, and who or what can end that.`,
		Example: `  belfry run get report~0mi4lf3k0
  belfry run get report~0mi4lf3k0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			r, err := server.Run(ctx, args[0])
			if err != nil {
				return err
			}
			return c.showRun(r)
		}),
	}
}

func (c *cli) runPayload() *cobra.Command {
	return &cobra.Command{
		Use:   "payload RUN",
		Short: "Print what a run hands to its target, as it was given",
		Long: `Print what a run hands to its target: the payload that it was asked for with, or that of its job. Nothing is printed where there is
none. Into a file or a pipe it goes as it was given, to the byte; on a terminal control characters are shown as U+FFFD.`,
		Example: `  belfry run payload report~0mi4lf3k0
  belfry run payload report~0mi4lf3k0 > payload.json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			data, err := server.Payload(ctx, args[0])
			if err != nil {
				return err
			}
			if c.structured() {
				shown := map[string]any{"run": args[0]}
				if len(data) > 0 {
					shown["payload"] = json.RawMessage(data)
				}
				return c.print(shown)
			}
			out, end := c.log()
			_, err = out.Write(data)
			return errors.Join(err, end())
		}),
	}
}

func (c *cli) runLogs() *cobra.Command {
	w := &waiter{cli: c, follow: true}
	var follow bool
	var step string
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print what the newest attempt wrote, or has written so far",
		Long: `Print what the newest attempt wrote, or has written so far. With --follow it goes on until the run has ended, over all further
attempts. What an attempt in a worker of another process writes comes when the attempt has ended. With --tail only the end of what is
written already is printed, from the beginning of a line.

On a terminal the lines and colours of a log are shown, and colours end with their line; other control characters, which could write
over the screen or answer for you, are shown as U+FFFD. Into a file or a pipe the log goes as it was written, to the byte.`,
		Example: `  belfry run logs report~0mi4lf3k0
  belfry run logs report~0mi4lf3k0 --follow
  belfry run logs report~0mi4lf3k0 --tail 4KB
  belfry run logs etl~0mi4lf3k0 --step parts/index`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if follow {
				if step != "" {
					return misused("--follow and --step exclude each other: of a step what is written already is printed")
				}
				if c.structured() {
					return misused("--follow prints a log as it is written: it has no form for --output %s", c.output)
				}
				w.server = server
				_, err := w.wait(ctx, args[0])
				return err
			}
			text, err := newestLog(ctx, server, args[0], step, w.tail)
			if err != nil {
				return err
			}
			if c.structured() {
				shown := map[string]string{"run": args[0], "log": string(text)}
				if step != "" {
					shown["step"] = step
				}
				return c.print(shown)
			}
			log, end := c.log()
			_, err = log.Write(text)
			return errors.Join(err, end())
		}),
	}
	w.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is written until the run has ended")
	cmd.Flags().StringVar(&step, "step", "", "of the step of this `PATH`, of a workflow's run")
	parsedFlag(cmd, &w.tail, "tail", "", "size", "only about the last `SIZE` of what is written, as 4KB; all by default", tailSize)
	return cmd
}

// longestTail is as much as the API gives of a log's end.
const longestTail = 1 << 20

func tailSize(text string) (int, error) {
	n, err := plan.ParseBytes(text)
	if err == nil && (n < 1 || n > longestTail) {
		return 0, fmt.Errorf("want 1 byte to %d KB", longestTail>>10)
	}
	return n, err
}

// newestLog is the log of the newest attempt, or its last bytes, 0 for all: that of a step, where one is named.
func newestLog(ctx context.Context, server *client.Client, run, step string, tail int) ([]byte, error) {
	if step != "" {
		return server.StepLog(ctx, run, step, tail)
	}
	if tail == 0 {
		return server.Logs(ctx, run)
	}
	part, err := server.LogTail(ctx, run, tail)
	return part.Text, err
}
