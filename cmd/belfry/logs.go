package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// The most that the API gives of the end of a log.
const (
	longestTail = 1 << 20
	mostLines   = 1_000_000
	mostAttempt = 1_000_000
)

// logTail is the end of a log: so many lines, or so many bytes.
type logTail struct{ lines, bytes int }

// tailOf reads a number of lines, or a size with its unit.
func tailOf(text string) (logTail, error) {
	if strings.Trim(text, "0123456789") == "" && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostLines {
			return logTail{}, fmt.Errorf("want 1 to %d lines", mostLines)
		}
		return logTail{lines: n}, nil
	}
	n, err := plan.ParseBytes(text)
	switch {
	case err != nil:
		return logTail{}, errors.New("want a number of lines, or a size such as 4KB")
	case n < 1 || n > longestTail:
		return logTail{}, fmt.Errorf("want 1 byte to %d KB", longestTail>>10)
	}
	return logTail{bytes: n}, nil
}

func attemptOf(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostAttempt {
		return 0, errors.New("want 1 for the first attempt, or more")
	}
	return n, nil
}

// sinceWhen reads a time, or how long ago it was.
func (c *cli) sinceWhen(text string) (time.Time, error) {
	if d, err := schedule.ParseDuration(text); err == nil && d >= 0 {
		return c.now().Add(-d.Std()), nil
	}
	t, err := c.instant("--since", text, c.zone)
	if err != nil {
		return t, misused("--since %q: want a time such as 2026-11-21T09:00:00Z or \"2026-11-21 10:00\", or how long ago, as 90s or 2h", text)
	}
	return t, nil
}

func (c *cli) runLogs() *cobra.Command {
	w := &waiter{cli: c, follow: true}
	var follow bool
	var tail logTail
	var since string
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print what an attempt wrote, or has written so far",
		Long: `Print what the newest attempt wrote, or has written so far; with --attempt what another one wrote. With --follow it goes on until the
run has ended, over all further attempts, or with --attempt until that one has ended.

Of a workflow's run it is what the newest attempt of each step wrote, one step after the other in the order of the workflow, each under a line
"==> PATH <==". With --follow steps that run side by side take turns, and standard error tells when each starts and ends. Of more than 16 steps that run at once,
the lines of the others come when they have ended. RUN/PATH, or --step PATH, is one step alone, whose --attempt may be chosen. With --follow that may be one that
is still to begin; it goes on until the step has ended. All other flags are as for a run, for each step.

The log of an attempt under way is looked at twice a second if it runs in the server's own process. From elsewhere it comes while somebody
reads it: within a third of a lease after the first look, ten seconds by default, then every two to four. Elsewhere is a worker that calls a
server, another process on a shared store, or a function on AWS.

Of a long log the beginning and the end are kept, and a line says how much is between. With --tail and --since less is printed, of
what is written already. With --timestamps each line has the time at which it came, in UTC.

On a terminal the lines and colours of a log are shown, and colours end with their line; other control characters, which could write
over the screen or answer for you, are shown as U+FFFD. Into a file or a pipe the log goes as it was written, to the byte.`,
		Example: `  belfry run logs report~0mi4lf3k0
  belfry run logs report~0mi4lf3k0 --follow --timestamps
  belfry run logs report~0mi4lf3k0 --attempt 1 --tail 20
  belfry run logs report~0mi4lf3k0 --since 10m
  belfry run logs etl~0mi4lf3k0 --follow
  belfry run logs etl~0mi4lf3k0/parts/index --follow`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			w.view.Lines, w.view.Bytes = tail.lines, tail.bytes
			if since != "" {
				var err error
				if w.view.Since, err = c.sinceWhen(since); err != nil {
					return err
				}
			}
			id, step, err := ofStep(args[0], w.view.Step)
			if err != nil {
				return err
			}
			w.server, w.view.Step = server, step
			if follow {
				if c.structured() {
					return misused("--follow prints a log as it is written: it has no form for --output %s", c.output)
				}
				r, err := w.wait(ctx, id)
				if err == nil && r.Attempt < w.view.Attempt {
					return fmt.Errorf("%s has ended after %d attempts: there is no attempt %d", w.what(r.ID), r.Attempt, w.view.Attempt)
				}
				return err
			}
			return w.printOnce(ctx, id)
		}),
	}
	w.flags(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "go on printing what is written until the run, or the step, has ended")
	parsedFlag(cmd, &w.view.Attempt, "attempt", "", "number", "what attempt `N` wrote, counted from 1; the newest by default", attemptOf)
	flags.StringVar(&w.view.Step, "step", "", "of the step of this `PATH`, of a workflow's run")
	flags.BoolVarP(&w.view.Times, "timestamps", "t", false, "each line with the time at which it came, as 2026-11-21T12:00:00.000Z")
	flags.StringVar(&since, "since", "", "only lines that came at this `TIME` or later, or no longer ago than a duration, as 90s or 2h")
	parsedFlag(cmd, &tail, "tail", "", "size", "only the last `N` lines of what is written, or about so much of it, as 4KB; all by default", tailOf)
	return cmd
}

// printOnce prints what is written by now: of the run of a workflow, by each of its steps.
func (w *waiter) printOnce(ctx context.Context, id string) error {
	var text strings.Builder
	out, end := io.Writer(&text), func() error { return nil }
	if !w.structured() {
		out, end = w.cli.log()
	}
	attempt, err := w.printParts(ctx, id, func(part []byte) error { _, err := out.Write(part); return err })
	if w.view.Step == "" && (err != nil || attempt == 0) {
		if r, failed := w.server.Run(ctx, id); failed == nil && len(r.Steps) > 0 {
			return newFlowLog(w).print(ctx, id)
		}
	}
	if err == nil && w.structured() {
		shown := map[string]any{"id": id, "attempt": attempt, "log": text.String()}
		if w.view.Step != "" {
			shown["step"] = w.view.Step
		}
		return w.print(shown)
	}
	return errors.Join(err, end())
}
