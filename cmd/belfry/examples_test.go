package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Every example of every command's help is run as it stands, by a shell on a terminal, in a folder that has the files it names,
// against a server that has the job it names. Only what cannot be the same on two machines is exchanged: the IDs of runs, the
// address to listen on, and the root of absolute paths.
func TestEveryExampleOfTheHelpRuns(t *testing.T) {
	ran := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.HasSubCommands() && cmd.HasParent() && cmd.Example == firstExamples(cmd) {
			return // they are run with the commands that they are of
		}
		lines := exampleLines(cmd.Example)
		ran += len(lines)
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			t.Parallel()
			if len(lines) == 0 {
				t.Fatalf("the help of %q has no example", cmd.CommandPath())
			}
			s := newStage(t, cmd.CommandPath())
			for _, line := range lines {
				s.run(line)
			}
		})
	}
	visit((&cli{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, now: time.Now}).root())
	if ran < 50 {
		t.Errorf("only %d examples were found", ran)
	}
}

// exampleLines are the commands of an example: its lines, put together where one ends with a backslash, without comments.
func exampleLines(example string) []string {
	var lines []string
	for _, line := range strings.Split(strings.ReplaceAll(example, "\\\n", ""), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// stage is where the examples of one command are run.
type stage struct {
	t       *testing.T
	command string
	root    string // stands for / of a machine that Belfry is installed on
	address string
	env     []string
	kept    string // a run that was made before, which examples mean
}

func newStage(t *testing.T, command string) *stage {
	s := &stage{t: t, command: command, root: t.TempDir()}
	s.script("belfry", fmt.Sprintf("BELFRY_TEST_PROCESS=1 exec %q \"$@\"", os.Args[0]))
	for name, text := range exampleScripts {
		s.script(name, text)
	}
	for name, text := range exampleFiles {
		s.file(name, text)
	}
	s.env = append(os.Environ(), "PATH="+filepath.Join(s.root, "bin")+":"+os.Getenv("PATH"), "TERM=xterm", "TZ=UTC",
		"BELFRY_CONFIG="+filepath.Join(s.root, "config.toml"), "BELFRY_LISTEN=127.0.0.1:0", "TOKEN=blf_example")
	if !strings.Contains(command, "config") {
		s.address = dev(t, "--data", t.TempDir(), "--allow-exec")
		s.env = append(s.env, "BELFRY_ADDRESS="+s.address)
	}
	if before := exampleStages[command]; before != nil {
		before(s)
	}
	return s
}

func (s *stage) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *stage) script(name, text string) {
	if err := os.Chmod(s.file(filepath.Join("bin", name), "#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

var (
	exampleRun    = regexp.MustCompile(`\b[a-z][a-z0-9-]*~[0-9a-z~]+`)
	exampleListen = regexp.MustCompile(`(--listen[ =])\S+`)
	examplePath   = regexp.MustCompile(`(^|[\s='"@:])(/(?:var|etc|srv|tmp|usr|run)/)`)
)

// run runs one example, and wants it to end well.
func (s *stage) run(line string) {
	s.t.Helper()
	runs := map[string]string{}
	exchanged := exampleRun.ReplaceAllStringFunc(line, func(id string) string {
		if runs[id] == "" {
			runs[id] = s.aRun()
		}
		return runs[id]
	})
	exchanged = exampleListen.ReplaceAllString(exchanged, "${1}127.0.0.1:0")
	exchanged = examplePath.ReplaceAllString(exchanged, "${1}"+s.root+"${2}")
	if s.address != "" {
		s.jobs()
	}
	first := strings.Fields(exchanged)
	stays := len(first) > 1 && first[0] == "belfry" && strings.Contains(" dev serve worker ", " "+first[1]+" ")
	if out, err := s.shell(exchanged, stays); err != nil {
		s.t.Errorf("$ %s\n%v\n%s", line, err, out)
	}
}

// examplePatience bounds one example.
const examplePatience = 30 * time.Second

// shell runs a line on a terminal whose user says yes to every question. What stays is stopped, as a service is, when it has
// said that it is ready.
func (s *stage) shell(line string, stays bool) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), examplePatience)
	defer cancel()
	if stays {
		line = "exec " + line
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = s.root, s.env
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 25, Cols: 80})
	if err != nil {
		return "", err
	}
	defer terminal.Close()
	if !stays {
		_, _ = terminal.WriteString("y\n")
	}
	var said lines
	spoke := make(chan struct{}, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		block := make([]byte, 4096)
		for {
			n, err := terminal.Read(block)
			said.Write(block[:n])
			if bytes.Contains(block[:n], []byte("ready")) {
				select {
				case spoke <- struct{}{}:
				default:
				}
			}
			if err != nil {
				return // the terminal has no user any more: the process is gone
			}
		}
	})
	if stays {
		select {
		case <-spoke:
			err = cmd.Process.Signal(syscall.SIGTERM)
		case <-ctx.Done():
			err = errors.New("it does not say that it is ready")
		}
	}
	err = errors.Join(err, cmd.Wait())
	reading.Wait()
	return said.String(), err
}

