package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

var adapter = plan.Adapter{Writes: 32}

// load is a modest one: a thousand jobs each five minutes, as in docs/cost.md.
func load() plan.Load {
	tariff := cost.Listed()
	return plan.Load{Schedules: 1000, Rate: 1000.0 / 300, Peak: 1000.0 / 300, AtOnce: 1, Late: 30 * time.Second,
		Duration: time.Duration(tariff.Assume(cost.TargetMS)) * time.Millisecond, Payload: 40, Retention: cost.CountedRetention * 24 * time.Hour,
		Together: 1, Tenants: 1, Priority: 1, Helpers: -1}
}

func made(t *testing.T, l plan.Load) *plan.Plan {
	t.Helper()
	if err := l.Check(plan.Typist(false)); err != nil {
		t.Fatal(err)
	}
	return plan.Make(l, cost.Listed(), cost.Counted(), adapter)
}

// bends is a load that no stack carries: ten million schedules, 100,000 runs a second.
func bends() plan.Load {
	l := load()
	l.Schedules, l.Rate, l.Peak, l.Duration = 10_000_000, 100_000, 100_000, 200*time.Millisecond
	return l
}

// row gives the cells of the last row of docs/cost.md that begins with some: of dollars, where another has units.
func row(t *testing.T, cells ...string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cost.md"))
	if err != nil {
		t.Fatal(err)
	}
	begin := "| " + strings.Join(cells, " | ") + " | "
	var row []string
	for line := range strings.Lines(string(page)) {
		if rest, found := strings.CutPrefix(line, begin); found {
			row = strings.Split(strings.TrimSuffix(strings.TrimSpace(rest), " |"), " | ")
		}
	}
	if row == nil {
		t.Fatalf("docs/cost.md has no row %q", begin)
	}
	return row
}

func dollars(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.Trim(strings.ReplaceAll(cell, ",", ""), "*"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want)+0.006 {
		t.Errorf("%s is %.4f, want %.4f within %g%%", what, got, want, within*100)
	}
}

// TestBillsAreThoseOfTheCostPage ties plans to docs/cost.md, line by line: a million cron runs, and a month of its examples.
func TestBillsAreThoseOfTheCostPage(t *testing.T) {
	p := made(t, load())
	page := row(t, "cron", "10")
	for i, what := range []string{cost.DynamoDB, cost.Stored, cost.SQS, cost.Lambda, cost.APIGateway, cost.Logs, cost.S3} {
		at := slices.IndexFunc(p.Bill.Lines, func(l plan.BillLine) bool { return l.What == what })
		near(t, what+" of a million cron runs", p.Bill.Lines[at].Dollars/p.Bill.Runs*1e6, dollars(t, page[i]), 0.04)
	}
	near(t, "a million cron runs", p.Bill.Million, dollars(t, page[7]), 0.01)
	// The page's month has no definitions in it; here they are of no account.
	near(t, "1,000 jobs each five minutes", p.Bill.Total, dollars(t, row(t, "1,000 jobs, each five minutes", "8,640,000")[0]), 0.01)

	for of, c := range map[[2]string]struct {
		schedules int
		runs      float64
		ahead     float64
	}{{"1,000 jobs, each five minutes", "8,640,000"}: {1000, 8_640_000, 0}, {"100 jobs, each hour", "72,000"}: {100, 72_000, 0}, {"a million reminders, asked for ahead", "1,000,000"}: {0, 1e6, 1}} {
		l := load()
		l.Schedules, l.Rate, l.Ahead, l.Payload = c.schedules, c.runs/cost.SecondsAMonth, c.ahead, 0
		l.Peak = l.Rate
		near(t, of[0]+", all alone", made(t, l).Bill.Apart, dollars(t, row(t, of[0], of[1])[1]), 0.001)
	}

	l := load()
	l.Schedules, l.OnDemand, l.Rate, l.Peak, l.Together = 0, 1, 10, 10, 10
	near(t, "a million immediate runs", made(t, l).Bill.Million, dollars(t, row(t, "immediate", "10")[7]), 0.03)
	l.Payload, l.Result = 2000, 2000
	near(t, "a million immediate runs with 2 KB in and out", made(t, l).Bill.Million, dollars(t, row(t, "immediate, 2 KB in and out", "10")[7]), 0.03)
	l = load()
	l.Retries = 1
	near(t, "a million runs that are tried again once", made(t, l).Bill.Million, dollars(t, row(t, "retry, once", "10")[7]), 0.02)
}

