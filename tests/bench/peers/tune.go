package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// tune tries each setting, those of the contest first, and prints what each gives: burn-downs, and for River inserts one by one too. Run
// it twice before you believe it.
func tune(ctx context.Context, dir string, m machine, s settings, collects *collector, stdout io.Writer) error {
	out := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	try := func(name string, burn func(context.Context, int) (burnt, error)) error {
		ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("took over %s; -limit gives more", s.limit))
		defer cancel()
		settle()
		b, err := burn(ctx, s.jobs)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(out, "%s/s worked\t%s/s inserted\t%s\n", grouped(perSecond(b.jobs, b.worked)), grouped(perSecond(b.jobs, b.inserted)), name)
		return out.Flush()
	}
	single := func(name string, r riverPeer) error {
		ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("took over %s; -limit gives more", s.limit))
		defer cancel()
		settle()
		figures, err := bySingles(s.singles, r.insert)(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range figures {
			fmt.Fprintf(out, "%s/s %s\tp99 %.2f ms\t", grouped(f.perSecond), f.measure, millis(f.p99))
		}
		fmt.Fprintln(out, name)
		return out.Flush()
	}
	for name := range strings.SplitSeq(s.systems, ",") {
		switch fsync, isAsynq := strings.CutPrefix(name, "asynq-"); {
		case name == "river":
			p, err := newPostgres(ctx, filepath.Join(dir, "postgres"))
			if err != nil {
				return err
			}
			configure := postgresSettings(m.Memory)
			if err := try("warming up", riverPeer{p, configure, riverBest}.burnDown); err != nil {
				return err
			}
			for _, settings := range riverTries() {
				if err := try(settings.String(), riverPeer{p, configure, settings}.burnDown); err != nil {
					return err
				}
			}
			for _, more := range []string{"wal_compression=lz4", "commit_delay=200", "autovacuum=off", "shared_buffers=1GB", "wal_level=replica"} {
				if err := try(more, riverPeer{p, append(postgresSettings(m.Memory), more), riverBest}.burnDown); err != nil {
					return err
				}
			}
			if err := collects.without(goDefault, func() error { return try(goRule, riverPeer{p, configure, riverBest}.burnDown) }); err != nil {
				return err
			}
			for _, t := range riverSingleTries() {
				if err := single(t.name, riverPeer{p, append(postgresSettings(m.Memory), t.configure...), t.settings}); err != nil {
					return err
				}
			}
		case isAsynq:
			for _, settings := range asynqTries(asynqBest[fsync]) {
				if err := try(name+": "+settings.String(), asynqPeer{dir, fsync, settings}.burnDown); err != nil {
					return err
				}
			}
			best := asynqPeer{dir, fsync, asynqBest[fsync]}
			if err := collects.without(goDefault, func() error { return try(name+": "+goRule, best.burnDown) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// Go's own rule for garbage, where the contest goes by Belfry's.
const (
	goDefault = 100
	goRule    = "GOGC=100, Go's own rule for garbage"
)

// singleTry is a setting for inserts one by one.
type singleTry struct {
	name      string
	settings  riverSettings
	configure []string // more of PostgreSQL
}

// riverSingleTries are the settings of the contest, and those that differ in one thing: pools with fewer connections than callers, and
// commits that wait for each other.
func riverSingleTries() []singleTry {
	tries := []singleTry{{"one by one, " + riverBest.singles(), riverBest, nil}}
	for _, connections := range []int{4, 8, 12, 16, 24, 32, 48} {
		other := riverBest
		other.Singles = connections
		tries = append(tries, singleTry{"one by one, " + other.singles(), other, nil})
	}
	for _, delay := range []int{20, 50, 100, 200} {
		for _, siblings := range []int{2, 5, 12} {
			more := []string{fmt.Sprintf("commit_delay=%d", delay), fmt.Sprintf("commit_siblings=%d", siblings)}
			tries = append(tries, singleTry{"one by one, " + strings.Join(more, " "), riverBest, more})
		}
	}
	return tries
}

// riverTries are the settings of the contest, and those that differ in one thing.
func riverTries() []riverSettings {
	tries := []riverSettings{riverBest}
	but := func(change func(*riverSettings)) {
		other := riverBest
		change(&other)
		if other != riverBest {
			tries = append(tries, other)
		}
	}
	for _, workers := range []int{100, 500, 1000, 2000, 5000, 10_000} {
		but(func(s *riverSettings) { s.Workers = workers })
	}
	for _, clients := range []int{1, 2, 4} {
		but(func(s *riverSettings) { s.Clients = clients })
	}
	for _, cooldown := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		but(func(s *riverSettings) { s.Cooldown, s.Poll = cooldown, 10*cooldown })
	}
	for _, connections := range []int{16, 64} {
		but(func(s *riverSettings) { s.Connections = connections })
	}
	for _, batch := range []int{1000, 5000, 20_000} {
		but(func(s *riverSettings) { s.Batch = batch })
	}
	for _, inserters := range []int{1, 2, 4} {
		but(func(s *riverSettings) { s.Inserters = inserters })
	}
	but(func(s *riverSettings) { s.Fast = false })
	return tries
}

// asynqTries are the settings of the contest, and others.
func asynqTries(best asynqSettings) []asynqSettings {
	tries := []asynqSettings{best}
	for _, servers := range []int{1, 4, 16, 32, 64} {
		for _, concurrency := range []int{16, 64} {
			tries = append(tries, asynqSettings{Servers: servers, Concurrency: concurrency, Inserters: best.Inserters})
		}
	}
	for _, inserters := range []int{16, 256} {
		other := best
		other.Inserters = inserters
		tries = append(tries, other)
	}
	other := best
	other.Retention = 24 * time.Hour
	return append(tries, other)
}
