// Nightly-report sums up a day's orders every night, into one file a day. It has no server and no cron daemon: the schedule, and what
// became of each night, is kept in a folder. A night that the program was down for is made up for when it is back.
//
//	go run ./examples/nightly-report -orders orders.csv -reports /tmp/reports
//
// With -cron "* * * * * *" a night lasts a second.
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "nightly-report:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("nightly-report", flag.ContinueOnError)
	data := flags.String("data", "nightly-report-data", "folder of the schedule and its history")
	orders := flags.String("orders", "orders.csv", "file of the orders, a line each: number,cents")
	reports := flags.String("reports", "reports", "folder for the reports")
	cron := flags.String("cron", "0 3 * * *", "when a report is due, in the time of Berlin")
	if err := flags.Parse(args); err != nil {
		return err
	}

	b, err := belfry.Open(ctx, "pebble:"+*data)
	if err != nil {
		return err
	}
	belfry.Handle(b, "nightly-report", func(_ context.Context, job *belfry.Job[struct{}]) error {
		sum, err := sumUp(*orders)
		if err != nil {
			return err // tried again, five times in all
		}
		file := filepath.Join(*reports, job.Nominal.Format("2006-01-02")+".json")
		if err := sum.write(file); err != nil {
			return err
		}
		job.Log.Info("written", "file", file, "orders", sum.Orders)
		job.Result = sum
		_, err = fmt.Fprintln(stdout, file)
		return err
	}, belfry.Timeout(5*time.Minute))
	err = errors.Join(
		b.Start(ctx),
		b.Schedule(ctx, "nightly-report", *cron, belfry.In("Europe/Berlin")),
	)
	if err == nil {
		<-ctx.Done()
	}
	// A report that is under way may take as long as it needs.
	return errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
}

type summary struct {
	Orders int `json:"orders"`
	Cents  int `json:"cents"`
}

func sumUp(orders string) (summary, error) {
	file, err := os.Open(orders)
	if err != nil {
		return summary{}, err
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return summary{}, belfry.Permanent(err) // the same file will not read better in a second
	}
	var sum summary
	for n, line := range lines {
		cents, err := strconv.Atoi(line[len(line)-1])
		if err != nil {
			return summary{}, belfry.Permanent(fmt.Errorf("%s, line %d: %w", orders, n+1, err))
		}
		sum.Orders++
		sum.Cents += cents
	}
	return sum, nil
}

// write replaces the file whole: who reads it never sees half a report, and a second attempt does no harm.
func (s summary) write(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
