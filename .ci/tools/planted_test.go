package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A rule that finds nothing looks the same as a rule that is broken: a glob that matches no file, a pattern with a slip, an
// exclusion that is too wide. So the linter runs over a module that breaks each rule, and must find exactly that.
func TestRulesFindWhatIsPlanted(t *testing.T) {
	planted, err := filepath.Abs("../planted")
	if err != nil {
		t.Fatal(err)
	}
	want := wanted(t, planted)
	if len(want) < 20 {
		t.Fatalf("only %d planted violations in %s", len(want), planted)
	}

	// A cache of its own, so that nothing found earlier under other rules is repeated.
	report := filepath.Join(t.TempDir(), "report.json")
	tool, err := filepath.Abs("bin/golangci-lint")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "run", "--allow-parallel-runners", "--config", "../../.golangci.yml", "--output.json.path", report, "./...")
	cmd.Dir = planted
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOLANGCI_LINT_CACHE="+t.TempDir())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("%v, want exit status 1, issues found:\n%s", err, out)
	}

	var found struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename string
				Line     int
			}
		}
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &found); err != nil {
		t.Fatal(err)
	}
	for _, issue := range found.Issues {
		at := fmt.Sprintf("%s:%d", filepath.ToSlash(issue.Pos.Filename), issue.Pos.Line)
		i := slices.IndexFunc(want, func(w expectation) bool {
			return w.at == at && w.linter == issue.FromLinter && strings.Contains(issue.Text, w.words)
		})
		if i < 0 {
			if !slices.ContainsFunc(want, func(w expectation) bool { return w.at == at && w.linter == issue.FromLinter }) {
				t.Errorf("%s: not planted, but %s says: %s", at, issue.FromLinter, issue.Text)
			}
			continue
		}
		want[i].met = true
	}
	for _, w := range want {
		if !w.met {
			t.Errorf("%s: %s does not say %q", w.at, w.linter, w.words)
		}
	}
}

type expectation struct {
	at, linter, words string
	met               bool
}

var (
	wantComment = regexp.MustCompile(`// want (.*)$`)
	wantOne     = regexp.MustCompile(`(\w+) "([^"]+)"`)
)

// wanted reads the want comments of a module.
func wanted(t *testing.T, dir string) []expectation {
	t.Helper()
	var all []expectation
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			comment := wantComment.FindStringSubmatch(line)
			if comment == nil {
				continue
			}
			for _, one := range wantOne.FindAllStringSubmatch(comment[1], -1) {
				all = append(all, expectation{at: fmt.Sprintf("%s:%d", filepath.ToSlash(name), i+1), linter: one[1], words: one[2]})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
