package main

import (
	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/eventbridge"
)

func (c *cli) importEventBridge() *cobra.Command {
	var as, url string
	cmd := c.importOf(&cobra.Command{
		Use:   "eventbridge FILE",
		Short: "Make jobs of schedules of EventBridge Scheduler; importing them again changes nothing",
		Long: `Make jobs of schedules of Amazon EventBridge Scheduler: what "aws scheduler get-schedule" prints for each, one after the other or
in an array. What cannot be kept is listed with lines and reasons, and a schedule that is lost makes the command end with code 1
unless it was a dry run. docs/migrate-eventbridge.md says what becomes of what, how to export all schedules, and how to switch over.

What a run does is yours to say; without either the targets are listed, and nothing is kept:
  --as aws-cli       it calls the schedule's target with the AWS command line on the worker's host, where there is a command that
                     does the same: for Lambda, SQS, SNS, Step Functions, Kinesis and event buses. The worker must run with
                     --allow-exec, and as somebody who may.
  --target-url URL   it calls URL, in which {group} and {name} are replaced, with the schedule's input.`,
		Example: `  aws scheduler get-schedule --name nightly > schedules.json
  belfry import eventbridge schedules.json --dry-run
  belfry import eventbridge schedules.json --as aws-cli --paused
  belfry import eventbridge schedules.json --target-url https://jobs.example.org/{name} --prefix aws. --dry-run -o yaml`,
	}, func(name string, text []byte) (imported, error) {
		cfg := eventbridge.Config{Way: eventbridge.Way(as), URL: url, Now: c.now()}
		switch {
		case url != "" && as != "":
			return imported{}, misused("--as and --target-url exclude each other")
		case url != "":
			cfg.Way = eventbridge.Call
		case as != "" && cfg.Way != eventbridge.CommandLine:
			return imported{}, misused("--as %q: want aws-cli", as)
		}
		file, err := eventbridge.Read(name, text, cfg)
		return imported{jobs: file.Jobs, notes: file.Notes}, err
	})
	cmd.Flags().StringVar(&as, "as", "", "`WHAT` a run does: aws-cli")
	cmd.Flags().StringVar(&url, "target-url", "", "`URL` that a run calls, with {group} and {name}")
	return cmd
}
