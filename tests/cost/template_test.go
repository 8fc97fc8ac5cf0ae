package cost

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/cost"
)

// TestTheStackIsTheTemplate holds what the bills take for granted of a stack to the template.
func TestTheStackIsTheTemplate(t *testing.T) {
	stack := cost.Listed().Stack
	root := filepath.Join("..", "..")
	nested, err := filepath.Glob(filepath.Join(root, "infra", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	top := read(filepath.Join(root, "template.yaml"))
	all := top
	for _, path := range nested {
		all += read(path)
	}
	times := func(in, pattern string) float64 {
		return float64(len(regexp.MustCompile(`(?m)^\s+`+pattern+`\s*$`).FindAllString(in, -1)))
	}
	for what, c := range map[string][2]float64{
		"event source mappings of queues, without named pools": {times(top, `Type: SQS`), stack.Mappings},
		// Paid for is each metric that an alarm looks at; one that calculates looks at several.
		"metrics of alarms": {float64(strings.Count(all, "MetricName: ")), stack.Alarms},
		"dashboards":        {times(all, `Type: AWS::CloudWatch::Dashboard`), stack.Dashboards},
	} {
		if c[0] != c[1] {
			t.Errorf("the template has %.0f %s, prices.json %.0f", c[0], what, c[1])
		}
	}
	memory := func(function, pattern string) {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(top)
		if found == nil {
			t.Errorf("the template does not say the memory of %s by %s", function, pattern)
			return
		}
		if mb, _ := strconv.ParseFloat(found[1], 64); mb != stack.MemoryMB[function] {
			t.Errorf("the template gives %s %.0f MB, prices.json %.0f", function, mb, stack.MemoryMB[function])
		}
	}
	memory("api", `(?s)\nGlobals:\n  Function:.*?MemorySize: (\d+)`)
	memory("tick", `(?s)\nGlobals:\n  Function:.*?MemorySize: (\d+)`)
	memory("worker", `(?s)\n  WorkerMemory:\n.*?Default: (\d+)`)
	parameters := map[string]float64{"TickHelpers": stack.Helpers, "LatenessAlarm": stack.LateAlarm, "ApiRate": stack.APIRate, "Shards": stack.Shards,
		"HighConcurrency": stack.Workers["high"], "NormalConcurrency": stack.Workers["normal"], "LowConcurrency": stack.Workers["low"]}
	for name, got := range parameters {
		found := regexp.MustCompile(`(?s)\n  ` + name + `:\n.*?Default: "?(\d+)"?\n`).FindStringSubmatch(top)
		if found == nil || found[1] != strconv.FormatFloat(got, 'f', -1, 64) {
			t.Errorf("prices.json has %g for the parameter %s, the template %q", got, name, found)
		}
	}
	if n := times(top, `BatchSize: `+strconv.FormatFloat(stack.Batch, 'f', -1, 64)); n != 4 { // three of the worker, one for dead letters
		t.Errorf("the template has %.0f queues with the batches of prices.json, want 4", n)
	}
	choices := make([]string, len(stack.Choices))
	for i, c := range stack.Choices {
		choices[i] = strconv.Quote(strconv.FormatFloat(c, 'f', -1, 64))
	}
	if n := strings.Count(top, "AllowedValues: ["+strings.Join(choices, ", ")+"]"); n != 4 {
		t.Errorf("the template has %d parameters with the choices of prices.json, want 4", n)
	}
	found := regexp.MustCompile(`(?s)\n  TickFunction:\n.*?\n      Timeout: (\d+)`).FindStringSubmatch(top)
	if found == nil || found[1] != strconv.FormatFloat(stack.TickTimeout, 'f', -1, 64) {
		t.Errorf("prices.json has %g s for a tick, the template %q", stack.TickTimeout, found)
	}
}
