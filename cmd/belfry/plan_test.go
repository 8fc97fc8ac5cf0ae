package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestPlansFromTheCommandLine(t *testing.T) {
	got := belfry(t, "", "plan", "--schedules", "10M", "--runs-per-second", "100k", "--duration", "200ms", "-o", "json")
	made := decode[plan.Plan](t, got.out)
	if got.code != 0 || made.Load.Schedules != 10_000_000 || made.Load.Peak != 100_000 || made.Ticks.Shards != 64 || made.Workers.Even != 2400 || len(made.Limits) < 12 {
		t.Errorf("code %d: %s", got.code, got.out)
	}
	text := belfry(t, "", "plan", "--schedules", "10M", "--runs-per-second", "100k", "--duration", "200ms").out
	for _, want := range []string{"WHAT BENDS, IN THIS ORDER", "Not by one stack", "not measured on AWS", made.AsOf, made.Region} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if columnsOf(strings.TrimRight(line, "\n")) > 80 && !strings.HasPrefix(line, "  sam ") && !strings.HasPrefix(line, "  belfry ") || strings.Contains(line, "\x1b") {
			t.Errorf("wider than 80 columns, or coloured: %q", line)
		}
	}
	// What it says to type can be typed, and all runs of the busiest minute start in time, while functions come.
	got = belfry(t, "", "plan", "--schedules", "20k", "--runs-per-second", "50", "--peak", "1.6k", "--duration", "200ms", "--late", "40s", "-o", "json")
	made = decode[plan.Plan](t, got.out)
	if !made.Verdict.One || made.Verdict.Stacks != 1 || made.Workers.ScalingUp == 0 {
		t.Errorf("code %d: %s", got.code, got.out)
	}
	text = belfry(t, "", "plan", "--schedules", "20k", "--runs-per-second", "50", "--peak", "1.6k", "--duration", "200ms", "--late", "40s").out
	if !strings.Contains(text, "One stack carries it") {
		t.Errorf("the plan does not say that it is carried:\n%s", text)
	}
	_, command, found := strings.Cut(text, "\n  belfry ")
	if !found {
		t.Fatalf("no simulation is named in\n%s", text)
	}
	result := decode[wire.QueuePlan](t, belfry(t, "", append(strings.Fields(command), "-o", "json")...).out)
	if most := result.Wait.Max; most > made.Load.Late.Std().Seconds() || most < 0.9*made.Load.Late.Std().Seconds() {
		t.Errorf("with the functions of the plan, the last run of a burst starts after %.1f s; it is made for %s", most, made.Load.Late)
	}
}

