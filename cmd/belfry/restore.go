package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/embed"
)

// What --missed may be.
const (
	missedSkip    = "skip"
	missedCatchUp = "catch-up"
)

type restoring struct {
	data   string
	missed string
	resume bool
	check  bool
}

func (c *cli) restore() *cobra.Command {
	var r restoring
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data folder of a backup",
		Long: `Make a data folder of what belfry backup wrote. FILE may be - for standard input. The folder must be new or empty; it
appears when all is restored, and not before.

Nothing of the past runs again, unless you ask. Between the backup and now the original has gone on: it has fired, and it has
ended what the backup holds as waiting or running. Nothing in the file tells. So

  fires between the backup and now     are recorded as skipped        --missed catch-up leaves them to each job's catch_up
  runs that had not ended              are unknown from now on        --resume-runs lets them go on
  runs requested for a time to come    run then
  schedules                            fire from now on
  lines under overlap strict           stand still behind runs that   --resume-runs leaves them as they stood
                                       ended badly or are unknown

Stop the original first. Two copies that live both fire, and neither can tell.`,
		Example: `  belfry restore belfry.backup --data /var/lib/belfry
  belfry restore belfry.backup --check
  belfry restore belfry.backup --data /srv/belfry --missed catch-up --resume-runs`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case r.missed != missedSkip && r.missed != missedCatchUp:
				return misused("--missed %q: want %s or %s", r.missed, missedSkip, missedCatchUp)
			case r.check && r.data != "":
				return misused("--check and --data exclude each other: a check restores nothing")
			case !r.check && r.data == "":
				return misused("want --data DIR, a new folder")
			}
			return c.restoreFrom(cmd.Context(), args[0], r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.data, "data", "", "data folder `DIR` to make; new, or empty")
	f.StringVar(&r.missed, "missed", missedSkip, "`POLICY` for fires between the backup and now: skip, or catch-up as after a downtime")
	f.BoolVar(&r.resume, "resume-runs", false, "let runs that had not ended go on, though the original may have ended them")
	f.BoolVar(&r.check, "check", false, "only read FILE, and say whether it is whole")
	return cmd
}