// TestCrowdedMinutes holds that a run takes the same reads, however many are due in its minute, but for the definitions of more jobs than a
// process remembers.
func TestCrowdedMinutes(t *testing.T) {
	reads := func(schedules int, rate float64) float64 {
		l := load()
		l.Schedules, l.Rate, l.Peak = schedules, rate, rate
		return made(t, l).Table.ReadsOfARun
	}
	for _, schedules := range []int{5_000, 50_000} {
		if few, many := reads(schedules, 200), reads(schedules, 2000); math.Abs(many-few) > 0.15 {
			t.Errorf("of %d schedules a run takes %.2f reads in a minute of few, and %.2f in one of many", schedules, few, many)
		}
	}
	if remembered, read := reads(5_000, 2000), reads(50_000, 2000); math.Abs(read-remembered-1) > 1e-6 {
		t.Errorf("a run takes %.2f reads where its job is remembered, and %.2f where not: want a definition more for the worker, and one for the first sweep", remembered, read)
	}
}

// TestAPlanByHand recomputes the great one from the constants, by another way.
func TestAPlanByHand(t *testing.T) {
	p := made(t, bends())
	for what, c := range map[string][2]float64{
		"runs in a minute":        {p.Ticks.Minute, 6_000_000},
		"pages of a bucket":       {p.Ticks.Pages, 367}, // 6M / 64 / 256 = 366.2
		"requests of a page":      {float64(p.Ticks.Round), 1 + 3 + 8 + 8 + 3*1 + 3 + 3},
		"sends of a page":         {float64(p.Ticks.Sends), 26},
		"pace of a bucket":        {p.Ticks.BucketPace, 256 / 0.405}, // 29 times 5 ms and 26 times 10 ms
		"pace of a CPU":           {p.Ticks.CPUPace, 512.0 / 1769 * 1000 / 0.55},
		"functions, even":         {p.Workers.Even, 2400},  // 100,000/10 a second for 0.24 s
		"functions, burst":        {p.Workers.Burst, 4800}, // 6M in 30 s
		"to scale up":             {p.Workers.ScalingUp, 959},
		"the last start":          {p.Workers.LastStart, math.Sqrt(1+2*144_000/5.0) - 1}, // 6M/10*0.24 s of functions, where 5+5t are there
		"in flight":               {p.Workers.InFlight, 48_000},
		"bucket, writes":          {key(t, p, "due#").Units, 100_000.0 / 64},
		"bucket, reached at":      {key(t, p, "due#").Reached, 64_000},
		"definitions, reads":      {key(t, p, "job#").Units, 100_000 * (1 + 2*0.5) / 64},
		"definitions, reached":    {key(t, p, "job#").Reached, 96_000},
		"sent ahead":              {p.Queues.Messages, 15_000_000},
		"writes, when they start": {p.Table.Writes, 100_000*(p.Table.WritesOfARun-2) + 200_000*2 + 4*16.0/60},
	} {
		if math.Abs(c[0]-c[1]) > 1e-6*c[1] {
			t.Errorf("%s: %g, want %g", what, c[0], c[1])
		}
	}
	near(t, "stored GB", p.Table.StoredGB, p.Table.JobsGB+(cost.Counted().Of(cost.Dense, cost.Full).Kept+cost.Counted().Of(cost.Dense, cost.Full).Storage)*p.Bill.Runs, 1e-9)
	near(t, "from where provisioned is cheaper", p.Bill.Capacity.BreakEven, 0.65/3.6/0.625, 1e-9)
}

func key(t *testing.T, p *plan.Plan, prefix string) plan.Key {
	t.Helper()
	for _, k := range p.Table.Keys {
		if strings.HasPrefix(k.Key, prefix) {
			return k
		}
	}
	t.Fatalf("no key %s", prefix)
	return plan.Key{}
}

// TestLimitsAreReachedWhereTheySay makes the plan of each limit's load: just below it the limit holds, just above it does not.
func TestLimitsAreReachedWhereTheySay(t *testing.T) {
	at := bends()
	limits := made(t, at).Limits
	if !slices.IsSortedFunc(limits, func(a, b plan.Limit) int { return int(math.Copysign(1, a.Reached-b.Reached)) }) {
		t.Error("they are not in the order in which they are reached")
	}
	for _, limit := range limits {
		for factor, want := range map[float64]bool{0.99: false, 1.01: true} {
			l := at
			l.Rate = limit.Reached * factor
			l.Peak = l.Rate
			for _, same := range made(t, l).Limits {
				if same.Name == limit.Name && same.Exceeds != want {
					t.Errorf("%s, reached at %.0f: at %.0f it is exceeded: %v", limit.Name, limit.Reached, l.Peak, same.Exceeds)
				}
			}
		}
	}
}

// TestALimitIsWhereItIsFromEverywhere: how much of a load there is today moves no limit. Small loads have less than one function, a minute
// that is not crowded, and mostly what a stack takes that does nothing.
func TestALimitIsWhereItIsFromEverywhere(t *testing.T) {
	l := bends()
	l.OnDemand, l.Retries, l.Result = 0.2, 0.05, 5000
	l.Rate, l.Peak = l.Rate/3, l.Peak/2
	l.HotJob = l.Peak / 50
	want := map[string]float64{}
	for _, limit := range made(t, l).Limits {
		want[limit.Name] = limit.Reached
	}
	if len(want) < 17 {
		t.Errorf("only %d limits", len(want))
	}
	for range 6 {
		l.Rate, l.Peak, l.HotJob = l.Rate/10, l.Peak/10, l.HotJob/10
		for _, limit := range made(t, l).Limits {
			if got := limit.Reached; math.Abs(got/want[limit.Name]-1) > 0.01 {
				t.Errorf("from %g runs/s, %s is reached at %g, want %g", l.Peak, limit.Name, got, want[limit.Name])
			}
		}
	}
}

