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
wait in line. Where a job has a limit for each value of a key, the values that are in use follow it.`,
		Example: "  belfry gate list",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			out := newRows(c, []string{"GATE", "POLICY", "LIMIT", "IN PROGRESS", "WAITING", "NOTE"})
			for g, err := range server.Gates(ctx) {
				if err != nil {
					return endWith(out, err)
				}
				if err := addGate(out, g); err != nil {
					return err
				}
			}
			return out.end()
		}),
	}
}

// addGate adds a gate to a listing; in a table, the values of its key follow it.
func addGate(out *rows, g wire.Gate) error {
	var notes []string
	if g.Paused {
		notes = append(notes, "job paused")
	}
	if g.Key != "" {
		notes = append(notes, "for each "+short(g.Key, 60))
	}
	if err := out.add(g, []string{g.Name, g.Policy, fmt.Sprint(g.Limit), fmt.Sprint(g.InProgress), fmt.Sprint(g.Waiting), strings.Join(notes, "; ")}); err != nil || out.table == nil {
		return err
	}
	for _, k := range g.Keys {
		if err := out.add(k, []string{"- " + short(k.Key, 60), "", "", fmt.Sprint(k.InProgress), fmt.Sprint(k.Waiting), ""}); err != nil {
			return err
		}
	}
	if !g.MoreKeys {
		return nil
	}
	return out.add(g, []string{"- …", "", "", "", "", "there may be more"})
}

func (c *cli) gateLine() *cobra.Command {
	var most int
	var key string
	cmd := &cobra.Command{
		Use:   "line JOB",
		Short: "List the runs of a job that wait in line",
		Long: `List the runs of a job that wait until others of it have ended, in the order in which they are let in: by when they were due, then by when
they were asked for. The job may be named as its gate is, job:NAME. Where the job has a limit for each value of a key, --key chooses one of them; without it,
the lines of all values are listed, one after the other.`,
		Example: `  belfry gate line report
  belfry gate line report -n 10
  belfry gate line report --key acme`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			name := args[0]
			if !strings.HasPrefix(name, gate.Name("")) {
				name = gate.Name(name)
			}
			return list(c, server.Line(ctx, name, key, most), most, []string{"RUN", "NOMINAL", "WAITS SINCE", "START BY", "KEY"}, func(r wire.InLine) []string {
				return []string{r.ID, c.moment(r.NominalTime), c.moment(r.Since), c.moment(r.StartBy), short(r.Key, 60)}
			})
		}),
	}
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "maximum `NUMBER` of runs to show; 0 for all")
	cmd.Flags().StringVar(&key, "key", "", "only the line of this `VALUE` of the key")
	return cmd
}
