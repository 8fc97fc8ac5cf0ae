package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) importing() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Take over jobs from elsewhere",
		Long: `Take over jobs from elsewhere. What "belfry export" wrote is Belfry's own, and "belfry job apply -f FILE" takes it in.`}
	cmd.AddCommand(c.importCrontab(), c.importKubernetes(), c.importEventBridge())
	return cmd
}

// imported is what was found in a file of another scheduler.
type imported struct {
	jobs     []takeover.Job
	settings []importLine // lines that are about the jobs around them
	notes    []takeover.Note
}

// importOf makes a command that takes over what read finds in a file. Whatever the file is, the flags and the report are the same,
// and jobs go the way of "job apply".
func (c *cli) importOf(cmd *cobra.Command, read func(name string, text []byte) (imported, error)) *cobra.Command {
	i := &importOf{cli: c}
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
		i.adjust(&found)
		if i.dryRun {
			return i.plan(found)
		}
		server, err := c.client()
		if err != nil {
			return err
		}
		return i.apply(cmd.Context(), server, found)
	}
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "only show what would be made of it; with -o yaml or json, as \"job apply\" takes it")
	cmd.Flags().StringVar(&i.prefix, "prefix", "", "begin the names of the jobs with `PREFIX`")
	i.labels.flag(cmd, "give the jobs this label, `NAME=VALUE`; may be given more than once")
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
}

// adjust makes of the jobs what the flags ask for.
func (i *importOf) adjust(found *imported) {
	kept := found.jobs[:0]
	for _, j := range found.jobs {
		j.Name = i.prefix + j.Name
		j.Def.Labels = maps.Clone(j.Def.Labels)
		maps.Copy(j.Def.Labels, i.labels.values)
		if i.choosesPaused {
			j.Def.Paused = i.paused
		}
		if err := takeover.Check(j.Name, j.Def); err != nil {
			found.notes = append(found.notes, takeover.Note{Line: j.Line, Text: j.Name, Why: "not kept: " + takeover.Reasons(err), Lost: true})
			continue
		}
		kept = append(kept, j)
	}
	found.jobs = kept
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

// plan shows what would be made. For programs that is the jobs alone, as a file of "job apply" has them; what is to be known
// about them is for people, on standard error.
func (i *importOf) plan(found imported) error {
	if i.structured() {
		return i.definitions(found)
	}
	out := newRows(i.cli, importHeadings)
	for _, j := range found.jobs {
		l := importLine{Line: j.Line, Name: j.Name, Result: "job", Job: &wire.Job{Definition: j.Def.WithDefaults()}}
		if err := out.add(l, l.row()); err != nil {
			return err
		}
	}
	if _, err := found.addRest(out); err != nil {
		return err
	}
	return out.end()
}

func (i *importOf) definitions(found imported) error {
	out := newRows(i.cli, nil)
	for _, j := range found.jobs {
		d, err := i.document(j)
		if err != nil {
			return err
		}
		if err := out.add(d.text(), nil); err != nil {
			return err
		}
	}
	for _, n := range found.notes {
		i.warn("line %d: %s: %s", n.Line, n.Text, n.Why)
	}
	return out.end()
}

// addRest adds what became of everything that is no job.
func (found imported) addRest(out *rows) (lost int, err error) {
	for _, l := range found.settings {
		if err := out.add(l, l.row()); err != nil {
			return lost, err
		}
	}
	for _, n := range found.notes {
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
	value, err := definitionOf(wire.Job{Definition: j.Def})
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", j.Name, err)
	}
	return document{name: j.Name, file: i.file, job: value}, nil
}

// apply goes on behind a job that the server refuses; only a server that cannot be reached ends it.
func (i *importOf) apply(ctx context.Context, server *client.Client, found imported) error {
	out := newRows(i.cli, importHeadings)
	told := i.progress("importing jobs", int64(len(found.jobs)))
	defer told.end()
	refused := 0
	var unreachable error
	for rest := found.jobs; len(rest) > 0; {
		chunk := rest[:min(len(rest), chunkJobs)]
		n, err := i.applyChunk(ctx, server, chunk, out, told)
		refused += n
		var gone *client.Unreachable
		if errors.As(err, &gone) {
			unreachable = fmt.Errorf("line %d, and those below it: %w", chunk[0].Line, err)
			break
		}
		if err != nil {
			return endWith(out, err)
		}
		rest = rest[len(chunk):]
	}
	told.clear()
	lost, err := found.addRest(out)
	switch {
	case err != nil:
		return err
	case unreachable != nil:
		return endWith(out, unreachable)
	case lost+refused > 0:
		return endWith(out, fmt.Errorf("%d of %d jobs were not kept", lost+refused, lost+len(found.jobs)))
	}
	return out.end()
}

func (i *importOf) applyChunk(ctx context.Context, server *client.Client, jobs []takeover.Job, out *rows, told *progress) (refused int, err error) {
	docs := make([]document, len(jobs))
	for k, j := range jobs {
		if docs[k], err = i.document(j); err != nil {
			return 0, err
		}
	}
	verdicts, err := (&apply{cli: i.cli, server: server}).putChunk(ctx, docs)
	if err != nil {
		return 0, err
	}
	told.clear()
	for k, v := range verdicts {
		l := importLine{Line: jobs[k].Line, Name: jobs[k].Name, Result: v.Change, Job: v.Job}
		if v.Problem != nil {
			refused++
			l.Result, l.Job, l.Note = "lost", nil, v.Problem.Error()
		}
		if err := out.add(l, l.row()); err != nil {
			return refused, err
		}
	}
	told.add(int64(len(jobs)))
	return refused, nil
}
