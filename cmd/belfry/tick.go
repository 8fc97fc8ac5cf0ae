package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
)

// tickSettings are what tick is told.
type tickSettings struct {
	engines   engineFlags
	ticks     tickFlags
	queues    []string
	lease     time.Duration
	rate      int // of catch-up
	callbacks callbackFlags
	once      bool
	log       logFlags
	trace     traceFlags
	scrape    scrapeFlags
}

func (c *cli) tick() *cobra.Command {
	var s tickSettings
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "Find what is due on a shared store, and send it to its queues",
		Long: `Find what is due on a shared store, and send it to its queues: the part of "belfry serve" that makes runs out of schedules,
as a process of its own. Any number of them may tick on a store, beside servers and functions: they share its shards
by lease, and where one ends the others go on.

With --once it makes one tick, goes on until nothing due is left, says what it did, and ends: for a clock of your own.
That one must come again well within --look-ahead.`,
		Example: `  belfry tick --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs
  belfry tick --once --queue gpu --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !s.engines.shared() {
				return misused("want --store dynamodb://TABLE, --queue-url sqs://PREFIX and --blob s3://BUCKET; a server on a data folder ticks by itself")
			}
			if err := errors.Join(s.engines.check(), s.ticks.check(), checkLease(s.lease), checkCatchUp(s.rate), s.scrape.check()); err != nil {
				return err
			}
			return c.tickWith(cmd.Context(), s)
		},
	}
	s.engines.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&s.queues, "queue", nil, "`QUEUE` that there is beside default; more than once or with commas for several")
	called(f, "queue", "BELFRY_QUEUES")
	s.ticks.flags(cmd)
	leaseFlag(cmd, &s.lease)
	catchUpFlag(cmd, &s.rate)
	s.callbacks.flags(cmd)
	f.BoolVar(&s.once, "once", false, "tick once and end, instead of every --tick-every")
	s.log.flags(cmd)
	s.trace.flags(cmd)
	s.scrape.flags(cmd)
	return cmd
}

func (c *cli) tickWith(ctx context.Context, s tickSettings) (err error) {
	began := time.Now()
	pools, _, err := (&poolFlags{here: s.queues}).read()
	if err != nil {
		return err
	}
	o, err := s.engines.beside(ctx, c.stderr, pools, s.log, s.trace, s.scrape)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	targets, err := target.New(target.Config{Now: time.Now}) // a tick calls none
	if err != nil {
		return err
	}
	defer targets.Close()
	every := s.ticks.every
	if s.once { // whoever calls it knows how far apart its ticks are: up to the look-ahead, none of them is for having been away
		every = max(every, s.ticks.lookAhead-time.Second)
	}
	n, err := o.data.Node(ctx, node.Config{Targets: targets, Elapsed: func() time.Duration { return time.Since(began) }, Name: workerName(""),
		Lease: s.lease, CatchUpRate: s.rate, Callbacks: s.callbacks.read(), LookAhead: s.ticks.lookAhead, Every: every, Shards: s.ticks.shards, Tracer: o.tracer})
	if err != nil {
		return err
	}
	if s.once {
		return c.tickOnce(ctx, n)
	}
	return c.untilStopped(ctx, o.log, targets, 0, func() error { return c.greetTicker(n.Name, s) }, n.Run)
}

func (c *cli) greetTicker(name string, s tickSettings) error {
	if c.structured() {
		return c.print(map[string]any{"ticks": name, "store": s.engines.store, "queue": s.engines.queues, "blob": s.engines.blob, "version": thisBuild().Version})
	}
	_, err := fmt.Fprintf(c.stdout, "Belfry %s ticks every %s.\n  name     %s\n%s", thisBuild().Version, s.ticks.every, name, s.engines.shown())
	return err
}

// ticked is what one tick did, for people.
type ticked struct {
	Shards  int        `json:"shards"` // passed; the others were held by another tick
	Timers  int        `json:"timers"`
	Claimed int        `json:"claimed"`
	Sent    int        `json:"sent"`
	Skipped int        `json:"skipped"`
	Repairs int        `json:"repairs"`
	Reached *time.Time `json:"reached,omitempty"`
}

func (c *cli) tickOnce(ctx context.Context, n *node.Node) error {
	var all ticked
	for {
		report, err := n.Ticker.Tick(ctx)
		all.add(report)
		if err != nil {
			return err
		}
		if !report.Behind {
			break
		}
	}
	if c.structured() {
		return c.print(all)
	}
	if all.Shards == 0 {
		fmt.Fprintln(c.stdout, "Another tick holds every shard: there was nothing to do here.")
		return nil
	}
	fmt.Fprintf(c.stdout, "%s passed: %d timers, %d runs claimed, %d sent, %d skipped, %d repaired; all is sent that is due before %s.\n",
		countOf(all.Shards, "shard"), all.Timers, all.Claimed, all.Sent, all.Skipped, all.Repairs, clock(*all.Reached))
	return nil
}

func (t *ticked) add(r tick.Report) {
	t.Shards = max(t.Shards, r.Passes)
	t.Timers, t.Claimed, t.Sent, t.Skipped = t.Timers+r.Timers, t.Claimed+r.Claimed, t.Sent+r.Sent, t.Skipped+r.Skipped
	t.Repairs += r.Repairs.Claimed + r.Repairs.Resent + r.Repairs.Expired + r.Repairs.Watched
	if r.Oldest > 0 {
		at := time.UnixMilli(r.Oldest).UTC()
		t.Reached = &at
	}
}
