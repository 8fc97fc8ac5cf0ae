package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) job() *cobra.Command {
	cmd := &cobra.Command{Use: "job", Short: "Define jobs and run them"}
	cmd.AddCommand(c.jobApply(), c.jobList(), c.jobGet(), c.jobNext(), c.jobCalendar(), c.jobHistory(), c.jobEdit(), c.jobPatch(), c.jobDelete(), c.jobLabel(), c.jobPause(), c.jobResume(), c.jobTrigger())
	return cmd
}

func nextRun(j wire.Job) string {
	switch {
	case j.Paused:
		return "paused"
	case j.Status == nil || len(j.Status.NextRuns) == 0:
		return ""
	}
	return clock(j.Status.NextRuns[0])
}

func (c *cli) jobList() *cobra.Command {
	var f jobFilter
	var lastRuns bool
	var most int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs by name",
		Long: `List jobs by name, each with the state of its last run whose time has come, and when a run of it last succeeded: of its last ten runs, or the 100
before them. The forms for programs have that only with --last-runs, since it is looked up for each job.

With --last-runs each job shows its last ten runs whose time has come, a character for each, the newest at the
right: + succeeded, ! failed or dead, ~ retrying, > running, . queued, x cancelled, - skipped, ? unknown.`,
		Example: `  belfry job list --prefix report- --label team=billing
  belfry job list --last-runs`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			chosen, _, err := f.filter()
			if err != nil {
				return err
			}
			jobs := server.Jobs(ctx, chosen)
			if c.output != formTable && !lastRuns {
				return list(c, jobs, most, nil, func(wire.Job) []string { return nil })
			}
			headings := []string{"JOB", "LAST RUN", "SUCCEEDED", "WHEN", "NEXT RUN", "TARGET", "LABELS"}
			if lastRuns {
				headings[1] = "LAST RUNS"
			}
			return list(c, withLastRuns(ctx, server, jobs, most), most, headings, func(j jobWithRuns) []string {
				last := j.lastState()
				if lastRuns {
					last = marks(j.LastRuns)
				}
				return []string{j.Name, last, clock(j.LastSucceededAt), when(j.Job), nextRun(j.Job), j.Target.String(), labelsOf(j.Labels)}
			})
		}),
	}
	f.flags(cmd, "only")
	cmd.Flags().BoolVar(&lastRuns, "last-runs", false, "show how the last ten runs of each job went")
	cmd.Flags().IntVarP(&most, "limit", "n", 0, "`NUMBER` of them at most; 0 for all")
	return cmd
}

// labelsOf is labels in the order of their names.
func labelsOf(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+labels[name])
	}
	return strings.Join(parts, ",")
}

// when says a schedule in a few words.
func when(j wire.Job) string {
	s := j.Schedule
	switch {
	case s == nil:
		return "on demand"
	case s.Cron != "" && s.Timezone != "UTC":
		return s.Cron + " (" + s.Timezone + ")"
	case s.Cron != "":
		return s.Cron
	case s.Every != 0:
		return "every " + s.Every.String()
	case s.At != nil:
		return "at " + clock(*s.At)
	}
	return ""
}

// gatesOf names the gates that runs pass besides, with the units that they take where that is not one, and the key by which they pass.
func gatesOf(uses []job.GateUse) string {
	names := make([]string, len(uses))
	for i, use := range uses {
		if names[i] = use.Gate; use.Units > job.DefaultUnits {
			names[i] += fmt.Sprintf(" (%d units)", use.Units)
		}
		if use.Key != "" {
			names[i] += " for each " + use.Key
		}
	}
	return strings.Join(names, ", ")
}

