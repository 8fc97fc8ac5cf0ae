package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// runFilter is the flags that choose runs.
type runFilter struct {
	window
	job    string
	states []string
	error  string
	labels labels
}

func (f *runFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.job, "job", "", "only of this `JOB`")
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "any of these `STATES`, more than once or with commas")
	f.labels.flag(cmd, "only of definitions with this label, `NAME=VALUE`, more than once or with commas: all must hold")
	cmd.Flags().StringVar(&f.error, "error", "", "only those whose last error holds this `TEXT`, in any letter case")
	f.window.flags(cmd, "due")
}

// check finds what is wrong in the flags before a server is asked.
func (f *runFilter) check() error {
	for _, name := range f.states {
		if !slices.Contains(stateNames(), name) {
			return misused("--state %q: want one of %s", name, strings.Join(stateNames(), ", "))
		}
	}
	return f.labels.read()
}

// filter reads the flags, and tells whether any was given.
func (f *runFilter) filter(c *cli) (chosen wire.RunFilter, given bool, err error) {
	if err := f.check(); err != nil {
		return chosen, false, err
	}
	from, to, err := f.times(c)
	if err != nil {
		return chosen, false, err
	}
	chosen = wire.RunFilter{Job: f.job, States: f.states, Labels: f.labels.values, Error: f.error}
	if !from.IsZero() {
		chosen.From = &from
	}
	if !to.IsZero() {
		chosen.To = &to
	}
	given = f.job != "" || len(f.states) > 0 || len(f.labels.values) > 0 || f.error != "" || !from.IsZero() || !to.IsZero()
	return chosen, given, nil
}

// bulk is a command over runs that are named or chosen by a filter.
type bulk struct {
	*cli
	confirmation
	all       bool
	dryRun    bool
	most      int
	perSecond float64 // how fast runs start; 0 for what starts none
	before    string  // --ended-before of what starts runs
	given     func(flag string) bool

	verb, past string // of the question and of the summary
	what       string // of what: "run", "dead letter"

	// send asks for a part: the runs, or those that match from a cursor on.
	send func(ctx context.Context, runs []string, cursor string, most int, dry bool) (wire.BulkVerdicts, error)
}

func (b *bulk) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&b.all, "all", false, "every "+b.what)
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "only count, and show the first few")
	cmd.Flags().IntVar(&b.most, "max", 0, "with --all or a filter: this `NUMBER` at most")
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do not ask first")
	b.given = cmd.Flags().Changed
}

// starts adds the flags of what starts runs.
func (b *bulk) starts(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&b.perSecond, "per-second", 10, "`NUMBER` of runs that start in a second")
	cmd.Flags().StringVar(&b.before, "ended-before", "", "only what ended before this `TIME`: given again after a lost answer, it leaves what was started and has ended since")
}

// endedBefore reads --ended-before, nil where it is not given.
func (b *bulk) endedBefore() (*time.Time, error) {
	at, err := b.instant("--ended-before", b.before, b.zone)
	if err != nil || at.IsZero() {
		return nil, err
	}
	return &at, nil
}

// chosen sees that either runs were named, or a filter or --all was given.
func (b *bulk) chosen(args []string, filtered bool) error {
	switch {
	case len(args) > 0 && (filtered || b.all), filtered && b.all:
		return misused("runs, --all and a filter exclude each other")
	case len(args) == 0 && !filtered && !b.all:
		return misused("want runs, or a filter such as --job, or --all")
	case len(args) > 0 && (b.given("max") || b.dryRun):
		return misused("--max and --dry-run are for --all or a filter")
	case b.given("max") && b.most < 1:
		return misused("--max %d: want 1 or more", b.most)
	case b.given("per-second") && !(b.perSecond > 0 && b.perSecond <= math.MaxFloat64): // NaN is neither
		return misused("--per-second %v: want a number that is more than 0", b.perSecond)
	}
	return nil
}

