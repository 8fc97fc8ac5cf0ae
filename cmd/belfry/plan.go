package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// parsed is a flag whose text is read by a function: 10M, 20%, 2KB, 30d.
type parsed[T comparable] struct {
	to    *T
	text  string
	parse func(string) (T, error)
	kind  string
}

func (p *parsed[T]) String() string { return p.text }
func (p *parsed[T]) Type() string   { return p.kind }

// isZero reports whether the value is the zero of its type.
func (p *parsed[T]) isZero() bool { return *p.to == *new(T) }

func (p *parsed[T]) Set(text string) error {
	v, err := p.parse(text)
	var wrong *invalid.Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("want %s", wrong.Want)
	}
	if err != nil {
		return err
	}
	*p.to, p.text = v, text
	return nil
}

// repeated is a flag that may be given more than once.
type repeated[T comparable] struct {
	to    *[]T
	text  string // of the last one
	parse func(string) (T, error)
	kind  string
}

func (l *repeated[T]) String() string { return l.text }
func (l *repeated[T]) Type() string   { return l.kind }

func (l *repeated[T]) Set(text string) error {
	one := parsed[T]{to: new(T), parse: l.parse}
	if err := one.Set(text); err != nil {
		return err
	}
	*l.to, l.text = append(*l.to, *one.to), text
	return nil
}

// parsedFlag adds one, with its default as it would be typed; "" for none.
func parsedFlag[T comparable](cmd *cobra.Command, to *T, name, def, kind, usage string, parse func(string) (T, error)) {
	p := &parsed[T]{to: to, parse: parse, kind: kind}
	if def != "" {
		if err := p.Set(def); err != nil {
			panic("--" + name + " " + def + ": " + err.Error())
		}
	}
	cmd.Flags().Var(p, name, usage)
}

// refuseZeros refuses flags that were given as zero: in a question, zero stands for what was left out.
func refuseZeros(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		number, parsed := flag.Value.(interface{ isZero() bool })
		if flag.Changed && (parsed && number.isZero() || !parsed && flag.Value.String() == "0") {
			return misused("--%s: got %s, want more than 0, or the flag left out", name, flag.Value)
		}
	}
	return nil
}

func countFlag(cmd *cobra.Command, to *float64, name, def, usage string) {
	parsedFlag(cmd, to, name, def, "number", usage, plan.ParseCount)
}

func wholeFlag(cmd *cobra.Command, to *int, name, def, usage string) {
	parsedFlag(cmd, to, name, def, "number", usage, plan.ParseWhole)
}

func shareFlag(cmd *cobra.Command, to *float64, name, def, usage string) {
	parsedFlag(cmd, to, name, def, "share", usage, plan.ParseShare)
}

func lengthFlag(cmd *cobra.Command, to *time.Duration, name, def, usage string) {
	parsedFlag(cmd, to, name, def, "duration", usage, func(text string) (time.Duration, error) {
		d, err := schedule.ParseDuration(text)
		return d.Std(), err
	})
}

// planning is what `belfry plan` is told.
type planning struct {
	load   plan.Load
	daily  float64 // runs a day
	prices string
	region string
}

