package template

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
)

// aws are the metrics of AWS itself that are looked at, and their dimension.
var aws = map[string]string{
	"AWS/ApiGateway 4XXError": "ApiName", "AWS/ApiGateway 5XXError": "ApiName", "AWS/ApiGateway Count": "ApiName",
	"AWS/ApiGateway Latency":                  "ApiName",
	"AWS/DynamoDB ConsumedReadCapacityUnits":  "TableName",
	"AWS/DynamoDB ConsumedWriteCapacityUnits": "TableName",
	"AWS/Lambda ConcurrentExecutions":         "FunctionName", "AWS/Lambda Duration": "FunctionName", "AWS/Lambda Errors": "FunctionName",
	"AWS/Lambda Throttles":                       "FunctionName",
	"AWS/SQS ApproximateNumberOfMessagesVisible": "QueueName",
}

// looked is a metric as an alarm or a dashboard names it. Values are those of dimensions.
type looked struct {
	where, namespace, name string
	dimensions             []string // name, value, name, value
}

// exists tells what is wrong with it: a metric that is not there, or a dimension that it does not have, gives no data, and an alarm on
// it never rings.
func (l looked) exists() error {
	if l.namespace != "Belfry" {
		if dimension := aws[l.namespace+" "+l.name]; dimension == "" || len(l.dimensions) != 2 || l.dimensions[0] != dimension {
			return fmt.Errorf("%s %s by %v is not among those of AWS that this test knows", l.namespace, l.name, l.dimensions)
		}
		return nil
	}
	var found *metrics.Family
	metrics.New().Each(time.Now(), func(f metrics.Family, _ []metrics.Sample) {
		if f.Name == l.name {
			found = &f
		}
	})
	switch {
	case found == nil:
		return fmt.Errorf("there is no metric %s", l.name)
	case found.Detail:
		return fmt.Errorf("%s stands in the log only, and CloudWatch does not make a metric of it", l.name)
	case len(l.dimensions) != 2+2*len(found.Labels) || l.dimensions[0] != "Stack":
		return fmt.Errorf("%s has the dimension Stack and its %d labels, got %v", l.name, len(found.Labels), l.dimensions)
	}
	for i, label := range found.Labels {
		if name, value := l.dimensions[2+2*i], l.dimensions[3+2*i]; name != label.Name || !slices.Contains(label.Values, value) {
			return fmt.Errorf("%s: %s=%s, want %s of %v", l.name, name, value, label.Name, label.Values)
		}
	}
	return nil
}

// alarmed are the metrics that an alarm looks at.
func alarmed(where string, metric map[string]any) (all []looked) {
	if name, ok := metric["MetricName"].(string); ok {
		l := looked{where: where, namespace: metric["Namespace"].(string), name: name}
		for _, d := range metric["Dimensions"].([]any) {
			l.dimensions = append(l.dimensions, d.(map[string]any)["Name"].(string), strings.Join(texts(d.(map[string]any)["Value"]), ""))
		}
		return append(all, l)
	}
	for _, value := range metric {
		for _, inner := range listOf(value) {
			if m, ok := inner.(map[string]any); ok {
				all = append(all, alarmed(where, m)...)
			}
		}
	}
	return all
}

func TestAlarmsLookAtMetricsThatExist(t *testing.T) {
	each(t, "AWS::CloudWatch::Alarm", func(where string, _ part, _ string, r *resource) {
		all := alarmed(where, r.Properties)
		if len(all) == 0 {
			t.Errorf("%s: looks at nothing", where)
		}
		for _, l := range all {
			if err := l.exists(); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	})
}

// Who is woken at night wants to know why, and what to do.
func TestAlarmsHaveAReasonAndASectionOfTheRunbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "runbook-aws.md"))
	if err != nil {
		t.Fatal(err)
	}
	pointer := regexp.MustCompile(`docs/runbook-aws\.md#([a-z-]+) says what to do\.$`)
	told := map[string]bool{}
	each(t, "AWS::CloudWatch::Alarm", func(where string, _ part, _ string, r *resource) {
		if r.reason == "" {
			t.Errorf("%s: no comment above it says why it rings there", where)
		}
		m := pointer.FindStringSubmatch(fmt.Sprint(r.Properties["AlarmDescription"]))
		if m == nil {
			t.Fatalf("%s: its description does not end with its section of the runbook", where)
		}
		if !strings.Contains(string(page), "\n## "+m[1]+"\n") {
			t.Errorf("%s: docs/runbook-aws.md has no section %s", where, m[1])
		}
		_, section, _ := strings.Cut(string(page), "\n## "+m[1]+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		name := strings.TrimPrefix(strings.Join(texts(r.Properties["AlarmName"]), ""), "${Stack}-")
		if name != m[1] && !strings.Contains(section, "`"+name+"`") {
			t.Errorf("%s: the section %s of the runbook does not name the alarm %s", where, m[1], name)
		}
		told[m[1]] = true
		for _, property := range []string{"AlarmActions", "OKActions"} {
			if r.Properties[property] == nil {
				t.Errorf("%s: tells nobody (%s)", where, property)
			}
		}
	})
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(page), -1) {
		if !told[m[1]] {
			t.Errorf("docs/runbook-aws.md has a section %s, and no alarm leads there", m[1])
		}
	}
}

func TestTheDashboardShowsMetricsThatExist(t *testing.T) {
	body := strings.Join(texts(named(t, "dashboard.yaml").Resources["Dashboard"].Properties["DashboardBody"]), "")
	for name, value := range map[string]string{"AWS::Region": "eu-central-1", "Lateness": "30", "Stack": "belfry", "Table": "belfry-table"} {
		body = strings.ReplaceAll(body, "${"+name+"}", value)
	}
	if left := regexp.MustCompile(`\$\{[^}]*\}`).FindString(body); left != "" {
		t.Errorf("nothing is put in place of %s", left)
	}
	var dashboard struct {
		Widgets []struct {
			Type                string
			X, Y, Width, Height int
			Properties          struct {
				Title   string
				Metrics [][]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &dashboard); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, w := range dashboard.Widgets {
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				if other, there := taken[[2]int{x, y}]; there || x >= 24 {
					t.Fatalf("%q lies on %q, or beyond the edge", w.Properties.Title, other)
				}
				taken[[2]int{x, y}] = w.Properties.Title
			}
		}
		for _, metric := range w.Properties.Metrics {
			l := looked{where: w.Properties.Title, namespace: metric[0].(string), name: metric[1].(string)}
			for _, d := range metric[2:] {
				if text, ok := d.(string); ok {
					l.dimensions = append(l.dimensions, text)
				}
			}
			if err := l.exists(); err != nil {
				t.Errorf("%s: %v", w.Properties.Title, err)
			}
		}
	}
}