// TestWhatBendsFirst is the answer that a designer asks for, as a trace: in which order, and which of them nothing but another design mends.
func TestWhatBendsFirst(t *testing.T) {
	var order []string
	for _, limit := range made(t, bends()).Limits {
		if limit.Of == plan.OfDesign && limit.Exceeds {
			order = append(order, limit.Name)
		}
	}
	want := []string{`^scaling up`, `^worker functions of one priority: 1k`, `^a tick for each of 64 shards, 30% spare`, `^functions that a queue has at most`, `^hot key ran#TENANT#0`, `^hot key due#MINUTE#63|^hot key job#TENANT#63`, `^hot key due#MINUTE#63|^hot key job#TENANT#63`}
	ok := len(order) == len(want)
	for i := range order {
		ok = ok && regexp.MustCompile(want[i]).MatchString(order[i])
	}
	if !ok {
		t.Errorf("by design bend %q, want %q", order, want)
	}
	l := bends()
	l.Tenants = 100
	for _, limit := range made(t, l).Limits {
		if limit.Exceeds && (strings.Contains(limit.Name, "ran#") || strings.Contains(limit.Name, "job#")) {
			t.Errorf("a hundred tenants, and still %s", limit.Name)
		}
	}
}

// TestABillIsTheSumOfItsParts: shared, and where no two runs share a request. Sharing makes no part dearer.
func TestABillIsTheSumOfItsParts(t *testing.T) {
	asks := load()
	asks.Schedules, asks.OnDemand, asks.Retries, asks.Result = 0, 1, 0.2, 5000
	for _, l := range []plan.Load{load(), bends(), asks} {
		b := made(t, l).Bill
		total, apart := 0.0, 0.0
		for _, line := range b.Lines {
			total, apart = total+line.Dollars, apart+line.Apart
			if line.Apart < line.Dollars*(1-1e-9) {
				t.Errorf("%s is %g, and %g if nothing is shared", line.What, line.Dollars, line.Apart)
			}
		}
		if math.Abs(total-b.Total) > 1e-9*total || math.Abs(apart-b.Apart) > 1e-9*apart || b.Apart < 1.1*b.Total {
			t.Errorf("its parts are %g and %g, all of it %g and %g", total, apart, b.Total, b.Apart)
		}
	}
	again := load()
	again.Retries = 1
	for i, line := range made(t, again).Bill.Lines {
		if line.What == cost.SQS {
			near(t, "requests of two attempts that share none, five where one takes three", line.Apart, 5.0/3*made(t, load()).Bill.Lines[i].Apart, 1e-9)
		}
	}
}

// TestTheFirstLimits: of those in their order, the first that the load is beyond and the first that it is not, with how far away that is. Each
// says where it is from.
func TestTheFirstLimits(t *testing.T) {
	for name, l := range map[string]plan.Load{"small": load(), "large": bends()} {
		p := made(t, l)
		if p.First == nil == p.Limits[0].Exceeds || p.First != nil && *p.First != p.Limits[0] {
			t.Errorf("%s: the first is %+v of %+v", name, p.First, p.Limits)
		}
		if want := map[string]string{"small": "worker functions of a priority, as deployed: 2", "large": "DynamoDB: Table-level write throughput limit, raised to "}[name]; !strings.HasPrefix(p.Next.Name, want) {
			t.Errorf("%s: the next is %s, want %s", name, p.Next.Name, want)
		}
		for _, limit := range p.Limits {
			if limit.Do == "nothing" || strings.HasPrefix(limit.Name, "ticks at once: ") {
				t.Errorf("%s: %s is no limit", name, limit.Name)
			}
		}
		near(t, name+", how far the next is away", p.Next.Times*l.Peak, p.Next.Reached, 1e-9)
		if p.Next.Times < 1 || p.First != nil && p.First.Times > 1 {
			t.Errorf("%s: at %g and %g times this load", name, p.First.Times, p.Next.Times)
		}
		for _, limit := range p.Limits {
			if limit.Of == plan.OfQuota && !strings.HasPrefix(limit.Page, "https://docs.aws.amazon.com/") {
				t.Errorf("%s: a quota without its page", limit.Name)
			}
		}
	}
	l := load()
	l.Retention = 10 * 24 * time.Hour
	p := made(t, l)
	near(t, "records a day", p.Table.Records, l.Rate*86400*2, 1e-9) // a run, and the timer of its fire
	near(t, "runs kept", p.Table.RunsKept, l.Rate*864_000, 1e-9)
}

