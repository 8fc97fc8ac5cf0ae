package cost

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write the tables of docs/cost.md, instead of comparing them")
	show   = flag.Bool("show", false, "print the tables of docs/cost.md")
)

// tariff is prices.json.
type tariff struct {
	Region string
	AsOf   string `json:"as_of"`
	Prices []price
	Stack  struct {
		MemoryMB                     map[string]float64 `json:"memory_mb"`
		Mappings, Alarms, Dashboards float64
	}
	Assumed map[string]struct {
		Value float64
		Why   string
	}
}

type price struct {
	Name, What, Page string
	Per, Dollars     float64
	Free             float64 // a month, for ever and not for the first year
}

func readTariff(t *testing.T) *tariff {
	t.Helper()
	text, err := os.ReadFile("prices.json")
	if err != nil {
		t.Fatal(err)
	}
	var all tariff
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return &all
}

func (a *tariff) price(name string) price {
	for _, p := range a.Prices {
		if p.Name == name {
			return p
		}
	}
	panic("no price of " + name)
}

// dollars is what an amount of something costs, whatever is free.
func (a *tariff) dollars(name string, of float64) float64 {
	p := a.price(name)
	return of / p.Per * p.Dollars
}

func (a *tariff) beyondFree(name string, of float64) float64 {
	return a.dollars(name, max(0, of-a.price(name).Free))
}

// seconds is what invocations take in GB-seconds.
func (a *tariff) seconds(function string, times, ms float64) float64 {
	return times * a.Stack.MemoryMB[function] / 1024 * math.Ceil(ms) / 1000
}

func (a *tariff) assumed(name string) float64 {
	v, ok := a.Assumed[name]
	if !ok {
		panic("nothing is assumed of " + name)
	}
	return v.Value
}

// item is a line of a bill.
type item struct {
	what    string
	dollars float64
}

// bill is what so much of a run costs, by service.
func (a *tariff) bill(used amount) []item {
	calls := used.Worker + used.API + used.Tick
	return []item{
		{"DynamoDB", a.dollars("write", used.Writes+used.Shared) + a.dollars("read", used.Reads)},
		{"stored", a.dollars("storage", used.Storage) + a.dollars("recovery", used.Storage)},
		{"SQS", a.dollars("sqs", used.SQS) + a.dollars("fair", used.SQS)},
		{"Lambda", a.dollars("call", calls) + a.dollars("gbs", a.seconds("worker", used.Worker, a.assumed("worker_ms")+a.assumed("target_ms"))+
			a.seconds("api", used.API, a.assumed("api_ms")))},
		{"API Gateway", a.dollars("api", used.API)},
		{"logs", a.dollars("logs", (used.Logs+calls*a.assumed("log_bytes"))/(1<<30))},
		{"S3", a.dollars("put", used.Objects) + a.dollars("get", used.Fetched)},
	}
}

func sum(bill []item) (all float64) {
	for _, i := range bill {
		all += i.dollars
	}
	return all
}

const million = 1e6

// minutesAMonth is how often a stack ticks in a month of 30 days.
const minutesAMonth = 30 * 24 * 60

// idleMonth is the bill of a month in which nothing runs: what is used, at the list price, and beyond what is free for ever.
type idleLine struct {
	what   string
	used   string
	list   float64
	beyond float64
}

func (a *tariff) idleMonth(minute amount, metrics int) []idleLine {
	line := func(what, unit, price string, of float64) idleLine {
		return idleLine{what, strings.TrimSpace(thousands(of) + " " + unit), a.dollars(price, of), a.beyondFree(price, of)}
	}
	month := amount{}.plus(minutesAMonth, minute)
	logs := (month.Logs + month.Tick*a.assumed("log_bytes")) / (1 << 30)
	return []idleLine{
		line("EventBridge Scheduler, a tick a minute", "invocations", "scheduler", minutesAMonth),
		line("Lambda, ticks", "requests", "call", month.Tick),
		line("Lambda, ticks", "GB-seconds", "gbs", a.seconds("tick", month.Tick, a.assumed("tick_ms"))),
		line("DynamoDB, ticks", "write units", "write", month.Writes+month.Shared),
		line("DynamoDB, ticks", "read units", "read", month.Reads),
		line(fmt.Sprintf("SQS, Lambda asking %.0f queues for messages", a.Stack.Mappings), "requests", "sqs", a.Stack.Mappings*a.assumed("polls")),
		{"CloudWatch Logs", fmt.Sprintf("%.2f GB", logs), a.dollars("logs", logs), a.beyondFree("logs", logs)},
		line("CloudWatch, metrics", "metrics", "metric", float64(metrics)),
		line("CloudWatch, alarms", "metrics looked at", "alarm", a.Stack.Alarms),
		line("CloudWatch, dashboard", "dashboard", "dashboard", a.Stack.Dashboards),
	}
}

