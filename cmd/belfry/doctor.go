package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// finding is the outcome of one check.
type finding struct {
	Check     string `json:"check"`
	OK        bool   `json:"ok"`
	Attention bool   `json:"attention,omitempty"` // ok, but somebody should look
	Detail    string `json:"detail"`
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
				switch {
				case !f.OK:
					failed++
					mark = "FAILED"
				case f.Attention:
					mark = "attention"
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
		return []finding{{Check: "server", Detail: err.Error() + `; start one with "belfry dev", or name another with --address`}}
	}
	if err != nil {
		return []finding{{Check: "server", Detail: server.Address() + ": " + err.Error()}}
	}
	found := []finding{{Check: "server", OK: true, Detail: server.Address() + " is ready"}}
	mine := thisBuild().Version
	same := finding{Check: "versions", OK: health.Version == mine, Detail: "both " + mine}
	if !same.OK {
		same.Detail = fmt.Sprintf("the server is %s, this command %s; use the same", health.Version, mine)
	}
	found = append(found, same)

	workers, err := server.Workers(ctx)
	if err != nil {
		return append(found, finding{Check: "workers", Detail: err.Error()})
	}
	room, busy := 0, 0
	for _, w := range workers {
		room, busy = room+w.Concurrency, busy+w.Running
	}
	found = append(found, finding{Check: "workers", OK: room > 0, Detail: fmt.Sprintf("%d of %d places are taken", busy, room)})
	queues, err := server.Queues(ctx)
	if err != nil {
		return append(found, finding{Check: "queues", Detail: err.Error()})
	}
	for _, q := range queues {
		found = append(found, queueFinding(q, workers))
	}
	return found
}

// aFew is how many runs may be on their way between queue and worker at a moment.
const aFew = 5

// queueFinding adds up the priorities. What is taken and does not run was handed back: no worker could run it.
func queueFinding(q wire.Queue, workers []wire.Worker) finding {
	var sum wire.Depth
	for _, depth := range q.Priorities {
		sum.Ready, sum.Delayed, sum.Taken = sum.Ready+depth.Ready, sum.Delayed+depth.Delayed, sum.Taken+depth.Taken
	}
	running := 0
	for _, w := range workers {
		if w.Queue == q.Name {
			running += w.Running
		}
	}
	f := finding{Check: "queue " + q.Name, OK: true}
	f.Detail = fmt.Sprintf("%d runs ready, %d delayed, %d taken, of which %d running", sum.Ready, sum.Delayed, sum.Taken, running)
	if sum.Taken > int64(running)+aFew {
		f.Attention = true
		f.Detail += "; the others were handed back, perhaps because no worker here can run their targets: see the log"
	}
	return f
}

func hostFindings() []finding {
	b := thisBuild()
	found := []finding{{Check: "time zones", OK: true, Detail: "tzdata " + b.TZData + ", built in"}}
	if zone, err := hostZone(os.Getenv("TZ"), "/etc/timezone", "/etc/localtime"); err != nil {
		found = append(found, finding{Check: "host's zone", Detail: err.Error()})
	} else {
		found = append(found, finding{Check: "host's zone", OK: true, Detail: zone + ", for import crontab"})
	}
	return found
}