// TestPricesOfOnesOwn: the file that is printed can be given back, changed, and what is wrong with one is named.
func TestPricesOfOnesOwn(t *testing.T) {
	printed := belfry(t, "", "plan", "prices").out
	if printed != string(cost.PriceFile()) {
		t.Fatal("the file that is printed is not the one in use")
	}
	file := filepath.Join(t.TempDir(), "prices.json")
	write := func(old, changed string) {
		t.Helper()
		text := strings.Replace(printed, old, changed, 1)
		if old != "" && text == printed {
			t.Fatalf("the file has no %s", old)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := []string{"plan", "--schedules", "1k", "--runs-per-second", "10", "--prices", file}
	total := func(args ...string) float64 {
		t.Helper()
		got := belfry(t, "", append(append(load, "-o", "json"), args...)...)
		if got.code != 0 {
			t.Fatalf("%d: %s", got.code, got.errors)
		}
		return decode[plan.Plan](t, got.out).Bill.Total
	}
	write("", "")
	usual := total("--region", "us-east-1")
	write(`"region": "us-east-1"`, `"region": "eu-central-1"`)
	if got := belfry(t, "", append(load, "--region", "us-east-1")...); got.code != exitUsage || !strings.Contains(got.errors, "--region us-east-1: the prices are those of eu-central-1") {
		t.Errorf("another region: %d %s", got.code, got.errors)
	}
	write(`"dollars": 0.625`, `"dollars": 6.25`)
	if dear := total(); dear < usual+100 {
		t.Errorf("writes cost ten times as much, and all of it %.2f instead of %.2f", dear, usual)
	}
	for _, c := range []struct{ old, changed, says string }{
		{`"per": 1e6, "dollars": 0.625`, `"per": 0, "dollars": 0.625`, "prices[0].per: "},
		{`"name": "read", `, `"name": "red", `, "prices[1].name: "},
		{`"as_of"`, `"as_off"`, "as_off"},
		{`"tick_timeout_s": 120`, `"tick_timeout_s": -1`, "stack.tick_timeout_s: "},
		{`"value": 100,`, `"value": 0,`, "assumed.target_ms.value: "},
	} {
		write(c.old, c.changed)
		if got := belfry(t, "", load...); got.code != exitFailed || !strings.Contains(got.errors, c.says) || !strings.Contains(got.errors, "--prices") || !strings.Contains(got.errors, "want ") {
			t.Errorf("%s: %d %s", c.changed, got.code, got.errors)
		}
	}
}

// TestAPlanSaysNoWhereItsFiguresDo: a parameter at its end is no, with the reason.
func TestAPlanSaysNoWhereItsFiguresDo(t *testing.T) {
	text := strings.Join(strings.Fields(belfry(t, "", strings.Fields("plan --schedules 3.4M --runs-per-second 25k --tenants 4 --duration 200ms")...).out), " ")
	for _, want := range []string{"NormalConcurrency=1000 is the most that there is, and not enough: 1.2k are needed", "Not by one stack", "worker functions of one priority: 1k", "TOO LATE"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "One stack carries it") {
		t.Error("it says both")
	}
	for args, want := range map[string]string{"--helpers 1": "WHICH IS LITTLE", "--helpers 2": "in time, 42% spare", "--helpers 0": "TOO LONG"} {
		text := belfry(t, "", strings.Fields("plan --schedules 100k --runs-per-second 900 --at-once 0% "+args)...).out
		if !strings.Contains(text, want) || strings.Contains(text, "One stack") != strings.Contains(want, "42%") {
			t.Errorf("%s: no %q, or another verdict, in\n%s", args, want, text)
		}
	}
}

func TestMistakesInPlansAreNamed(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"plan", "--runs-per-second: want "},
		{"plan --runs-per-day 0 --schedules 5", `--runs-per-day: got "0"`},
		{"plan --runs-per-day 5 --runs-per-second 5 --schedules 5", "--runs-per-day: want only one"},
		{"plan --runs-per-day 86.4M --schedules 10k --peak 1", "of the average, by --runs-per-day"},
		{"plan --runs-per-second ten", `"--runs-per-second"`},
		{"plan --runs-per-second 100k --schedules 10MB", "want a number such as 10M"},
		{"plan --runs-per-second 5", "--schedules: "},
		{"plan --runs-per-second 5 --schedules 10k --peak 1", "--peak: "},
		{"plan --runs-per-second 5 --schedules 10k --at-once 200%", "--at-once: "},
		{"plan --runs-per-second 5 --schedules 10k --retention 1h", "--retention: "},
		{"plan --runs-per-second 5 --schedules 10k --region mars", "--prices FILE"},
		{"plan --runs-per-second 5 --schedules 10k --duration fast", "want a duration"},
		{"plan retry --attempts 101", "--attempts: "},
		{"plan retry --initial 2h --max 1h", "--max: "},
		{"plan retry --duration 25h", "--duration: "},
		{"plan retry --clients 20k", "--clients: "},
		{"plan retry --attempts 0", "--attempts: got 0,"},
		{"plan retry --initial 0s", "--initial: got 0s,"},
		{"plan retry --factor 0", "--factor: got 0,"},
		{"plan retry --max 0ms", "--max: got 0ms,"},
		{"plan retry --clients 0", "--clients: got 0,"},
		{"plan retry --seed 0", "--seed: got 0,"},
		{"plan queue --arrivals 5", "--workers: want "},
		{"plan queue --workers 5 --arrivals 0", "--arrivals: "},
		{"plan queue --workers 5 --arrivals 5 --distribution normal", "--distribution: "},
		{"plan queue --workers 5 --arrivals 5 --distribution lognormal", "--p99: "},
		{"plan queue --workers 5 --arrivals 5 --high 80% --low 30%", "--high: "},
		{"plan queue --workers 5 --arrivals 1M --for 1h", "--for: "},
		{"plan queue --workers 5 --arrivals 5 --for 10s --warm 20s", "--warm: "},
		{"plan queue --workers 5 --arrivals 5 --from 6 --grow 60", "--from: "},
		{"plan queue --workers 5 --arrivals 5 --grow 60", "--grow: "},
		{"plan queue --workers 5 --arrivals 5 --from 4", `--grow: got "0", want more than 0 where from is fewer than workers`},
		{"plan queue --workers 5 --arrivals 5 --at-once 120%", "--at-once: "},
		{"plan queue --workers 5 --arrivals 5 --duration 0s", "--duration: got 0s,"},
		{"plan queue --workers 5 --arrivals 5 --batch 0", "--batch: got 0,"},
		{"plan queue --workers 5 --arrivals 5 --for 0", "--for: got 0,"},
		{"plan queue --workers 5 --arrivals 5 --seed 0", "--seed: got 0,"},
		{"plan order --arrivals 5", "--workers: want "},
		{"plan order --workers 2", "--arrivals: want "},
		{"plan order", "--workers: want a number above 0, such as 2 or 20\n--arrivals: want "},
		{"plan order --workers 101 --arrivals 5", "--workers: "},
		{"plan order --workers 2 --arrivals 5 --messages 2k", "--messages: "},
		{"plan order --workers 2 --arrivals 5 --longest-delay 16m", "--longest-delay: "},
		{"plan order --workers 2 --arrivals 5 --longest-delay 0s", "--longest-delay: got 0s,"},
		{"plan order --workers 2 --arrivals 5 --delayed 120%", "--delayed: "},
		{"plan order --workers 2 --arrivals 5 -n -1", "-n -1: "},
		{"plan once --guarantee exactly_once", "--guarantee: got \"exactly_once\", want one of at_least_once, at_most_once"},
		{"plan once --fault fire", "--fault: got \"fire\", want one of none, message_twice"},
		{"plan once --guard dog", "--guard: got \"dog\", want one of none, key"},
		{"plan queue --workers 1.5 --arrivals 5", `"--workers" flag: want a whole number`},
		{"plan queue --workers 2 --arrivals 5 --batch 2.5", `"--batch" flag: want a whole number`},
		{"plan --runs-per-second 5 --schedules 10k --tenants 1.9", `"--tenants" flag: want a whole number`},
		{"plan --runs-per-second 0.1 --schedules 0.5", `"--schedules" flag: want a whole number`},
	} {
		if got := belfry(t, "", strings.Fields(c.args)...); got.code != exitUsage || !strings.Contains(got.errors, c.says) {
			t.Errorf("belfry %s: %d %s, want it to say %q", c.args, got.code, got.errors, c.says)
		}
	}
	if got := belfry(t, "", "plan", "queue", "--workers", "5", "--arrivals", "5", "--svg", filepath.Join(t.TempDir(), "no", "such", "folder.svg")); got.code != exitFailed || !strings.Contains(got.errors, "--svg") {
		t.Errorf("a folder that is not there: %d %s", got.code, got.errors)
	}
}

