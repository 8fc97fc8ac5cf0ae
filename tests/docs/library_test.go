package docs

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is a block of a page whose fence reads "```go program=NAME".
func program(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```go program=" + name + "\n(.*?)^```$").FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no block ```go program=%s", page, name)
	}
	return string(found[1])
}

// The programs of the pages run as they stand there, in an empty folder, until they have said what they promise; then they are
// asked to end.
func TestProgramsOfThePagesRun(t *testing.T) {
	for name, row := range map[string]struct{ page, block, says string }{
		"README":  {"README.md", "library", "report"},
		"library": {"docs/library.md", "first", "mail to all@example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			source, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "program")
			if err := os.WriteFile(source, []byte(program(t, row.page, row.block)), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, binary)
			run.Dir = folder
			out, err := run.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(out)
			heard := false
			for !heard && said.Scan() {
				heard = strings.Contains(said.Text(), row.says)
			}
			if !heard {
				t.Fatalf("it ended without saying %q: %v", row.says, run.Wait())
			}
			if err := run.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(out)
			if err := run.Wait(); err != nil {
				t.Errorf("it ended with %v\n%s", err, rest)
			}
		})
	}
}

func TestTheTestOfThePageHolds(t *testing.T) {
	source := filepath.Join(t.TempDir(), "page_test.go")
	if err := os.WriteFile(source, []byte(program(t, "docs/library.md", "test")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", source).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
