// Package script plays texts against code: a line of a script is a command, the indented lines below it are what it did.
package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts under testdata give as what is expected; read the difference")

// Play runs each testdata/*.txt as a parallel subtest of its name. begin makes what plays one script: it is called with the words of
// each command in turn, and gives the lines that the command shows. Empty lines, and those that begin with #, are for readers. Each plays in a bubble of its own, whose clock stands still
// while anybody has something to do: however slow the machine is, nothing comes in between that goes by time.
func Play(t *testing.T, begin func(t *testing.T) func(words []string) []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			synctest.Test(t, func(t *testing.T) { perform(string(want), &got, begin(t)) })
			if *rewrite {
				if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			expected, actual := strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")
			for i, line := range actual {
				if i >= len(expected) || expected[i] != line {
					t.Fatalf("line %d:\ngot  %s\nwant %s", i+1, line, strings.Join(expected[min(i, len(expected)):min(i+1, len(expected))], ""))
				}
			}
			if len(expected) != len(actual) {
				t.Fatalf("the script ends at line %d, want %d", len(actual), len(expected))
			}
		})
	}
}

// perform plays one script, and writes it down with what it shows.
func perform(script string, got *strings.Builder, play func(words []string) []string) {
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		got.WriteString(line)
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			for _, out := range play(words) {
				fmt.Fprintf(got, "\t%s\n", out)
			}
		}
	}
}
