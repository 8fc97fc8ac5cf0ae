package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) gate() *cobra.Command {
	cmd := &cobra.Command{Use: "gate", Short: "See which runs wait until others have ended"}
	cmd.AddCommand(c.gateList(), c.gateLine())
	return cmd
}

func (c *cli) gateList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the gates of jobs that bound their overlap",
		Long: `List the gates of jobs whose field overlap bounds how many of their runs are in progress at once, with how many are, and how many
wait in line.`,
		Example: "  belfry gate list",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			return list(c, server.Gates(ctx), 0, []string{"GATE", "POLICY", "LIMIT", "IN PROGRESS", "WAITING", "NOTE"}, func(g wire.Gate) []string {
				note := ""
				if g.Paused {
					note = "job paused"
				}
				return []string{g.Name, g.Policy, fmt.Sprint(g.Limit), fmt.Sprint(g.InProgress), fmt.Sprint(g.Waiting), note}
			})
		}),
	}
}

func (c *cli) gateLine() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "line JOB",
		Short: "List the runs of a job that wait in line",
		Long: `List the runs of a job that wait until others of it have ended, in the order in which they are let in: by when they were due, then by when
they were asked for. The job may be named as its gate is, job:NAME.`,
		Example: `  belfry gate line report
  belfry gate line report -n 10`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			name := args[0]
			if !strings.HasPrefix(name, gate.Name("")) {
				name = gate.Name(name)
			}
			return list(c, server.Line(ctx, name, most), most, []string{"RUN", "NOMINAL", "WAITS SINCE", "START BY"}, func(r wire.InLine) []string {
				return []string{r.ID, c.moment(r.NominalTime), c.moment(r.Since), c.moment(r.StartBy)}
			})
		}),
	}
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "maximum `NUMBER` of runs to show; 0 for all")
	return cmd
}
