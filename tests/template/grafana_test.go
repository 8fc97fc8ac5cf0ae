package template

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
)

// A panel on a metric that is gone stays empty, which looks like health.
func TestGrafanaShowsMetricsThatExist(t *testing.T) {
	families := map[string]metrics.Family{}
	metrics.New().Each(time.Now(), func(f metrics.Family, _ []metrics.Sample) { families[f.Name] = f })
	text, err := os.ReadFile(filepath.Join(root, "infra", "grafana", "belfry.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	metric, by := regexp.MustCompile(`belfry_[a-z_]+`), regexp.MustCompile(`by \(([a-z, ]+)\)`)
	shown := map[string]bool{}
	for _, p := range dashboard.Panels {
		if p.Description == "" {
			t.Errorf("%s: wants a description", p.Title)
		}
		for _, target := range p.Targets {
			for _, name := range metric.FindAllString(target.Expr, -1) {
				f, found := families[name]
				if cut := strings.TrimSuffix(name, "_bucket"); !found && cut != name {
					f, found = families[cut]
					found = found && f.Kind == metrics.KindHistogram
				}
				if !found {
					t.Errorf("%s: there is no metric %s", p.Title, name)
					continue
				}
				shown[f.Name] = true
				for _, m := range by.FindAllStringSubmatch(target.Expr, -1) {
					for _, label := range strings.Split(m[1], ", ") {
						// Of Prometheus itself: a histogram's bounds, and which process was asked.
						own := label == "le" || label == "instance"
						if !own && !slices.ContainsFunc(f.Labels, func(l metrics.Label) bool { return l.Name == label }) {
							t.Errorf("%s: %s has no label %s", p.Title, name, label)
						}
					}
				}
			}
		}
	}
	for name := range families {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