// overlapOf says in a few words what becomes of a run that is one too many; "" where none is.
func overlapOf(j wire.Job) string {
	o, failing := j.Overlap, ""
	while, have := "while one is in progress", "has"
	if o.Limit > job.DefaultOverlapLimit {
		while, have = fmt.Sprintf("while %d are in progress", o.Limit), "have"
	}
	if o.Key != "" {
		while += " that " + have + " the same value of " + o.Key
	}
	if least, _ := j.Retry.Waits(); least >= time.Minute {
		failing = "; a run that keeps failing is in progress for " + j.Retry.Lasts()
	}
	most, bounded := o.Waiting()
	switch {
	case o.IsZero(), o.Policy == job.OverlapAllow && o.Limit == 0:
		return string(o.Policy)
	case o.Policy == job.OverlapSkip || bounded && most == 0:
		return "skips a run " + while + failing
	case o.Policy == job.OverlapQueueOne:
		return "a run waits " + while + ", and is skipped where another waits" + failing
	case o.Policy == job.OverlapQueueLatest:
		return "a run waits " + while + ", and the one that waited before is skipped" + failing
	case o.Policy == job.OverlapCancel:
		return "asks the earliest run to stop, and waits for its end, " + while + failing
	case o.Policy == job.OverlapReplace:
		return "ends the earliest run and starts " + while + failing
	case o.Policy == job.OverlapStrict:
		return fmt.Sprintf("a run waits %s, and after one that ended badly until that has succeeded, or the gate is opened; it is skipped while %d wait%s", while, most, failing)
	case bounded:
		return fmt.Sprintf("a run waits %s, and is skipped while %d wait%s", while, most, failing)
	}
	return "a run waits " + while + failing
}

// expiryOf says in a few words when a run is too late to start, "" where it never is.
func expiryOf(j wire.Job) string {
	if j.ExpiresAfter == 0 {
		return ""
	}
	return "a run that has not started " + j.ExpiresAfter.String() + " after its time is skipped"
}

// scheduleEndOf says in a few words where the schedule ends after so many fires, "" where it does not.
func scheduleEndOf(j wire.Job) string {
	switch {
	case j.MaxRuns == 0:
		return ""
	case j.Status == nil || j.Status.FinalRun.IsZero():
		return fmt.Sprintf("after %s at the most", countOf(j.MaxRuns, "fire"))
	}
	return fmt.Sprintf("after %s, the last at %s", countOf(j.MaxRuns, "fire"), clock(j.Status.FinalRun))
}

// pauseOf says in a few words when its runs pause the job, "" where they do not.
func pauseOf(j wire.Job) string {
	switch j.PauseAfter {
	case 0:
		return ""
	case 1:
		return "after a run that ended badly"
	}
	return fmt.Sprintf("after %d runs in a row that ended badly", j.PauseAfter)
}

// deadlineOf says in a few words when a run is stopped, "" where it never is.
func deadlineOf(j wire.Job) string {
	if j.Deadline == 0 {
		return ""
	}
	return "a run that has not ended " + j.Deadline.String() + " after its time is stopped"
}

// timeoutOf is how long an attempt may take, or the run of a workflow; "" where this version cannot read the workflow.
func timeoutOf(j wire.Job) string {
	if j.Target.Workflow == nil {
		return j.Timeout.String()
	}
	w, err := flow.Read(j.Target.Workflow)
	if err != nil {
		return ""
	}
	return w.Timeout.String()
}

func (c *cli) showJob(s client.Stored) error {
	return show(c, s.Job, func(j wire.Job) [][2]string {
		st := j.Status
		if st == nil {
			st = &wire.JobStatus{}
		}
		rows := [][2]string{{"job", j.Name}, {"description", short(j.Description, 100)}, {"when", when(j)}, {"target", j.Target.String()}}
		if j.Schedule != nil {
			if compiled, err := j.Schedule.Compile(); err == nil {
				rows = append(rows, [2]string{"means", compiled.Describe()})
			}
		}
		for _, at := range st.NextRuns {
			rows = append(rows, [2]string{"next run", clock(at)})
		}
		rows = append(rows, [2]string{"schedule ends", scheduleEndOf(j)})
		if j.Paused {
			rows = append(rows, [2]string{"paused", "yes"}, [2]string{"reason", st.PausedReason})
		}
		missed := ""
		if j.Schedule != nil {
			missed = job.MissedRule
		}
		return append(rows, [][2]string{{"fault", st.Fault}, {"queue", j.Queue}, {"priority", string(j.Priority)}, {"guarantee", string(j.Guarantee)},
			{"timeout", timeoutOf(j)}, {"on failure", j.Retry.Tries()}, {"retention", j.Retention.String()},
			{"catch-up", string(j.CatchUp.Mode)}, {"missed", missed}, {"overlap", overlapOf(j)}, {"gates", gatesOf(j.Gates)}, {"expires", expiryOf(j)}, {"deadline", deadlineOf(j)}, {"pauses", pauseOf(j)}, {"calls", callsOf(j)}, {"labels", labelsOf(j.Labels)}, {"payload", short(string(j.Payload), 100)}, {"generation", fmt.Sprint(st.Generation)},
			{"created", clock(st.CreatedAt)}, {"updated", clock(st.UpdatedAt)}}...)
	})
}

