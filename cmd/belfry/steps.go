package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/picture"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) runSteps() *cobra.Command {
	var filter client.StepFilter
	cmd := &cobra.Command{
		Use:   "steps RUN",
		Short: "List the steps of a workflow's run",
		Long: `List the steps of a workflow's run, in the order of the workflow, with where each stands. A step that waits for others is pending. One that waits for a time is suspended. One
whose rule can no longer be met is skipped, or upstream_failed where that is since another failed. A failed step ends as failed, or as dead where
its attempts were spent. When the run was cancelled, its time was over, or a failure stopped it, what had not ended is cancelled. A failure that a
catch has taken is told of with the step that handles it. --state and --under list some of them.`,
		Example: `  belfry run steps etl~0mi4lf3k0
  belfry run steps etl~0mi4lf3k0 --state failed,dead,unknown
  belfry run steps etl~0mi4lf3k0 --under parts --state running
  belfry run steps etl~0mi4lf3k0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			return list(c, server.Steps(ctx, args[0], filter), 0, []string{"STEP", "STATE", "ATTEMPTS", "STARTED", "TOOK", "NOTE"}, func(s wire.Step) []string {
				return []string{s.Path, s.State, fromOne(s.Attempt), c.moment(s.StartedAt), stepTook(s), short(cmp.Or(c.waits(s), stepNote(s)), 80)}
			})
		}),
	}
	cmd.Flags().StringSliceVar(&filter.States, "state", nil, "any of these `STATES`, more than once or with commas")
	cmd.Flags().StringVar(&filter.Under, "under", "", "only steps in the scope of this `PATH`, and in scopes in it")
	return cmd
}

func (c *cli) runGraph() *cobra.Command {
	var form drawing
	cmd := &cobra.Command{
		Use:   "graph RUN",
		Short: "Draw the workflow of a run, and where each step stands",
		Long: `Draw the workflow of a run, and where each step of it stands, as text, Mermaid or SVG. It is the workflow that the run has kept, whatever the
job has become. With -o json or yaml, print its definition and its steps as GET /v1/runs/{run}/graph answers with them.`,
		Example: `  belfry run graph etl~0mi4lf3k0
  belfry run graph etl~0mi4lf3k0 --format svg > etl.svg`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = c.calling(func(ctx context.Context, server *client.Client, args []string) error {
		if err := form.check(c, cmd); err != nil {
			return err
		}
		graph, err := server.Graph(ctx, args[0])
		if err != nil {
			return err
		}
		if c.structured() {
			return c.print(graph)
		}
		w, err := flow.Read(graph.Workflow)
		if err != nil {
			return fmt.Errorf("the workflow of %s cannot be drawn by this version of belfry (-o json shows it): %w", graph.ID, err)
		}
		return form.print(c, w, marksOf(w, graph))
	})
	form.flag(cmd)
	return cmd
}

// marksOf says of each node of a run's workflow where it stands.
func marksOf(w *flow.Workflow, graph wire.RunGraph) picture.Marks {
	marks := make(picture.Marks, len(w.Nodes))
	for _, s := range graph.Steps {
		n, ok := w.Node(s.Path)
		if !ok {
			continue
		}
		var notes []string
		if s.CaughtBy != "" {
			notes = append(notes, "caught")
		}
		if s.Attempt > 1 {
			notes = append(notes, fmt.Sprintf("%d attempts", s.Attempt))
		}
		if took := tookBetween(s.StartedAt, s.EndedAt); took != "" {
			notes = append(notes, took)
		}
		marks[n.Index] = picture.Mark{State: flow.State(s.State), Note: strings.Join(notes, ", ")}
	}
	return marks
}

// stepTook is how long the newest attempt took.
func stepTook(s wire.Step) string { return tookBetween(s.StartedAt, s.EndedAt) }

func tookBetween(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return to.Sub(from).Round(time.Millisecond).String()
}

// stepNote is the newest error of a step, or the reason of its end, and who handles its failure.
func stepNote(s wire.Step) string {
	text := s.Reason
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Error != "" {
		text = s.Attempts[n-1].Error
	}
	return caughtNote(s.CaughtBy, text)
}

// caughtNote says of a step, beside all else, who handles its failure; "" where nobody does.
func caughtNote(by, text string) string {
	switch {
	case by == "":
		return text
	case text == "":
		return "caught by " + by
	}
	return "caught by " + by + ": " + text
}

// waits says until when a step waits, or a scope may take.
func (c *cli) waits(s wire.Step) string {
	switch {
	case !s.WaitsUntil.IsZero():
		return "waits until " + c.moment(s.WaitsUntil)
	case !s.TimesOutAt.IsZero():
		return "times out at " + c.moment(s.TimesOutAt)
	}
	return ""
}

// ofStep takes RUN/PATH apart, as targets and logs name a step; path is "" of a whole run. flag is what --step says beside it.
func ofStep(name, flag string) (id, path string, err error) {
	id, path, found := strings.Cut(name, "/")
	switch {
	case found && path == "":
		return "", "", misused("%s: want the path of a step behind the slash, or RUN alone", short(name, 200))
	case found && flag != "":
		return "", "", misused("--step %s: %s names a step already", flag, short(name, 200))
	case flag != "":
		path = flag
	}
	return id, path, nil
}

func (c *cli) runStep() *cobra.Command {
	return &cobra.Command{
		Use:   "step RUN PATH",
		Short: "Show one step of a workflow's run, with its attempts and its result, or why it does not go on",
		Long: `Show one step of a workflow's run, by its path: its name, behind those of the scopes around it and slashes. Of one that has not ended
it says why it does not go on: which steps it waits for, or what else, until when at least, and who or what can end that. RUN and PATH may be one
word, RUN/PATH, as a target sees it. "belfry run logs RUN/PATH" prints what it wrote.`,
		Example: `  belfry run step etl~0mi4lf3k0 extract
  belfry run step etl~0mi4lf3k0/parts/index -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/") {
				return nil
			}
			return errors.New("") // wanting says what is right
		},
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			id, path, err := ofStep(args[0], strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			return c.showStep(ctx, server, id, path)
		}),
	}
}

func (c *cli) showStep(ctx context.Context, server *client.Client, id, path string) error {
	step, err := server.Step(ctx, id, path)
	if err != nil {
		return err
	}
	return show(c, step, func(s wire.Step) [][2]string {
		rows := [][2]string{{"step", s.Path}, {"kind", s.Kind}, {"state", s.State}, {"reason", s.Reason}, {"code", s.Code}, {"caught by", s.CaughtBy}, {"target", s.Target},
			{"released", c.moment(s.ReleasedAt)}, {"started", c.moment(s.StartedAt)}, {"ended", c.moment(s.EndedAt)}, {"took", stepTook(s)},
			{"next attempt", c.moment(s.NextAttemptAt)}, {"waits until", c.moment(s.WaitsUntil)}, {"times out", c.moment(s.TimesOutAt)}, {"worker", s.Worker}}
		for _, w := range s.Waiting {
			rows = append(rows, [2]string{"waits", c.whyWaiting(w)})
		}
		for _, a := range s.Attempts {
			rows = append(rows, [2]string{fmt.Sprintf("attempt %d", a.Attempt), c.moment(a.StartedAt) + ", " + howItWent(a)})
		}
		rows = append(rows, [2]string{"result", resultOf(s.Result, s.ResultSize, id+"/"+s.Path)})
		if s.ResultCut {
			rows = append(rows, [2]string{"", cutResult})
		}
		return rows
	})
}
