package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/plan/ordering"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) planOrder() *cobra.Command {
	var q wire.OrderQuestion
	var mean, p99, delay time.Duration
	var most int
	cmd := &cobra.Command{
		Use:   "order",
		Short: "Play made-up load through a queue: which message is taken when",
		Long: `Play made-up load through a queue as in a server's own memory ("belfry dev", and "belfry serve" without --store), in virtual time, and list what becomes of each message: when it is sent, when it
is ready, which worker takes it, and when its run has ended. The same seed gives the same again.

High priority goes before normal and normal before low, but of 16 turns normal has 3 and low has 1. TURN is the priority whose turn it was; where none of it was
ready, the highest that had something went.`,
		Example: `  belfry plan order --workers 2 --arrivals 8 --high 30% --low 30% --duration 400ms
  belfry plan order --workers 1 --arrivals 20 --messages 40 --delayed 50% --longest-delay 3s -n 0
  belfry plan order --workers 3 --arrivals 30 --messages 1000 --high 50% --low 20% -o json`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var missing []string
			for _, name := range []string{"workers", "arrivals"} {
				if !cmd.Flags().Changed(name) {
					missing = append(missing, fmt.Sprintf("--%s: want a number above 0, such as 2 or 20", name))
				}
			}
			if len(missing) > 0 {
				return misused("%s", strings.Join(missing, "\n"))
			}
			if err := refuseZeros(cmd, "messages", "longest-delay", "duration", "seed"); err != nil {
				return err
			}
			if most < 0 {
				return misused("-n %d: want 0 for all, or more", most)
			}
			q.Service.Mean, q.Service.P99, q.Delay = schedule.Duration(mean), schedule.Duration(p99), schedule.Duration(delay)
			made, err := ordering.Play(cmd.Context(), q)
			if err != nil {
				return ofFlags(err, flagOf)
			}
			if c.structured() {
				return c.print(made)
			}
			return c.showOrder(made, most)
		},
	}
	wholeFlag(cmd, &q.Workers, "workers", "", "`NUMBER` of workers, up to 100")
	countFlag(cmd, &q.Rate, "arrivals", "", "`RATE` of messages a second, as 20 or 0.5")
	wholeFlag(cmd, &q.Messages, "messages", fmt.Sprint(ordering.Usual.Messages), "`NUMBER` of messages in all, up to 1000")
	shareFlag(cmd, &q.Delayed, "delayed", "0%", "`SHARE` of the messages that are sent ahead of their time")
	lengthFlag(cmd, &delay, "longest-delay", ordering.Usual.Delay.String(), "longest `DURATION` of a delay, up to 15m; delays are evenly distributed from 0s on")
	lengthFlag(cmd, &mean, "duration", ordering.Usual.Service.Mean.String(), "`DURATION` of a run, on average, up to 1h")
	cmd.Flags().StringVar(&q.Service.Kind, "distribution", ordering.Usual.Service.Kind, "`KIND` of distribution that durations have: constant, exponential or lognormal")
	lengthFlag(cmd, &p99, "p99", "", "`DURATION` that one run in a hundred exceeds, with --distribution lognormal")
	shareFlag(cmd, &q.Shares[0], "high", "0%", "`SHARE` of the messages that have high priority")
	shareFlag(cmd, &q.Shares[2], "low", "0%", "`SHARE` of the messages that have low priority; what is left is normal")
	cmd.Flags().Uint64Var(&q.Seed, "seed", ordering.Usual.Seed, "`SEED` of all chance: the same one gives the same answer")
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "maximum `NUMBER` of events to show; 0 for all")
	return cmd
}

func (c *cli) showOrder(p wire.OrderPlan, most int) error {
	out := newPaper(c)
	q := p.Question
	out.say("%s, %s at %s/s, %s each on average (%s), seed %d. The last run ended after %s.", several(q.Workers, "worker"),
		several(q.Messages, "message"), rate(q.Rate), brief(q.Service.Mean.Std()), q.Service.Kind, q.Seed, wait(p.Lasts))
	out.head("WAITS, FROM READY TO TAKEN")
	rows := [][]string{{"priority", "messages", "mean", "longest"}}
	for rank, w := range p.Ranks {
		if w.Messages > 0 {
			rows = append(rows, []string{string(queue.Priorities[rank]), fmt.Sprint(w.Messages), wait(w.Mean), wait(w.Max)})
		}
	}
	out.grid(rows)
	out.head("WHAT HAPPENS")
	shown := p.Events
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	rows = [][]string{{"at", "message", "priority", "event", "worker", "turn", ""}}
	for _, e := range shown {
		worker, note := "", ""
		if e.Worker > 0 {
			worker = fmt.Sprint(e.Worker)
		}
		if e.Due != nil {
			note = "delayed until " + wait(*e.Due)
		}
		rows = append(rows, []string{wait(e.At), fmt.Sprint(e.Message), e.Priority, e.Event, worker, e.Turn, note})
	}
	out.grid(rows)
	if left := len(p.Events) - len(shown); left > 0 {
		out.say("%s more: -n 0 shows all.", several(left, "event"))
	}
	return out.print()
}
