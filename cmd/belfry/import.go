package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/crontab"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) importing() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Take over jobs from elsewhere",
		Long: `Take over jobs from elsewhere. What "belfry export" wrote is Belfry's own, and "belfry job apply -f FILE" takes it in.`}
	cmd.AddCommand(c.importCrontab())
	return cmd
}

func (c *cli) importCrontab() *cobra.Command {
	var system, dryRun bool
	var who, zone string
	cmd := &cobra.Command{
		Use:   "crontab FILE",
		Short: "Make jobs of a crontab; importing it again changes nothing",
		Long: `Make jobs of a crontab. Lines that cannot be kept are listed with their numbers and reasons, and make
the command end with code 1 unless it was a dry run. docs/crontab.md says what becomes of what.

The server's worker must run on this host, as this user, with --allow-exec.`,
		Example: `  crontab -l | belfry import crontab - --dry-run
  crontab -l | belfry import crontab -
  belfry import crontab /etc/cron.d/sysstat --system`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.readFile(args[0])
			if err != nil {
				return err
			}
			cfg, err := crontabConfig(args[0], system, who, zone)
			if err != nil {
				return err
			}
			file, err := crontab.Parse(text, cfg)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if dryRun {
				return c.planImport(file)
			}
			server, err := c.client()
			if err != nil {
				return err
			}
			return c.importJobs(cmd.Context(), server, file)
		},
	}
	cmd.Flags().BoolVar(&system, "system", false, "lines name a user before the command, as in /etc/crontab and /etc/cron.d")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be made of it")
	cmd.Flags().StringVar(&who, "user", "", "whose jobs they are; you by default")
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the zone; this host's by default")
	return cmd
}

func crontabConfig(name string, system bool, who, zone string) (crontab.Config, error) {
	cfg := crontab.Config{System: system, User: who, Zone: zone}
	var found *user.User
	var err error
	if who == "" {
		found, err = user.Current()
	} else {
		found, err = user.Lookup(who)
	}
	if err != nil {
		return cfg, fmt.Errorf("whose jobs they are: %w", err)
	}
	cfg.User, cfg.Home = found.Username, found.HomeDir
	if system {
		cfg.Origin = filepath.Base(name)
	}
	if cfg.Zone == "" {
		cfg.Zone, err = hostZone(os.Getenv("TZ"), "/etc/timezone", "/etc/localtime")
	} else if _, zoneErr := schedule.LoadZone(cfg.Zone); zoneErr != nil {
		err = usageError{fmt.Errorf("--timezone: %w", zoneErr)}
	}
	return cfg, err
}

// hostZone finds the name of the zone that this host's cron goes by.
func hostZone(tz, nameFile, link string) (string, error) {
	candidates := []string{strings.TrimPrefix(tz, ":")}
	if text, err := os.ReadFile(nameFile); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(text)))
	}
	if to, err := filepath.EvalSymlinks(link); err == nil {
		if _, name, ok := strings.Cut(filepath.ToSlash(to), "/zoneinfo/"); ok {
			candidates = append(candidates, strings.TrimPrefix(name, "posix/"))
		}
	} else if errors.Is(err, os.ErrNotExist) {
		candidates = append(candidates, "UTC") // as the C library has it
	}
	for _, name := range candidates {
		if name == "" {
			continue
		}
		if _, err := schedule.LoadZone(name); err == nil {
			return name, nil
		}
	}
	return "", errors.New("this host's time zone has no name that Belfry knows; give it with --timezone, as in --timezone Europe/Berlin")
}

// line is a row of the report: what became of one line of the crontab.
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

func (c *cli) planImport(file crontab.File) error {
	out := newRows(c, importHeadings)
	for _, j := range file.Jobs {
		l := importLine{Line: j.Line, Name: j.Name, Result: "job", Job: &wire.Job{Definition: j.Def.WithDefaults()}}
		if err := out.add(l, l.row()); err != nil {
			return err
		}
	}
	for _, s := range file.Settings {
		l := importLine{Line: s.Line, Result: "setting", Note: s.Name + "=" + s.Value}
		if err := out.add(l, l.row()); err != nil {
			return err
		}
	}
	if _, err := addNotes(out, file.Notes); err != nil {
		return err
	}
	return out.end()
}

func addNotes(out *rows, notes []crontab.Note) (lost int, err error) {
	for _, n := range notes {
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

// importJobs goes on behind a job that the server refuses; only a server that cannot be reached ends it.
func (c *cli) importJobs(ctx context.Context, server *client.Client, file crontab.File) error {
	out := newRows(c, importHeadings)
	refused := 0
	var unreachable error
	for _, j := range file.Jobs {
		l, err := importJob(ctx, server, j)
		var gone *client.Unreachable
		if errors.As(err, &gone) {
			unreachable = fmt.Errorf("line %d, and those below it: %w", j.Line, err)
			break
		}
		if err != nil {
			refused++
			l = importLine{Line: j.Line, Name: j.Name, Result: "lost", Note: err.Error()}
		}
		if err := out.add(l, l.row()); err != nil {
			return err
		}
	}
	lost, err := addNotes(out, file.Notes)
	switch {
	case err != nil:
		return err
	case unreachable != nil:
		return endWith(out, unreachable)
	case lost+refused > 0:
		return endWith(out, fmt.Errorf("%d of %d jobs were not kept", lost+refused, lost+len(file.Jobs)))
	}
	return out.end()
}

func importJob(ctx context.Context, server *client.Client, j crontab.Job) (importLine, error) {
	l := importLine{Line: j.Line, Name: j.Name, Result: "changed"}
	before, err := server.Job(ctx, j.Name)
	if err != nil && !client.HasCode(err, "job_not_found") {
		return l, err
	}
	stored, err := server.PutJob(ctx, j.Name, wire.Job{Definition: j.Def}, client.Condition{})
	switch {
	case err != nil:
		return l, err
	case stored.Created:
		l.Result = "created"
	case before.ETag == stored.ETag:
		l.Result = "unchanged"
	}
	l.Job = &stored.Job
	return l, nil
}
