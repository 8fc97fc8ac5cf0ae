//go:build emulators

package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// total is what the functions of a stack have counted, by metric and labels.
type total map[string]float64

// metricsAreWritten reads the lines that CloudWatch makes metrics of, out of the logs of the functions.
func metricsAreWritten(t *testing.T, f fixture) {
	want := map[string]float64{
		"belfry_runs_total outcome=succeeded":    30,
		"belfry_runs_total outcome=dead":         1,
		"belfry_runs_total outcome=failed":       1,
		"belfry_runs_total outcome=unknown":      1,
		"belfry_retries_total":                   3,
		"belfry_dead_letters_total kind=message": 1,
		"belfry_lateness_seconds":                30,
		"belfry_tick_seconds":                    1,
	}
	var got total
	deadline := time.Now().Add(patience)
	for {
		got = counted(t, f.stack)
		missing := map[string]float64{}
		for name, least := range want {
			if got[name] < least {
				missing[name] = got[name]
			}
		}
		if len(missing) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("counted too little: %s\nof: %s", text(missing), text(got))
		}
		<-time.After(2 * time.Second) // nothing signals that a line was written
	}
	runs := 0.0
	units := map[string]float64{}
	for name, n := range got {
		if strings.HasPrefix(name, "belfry_runs_total ") {
			runs += n
		}
		if labels, ok := strings.CutPrefix(name, "belfry_store_units_total."); ok {
			units[labels[strings.LastIndexByte(labels, '.')+1:]] += n
		}
	}
	if units["read"] == 0 || units["write"] == 0 {
		t.Fatalf("no units of the store were counted: %s", text(got))
	}
	t.Logf("%.0f runs, %.1f write units and %.1f read units a run with what the ticks used", runs, units["write"]/runs, units["read"]/runs)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		t.Logf("%-60s %.0f", name, got[name])
	}
}

// counted adds up the lines of all functions of a stack. A line that is not as CloudWatch wants it fails the test.
func counted(t *testing.T, s stack) total {
	t.Helper()
	sum := total{}
	for _, function := range []string{"api", "tick", "worker", "deadletter"} {
		for _, line := range s.logs(t, function) {
			if !strings.Contains(line, `"_aws"`) {
				continue
			}
			sum.add(t, s.name, line)
		}
	}
	return sum
}

// add adds one line.
func (sum total) add(t *testing.T, stack, line string) {
	t.Helper()
	var head struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
	}
	members := object{}
	if json.Unmarshal([]byte(line), &head) != nil || json.Unmarshal([]byte(line), &members) != nil {
		t.Fatalf("a line that is no JSON object: %s", line)
	}
	if since := time.Since(time.UnixMilli(head.AWS.Timestamp)); since < -time.Minute || since > time.Hour {
		t.Fatalf("a line of another time: %s", line)
	}
	if members.text("Stack") != stack {
		t.Fatalf("a line of another stack: %s", line)
	}
	for _, directive := range head.AWS.CloudWatchMetrics {
		if directive.Namespace != "Belfry" || len(directive.Dimensions) != 1 || len(directive.Metrics) == 0 || len(directive.Metrics) > 100 {
			t.Fatalf("not as CloudWatch wants it: %s", line)
		}
		labels := ""
		for _, dimension := range directive.Dimensions[0] {
			if members.text(dimension) == "" {
				t.Fatalf("the dimension %s has no value: %s", dimension, line)
			}
			if dimension != "Stack" {
				labels += " " + dimension + "=" + members.text(dimension)
			}
		}
		for _, metric := range directive.Metrics {
			n, ok := value(members[metric.Name], metric.Unit)
			if !ok {
				t.Fatalf("the metric %s has no value: %s", metric.Name, line)
			}
			sum[metric.Name+labels] += n
		}
	}
	// What is written and not made a metric is named by its labels.
	for _, family := range []string{"belfry_store_units_total", "belfry_tick_items_total"} {
		sum.nested(family, members[family])
	}
}

func (sum total) nested(name string, v any) {
	switch v := v.(type) {
	case float64:
		sum[name] += v
	case map[string]any:
		for label, inner := range v {
			sum.nested(name+"."+label, inner)
		}
	}
}

// value is what a metric counts: itself, or how many times there are.
func value(v any, unit string) (float64, bool) {
	switch v := v.(type) {
	case float64:
		if unit == "Seconds" {
			return 1, true
		}
		return v, true
	case []any:
		return float64(len(v)), true
	case map[string]any:
		n := 0.0
		counts, ok := v["Counts"].([]any)
		for _, c := range counts {
			f, _ := c.(float64)
			n += f
		}
		return n, ok
	}
	return 0, false
}
