package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) importing() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Take over jobs from elsewhere",
		Long: `Take over jobs from elsewhere. What "belfry export" wrote is Belfry's own, and "belfry job apply -f FILE" takes it in.

With --dry-run the server checks every job and stores none, as with "job apply". Where no server answers, only local checks are made.`}
	cmd.AddCommand(c.importCrontab(), c.importKubernetes(), c.importEventBridge())
	return cmd
}

// importOf makes a command that takes over what read finds in a file. Whatever the file is, the flags and the report are the same,
// and jobs go the way of "job apply".
func (c *cli) importOf(cmd *cobra.Command, read func(name string, text []byte) (jobfile.Taken, error)) *cobra.Command {
	i := &importOf{cli: c}
	cmd.Long += "\n\n" + job.MissedRule
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i.choosesPaused = cmd.Flags().Changed("paused")
		if err := i.labels.read(); err != nil {
			return err
		}
		text, err := c.readFile(args[0])
		if err != nil {
			return err
		}
		i.file = args[0]
		found, err := read(i.file, text)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		changes := jobfile.Changes{Prefix: i.prefix, Labels: i.labels.values}
		if i.choosesPaused {
			changes.Paused = &i.paused
		}
		found.Adjust(changes)
		server, err := c.client()
		if err != nil {
			return err
		}
		return i.apply(cmd.Context(), server, found)
	}
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "let the server check the jobs, show what would be made of them, and store nothing; with -o yaml or json, as \"job apply\" takes them")
	cmd.Flags().StringVar(&i.prefix, "prefix", "", "begin the names of the jobs with `PREFIX`")
	i.labels.flag(cmd, "give the jobs this label, `NAME=VALUE`; more than once or with commas for several")
	cmd.Flags().BoolVar(&i.paused, "paused", false, "pause the jobs; with --paused=false none of them, whatever the file says")
	return cmd
}

type importOf struct {
	*cli
	file          string
	dryRun        bool
	prefix        string
	labels        labels
	paused        bool
	choosesPaused bool
	named         map[string]int // the jobs that the file gives: which of them each is
}

// importLine is a row of the report: what became of something in the file.
type importLine struct {
	Line   int       `json:"line"`
	Name   string    `json:"name,omitempty"`
	Result string    `json:"result"`
	Job    *wire.Job `json:"job,omitempty"`
	Note   string    `json:"note,omitempty"`
	Text   string    `json:"text,omitempty"`
}

var importHeadings = []string{"LINE", "RESULT", "JOB", "WHEN", "WHAT"}

func (l importLine) row() []string {
	when1, what := "", l.Note
	if l.Job != nil {
		when1, what = when(*l.Job), l.Job.Description
	} else if l.Text != "" {
		what = l.Text + " — " + l.Note
	}
	return []string{fmt.Sprint(l.Line), l.Result, l.Name, when1, what}
}