func (c *cli) jobGet() *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME",
		Short: "Show a job and its last runs",
		Long:  `Show a job, and under it its last runs. With -o json or -o yaml it is the job alone, in the form that "belfry job apply" takes.`,
		Example: `  belfry job get report
  belfry job get report -o yaml > report.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			s, err := server.Job(ctx, args[0])
			if err != nil {
				return err
			}
			if err := c.showJob(s); err != nil || c.structured() {
				return err
			}
			return c.showLastRuns(ctx, server, args[0])
		}),
	}
}

// lastRuns is how many runs are shown under their job.
const lastRuns = 5

func (c *cli) showLastRuns(ctx context.Context, server *client.Client, name string) error {
	out := newRows(c, []string{"LAST RUNS", "STATE", "NOMINAL", "TOOK", "WHY"})
	for r, err := range server.Runs(ctx, client.RunFilter{Job: name, Most: lastRuns, Due: true}) {
		if err != nil {
			return err
		}
		if out.count == 0 {
			fmt.Fprintln(c.stdout)
		}
		if err := out.add(r, []string{r.ID, r.State, clock(r.NominalTime), took(r), why(r)}); err != nil {
			return err
		}
		if out.count == lastRuns {
			break
		}
	}
	if out.count == 0 {
		return nil
	}
	return out.end()
}

func (c *cli) jobTrigger() *cobra.Command {
	var at, delay, payload, key, file, onFailed, onSucceeded, overlap string
	var wait, ignorePause bool
	w := &waiter{cli: c}
	cmd := &cobra.Command{
		Use:   "trigger [NAME]",
		Short: "Run a job now, at a time or after a delay, or many by a file",
		Long: `Run a job now, at a time or after a delay. With --wait it tells on standard error what becomes of the run, and ends when the run
has: with code 0 if it succeeded, 6 if it ended otherwise, and 9 if --timeout was over before. The run goes on when the waiting
is broken off. With --follow it prints the run's log, too: of a workflow that of each step, under a line with its path, as "belfry run logs" has it.

A run of a paused job is held until the job is resumed; with --ignore-pause it starts all the same, and the job stays paused. A run that no worker
can run waits for one. Standard error says so.

While other runs of the job are in progress, its "overlap" says what becomes of this one. With --overlap it goes by another policy than its job: allow starts it all the same, beside the others
and without being counted among them. The limit, the key and the length of the line stay the job's. queue_latest, cancel and replace skip the runs that wait, of a strict job as
well. A job without a policy takes allow alone.

