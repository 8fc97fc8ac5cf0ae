package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// queueSetup says which queues of SQS are meant.
type queueSetup struct {
	url   string
	names []string
}

func (q *queueSetup) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.url, "queue-url", "", queuesURL)
	called(cmd.Flags(), "queue-url", "BELFRY_QUEUE")
	cmd.Flags().StringSliceVar(&q.names, "queue", nil, "`QUEUE` beside default; more than once or with commas for several")
	called(cmd.Flags(), "queue", "BELFRY_QUEUES")
	alwaysWanted(cmd.Flags(), "queue-url", "queue")
}

// each does something with the three queues of each pool, default first.
func (q *queueSetup) each(cmd *cobra.Command, do func(pool string, cfg sqs.Config) error) error {
	if q.url == "" {
		return misused("want --queue-url sqs://PREFIX, or BELFRY_QUEUE")
	}
	pools, _, err := (&poolFlags{here: q.names}).read()
	if err != nil {
		return err
	}
	for _, pool := range pools {
		cfg, err := pool.Queues(cmd.Context(), q.url, newID)
		if err != nil {
			return badAddress(err)
		}
		if err := do(pool.Name, cfg); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) queueCreate() *cobra.Command {
	var s queueSetup
	var dead string
	receives := 10
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make the SQS queues of a shared store, those that are not there",
		Long: `Make the SQS queues of a shared store, for those who do not deploy the SAM template, which makes its own: of each QUEUE three,
PREFIX-QUEUE-high, -normal and -low, and PREFIX-dead for messages that workers were handed too often. Messages are encrypted,
and kept for a day. What stands is left as it is; "belfry queue check" says how that is.`,
		Example: `  belfry queue create --queue-url sqs://belfry
  belfry queue create --queue-url "sqs://belfry?region=eu-central-1" --queue gpu --queue mail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if receives < 5 || receives > 1000 {
				return misused("--max-receives %d: want 5 to 1000; a message is also handed out again when a worker ends", receives)
			}
			out := newRows(c, []string{"QUEUE", "WHAT"})
			told := map[string]bool{}
			err := s.each(cmd, func(_ string, cfg sqs.Config) error {
				name := dead
				if name == "" {
					at, err := sqs.ParseURL(s.url)
					if err != nil {
						return badAddress(err)
					}
					name = at.Prefix + "-dead"
				}
				made, err := sqs.Create(cmd.Context(), cfg, name, receives)
				for _, q := range made {
					what := "stood already"
					if q.New {
						what = "made"
					}
					if !told[q.Name] {
						told[q.Name] = true
						if err := out.add(map[string]any{"queue": q.Name, "made": q.New}, []string{q.Name, what}); err != nil {
							return err
						}
					}
				}
				return err
			})
			return errors.Join(err, out.end())
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&dead, "dead", "", "`NAME` of the queue for messages that were handed out too often; PREFIX-dead by default")
	cmd.Flags().IntVar(&receives, "max-receives", 10, "`NUMBER` of times that a message is handed out before it goes there")
	return cmd
}

func (c *cli) queueCheck() *cobra.Command {
	var s queueSetup
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the SQS queues of a shared store are as they should be",
		Long: `Say whether the SQS queues of a shared store are there and may be used, whether they are encrypted, how long they keep a
message, and where one goes that is handed out too often. It ends with exit code 1 where there is a problem.`,
		Example: `  belfry queue check --queue-url sqs://belfry --queue gpu`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var found []finding
			err := s.each(cmd, func(_ string, cfg sqs.Config) error {
				queues, err := sqs.Describe(cmd.Context(), cfg)
				for _, q := range queues {
					found = append(found, setupFinding(q))
				}
				return err
			})
			if err != nil {
				return err
			}
			return c.tellFindings(together(found))
		},
	}
	s.flags(cmd)
	return cmd
}

// together makes one finding of what is the matter with several queues, so that it is said once. Of those that are well each has its own.
func together(found []finding) []finding {
	var out []finding
	var alike [][]string // the queues of each
	for _, f := range found {
		at := slices.IndexFunc(out, func(other finding) bool { return other.Found == f.Found && f.Status != findOK })
		if at < 0 {
			out, alike = append(out, f), append(alike, []string{f.Check})
			continue
		}
		alike[at] = append(alike[at], f.Check)
	}
	for i, names := range alike {
		if len(names) > 1 {
			out[i].Check, out[i].Found = countOf(len(names), "queue"), out[i].Found+": "+strings.Join(names, ", ")
		}
	}
	return out
}

// setupFinding says what is as it should be of a queue, and what is not: the worst that was found.
func setupFinding(q sqs.Setup) finding {
	f := finding{Check: q.Name, Status: findAttention}
	switch {
	case errors.Is(q.Err, sqs.ErrMissing):
		return finding{Check: q.Name, Status: findProblem, Found: "not there", Why: "Runs of this priority could not be sent.",
			Help: "Make it: belfry queue create. Or correct the prefix or the region in --queue-url."}
	case q.Err != nil:
		return finding{Check: q.Name, Status: findProblem, Found: strings.TrimPrefix(q.Err.Error(), "sqs: ")}
	case q.Delays > 0:
		f.Found = fmt.Sprintf("every message is held back for %s", q.Delays)
		f.Why, f.Help = "Runs are late by that.", "Set the queue's DelaySeconds to 0."
	case q.Keeps > 0 && q.Keeps < 12*time.Hour:
		f.Found = fmt.Sprintf("a message is kept for %s only", q.Keeps)
		f.Why, f.Help = "What waits longer for a worker is sent again, and costs that.", "Set the queue's MessageRetentionPeriod to 86400."
	case q.Dead == "":
		f.Found = "a message that no worker can handle is handed out for ever"
		f.Why, f.Help = "It costs requests, and keeps workers busy.", "Give the queue a redrive policy, as belfry queue create does for new ones."
	case q.Receives < 5:
		f.Found = fmt.Sprintf("a message is given up after it was handed out %d times", q.Receives)
		f.Why, f.Help = "A message is also handed out again when a worker ends.", "Set the queue's maxReceiveCount to 5 or more."
	case !q.Encrypted:
		f.Found, f.Why, f.Help = "messages are not encrypted", "They hold the job's name, and a short payload.", "Turn on the queue's SSE."
	default:
		return fine(q.Name, "there, with %d messages ready; kept for %s, given up after %d times", q.Waiting, q.Keeps, q.Receives)
	}
	return f
}