// addRest adds what became of everything that is no job.
func (i *importOf) addRest(out *rows, found jobfile.Taken) (lost int, err error) {
	if i.dryRun && i.structured() {
		for _, n := range found.Notes {
			i.warn("line %d: %s: %s", n.Line, n.Text, n.Why)
		}
		return 0, nil
	}
	for _, set := range found.Settings {
		l := importLine{Line: set.Line, Result: "setting", Note: set.Name + "=" + set.Value}
		if err := out.add(l, l.row()); err != nil {
			return lost, err
		}
	}
	for _, n := range found.Notes {
		l := importLine{Line: n.Line, Result: "note", Note: n.Why, Text: n.Text}
		if n.Lost {
			l.Result = "lost"
			lost++
		}
		if err := out.add(l, l.row()); err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// document is a job as "job apply" would read it.
func (i *importOf) document(j takeover.Job) (document, error) {
	value, err := jobfile.Of(j.Def)
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", j.Name, err)
	}
	return document{Name: j.Name, File: i.file, Job: value}, nil
}

// apply goes on behind a job that the server refuses. Only a server that gives no verdicts ends it.
func (i *importOf) apply(ctx context.Context, server *client.Client, found jobfile.Taken) error {
	out := newRows(i.cli, importHeadings)
	what := "importing jobs"
	if i.dryRun {
		what = "checking jobs"
	}
	i.without(ctx, server, &found)
	told := i.progress(what, int64(len(found.Jobs)))
	defer told.end()
	count := map[string]int{}
	rest := found.Jobs
	var failed error
	for len(rest) > 0 {
		chunk := rest[:min(len(rest), chunkJobs)]
		var verdicts []wire.JobVerdict
		if verdicts, failed = i.put(ctx, server, chunk); failed != nil {
			break
		}
		told.clear()
		for k, v := range verdicts {
			if err := i.tell(out, chunk[k], v, count); err != nil {
				return err
			}
		}
		told.add(int64(len(chunk)))
		rest = rest[len(chunk):]
	}
	told.clear()
	if i.dryRun {
		return i.endDry(ctx, out, found, rest, failed, count)
	}
	var gone *client.Unreachable
	if failed != nil && !errors.As(failed, &gone) {
		return endWith(out, failed)
	}
	elsewhere, err := i.addRest(out, found)
	lost := elsewhere + count["lost"]
	switch {
	case err != nil:
		return err
	case failed != nil:
		return endWith(out, fmt.Errorf("line %d, and those below it: %w", rest[0].Line, failed))
	case lost > 0:
		return endWith(out, fmt.Errorf("%d of %d jobs were not kept", lost, elsewhere+len(found.Jobs)))
	}
	return out.end()
}

// endDry shows the jobs that the server gave no verdict on, as this program alone has checked them, and says so. Without a server that somebody
// has named, that is no failure.
func (i *importOf) endDry(ctx context.Context, out *rows, found jobfile.Taken, unasked []takeover.Job, failed error, count map[string]int) error {
	for _, j := range unasked {
		if err := i.tell(out, j, wire.JobVerdict{Change: "job"}, count); err != nil {
			return err
		}
	}
	lost, err := i.addRest(out, found)
	if err != nil {
		return err
	}
	count["lost"] += lost
	if err := out.end(); err != nil {
		return err
	}
	if len(found.Jobs) > 0 && !i.structured() {
		fmt.Fprintln(i.messages(), job.MissedRule)
	}
	var gone *client.Unreachable
	switch {
	case errors.As(failed, &gone) && i.config.settings["address"].from.kind == fromDefault && ctx.Err() == nil:
		i.warn("only local checks were made: no server answers at %s. To see what a server would refuse, name one with --address", i.address)
	case failed != nil:
		return fmt.Errorf("only local checks were made of line %d, and those below it: %w", unasked[0].Line, failed)
	case len(found.Jobs)+lost > 0 && !i.structured():
		_, err := fmt.Fprintln(i.stdout, dryRunSummary(count))
		return err
	}
	return nil
}

// without takes out of what was found the jobs that others call and that the server would refuse, such as mail where it has no mail server: these
// others are kept, and call nothing. A server that does not answer is left to what follows.
func (i *importOf) without(ctx context.Context, server *client.Client, found *jobfile.Taken) {
	i.named = make(map[string]int, len(found.Jobs))
	for k, j := range found.Jobs {
		i.named[j.Name] = k
	}
	refused := map[string]string{}
	for rest := found.Called(); len(rest) > 0; {
		chunk := rest[:min(len(rest), chunkJobs)]
		rest = rest[len(chunk):]
		verdicts, err := i.ask(ctx, server, chunk, true)
		if err != nil {
			return
		}
		for k, v := range verdicts {
			if v.Problem != nil {
				refused[chunk[k].Name] = v.Problem.Error()
			}
		}
	}
	found.Without(refused)
}

// put gives the server's verdicts on some jobs.
func (i *importOf) put(ctx context.Context, server *client.Client, jobs []takeover.Job) (verdicts []wire.JobVerdict, err error) {
	return i.ask(ctx, server, jobs, i.dryRun)
}

func (i *importOf) ask(ctx context.Context, server *client.Client, jobs []takeover.Job, dryRun bool) (verdicts []wire.JobVerdict, err error) {
	docs := make([]document, len(jobs))
	for k, j := range jobs {
		if docs[k], err = i.document(j); err != nil {
			return nil, err
		}
	}
	told, err := (&apply{cli: i.cli, server: server, dryRun: dryRun, named: i.named}).putChunk(ctx, docs)
	for _, v := range told {
		verdicts = append(verdicts, v.JobVerdict)
	}
	return verdicts, err
}

// tell shows what became of a job, and counts it. For programs a dry run shows the jobs alone, as a file of "job apply" has them; what is to be
// known about them is for people, on standard error.
func (i *importOf) tell(out *rows, j takeover.Job, v wire.JobVerdict, count map[string]int) error {
	if v.Problem != nil {
		count["lost"]++
	} else {
		count[v.Change]++
	}
	if i.dryRun && i.structured() {
		if v.Problem != nil {
			i.warn("line %d: %s: the server would refuse it: %s", j.Line, j.Name, v.Problem.Error())
		}
		d, err := i.document(j)
		if err != nil {
			return err
		}
		return out.add(d.Text(), nil)
	}
	l := importLine{Line: j.Line, Name: j.Name, Result: v.Change}
	if v.Problem != nil {
		l.Result, l.Note = "lost", v.Problem.Error()
	} else {
		l.Job = &wire.Job{Definition: j.Def.WithDefaults()}
	}
	return out.add(l, l.row())
}