// TestWhatPlansSayOfFewAndMany: one of a thing is not several, one mistake is one line, and what a queue with too few workers cannot tell is said.
func TestWhatPlansSayOfFewAndMany(t *testing.T) {
	if text := belfry(t, "", strings.Fields("plan --schedules 10 --runs-per-second 0.001 --duration 10ms --at-once 0%")...).out; strings.Contains(text, " 1 messages") || !strings.Contains(text, " 1 message of") {
		t.Errorf("several, or none:\n%s", text)
	}
	if got := belfry(t, "", strings.Fields("plan --schedules 0 --runs-per-second 5")...); strings.Count(got.errors, "--schedules: ") != 1 {
		t.Errorf("one mistake is told as\n%s", got.errors)
	}
	for args, want := range map[string]string{
		"--workers 1 --arrivals 5":                                      "NO WORKER TO SPARE",
		"--workers 1 --arrivals 5.02":                                   "TOO FEW WORKERS: 100.4%",
		"--workers 1 --arrivals 0.1 --at-once 100% --for 10s --warm 5s": "No run started in the counted time.",
		"--workers 50 --arrivals 200":                                   ", in the long run: 80.0% busy",
		"--workers 1 --arrivals 20 --for 10s":                           "Waits are those of runs that have started",
		"--workers 20 --arrivals 5 --for 10s ":                          " 2.5s ",
	} {
		if text := belfry(t, "", strings.Fields("plan queue "+args)...).out; !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", args, want, text)
		}
	}
	if text := belfry(t, "", "plan", "--help").out; !strings.Contains(text, "belfry plan [flags]") || !strings.Contains(text, "belfry plan COMMAND") {
		t.Errorf("the usage has not both forms:\n%s", text)
	}
}

func TestARunThatGoesWrongInWords(t *testing.T) {
	for command, wants := range map[string][]string{
		"plan once --fault dies_after":                          {"The target was called twice and made 2 payments.", "worker_died", "dies_after     2 of 2  1 of 2  2 of 2  1 of 2", "1 of 2: the target was called twice and made 1 payment."},
		"plan once --guarantee at_most_once --fault dies_after": {"The run is unknown.", "dies_before    0 of 0 ?  0 of 0 ?  0 of 0 ?  0 of 0 ?", "A question mark"},
	} {
		out := belfry(t, "", strings.Fields(command)...).out
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", command, want, out)
			}
		}
	}
}

