package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/terminal"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What a check finds.
const (
	findOK        = "ok"
	findAttention = "attention" // it works, and somebody should look
	findProblem   = "problem"
)

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Found  string `json:"found"`
	Why    string `json:"why,omitempty"`  // it matters
	Help   string `json:"help,omitempty"` // what to do
}

func fine(check, found string, args ...any) finding {
	return finding{Check: check, Status: findOK, Found: fmt.Sprintf(found, args...)}
}

// examination is what the doctor is asked to look at.
type examination struct {
	data    string
	engines engineFlags
	queues  []string
	targets bool
}

func (c *cli) doctor() *cobra.Command {
	var e examination
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with the server, its data or this host, and say what would help",
		Long: `Find what is wrong, and say why it matters and what would help. It asks the server: is it ready, do the clocks agree, is
something waiting that nobody runs, are there dead letters, jobs with a fault, or open runs whose definition it cannot read. It
looks at this host: time zones, and the rights of files with credentials.

With --data it looks at a data folder instead of calling a server: its rights, how fast the disk syncs and how full it is.
It reads all tables and names those that are damaged; while no server runs on the folder, it reads all records, payloads,
results and logs as well. That takes as long as the disk needs to read them, and standard error tells how far it is. With --store, --queue-url and --blob it looks at what processes and functions
share: may this host use table, queues and bucket, are they set up as they should be, and does anybody tick. With --targets it also tries to connect to what the jobs call, from this
host. It ends with exit code 1 where there is a problem.`,
		Example: `  belfry doctor
  belfry doctor --targets -o json
  belfry doctor --data /var/lib/belfry
  belfry doctor --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs --queue gpu`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.examine(cmd, e) },
	}
	cmd.Flags().StringVar(&e.data, "data", "", "data folder `DIR` to look at, instead of calling a server")
	e.engines.flags(cmd)
	cmd.Flags().StringSliceVar(&e.queues, "queue", nil, "`QUEUE` beside default, with --store; more than once or with commas for several")
	cmd.Flags().BoolVar(&e.targets, "targets", false, "try to connect to what the jobs call")
	return cmd
}

func (c *cli) examine(cmd *cobra.Command, e examination) error {
	ctx := cmd.Context()
	var found []finding
	var jobs []wire.Job
	switch {
	case e.data != "" && e.engines.shared():
		return misused("want one of --data and --store")
	case e.data != "":
		found, jobs = c.dataFindings(ctx, e.data)
	case e.engines.store+e.engines.queues+e.engines.blob != "":
		var err error
		if found, err = c.sharedFindings(ctx, e); err != nil {
			return err
		}
	default:
		server, err := c.client()
		if err != nil {
			return err
		}
		found, jobs = c.serverFindings(ctx, server)
	}
	found = append(append(found, c.hostFindings()...), c.keyFindings(cmd.Root(), e.data)...)
	if e.targets {
		found = append(found, targetFindings(ctx, jobs)...)
	}
	return c.tellFindings(found)
}