// TestABillIsOfAllStacks: each of those that share a load costs what a stack costs that does nothing.
func TestABillIsOfAllStacks(t *testing.T) {
	itself := func(p *plan.Plan) float64 { return p.Bill.Lines[len(p.Bill.Lines)-1].Dollars }
	l := bends()
	l.Shards = 16
	p := made(t, l)
	near(t, "the stacks themselves", itself(p), float64(p.Verdict.Stacks)*itself(made(t, load())), 1e-9)
	if p.Verdict.Stacks < 2 || p.Verdict.Beyond {
		t.Errorf("the verdict is %+v", p.Verdict)
	}
	l.Schedules, l.Rate, l.Peak = 1_000_000_000, 10_000_000, 10_000_000
	if v := made(t, l).Verdict; !v.Beyond {
		t.Errorf("the design carries ten million runs a second: %d stacks", v.Stacks)
	}
}

// TestABillHasTiers: what is beyond a tier is at the next one's price, and what makes a table ready is paid for once.
func TestABillHasTiers(t *testing.T) {
	tariff := cost.Listed()
	for gb, want := range map[float64]float64{1: 0.5, 10_240: 5120, 20_480: 5120 + 2560, 60 * 1024: 5120 + 5120 + 2048 + 512} {
		near(t, fmt.Sprint(gb, " GB of logs"), tariff.Dollars("logs", gb), want, 1e-9)
	}
	near(t, "250 billion requests", tariff.Dollars("sqs", 250e9), 40_000+30_000+12_000, 1e-9)
	p := made(t, bends())
	near(t, "making the table ready", p.Bill.Warm, max(0, math.Ceil(p.Table.Writes)-60*4000)*0.00065+max(0, math.Ceil(p.Table.Reads)-60*12_000)*0.00013, 1e-9)
	if p := made(t, load()); p.Bill.Warm != 0 {
		t.Errorf("a small load wants a table made ready, for %g", p.Bill.Warm)
	}
}

// TestTheVerdictIsThatOfTheFigures: one stack carries a load only if no limit that is fixed is exceeded, no parameter is at its end, and ticks
// have what is to spare; else it says why, and with how many stacks each has a load that one carries.
func TestTheVerdictIsThatOfTheFigures(t *testing.T) {
	reviewed := bends() // its functions of one priority are not enough, and nothing else of it is
	reviewed.Schedules, reviewed.Rate, reviewed.Peak, reviewed.Tenants, reviewed.AtOnce = 3_400_000, 22_500, 22_500, 4, 0
	reviewed.Duration = 500 * time.Millisecond
	slow := load() // ticks as told, which do not do it
	slow.Schedules, slow.Rate, slow.Peak, slow.Shards, slow.Helpers, slow.AtOnce = 100_000, 1000, 1000, 16, 1, 0
	tight := slow // they do it, and have too little to spare
	tight.Rate, tight.Peak = 900, 900
	good := slow
	good.Helpers = -1
	scaling := load() // a burst for which functions come too late
	scaling.Schedules, scaling.Rate, scaling.Peak, scaling.Duration = 20_000, 50, 1500, 2*time.Second
	patient := scaling
	patient.Late = 3 * time.Minute
	for name, c := range map[string]struct {
		load   plan.Load
		why    string
		stacks int
	}{
		"functions of a priority":  {reviewed, "worker functions of one priority: 1k", 2},
		"ticks as told":            {slow, "2 ticks at once on 16 shards", 2},
		"ticks without spare":      {tight, "2 ticks at once on 16 shards", 2},
		"ticks as it needs":        {good, "", 1},
		"functions come too late":  {scaling, "scaling up: 5 functions of a queue, and 300 more a minute", 8},
		"who has time":             {patient, "", 1},
		"more than any stack does": {bends(), "scaling up", 60},
	} {
		p := made(t, c.load)
		v := p.Verdict
		if v.One != (c.why == "") || v.Stacks != c.stacks || !v.One && !slices.ContainsFunc(v.Reasons, func(r plan.Reason) bool { return strings.HasPrefix(r.What, c.why) }) {
			t.Errorf("%s: %+v, want %q and %d", name, v, c.why, c.stacks)
		}
		for _, s := range p.Settings {
			if s.Short && v.One {
				t.Errorf("%s: %s=%g is not enough, and one stack carries it", name, s.Name, s.Value)
			}
		}
		text, err := json.Marshal(p)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf(`"verdict":{"one_stack":%v,"stacks":%d,"reasons":[`, v.One, v.Stacks)) {
			t.Errorf("%s: its JSON does not tell: %v", name, err)
		}
		// Each of so many stacks carries its part, if what the load has been told to use is not what is wrong.
		if part := c.load; part.Helpers < 0 {
			by := float64(v.Stacks)
			part.Rate, part.Peak = part.Rate/by, part.Peak/by
			if v := made(t, part).Verdict; !v.One {
				t.Errorf("%s: a stack of %g does not carry its part: %+v", name, by, v)
			}
		}
	}
}