func TestAnOrderInWords(t *testing.T) {
	all := belfry(t, "", strings.Fields("plan order --workers 1 --arrivals 100 --high 50% --low 30% --delayed 50% --messages 20 -n 0")...).out
	for _, want := range []string{"1 worker, 20 messages at 100/s, 200ms each on average", "WAITS, FROM READY TO TAKEN", "delayed until ", " ended "} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "more: -n 0") {
		t.Errorf("all of it leaves something out:\n%s", all)
	}
	if part := belfry(t, "", strings.Fields("plan order --workers 1 --arrivals 1234.5 --messages 5")...).out; !strings.Contains(part, " 1234.5/s") {
		t.Errorf("the rate is not told as it is:\n%s", part)
	}
	if queue := belfry(t, "", strings.Fields("plan queue --workers 1 --arrivals 1234.5 --duration 1ms --for 10s")...).out; !strings.HasPrefix(queue, "1 worker with 1 run at once, 1234.5 runs/s") {
		t.Errorf("a queue tells another rate, or workers:\n%s", queue)
	}
	if part := belfry(t, "", strings.Fields("plan order --workers 1 --arrivals 100 --messages 20 -n 5")...).out; !strings.Contains(part, "55 events more: -n 0 shows all.") {
		t.Errorf("a part is\n%s", part)
	}
}

func TestARetryPolicyInWords(t *testing.T) {
	for args, c := range map[string]struct{ says, not []string }{
		"--attempts 3 --initial 2s --duration 1s --clients 50": {
			[]string{"It tries 3 times and gives up after 9s to 15s: half of the clients by ", "Each attempt takes 1s.", "WHEN ATTEMPTS BEGIN", "50 clients fail together.", " with jitter, 50 without."},
			[]string{"no jitter", "runs"}},
		"--attempts 1":                            {[]string{"It tries once and gives up at once."}, []string{"fail together", "0s to", "Each attempt"}},
		"--attempts 1 --duration 5s":              {[]string{"It tries once and gives up after 5s."}, []string{"fail together", "jitter"}},
		"--attempts 4 --initial 2h --clients 30":  {[]string{"It tries 4 times and gives up after 6h.", "This policy has no jitter. Retries in the worst tenth of a second: 30."}, []string{"with jitter", "Each attempt"}},
		"--attempts 2 --clients 1":                {[]string{"It tries 2 times"}, []string{"1 clients"}},
		"--attempts 20 --initial 3d1h --max 3d1h": {[]string{"gives up after 57d19h."}, nil},
	} {
		got := belfry(t, "", append([]string{"plan", "retry"}, strings.Fields(args)...)...)
		text := strings.Join(strings.Fields(got.out), " ")
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s%s", args, want, got.out, got.errors)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q in\n%s", args, not, got.out)
			}
		}
	}
}

// TestThePictureOfThePlanPage holds docs/plan.svg to what the command writes.
func TestThePictureOfThePlanPage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "plan.svg")
	file := filepath.Join(t.TempDir(), "plan.svg")
	args := strings.Fields("plan queue --workers 60 --arrivals 200 --at-once 60% --distribution lognormal --p99 1s --for 5m -o json --svg")
	got := belfry(t, "", append(args, file)...)
	if got.code != 0 || !json.Valid([]byte(got.out)) {
		t.Fatalf("%d %s", got.code, got.errors)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stands, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stands, made) {
		t.Error("docs/plan.svg is not what the command writes; make generate writes it")
	}
}

// A plan names the gate that is the bottleneck, and one that no flag gives is refused by its name.
func TestAPlanWithGates(t *testing.T) {
	args := []string{"plan", "--schedules", "20k", "--runs-per-second", "100", "--at-once", "0%", "--duration", "2s", "--gate", "stripe=40", "--gate", "gpu=8", "--passes", "stripe=8%", "--passes", "stripe=2%x2", "--passes", "gpu=1%x4"}
	got := belfry(t, "", args...)
	for _, want := range []string{"GATES\n", "  gpu     8      1       8.16     102%    NEVER: its line grows\n", "  stripe  40     10      24.5     61%     at once\n", "The bottleneck is gpu: ", "The gate gpu is too small for it, whatever the stack is.\n"} {
		if got.code != exitOK || !strings.Contains(got.out, want) {
			t.Errorf("code %d, %s: no %q in\n%s", got.code, got.errors, want, got.out)
		}
	}
	if got := belfry(t, "", append(args, "--passes", "strpe=1%")...); got.code != exitUsage || !strings.Contains(got.errors, `--passes: got "strpe", want a gate that --gate gives`) {
		t.Errorf("code %d, %s", got.code, got.errors)
	}
}
