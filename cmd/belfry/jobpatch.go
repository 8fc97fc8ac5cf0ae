package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

func (c *cli) jobPatch() *cobra.Command {
	var text, only string
	var dryRun bool
	var beside []string
	cmd := &cobra.Command{
		Use:   "patch NAME -p PATCH",
		Short: "Change some fields of a job, and leave the others",
		Long: `Change some fields of a job, and leave the others. The patch is JSON or YAML, a merge patch as in RFC 7396: an object is merged, null takes a
field back to its default, and anything else replaces what stands, a list as a whole. What comes of it is checked as a job that is applied, and
the same patch again changes nothing. A job that a callback names must stand. Where it is to be put with the same change, --dry-run takes its name with
--beside.`,
		Example: `  belfry job patch report -p '{"retry": {"max_attempts": 3}}'
  belfry job patch report -p 'timeout: 5m'
  belfry job patch report -p '{"labels": {"team": "billing", "old": null}}' --dry-run
  belfry job patch report -p '{"on": {"failed": {"job": "page"}}}' --dry-run --beside page
  belfry job patch report -p @patch.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if text == "" {
				return misused("want -p with the fields to change, such as -p '{\"timeout\": \"5m\"}', or -p @FILE")
			}
			if only != "" && dryRun {
				return misused("--if-match and --dry-run exclude each other")
			}
			if len(beside) > 0 && !dryRun {
				return misused("--beside is for --dry-run: without it, put the jobs that callbacks name first")
			}
			patch, err := c.mergePatch(text)
			if err != nil {
				return err
			}
			if dryRun {
				tried, err := server.TryPatch(ctx, args[0], patch.JSON(), beside)
				if err != nil {
					return err
				}
				return c.showJob(client.Stored{Job: tried})
			}
			stored, err := server.PatchJob(ctx, args[0], patch.JSON(), client.Condition{ETag: only})
			if err != nil {
				return err
			}
			return c.showJob(stored)
		}),
	}
	cmd.Flags().StringVarP(&text, "patch", "p", "", "the fields to change: a `PATCH` in JSON or YAML, or @FILE, @- for standard input")
	cmd.Flags().StringVar(&only, "if-match", "", "only if the job's `ETAG`, its status.etag, is still this one, quotes included")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "let the server check the patch, show the job as it would be, and store nothing")
	cmd.Flags().StringSliceVar(&beside, "beside", nil, "in a dry run, a `JOB` that callbacks may name as if it stood; more than once or with commas for several")
	return cmd
}

// mergePatch reads the patch that a flag gives, itself or by the name of a file.
func (c *cli) mergePatch(text string) (*manifest.Value, error) {
	name, source := "", []byte(text)
	if file, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if source, err = c.readFile(file); err != nil {
			return nil, err
		}
		name = file
	}
	values, err := manifest.Read(name, source)
	if err == nil && (len(values) != 1 || values[0].Kind != manifest.Object) {
		err = errors.New(`want one object with the fields to change, such as {"timeout": "5m"}`)
	}
	if err != nil && name == "" {
		return nil, misused("--patch: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return values[0], nil
}
