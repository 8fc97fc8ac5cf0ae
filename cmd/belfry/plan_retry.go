package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) planRetry() *cobra.Command {
	var q retrying.Question
	var initial, longest time.Duration
	cmd := &cobra.Command{
		Use:   "retry",
		Short: "Say what a retry policy comes to: when attempts begin, and when it gives up",
		Long: `Say what a retry policy comes to if every attempt fails: when each attempt begins, when it gives up, and how many of a crowd that fails
together come back within a tenth of a second. Waits are drawn as for a run. The same seed gives the same again.`,
		Example: `  belfry plan retry
  belfry plan retry --attempts 5 --initial 1s --factor 2 --max 5m
  belfry plan retry --attempts 8 --initial 10s --duration 30s --clients 2000 -o json`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Retry.Initial, q.Retry.Max = schedule.Duration(initial), schedule.Duration(longest)
			checked, err := q.Check()
			if err != nil {
				for _, e := range invalid.All(err) {
					e.Field = "--" + strings.Replace(strings.TrimPrefix(e.Field, "retry."), "max_attempts", "attempts", 1)
				}
				return asUsage(err)
			}
			made, err := retrying.Answer(cmd.Context(), checked)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(made)
			}
			return c.showRetries(made)
		},
	}
	wholeFlag(cmd, &q.Retry.MaxAttempts, "attempts", fmt.Sprint(job.DefaultAttempts), "`NUMBER` of tries in all, the first included")
	lengthFlag(cmd, &initial, "initial", schedule.Duration(job.DefaultInitial).String(), "shortest `DURATION` between attempts")
	countFlag(cmd, &q.Retry.Factor, "factor", fmt.Sprint(job.DefaultFactor), "`NUMBER` of times that each further wait is longer")
	lengthFlag(cmd, &longest, "max", "", "longest `DURATION` between attempts; 1h by default, or --initial where that is longer")
	lengthFlag(cmd, &q.Takes, "duration", "0s", "`DURATION` of each attempt until it fails")
	wholeFlag(cmd, &q.Clients, "clients", fmt.Sprint(retrying.Usual), "`NUMBER` of clients that fail together")
	cmd.Flags().Uint64Var(&q.Seed, "seed", 1, "`SEED` of chance")
	return cmd
}

func (c *cli) showRetries(p wire.RetryPlan) error {
	out := newPaper(c)
	out.say("It %s; each attempt takes %s. Half of the runs have given up after %s, nine in ten after %s; all between %s and %s.",
		p.Tries, brief(p.Takes.Std()), wait(p.GivesUp.P50), wait(p.GivesUp.P90), wait(p.GivesUp.Least), wait(p.GivesUp.Most))
	out.head("WHEN ATTEMPTS BEGIN")
	rows := [][]string{{"attempt", "earliest", "p10", "p50", "p90", "latest", "most in 0.1s"}}
	for _, a := range p.Attempts {
		b := a.Begins
		rows = append(rows, []string{fmt.Sprint(a.Attempt), wait(b.Least), wait(b.P10), wait(b.P50), wait(b.P90), wait(b.Most), plan.Count(float64(a.Peak))})
	}
	out.grid(rows)
	if p.Peak.Spread > 0 {
		out.head("THE CROWD")
		out.say("%s clients fail together. In the worst tenth of a second %s try again with jitter, %s if all waited alike.",
			plan.Count(float64(p.Clients)), plan.Count(float64(p.Peak.Spread)), plan.Count(float64(p.Peak.Alike)))
	}
	return out.print()
}
