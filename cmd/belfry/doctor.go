package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *cli) doctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the server and this host, and say what would help",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := c.client()
			if err != nil {
				return err
			}
			out := newRows(c, []string{"CHECK", "", "DETAIL"})
			failed := 0
			for _, f := range append(c.serverFindings(cmd.Context(), server), hostFindings()...) {
				mark := "ok"
				if !f.OK {
					failed++
					mark = "FAILED"
				}
				if err := out.add(f, []string{f.Check, mark, f.Detail}); err != nil {
					return err
				}
			}
			if failed > 0 {
				return endWith(out, fmt.Errorf("%d of %d checks failed", failed, out.count))
			}
			return out.end()
		},
	}
}

func (c *cli) serverFindings(ctx context.Context, server *client.Client) []finding {
	health, err := server.Ready(ctx)
	var lost *client.Unreachable
	if errors.As(err, &lost) {
		return []finding{{"server", false, err.Error() + `; start one with "belfry dev", or name another with --address`}}
	}
	if err != nil {
		return []finding{{"server", false, server.Address() + ": " + err.Error()}}
	}
	found := []finding{{"server", true, server.Address() + " is ready"}}
	mine := thisBuild().Version
	same := finding{"versions", health.Version == mine, "both " + mine}
	if !same.OK {
		same.Detail = fmt.Sprintf("the server is %s, this command %s; use the same", health.Version, mine)
	}
	found = append(found, same)

	workers, err := server.Workers(ctx)
	switch {
	case err != nil:
		found = append(found, finding{"workers", false, err.Error()})
	default:
		room, busy := 0, 0
		for _, w := range workers {
			room, busy = room+w.Concurrency, busy+w.Running
		}
		found = append(found, finding{"workers", room > 0, fmt.Sprintf("%d of %d places are taken", busy, room)})
	}
	queues, err := server.Queues(ctx)
	if err != nil {
		return append(found, finding{"queues", false, err.Error()})
	}
	for _, q := range queues {
		var ready int64
		for _, depth := range q.Priorities {
			ready += depth.Ready
		}
		found = append(found, finding{"queue " + q.Name, true, fmt.Sprintf("%d runs wait for a worker", ready)})
	}
	return found
}

func hostFindings() []finding {
	b := thisBuild()
	found := []finding{{"time zones", true, "tzdata " + b.TZData + ", built in"}}
	if zone, err := hostZone(os.Getenv("TZ"), "/etc/timezone", "/etc/localtime"); err != nil {
		found = append(found, finding{"host's zone", false, err.Error()})
	} else {
		found = append(found, finding{"host's zone", true, zone + ", for import crontab"})
	}
	return found
}
