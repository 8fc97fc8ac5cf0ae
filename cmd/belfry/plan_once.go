package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) planOnce() *cobra.Command {
	var q wire.OnceQuestion
	cmd := &cobra.Command{
		Use:   "once",
		Short: "Play one run to which something goes wrong: how often its target is called, and how often that has an effect",
		Long: `Play one run to which something goes wrong, and list each message, each write of the run and each call with its fence. The job asks a payment service to pay an invoice; the
effect is one payment. The scheduler, its leases and its fences are a server's own, in virtual time, over a queue and a store that fail as you say. The two workers and the payment
service follow a script, and a server writes for its workers. The fault hits the first attempt.

Faults: message_twice, the queue has the message twice; dies_before, the worker dies before its call; dies_after, it dies after the effect; answer_lost, the target's answer is
lost; write_lost, the store writes the end of the attempt and its answer is lost; zombie, the worker stands still before its call until another has taken over and made
its own; zombie_first, it wakes up earlier, and makes its call before the other one does; clocks_jump, the clocks of all hosts jump ahead by an hour and the message comes
again.

Guards of the target: key, it does nothing for an Idempotency-Key under which it has paid; fence, it refuses a call whose Belfry-Fence is older than the highest that it has seen
for this run. The table at the end compares all faults and guards.`,
		Example: `  belfry plan once --fault dies_after
  belfry plan once --fault zombie --guard fence
  belfry plan once --guarantee at_most_once --fault answer_lost -o json`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := simulate.DemonstrateOnce(cmd.Context(), q)
			if err != nil {
				return ofFlags(err, flagOf)
			}
			if c.structured() {
				return c.print(made)
			}
			return c.showOnce(made)
		},
	}
	cmd.Flags().StringVar(&q.Guarantee, "guarantee", simulate.OnceGuarantees[0], "`GUARANTEE` of the job: "+strings.Join(simulate.OnceGuarantees, " or "))
	cmd.Flags().StringVar(&q.Fault, "fault", simulate.OnceFaults[0], "`FAULT` that hits the first attempt: "+strings.Join(simulate.OnceFaults, ", "))
	cmd.Flags().StringVar(&q.Guard, "guard", simulate.OnceGuards[0], "`GUARD` of the target: "+strings.Join(simulate.OnceGuards, ", "))
	return cmd
}

func (c *cli) showOnce(p wire.OncePlan) error {
	out := newPaper(c)
	out.say("%s", p.Says)
	o := p.Outcome
	out.say("Deliveries: %d. Attempts: %d. Calls: %d. Effects: %d. Calls repeated under a known key: %d. Calls refused for an old fence: %d. Workers refused by Belfry: %d.", o.Deliveries, o.Attempts, o.Calls, o.Effects, o.RepeatedCalls, o.RefusedCalls, o.RefusedWorkers)
	out.head("WHAT HAPPENS")
	rows := [][]string{{"at", "event", "fence", "in words"}}
	for _, e := range p.Events {
		fence := ""
		if e.Fence > 0 {
			fence = strconv.FormatUint(e.Fence, 10)
		}
		rows = append(rows, []string{wait(e.At), e.Event, fence, e.Text})
	}
	out.grid(rows)
	out.head("PAYMENTS AND CALLS, " + strings.ToUpper(strings.ReplaceAll(p.Question.Guarantee, "_", " ")))
	rows = [][]string{append([]string{"fault / guard"}, simulate.OnceGuards...)}
	for _, fault := range simulate.OnceFaults {
		row := []string{fault}
		for _, r := range p.Compare {
			if r.Question.Guarantee == p.Question.Guarantee && r.Question.Fault == fault {
				cell := fmt.Sprintf("%d of %d", r.Outcome.Effects, r.Outcome.Calls)
				if r.Outcome.State == "unknown" {
					cell += " ?"
				}
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	out.grid(rows)
	if p.Question.Guarantee == string(job.AtMostOnce) {
		out.say("1 of 1: the target was called once and made 1 payment. A question mark: the run is unknown, and Belfry does not start it again by itself.")
	} else {
		out.say("1 of 2: the target was called twice and made 1 payment.")
	}
	return out.print()
}
