// Command gates measures what a gate costs: a heap of runs is burnt down in turns, with no gate, with one of their job that has room for each worker, and with one that the job
// names, which has room for each or for half of them. With -line, runs wait at one gate and take their turns. With -gates, runs pass many gates by a key, of many values each. The figures of no gate are those of the commit before it; take both trees in turns to see it.
package main

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

func main() {
	runs := flag.Int("runs", 50_000, "`N` runs are burnt down each time")
	workers := flag.Int("workers", 50, "`N` attempts at once, and room for as many at the gate")
	rounds := flag.Int("rounds", 3, "`N` times each")
	line := flag.Int("line", 0, "instead, `N` runs wait in one line and take their turns")
	limit := flag.Int("limit", 1, "with -line, `N` of them may be in progress at once")
	named := flag.Bool("named", false, "with -line, the gate is one that the job names")
	at := flag.String("at", "", "with -line, `URL` of a Belfry elsewhere, instead of one in this process; its handlers are here")
	gates := flag.Int("gates", 0, "instead, `N` gates, each of as many values as -values says, and two runs of each")
	values := flag.Int("values", 100, "with -gates, `N` values of each gate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func() error { return measure(ctx, *runs, *workers, *rounds) }
	switch {
	case *line > 0:
		do = func() error { return lines(ctx, *at, *line, *limit, *named) }
	case *gates > 0:
		do = func() error { return many(ctx, *gates, *values) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, runs, workers, rounds int) (err error) {
	folder, err := os.MkdirTemp("", "belfry-gates-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	began := time.Now()
	h := bench.Host{Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: newID, Random: crand.Reader, Log: slog.New(slog.DiscardHandler),
		Tell: func(string, int) (func(int), func()) { return func(int) {}, func() {} }}
	fmt.Printf("%d runs with %d workers, on %d processors\n", runs, workers, runtime.NumCPU())
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "ROUND\tGATE\tRUNS/S\tOPS A RUN\tBYTES A RUN\tCPU A RUN")
	for round := range rounds {
		for i, gate := range []struct {
			name       string
			own, named int
		}{{name: "none"}, {name: fmt.Sprint("limit ", workers), own: workers}, {name: fmt.Sprint("named, limit ", workers), named: workers}, {name: fmt.Sprint("named, limit ", (workers+1)/2), named: (workers + 1) / 2}} {
			h.Folder = filepath.Join(folder, fmt.Sprintf("%d-%d", round, i))
			r, err := bench.BurnDown{Runs: runs, Batch: min(runs, 1000), Callers: 4, Workers: workers, Overlap: gate.own, Gate: gate.named}.Run(ctx, h)
			if err != nil {
				return err
			}
			s := r.BurnDownSynced
			fmt.Fprintf(out, "%d\t%s\t%.0f\t%.2f\t%.0f\t%.1f µs\n", round+1, gate.name, r.BurnDownPerSecond, s.PerRun, s.BytesRun, s.CPURun)
		}
	}
	return out.Flush()
}

func newID() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}
