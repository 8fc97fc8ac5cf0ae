package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) export() *cobra.Command {
	var f jobFilter
	var names []string
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write all jobs as files have them; \"job apply\" takes them in",
		Long: `Write the definitions of all jobs to FILE, or to standard output: one document a job, in the order of their names, as YAML, or as
JSON with -o json or a FILE that ends with .json. "belfry job apply -f FILE" takes them in, here or on another server; exported
from there they are the same to the byte.

What a job is stands in it, whether it is paused, too. Runs, the reason of a pause and other things that only Belfry writes do
not; "belfry backup" has all. Of secrets their names are in it, never what they hold.`,
		Example: `  belfry export jobs.yaml
  belfry export --label team=billing | grep cron
  belfry export --job report --job clean-up two.yaml
  belfry export -o json | jq -r .name`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			chosen, filtered, err := f.filter()
			if err != nil {
				return err
			}
			if len(names) > 0 && filtered {
				return misused("--job and a filter exclude each other")
			}
			jobs := server.Jobs(ctx, chosen)
			if len(names) > 0 {
				jobs = jobsNamed(ctx, server, names)
			}
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			form, err := c.exportForm(name)
			if err != nil {
				return err
			}
			if name == "-" {
				_, err := c.writeJobs(jobs, form, c.stdout)
				return err
			}
			return c.exportTo(jobs, form, name)
		}),
	}
	f.flags(cmd, "only")
	cmd.Flags().StringSliceVar(&names, "job", nil, "only this `JOB`, more than once or with commas, in this order")
	return cmd
}

// jobsNamed gives jobs by name, up to the first error.
func jobsNamed(ctx context.Context, server *client.Client, names []string) iter.Seq2[wire.Job, error] {
	return func(yield func(wire.Job, error) bool) {
		for _, name := range names {
			stored, err := server.Job(ctx, name)
			if !yield(stored.Job, err) || err != nil {
				return
			}
		}
	}
}

// exportForm is what the file's name says, or else --output.
func (c *cli) exportForm(name string) (string, error) {
	ending := strings.ToLower(filepath.Ext(name))
	switch {
	case c.output != formTable && c.output != formJSON && c.output != formYAML:
		return "", misused("--output %s: want json or yaml, which \"job apply\" takes in; \"job list -o name\" lists names", short(c.output, 40))
	case ending == ".json" && c.output == formYAML, manifest.Is(name) && ending != ".json" && c.output == formJSON:
		return "", misused("--output %s and a file that ends with %s: \"job apply\" goes by the ending", c.output, ending)
	case ending == ".json" || c.output == formJSON:
		return formJSON, nil
	}
	return formYAML, nil
}

// exportTo writes a file that has its name only when it is whole.
func (c *cli) exportTo(jobs iter.Seq2[wire.Job, error], form, name string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // for its owner's eyes only: payloads are in it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	out := bufio.NewWriter(file)
	count, err := c.writeJobs(jobs, form, out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("export to %s: %w", name, err)
	}
	fmt.Fprintf(c.messages(), "%s written to %s\n", countOf(count, "job"), name)
	return nil
}

func (c *cli) writeJobs(jobs iter.Seq2[wire.Job, error], form string, out io.Writer) (count int, err error) {
	told := c.progress("exporting jobs", 0)
	defer told.end()
	over := 0
	for j, err := range jobs {
		if err != nil {
			return count, err
		}
		text, err := exported(j, form)
		if err != nil {
			return count, err
		}
		if count > 0 && form == formYAML {
			text = append([]byte("---\n"), text...)
		}
		told.clear()
		if _, err := out.Write(text); err != nil {
			return count, err
		}
		count++
		told.add(1)
		if j.Schedule != nil && !j.Paused && j.Status.Fault == "" && len(j.Status.NextRuns) == 0 {
			over++
		}
	}
	if over > 0 {
		told.say("belfry: of %s the schedule is over; a server that has not got them will refuse them", countOf(over, "job"))
	}
	return count, nil
}

// exported is a job as a document of its own.
func exported(j wire.Job, form string) ([]byte, error) {
	value, err := jobfile.Export(j.Name, j.Definition)
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", j.Name, err)
	}
	if form == formYAML {
		return manifest.YAML(value), nil
	}
	return encodeJSON(value.JSON(), "", "  ")
}
