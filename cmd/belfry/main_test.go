package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary is belfry itself when it is told so: signals and exit codes need a process.
func TestMain(m *testing.M) {
	if os.Getenv("BELFRY_TEST_PROCESS") != "" {
		main()
	}
	for _, set := range os.Environ() {
		if name, _, _ := strings.Cut(set, "="); strings.HasPrefix(name, "BELFRY_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("BELFRY_CONFIG", os.DevNull)
	// Whoever runs these tests may ignore hangups, as nohup does and some CI, and processes inherit that, unless it is undone here.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		<-hangup
		signal.Reset(syscall.SIGHUP)
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(syscall.SIGHUP)
		}
	}()
	os.Exit(m.Run())
}

// outcome is what a command left.
type outcome struct {
	code        int
	out, errors string
}

// belfry runs a command in this process. Half of each disk is free, whatever this machine's own is like.
func belfry(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return belfryOn(t, func(string) (free, size uint64, err error) { return 500 << 30, 1000 << 30, nil }, stdin, args...)
}

// belfryOn is belfry where disks have that much room.
func belfryOn(t *testing.T, room func(folder string) (free, size uint64, err error), stdin string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, now: time.Now, diskRoom: room}
	return outcome{c.run(t.Context(), args), out.String(), errs.String()}
}

// dev starts belfry dev in this process and gives its address; it ends with the test.
func dev(t *testing.T, args ...string) (address string) {
	t.Helper()
	return started(t, "dev", args)
}

// started runs a server in this process until the test ends, and gives its address.
func started(t *testing.T, command string, args []string) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	var log lines
	done := make(chan int, 1)
	args = append([]string{command, "-o", "json", "--listen", "127.0.0.1:0", "--grace", "5s"}, args...)
	go func() {
		done <- run(ctx, args, strings.NewReader(""), writer, &log)
		writer.Close()
	}()
	var started struct{ Address, Data string }
	if err := json.NewDecoder(reader).Decode(&started); err != nil {
		stop()
		<-done
		t.Fatalf("%s did not start: %v\n%s", command, err, log.String())
	}
	go io.Copy(io.Discard, reader)
	t.Cleanup(func() {
		stop()
		if code := <-done; code != 0 {
			t.Errorf("%s ended with %d\n%s", command, code, log.String())
		}
	})
	return started.Address
}