// TestScalingUpIsThatOfTheSimulation: what the plan says of the last start, and of functions that are enough while they come, is what becomes
// of its runs one by one.
func TestScalingUpIsThatOfTheSimulation(t *testing.T) {
	for _, c := range []struct {
		peak, atOnce float64
		late         time.Duration
	}{{600, 1, 30 * time.Second}, {1600, 1, 30 * time.Second}, {1500, 1, 3 * time.Minute}, {4000, 1, 30 * time.Second}, {2000, 0.5, 20 * time.Second},
		{6000, 0.2, 30 * time.Second}, {8000, 0, 30 * time.Second}} {
		l := load()
		l.Schedules, l.Rate, l.Peak, l.AtOnce, l.Late, l.Duration = 100_000, 100, c.peak, c.atOnce, c.late, 200*time.Millisecond
		w := made(t, l).Workers
		r, err := queueing.Simulate(t.Context(), wire.QueueQuestion{Workers: int(w.Burst), From: min(int(w.From), int(w.Burst)), Grow: plan.Growth, Batch: 10, Rate: l.Peak, AtOnce: l.AtOnce,
			Service: wire.QueueService{Kind: queueing.Constant, Mean: schedule.Duration(240 * time.Millisecond)}, For: schedule.Duration(time.Minute - time.Millisecond), Warm: new(schedule.Duration), Seed: 1}, queueing.Most)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Wait.Max; math.Abs(got-w.LastStart) > 1+0.03*w.LastStart {
			t.Errorf("%g runs/s, %g of them at once: the last starts after %.2f s, and after %.2f s in the simulation (%+v)", c.peak, c.atOnce, w.LastStart, got, w)
		}
	}
}

// TestWhetherTheLastStartIsTooLateIsSaidOnce: the answer says it, and so does the limit of scaling up, that each of them is or is not.
func TestWhetherTheLastStartIsTooLateIsSaidOnce(t *testing.T) {
	late := load()
	late.Schedules, late.Rate, late.Peak, late.Duration = 20_000, 50, 1500, 2*time.Second
	last := made(t, late).Workers.LastStart
	for allowed, want := range map[time.Duration]bool{30 * time.Second: true, time.Duration(last * 0.999 * 1e9): true, time.Duration(last*1e9) - 1: false, 3 * time.Minute: false} {
		l := late
		l.Late = allowed
		p := made(t, l)
		if p.Workers.LastStart < last/2 || p.Workers.Late != want {
			t.Errorf("%s are allowed: the last starts after %.9f s, too late: %v", allowed, p.Workers.LastStart, p.Workers.Late)
		}
		for _, limit := range p.Limits {
			if strings.HasPrefix(limit.Name, "scaling up") && limit.Exceeds != want {
				t.Errorf("%s are allowed: %+v", allowed, limit)
			}
		}
	}
}

// TestABurstOfLongRunsHasAFunctionForEachEvent: a function begins no second event in time where one takes longer than is allowed, so there are as many
// functions as events and no more, or as many as minutes like this one after the other keep at work.
func TestABurstOfLongRunsHasAFunctionForEachEvent(t *testing.T) {
	for _, c := range []struct {
		duration, late time.Duration
		runs           float64 // of the minute, all at once
	}{{5 * time.Minute, 30 * time.Second, 2000}, {10 * time.Minute, time.Second, 40}, {31 * time.Second, 30 * time.Second, 1000}, {50 * time.Second, 10 * time.Second, 400},
		{10 * time.Second, 30 * time.Second, 3000}, {14 * time.Second, 45 * time.Second, 1000}, {20 * time.Second, 50 * time.Second, 250}} {
		l := load()
		l.Rate, l.Peak, l.Duration, l.Late = 0.5, c.runs/60, c.duration, c.late
		w := made(t, l).Workers
		if most := math.Ceil(max(c.runs/10, l.Peak/10*w.Seconds)); w.Burst > most {
			t.Errorf("%s: %g functions, and %g have one for each event", c.duration, w.Burst, most)
		}
		if most := max(c.runs, l.Peak*w.Seconds); w.InFlight > math.Ceil(most) {
			t.Errorf("%s: %g messages in flight, and there are no more than %g", c.duration, w.InFlight, most)
		}
		r, err := queueing.Simulate(t.Context(), wire.QueueQuestion{Workers: int(w.Burst), From: min(int(w.From), int(w.Burst)), Grow: plan.Growth, Batch: 10, Rate: l.Peak, AtOnce: 1,
			Service: wire.QueueService{Kind: queueing.Constant, Mean: schedule.Duration(w.Seconds * float64(time.Second))}, For: schedule.Duration(time.Minute - time.Millisecond), Warm: new(schedule.Duration), Seed: 1}, queueing.Most)
		if err != nil {
			t.Fatal(err)
		}
		// The last start is at the latest what is said, and less than an event sooner.
		if got := r.Wait.Max; float64(r.Started) < c.runs || got > w.LastStart+0.01 || got < w.LastStart-w.Seconds {
			t.Errorf("%s: the last starts after %.2f s, and of %d after %.2f s in the simulation (%+v)", c.duration, w.LastStart, r.Started, got, w)
		}
	}
}

