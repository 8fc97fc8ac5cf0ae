package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/plan/chart"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) planQueue() *cobra.Command {
	var q wire.QueueQuestion
	var mean, p99, every, span, warm time.Duration
	var svg string
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Simulate a queue and its workers: depth, utilization, waits",
		Long: `Simulate a queue with workers, run by run: how deep it gets, how busy the workers are, and how long runs wait. The same seed gives the
same again. Where queueing theory has a formula for such a queue, what it says of the long run stands beside it.

A worker is a slot of "belfry worker", or with --batch 10 a worker function, which is busy until the slowest of its ten runs has ended.
Where each priority has functions of its own, as on AWS, simulate each by itself.`,
		Example: `  belfry plan queue --workers 50 --arrivals 200 --duration 220ms
  belfry plan queue --workers 60 --arrivals 200 --at-once 100% --distribution lognormal --p99 1s --for 5m
  belfry plan queue --workers 180 --from 5 --grow 300 --batch 10 --arrivals 1k --at-once 100% --duration 240ms --for 2m
  belfry plan queue --workers 12 --batch 10 --arrivals 250 --distribution exponential --high 10% --low 30% --svg queue.svg`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"workers", "arrivals"} {
				if !cmd.Flags().Changed(name) {
					return misused("--%s: want a number above 0, such as 40 or 1.5k", name)
				}
			}
			if err := refuseZeros(cmd, "batch", "duration", "burst-every", "for", "seed"); err != nil {
				return err
			}
			q.Service.Mean, q.Service.P99, q.Every, q.For = schedule.Duration(mean), schedule.Duration(p99), schedule.Duration(every), schedule.Duration(span)
			if cmd.Flags().Changed("warm") {
				q.Warm = new(schedule.Duration(warm))
			}
			result, err := queueing.Simulate(cmd.Context(), q, queueing.Most)
			if err != nil {
				return ofFlags(err, flagOf)
			}
			if svg != "" {
				if err := os.WriteFile(svg, []byte(queueChart(result).SVG()), 0o644); err != nil {
					return fmt.Errorf("--svg: %w", err)
				}
			}
			if c.structured() {
				return c.print(result)
			}
			return c.showQueue(result)
		},
	}
	wholeFlag(cmd, &q.Workers, "workers", "", "`NUMBER` of workers, up to 1M")
	wholeFlag(cmd, &q.From, "from", "0", "`NUMBER` of these that are there at the beginning; all by default")
	countFlag(cmd, &q.Grow, "grow", "0", "`NUMBER` of workers that come in a minute, until all are there, with --from: 300 for functions of a queue")
	countFlag(cmd, &q.Rate, "arrivals", "", "`RATE` of runs a second, as 1.5k")
	lengthFlag(cmd, &mean, "duration", queueing.Usual.Service.Mean.String(), "`DURATION` of a run, on average")
	cmd.Flags().StringVar(&q.Service.Kind, "distribution", queueing.Usual.Service.Kind, "`KIND` of distribution that durations have: constant, exponential or lognormal")
	lengthFlag(cmd, &p99, "p99", "0s", "`DURATION` that one run in a hundred exceeds, with --distribution lognormal")
	shareFlag(cmd, &q.AtOnce, "at-once", "0%", "`SHARE` of the runs that comes in bursts, each at one instant; the rest is a Poisson process")
	lengthFlag(cmd, &every, "burst-every", queueing.Usual.Every.String(), "`DURATION` from one burst to the next, up to 24h: 1h for a burst at each full hour")
	shareFlag(cmd, &q.Shares[0], "high", "0%", "`SHARE` of the runs that have high priority")
	shareFlag(cmd, &q.Shares[2], "low", "0%", "`SHARE` of the runs that have low priority; what is left is normal")
	wholeFlag(cmd, &q.Batch, "batch", fmt.Sprint(queueing.Usual.Batch), "`NUMBER` of runs that a worker takes at once, up to 10: 10 for a worker function")
	lengthFlag(cmd, &span, "for", queueing.Usual.For.String(), "`DURATION` that is simulated, 1s to 30d")
	lengthFlag(cmd, &warm, "warm", "0s", "`DURATION` of the warm-up, which is not counted; a tenth by default, cut to whole times of --burst-every with --at-once")
	cmd.Flags().Uint64Var(&q.Seed, "seed", queueing.Usual.Seed, "`SEED` of chance")
	cmd.Flags().StringVar(&svg, "svg", "", "write the chart to this `FILE`, as a picture for light and dark pages")
	return cmd
}

// noneCounted is said where no wait is known.
const noneCounted = "No run started in the counted time."

