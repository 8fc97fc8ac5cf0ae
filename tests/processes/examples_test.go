//go:build emulators

package processes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/belfry-scheduler/belfry/tests/docs/markdown"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// shared are the commands that want the engines that processes share.
var shared = regexp.MustCompile(`\b(?:dynamodb|sqs)://`)

// lasting are the commands that go on until they are told to stop.
var lasting = regexp.MustCompile(`\bbelfry (?:serve|worker|tick)\b`)

// TestExamplesOnSharedEngines runs each command of the reference, which has the examples of all helps, and of some pages that names
// such engines, as it stands: with a table, queues and a bucket of the names that they have.
func TestExamplesOnSharedEngines(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "belfry", "gpu", "mail")
	bin := filepath.Join(h.folder, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "belfry")); err != nil {
		t.Fatal(err)
	}
	h.env = append(h.env, "PATH="+bin+":"+os.Getenv("PATH"), "TERM=dumb")
	for n := range h.env { // what the examples say, and nothing besides
		if strings.HasPrefix(h.env[n], "BELFRY_STORE=") || strings.HasPrefix(h.env[n], "BELFRY_QUEUE=") || strings.HasPrefix(h.env[n], "BELFRY_BLOB=") {
			h.env[n] = "NOTHING="
		}
	}
	// Before the others, since the doctor and a single tick want a store that was set up.
	h.example("belfry tick --once --queue gpu --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs")
	ran := 0
	for _, page := range []string{"reference/cli.md", "server.md", "store.md", "queue.md", "worker.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := markdown.Commands(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			for _, line := range strings.Split(strings.ReplaceAll(block.Text, "\\\n", ""), "\n") {
				if line = strings.TrimSpace(line); shared.MatchString(line) && strings.Contains(line, "belfry ") {
					ran++
					h.example(line)
				}
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d examples were found", ran)
	}
}

// example runs a line, and wants it to end well: by itself, or when it is told to.
func (h *house) example(line string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), process.Patience)
	defer cancel()
	line = strings.ReplaceAll(line, "region=eu-central-1", "region=us-east-1") // where the emulators are
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	if !strings.HasPrefix(line, "belfry ") {
		cmd = exec.CommandContext(ctx, "sh", "-c", line) // with variables before it
	}
	cmd.Env, cmd.Dir = h.env, h.folder
	out := &greeted{ready: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	if lasting.MatchString(line) && !strings.Contains(line, "--once") {
		select {
		case <-out.ready:
			err = cmd.Process.Signal(syscall.SIGTERM)
			if ended := <-done; err == nil {
				err = ended
			}
		case err = <-done:
			err = fmt.Errorf("it ended by itself: %w", err)
		}
	} else {
		err = <-done
	}
	if err != nil {
		h.t.Errorf("$ %s\n%v\n%s", line, err, out)
	}
}