// tellFindings prints a table, and below it why what is not in order matters.
func (c *cli) tellFindings(found []finding) error {
	out := newRows(c, []string{"CHECK", "STATUS", "FOUND"})
	problems := 0
	for _, f := range found {
		if f.Status == findProblem {
			problems++
		}
		if err := out.add(f, []string{f.Check, f.Status, f.Found}); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	for _, f := range found {
		if f.Status != findOK && !c.structured() {
			fmt.Fprintf(c.stdout, "\n%s: %s\n", terminal.Line(f.Check), terminal.Line(f.Found))
			for _, line := range []string{f.Why, f.Help} {
				if line != "" {
					fmt.Fprintf(c.stdout, "  %s\n", terminal.Text(line))
				}
			}
		}
	}
	if problems > 0 {
		return fmt.Errorf("%d of %d checks found a problem", problems, len(found))
	}
	return nil
}

// serverFindings asks a running server, and gives its jobs as well.
func (c *cli) serverFindings(ctx context.Context, server *client.Client) ([]finding, []wire.Job) {
	ready, err := server.Ready(ctx)
	var lost *client.Unreachable
	var refused *client.Error
	var found []finding
	switch {
	case errors.As(err, &lost):
		return []finding{{Check: "server", Status: findProblem, Found: err.Error(), Why: "Nothing fires while no server runs.",
			Help: `Start one with "belfry dev" or "belfry serve", or name another with --address. Of a stopped one, look at its folder with --data.`}}, nil
	case errors.As(err, &refused) && len(refused.Checks) > 0:
		found = append(found, finding{Check: "server", Status: findProblem, Found: server.Address() + " is not ready", Why: "It answers, but cannot do its work.",
			Help: "The failing checks below say what it lacks."})
		ready.Checks = refused.Checks
	case err != nil:
		said, help, _ := strings.Cut(c.explain(err).Error(), "\n")
		if !strings.HasPrefix(said, server.Address()) {
			said = server.Address() + ": " + said
		}
		return []finding{{Check: "server", Status: findProblem, Found: said, Help: help}}, nil
	default:
		found = append(found, fine("server", "%s is ready", server.Address()))
	}
	for _, check := range ready.Checks {
		found = append(found, readyFinding(check))
	}
	if skew, err := server.Skew(ctx, c.now); err == nil {
		found = append(found, clockFinding(skew))
	}
	if ready.Version != "" {
		found = append(found, versionFinding(ready.Version, thisBuild().Version))
	}
	more, jobs := c.workFindings(ctx, server)
	return append(found, more...), jobs
}

// readyFinding explains what the server says of itself.
func readyFinding(check wire.Check) finding {
	f := finding{Check: check.Name, Status: findOK, Found: check.Detail}
	switch check.State {
	case wire.CheckFailing:
		f.Status = findProblem
	case wire.CheckAttention:
		f.Status = findAttention
	default:
		return f
	}
	name, _, _ := strings.Cut(check.Name, " ")
	switch name {
	case "clock":
		f.Why, f.Help = "A server whose clock is off claims and starts nothing, so that nothing runs early.", "Set the clock of its host by NTP."
	case "store":
		f.Why, f.Help = "All that Belfry knows is in the store; without it nothing starts and nothing is acknowledged.", "The server's log says what the store answered. After a failure of the disk, make room or mend it, and restart."
	case "data":
		f.Why, f.Help = "Reads that need what is damaged are refused, and what depends on them stands still. The rest works.", helpDamage
	case "ticks":
		f.Why, f.Help = "Ticks find what is due. While a shard is stuck, its jobs do not fire; they catch up when it moves again.", "The server's log names the bucket or record that a tick fails on."
	case "disk":
		f.Why, f.Help = "A full disk stops the server: it acknowledges nothing that is not on the disk.", "Make room, or shorten the retention of busy jobs."
	case "queues":
		f.Why, f.Help = "More runs wait than workers get done; new requests are refused until some have run.", "Raise --concurrency, add workers, or find the job that takes all places: belfry run list --state running."
	case "certificate", "tls":
		f.Why, f.Help = "Callers refuse a certificate that has expired.", "Renew it; the server reads the file again by itself."
	}
	return f
}

const maxClockSkew = 2 * time.Second

// clockFinding judges how far the server's clock is ahead of this host's, at the least.
func clockFinding(skew time.Duration) finding {
	if skew.Abs() <= maxClockSkew {
		return fine("clocks", "the server's and this host's agree")
	}
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	return finding{Check: "clocks", Status: findProblem, Found: fmt.Sprintf("the server's clock is %s %s this host's", skew.Abs().Round(time.Second), side),
		Why:  "Jobs fire by the server's clock. One of the two is off.",
		Help: "Set both by NTP; \"timedatectl\" or \"chronyc tracking\" says whether a host's clock is synchronised."}
}

func versionFinding(server, mine string) finding {
	if server == mine {
		return fine("versions", "the server and this command are both %s", mine)
	}
	return finding{Check: "versions", Status: findAttention, Found: fmt.Sprintf("the server is %s, this command %s", server, mine),
		Why: "A command may ask for what another version does not know.", Help: "Use the same version of both."}
}

// lookedAt is how many jobs or dead letters are looked at, at the most.
const lookedAt = 1000

// workFindings asks what waits, who works, and what went wrong with jobs.
func (c *cli) workFindings(ctx context.Context, server *client.Client) (found []finding, jobs []wire.Job) {
	failed := func(check string, err error) {
		found = append(found, finding{Check: check, Status: findProblem, Found: err.Error(), Help: "The server's log has the details."})
	}
	workers, err := server.Workers(ctx)
	if err != nil {
		failed("workers", err)
		return found, nil
	}
	room, busy := 0, 0
	for _, w := range workers {
		room, busy = room+w.Concurrency, busy+w.Running
	}
	found = append(found, fine("places", "%d of %d are taken", busy, room))
	queues, err := server.Queues(ctx)
	if err != nil {
		failed("queues", err)
	}
	switch shared := slices.ContainsFunc(queues, func(q wire.Queue) bool { return q.Shared }); {
	case room == 0 && shared:
		found[len(found)-1] = fine("places", "there are none with this server; other processes and functions may work on its store")
	case room == 0:
		found[len(found)-1] = finding{Check: "places", Status: findProblem, Found: "there are none: no worker is there", Why: "Runs are queued, and nobody starts them.", Help: "Start workers."}
	}
	for _, q := range queues {
		found = append(found, queueFinding(q, workers))
	}
	letters := 0
	for _, err := range server.DeadLetters(ctx, wire.DeadFilter{}) {
		if err != nil {
			failed("dead letters", err)
			break
		}
		if letters++; letters == lookedAt {
			break
		}
	}
	found = append(found, lettersFinding(letters))
	faults := []string{}
	for j, err := range server.Jobs(ctx, client.JobFilter{}) {
		if err != nil {
			failed("jobs", err)
			break
		}
		if j.Status.Fault != "" {
			faults = append(faults, j.Name)
		}
		if jobs = append(jobs, j); len(jobs) == lookedAt {
			break
		}
	}
	found = append(found, faultsFinding(len(jobs), faults))
	return append(found, definitionFindings(ctx, server)...), jobs
}

func lettersFinding(n int) finding {
	if n == 0 {
		return fine("dead letters", "none waits")
	}
	atLeast := ""
	if n >= lookedAt {
		atLeast = "at least "
	}
	return finding{Check: "dead letters", Status: findAttention, Found: atLeast + countOf(n, "run") + " failed or dead",
		Why:  "Their work was not done, and nobody tries again unless told.",
		Help: `"belfry dead-letter list" shows why; mend the cause, then "belfry dead-letter redrive"; what need not run again, "belfry dead-letter discard".`}
}

func faultsFinding(jobs int, faults []string) finding {
	if len(faults) == 0 {
		return fine("jobs", "%d, none with a fault", jobs)
	}
	return finding{Check: "jobs", Status: findProblem, Found: fmt.Sprintf("%d of %d have a fault: %s", len(faults), jobs, short(strings.Join(faults, ", "), 100)),
		Why: "A job whose next fire cannot be computed is parked: it does not fire.", Help: `"belfry job get NAME" shows the fault. Apply a definition with another schedule.`}
}

// aFew is how many runs may be on their way between queue and worker at a moment, beside as many as are running: where short
// ones follow each other, that is a good part of them.
const aFew = 5

// queueFinding adds up the priorities. What is taken and does not run was handed back: no worker could run it.
func queueFinding(q wire.Queue, workers []wire.Worker) finding {
	sum := inAll(q)
	running := 0
	for _, w := range workers {
		if w.Queue == q.Name {
			running += w.Running
		}
	}
	f := fine("queue "+q.Name, "%d ready, %d delayed, %d taken, of which %d running", sum.Ready, sum.Delayed, sum.Taken, running)
	if q.Shared {
		f = fine("queue "+q.Name, "about %d ready, %d delayed, %d taken, of which %d running with this server", sum.Ready, sum.Delayed, sum.Taken, running)
	}
	if sum.Taken > 2*int64(running)+aFew && !q.Shared {
		f.Status = findAttention
		f.Why = "The others were handed back, perhaps because no worker here can run their targets."
		f.Help = "The server's log names them. Start the workers that can, or start the server with --allow-exec where commands are meant."
	}
	switch {
	case len(q.Lacking) > 0:
		f.Status = findAttention
		f.Why = "Runs wait for what none of its workers offers: " + short(strings.Join(q.Lacking, ", "), 100) + "."
		f.Help = "Start a worker that has it: \"belfry worker\" for http and, with --allow-exec, exec; a program of yours for a handler."
	case q.Remote && q.Workers == 0 && sum.Ready > 0:
		f.Status = findAttention
		f.Why = "No worker serves it: its runs wait."
		f.Help = "Start one with \"belfry worker --queue " + q.Name + "\"; one that runs already may not reach this server."
	}
	return f
}