// TestLongRunsThatComeEvenlyAreOneAnEvent: a run of ten minutes has a function of its own where another comes seconds later, and there are some more for
// chance. With as many as the plan says 99 of 100 start in time, and without the spare they do not.
func TestLongRunsThatComeEvenlyAreOneAnEvent(t *testing.T) {
	l := load()
	l.Schedules, l.Rate, l.Peak, l.AtOnce, l.Duration = 1000, 0.5, 0.5, 0, 10*time.Minute
	w := made(t, l).Workers
	near(t, "functions", w.Burst, float64(queueing.Staff(300.05, 600.1, 30, 0.01)), 0.001)
	near(t, "functions on average", w.Mean, 301, 0.001)
	late := func(workers float64) float64 {
		r, err := queueing.Simulate(t.Context(), wire.QueueQuestion{Workers: int(workers), Batch: 1, Rate: l.Peak,
			Service: wire.QueueService{Kind: queueing.Exponential, Mean: schedule.Duration(l.Duration)}, For: schedule.Duration(20 * 24 * time.Hour), Warm: new(schedule.Duration(12 * time.Hour)), Seed: 1}, queueing.Most)
		if err != nil {
			t.Fatal(err)
		}
		return r.Wait.P99
	}
	if wait := late(w.Burst); wait > l.Late.Seconds() {
		t.Errorf("with %g functions one in a hundred waits for longer than %g s", w.Burst, wait)
	}
	if wait := late(w.Mean); wait <= l.Late.Seconds() {
		t.Errorf("with those of the average one in a hundred waits for %g s", wait)
	}
}

// TestALoadOfFewWaitsForAWholeFunction: there is no tenth of a function that would take all of the time that is allowed.
func TestALoadOfFewWaitsForAWholeFunction(t *testing.T) {
	l := load()
	w := made(t, l).Workers // 200 runs at once: 20 events, one after the other
	if near(t, "the last start", w.LastStart, 20*w.Seconds, 1e-6); w.Burst != 1 {
		t.Errorf("%g functions", w.Burst)
	}
}

// TestMoreNeedsMore: no figure of a plan falls as its load grows, and none is negative or not a number.
func TestMoreNeedsMore(t *testing.T) {
	l := load()
	l.Schedules = 100_000_000
	var before *plan.Plan
	for rate := 0.01; rate < 1_000_000; rate *= 1.7 {
		l.Rate, l.Peak = rate, rate*2
		p := made(t, l)
		figures := func(p *plan.Plan) map[string]float64 {
			return map[string]float64{"shards": float64(p.Ticks.Shards), "ticks": float64(p.Ticks.AtOnce), "functions": p.Workers.Burst, "stacks": float64(p.Verdict.Stacks), "writes": p.Table.Writes,
				"reads": p.Table.Reads, "stored": p.Table.StoredGB, "total": p.Bill.Total, "SQS": p.Queues.Requests, "partitions": float64(p.Table.Partitions),
				"apart": p.Bill.Apart - p.Bill.Total, "exceeded": float64(exceeded(p))}
		}
		for what, now := range figures(p) {
			if math.IsNaN(now) || math.IsInf(now, 0) || now < 0 {
				t.Fatalf("at %g runs/s, %s is %g", rate, what, now)
			}
			if before != nil && now < figures(before)[what]*0.999 {
				t.Errorf("at %g runs/s, %s has fallen to %g from %g", rate, what, now, figures(before)[what])
			}
		}
		before = p
	}
}

func exceeded(p *plan.Plan) (n int) {
	for _, limit := range p.Limits {
		if limit.Exceeds {
			n++
		}
	}
	return n
}

func TestSettingsAndQuotasAreEnough(t *testing.T) {
	l := load()
	l.Schedules, l.Rate, l.Peak, l.Priority = 100_000, 3000, 3000, 0.5
	p := made(t, l)
	got := map[string]float64{}
	for _, s := range p.Settings {
		got[s.Name] = s.Value
	}
	if got["NormalConcurrency"] < p.Workers.Burst*0.5 || got["HighConcurrency"] < p.Workers.Burst*0.25 || got["TickHelpers"] < float64(p.Ticks.Helpers) ||
		got["WarmWrites"] < p.Table.Writes {
		t.Errorf("settings %v for %+v and %+v", got, p.Workers, p.Ticks)
	}
	if len(p.Needs) != 0 && p.Needs[0].Needs <= p.Needs[0].Value {
		t.Errorf("a quota is to be raised from %g to %g", p.Needs[0].Value, p.Needs[0].Needs)
	}
	for _, need := range made(t, bends()).Needs {
		if need.Needs <= need.Value || need.Page == "" {
			t.Errorf("%+v", need)
		}
	}
	for _, q := range plan.Quotas() {
		if !strings.HasPrefix(q.Page, "https://docs.aws.amazon.com/") || q.Value <= 0 || q.Name == "" {
			t.Errorf("a quota without its page: %+v", q)
		}
	}
}

