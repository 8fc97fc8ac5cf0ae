// Command peers measures Belfry beside River on PostgreSQL and Asynq on Redis, on this machine, in one invocation: it starts the
// servers in a temporary folder, lets one system work at a time, round by round, and prints one table. make bench-peers runs it;
// README.md tells how the peers are set up, and why so.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// systems are those that can be measured, in the order of the first round.
var systems = []string{belfryName, belfryDev, "river", "asynq-always", "asynq-everysec", "asynq-none"}

type settings struct {
	binary  string
	systems string
	dir     string
	output  string
	file    string
	jobs    int
	singles int
	rounds  int
	limit   time.Duration
	tune    bool
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "belfry", "bin/belfry", "the binary to measure")
	flag.StringVar(&s.systems, "systems", strings.Join(systems, ","), "who is measured")
	flag.StringVar(&s.dir, "dir", "", "the folder, on the disk to be measured, that data lie below; the system's temporary one by default")
	flag.StringVar(&s.output, "output", "table", "table or json")
	flag.StringVar(&s.file, "file", "", "write the JSON to this file too")
	flag.IntVar(&s.jobs, "jobs", 200_000, "jobs of a burn-down")
	flag.IntVar(&s.singles, "singles", 20_000, "inserts one by one, by each number of callers")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds, of which the medians are told")
	flag.DurationVar(&s.limit, "limit", 10*time.Minute, "the longest that one system may take in a round")
	flag.BoolVar(&s.tune, "tune", false, "try settings of River and Asynq instead, and Go's own rule for garbage, and print what each gives")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, s, os.Stdout)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "peers: interrupted; servers have ended, data are removed")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func (s settings) check() error {
	switch {
	case s.output != "table" && s.output != "json":
		return fmt.Errorf("-output %q: want table or json", s.output)
	case s.jobs < 1000:
		return fmt.Errorf("-jobs %d: want 1000 or more", s.jobs)
	case s.singles < 1000:
		return fmt.Errorf("-singles %d: want 1000 or more", s.singles)
	case s.rounds < 1:
		return fmt.Errorf("-rounds %d: want 1 or more", s.rounds)
	}
	for name := range strings.SplitSeq(s.systems, ",") {
		if !slices.Contains(systems, name) {
			return fmt.Errorf("-systems: %q is none of %s", name, strings.Join(systems, ", "))
		}
	}
	return nil
}

func run(ctx context.Context, s settings, stdout io.Writer) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "belfry-peers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// PostgreSQL runs as somebody else if this runs as root.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	m, err := machineOf(dir)
	if err != nil {
		return err
	}
	collects := new(collector)
	collects.giveRoom()
	if s.tune {
		return tune(ctx, dir, m, s, collects, stdout)
	}
	r, err := measure(ctx, dir, m, s)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if s.file != "" {
		if err := os.WriteFile(s.file, text, 0o644); err != nil {
			return err
		}
	}
	if s.output == "json" {
		_, err := stdout.Write(text)
		return err
	}
	r.show(stdout)
	return nil
}

// measure lets the contestants of -systems work.
func measure(ctx context.Context, dir string, m machine, s settings) (report, error) {
	r := report{Machine: m, Rounds: s.rounds, Jobs: s.jobs, Singles: s.singles}
	r.Versions = []string{runtime.Version()}
	var all []contestant
	known := map[string]bool{}
	var ceilings []ceiling
	for name := range strings.SplitSeq(s.systems, ",") {
		var c contestant
		var version []string
		var err error
		switch name {
		case belfryName:
			c, version, err = newBelfry(ctx, dir, s, &ceilings)
		case belfryDev:
			c, version, err = newBelfryDev(ctx, dir, s)
		case "river":
			c, version, err = newRiver(ctx, dir, m, s)
		default:
			c, version, err = newAsynq(ctx, dir, strings.TrimPrefix(name, "asynq-"), s)
		}
		if err != nil {
			return r, err
		}
		all = append(all, c)
		r.Settings = append(r.Settings, settingsOf{c.shown, c.settings})
		for _, v := range version {
			if !known[v] {
				known[v] = true
				r.Versions = append(r.Versions, v)
			}
		}
	}
	rows, err := contest(ctx, all, s.rounds, s.jobs, s.limit, os.Stderr)
	r.Rows = finish(rows)
	r.Ceiling = middle(ceilings)
	return r, err
}