// eventually tries until ok, or fails the test with what it saw last.
func eventually(t *testing.T, what string, try func() (ok bool, saw string)) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	saw := ""
	for over := time.Now().Add(examplePatience); time.Now().Before(over); <-poll.C {
		var ok bool
		if ok, saw = try(); ok {
			return
		}
	}
	t.Fatalf("%s: not in %s; last seen:\n%s", what, examplePatience, saw)
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		code  int
		says  string // on stderr
		shows string // on stdout
	}{
		{"help", []string{"--help"}, 0, "", "belfry dev --allow-exec"},
		{"help of a command", []string{"job", "apply", "--help"}, 0, "", "belfry job apply -f job.json"},
		{"nothing", nil, 0, "", "Usage:"},
		{"a noun alone", []string{"job"}, 2, "apply, calendar, delete, edit, get, history, label, list, next, patch, pause, resume, trigger", ""},
		{"no such command", []string{"jobs"}, 2, `"belfry jobs"`, ""},
		{"no such verb", []string{"job", "frobnicate"}, 2, `"belfry job frobnicate"`, ""},
		{"no such flag", []string{"job", "list", "--frobnicate"}, 2, "--frobnicate", ""},
		{"no name", []string{"job", "get"}, 2, "belfry job get: got no argument, want NAME, a job's name", ""},
		{"no names", []string{"job", "delete"}, 2, "want names of jobs, or a filter such as --label, or --all", ""},
		{"two names", []string{"job", "apply", "a", "b"}, 2, "got 2 arguments, want no more than NAME", ""},
		{"no run", []string{"run", "get"}, 2, "want RUN, a run's ID as \"belfry run list\" shows it", ""},
		{"an expression without quotes", []string{"cron", "next", "*", "*", "*", "*", "*"}, 2, "got 5 arguments, want one EXPR; put it in quotes: '", ""},
		{"one word too many", []string{"dev", "extra"}, 2, `belfry dev: got the argument "extra", want none`, ""},
		{"no crontab", []string{"import", "crontab"}, 2, "want FILE, or - for standard input", ""},
		{"two keys", []string{"store", "show", "a/", "b/"}, 2, "want no more than one KEY", ""},
		{"a negative limit", []string{"run", "list", "-n", "-1"}, 2, "-n -1: want 0 for all, or more", ""},
		{"two times", []string{"job", "trigger", "a", "--at", "2026-11-21T09:00:00Z", "--delay", "1h"}, 2, "--at and --delay exclude each other", ""},
		{"bad form", []string{"version", "-o", "xml"}, 2, "table, json, yaml, name or jsonpath=TEMPLATE", ""},
		{"bad colour", []string{"version", "--color", "red"}, 2, "auto, always or never", ""},
		{"bad zone to show times in", []string{"run", "list", "--timezone", "Mars/Base"}, 2, "Mars/Base", ""},
		{"bad address", []string{"job", "list", "--address", "nowhere"}, 2, "http://127.0.0.1:7340", ""},
		{"bad time", []string{"run", "list", "--from", "yesterday"}, 2, "2026-11-21T09:00:00Z", ""},
		{"no server", []string{"job", "list", "--address", "http://127.0.0.1:1"}, exitNoAnswer, "belfry dev", ""},
		{"no file", []string{"job", "apply", "-f", "/does/not/exist"}, 1, "/does/not/exist", ""},
		{"apply without a file", []string{"job", "apply"}, 2, "-f FILE", ""},
		{"redrive of nothing", []string{"dead-letter", "redrive"}, 2, "--all", ""},
		{"redrive of everything and something", []string{"dead-letter", "redrive", "x", "--all"}, 2, "exclude", ""},
		{"listen on nothing", []string{"dev", "--listen", "7340"}, 2, "HOST:PORT", ""},
		{"listen on no port", []string{"dev", "--listen", "foo:bar"}, 2, "HOST:PORT", ""},
		{"listen on too high a port", []string{"serve", "--data", "x", "--listen", "127.0.0.1:65536"}, 2, "HOST:PORT", ""},
		{"dev for all the world", []string{"dev", "--listen", "0.0.0.0:0"}, 2, "belfry serve", ""},
		{"dev for all the world, by no host", []string{"dev", "--listen", ":0"}, 2, "belfry serve", ""},
		{"dev for a network", []string{"dev", "--listen", "192.0.2.1:7340"}, 2, "belfry serve", ""},
		{"dev without a folder", []string{"dev", "--data", ""}, 2, "--data .belfry", ""},
		{"a console for all the world", []string{"console", "--listen", "0.0.0.0:0"}, 2, "the console listens on loopback alone, as in 127.0.0.1:0", ""},
		{"a console for all the world, by no host", []string{"console", "--listen", ":7350"}, 2, "loopback alone", ""},
		{"a console for a network", []string{"console", "--listen", "[2001:db8::1]:0"}, 2, "loopback alone", ""},
		{"a console on no port", []string{"console", "--listen", "127.0.0.1"}, 2, "want HOST:PORT", ""},
		{"a console of no server", []string{"console", "--address", "nowhere"}, 2, "http://127.0.0.1:7340", ""},
		{"serve without a folder", []string{"serve", "--data", ""}, 2, "--data", ""},
		{"bad expression", []string{"cron", "next", "0 25 * * *"}, 1, "hour", ""},
		{"bad zone", []string{"cron", "next", "@daily", "--timezone", "Mars/Base"}, 1, "Mars/Base", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := belfry(t, "", c.args...)
			if got.code != c.code || !strings.Contains(got.errors, c.says) || !strings.Contains(got.out, c.shows) {
				t.Errorf("code %d, stdout %q, stderr %q; want %d, %q, %q", got.code, got.out, got.errors, c.code, c.shows, c.says)
			}
			if c.code != 0 && !strings.HasPrefix(got.errors, "belfry: ") {
				t.Errorf("stderr %q does not say who speaks", got.errors)
			}
		})
	}
}

