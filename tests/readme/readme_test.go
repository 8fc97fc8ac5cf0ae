// Package readme does what the README tells a newcomer to do, by its very text.
package readme

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/docs/markdown"
)

// patience is there for a hang: how soon the first run has succeeded the test tells in its log, and no test judges.
const patience = 5 * time.Minute

func TestThePastedLineRuns(t *testing.T) {
	page := read(t, "README.md")
	first, err := markdown.Marked(page, "first")
	if err != nil {
		t.Fatal(err)
	}
	look, err := markdown.Marked(page, "look")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.TrimSpace(first), "\n"); n > 0 {
		t.Errorf("the block to paste has %d lines, want one", n+1)
	}
	clone := t.TempDir() // where a reader stands: bin/belfry is there, made as the Makefile makes it
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(clone, "bin", "belfry"), "./cmd/belfry")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	address := start(t, clone)

	shell := func(ctx context.Context, line string) (string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-ec", line)
		cmd.Dir = clone
		cmd.Env = append(os.Environ(), "BELFRY_ADDRESS="+address)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	if out, err := shell(ctx, first); err != nil {
		t.Fatalf("%s: %v\n%s", first, err, out)
	}
	succeeded := regexp.MustCompile(`(?m)^hello~\S+\s+succeeded\s`)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		out, err := shell(ctx, look)
		if err == nil && succeeded.MatchString(out) {
			t.Logf("the first run has succeeded %s after its line was pasted", time.Since(began).Round(time.Millisecond))
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("no run has succeeded after %s: %v\n%s", patience, err, out)
		}
	}
}

// start runs "belfry dev" as make run does, but on a free port, and gives its address.
func start(t *testing.T, clone string) string {
	t.Helper()
	run := regexp.MustCompile(`(?m)^\tbin/belfry (dev .*)$`).FindStringSubmatch(read(t, "Makefile"))
	if run == nil {
		t.Fatal("the Makefile does not run bin/belfry dev")
	}
	flags := strings.Fields(strings.ReplaceAll(run[1], "$(RUN_FLAGS)", "")) // empty where nobody sets it
	dev := exec.CommandContext(t.Context(), filepath.Join(clone, "bin", "belfry"), append(flags, "--listen", "127.0.0.1:0", "--output", "json")...)
	dev.Dir = clone
	dev.Cancel = func() error { return dev.Process.Signal(syscall.SIGTERM) }
	dev.WaitDelay = patience
	var said strings.Builder
	dev.Stderr = &said
	out, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = io.Copy(io.Discard, out) // until the process, which the test's context has ended, is gone
		_ = dev.Wait()
		if t.Failed() {
			t.Logf("belfry dev said:\n%s", said.String())
		}
	})
	var ready struct{ Address string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&ready); err != nil || ready.Address == "" {
		t.Fatalf("belfry dev says no address: %v", err)
	}
	return ready.Address
}

// TestOneTargetFindsCachedWhatAnotherHasTested: a result is found again only under the flags it was got with, so a target with flags of its own tests anew what
// make test has just tested. The race detector has results of its own, and so have other modules.
func TestOneTargetFindsCachedWhatAnotherHasTested(t *testing.T) {
	makefile := read(t, "Makefile")
	if strings.Count(makefile, "\t$(TESTED) ") < 3 {
		t.Error("targets of make test do not go by TESTED")
	}
	for line := range strings.Lines(makefile) {
		if strings.Contains(line, "$(GO) test $(SHORT)") && !strings.HasPrefix(line, "TESTED = ") && !strings.HasPrefix(line, "\tcd ") {
			t.Errorf("%q has flags of its own: it goes by $(TESTED)", strings.TrimSpace(line))
		}
	}
}

func TestMakeTargetsOfThePagesExist(t *testing.T) {
	makefile := read(t, "Makefile")
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(string(text), -1) {
			named++
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				t.Errorf("%s names make %s, which is no target", filepath.Base(page), m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a target of make")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
