package main

import (
	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/eventbridge"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
)

func (c *cli) importEventBridge() *cobra.Command {
	var url, zone string
	cmd := c.importOf(&cobra.Command{
		Use:   "eventbridge FILE",
		Short: "Make jobs of schedules of EventBridge Scheduler; importing them again changes nothing",
		Long: `Make jobs of schedules of Amazon EventBridge Scheduler: what "aws scheduler get-schedule" prints for each, one after the other or
in an array. What cannot be kept is listed with lines and reasons, and a schedule that is lost makes the command end with code 1
unless it was a dry run. A file without any answer of aws makes it end with code 1 in any case. docs/migrate-eventbridge.md says
what becomes of what, how to export all schedules, and how to switch over.

A run calls what the schedule calls: a Lambda function, an SQS queue, an SNS topic, an event bus or a state machine. The worker
must run with an --aws-target that allows it, and as somebody who may. With --target-url URL it calls URL instead, in which {group}
and {name} are replaced, with the schedule's input.`,
		Example: `  aws scheduler get-schedule --name nightly > schedules.json
  belfry import eventbridge schedules.json --dry-run
  belfry import eventbridge schedules.json --paused
  belfry import eventbridge schedules.json --target-url https://jobs.example.org/{name} --prefix aws. --dry-run -o yaml`,
	}, func(name string, text []byte) (jobfile.Taken, error) {
		if err := knownZone(zone); err != nil {
			return jobfile.Taken{}, err
		}
		file, err := eventbridge.Read(name, text, eventbridge.Config{URL: url, Now: c.now(), Zone: zone})
		return jobfile.Taken{Jobs: file.Jobs, Notes: file.Notes}, err
	})
	cmd.Flags().StringVar(&url, "target-url", "", "`URL` that a run calls instead, with {group} and {name}")
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the `ZONE` of schedules whose ScheduleExpressionTimezone is not known")
	return cmd
}