// queueChart is what the picture and the terminal show.
func queueChart(r wire.QueuePlan) chart.Chart {
	n := len(r.Series)
	depth, deepest, busy := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, p := range r.Series {
		depth[i], deepest[i], busy[i] = p.Depth, float64(p.Deepest), p.Busy/p.Workers
	}
	waits := noneCounted
	if r.Wait.Runs > 0 {
		waits = fmt.Sprintf("Waits: mean %s, p99 %s.", wait(r.Wait.Mean), wait(r.Wait.P99))
	}
	return chart.Chart{
		Title: fmt.Sprintf("%s, %s runs/s", several(r.Question.Workers, "worker"), rate(r.Question.Rate)),
		About: fmt.Sprintf("%s, %s each on average; seed %d. %s", r.Question.Service.Kind, brief(r.Question.Service.Mean.Std()), r.Question.Seed, waits),
		To:    r.Question.For.Std().Seconds(),
		Panels: []chart.Panel{
			{Title: "Runs that wait: at most, and on average (line)", Mean: depth, Most: deepest, Format: plan.Count},
			{Title: "Workers that are busy", Mean: busy, Top: 1, Format: percent},
		},
	}
}

// wait writes seconds with three digits that count.
func wait(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return brief(d.Round(time.Microsecond))
	case d < time.Second:
		return brief(d.Round(100 * time.Microsecond))
	case d < time.Minute:
		return brief(d.Round(10 * time.Millisecond))
	case d < 48*time.Hour:
		return brief(d.Round(time.Second))
	default:
		return brief(d.Round(time.Hour))
	}
}

func (c *cli) showQueue(r wire.QueuePlan) error {
	out := newPaper(c)
	s := r.Question
	durations := s.Service.Kind
	if s.Service.Kind == queueing.Lognormal {
		durations += ", p99 " + brief(s.Service.P99.Std())
	}
	arrivals := "Poisson"
	if s.AtOnce > 0 {
		each := "minute"
		if s.Every != queueing.Usual.Every {
			each = brief(s.Every.Std())
		}
		arrivals = percent(s.AtOnce) + " of each " + each + "'s at once"
	}
	there := ""
	if s.From > 0 && s.From < s.Workers {
		there = fmt.Sprintf(" (%s at first, and %s more a minute)", plan.Count(float64(s.From)), rate(s.Grow))
	}
	out.say("%s%s with %s at once, %s runs/s (%s), %s each (%s), for %s, seed %d",
		several(s.Workers, "worker"), there, several(s.Batch, "run"), rate(s.Rate), arrivals, brief(s.Service.Mean.Std()), durations, brief(s.For.Std()), s.Seed)
	const close = 1e-9
	switch {
	case r.Load > 1+close:
		out.say("TOO FEW WORKERS: %.4g%% of what they can do comes in, so the queue grows for as long as it lasts, and the waits with it.", r.Load*100)
	case r.Load > 1-close:
		out.say("NO WORKER TO SPARE: as much comes in as they can do, so a queue that has grown does not become shorter.")
	}
	out.head("QUEUE")
	rows := [][]string{
		{"runs", fmt.Sprintf("%d came, %d started, %d wait at the end", r.Arrived, r.Started, r.Waiting)},
		{"workers", fmt.Sprintf("%.1f%% busy", r.Utilization*100)},
	}
	if s.Batch > 1 {
		rows = append(rows, []string{"batch", fmt.Sprintf("%.1f runs", r.Batch)})
	}
	rows = append(rows, []string{"depth", fmt.Sprintf("%s on average, %s at most", plan.Count(r.Depth), plan.Count(float64(r.Deepest)))})
	out.grid(rows)
	out.head("WAITS")
	row := func(name string, w wire.QueueWait) []string {
		if w.Runs == 0 {
			return []string{name, "0", "–", "–", "–", "–", "–", "–"}
		}
		return []string{name, fmt.Sprint(w.Runs), wait(w.Mean), wait(w.P50), wait(w.P90), wait(w.P99), wait(w.Max), percent(w.None)}
	}
	table := [][]string{{"", "runs", "mean", "p50", "p90", "p99", "most", "none"}, row("all", r.Wait)}
	ranks := 0
	for i, w := range r.Ranks {
		if w.Runs > 0 {
			ranks++
			table = append(table, row(string(queue.Priorities[i]), w))
		}
	}
	if ranks == 1 {
		table = table[:2]
	}
	out.grid(table)
	if r.Wait.Runs == 0 {
		out.say(noneCounted)
	}
	if r.Waiting > 0 {
		out.say("Waits are those of runs that have started: how long the others wait that are left at the end is not in them.")
	}
	if r.Wait.Within > 0 {
		out.say("The mean is right to ± %s, 19 times in 20.", wait(r.Wait.Within))
	}
	if t := r.Theory; t != nil {
		how := "an approximation"
		if t.Exact {
			how = "exact"
		}
		out.say("Theory (%s, %s), in the long run: %.1f%% busy, %s wait, for %s on average; %s deep.",
			t.Name, how, t.Utilization*100, percent(t.Waits), wait(t.Wait), plan.Count(t.Depth))
		if t.P50 != nil {
			out.say("Its waits: p50 %s, p90 %s, p99 %s.", wait(*t.P50), wait(*t.P90), wait(*t.P99))
		}
	}
	out.head("CHART")
	out.text.WriteString(queueChart(r).Text(out.wide))
	return out.print()
}
