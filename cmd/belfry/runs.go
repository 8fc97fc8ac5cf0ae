package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) runs() *cobra.Command {
	cmd := &cobra.Command{Use: "run", Short: "See runs, stop them and run them again"}
	cmd.AddCommand(c.runList(), c.runGet(), c.runWhy(), c.runCancel(), c.runRetry(), c.runRelease(), c.runLogs(), c.runPayload(), c.runResult(), c.runWait(), c.runSteps(), c.runStep(), c.runGraph())
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
	var watching, scheduled bool
	var order string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs of one job or of all, newest or oldest first",
		Long: `List runs of one job or of all, newest first: those whose time has come. The others are listed with --scheduled, where
--state asks for them, and where --from is ahead of now.

With --sort changed those stand first that changed last: that were made or due, began or ended an attempt, or ended. No index has this order, so it
looks at the 1,000 newest by due time that match, and says where there are older ones; --job, --state, --from and --to bound what is looked at.
With --sort oldest those stand first that were due first.

With --watch the list is drawn anew every second; where it does not go to a
terminal, a line is added for each run that is new or has another state, with -o json an object a line. An interrupt ends it:

  belfry run list --state queued,running,retrying --watch`,
		Example: `  belfry run list --job report -n 10
  belfry run list --sort changed -n 20
  belfry run list --state scheduled
  belfry run list --state running --sort oldest -n 5
  belfry run list --state failed,dead --since 2h
  belfry run list --error "connection refused" --since 1d
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
			if !slices.Contains(orders, order) {
				return misused("--sort %q: want one of %s", short(order, 40), strings.Join(orders, ", "))
			}
			filter.Oldest = order == sortOldest
			filter.Due = !scheduled && len(f.states) == 0 && !filter.From.After(c.now())
			if watching && c.output != formTable && c.output != formJSON {
				return misused("--watch adds to what it has printed: want --output table or json")
			}
			if watching {
				w := &watch{cli: c, server: server, filter: filter, most: most, title: "belfry run list", byChange: order == sortChanged}
				return w.run(ctx)
			}
			filter.Most = most
			if order == sortChanged {
				return c.listByChange(ctx, server, filter)
			}
			return list(c, server.Runs(ctx, filter), most, runHeadings, runRow)
		}),
	}
	f.flags(cmd)
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "`NUMBER` of them at most; 0 for all")
	cmd.Flags().BoolVar(&scheduled, "scheduled", false, "also those whose time has not come")
	cmd.Flags().StringVar(&order, "sort", sortDue, "`ORDER`: due, the newest first; oldest for the oldest first; changed for what changed last")
	cmd.Flags().BoolVarP(&watching, "watch", "w", false, "go on until interrupted, and show what changes")
	return cmd
}

// Orders of a listing of runs.
const (
	sortDue     = "due"
	sortOldest  = "oldest"
	sortChanged = "changed"
)

var orders = []string{sortDue, sortOldest, sortChanged}

func (c *cli) listByChange(ctx context.Context, server *client.Client, filter client.RunFilter) error {
	page, err := server.RunsByChange(ctx, filter)
	if err != nil {
		return err
	}
	if err := list(c, each(page.Items), 0, changeHeadings, changeRow); err != nil {
		return err
	}
	if !page.LookedBackTo.IsZero() {
		fmt.Fprintf(c.messages(), "Only runs that were due since %s were looked at; --job, --state, --from and --to choose others.\n", c.moment(page.LookedBackTo))
	}
	return nil
}

var changeHeadings = []string{"RUN", "STATE", "CHANGED", "NOMINAL", "TOOK", "ATTEMPT", "WHY"}

func changeRow(r wire.Run) []string {
	return []string{r.ID, r.State, clock(r.ChangedAt), clock(r.NominalTime), took(r), fromOne(r.Attempt), why(r)}
}

// forList reads the flags for a listing.
func (f *runFilter) forList(c *cli) (client.RunFilter, error) {
	if err := f.check(); err != nil {
		return client.RunFilter{}, err
	}
	from, to, err := f.times(c)
	return client.RunFilter{Job: f.job, States: f.states, Labels: f.labels.values, Error: f.error, From: from, To: to}, err
}

var runHeadings = []string{"RUN", "STATE", "NOMINAL", "STARTED", "TOOK", "ATTEMPT", "WHY"}

func runRow(r wire.Run) []string {
	return []string{r.ID, r.State, clock(r.NominalTime), clock(r.StartedAt), took(r), fromOne(r.Attempt), why(r)}
}

// fromOne is a number that counts from 1, and nothing where there is none: of a workflow's run no attempt is made, so it has no fence either.
func fromOne[T int | uint64](n T) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
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
		if (r.State == "queued" || r.State == "scheduled") && !r.NextAttemptAt.IsZero() {
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
		return r.Why.Text
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
		released := ""
		if !r.ReleasedAt.IsZero() {
			released = c.saidAt(r.ReleasedAt, r.ReleasedBy, r.ReleasedFor)
		}
		rows := [][2]string{{"run", r.ID}, {"job", r.Job}, {"state", r.State}, {"reason", reasonOf(r)}, {"trigger", triggerOf(r)}, {"callback", toldOf(r)}, {"calls", calledBy(r)},
			{"nominal", clock(r.NominalTime)}, {"created", clock(r.CreatedAt)}, {"started", clock(r.StartedAt)}, {"ended", clock(r.EndedAt)},
			{"took", took(r)}, {"next attempt", clock(r.NextAttemptAt)}, {"start by", clock(r.StartBy)}, {"end by", clock(r.EndBy)}, {"released", released}, {"worker", r.Worker}, {"fence", fromOne(r.Fence)}, {"trace", r.Trace}}
		if d := r.Discarded; d != nil {
			rows = append(rows, [2]string{"discarded", c.saidAt(d.At, d.By, d.Note)})
		}
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
		rows = append(rows, [2]string{"result", resultOf(r.Result, r.ResultSize, r.ID)})
		if r.ResultCut {
			rows = append(rows, [2]string{"", cutResult})
		}
		return rows
	})
}

// resultOf is what is shown of a result, or how to get one that is left out.
func resultOf(shown json.RawMessage, size int64, of string) string {
	if size > 0 {
		return fmt.Sprintf("%d bytes: belfry run result %s", size, of)
	}
	return short(string(shown), 200)
}

// saidAt is "2026-11-21 10:00:00 by on-call (0123456789abcdef): sent by hand".
func (c *cli) saidAt(at time.Time, by, note string) string {
	text := c.moment(at)
	if by != "" {
		text += " by " + by
	}
	if note != "" {
		text += ": " + note
	}
	return text
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
at least, and who or what can end that. RUN/PATH shows a step of a workflow's run, as "belfry run step" does.`,
		Example: `  belfry run get report~0mi4lf3k0
  belfry run get report~0mi4lf3k0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			id, step, err := ofStep(args[0], "")
			if err != nil {
				return err
			}
			if step != "" {
				return c.showStep(ctx, server, id, step)
			}
			r, err := server.Run(ctx, args[0])
			if err != nil {
				return err
			}
			return c.showRun(r)
		}),
	}
}

func (c *cli) runPayload() *cobra.Command {
	return c.runBytes(&cobra.Command{
		Use:   "payload RUN",
		Short: "Print what a run hands to its target, as it was given",
		Long: `Print what a run hands to its target: the payload that it was asked for with, or that of its job. With RUN/PATH, or --step, it is what a
step of a workflow's run gets: its own input, or the payload of the run. Nothing is printed where there is none. Into a file or a pipe it goes as it was given, to the byte; on a terminal control characters are shown as U+FFFD.`,
		Example: `  belfry run payload report~0mi4lf3k0
  belfry run payload report~0mi4lf3k0 > payload.json
  belfry run payload etl~0mi4lf3k0 --step parts/index`,
	}, "payload", func(ctx context.Context, server *client.Client, id, step string) (data []byte, mediaType string, err error) {
		data, err = server.Payload(ctx, id, step)
		return data, "application/json", err
	})
}