func thousands(v float64) string {
	text := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for cut := len(text) - 3; cut > 0; cut -= 3 {
		text = text[:cut] + "," + text[cut:]
	}
	return text
}

func money(v float64) string { return fmt.Sprintf("%.2f", v) }

// months are examples: so many runs of a kind.
var months = []struct {
	what string
	kind string // of scenarios
	runs float64
}{
	{"100 jobs, each hour", "cron", 100 * 24 * 30},
	{"1,000 jobs, each five minutes", "cron", 1000 * 12 * 24 * 30},
	{"a million reminders, asked for ahead", "one-off, ahead", million},
	{"10,000 jobs, each minute", "cron", 10_000 * minutesAMonth},
}

// month is the whole bill of one, with runs in batches of a size: what an idle month costs, and the metrics that runs add.
func (a *tariff) month(got *results, kind string, batch int, runs float64) (all float64) {
	for _, line := range a.idleMonth(got.idle, max(len(got.metrics), len(got.busy))) {
		all += line.list
	}
	for i, s := range scenarios {
		if s.name == kind && s.batch == batch {
			all += sum(a.bill(amount{}.plus(runs, got.runs[i])))
		}
	}
	return all
}

// tables are the blocks of docs/cost.md, by name.
func tables(a *tariff, got *results) map[string]string {
	var runs, dollars, idle, examples, prices, assumed strings.Builder
	fmt.Fprintf(&runs, "| run | batches of | write units | read units | requests to SQS | worker | API | shared by the minute: writes |\n|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&dollars, "| a million runs | batches of | DynamoDB | stored | SQS | Lambda | API Gateway | logs | S3 | all |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for i, s := range scenarios {
		used := got.runs[i]
		fmt.Fprintf(&runs, "| %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", s.name, s.batch, used.Writes, used.Reads, used.SQS, used.Worker, used.API, used.Shared)
		bill := a.bill(amount{}.plus(million, used))
		fmt.Fprintf(&dollars, "| %s | %d ", s.name, s.batch)
		for _, line := range bill {
			fmt.Fprintf(&dollars, "| %s ", money(line.dollars))
		}
		fmt.Fprintf(&dollars, "| **%s** |\n", money(sum(bill)))
	}
	fmt.Fprintf(&idle, "| line | used | $ at list price | $ beyond what is free |\n|---|---|---|---|\n")
	var list, beyond float64
	for _, line := range a.idleMonth(got.idle, len(got.metrics)) {
		fmt.Fprintf(&idle, "| %s | %s | %s | %s |\n", line.what, line.used, money(line.list), money(line.beyond))
		list, beyond = list+line.list, beyond+line.beyond
	}
	fmt.Fprintf(&idle, "| **all** | | **%s** | **%s** |\n", money(list), money(beyond))
	fmt.Fprintf(&examples, "| a month of | runs | $, all in batches of 10 | $, all alone |\n|---|---|---|---|\n")
	for _, m := range months {
		fmt.Fprintf(&examples, "| %s | %s | %s | %s |\n", m.what, thousands(m.runs), money(a.month(got, m.kind, full, m.runs)), money(a.month(got, m.kind, lone, m.runs)))
	}
	fmt.Fprintf(&prices, "| price, %s, %s | $ | free each month | |\n|---|---|---|---|\n", a.Region, a.AsOf)
	for _, p := range a.Prices {
		free := ""
		if p.Free > 0 {
			free = thousands(p.Free)
		}
		fmt.Fprintf(&prices, "| %s | %s | %s | [page](%s) |\n", p.What, strconv.FormatFloat(p.Dollars, 'f', -1, 64), free, p.Page)
	}
	fmt.Fprintf(&assumed, "| assumed | |\n|---|---|\n")
	for _, name := range []string{"target_ms", "worker_ms", "api_ms", "tick_ms", "log_bytes", "polls"} {
		fmt.Fprintf(&assumed, "| `%s` %s | %s |\n", name, thousands(a.assumed(name)), a.Assumed[name].Why)
	}
	return map[string]string{"runs": runs.String(), "dollars": dollars.String(), "idle": idle.String(), "examples": examples.String(), "prices": prices.String(), "assumed": assumed.String()}
}

var blocks = []string{"runs", "dollars", "idle", "examples", "prices", "assumed"}

// TestTheCostPageIsWhatIsCounted holds the tables of docs/cost.md to what is counted now.
func TestTheCostPageIsWhatIsCounted(t *testing.T) {
	made := tables(readTariff(t), counted(t))
	if *show {
		for _, name := range blocks {
			fmt.Println(made[name])
		}
	}
	path := filepath.Join("..", "..", "docs", "cost.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, name := range blocks {
		begin := "<!-- generated: " + name + " -->\n"
		before, rest, found := strings.Cut(page, begin)
		stands, after, closed := strings.Cut(rest, "<!-- end -->")
		if !found || !closed {
			t.Fatalf("%s has no block %q", path, name)
		}
		why := differs(stands, made[name])
		switch {
		case why == "": // what chance does to a figure is no news
		case *update:
			page = before + begin + made[name] + "<!-- end -->" + after
		default:
			t.Errorf("%s, table %q, is not what is counted: %s; make cost writes it", path, name, why)
		}
	}
	if *update && page != string(text) {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var figure = regexp.MustCompile(`[0-9][0-9,]*(\.[0-9]+)?`)

// differs compares tables; figures may be off by what chance does to them: retries are spread by it.
func differs(page, counted string) string {
	a, b := strings.Split(page, "\n"), strings.Split(counted, "\n")
	if len(a) != len(b) {
		return fmt.Sprintf("it has %d lines, want %d", len(a), len(b))
	}
	value := func(text string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		return v
	}
	for i := range a {
		as, bs := figure.FindAllString(a[i], -1), figure.FindAllString(b[i], -1)
		same := figure.ReplaceAllString(a[i], "") == figure.ReplaceAllString(b[i], "") && len(as) == len(bs)
		for n := range as {
			same = same && math.Abs(value(as[n])-value(bs[n])) <= max(0.03, 0.03*value(bs[n]))
		}
		if !same {
			return fmt.Sprintf("it says %q, want %q", a[i], b[i])
		}
	}
	return ""
}

// TestDollarsByHand recomputes bills from their units, by another way: in whole cents of a million of each.
func TestDollarsByHand(t *testing.T) {
	a := readTariff(t)
	// 4 writes and 1.5 reads: 2.50 + 0.1875. Three requests with a fair queue's surcharge: 1.20 + 0.30. Two invocations: 0.40; one of
	// 140 ms and one of 30 ms with half a GB: 0.085 GB-seconds, 1.13. A request to the API: 3.50. 2 KB of logs and two times 700 bytes:
	// 3,448 bytes, 1.61. A GB-month for each million. An object
	// written and read, 5.00 + 0.40.
	used := amount{Writes: 3, Shared: 1, Reads: 1.5, SQS: 3, Worker: 1, API: 1, Logs: 2048, Storage: 1e-6, Objects: 1, Fetched: 1}
	want := map[string]string{"DynamoDB": "2.69", "stored": "0.45", "SQS": "1.50", "Lambda": "1.53", "API Gateway": "3.50", "logs": "1.61", "S3": "5.40"}
	for _, line := range a.bill(amount{}.plus(million, used)) {
		if got := money(line.dollars); got != want[line.what] {
			t.Errorf("%s: $%s, want $%s", line.what, got, want[line.what])
		}
	}
	month := map[string][2]string{}
	for _, line := range a.idleMonth(amount{Shared: 16, Reads: 100, Tick: 1, Logs: 1000}, 20) {
		month[line.used] = [2]string{money(line.list), money(line.beyond)}
	}
	for used, want := range map[string][2]string{
		"43,200 invocations":   {"0.04", "0.00"},
		"43,200 requests":      {"0.01", "0.00"},
		"10,800 GB-seconds":    {"0.14", "0.00"},
		"691,200 write units":  {"0.43", "0.43"},
		"4,320,000 read units": {"0.54", "0.54"},
		"3,240,000 requests":   {"1.30", "0.90"},
		"0.07 GB":              {"0.03", "0.00"},
		"20 metrics":           {"6.00", "3.00"},
		"21 metrics looked at": {"2.10", "1.10"},
		"1 dashboard":          {"3.00", "0.00"},
	} {
		if month[used] != want {
			t.Errorf("%s: $%v, want $%v", used, month[used], want)
		}
	}
}
