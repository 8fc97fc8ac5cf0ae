package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// The recipes of docs/simulate.md hold, each says what it expects, and the page names them all.
func TestScenariosOfThePages(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "simulate.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "examples", "scenarios", "*"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(string(page), "(../examples/scenarios/"+name+")") {
				t.Error("docs/simulate.md does not name it")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("want a first line that says what it shows")
			}
			s, err := simulate.Parse(name, text)
			if err != nil {
				t.Fatal(err)
			}
			if s.Expect == nil {
				t.Fatal("it expects nothing")
			}
			report, err := simulate.Play(t.Context(), s, simulate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			differences, _, err := s.Expect.Compare(report)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences {
				t.Errorf("line %d: %s", d.Line, d)
			}
		})
	}
}

// Parts of scenarios that the page shows are read as it says.
func TestPartsOfScenariosOfThePages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulate.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(parts) == 0 {
		t.Fatal("the page shows none")
	}
	for _, part := range parts {
		whole := "start: 2026-01-05T00:00:00Z\njobs: {import: {target: {handler: {name: import}}}}\n" + part[1]
		if _, err := simulate.Parse("part.yaml", []byte(whole)); err != nil {
			t.Errorf("%v in\n%s", err, part[1])
		}
	}
}
