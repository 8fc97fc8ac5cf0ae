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

	"github.com/belfry-scheduler/belfry/lib/cost"
)

var (
	update = flag.Bool("update", false, "write the tables of docs/cost.md, instead of comparing them")
	show   = flag.Bool("show", false, "print the tables of docs/cost.md")
)

func thousands(v float64) string {
	text := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for cut := len(text) - 3; cut > 0; cut -= 3 {
		text = text[:cut] + "," + text[cut:]
	}
	return text
}

// used is how much of something a line of an idle month is for.
func used(line cost.IdleLine) string {
	if line.Unit == "GB" {
		return fmt.Sprintf("%.2f GB", line.Used)
	}
	return thousands(line.Used) + " " + line.Unit
}

func money(v float64) string { return fmt.Sprintf("%.2f", v) }

const million = 1e6

// months are examples: so many runs of a kind.
var months = []struct {
	what string
	kind cost.Kind
	runs float64
}{
	{"100 jobs, each hour", cost.Cron, 100 * 24 * 30},
	{"1,000 jobs, each five minutes", cost.Cron, 1000 * 12 * 24 * 30},
	{"a million reminders, asked for ahead", cost.Ahead, million},
	{"10,000 jobs, each minute", cost.Cron, 10_000 * cost.MinutesAMonth},
}

// aMonth is the whole bill of one, with runs in batches of a size: what an idle month costs, and the metrics that runs add.
func aMonth(a *cost.Tariff, got *cost.Units, kind cost.Kind, batch int, runs float64) (all float64) {
	for _, line := range a.IdleMonth(got.Idle, max(got.Metrics, got.Busy)) {
		all += line.List
	}
	return all + cost.Sum(a.Bill(cost.Amount{}.Plus(runs, got.Of(kind, batch))))
}

