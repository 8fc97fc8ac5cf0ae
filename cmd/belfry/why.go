package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// reasons is what "run why" prints as data.
type reasons struct {
	ID      string         `json:"id"`
	State   string         `json:"state"`
	Waiting []wire.Waiting `json:"waiting,omitempty"` // of one that has not ended, what has to end first standing first
	Why     *wire.Why      `json:"why,omitempty"`     // of one that was skipped
	Reason  string         `json:"reason,omitempty"`
}

func (c *cli) runWhy() *cobra.Command {
	return &cobra.Command{
		Use:   "why RUN",
		Short: "Say why a run does not go on, or why it has ended as it did",
		Long: `Say in a sentence why a run that has not ended does not go on: what it waits for, until when at least, and who or what can end that. Where there are several
reasons, what has to end first stands first. Of a run that has ended it is why it ended as it did: what was in its way, or the error of its newest attempt.`,
		Example: `  belfry run why report~0mi4lf3k0
  belfry run why report~0mi4lf3k0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			r, err := server.Run(ctx, args[0])
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(reasons{r.ID, r.State, r.Waiting, r.Why, why(r)})
			}
			for _, line := range c.whyNot(r) {
				fmt.Fprintln(c.stdout, line)
			}
			return nil
		}),
	}
}

// whyNot are the sentences about a run, one for each reason.
func (c *cli) whyNot(r wire.Run) (lines []string) {
	for _, w := range r.Waiting {
		lines = append(lines, c.whyWaiting(w))
	}
	switch text := why(r); {
	case len(lines) > 0:
	case text != "":
		lines = append(lines, fmt.Sprintf("It is %s: %s.", r.State, text))
	default:
		lines = append(lines, fmt.Sprintf("It is %s, and nothing is in its way.", r.State))
	}
	return lines
}
