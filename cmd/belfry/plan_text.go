package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// paper is a text of sections, as wide as the terminal, 80 columns where there is none.
type paper struct {
	c    *cli
	wide int
	text strings.Builder
}

func newPaper(c *cli) *paper {
	wide := 80
	if c.width > 0 {
		wide = min(max(c.width, 40), longestLine)
	}
	return &paper{c: c, wide: wide}
}

func (p *paper) say(format string, args ...any) {
	p.text.WriteString(strings.Join(wrap(fmt.Sprintf(format, args...), p.wide), "\n") + "\n")
}

func (p *paper) head(title string) {
	if p.c.colour {
		title = paint(title, bold)
	}
	p.text.WriteString("\n" + title + "\n")
}

// grid writes rows in columns, each as wide as it must be and the last one as wide as there is room. A cell that is wider than its
// column is broken into lines; most bounds a column by its number.
func (p *paper) grid(rows [][]string, most ...int) {
	const indent = 2
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	used := indent
	for i := range widths {
		if i < len(most) && most[i] > 0 {
			widths[i] = min(widths[i], most[i])
		}
		if i == len(widths)-1 {
			widths[i] = max(p.wide-used, 20)
		}
		used += widths[i] + len(gap)
	}
	for _, row := range rows {
		cells, tall := make([][]string, len(row)), 0
		for i, cell := range row {
			cells[i] = []string{cell}
			if columnsOf(cell) > widths[i] {
				cells[i] = wrap(cell, widths[i])
			}
			tall = max(tall, len(cells[i]))
		}
		for n := range tall {
			line := strings.Repeat(" ", indent)
			for i := range cells {
				cell := ""
				if n < len(cells[i]) {
					cell = cells[i][n]
				}
				line += pad(cell, widths[i]) + gap
			}
			p.text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

func (p *paper) print() error {
	_, err := io.WriteString(p.c.stdout, p.text.String())
	return err
}

// wrap breaks a text into lines of so many columns, at blanks.
func wrap(text string, columns int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case columnsOf(*last)+1+columnsOf(word) <= columns:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func (c *cli) showPlan(p *plan.Plan) error {
	out := newPaper(c)
	count, l := plan.Count, p.Load
	peak := ""
	if l.Peak > l.Rate {
		peak = fmt.Sprintf(", %s/s in the busiest minute", count(l.Peak))
	}
	out.say("%s schedules, %s runs/s%s: %s a month of 30 days. %s of a minute's runs are due at once, to start within %s; a target takes %s; runs are kept for %s.",
		count(float64(l.Schedules)), count(l.Rate), peak, count(p.Bill.Runs), percent(l.AtOnce), brief(l.Late.Std()), brief(l.Duration.Std()), brief(l.Retention.Std()))
	out.say("Prices of %s, %s; quotas as of %s. A star: rests on an assumed time, not measured on AWS.", p.Region, p.AsOf, p.Quotas)

	out.head("TICKS")
	k := p.Ticks
	enough := fmt.Sprintf("in time, %.0f%% spare", math.Floor(k.Spare*100))
	switch {
	case k.Spare < 0:
		enough = "TOO LONG: ticks fall behind, and runs are late"
	case !k.Enough:
		enough += ", WHICH IS LITTLE: 30% is aimed at"
	}
	out.grid([][]string{
		{"shards", fmt.Sprintf("%d, with %d of the %d buckets of a minute each", k.Shards, k.Buckets, timer.Buckets)},
		{"a minute", fmt.Sprintf("%s runs: %s a shard, %s of %d timers a bucket", count(k.Minute), count(k.OfShard), several(int(k.Pages), "page"), tick.PageSize)},
		{"pace of a tick *", fmt.Sprintf("%s runs/s on a shard. A page is %d requests to DynamoDB and %d to SQS in a row: %s/s a bucket; its CPU would do %s/s",
			count(k.Pace), k.Round, k.Sends, count(k.BucketPace), count(k.CPUPace))},
		{"ticks at once *", fmt.Sprintf("%d: one by the clock and %s, who are asked when a shard has more than %d",
			k.AtOnce, several(k.Helpers, "helper"), tick.CalledWork)},
		{"a minute takes *", fmt.Sprintf("%s s of 60: %s", count(k.Seconds), enough)},
	})

	out.head("WORKERS")
	w := p.Workers
	spare := "and time to scale up"
	if l.AtOnce < 1 {
		spare = "some more for chance by Erlang C, and time to scale up"
	}
	rows := [][]string{
		{"starts", fmt.Sprintf("%s runs/s when most start", count(w.Starts))},
		{"an event *", fmt.Sprintf("%s s for up to %s runs, as many as there are when a function asks", count(w.Seconds), count(w.Batch))},
		{"functions *", fmt.Sprintf("%s on average, %s in the busiest minute were it even, %s as it is (Little's law, %s)", count(w.Mean), count(w.Even), count(w.Burst), spare)},
	}
	if w.ScalingUp > 0 {
		rows = append(rows, []string{"to scale up *", fmt.Sprintf("from %s of a queue, by 300 a minute: all are there after %s", count(w.From), seconds(w.ScalingUp))})
	}
	late := fmt.Sprintf("the last run starts within %s", brief(l.Late.Std()))
	if w.LastStart > 0 {
		late = fmt.Sprintf("the last run starts after %s: in time", seconds(w.LastStart))
		if w.Late {
			late = fmt.Sprintf("the last run starts after %s: TOO LATE", seconds(w.LastStart))
		}
	}
	rows = append(rows, []string{"lateness *", late})
	rows = append(rows, []string{"in flight *", numbered(w.InFlight, "message") + " of the most usual priority"})
	out.grid(rows)

	out.head("QUEUES AND API")
	q := p.Queues
	rows = [][]string{
		{"SQS", fmt.Sprintf("%s requests/s, %s a run in batches of %d", count(q.Requests), count(q.OfARun), queue.MaxBatch)},
		{"sent ahead", fmt.Sprintf("%s, which wait up to %.0f s for their second", numbered(q.Messages, "message"), q.MaxDelay)},
	}
	if p.API.Requests > 0 {
		rows = append(rows, []string{"API", fmt.Sprintf("%s requests/s with %s each, %s *", count(p.API.Requests), several(l.Together, "run"), numbered(p.API.Functions, "function"))})
	}
	out.grid(rows)

	if len(p.Gates) > 0 {
		out.head("GATES")
		gates := [][]string{{"gate", "limit", "runs/s", "units *", "full *", "last start *"}}
		for _, g := range p.Gates {
			last := "at once"
			switch {
			case g.Utilization > 1:
				last = "NEVER: its line grows"
			case g.Late:
				last = "after " + seconds(g.LastStart) + ": TOO LATE"
			case g.LastStart > 0:
				last = "after " + seconds(g.LastStart)
			}
			gates = append(gates, []string{g.Name, fmt.Sprint(g.Limit), count(g.Runs), count(g.Units), fmt.Sprintf("%.0f%%", g.Utilization*100), last})
		}
		out.grid(gates)
		first := p.Gates[0]
		of := ""
		if l.Tenants > 1 {
			of = " of a tenant"
		}
		out.say("The bottleneck is %s: %s runs/s%s keep their units for %s each. It is always full from %s/s of all runs on.", first.Name, count(first.Runs), of, seconds(first.Held), count(first.Reached))
	}

	out.head("TABLE")
	t := p.Table
	dense := ""
	if t.Dense {
		dense = ", more than one page a bucket"
	}
	out.grid([][]string{
		{"a run", fmt.Sprintf("%.2f write and %.2f read units, counted%s", t.WritesOfARun, t.ReadsOfARun, dense)},
		{"units", fmt.Sprintf("%s writes/s and %s reads/s when most start", count(t.Writes), count(t.Reads))},
		{"partitions", fmt.Sprintf("%s at the least", count(float64(t.Partitions)))},
		{"records", fmt.Sprintf("%s a day: runs, and their timers; %s ended runs are kept", count(t.Records), count(t.RunsKept))},
		{"stored", fmt.Sprintf("%s, %s of it definitions; it grows to that over 60 days or the retention", plan.Bytes(t.StoredGB*(1<<30)), plan.Bytes(t.JobsGB*(1<<30)))},
	})
	out.head("HOTTEST KEYS")
	keys := [][]string{{"key", "units/s", "limit", "reached at", "what it is"}}
	for _, key := range t.Keys {
		keys = append(keys, []string{key.Key, count(key.Units) + " " + key.Unit + "s", count(key.Limit), count(key.Reached) + " runs/s", key.What})
	}
	out.grid(keys)

	out.head("PARAMETERS OF THE STACK")
	if len(p.Settings) == 0 {
		out.say("  As the template has them.")
	} else {
		out.text.WriteString("  sam deploy --parameter-overrides \"" + overrides(p.Settings) + "\"\n") // to be copied: no line of it is broken
		for _, s := range p.Settings {
			if s.Short {
				out.say("  %s=%.0f is the most that there is, and not enough: %s are needed.", s.Name, s.Value, count(s.Needs))
			}
		}
	}

	out.head("QUOTAS TO RAISE")
	if len(p.Needs) == 0 {
		out.say("  None of an account with the usual ones. A new account has 10 functions at once: raise L-B99A9384 first.")
	} else {
		needs := [][]string{{"needs", "today", "quota"}}
		for _, n := range p.Needs {
			needs = append(needs, []string{count(n.Needs), count(n.Value), n.Name})
		}
		out.grid(needs)
	}

	out.head("A MONTH, IN DOLLARS AT LIST PRICES")
	b := p.Bill
	lines := [][]string{{fmt.Sprintf("%14s", "shared"), fmt.Sprintf("%10s", "unshared"), ""}}
	line := func(dollars, apart float64, what string) {
		lines = append(lines, []string{fmt.Sprintf("%14s", plan.Money(dollars)), fmt.Sprintf("%10s", plan.Money(apart)), what})
	}
	for _, l := range b.Lines {
		if l.Apart >= 0.005 {
			line(l.Dollars, l.Apart, l.What)
		}
	}
	line(b.Total, b.Apart, fmt.Sprintf("all; %s a million runs without the stack itself", plan.Money(b.Million)))
	out.grid(lines)
	out.say("Runs share requests, functions and writes when ten come together, as in a full minute. Unshared is what it would be if none did.")
	if b.Warm > 0 {
		out.say("Beside it, once, for WarmWrites and WarmReads: %s, taken as an hour of that capacity.", plan.Money(b.Warm))
	}
	out.say("The table's units are %s on demand. Provisioned for the busiest minute, 70%% used then, and kept all month: %s; that is cheaper from %.0f%% use on.",
		plan.Money(b.Capacity.OnDemand), plan.Money(b.Capacity.Provisioned), b.Capacity.BreakEven*100)

	out.head("WHAT BENDS, IN THIS ORDER")
	limits := [][]string{{"", "reached at", "limit", "what to do"}}
	for _, limit := range p.Limits {
		mark, star := "", ""
		if limit.Exceeds {
			mark = "!"
		}
		if limit.Assumed {
			star = " *"
		}
		limits = append(limits, []string{mark, count(limit.Reached) + "/s", limit.Name + star, limit.Do})
	}
	out.grid(limits, 0, 0, 32)
	out.say("!: this load is beyond it. Runs a second in the busiest minute, all else being in proportion.")
	if p.First != nil {
		out.say("The first that it is beyond: %s, reached at %s/s.", p.First.Name, count(p.First.Reached))
	}
	if p.Next != nil {
		out.say("The next: %s, reached at %s/s, which is %s times this load.", p.Next.Name, count(p.Next.Reached), count(p.Next.Times))
	}
	out.verdict(p.Verdict)
	for _, g := range p.Gates {
		if g.Late {
			out.say("The gate %s is too small for it, whatever the stack is.", g.Name)
		}
	}
	if line := replay(p); line != "" {
		out.say("")
		out.say("Its busiest minute, run by run, in the queue that has most of them:")
		out.text.WriteString("  " + line + "\n")
	}
	return out.print()
}

func overrides(settings []plan.Setting) string {
	texts := make([]string, len(settings))
	for i, s := range settings {
		texts[i] = fmt.Sprintf("%s=%.0f", s.Name, s.Value)
	}
	return strings.Join(texts, " ")
}

// replay is a simulation of the busiest minutes, "" where that would take too long.
func replay(p *plan.Plan) string {
	// Several runs one after the other on each function: the first are taken by functions that all are free.
	minutes := max(2, math.Ceil(4*p.Workers.Seconds/60))
	if p.Load.Peak*(1+p.Load.Retries)*minutes*60 > queueing.Most {
		return ""
	}
	w, share := p.Workers, p.Load.Priority
	up := ""
	if w.ScalingUp > 0 {
		up = fmt.Sprintf(" --from %.0f --grow %.0f", w.From, plan.Growth)
	}
	return fmt.Sprintf("belfry plan queue --workers %.0f%s --batch %.0f --arrivals %s --at-once %s --duration %s --for %.0fm",
		math.Ceil(w.Burst*share*(1-1e-9)), up, w.Batch, strconv.FormatFloat(p.Load.Peak*(1+p.Load.Retries)*share, 'f', -1, 64), percent(p.Load.AtOnce),
		brief(time.Duration(w.Seconds*float64(time.Second)).Round(time.Millisecond)), minutes)
}

// verdict says what the list comes to.
func (p *paper) verdict(v plan.Verdict) {
	if v.One {
		p.say("One stack carries it, with the parameters and quotas above.")
		return
	}
	if v.Beyond {
		p.say("Belfry as it is now does not carry it: it would take %s stacks. No parameter and no quota helps against:", plan.Count(float64(v.Stacks)))
	} else {
		p.say("Not by one stack as Belfry is now: it would take %d that share the load evenly. No parameter and no quota helps against:", v.Stacks)
	}
	rows := [][]string{{"reached at", "stacks", "what"}}
	for _, r := range v.Reasons {
		rows = append(rows, []string{plan.Count(r.Reached) + "/s", fmt.Sprint(r.Stacks), r.What})
	}
	p.grid(rows)
}

// seconds writes a time of less than a minute to a tenth, and a longer one to a second.
func seconds(v float64) string {
	to := time.Second
	if v < 60 {
		to = 100 * time.Millisecond
	}
	return brief(time.Duration(v * float64(time.Second)).Round(to))
}

// numbered writes a number of things; one has no plural.
func numbered(v float64, what string) string {
	if plan.Count(v) != "1" {
		what += "s"
	}
	return plan.Count(v) + " " + what
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", plan.Count(float64(n)), what)
}

// rate writes a rate that was asked for: below 10,000 as it was given, else with three digits.
func rate(v float64) string {
	if v < 10_000 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return plan.Count(v)
}

func percent(share float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", share*100), ".0") + "%"
}

// brief writes a duration without what is zero: 200ms, 30s, 1m30s, 30d.
func brief(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		text := fmt.Sprintf("%dd", d/day)
		if rest := d % day; rest > 0 {
			text += brief(rest)
		}
		return text
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}