// jobs makes the jobs that examples name be as they are at the beginning.
func (s *stage) jobs() {
	s.t.Helper()
	for name, text := range exampleJobs {
		if got := belfry(s.t, text, "job", "apply", name, "-f", "-", "--address", s.address); got.code != 0 {
			s.t.Fatalf("%s: %s", name, got.errors)
		}
	}
}

// aRun gives a run in the state that the command is for.
func (s *stage) aRun() string {
	s.t.Helper()
	if s.kept != "" {
		return s.kept
	}
	s.jobs()
	job, until, more := "report", "succeeded", []string{}
	switch s.command {
	case "belfry run cancel":
		until, more = "scheduled", []string{"--delay", "1h"}
	case "belfry run retry", "belfry dead-letter redrive":
		job, until = "broken", "failed"
	}
	r := s.trigger(job, more...)
	eventually(s.t, "the run is "+until, func() (bool, string) {
		got := belfry(s.t, "", "run", "get", r, "-o", "json", "--address", s.address)
		var now wire.Run
		err := json.Unmarshal([]byte(got.out), &now)
		return err == nil && now.State == until, got.out + got.errors
	})
	return r
}

func (s *stage) trigger(job string, more ...string) string {
	s.t.Helper()
	got := belfry(s.t, "", append([]string{"job", "trigger", job, "-o", "json", "--address", s.address}, more...)...)
	if got.code != 0 {
		s.t.Fatal(got.errors)
	}
	return decode[wire.Run](s.t, got.out).ID
}

// exampleJobs are those that stand on the server before each example.
var exampleJobs = map[string]string{
	"report": `{"schedule": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, "target": {"exec": {"argv": ["cat"]}}, "labels": {"team": "billing"}}`,
	"hello":  `{"target": {"exec": {"argv": ["echo", "hello"]}}}`,
	"broken": `{"target": {"exec": {"argv": ["sh", "-c", "echo connection refused; exit 3"], "permanent_exit_codes": [3]}}}`,
}

// exampleFiles are those that examples name.
var exampleFiles = map[string]string{
	"job.json":           `{"name": "hello", "schedule": {"every": "1h"}, "target": {"exec": {"argv": ["echo", "hello"]}}}`,
	"body.json":          `{"day": "2026-11-21"}`,
	"etc/cron.d/sysstat": "5-55/10 * * * * root true\n",
}

// exampleScripts stand in for programs of the host.
var exampleScripts = map[string]string{
	"crontab": `printf '0 9 * * * true\n'`,
	"sudo":    `exec "$@"`,
	"man":     `test -s "$1"`,
}

// exampleStages prepare what is more than files and jobs, by command.
var exampleStages = map[string]func(*stage){
	"belfry store show":         stoppedData,
	"belfry config":             aProfile,
	"belfry config show":        aProfile,
	"belfry config unset":       aProfile,
	"belfry config profiles":    aProfile,
	"belfry config use-profile": aProfile,
}

// aProfile leaves a config.toml with the profiles that examples name.
func aProfile(s *stage) {
	s.file("config.toml", "[profiles.default]\ncolor = \"auto\"\n\n[profiles.prod]\naddress = \"https://belfry.example.org\"\n")
}

// stoppedData leaves the data folder of a server that is stopped, with a run in it.
func stoppedData(s *stage) {
	running := s.address
	s.t.Run("prepare", func(t *testing.T) {
		inner := &stage{t: t, command: s.command, root: s.root}
		inner.address = dev(t, "--data", filepath.Join(s.root, devData), "--allow-exec")
		inner.jobs()
		s.kept = inner.aRun()
	})
	s.address = running
}