func TestCronWorksWithoutAServer(t *testing.T) {
	got := belfry(t, "", "cron", "next", "30 9 * * 1-5", "--timezone", "Europe/Berlin", "--from", "2026-03-26T12:00:00Z", "-n", "3")
	want := "2026-03-27T09:30:00+01:00\n2026-03-30T09:30:00+02:00\n2026-03-31T09:30:00+02:00\n"
	if got.code != 0 || got.out != want {
		t.Errorf("got %d %q %q, want %q", got.code, got.out, got.errors, want)
	}
	got = belfry(t, "", "cron", "next", "0 0 29 2 *", "--from", "2097-01-01T00:00:00Z", "-n", "1")
	if got.out != "2104-02-29T00:00:00Z\n" {
		t.Errorf("got %q", got.out)
	}
	got = belfry(t, "", "cron", "next", "30 2,3 * * *", "--timezone", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z", "-n", "3", "--marks")
	want = "2026-03-29T03:00:00+02:00  shifted: the clock skips 02:30:00\n2026-03-29T03:30:00+02:00\n2026-03-30T02:30:00+02:00\n"
	if got.code != 0 || got.out != want {
		t.Errorf("with marks: %d %q, want %q", got.code, got.out, want)
	}
	got = belfry(t, "", "cron", "describe", "30 9 * * 1-5", "--timezone", "Europe/Berlin")
	if got.out != "At 09:30, Monday to Friday, Europe/Berlin\n" {
		t.Errorf("got %q", got.out)
	}
	var preview struct{ Next []time.Time }
	if err := json.Unmarshal([]byte(belfry(t, "", "cron", "next", "@hourly", "-n", "4", "-o", "json").out), &preview); err != nil || len(preview.Next) != 4 {
		t.Errorf("got %v, %v", preview, err)
	}
}

func TestVersionNamesEveryPart(t *testing.T) {
	var b build
	if err := json.Unmarshal([]byte(belfry(t, "", "version", "-o", "json").out), &b); err != nil {
		t.Fatal(err)
	}
	if b.Version == "" || !strings.HasPrefix(b.Go, "go1.") || b.Platform == "" || len(b.TZData) < 5 {
		t.Errorf("got %+v", b)
	}
	if text := belfry(t, "", "version").out; !strings.Contains(text, b.TZData) || !strings.Contains(text, b.Go) {
		t.Errorf("got %q", text)
	}
}

func TestFoldersAndPortsInUseAreOneClearLine(t *testing.T) {
	data := t.TempDir()
	address := strings.TrimPrefix(dev(t, "--data", data), "http://")
	for name, args := range map[string][]string{
		"in use by another Belfry; stop it, or choose another with --data":         {"dev", "--data", data, "--listen", "127.0.0.1:0"},
		"is in use, perhaps by another Belfry; choose another with --listen":       {"dev", "--data", t.TempDir(), "--listen", address},
		"data folder " + data + " is in use by another Belfry; stop it, or choose": {"store", "show", "--data", data, "shard#00/"},
	} {
		got := belfry(t, "", args...)
		if got.code != 1 || !strings.Contains(got.errors, name) || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%v: code %d, stderr %q, want one line with %q", args, got.code, got.errors, name)
		}
	}
}

func TestTheAddressThatIsShownCanBeCalled(t *testing.T) {
	for listens, shown := range map[string]string{
		"[::]:7340": "localhost:7340", "0.0.0.0:80": "localhost:80", "127.0.0.1:7340": "127.0.0.1:7340", "[::1]:1": "[::1]:1", "10.0.0.5:7340": "10.0.0.5:7340",
	} {
		if got := reachable(listens); got != shown {
			t.Errorf("listening on %s it shows %s, want %s", listens, got, shown)
		}
	}
}

// lines takes what a process writes, and can be read meanwhile.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// command is belfry as a process of its own, killed with the test.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "BELFRY_TEST_PROCESS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // whoever runs the tests may have a terminal
	return cmd
}

// startProcess starts belfry as a process of its own and waits until it is ready.
func startProcess(t *testing.T, args ...string) (*exec.Cmd, string, *lines) {
	t.Helper()
	var log lines
	cmd, address := startTelling(t, &log, args...)
	return cmd, address, &log
}

