package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) queue() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "See what waits, and who works on it"}
	cmd.AddCommand(c.queueList(), c.queueMessages(), c.queueWorkers(), c.queueCreate(), c.queueCheck())
	return cmd
}

func (c *cli) queueList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List queues, with what waits in each",
		Long: `List queues, with what is in each: READY is what really waits, runs that are due and that a worker may start now; DELAYED is sent ahead and not
due; TAKEN is with a worker, or between two attempts at most 15 minutes apart. What is due later, held by a pause or waits in line is in no queue yet:
belfry run list --state scheduled,queued,waiting has it. A run that was cancelled counts until a worker, or its time, comes.

On SQS the numbers are its own, which are about right a minute after the last change. Elsewhere they are exact. NOTE says that, where only workers
elsewhere serve a queue, and what runs wait for that no worker offers.`,
		Example: "  belfry queue list",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			queues, err := server.Queues(ctx)
			if err != nil {
				return err
			}
			return list(c, each(queues), 0, []string{"QUEUE", "WORKERS", "READY", "DELAYED", "TAKEN", "NOTE"}, func(q wire.Queue) []string {
				sum := inAll(q)
				return []string{q.Name, fmt.Sprint(q.Workers), fmt.Sprint(sum.Ready), fmt.Sprint(sum.Delayed), fmt.Sprint(sum.Taken), queueNote(q)}
			})
		}),
	}
}

func (c *cli) queueMessages() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "messages QUEUE",
		Short: "List your messages in a queue: taken, ready and delayed",
		Long: `List the messages that your tenant has in a queue of the server's own: those that workers have taken, those that are ready, in the order in which they
will be taken within their priority, and those that are delayed. Nobody sees messages of other tenants.

READY AT is when a delayed message can be taken, and since when a ready one can be. BACK AT is when a taken message is ready again, unless its run has ended or its worker keeps it for longer. Between two attempts that are at most 15 minutes
apart it is when the next one is due. SQS cannot list messages, so a server with --store and a stack on AWS cannot: "belfry queue list" has how many there are.`,
		Example: `  belfry queue messages default
  belfry queue messages default -n 10
  belfry queue messages gpu -o json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if args[0] == "" {
				return misused("QUEUE is empty: want the name of a queue, as \"belfry queue list\" shows it")
			}
			if most < 1 || most > queue.MaxLook {
				return misused("-n %d: want 1 to %d", most, queue.MaxLook)
			}
			got, err := server.Messages(ctx, args[0], most)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(got)
			}
			if err := list(c, each(got.Items), 0, []string{"STATE", "PRIORITY", "RUN", "READY AT", "TAKEN AT", "BACK AT", "RECEIVES"}, func(m wire.QueueMessage) []string {
				name := m.Run
				if m.Unreadable {
					name = "(unreadable)"
				}
				if m.Step != "" {
					name += "/" + m.Step
				}
				return []string{m.State, m.Priority, name, clock(m.ReadyAt), clock(m.TakenAt), clock(m.BackAt), fmt.Sprint(m.Receives)}
			}); err != nil {
				return err
			}
			sum := inAll(wire.Queue{Priorities: got.Priorities})
			if all := sum.Ready + sum.Delayed + sum.Taken; all > int64(len(got.Items)) {
				fmt.Fprintf(c.messages(), "%d of %d messages: at most %d of each priority and state\n", len(got.Items), all, most)
			}
			if got.SortedOf > 0 {
				fmt.Fprintf(c.messages(), "of the delayed messages of a priority only the %d that were sent first were put in order\n", got.SortedOf)
			}
			return nil
		}),
	}
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "maximum `NUMBER` of messages of each priority and state to show, up to 100")
	return cmd
}

func queueNote(q wire.Queue) string {
	var notes []string
	if q.Remote {
		notes = append(notes, "workers elsewhere")
	}
	if q.Shared {
		notes = append(notes, "other processes may work on it, and the numbers are approximate")
	}
	if len(q.Lacking) > 0 {
		notes = append(notes, "no worker has "+strings.Join(q.Lacking, ", "))
	}
	return strings.Join(notes, "; ")
}

// inAll adds up a queue's priorities.
func inAll(q wire.Queue) (sum wire.Depth) {
	for _, depth := range q.Priorities {
		sum.Ready, sum.Delayed, sum.Taken = sum.Ready+depth.Ready, sum.Delayed+depth.Delayed, sum.Taken+depth.Taken
	}
	return sum
}

func (c *cli) queueWorkers() *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List workers, with what each has under way",
		Long: `List the workers of the server's own process and those elsewhere that take runs from it, with how many attempts each has under
way and how many it takes at most. Of one elsewhere it is told when it was last heard of.`,
		Example: "  belfry queue workers",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			workers, err := server.Workers(ctx)
			if err != nil {
				return err
			}
			return list(c, each(workers), 0, []string{"WORKER", "QUEUE", "RUNNING", "PLACES", "SINCE", "HEARD OF", "LABELS"}, func(w wire.Worker) []string {
				return []string{w.ID, w.Queue, fmt.Sprint(w.Running), fmt.Sprint(w.Concurrency), clock(w.StartedAt), clock(w.SeenAt), labelsOf(w.Labels)}
			})
		}),
	}
}

// each is a listing that is there as a whole.
func each[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range all {
			if !yield(item, nil) {
				return
			}
		}
	}
}