func belfryVersion(ctx context.Context, binary string) (string, error) {
	said, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w; make build builds it", binary, err)
	}
	first, _, _ := strings.Cut(string(said), "\n") // belfry    v1.2.3
	return "Belfry " + strings.TrimSpace(strings.TrimPrefix(first, "belfry")), nil
}

func newBelfry(ctx context.Context, dir string, s settings, ceilings *[]ceiling) (contestant, []string, error) {
	version, err := belfryVersion(ctx, s.binary)
	if err != nil {
		return contestant{}, nil, err
	}
	b := belfryPeer{s.binary, dir, belfryBest}
	return contestant{
		name: belfryName, shown: "Belfry, embedded", survives: belfrySurvives,
		settings: append(b.settings.lines(), "belfry bench insert, with its defaults: 5 s for each number of callers, in process and over HTTP"),
		burnDown: func(ctx context.Context, jobs int) (burnt, error) {
			told, err := b.burnDown(ctx, jobs)
			if c := told.Ceiling; err == nil && c.RunsPerSecond > 0 {
				*ceilings = append(*ceilings, c)
			}
			return told.burnt(), err
		},
		insert: b.insert,
	}, []string{version}, nil
}

// newBelfryDev burns down with as many attempts at once as `belfry dev` has by default. Its inserts are those of the other.
func newBelfryDev(ctx context.Context, dir string, s settings) (contestant, []string, error) {
	version, err := belfryVersion(ctx, s.binary)
	if err != nil {
		return contestant{}, nil, err
	}
	b := belfryPeer{s.binary, dir, belfryBest}
	b.settings.Workers = 50
	return contestant{
		name: belfryDev, shown: "Belfry, 50 attempts at once", survives: belfrySurvives, settings: b.settings.lines(),
		burnDown: func(ctx context.Context, jobs int) (burnt, error) {
			told, err := b.burnDown(ctx, jobs)
			return told.burnt(), err
		},
		insert: func(context.Context) ([]figure, error) { return nil, nil },
	}, []string{version}, nil
}

func newRiver(ctx context.Context, dir string, m machine, s settings) (contestant, []string, error) {
	p, err := newPostgres(ctx, filepath.Join(dir, "postgres"))
	if err != nil {
		return contestant{}, nil, err
	}
	version, err := p.version(ctx)
	if err != nil {
		return contestant{}, nil, err
	}
	river := riverPeer{p, postgresSettings(m.Memory), riverBest}
	warm := false
	return contestant{
		name: "river", shown: "River on PostgreSQL", survives: "all that was acknowledged",
		settings: []string{riverBest.String(), garbageRule, "PostgreSQL: " + strings.Join(river.configure, " ")},
		burnDown: func(ctx context.Context, jobs int) (burnt, error) {
			if !warm { // the first one writes new log segments, later ones reuse them
				warm = true
				if _, err := river.burnDown(ctx, jobs); err != nil {
					return burnt{}, err
				}
				settle()
			}
			return river.burnDown(ctx, jobs)
		},
		insert: bySingles(s.singles, river.insert),
	}, []string{"River " + dependency("github.com/riverqueue/river"), version}, nil
}

var asynqSurvives = map[string]string{
	"always":   "all that was acknowledged",
	"everysec": "all but the last second or two",
	"none":     "nothing",
}

func newAsynq(ctx context.Context, dir, fsync string, s settings) (contestant, []string, error) {
	version, err := redisVersion(ctx)
	if err != nil {
		return contestant{}, nil, err
	}
	shown := "Asynq on Redis, appendfsync " + fsync
	if fsync == "none" {
		shown = "Asynq on Redis, nothing on disk"
	}
	a := asynqPeer{dir, fsync, asynqBest[fsync]}
	return contestant{
		name: "asynq-" + fsync, shown: shown, survives: asynqSurvives[fsync],
		settings: []string{a.settings.String(), garbageRule, "Redis: " + strings.ReplaceAll(strings.Join(redisSettings(fsync), " "), "  ", ` "" `)},
		burnDown: a.burnDown,
		insert:   bySingles(s.singles, a.insert),
	}, []string{"Asynq " + dependency("github.com/hibiken/asynq"), version}, nil
}