// run does it: over the runs that are named, or after a count and a question over those that match.
func (b *bulk) run(ctx context.Context, names []string) error {
	if len(names) > 0 {
		return b.overNames(ctx, names)
	}
	if !b.dryRun {
		if err := b.needed(b.cli, b.verb+" over a filter"); err != nil {
			return err
		}
	}
	count, few, err := b.count(ctx)
	if err != nil {
		return err
	}
	if b.most > 0 {
		count = min(count, b.most)
	}
	if b.dryRun && b.structured() {
		return b.cli.print(map[string]int{"count": count})
	}
	fmt.Fprintf(b.messages(), "%s.\n", b.match(count))
	if count == 0 {
		return nil
	}
	if b.dryRun || !b.yes {
		b.show(few, count)
	}
	if b.dryRun {
		return nil
	}
	if err := b.confirm(b.cli, "%s %s", strings.ToUpper(b.verb[:1])+b.verb[1:], countOf(count, b.what)); err != nil {
		return err
	}
	return b.overMatches(ctx, count)
}

func (b *bulk) match(count int) string {
	switch count {
	case 0:
		return "No " + b.what + " matches"
	case 1:
		return "1 " + b.what + " matches"
	}
	return countOf(count, b.what) + " match"
}

// fewShown is how many of those that match are shown before the question.
const fewShown = 10

// count asks how many match, without changing any.
func (b *bulk) count(ctx context.Context) (count int, few []wire.RunVerdict, err error) {
	told := b.progress("counting", 0)
	defer told.end()
	for cursor := ""; ; {
		part, err := b.send(ctx, nil, cursor, 0, true)
		if err != nil {
			return 0, nil, err
		}
		for _, v := range part.Items {
			if len(few) < fewShown {
				few = append(few, v)
			}
		}
		count += part.Count
		told.add(int64(part.Count))
		if cursor = part.Next; cursor == "" || b.most > 0 && count >= b.most {
			return count, few, nil
		}
	}
}

func (b *bulk) show(few []wire.RunVerdict, count int) {
	for _, v := range few[:min(len(few), count)] {
		if v.Problem != nil {
			fmt.Fprintf(b.messages(), "  %s  would be refused: %s\n", v.ID, v.Problem.Summary())
			continue
		}
		due := ""
		if id, err := runs.ParseID(v.ID); err == nil {
			due = b.moment(id.Time())
		}
		fmt.Fprintf(b.messages(), "  %s  %s  %s\n", v.ID, v.State, due)
	}
	if more := count - len(few); more > 0 {
		fmt.Fprintf(b.messages(), "  and %d more\n", more)
	}
}

// longestRequest is how many seconds of starts one request may ask for, and mostRuns how many runs.
const (
	longestRequest = 15
	mostRuns       = 1000
)

// part is how many runs one request may be about.
func (b *bulk) part() int {
	if b.perSecond == 0 {
		return mostRuns
	}
	return max(1, min(mostRuns, int(b.perSecond*longestRequest)))
}

func (b *bulk) overNames(ctx context.Context, names []string) error {
	r := b.report(len(names))
	defer r.told.end()
	for left := names; len(left) > 0; {
		n := min(len(left), b.part())
		part, err := b.send(ctx, left[:n], "", 0, false)
		if err == nil && len(part.Remaining) >= n {
			err = errors.New("the server came to none of the runs in its time")
		}
		if err != nil {
			return r.end(err)
		}
		if err := r.add(part.Items); err != nil {
			return err
		}
		left = append(part.Remaining, left[n:]...)
	}
	return r.end(nil)
}

func (b *bulk) overMatches(ctx context.Context, count int) error {
	r := b.report(count)
	defer r.told.end()
	for cursor := ""; ; {
		most := 0
		if b.most > 0 {
			most = min(b.part(), b.most-r.done-r.refused)
		}
		part, err := b.send(ctx, nil, cursor, most, false)
		if err == nil {
			err = r.add(part.Items)
		}
		if err != nil {
			return r.end(err)
		}
		if cursor = part.Next; cursor == "" || b.most > 0 && r.done+r.refused >= b.most {
			return r.end(nil)
		}
	}
}

// report is what is told of a bulk command while it goes on.
type report struct {
	*bulk
	told          *progress
	out           *rows // for programs
	done, refused int
}

func (b *bulk) report(count int) *report {
	r := &report{bulk: b, told: b.progress(b.verb+" "+b.what+"s", int64(count))}
	if b.structured() {
		r.out = newRows(b.cli, nil)
	}
	return r
}

