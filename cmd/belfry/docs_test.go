package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	md "github.com/belfry-scheduler/belfry/tests/docs/markdown"
)

// needs are the reasons for which a block of commands on a page is not run: its fence says "```sh needs=WHAT".
var needs = map[string]string{
	"aws":     "it is about a stack in an account of the reader's own; make test-aws deploys one into an emulator",
	"clone":   "it is about a whole clone: make test runs the targets that it names",
	"docker":  "no container engine is at hand; make test-release runs what the image would hold",
	"domain":  "it calls a server by a name of the reader's own",
	"engines": "it wants DynamoDB, SQS and S3; make deep-emulators runs it, in tests/processes",
	"network": "it fetches what is not on this machine",
	"root":    "it changes the machine; make test-release installs the same files and judges the unit",
	"run":     "it is a script that a run starts; TestTheFenceScriptOfThePages starts it",
}

// TestCommandsOfPages runs each block of commands of each page, line by line, as the examples of the help are run: a block in a
// folder of its own, beside a server of the page's.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	installed, ran := install(t), 0
	for name, page := range pages(t) {
		blocks, err := md.Commands(page)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "docs/reference/cli.md" || len(blocks) == 0 {
			continue // these are the examples of the help, and run as such
		}
		ran++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			about := ""
			if name == "docs/configuration.md" || name == "docs/cli.md" {
				about = "belfry config set" // of the settings themselves, beside no server
			}
			s := newStage(t, about, installed)
			for _, block := range blocks {
				if block.Needs != "" {
					if needs[block.Needs] == "" {
						t.Errorf("line %d: needs=%s, which is none of the known reasons", block.Line, block.Needs)
					}
					t.Logf("line %d is not run: %s", block.Line, needs[block.Needs])
					continue
				}
				s.place(block.Text)
				for _, line := range exampleLines(block.Text) {
					if about == "" {
						s.command = strings.Join(strings.Fields(line + " - -")[:3], " ")
					}
					s.do(line)
				}
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d pages with commands were found", ran)
	}
}

// TestSessionsOfPages types what the pages show as a session, and compares what is shown: "…" stands for anything within a line,
// and alone on its line for any lines. A page is one folder, from its beginning to its end, and one server: that which the page
// starts, or one that is there. What only looks is asked again until it shows what the page says, as a reader would.
func TestSessionsOfPages(t *testing.T) {
	t.Parallel()
	ran := 0
	for name, page := range pages(t) {
		examples := md.Sessions(page)
		if len(examples) == 0 {
			continue
		}
		ran += len(examples)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outwait(t, page)
			s := newSession(t, examples)
			for _, example := range examples {
				if !s.play(example) {
					t.Fatal("what follows rests on it")
				}
			}
		})
	}
	if ran < 20 {
		t.Errorf("only %d examples were found", ran)
	}
}

// rareCron finds the cron expressions of a page that are for a zone or for UTC.
var rareCron = regexp.MustCompile(`cron: "([^"]+)"(?:, timezone: ([A-Za-z/_]+))?`)

// outwait waits while a job of the page is about to fire that fires rarely: no page tells of a run that comes by the time of day. What
// fires each hour or more often is no such job.
func outwait(t *testing.T, page string) {
	const soon = 5 * time.Minute // as long as a session takes on a busy machine
	for again := true; again; {
		again = false
		for _, found := range rareCron.FindAllStringSubmatch(page, -1) {
			plan, err := schedule.Spec{Cron: found[1], Timezone: found[2]}.Compile()
			if err != nil {
				continue // shows what is refused
			}
			now := time.Now()
			first, ok := plan.Next(now)
			if !ok || first.Sub(now) > soon {
				continue
			}
			if second, ok := plan.Next(first); ok && second.Sub(first) < 2*time.Hour {
				continue
			}
			again = true
			select {
			case <-time.After(first.Sub(now) + time.Second):
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			}
		}
	}
}

// session is a shell in an empty folder that knows belfry.
type session struct {
	*stage
	stop func() // ends the server that the page has started
}

// startsServer are the commands that a reader types into a terminal of their own.
var startsServer = regexp.MustCompile(`^belfry (?:dev|serve)\b`)

// onlyLooks are the commands that change nothing.
var onlyLooks = regexp.MustCompile(`^(?:belfry (?:run (?:list|get|logs)|job (?:list|get)|dead-letter list)|cat|ls)\b`)

