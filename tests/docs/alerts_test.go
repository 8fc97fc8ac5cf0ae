package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/tests/docs/markdown"
)

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

var (
	alertFile = filepath.Join("..", "..", "infra", "prometheus", "alerts.yaml")
	// series is a metric with its matchers; a name within matchers or a call is none.
	series  = regexp.MustCompile(`\b(belfry_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`^([a-z_]+)(=~|=)"([^"]*)"$`)
)

func alerts(t *testing.T) []alert {
	t.Helper()
	file, err := os.Open(alertFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("%s: %v", alertFile, err)
	}
	if len(all.Groups) != 1 || len(all.Groups[0].Rules) == 0 {
		t.Fatalf("%s: want one group of rules", alertFile)
	}
	return all.Groups[0].Rules
}

// An alert on a metric that is not there, or on a value that its label never has, never rings.
func TestAlertsAreAboutMetricsThatExist(t *testing.T) {
	families := map[string]metrics.Family{}
	metrics.New().Each(time.Now(), func(f metrics.Family, _ []metrics.Sample) { families[f.Name] = f })
	for _, a := range alerts(t) {
		used := series.FindAllStringSubmatch(a.Expr, -1)
		if len(used) == 0 && !strings.Contains(a.Expr, `up{job="belfry"}`) {
			t.Errorf("%s names no metric: %s", a.Alert, a.Expr)
		}
		for _, m := range used {
			if err := wellUsed(families, m[1], m[2]); err != nil {
				t.Errorf("%s: %s: %v", a.Alert, m[0], err)
			}
		}
		if open, closed := strings.Count(a.Expr, "("), strings.Count(a.Expr, ")"); open != closed {
			t.Errorf("%s: %d brackets open and %d close", a.Alert, open, closed)
		}
		if _, err := time.ParseDuration(a.For); a.For != "" && err != nil {
			t.Errorf("%s: for: %v", a.Alert, err)
		}
		if !slices.Contains([]string{"page", "ticket"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q, want page or ticket", a.Alert, a.Labels["severity"])
		}
	}
}

func wellUsed(families map[string]metrics.Family, name, matchers string) error {
	suffix := ""
	if cut := regexp.MustCompile(`_(bucket|count|sum)$`).FindString(name); cut != "" && families[name].Name == "" {
		name, suffix = strings.TrimSuffix(name, cut), cut
	}
	f, ok := families[name]
	switch {
	case !ok:
		return fmt.Errorf("no such metric")
	case (suffix != "") != (f.Kind == metrics.KindHistogram):
		return fmt.Errorf("it is a %s", f.Kind)
	case matchers == "":
		return nil
	}
	for _, text := range strings.Split(matchers, ",") {
		m := matcher.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil {
			return fmt.Errorf("%s is no matcher", text)
		}
		at := slices.IndexFunc(f.Labels, func(l metrics.Label) bool { return l.Name == m[1] })
		if at < 0 {
			return fmt.Errorf("it has no label %s", m[1])
		}
		for _, value := range strings.Split(m[3], "|") {
			if !slices.Contains(f.Labels[at].Values, value) {
				return fmt.Errorf("%s is never %q", m[1], value)
			}
		}
	}
	return nil
}

// Who is woken finds what to do: each alert has a section in the runbook and a row in the list, and none is about an alert that
// is gone.
func TestEachAlertHasItsSectionOfTheRunbook(t *testing.T) {
	folder := filepath.Join("..", "..", "docs")
	runbook, err := os.ReadFile(filepath.Join(folder, "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	monitoring, err := os.ReadFile(filepath.Join(folder, "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	var named, rows []string
	for _, a := range alerts(t) {
		anchor := strings.ToLower(a.Alert)
		named = append(named, a.Alert)
		if !markdown.HasAnchor(string(runbook), anchor) || !strings.HasSuffix(a.Annotations["runbook"], "/docs/runbook.md#"+anchor) {
			t.Errorf("%s has no section in the runbook, or names another: %s", a.Alert, a.Annotations["runbook"])
		}
		rows = append(rows, fmt.Sprintf("| [%s](runbook.md#%s) | %s | %s |\n", a.Alert, anchor, a.Annotations["summary"], a.Labels["severity"]))
	}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(runbook), -1) {
		if !slices.Contains(named, m[1]) {
			t.Errorf("the runbook has a section %s, and there is no such alert", m[1])
		}
	}
	if want := strings.Join(rows, ""); !strings.Contains(string(monitoring), want) {
		t.Errorf("docs/monitoring.md does not list the alerts as they are:\n%s", want)
	}
}
