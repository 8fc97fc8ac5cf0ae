package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
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
	"github.com/belfry-scheduler/belfry/lib/timer"
)

var adapter = plan.Adapter{Writes: 32}

// load is a modest one: a thousand jobs each five minutes, as in docs/cost.md.
func load() plan.Load {
	tariff := cost.Listed()
	return plan.Load{Schedules: 1000, Rate: 1000.0 / 300, Peak: 1000.0 / 300, AtOnce: 1, Late: 30 * time.Second,
		Duration: time.Duration(tariff.Assume(cost.TargetMS)) * time.Millisecond, Payload: 40, Retention: cost.CountedRetention * 24 * time.Hour,
		Tenants: 1, Priority: 1, Helpers: -1}
}

func made(t *testing.T, l plan.Load) *plan.Plan {
	t.Helper()
	if err := l.Check(); err != nil {
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

	l := load()
	l.Schedules, l.OnDemand, l.Rate, l.Peak = 0, 1, 10, 10
	near(t, "a million immediate runs", made(t, l).Bill.Million, dollars(t, row(t, "immediate", "10")[7]), 0.03)
	l.Payload, l.Result = 2000, 2000
	near(t, "a million immediate runs with 2 KB in and out", made(t, l).Bill.Million, dollars(t, row(t, "immediate, 2 KB in and out", "10")[7]), 0.03)
	l = load()
	l.Retries = 1
	near(t, "a million runs that are tried again once", made(t, l).Bill.Million, dollars(t, row(t, "retry, once", "10")[7]), 0.02)
}

// TestAPlanByHand recomputes the great one from the constants, by another way.
func TestAPlanByHand(t *testing.T) {
	p := made(t, bends())
	for what, c := range map[string][2]float64{
		"runs in a minute":        {p.Ticks.Minute, 6_000_000},
		"pages of a bucket":       {p.Ticks.Pages, 367}, // 6M / 64 / 256 = 366.2
		"requests of a page":      {float64(p.Ticks.Round), 1 + 3 + 8 + 8 + 3*(1+3+3)},
		"sends of a page":         {float64(p.Ticks.Sends), 26},
		"pace of a bucket":        {p.Ticks.BucketPace, 256 / 0.465}, // 41 times 5 ms and 26 times 10 ms
		"pace of a CPU":           {p.Ticks.CPUPace, 512.0 / 1769 * 1000 / 0.55},
		"functions, even":         {p.Workers.Even, 2400},  // 100,000/10 a second for 0.24 s
		"functions, burst":        {p.Workers.Burst, 4800}, // 6M in 30 s
		"to scale up":             {p.Workers.ScalingUp, 959},
		"in flight":               {p.Workers.InFlight, 48_000},
		"bucket, writes":          {key(t, p, "due#").Units, 100_000.0 / 64},
		"bucket, reached at":      {key(t, p, "due#").Reached, 64_000},
		"definitions, reads":      {key(t, p, "job#").Units, 100_000 * (1 + 4*0.5) / 64},
		"definitions, reached":    {key(t, p, "job#").Reached, 64_000},
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
		for factor, want := range map[float64]bool{0.98: false, 1.02: true} {
			l := at
			l.Shards, l.Helpers = timer.Buckets, timer.Buckets-1
			l.Rate = limit.Reached * factor
			l.Peak = l.Rate
			if l.Peak*60/timer.Buckets <= 256 && strings.Contains(limit.Name, "units") {
				continue // units a run differ where a minute is not crowded
			}
			for _, same := range made(t, l).Limits {
				// Ticks take part in functions at once, by as many as a load needs: that is not in proportion.
				if same.Name == limit.Name && same.Exceeds != want && !strings.Contains(same.Name, "functions at once") && !strings.Contains(same.Name, "new table") &&
					!strings.Contains(same.Name, "of a table") {
					t.Errorf("%s, reached at %.0f: at %.0f it is exceeded: %v", limit.Name, limit.Reached, l.Peak, same.Exceeds)
				}
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
	want := []string{`^hot key ran#TENANT#0`, `^a tick for each of 64 shards`, `^hot key due#MINUTE#63|^hot key job#TENANT#63`, `^hot key due#MINUTE#63|^hot key job#TENANT#63`}
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

// TestMoreNeedsMore: no figure of a plan falls as its load grows, and none is negative or not a number.
func TestMoreNeedsMore(t *testing.T) {
	l := load()
	l.Schedules = 100_000_000
	var before *plan.Plan
	for rate := 0.01; rate < 1_000_000; rate *= 1.7 {
		l.Rate, l.Peak = rate, rate*2
		p := made(t, l)
		figures := func(p *plan.Plan) map[string]float64 {
			return map[string]float64{"shards": float64(p.Ticks.Shards), "ticks": float64(p.Ticks.AtOnce), "functions": p.Workers.Burst, "writes": p.Table.Writes,
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

func TestALoadIsReadAsItIsWritten(t *testing.T) {
	text, err := json.Marshal(bends())
	if err != nil {
		t.Fatal(err)
	}
	var again plan.Load
	if err := json.Unmarshal(text, &again); err != nil || again != bends() {
		t.Errorf("%s is read as %+v, %v", text, again, err)
	}
	if !strings.Contains(string(text), `"duration":"200ms"`) || !strings.Contains(string(text), `"schedules":10000000`) {
		t.Errorf("durations are not text in %s", text)
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
		if err := l.Check(); err == nil || !strings.Contains("\n"+err.Error(), "\n"+flag+": ") || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
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
	fmt.Printf("%.0f function at once, %d shards, first of all: %s\n", p.Workers.Burst, p.Ticks.Shards, p.Limits[0].Name)
	// Output: 1 function at once, 16 shards, first of all: worker functions of a priority, as deployed: 2
}