func (c *cli) restoreFrom(ctx context.Context, name string, r restoring) error {
	in := c.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	if r.check {
		about, count, err := c.watched("reading", func(told func(backup.Count)) (backup.About, backup.Count, error) {
			return backup.Verify(ctx, in, told)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return show(c, taken{File: name, TakenAt: about.Taken, Version: about.Version, Items: count.Items, Blobs: count.Blobs, Bytes: count.Bytes}, func(t taken) [][2]string {
			return [][2]string{{"file", t.File + " is whole"}, {"as of", c.moment(t.TakenAt)}, {"written by", "Belfry " + t.Version},
				{"holds", fmt.Sprintf("%d items, %d blobs, %s", t.Items, t.Blobs, sizeText(t.Bytes))}}
		})
	}
	var report backup.Report
	err := newFolder(r.data, func(folder string) (err error) {
		_, _, err = c.watched("restoring", func(told func(backup.Count)) (backup.About, backup.Count, error) {
			report, err = c.restoreInto(ctx, folder, in, backup.Options{Now: c.now(), NewID: newID, CatchUp: r.missed == missedCatchUp, Resume: r.resume, Told: told})
			return report.About, report.Count, err
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w; nothing was restored", name, err)
	}
	if c.structured() {
		c.warn("stop the original before this copy starts: two copies that live both fire")
	}
	return show(c, reportOf(r, report), func(done restored) [][2]string { return c.told(r, done) })
}

// restoreInto fills the store and the blobs of an empty folder.
func (c *cli) restoreInto(ctx context.Context, folder string, in io.Reader, o backup.Options) (_ backup.Report, err error) {
	opened, err := openStore(folder, discardLog(), longAgo)
	if err != nil {
		return backup.Report{}, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	blobs, err := embed.OpenBlobs(ctx, folder)
	if err != nil {
		return backup.Report{}, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	return backup.Restore(ctx, in, backup.Target{Store: opened, Blobs: blobs}, o)
}

// newFolder makes a data folder that is there only when it is whole. fill gets an empty folder.
func newFolder(data string, fill func(folder string) error) (err error) {
	found, err := os.ReadDir(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		defer func() {
			if err != nil {
				os.Remove(data)
			}
		}()
	case err != nil:
		return err
	}
	for _, entry := range found {
		if entry.Name() == embed.Unfinished {
			return fmt.Errorf("%s holds a restore that was cut short: remove the folder %s, and try again", data, filepath.Join(data, embed.Unfinished))
		}
		if entry.Name() != "lost+found" { // of a file system that begins here
			return fmt.Errorf("%s is not empty, it holds %s: want a new folder", data, entry.Name())
		}
	}
	work := filepath.Join(data, embed.Unfinished)
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := fill(work); err != nil {
		return err
	}
	// Whole and durable now, but not in its place. A crash before the end leaves the folder that is refused above and by servers.
	for _, part := range []string{embed.BlobFolder(work), embed.StoreFolder(work)} {
		if err := os.Rename(part, filepath.Join(data, filepath.Base(part))); err != nil {
			return err
		}
	}
	return errors.Join(syncFolder(data), syncFolder(filepath.Dir(filepath.Clean(data))))
}

// restored is the result of a restore.
type restored struct {
	Data        string     `json:"data"`
	TakenAt     time.Time  `json:"taken_at"`
	Version     string     `json:"version"`
	Items       int        `json:"items"`
	Blobs       int        `json:"blobs"`
	Jobs        int        `json:"jobs"`
	NextRun     *time.Time `json:"next_run,omitempty"`
	NextJob     string     `json:"next_job,omitempty"`
	Skipped     int        `json:"skipped_fires"`
	SkippedJobs int        `json:"skipped_jobs"`
	Unended     int        `json:"unended_runs"`
	Unknown     int        `json:"unknown_runs"`
	Runs        []string   `json:"runs,omitempty"` // the first that are unknown
	Ahead       int        `json:"runs_ahead"`
	Lines       int        `json:"lines_standing_still"`
	Behind      []string   `json:"standing_still_behind,omitempty"` // the first of these runs
	Faults      []string   `json:"faults,omitempty"`
}

func reportOf(r restoring, from backup.Report) restored {
	done := restored{Data: r.data, TakenAt: from.About.Taken, Version: from.About.Version, Items: from.Count.Items, Blobs: from.Count.Blobs,
		Jobs: from.Jobs, NextJob: from.NextJob, Skipped: from.Skipped, SkippedJobs: from.SkippedJobs, Unended: from.Unended, Unknown: from.Ended,
		Runs: from.Runs, Ahead: from.Ahead, Lines: from.Lines, Behind: from.Behind, Faults: from.Faults}
	if !from.Next.IsZero() {
		done.NextRun = &from.Next
	}
	return done
}

// oneOrMore is a number, with the words of one or of several behind it.
func oneOrMore(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", several)
}

// told says what a restored copy will do, and what it will not.
func (c *cli) told(r restoring, done restored) [][2]string {
	rows := [][2]string{
		{"data", done.Data}, {"as of", c.moment(done.TakenAt)},
		{"holds", oneOrMore(done.Items, "item", "items") + ", " + oneOrMore(done.Blobs, "blob", "blobs")},
	}
	jobs := "none has a fire to come"
	if done.NextRun != nil {
		jobs = fmt.Sprintf("%d will fire; the first is %s, %s", done.Jobs, done.NextJob, c.moment(*done.NextRun))
	}
	rows = append(rows, [2]string{"jobs", jobs})
	missed := oneOrMore(done.Skipped, "fire of 1 job since the backup is recorded as skipped", "fires of "+oneOrMore(done.SkippedJobs, "job", "jobs")+" since the backup are recorded as skipped")
	switch {
	case r.missed == missedCatchUp:
		missed = "fires since the backup are left to each job's catch_up, as asked: those that the original ran run once more"
	case done.Skipped == 0:
		missed = "no fire lies between the backup and now"
	}
	rows = append(rows, [2]string{"missed", missed})
	switch {
	case done.Unended == 0:
	case r.resume:
		rows = append(rows, [2]string{"runs", oneOrMore(done.Unended, "had not ended, and goes on, as asked", "had not ended, and go on, as asked")})
	default:
		rows = append(rows, [2]string{"runs", oneOrMore(done.Unknown, "had not ended, and is unknown now; see it with", "had not ended, and are unknown now; see them with") + ": belfry run list --state unknown"},
			[2]string{"", strings.Join(done.Runs, " ")})
	}
	if done.Ahead > 0 {
		rows = append(rows, [2]string{"ahead", oneOrMore(done.Ahead, "run is requested for a time to come, and runs then", "runs are requested for a time to come, and run then")})
	}
	if done.Lines > 0 {
		rows = append(rows, [2]string{"lines", oneOrMore(done.Lines, "stands still under overlap strict: it", "stand still under overlap strict: each") + " goes on when its run is retried and succeeds, or with: belfry gate open JOB --run RUN"},
			[2]string{"", strings.Join(done.Behind, " ")})
	}
	for _, fault := range done.Faults {
		rows = append(rows, [2]string{"fault", fault})
	}
	return append(rows,
		[2]string{"before", "stop the original: two copies that live both fire, and neither can tell"},
		[2]string{"start", "belfry serve --data " + done.Data},
		[2]string{"after", "revoke again the tokens that were revoked since; secrets need their key file, which is in no backup"})
}
