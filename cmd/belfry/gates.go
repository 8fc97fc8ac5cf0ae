package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) gate() *cobra.Command {
	cmd := &cobra.Command{Use: "gate", Short: "Limit how many runs are in progress at once, of any jobs, and see who waits"}
	cmd.AddCommand(c.gateApply(), c.gateExport(), c.gateList(), c.gateGet(), c.gateLine(), c.gateClose(), c.gateOpen(), c.gateDelete())
	return cmd
}

func (c *cli) gateApply() *cobra.Command {
	var files []string
	var recursive bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE [GATE]",
		Short: "Create or replace the gates of files",
		Long: `Create or replace the gates of files, which are YAML or JSON: one gate, several with a line of --- between them, an array of
gates, or an object {"gates": [...]}. Of a folder, all files that end with .yaml, .yml or .json are read.

A gate has a limit in units, and may have max_waiting, max_wait and an order. Its name is GATE, else its "name". What "belfry gate get -o yaml" shows
may be applied again. Jobs name a gate in their field gates.

A gate that stands already as it is written stays unchanged. One that is closed stays closed.`,
		Example: `  belfry gate apply -f gates.yaml
  echo '{"limit": 10}' | belfry gate apply stripe -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if len(files) == 0 {
				return misused("want -f FILE, or -f - for standard input")
			}
			all, err := c.readDocuments(jobfile.Gate, files, recursive)
			if err != nil {
				return err
			}
			if err := nameAll(jobfile.Gate, all, args); err != nil {
				return err
			}
			return c.applyGates(ctx, server, all)
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "`FILE` or folder with gates, - for standard input; may be given more than once")
	cmd.Flags().BoolVarP(&recursive, "recursive", "R", false, "read the folders in a folder, too")
	return cmd
}

// applyGates puts one gate after the other. One that is refused does not keep the others.
func (c *cli) applyGates(ctx context.Context, server *client.Client, all []document) error {
	out := newRows(c, []string{"GATE", "RESULT", "LIMIT"})
	var refused error
	for _, d := range all {
		result := "updated"
		before, err := server.Gate(ctx, d.Name)
		if client.HasCode(err, "gate_not_found") {
			result, err = "created", nil
		}
		var g wire.Gate
		if err == nil {
			g, err = server.PutGateDocument(ctx, d.Name, d.Job.JSON(), client.Condition{})
		}
		if problem, ok := refusal(err); ok {
			refused = errSaid
			fmt.Fprintf(c.messages(), "belfry: %s\n", d.Explain(problem))
			continue
		}
		if err != nil {
			return endWith(out, err)
		}
		if g.ETag == before.ETag {
			result = "unchanged"
		}
		if err := out.add(g, []string{g.Name, result, strconv.Itoa(g.Limit)}); err != nil {
			return err
		}
	}
	return endWith(out, refused)
}

func (c *cli) gateExport() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write all gates as files have them; \"gate apply\" takes them in",
		Long: `Write the definitions of all gates that have names of their own to standard output: one document a gate, in the order of their names, as YAML, or as
JSON with -o json. "belfry gate apply -f FILE" takes them in, here or on another server. There it comes before "belfry job apply", since a job names
gates that exist. Whether a gate is closed is not in it.`,
		Example: "  belfry gate export > gates.yaml",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			form, err := c.exportForm("-")
			if err != nil {
				return err
			}
			count := 0
			for g, err := range server.Gates(ctx) {
				if err != nil || g.Job != "" { // own gates of jobs come behind all others, and are in the export of jobs
					return err
				}
				text, err := exportedGate(g, form)
				if err != nil {
					return err
				}
				if count++; count > 1 && form == formYAML {
					text = append([]byte("---\n"), text...)
				}
				if _, err := c.stdout.Write(text); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// exportedGate is a gate as a document of its own.
func exportedGate(g wire.Gate, form string) ([]byte, error) {
	def := gate.Definition{Limit: g.Limit, MaxWaiting: g.MaxWaiting, Order: gate.Order(g.Order), MaxWait: g.MaxWait}.WithDefaults()
	text, err := encodeJSON(wire.GateDefinition{Name: g.Name, Definition: def}, "", "  ")
	if err != nil || form == formJSON {
		return text, err
	}
	return yamlOf(text)
}

func (c *cli) gateList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List gates, with how many runs are in progress and wait",
		Long: `List the gates that have names of their own, and after them those of jobs whose field overlap bounds how many of their runs are in progress
at once. UNITS is how much of the limit is taken, by the runs that are in progress. WAITING is how many runs wait, and 1000+ is at least so many. Where runs pass a gate
by a key, its row counts those of all values, and the values that are in use follow it.`,
		Example: "  belfry gate list",
		Args:    cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			out := newRows(c, []string{"GATE", "POLICY", "LIMIT", "UNITS", "IN PROGRESS", "WAITING", "NOTE"})
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
	row := []string{g.Name, g.Policy + g.Order, strconv.Itoa(g.Limit), strconv.Itoa(g.Units), strconv.Itoa(g.InProgress), waitingOf(g), strings.Join(notesOf(g), "; ")}
	if err := out.add(g, row); err != nil || out.table == nil {
		return err
	}
	for _, k := range g.Keys {
		if err := out.add(k, []string{"- " + short(k.Key, 60), "", "", strconv.Itoa(k.InProgress), strconv.Itoa(k.InProgress), strconv.Itoa(k.Waiting), ""}); err != nil {
			return err
		}
	}
	if !g.MoreKeys {
		return nil
	}
	return out.add(g, []string{"- …", "", "", "", "", "", "there may be more"})
}

// waitingOf is how many runs wait at a gate: 1000+ where at least so many do.
func waitingOf(g wire.Gate) string {
	if g.MoreWaiting {
		return strconv.Itoa(g.Waiting) + "+"
	}
	return strconv.Itoa(g.Waiting)
}

// notesOf says what keeps runs out of a gate, and for what it is.
func notesOf(g wire.Gate) (notes []string) {
	if g.Closed != nil {
		notes = append(notes, closedNote(*g.Closed))
	}
	for _, b := range g.BlockedBy {
		note := fmt.Sprintf("stands still after %s ended as %s", b.Run, b.State)
		if b.Key != "" {
			note += ", for " + short(b.Key, 60)
		}
		notes = append(notes, note)
	}
	if g.Paused {
		notes = append(notes, "job paused")
	}
	if g.Key != "" {
		notes = append(notes, "for each "+short(g.Key, 60))
	}
	return notes
}

func closedNote(closed wire.GateClosure) string {
	if closed.Reason == "" {
		return "closed"
	}
	return "closed: " + short(closed.Reason, 100)
}

func (c *cli) gateGet() *cobra.Command {
	return &cobra.Command{
		Use:   "get GATE",
		Short: "Show a gate",
		Long: `Show a gate, with how many runs are in progress and wait. It may be the name of a job that bounds its overlap; where a gate has the
same name, job:NAME is the job's.`,
		Example: `  belfry gate get stripe
  belfry gate get stripe -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			g, err := gateNamed(ctx, server, args[0])
			if err != nil {
				return err
			}
			return c.showGate(g)
		}),
	}
}

// gateNamed finds a gate by its name, or by that of the job whose own gate it is.
func gateNamed(ctx context.Context, server *client.Client, name string) (wire.Gate, error) {
	g, err := server.Gate(ctx, name)
	if client.HasCode(err, "gate_not_found") && !strings.HasPrefix(name, gate.Name("")) {
		if own, failed := server.Gate(ctx, gate.Name(name)); failed == nil {
			return own, nil
		}
	}
	return g, err
}

func (c *cli) showGate(g wire.Gate) error {
	return show(c, g, func(g wire.Gate) [][2]string {
		most := "any number may wait"
		switch {
		case job.OverlapPolicy(g.Policy).LatestWaits():
			most = "the latest waits, in place of the one before"
		case g.MaxWaiting != nil:
			most = fmt.Sprintf("at most %d may wait", *g.MaxWaiting)
		}
		if g.MaxWait != 0 {
			most += fmt.Sprintf(", for %s at the longest", g.MaxWait)
		}
		closed := ""
		if g.Closed != nil {
			closed = strings.TrimPrefix(closedNote(*g.Closed), "closed: ") + ", since " + c.saidAt(g.Closed.Since, g.Closed.By, "")
		}
		opened := ""
		if g.Opened != nil {
			if opened = c.saidAt(g.Opened.At, g.Opened.By, g.Opened.Reason); len(g.Opened.Runs) > 0 {
				opened += "; it stood still after " + strings.Join(g.Opened.Runs, ", ")
			}
		}
		notes := g
		notes.Closed = nil
		rows := [][2]string{{"gate", g.Name}, {"job", g.Job}, {"limit", strconv.Itoa(g.Limit)}, {"policy", g.Policy}, {"order", g.Order}, {"line", most}, {"closed", closed}, {"opened", opened},
			{"in progress", fmt.Sprintf("%s, of %d units", countOf(g.InProgress, "run"), g.Units)}, {"waiting", waitingOf(g)}, {"note", strings.Join(notesOf(notes), "; ")}}
		if g.Generation != 0 {
			rows = append(rows, [2]string{"generation", fmt.Sprint(g.Generation)}, [2]string{"etag", g.ETag}, [2]string{"updated", clock(g.UpdatedAt)})
		}
		return rows
	})
}

func (c *cli) gateLine() *cobra.Command {
	var most int
	var key string
	cmd := &cobra.Command{
		Use:   "line GATE",
		Short: "List the runs that wait at a gate",
		Long: `List the runs that wait at a gate, in the order in which they are let in. GATE may be the name of a job: then it is the line of the runs that wait until others
of that job have ended. Where a gate has the same name, job:NAME is the job's. Where runs pass it by a key, --key chooses one of its values; without it,
the lines of all values are listed, one after the other.`,
		Example: `  belfry gate line report
  belfry gate line report -n 10
  belfry gate line stripe`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			name := args[0]
			if !strings.HasPrefix(name, gate.Name("")) {
				if _, err := server.Gate(ctx, name); client.HasCode(err, "gate_not_found") {
					name = gate.Name(name)
				} else if err != nil {
					return err
				}
			}
			return list(c, server.Line(ctx, name, key, most), most, []string{"RUN", "NOMINAL", "WAITS SINCE", "WAITS UNTIL", "START BY", "END BY", "KEY", "OVERLAP"}, func(r wire.InLine) []string {
				return []string{r.ID, c.moment(r.NominalTime), c.moment(r.Since), c.moment(r.WaitUntil), c.moment(r.StartBy), c.moment(r.EndBy), short(r.Key, 60), r.Overlap}
			})
		}),
	}
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "maximum `NUMBER` of runs to show; 0 for all")
	cmd.Flags().StringVar(&key, "key", "", "only the line of this `VALUE` of the key")
	return cmd
}

func (c *cli) gateClose() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "close GATE",
		Short: "Close a gate: nobody is let in until it is opened",
		Long: `Close a gate: no run is let in until it is opened. Runs in progress go on. The reason is shown with the gate, and with each run that waits at it.
The own gate of a job is closed by "belfry job pause".`,
		Example: `  belfry gate close stripe --reason "they are down"`,
		Args:    cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			g, err := server.CloseGate(ctx, args[0], reason)
			if err != nil {
				return err
			}
			return c.showGate(g)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for people, of at most 256 bytes")
	return cmd
}

func (c *cli) gateOpen() *cobra.Command {
	var o wire.OpenRequest
	cmd := &cobra.Command{
		Use:   "open GATE",
		Short: "Open a gate that was closed, or let a line go on that stands still",
		Long: `Open a gate that was closed: runs that wait are let in as far as there is room. The reason is shown with the gate.

Under "overlap: strict" the line of a job stands still after a run that ended as failed, dead or unknown. "belfry run retry" runs it again. To let the line go on without it,
open the gate of the job: GATE is its name, or job:NAME where a gate has the same name. With --run it is opened only if the line stands still behind that run; without it,
only if that is still the run which the server names just before. One that was retried meanwhile, and has ended badly again, is not let go: look at it first.
Where the job has a line for each value of a key, --run or --key says which.`,
		Example: `  belfry gate open stripe --reason "they are back"
  belfry gate open ledger --run ledger~0mi4lf3k0 --reason "made up by hand"`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			name := args[0]
			if own := gate.Name(name); !strings.HasPrefix(name, gate.Name("")) {
				if o.Run != "" || o.Key != "" { // which only the gate of a job takes
					name = own
				} else if _, err := server.Gate(ctx, name); client.HasCode(err, "gate_not_found") {
					name = own
				} else if err != nil {
					return err
				}
			}
			if strings.HasPrefix(name, gate.Name("")) {
				seen, err := blocking(ctx, server, name, o)
				if err != nil {
					return err
				}
				if o.Since = seen.Since; o.Run == "" {
					o.Run = seen.Run
				}
			}
			g, err := server.OpenGate(ctx, name, o)
			if err != nil {
				return err
			}
			return c.showGate(g)
		}),
	}
	cmd.Flags().StringVar(&o.Run, "run", "", "`ID` of the run behind which the line of a job stands still: open it only then")
	cmd.Flags().StringVar(&o.Key, "key", "", "`VALUE` of the key whose line is to go on")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "`TEXT` for people, of at most 256 bytes")
	return cmd
}

// blocking is the run behind which the line of a job stands still, as it is shown now: the one that is named, or that at a value of the job's key or "". It is the zero value where none is,
// or where the job has a line for each value and none is named. An opening that names it and its end is safe to send again, and lets no other run go.
func blocking(ctx context.Context, server *client.Client, name string, o wire.OpenRequest) (wire.BlockedBy, error) {
	g, err := server.Gate(ctx, name)
	if err != nil {
		return wire.BlockedBy{}, err
	}
	for _, b := range g.BlockedBy {
		if o.Run != "" {
			if b.Run == o.Run {
				return b, nil
			}
		} else if b.Key == o.Key || o.Key != "" && b.Key == gate.ShownKey(gate.KeyAsked(o.Key)) {
			return b, nil
		}
	}
	return wire.BlockedBy{}, nil
}

func (c *cli) gateDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete GATE...",
		Short: "Delete gates: runs that wait at them are let in",
		Long: `Delete gates. Runs that wait at them are let in, whatever is in progress. Jobs that name a gate which is gone go on running, and pass as if it
were not there.`,
		Example: `  belfry gate delete stripe`,
		Args:    cobra.MinimumNArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			var errs []error
			for _, name := range args {
				if err := server.DeleteGate(ctx, name, client.Condition{}); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
			}
			return errors.Join(errs...)
		}),
	}
}

func (c *cli) runRelease() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "release RUN",
		Short: "Let a run that waits at a gate go to the front of the line",
		Long: `Let a run that waits at a gate go to the front of the line. It is let in as soon as there is room: the limit holds for it as well, and so does the
closure of a gate. Who released it and the reason are shown with the run.`,
		Example: `  belfry run release report~0mi4lf3k0 --reason "the customer waits"`,
		Args:    cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			r, err := server.Release(ctx, args[0], reason)
			if err != nil {
				return err
			}
			return c.showRun(r)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for people, of at most 200 characters")
	return cmd
}