func (c *cli) runResult() *cobra.Command {
	return c.runBytes(&cobra.Command{
		Use:   "result RUN",
		Short: "Print what the target of a run answered, to the byte",
		Long: `Print what the target of a run answered, of any size. With RUN/PATH, or --step, it is what a step of a workflow's run gave: a task,
or a scope. Nothing is printed where there is none. Into a file or a pipe it goes as it came, to the byte; on a terminal control characters are shown as U+FFFD.`,
		Example: `  belfry run result report~0mi4lf3k0
  belfry run result report~0mi4lf3k0 > report.json
  belfry run result etl~0mi4lf3k0 --step parts/index`,
	}, "result", func(ctx context.Context, server *client.Client, id, step string) (data []byte, mediaType string, err error) {
		return server.Result(ctx, id, step)
	})
}

// runBytes has a command print bytes that are kept of a run, or of a step of it. name is that of their field in JSON.
func (c *cli) runBytes(cmd *cobra.Command, name string, fetch func(ctx context.Context, server *client.Client, id, step string) (data []byte, mediaType string, err error)) *cobra.Command {
	var flag string
	cmd.Flags().StringVar(&flag, "step", "", "of the step of this `PATH`, of a workflow's run")
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = c.calling(func(ctx context.Context, server *client.Client, args []string) error {
		id, step, err := ofStep(args[0], flag)
		if err != nil {
			return err
		}
		data, mediaType, err := fetch(ctx, server, id, step)
		if err != nil {
			return err
		}
		if !c.structured() {
			out, end := c.log()
			_, err = out.Write(data)
			return errors.Join(err, end())
		}
		shown := map[string]any{"id": id}
		if step != "" {
			shown["step"] = step
		}
		if len(data) > 0 {
			text, as := runs.ShownResult(data, mediaType, false)
			if shown[name] = text; as != "" {
				shown[name+"_type"] = as
			}
		}
		return c.print(shown)
	})
	return cmd
}

// triggerOf is what asked for a run, whether it ignores the pause of its job, and by which policy it goes in place of its job's.
func triggerOf(r wire.Run) string {
	said := r.Trigger
	if r.IgnorePause {
		said += ", ignores the pause of its job"
	}
	if r.Overlap != "" {
		said += ", overlap: " + r.Overlap + " in place of its job's"
	}
	return said
}