// startTelling is startProcess for who takes its standard error.
func startTelling(t *testing.T, stderr io.Writer, args ...string) (cmd *exec.Cmd, address string) {
	t.Helper()
	cmd = command(t, append([]string{"dev", "-o", "json", "--listen", "127.0.0.1:0"}, args...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	var started struct{ Address string }
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&started); err != nil {
		t.Fatal(err)
	}
	return cmd, started.Address
}

// signalled sends a process a signal each millisecond until over is called, so that one comes wherever the process has got to.
func signalled(cmd *exec.Cmd, s os.Signal) (over func()) {
	ended := make(chan struct{})
	go func() {
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				cmd.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(ended) })
}

// busy starts a process, the log of which goes to stderr, and a command in it that ends when the file flag goes.
func busy(t *testing.T, stderr io.Writer, data, flag string) *exec.Cmd {
	t.Helper()
	cmd, address := startTelling(t, stderr, "--data", data, "--allow-exec", "--grace", "60s")
	job := `{"target": {"exec": {"argv": ["/bin/sh", "-c", "trap '' TERM; echo $$ >'` + flag + `'; while [ -e '` + flag + `' ]; do sleep 0.02; done; echo done"]}}, "timeout": "10m"}`
	if got := belfry(t, job, "job", "apply", "busy", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	if got := belfry(t, "", "job", "trigger", "busy", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	eventually(t, "the command runs", func() (bool, string) { _, err := os.Stat(flag); return err == nil, fmt.Sprint(stderr) })
	return cmd
}

func TestFault38_the_first_signal_drains_and_the_second_ends_at_once(t *testing.T) {
	data, flag := t.TempDir(), filepath.Join(t.TempDir(), "running")
	log := new(lines)
	cmd := busy(t, log, data, flag)
	cmd.Process.Signal(syscall.SIGTERM)
	eventually(t, "it says that it stops", func() (bool, string) { return strings.Contains(log.String(), "stopping"), log.String() })
	if got := belfry(t, "", "store", "show", "--data", data, "--job", "busy"); !strings.Contains(got.errors, "in use") {
		t.Errorf("the folder while it drains: %d %s", got.code, got.errors)
	}
	over := signalled(cmd, syscall.SIGTERM) // one within a second of the first is the same asking once more
	err := cmd.Wait()
	over()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "ended at once") { // at the end of the grace it would end otherwise
		t.Errorf("two signals: ended with %v, want at once with code 1\n%s", err, log.String())
	}
	if pid, err := os.ReadFile(flag); err != nil || !gone(strings.TrimSpace(string(pid))) {
		t.Errorf("the command %s goes on without it, beside its next attempt: %v", pid, err)
	}

	data, flag = t.TempDir(), filepath.Join(t.TempDir(), "running")
	log = new(lines)
	cmd = busy(t, log, data, flag)
	cmd.Process.Signal(syscall.SIGTERM)
	os.Remove(flag) // the command ends within the grace
	if err := cmd.Wait(); err != nil {
		t.Errorf("one signal: %v, want code 0\n%s", err, log.String())
	}
	if got := belfry(t, "", "store", "show", "--data", data, "--job", "busy"); got.code != 0 || !strings.Contains(got.out, `"partition": "job#default#`) {
		t.Errorf("the folder after a drain: %d %s %s", got.code, got.out, got.errors)
	}
}

// A grace of 0s is none, and not the default of those who ask for no grace.
func TestAGraceOfZeroStopsAttemptsAtOnce(t *testing.T) {
	folder := t.TempDir()
	running, ended := filepath.Join(folder, "running"), filepath.Join(folder, "ended")
	cmd, address, log := startProcess(t, "--data", t.TempDir(), "--allow-exec", "--grace", "0s")
	job := `{"target": {"exec": {"argv": ["/bin/sh", "-c", "touch '` + running + `'; sleep 15; touch '` + ended + `'"]}}, "timeout": "10m"}`
	if got := belfry(t, job, "job", "apply", "busy", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	if got := belfry(t, "", "job", "trigger", "busy", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	eventually(t, "the command runs", func() (bool, string) { _, err := os.Stat(running); return err == nil, log.String() })
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, want code 0\n%s", err, log.String())
	}
	if _, err := os.Stat(ended); err == nil {
		t.Error("the command went on to its end")
	}
}
