package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestTheConsoleIsWhatItsSourceMakes(t *testing.T) {
	files, err := bundle(root)
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(root, "lib/console/dist")
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, entry := range entries {
		there = append(there, entry.Name())
	}
	if !slices.Equal(there, names(files)) {
		t.Fatalf("lib/console/dist has %q, its source makes %q: make console", there, names(files))
	}
	for name, made := range files {
		if committed, err := os.ReadFile(filepath.Join(dist, name)); err != nil || !bytes.Equal(committed, made) {
			t.Errorf("lib/console/dist/%s is not what its source makes: make console (%v)", name, err)
		}
	}
}

// What reaches the document as anything else than text, and what is not of this server.
var refused = map[string]*regexp.Regexp{
	"a way for text to become markup":    regexp.MustCompile(`dangerouslySetInnerHTML|\b(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write|srcdoc|createContextualFragment`),
	"a way for text to become a program": regexp.MustCompile(`\beval\(|new Function\b|setTimeout\(\s*["'` + "`" + `]|javascript:`),
	"a host":                             regexp.MustCompile(`["'` + "`" + `(](?:https?:)?//[a-z0-9.-]+\.[a-z]`),
}

func TestTheSourceHasNoWayForTextToBecomeMarkupAndNamesNoHost(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(filepath.Join(root, "lib/console/web/src"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for what, pattern := range refused {
			for n, line := range strings.Split(string(text), "\n") {
				if pattern.MatchString(strings.ReplaceAll(line, "http://www.w3.org/2000/svg", "")) {
					t.Errorf("%s:%d: %s: %s", path, n+1, what, strings.TrimSpace(line))
				}
			}
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatal(seen, err)
	}
}

func TestTheRuleFindsWhatIsPlanted(t *testing.T) {
	for what, line := range map[string]string{
		"a way for text to become markup":    `<p dangerouslySetInnerHTML={{__html: text}} />`,
		"a way for text to become a program": `new Function(text)`,
		"a host":                             `fetch("https://example.org/x")`,
	} {
		if !refused[what].MatchString(line) {
			t.Errorf("%s is not found in %s", what, line)
		}
	}
}