func (c *cli) plan() *cobra.Command {
	p := planning{load: plan.Usual(cost.Listed())}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say what a load needs of a stack on AWS, what it costs, and what bends first",
		Long: `Say what a load needs of a stack on AWS: shards and ticks, worker functions, units of the table and of its hottest keys, quotas to
raise, the monthly bill, and the limits in the order in which a growing load comes upon them. Works without a server and without AWS.

What a run takes is counted by Belfry's own tests, the rest follows from the constants of its code, AWS's published quotas, and a file of
prices with its date. What rests on an assumed time is marked by a star: no tick was measured on AWS. docs/plan.md has the formulas.`,
		Example: `  belfry plan --schedules 10M --runs-per-second 100k
  belfry plan --schedules 20k --runs-per-second 50 --peak 1.5k --at-once 100% --duration 2s --retry-rate 3%
  belfry plan --schedules 500 --runs-per-day 60k --peak 40
  belfry plan --runs-per-second 200 --on-demand 100% --payload 2KB --retention 7d --output json
  belfry plan --schedules 20k --runs-per-second 50 --gate stripe=10 --passes stripe=8% --passes stripe=2%x2
  belfry plan prices`,
		Annotations: map[string]string{anyConfig: "yes", worksAlone: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := p.make(cmd)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(made)
			}
			return c.showPlan(made)
		},
	}
	l := &p.load
	wholeFlag(cmd, &l.Schedules, "schedules", "0", "`NUMBER` of jobs that have a schedule, as 10M")
	countFlag(cmd, &l.Rate, "runs-per-second", "", "`RATE` of runs over the month, as 100k")
	countFlag(cmd, &p.daily, "runs-per-day", "", "the same as a `NUMBER` of runs a day, as 60k")
	countFlag(cmd, &l.Peak, "peak", "", "`RATE` of runs in the busiest minute; that of the month by default")
	shareFlag(cmd, &l.AtOnce, "at-once", percent(l.AtOnce), "`SHARE` of that minute's runs that is due in its first second, as cron's are")
	lengthFlag(cmd, &l.Late, "late", schedule.Duration(l.Late).String(), "`DURATION` in which these must all have started")
	lengthFlag(cmd, &l.Duration, "duration", schedule.Duration(l.Duration).String(), "`DURATION` that a target takes, on average")
	shareFlag(cmd, &l.OnDemand, "on-demand", "0%", "`SHARE` of the runs that are asked for by the API, to start at once")
	shareFlag(cmd, &l.Ahead, "ahead", "0%", "`SHARE` of the runs that are asked for ahead of their time")
	wholeFlag(cmd, &l.Together, "runs-in-request", fmt.Sprint(l.Together), "`NUMBER` of runs that each request to the API asks for")
	shareFlag(cmd, &l.Retries, "retry-rate", "0%", "`SHARE` of further attempts, as 5% where one run in twenty is tried again")
	parsedFlag(cmd, &l.Payload, "payload", fmt.Sprint(l.Payload), "size", "`SIZE` of what a request brings, as 2KB", plan.ParseBytes)
	parsedFlag(cmd, &l.Result, "result", "0", "size", "`SIZE` of what a target answers", plan.ParseBytes)
	lengthFlag(cmd, &l.Retention, "retention", schedule.Duration(l.Retention).String(), "`DURATION` for which ended runs are kept")
	wholeFlag(cmd, &l.Tenants, "tenants", fmt.Sprint(l.Tenants), "`NUMBER` of tenants that share the load")
	shareFlag(cmd, &l.Priority, "priority", percent(l.Priority), "`SHARE` of the runs that have the most usual priority")
	countFlag(cmd, &l.HotJob, "hot-job", "0", "`RATE` of requests for the busiest job")
	cmd.Flags().Var(&repeated[plan.Gate]{to: &l.Gates, parse: plan.ParseGate, kind: "gate"}, "gate", "`NAME=LIMIT` of a gate, as stripe=10; may be given more than once")
	cmd.Flags().Var(&repeated[plan.Pass]{to: &l.Passes, parse: plan.ParsePass, kind: "pass"}, "passes", "`NAME=SHARE` of the runs that pass a gate, as stripe=40%, or gpu=5%x2 where each takes 2 units; all do by default")
	cmd.Flags().IntVar(&l.Shards, "shards", 0, "`NUMBER` of shards; as many as the load needs by default")
	cmd.Flags().IntVar(&l.Helpers, "helpers", l.Helpers, "`NUMBER` of ticks at once beside the one by the clock; as many as the load needs by default")
	cmd.Flags().StringVar(&p.region, "region", "", "`REGION` that the prices must be of; that of the price file by default")
	cmd.Flags().StringVar(&p.prices, "prices", "", "`FILE` of prices instead of those that this build brings, in the form of \"belfry plan prices\"")
	cmd.AddCommand(c.planQueue(), c.planOrder(), c.planOnce(), c.planRetry(), c.planPrices())
	return cmd
}

// make reads the rest of what was told, and makes the plan.
func (p *planning) make(cmd *cobra.Command) (*plan.Plan, error) {
	daily := cmd.Flags().Changed("runs-per-day")
	switch told := cmd.Flags().Changed("runs-per-second"); {
	case told && daily:
		return nil, misused("--runs-per-day: want only one of --runs-per-day and --runs-per-second")
	case !told && !daily:
		return nil, misused("--runs-per-second: want how many runs there are in a second over the month, such as 100k, 1.5k or 0.2; or in a day, by --runs-per-day")
	case daily:
		p.load.Rate = p.daily / plan.Day
	}
	if !cmd.Flags().Changed("peak") {
		p.load.Peak = p.load.Rate
	}
	if err := p.load.Check(plan.Typist(daily)); err != nil {
		return nil, asUsage(err)
	}
	tariff := cost.Listed()
	if p.prices != "" {
		text, err := os.ReadFile(p.prices)
		if err != nil {
			return nil, fmt.Errorf("--prices: %w", err)
		}
		if tariff, err = cost.ReadTariff(text); err != nil {
			return nil, fmt.Errorf("--prices %s: %w", p.prices, err)
		}
	}
	if p.region != "" && p.region != tariff.Region {
		return nil, misused("--region %s: the prices are those of %s in %s; want --prices FILE with those of %s: \"belfry plan prices\" prints what to begin with",
			p.region, tariff.Region, tariff.AsOf, p.region)
	}
	return plan.Make(p.load, tariff, cost.Counted(), plan.Adapter{Writes: dynamo.Parallel}), nil
}

// ofFlags makes a mistake in the command line of what is wrong with fields, by the names of their flags. Another error stays as it is.
func ofFlags(err error, flag func(field string) string) error {
	wrong := invalid.All(err)
	if len(wrong) == 0 {
		return err
	}
	named := make([]error, len(wrong))
	for i, e := range wrong {
		named[i] = &invalid.Error{Field: "--" + flag(e.Field), Got: e.Got, Want: e.Want}
	}
	return asUsage(errors.Join(named...))
}

// asUsage makes a mistake in the command line of what is wrong with flags, a line each.
func asUsage(err error) error {
	var lines []string
	for _, e := range invalid.All(err) {
		lines = append(lines, e.Error())
	}
	return misused("%s", strings.Join(lines, "\n"))
}

func (c *cli) planPrices() *cobra.Command {
	return &cobra.Command{
		Use:   "prices",
		Short: "Print the prices that plans are made with, and what is assumed",
		Long: `Print the prices that plans are made with, their region and date, what the template makes of a stack, and what is assumed where
nothing could be counted. Change what differs for you, and give the file to "belfry plan --prices".`,
		Example: `  belfry plan prices
  belfry plan prices > prices.json`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.stdout.Write(cost.PriceFile())
			return err
		},
	}
}
