package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// reasons is what "run why" prints as data.
type reasons struct {
	ID      string         `json:"id"`
	Step    string         `json:"step,omitempty"` // its path, where a step is asked about
	State   string         `json:"state"`
	Waiting []wire.Waiting `json:"waiting,omitempty"` // of one that has not ended, what has to end first standing first
	Steps   []stepReasons  `json:"steps,omitempty"`   // of a workflow's run that has not ended: what of it is open
	Why     *wire.Why      `json:"why,omitempty"`     // of one that was skipped
	Reason  string         `json:"reason,omitempty"`
}

type stepReasons struct {
	Path    string         `json:"path"`
	State   string         `json:"state"`
	Waiting []wire.Waiting `json:"waiting,omitempty"`
}

func (c *cli) runWhy() *cobra.Command {
	return &cobra.Command{
		Use:   "why RUN",
		Short: "Say why a run does not go on, or why it has ended as it did",
		Long: fmt.Sprintf(`Say in a sentence why a run that has not ended does not go on: what it waits for, until when at least, and who or what can end that. Where there are several
reasons, what has to end first stands first. Of a run that has ended it is why it ended as it did: what was in its way, or the error of its newest attempt.

Of a workflow's run that is under way it says the same of its open steps: those that are in a queue, run or are tried again first, then those that wait for them,
%d at the most. RUN/PATH asks about one step.`, mostOpenSteps),
		Example: `  belfry run why report~0mi4lf3k0
  belfry run why report~0mi4lf3k0 -o json
  belfry run why etl~0mi4lf3k0/parts/index`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			id, path, err := ofStep(args[0], "")
			if err != nil {
				return err
			}
			if path != "" {
				return c.whyStep(ctx, server, id, path)
			}
			r, err := server.Run(ctx, id)
			if err != nil {
				return err
			}
			open, more, err := openSteps(ctx, server, r)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(reasons{ID: r.ID, State: r.State, Waiting: r.Waiting, Steps: open, Why: r.Why, Reason: why(r)})
			}
			for _, line := range c.whyNot(r) {
				fmt.Fprintln(c.stdout, line)
			}
			for _, s := range open {
				if len(s.Waiting) == 0 {
					fmt.Fprintf(c.stdout, "step %s is %s.\n", s.Path, s.State)
				}
				for _, w := range s.Waiting {
					fmt.Fprintf(c.stdout, "step %s is %s: %s\n", s.Path, s.State, c.whyWaiting(w))
				}
			}
			if more > 0 {
				fmt.Fprintf(c.stdout, "%d more have not ended.\n", more)
			}
			return nil
		}),
	}
}

// mostOpenSteps is of how many steps it is said why they do not go on: each is a request.
const mostOpenSteps = 10

// openSteps are the tasks, the waits and the scopes with a timeout that keep a workflow's run from its end, first those that were released, and how many more there are. A run that has not begun, or
// is to stop, says all there is to say itself.
func openSteps(ctx context.Context, server *client.Client, r wire.Run) (open []stepReasons, more int, err error) {
	if r.State != "running" || len(r.Steps) == 0 || len(r.Waiting) != 1 || r.Waiting[0].Code != string(control.WaitSteps) {
		return nil, 0, nil
	}
	var released, pending []wire.Step
	for s, err := range server.Steps(ctx, r.ID, client.StepFilter{States: []string{"pending", "queued", "running", "retrying", "suspended"}}) {
		switch {
		case err != nil:
			return nil, 0, err
		case s.Kind != "task" && s.Kind != "wait" && s.TimesOutAt.IsZero():
		case s.State == "pending":
			pending = append(pending, s)
		default:
			released = append(released, s)
		}
	}
	all := append(released, pending...)
	for _, s := range all[:min(mostOpenSteps, len(all))] {
		now, err := server.Step(ctx, r.ID, s.Path)
		if err != nil {
			return nil, 0, err
		}
		if !ended(now.State) {
			open = append(open, stepReasons{now.Path, now.State, now.Waiting})
		}
	}
	return open, max(0, len(all)-mostOpenSteps), nil
}

func (c *cli) whyStep(ctx context.Context, server *client.Client, id, path string) error {
	s, err := server.Step(ctx, id, path)
	if err != nil {
		return err
	}
	if c.structured() {
		return c.print(reasons{ID: id, Step: s.Path, State: s.State, Waiting: s.Waiting, Reason: stepNote(s)})
	}
	is := stepAsRun(id, s)
	is.Waiting = s.Waiting
	for _, line := range c.whyNot(is) {
		fmt.Fprintln(c.stdout, line)
	}
	return nil
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