func TestBadLoadsNameTheirFlag(t *testing.T) {
	for flag, spoil := range map[string]func(*plan.Load){
		"--schedules":       func(l *plan.Load) { l.Schedules = 2 },
		"--runs-per-second": func(l *plan.Load) { l.Rate = 0 },
		"--peak":            func(l *plan.Load) { l.Peak = l.Rate / 2 },
		"--at-once":         func(l *plan.Load) { l.AtOnce = 3 },
		"--late":            func(l *plan.Load) { l.Late = 0 },
		"--duration":        func(l *plan.Load) { l.Duration = time.Hour },
		"--on-demand":       func(l *plan.Load) { l.OnDemand = math.NaN() },
		"--ahead":           func(l *plan.Load) { l.OnDemand, l.Ahead = 0.7, 0.4 },
		"--runs-in-request": func(l *plan.Load) { l.OnDemand, l.Together = 0.5, 0 },
		"--retry-rate":      func(l *plan.Load) { l.Retries = -1 },
		"--payload":         func(l *plan.Load) { l.Payload = 1 << 30 },
		"--result":          func(l *plan.Load) { l.Result = -1 },
		"--retention":       func(l *plan.Load) { l.Retention = time.Hour },
		"--tenants":         func(l *plan.Load) { l.Tenants = 0 },
		"--priority":        func(l *plan.Load) { l.Priority = 0.1 },
		"--hot-job":         func(l *plan.Load) { l.HotJob = 1e6 },
		"--shards":          func(l *plan.Load) { l.Shards = 12 },
		"--helpers":         func(l *plan.Load) { l.Helpers = 1000 },
	} {
		l := load()
		spoil(&l)
		if err := l.Check(plan.Typist(false)); err == nil || !strings.Contains("\n"+err.Error(), "\n"+flag+": ") || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestRefusalsDoNotContradictThemselves: what is wanted is taken, what is got is what was sent, and shares that add up to all are all.
func TestRefusalsDoNotContradictThemselves(t *testing.T) {
	l := load()
	l.Schedules, l.OnDemand, l.Ahead = 0, 0.9, 0.1
	made(t, l)
	l.OnDemand, l.Ahead = 1-0.7, 0.7
	made(t, l)
	for want, spoil := range map[string]func(*plan.Load){
		`--peak: got "3.3333", want runs a second in the busiest minute: at least the 3.333334 of the average`: func(l *plan.Load) { l.Peak = 3.3333 },
		`--schedules: got "1000", want at least 1001 for 1000.4 fires a second`:                                func(l *plan.Load) { l.Rate, l.Peak = 1000.4, 1000.4 },
		`--payload: got "262145", want 0 to 256KB`:                                                             func(l *plan.Load) { l.Payload = 262_145 },
	} {
		l := load()
		spoil(&l)
		if err := l.Check(plan.Typist(false)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRunsAreAskedForOneByOne where nobody says that a request asks for more.
func TestRunsAreAskedForOneByOne(t *testing.T) {
	l := load()
	l.Schedules, l.OnDemand, l.Rate, l.Peak = 0, 1, 50, 200
	near(t, "requests", made(t, l).API.Requests, 200, 1e-9)
	l.Together = 10
	near(t, "requests of ten runs", made(t, l).API.Requests, 20, 1e-9)
}

func TestNumbersAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]float64{"10M": 1e7, "100k": 1e5, "1.5k": 1500, "250": 250, "0.2": 0.2, "1G": 1e9, "10,000": 10_000, "2K": 2000} {
		if got, err := plan.ParseCount(text); err != nil || got != want {
			t.Errorf("%s is %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "k", "ten", "-5", "1e9", "10Mk", "NaN", "Inf", "0x10", "1.2.3", "5 k"} {
		if got, err := plan.ParseCount(text); err == nil || !strings.Contains(err.Error(), "10M") {
			t.Errorf("%q is %g, %v", text, got, err)
		}
	}
	for text, want := range map[string]float64{"20%": 0.2, "0.2": 0.2, "100%": 1, "0": 0, "2.5%": 0.025} {
		if got, err := plan.ParseShare(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %g, %v", text, got, err)
		}
	}
	for text, want := range map[string]int{"300": 300, "2KB": 2048, "2kb": 2048, "1.5MB": 3 << 19, "7B": 7} {
		if got, err := plan.ParseBytes(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"0.5", "1.9", "1.0005k", "ten"} {
		if got, err := plan.ParseWhole(text); err == nil {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	if got, err := plan.ParseWhole("1.5k"); got != 1500 || err != nil {
		t.Errorf("1.5k is %d, %v", got, err)
	}
	for v, want := range map[float64]string{0: "0", 0.2: "0.2", 41.67: "41.7", 999.7: "1k", 1500: "1.5k", 97_820: "97.8k", 1e7: "10M", 259.2e9: "259G"} {
		if got := plan.Count(v); got != want {
			t.Errorf("%g is written %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.00", 4.756: "4.76", 99.996: "100", 1_014_100.4: "1,014,100"} {
		if got := plan.Money(v); got != want {
			t.Errorf("%g is written %s, want %s", v, got, want)
		}
	}
}

// TestEveryGoodLoadHasAPlanInJSON: whatever Check lets pass, its plan has numbers alone. What is infinite or no number has no JSON.
func TestEveryGoodLoadHasAPlanInJSON(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	written := func(l plan.Load) bool {
		if l.Check(plan.Typist(false)) != nil {
			return false
		}
		if _, err := json.Marshal(plan.Make(l, cost.Listed(), cost.Counted(), adapter)); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		return true
	}
	lone := load()
	lone.Schedules, lone.Rate, lone.Peak, lone.HotJob = 10_000_000, 1000, 10_000, 0.000001
	if !written(lone) {
		t.Error("a job that is asked for seldom is refused")
	}
	for name, spoil := range map[string]func(*plan.Load){
		"--hot-job":         func(l *plan.Load) { l.HotJob = 1e-12 },
		"--runs-per-second": func(l *plan.Load) { l.Rate, l.Peak = 1e-300, 1e-300 },
	} {
		l := load()
		spoil(&l)
		if err := l.Check(plan.Typist(false)); err == nil || !strings.HasPrefix(err.Error(), name+": got \"1e-") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// As many orders of magnitude as there are, and the ends of each bound.
	pick := func(values ...float64) float64 {
		if n := chance.IntN(2 * len(values)); n < len(values) {
			return values[n]
		}
		return math.Pow(10, -13+26*chance.Float64())
	}
	good, drawn := 0, 20_000
	if testing.Short() {
		drawn = 2_000
	}
	for range drawn {
		l := load()
		l.Schedules = int(pick(0, 1, 1e9))
		l.Rate = pick(1.0/(30*86400), 1, 1e7)
		l.Peak = l.Rate * pick(1, 1, 10)
		l.AtOnce = min(1, pick(0, 1))
		l.OnDemand = min(1, pick(0, 1, 0.5))
		l.Ahead = min(1-l.OnDemand, pick(0, 1))
		l.Duration = time.Duration(pick(1, 100e6, 14*60e9))
		l.Late = time.Duration(pick(1e9, 30e9, 3600e9))
		l.Retries = min(100, pick(0, 1))
		l.Payload, l.Result = int(min(pick(0, 40), 256<<10)), int(min(pick(0, 5000), 256<<10))
		l.Tenants = int(max(1, min(1e6, pick(1, 10))))
		l.Priority = []float64{0.34, 0.5, 1}[chance.IntN(3)]
		l.HotJob = []float64{0, l.Peak, l.Peak * 1e-6, pick(1)}[chance.IntN(4)]
		if chance.IntN(4) == 0 {
			l.Gates = []plan.Gate{{Name: "stripe", Limit: 1 + chance.IntN(1000)}}
			l.Passes = []plan.Pass{{Gate: "stripe", Share: min(1, pick(1e-6, 1)), Units: 1}}
		}
		if written(l) {
			good++
		}
	}
	if good < drawn/40 {
		t.Errorf("only %d of %d loads are good", good, drawn)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"10M", "1.5k", "20%", "2KB", "1,0", "..", "%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		count, err := plan.ParseCount(text)
		if err == nil && !(count >= 0 && !math.IsInf(count, 0)) {
			t.Errorf("%q is %g", text, count)
		}
		if share, err := plan.ParseShare(text); err == nil && !(share >= 0) {
			t.Errorf("%q is %g", text, share)
		}
		if size, err := plan.ParseBytes(text); err == nil && size < 0 {
			t.Errorf("%q is %d", text, size)
		}
		if again, err := plan.ParseCount(plan.Count(count)); err != nil || count > 1e-3 && count < 9e11 && math.Abs(again/count-1) > 0.2 {
			t.Errorf("%q is %g, written %s, read %g: %v", text, count, plan.Count(count), again, err)
		}
	})
}

func Example() {
	tariff := cost.Listed()
	p := plan.Make(plan.Load{Schedules: 1000, Rate: 10, Peak: 10, Late: 30 * time.Second, Duration: 200 * time.Millisecond, Retention: 30 * 24 * time.Hour,
		Tenants: 1, Priority: 1, Helpers: -1}, tariff, cost.Counted(), plan.Adapter{Writes: 32})
	fmt.Printf("%.0f functions at once, %d shards, first of all: %s\n", p.Workers.Burst, p.Ticks.Shards, p.Limits[0].Name)
	// Output: 3 functions at once, 16 shards, first of all: worker functions of a priority, as deployed: 2
}