// tables are the blocks of docs/cost.md, by name.
func tables(a *cost.Tariff, got *cost.Units) map[string]string {
	var runs, dollars, idle, examples, prices, assumed strings.Builder
	fmt.Fprintf(&runs, "| run | batches of | write units | read units | requests to SQS | worker | API | shared by the minute: writes |\n|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&dollars, "| a million runs | batches of | DynamoDB | stored | SQS | Lambda | API Gateway | logs | S3 | all |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range got.Runs {
		used := r.Takes
		fmt.Fprintf(&runs, "| %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", r.Kind, r.Batch, used.Writes, used.Reads, used.SQS, used.Worker, used.API, used.Shared)
		bill := a.Bill(cost.Amount{}.Plus(million, used))
		fmt.Fprintf(&dollars, "| %s | %d ", r.Kind, r.Batch)
		for _, line := range bill {
			fmt.Fprintf(&dollars, "| %s ", money(line.Dollars))
		}
		fmt.Fprintf(&dollars, "| **%s** |\n", money(cost.Sum(bill)))
	}
	fmt.Fprintf(&idle, "| line | used | $ at list price | $ beyond what is free |\n|---|---|---|---|\n")
	var list, beyond float64
	for _, line := range a.IdleMonth(got.Idle, got.Metrics) {
		fmt.Fprintf(&idle, "| %s | %s | %s | %s |\n", line.What, used(line), money(line.List), money(line.Beyond))
		list, beyond = list+line.List, beyond+line.Beyond
	}
	fmt.Fprintf(&idle, "| **all** | | **%s** | **%s** |\n", money(list), money(beyond))
	fmt.Fprintf(&examples, "| a month of | runs | $, all in batches of 10 | $, all alone |\n|---|---|---|---|\n")
	for _, m := range months {
		fmt.Fprintf(&examples, "| %s | %s | %s | %s |\n", m.what, thousands(m.runs), money(aMonth(a, got, m.kind, full, m.runs)), money(aMonth(a, got, m.kind, lone, m.runs)))
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
	for _, name := range cost.Assumptions {
		value := strconv.FormatFloat(a.Assume(name), 'g', -1, 64)
		if a.Assume(name) >= 1000 {
			value = thousands(a.Assume(name))
		}
		fmt.Fprintf(&assumed, "| `%s` %s | %s |\n", name, value, a.Assumed[name].Why)
	}
	return map[string]string{"runs": runs.String(), "dollars": dollars.String(), "idle": idle.String(), "examples": examples.String(), "prices": prices.String(), "assumed": assumed.String()}
}

var blocks = []string{"runs", "dollars", "workflows", "idle", "examples", "prices", "assumed"}

// TestTheCostPageIsWhatIsCounted holds the tables of docs/cost.md to what is counted now.
func TestTheCostPageIsWhatIsCounted(t *testing.T) {
	made := tables(cost.Listed(), counted(t))
	made["workflows"] = workflowTable(t, cost.Listed(), counted(t))
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
			t.Errorf("%s, table %q, is not what is counted: %s; make generate writes it", path, name, why)
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

// TestTheUnitsOfPlansAreWhatIsCounted holds lib/cost/units.json, which plans are made of, to what is counted now.
func TestTheUnitsOfPlansAreWhatIsCounted(t *testing.T) {
	path := filepath.Join("..", "..", "lib", "cost", "units.json")
	stands, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	made, err := json.MarshalIndent(counted(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	why := ""
	for i, line := range strings.Split(string(made), "\n") {
		// More closely than a page of cents: a unit of a hundredth is a partition that is hot, times a hundred thousand.
		if at := strings.Split(string(stands), "\n"); i >= len(at) || !near(at[i], line) {
			why = fmt.Sprintf("line %d, want %q", i+1, line)
			break
		}
	}
	switch {
	case why == "":
	case *update:
		if err := os.WriteFile(path, append(made, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what is counted: %s; make generate writes it", path, why)
	}
}

// near tells whether two lines of JSON are the same but for chance in their number.
func near(stands, made string) bool {
	a, was, _ := strings.Cut(strings.TrimSuffix(stands, ","), ": ")
	b, is, _ := strings.Cut(strings.TrimSuffix(made, ","), ": ")
	x, errX := strconv.ParseFloat(was, 64)
	y, errY := strconv.ParseFloat(is, 64)
	if errX != nil || errY != nil {
		return stands == made
	}
	room := 0.03*math.Abs(y) + 1e-9
	if y >= 0.01 {
		room += 0.002 // few of them were counted: which partition each falls into is chance
	}
	return a == b && math.Abs(x-y) <= room
}

// TestDollarsByHand recomputes bills from their units, by another way: in whole cents of a million of each.
func TestDollarsByHand(t *testing.T) {
	a := cost.Listed()
	// 4 writes and 1.5 reads: 2.50 + 0.1875. Three requests with a fair queue's surcharge: 1.20 + 0.30. Two invocations: 0.40; one of
	// 140 ms and one of 30 ms with half a GB: 0.085 GB-seconds, 1.13. A request to the API: 3.50. 2 KB of logs and two times 700 bytes:
	// 3,448 bytes, 1.61. A GB-month for each million. An object
	// written and read, 5.00 + 0.40, and a GB-month for each million in S3, 0.023.
	takes := cost.Amount{Writes: 3, Shared: 1, Reads: 1.5, SQS: 3, Worker: 1, API: 1, Logs: 2048, Storage: 0.25e-6, Kept: 0.75e-6, Objects: 1, Fetched: 1, Lying: 1e-6}
	want := map[string]string{"DynamoDB": "2.69", "stored": "0.45", "SQS": "1.50", "Lambda": "1.53", "API Gateway": "3.50", "logs": "1.61", "S3": "5.42"}
	for _, line := range a.Bill(cost.Amount{}.Plus(million, takes)) {
		if got := money(line.Dollars); got != want[line.What] {
			t.Errorf("%s: $%s, want $%s", line.What, got, want[line.What])
		}
	}
	month := map[string][2]string{}
	for _, line := range a.IdleMonth(cost.Amount{Shared: 16, Reads: 100, Tick: 1, Logs: 1000}, 20) {
		month[used(line)] = [2]string{money(line.List), money(line.Beyond)}
	}
	for line, want := range map[string][2]string{
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
		if month[line] != want {
			t.Errorf("%s: $%v, want $%v", line, month[line], want)
		}
	}
}
