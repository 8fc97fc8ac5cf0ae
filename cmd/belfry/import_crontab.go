package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/crontab"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func (c *cli) importCrontab() *cobra.Command {
	var system bool
	var who, zone string
	cmd := c.importOf(&cobra.Command{
		Use:   "crontab FILE",
		Short: "Make jobs of a crontab; importing it again changes nothing",
		Long: `Make jobs of a crontab. Lines that cannot be kept are listed with their numbers and reasons, and make
the command end with code 1 unless it was a dry run. A file that is no crontab makes it end with code 1 in any case.
docs/migrate-crontab.md says what becomes of what.

The server's worker must run on this host, as this user, with --allow-exec.`,
		Example: `  crontab -l | belfry import crontab - --dry-run
  crontab -l | belfry import crontab -
  belfry import crontab /etc/cron.d/sysstat --system --prefix web1.`,
	}, func(name string, text []byte) (jobfile.Taken, error) {
		cfg, err := crontabConfig(name, system, who, zone)
		if err != nil {
			return jobfile.Taken{}, err
		}
		file, err := crontab.Parse(text, cfg)
		return jobfile.Taken{Jobs: file.Jobs, Settings: file.Settings, Notes: file.Notes}, err
	})
	cmd.Flags().BoolVar(&system, "system", false, "lines name a user before the command, as in /etc/crontab and /etc/cron.d")
	cmd.Flags().StringVar(&who, "user", "", "`USER` whose jobs they are; you by default")
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the `ZONE`, also of lines whose CRON_TZ has none; this host's by default")
	return cmd
}

func crontabConfig(name string, system bool, who, zone string) (crontab.Config, error) {
	cfg := crontab.Config{System: system, User: who, Zone: zone, ZoneGiven: zone != "", IsUser: isUser}
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

// isUser reports whether a word is a user of this host, and no program that the shell would find.
func isUser(word string) bool {
	if _, err := exec.LookPath(word); err == nil {
		return false
	}
	_, err := user.Lookup(word)
	return err == nil
}

// hostZone finds the name of the zone that this host's cron goes by. A TZ that has none is no reason to take another zone.
func hostZone(tz, nameFile, link string) (string, error) {
	if name, ok := crontab.ZoneName(tz); ok {
		return name, nil
	} else if tz != "" && strings.TrimPrefix(tz, ":") != link {
		return "", fmt.Errorf("TZ is %q, which is no IANA name of a time zone; name the zone of this host's cron with --timezone, as in --timezone Europe/Berlin", tz)
	}
	var candidates []string
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