func newSession(t *testing.T, examples []md.Example) *session {
	s := &session{&stage{t: t, root: t.TempDir()}, func() {}}
	for name, text := range exampleScripts {
		s.script(name, text)
	}
	s.script("belfry", fmt.Sprintf("BELFRY_TEST_PROCESS=1 exec %q \"$@\"", os.Args[0]))
	own := false
	for _, example := range examples {
		own = own || startsServer.MatchString(example.Command)
	}
	if !own {
		s.address = dev(t, "--data", t.TempDir(), "--allow-exec")
	}
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *session) play(example md.Example) bool {
	s.t.Helper()
	look, again := func() string { return s.typed(example.Command) }, onlyLooks.MatchString(example.Command)
	if startsServer.MatchString(example.Command) {
		s.stop()
		look, again = s.serve(example.Command), true
	}
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	got := look()
	for patience := time.Now().Add(examplePatience); again && !alike(got, example.Shows) && time.Now().Before(patience); got = look() {
		<-poll.C
	}
	if !alike(got, example.Shows) {
		s.t.Errorf("line %d: $ %s\ngives\n%s\nthe page says\n%s", example.Line, example.Command, got, example.Shows)
		return false
	}
	return true
}

// typed runs a command to its end; examples that fail show what they print.
func (s *session) typed(command string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), examplePatience)
	defer cancel()
	if s.address != "" {
		command = strings.ReplaceAll(command, "http://127.0.0.1:7340", s.address)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = s.root, s.env()
	out, _ := cmd.CombinedOutput()
	return s.same(string(out))
}

// same makes what is said on this machine what is said on a reader's.
func (s *session) same(text string) string {
	if s.address != "" {
		text = strings.ReplaceAll(text, s.address, "http://127.0.0.1:7340")
	}
	return strings.TrimRight(strings.ReplaceAll(text, s.root, "/home/ann"), "\n")
}

// serve starts a server, which stays until the next one starts or the page ends; what it gives tells what the server has said.
func (s *session) serve(command string) func() string {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "exec "+command)
	cmd.Dir, cmd.Env = s.root, s.env()
	var said, logged lines
	cmd.Stdout, cmd.Stderr = &said, &logged
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("$ %s\nended with %v\n%s", command, err, logged.String())
		}
		s.stop = func() {}
	}
	eventually(s.t, command+" says that it is ready", func() (bool, string) {
		s.address = regexp.MustCompile(`http://127\.0\.0\.1:[1-9]\d*`).FindString(said.String())
		return s.address != "", said.String() + logged.String()
	})
	return func() string { return s.same(said.String()) }
}

// alike compares line by line; an ellipsis stands for anything in its line, and alone on a line for any lines.
func alike(got, want string) bool {
	pattern := ""
	for _, line := range strings.Split(want, "\n") {
		if line == "…" {
			pattern += `(?:\n[^\n]*)*`
		} else {
			pattern += `\n` + strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`)
		}
	}
	return regexp.MustCompile("^" + pattern + "$").MatchString("\n" + got)
}

// pages are README.md and what is below docs, by their paths in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	all := map[string]string{"README.md": readText(t, filepath.Join(root, "README.md"))}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			all[path] = readText(t, filepath.Join(root, filepath.FromSlash(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The script of docs/targets.md that refuses stale attempts: a higher fence goes on, the same one too, a lower one does not.
func TestTheFenceScriptOfThePages(t *testing.T) {
	blocks, err := md.Commands(pages(t)["docs/targets.md"])
	if err != nil {
		t.Fatal(err)
	}
	folder, script := t.TempDir(), ""
	for _, block := range blocks {
		if block.Needs == "run" {
			script = strings.ReplaceAll(block.Text, "/var/lib/report", folder)
		}
	}
	for _, attempt := range []struct {
		fence string
		code  int
	}{{"9", 0}, {"10", 0}, {"10", 0}, {"9", 64}} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.Env = append(os.Environ(), "BELFRY_RUN=report~0mi4lf3k0", "BELFRY_FENCE="+attempt.fence)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != attempt.code {
			t.Errorf("fence %s: %v, want %d\n%s", attempt.fence, cmd.ProcessState, attempt.code, out)
		}
	}
}
