package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

func (c *cli) benchWorkflow() *cobra.Command {
	var flags benchFlags
	w := bench.Workflow{For: 10 * time.Second, Callers: 50, Workers: 50}
	cmd := &cobra.Command{
		Use:   "workflow",
		Short: "Measure what workflows take",
		Long: `Measure how long workflows take whose Go handler does nothing, beside runs of no workflow: a chain of 10 steps, 100 steps at once with a
join behind them, and a chain of 300 steps, the most there may be. Times are from the request to the durable end of the run.

For the join, and for steps near either end of the longest chain, it tells how long each took from the end of the call that it waits for to
its own call, and what was asked of the store meanwhile: the last steps should take what the first ones do.`,
		Example: `  belfry bench workflow
  belfry bench workflow --for 30s --callers 200 --data /var/lib/bench`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := measure(c, cmd.Context(), flags, w.Run)
			if err != nil {
				return err
			}
			return c.showWorkflow(report)
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&w.For, "for", w.For, "how long each kind of work is run: a `DURATION`")
	f.IntVar(&w.Callers, "callers", w.Callers, "`NUMBER` of callers that each ask for a run and wait for its end, beside those by one caller")
	f.IntVar(&w.Workers, "workers", w.Workers, "`NUMBER` of attempts at once")
	return cmd
}

func (c *cli) showWorkflow(r bench.WorkflowReport) error {
	if c.structured() {
		return c.print(r)
	}
	c.showMachine(r.Machine)
	fmt.Fprintf(c.stdout, "From the request to the durable end of all of it, %d attempts at once.\n\n", r.Workers)
	out := newRows(c, []string{"KIND", "CALLERS", "ROUNDS", "P50", "P99", "MAX", "ROUNDS/S", "CALLS/S", "OPS A CALL", "READS A CALL", "ITEMS A CALL", "CPU A CALL"})
	var err error
	var all bench.Synced
	for _, row := range r.Rows {
		err = errors.Join(err, out.add(nil, []string{row.Kind, strconv.Itoa(row.Callers), grouped(row.Rounds), millisText(row.P50), millisText(row.P99), millisText(row.Max),
			whole(row.PerSecond), whole(row.CallsPerSecond), decimals(row.Synced.PerRun, 1), decimals(row.Reads, 1), decimals(row.Items, 1), whole(row.Synced.CPURun) + " µs"}))
		all.Ops, all.Syncs = all.Ops+row.Synced.Ops, all.Syncs+row.Synced.Syncs
	}
	err = errors.Join(err, out.end())
	fmt.Fprint(c.stdout, "\nFrom the end of the last call that a step waits for to its own call.\n\n")
	out = newRows(c, []string{"KIND", "STEPS", "MEASURED", "P50", "P99", "MAX", "READS", "ITEMS", "OPS", "BYTES"})
	for _, s := range r.Steps {
		which := strconv.Itoa(s.First)
		if s.Last > s.First {
			which = fmt.Sprintf("%d to %d", s.First, s.Last)
		}
		err = errors.Join(err, out.add(nil, []string{s.Kind, which, grouped(s.Steps), millisText(s.P50), millisText(s.P99), millisText(s.Max),
			strconv.FormatInt(s.Reads, 10), strconv.FormatInt(s.Items, 10), strconv.FormatInt(s.Ops, 10), strconv.FormatInt(s.Bytes, 10)}))
	}
	err = errors.Join(err, out.end())
	fmt.Fprintf(c.stdout, "\nsynced     every acknowledged change: %s ops of the store by %s fdatasyncs\nmemory     %s at most\n", grouped(int(all.Ops)), grouped(int(all.Syncs)), sizeText(r.PeakRSS))
	return err
}