With -f a file asks for many runs: JSON objects one after the other, an array or a list of YAML, each with its "job" and what it is to run with: "payload",
"at" or "delay", "on", "ignore_pause", "overlap", "key". NAME is the job of those that name none. They are sent a hundred at a time, in their order; each has its verdict in a line, and the
code is 1 if some were refused. Give keys, or --key with a word of your own, KEY-1, KEY-2 and so on by their places in the file: then the same file may be sent
again, after a broken connection too, and what was accepted is not asked for twice.`,
		Example: `  belfry job trigger report
  belfry job trigger report --delay 10m --payload '{"day": "2026-11-21"}'
  belfry job trigger report --payload @body.json --key order-4711
  belfry job trigger report --on-failed tell-ops
  belfry job trigger report --wait --timeout 10m
  belfry job trigger report --follow
  belfry job trigger report --ignore-pause
  belfry job trigger report --overlap allow
  belfry job trigger -f runs.jsonl --key november
  echo '{"job": "report", "payload": {"day": 1}, "key": "day-1"}' | belfry job trigger -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if file != "" {
				if at != "" || delay != "" || payload != "" || onFailed != "" || onSucceeded != "" || ignorePause || overlap != "" || wait || w.follow || w.timeout != "" {
					return misused("beside -f want no more than NAME and --key: the file says the rest")
				}
				all, err := c.requests(file, strings.Join(args, ""), key)
				if err != nil {
					return err
				}
				return c.triggerAll(ctx, server, all)
			}
			if len(args) == 0 {
				return misused("want the NAME of a job, or -f FILE")
			}
			if at != "" && delay != "" {
				return misused("--at and --delay exclude each other")
			}
			t := wire.Trigger{IgnorePause: ignorePause, Overlap: job.OwnOverlap{Policy: job.OverlapPolicy(overlap)}}
			if at != "" {
				when, err := c.instant("--at", at, c.zone)
				if err != nil {
					return err
				}
				t.At = &when
			}
			if delay != "" {
				d, err := schedule.ParseDuration(delay)
				if err != nil {
					return misused("--delay: %w", err)
				}
				t.Delay = &d
			}
			if payload != "" {
				text := []byte(payload)
				if name, ok := strings.CutPrefix(payload, "@"); ok {
					var err error
					if text, err = c.readFile(name); err != nil {
						return err
					}
				}
				if !json.Valid(text) {
					return misused("--payload: want JSON, or @FILE with it")
				}
				t.Payload = text
			}
			t.On = wire.Calling(onSucceeded, onFailed)
			wait = wait || w.follow
			if w.timeout != "" && !wait {
				return misused("--timeout is for --wait and --follow")
			}
			if w.follow && c.structured() {
				return misused("--follow prints a log, and --output %s the run: they exclude each other", c.output)
			}
			r, err := server.Trigger(ctx, args[0], t, key)
			if err != nil {
				return err
			}
			if t.At != nil && t.At.Before(r.CreatedAt) {
				fmt.Fprintln(c.messages(), "The time is past: the run starts at once.")
			}
			if !wait {
				if !c.structured() && !ended(r.State) {
					if now, err := server.Run(ctx, r.ID); err == nil && heldUp(now) != "" { // what was asked for is done in any case
						fmt.Fprintln(c.messages(), heldUp(now)+mayIgnore(now))
					}
				}
				return c.showRun(r)
			}
			w.server = server
			fmt.Fprintln(c.messages(), r.ID)
			w.attempt = 1 // what all its attempts write is printed
			return w.waitAndShow(ctx, r.ID)
		}),
	}
	w.flags(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended; its outcome is the exit code")
	cmd.Flags().BoolVar(&w.follow, "follow", false, "wait, and print the run's log as it is written")
	cmd.Flags().StringVar(&at, "at", "", "`TIME` to run, as 2026-11-21T09:00:00Z or \"2026-11-21 10:00\"")
	cmd.Flags().StringVar(&delay, "delay", "", "how long from now: a `DURATION`, as 90s or 1h30m")
	cmd.Flags().StringVar(&payload, "payload", "", "`JSON` instead of the job's own payload, or @FILE, @- for standard input")
	cmd.Flags().StringVar(&onFailed, "on-failed", "", "`JOB` to call when this run is given up, instead of what its own job says")
	cmd.Flags().StringVar(&onSucceeded, "on-succeeded", "", "`JOB` to call when this run has succeeded, instead of what its own job says")
	cmd.Flags().StringVar(&key, "key", "", "idempotency `KEY`: the same key and request give the same run; with -f what the keys begin with")
	cmd.Flags().BoolVar(&ignorePause, "ignore-pause", false, "start the run although the job is paused; the job stays paused")
	cmd.Flags().StringVar(&overlap, "overlap", "", "`POLICY` for this run instead of its job's: allow, skip, queue, queue_one, queue_latest, cancel or replace")
	cmd.Flags().StringVarP(&file, "file", "f", "", "`FILE` that asks for many runs, - for standard input")
	return cmd
}