func (r *report) add(verdicts []wire.RunVerdict) error {
	for _, v := range verdicts {
		if v.Problem != nil {
			r.refused++
			r.told.say("belfry: %s: %s", v.ID, v.Problem.Summary())
		} else {
			r.done++
		}
		if r.out != nil {
			if err := r.out.add(v, nil); err != nil {
				return err
			}
		}
	}
	r.told.add(int64(len(verdicts)))
	return nil
}

// end prints the summary. What was done before an error stays done.
func (r *report) end(err error) error {
	r.told.end()
	if r.out != nil {
		if failed := r.out.end(); failed != nil {
			return failed
		}
	} else {
		fmt.Fprintf(r.stdout, "%s %s\n", countOf(r.done, r.what), r.past)
	}
	switch {
	case err != nil && r.done > 0:
		return fmt.Errorf("after %s: %w", countOf(r.done, r.what), err)
	case err == nil && r.refused > 0:
		return fmt.Errorf("%d of %d were not %s", r.refused, r.refused+r.done, r.past)
	}
	return err
}

func (c *cli) runCancel() *cobra.Command {
	var f runFilter
	var reason string
	b := &bulk{cli: c, verb: "cancel", past: "cancelled", what: "run"}
	cmd := &cobra.Command{
		Use:   "cancel [RUN...]",
		Short: "Cancel runs that have not ended; those that are running are told to stop",
		Long: `Cancel runs that have not ended: those named, or those that match. Those that are running are told to stop. Over a filter the runs
are counted first, and you are asked.`,
		Example: `  belfry run cancel report~0mi4lf3k0 --reason "wrong month"
  belfry run cancel --job report --state scheduled,queued --dry-run
  belfry run cancel --label team=billing --yes`,
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			filter, given, err := f.filter(c)
			if err != nil {
				return err
			}
			if err := b.chosen(args, given); err != nil {
				return err
			}
			if len(args) == 1 {
				r, err := server.Cancel(ctx, args[0], reason)
				if err != nil {
					return err
				}
				return c.showRun(r)
			}
			b.send = func(ctx context.Context, runs []string, cursor string, most int, dry bool) (wire.BulkVerdicts, error) {
				asked := wire.CancelRuns{Runs: runs, Cursor: cursor, Max: most, DryRun: dry, Reason: reason}
				if runs == nil {
					asked.Matching = &filter
				}
				return server.CancelMany(ctx, asked)
			}
			return b.run(ctx, args)
		}),
	}
	f.flags(cmd)
	b.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for people")
	return cmd
}

func (c *cli) runRetry() *cobra.Command {
	var f runFilter
	var force bool
	b := &bulk{cli: c, verb: "retry", past: "queued again", what: "run"}
	cmd := &cobra.Command{
		Use:   "retry [RUN...]",
		Short: "Run ended runs again, with a new attempt budget",
		Long: `Run ended runs again, with a new attempt budget: those named, or those that match. A filter chooses among failed and dead runs
unless it names states. The runs are counted first, and you are asked.`,
		Example: `  belfry run retry report~0mi4lf3k0
  belfry run retry --job report --error "connection refused" --since 2h
  belfry run retry --state cancelled --label team=billing --per-second 2 --yes`,
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			filter, given, err := f.filter(c)
			if err != nil {
				return err
			}
			if err := b.chosen(args, given); err != nil {
				return err
			}
			before, err := b.endedBefore()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				r, err := server.Retry(ctx, args[0], wire.RetryRequest{Force: force, EndedBefore: before})
				if err != nil {
					return err
				}
				return c.showRun(r)
			}
			b.send = func(ctx context.Context, runs []string, cursor string, most int, dry bool) (wire.BulkVerdicts, error) {
				asked := wire.RetryRuns{Runs: runs, Cursor: cursor, Max: most, DryRun: dry, Force: force, PerSecond: b.perSecond, EndedBefore: before}
				if runs == nil {
					asked.Matching = &filter
				}
				return server.RetryMany(ctx, asked)
			}
			return b.run(ctx, args)
		}),
	}
	f.flags(cmd)
	b.flags(cmd)
	b.starts(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also runs that succeeded or whose outcome is unknown: their effect may then happen twice")
	return cmd
}

// refusal is what the server says of one of many, where it answered; whatever else went wrong will be so for the others, too.
func refusal(err error) (wire.Problem, bool) {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden || refused.Status >= 500 {
		return wire.Problem{}, false
	}
	return refused.Problem, true
}
