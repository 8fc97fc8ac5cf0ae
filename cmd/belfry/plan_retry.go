package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) planRetry() *cobra.Command {
	var q wire.RetryQuestion
	var initial, longest, takes time.Duration
	cmd := &cobra.Command{
		Use:   "retry",
		Short: "Say what a retry policy comes to: when attempts begin, and when it gives up",
		Long: `Say what a retry policy comes to if every attempt fails: when each attempt begins, when it gives up, and how many of a crowd of
clients that fail together come back within a tenth of a second. Waits are drawn as for a run. The same seed gives the same again.`,
		Example: `  belfry plan retry
  belfry plan retry --attempts 5 --initial 1s --factor 2 --max 5m
  belfry plan retry --attempts 8 --initial 10s --duration 30s --clients 2000 -o json`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseZeros(cmd, "attempts", "initial", "factor", "max", "clients", "seed"); err != nil {
				return err
			}
			q.Retry.Initial, q.Retry.Max, q.Takes = schedule.Duration(initial), schedule.Duration(longest), schedule.Duration(takes)
			made, err := retrying.Service{}.Retry(cmd.Context(), q)
			if err != nil {
				return ofFlags(err, func(field string) string {
					return strings.Replace(strings.TrimPrefix(field, "retry."), "max_attempts", "attempts", 1)
				})
			}
			if c.structured() {
				return c.print(made)
			}
			return c.showRetries(made)
		},
	}
	wholeFlag(cmd, &q.Retry.MaxAttempts, "attempts", fmt.Sprint(job.DefaultAttempts), "`NUMBER` of tries in all, the first included")
	lengthFlag(cmd, &initial, "initial", schedule.Duration(job.DefaultInitial).String(), "shortest `DURATION` between attempts")
	countFlag(cmd, &q.Retry.Factor, "factor", fmt.Sprint(job.DefaultFactor), "`FACTOR` by which each further wait grows")
	lengthFlag(cmd, &longest, "max", "", "longest `DURATION` between attempts; 1h by default, or --initial where that is longer")
	lengthFlag(cmd, &takes, "duration", "0s", "`DURATION` of each attempt until it fails")
	wholeFlag(cmd, &q.Clients, "clients", fmt.Sprint(retrying.Usual), "`NUMBER` of clients that fail together")
	cmd.Flags().Uint64Var(&q.Seed, "seed", 1, "`SEED` of chance")
	return cmd
}

func (c *cli) showRetries(p wire.RetryPlan) error {
	out := newPaper(c)
	last := p.Attempts[len(p.Attempts)-1].Begins
	jitter := last.Least < last.Most
	tries := "once"
	if len(p.Attempts) > 1 {
		tries = several(len(p.Attempts), "time")
	}
	switch g := p.GivesUp; {
	case g.Most == 0:
		out.say("It tries %s and gives up at once.", tries)
	case !jitter:
		out.say("It tries %s and gives up after %s.", tries, wait(g.Most))
	default:
		out.say("It tries %s and gives up after %s to %s: half of the clients by %s, nine in ten by %s.", tries, wait(g.Least), wait(g.Most), wait(g.P50), wait(g.P90))
	}
	if p.Takes > 0 {
		out.say("Each attempt takes %s.", brief(p.Takes.Std()))
	}
	out.head("WHEN ATTEMPTS BEGIN")
	rows := [][]string{{"attempt", "earliest", "p10", "p50", "p90", "latest", "most in 0.1s"}}
	for _, a := range p.Attempts {
		b := a.Begins
		rows = append(rows, []string{fmt.Sprint(a.Attempt), wait(b.Least), wait(b.P10), wait(b.P50), wait(b.P90), wait(b.Most), plan.Count(float64(a.Peak))})
	}
	out.grid(rows)
	if p.Clients > 1 && len(p.Attempts) > 1 {
		out.head("THE CROWD")
		count := func(n int) string { return plan.Count(float64(n)) }
		if jitter {
			out.say("%s clients fail together. Retries in the worst tenth of a second: %s with jitter, %s without.", count(p.Clients), count(p.Peak.WithJitter), count(p.Peak.WithoutJitter))
		} else {
			out.say("%s clients fail together. This policy has no jitter. Retries in the worst tenth of a second: %s.", count(p.Clients), count(p.Peak.WithJitter))
		}
	}
	return out.print()
}
