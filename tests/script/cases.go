package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cases runs each testdata/*.txt as a subtest of its name. A file has three parts between lines of four dashes: a line of settings as
// NAME=VALUE, a text, and what it becomes, which become gives.
func Cases(t *testing.T, become func(t *testing.T, settings [][2]string, text string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(string(text), "----\n")
			if len(parts) != 3 {
				t.Fatalf("%d parts, want 3", len(parts))
			}
			var settings [][2]string
			for _, part := range strings.Fields(parts[0]) {
				key, value, _ := strings.Cut(part, "=")
				settings = append(settings, [2]string{key, value})
			}
			got := become(t, settings, parts[1])
			if *rewrite {
				if err := os.WriteFile(name, []byte(strings.Join([]string{parts[0], parts[1], got}, "----\n")), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != parts[2] {
				t.Errorf("got\n%s\nwant\n%s", got, parts[2])
			}
		})
	}
}
