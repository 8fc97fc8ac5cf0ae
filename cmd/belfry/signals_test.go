//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// gone waits until there is no process of a number any more, or it has ended and nobody has asked how.
func gone(number string) bool {
	pid, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for over := time.Now().Add(5 * time.Minute); time.Now().Before(over); <-look.C {
		state, _ := os.ReadFile("/proc/" + number + "/stat")
		if syscall.Kill(pid, 0) != nil || strings.Contains(string(state), ") Z ") {
			return true
		}
	}
	return false
}

// A process that is about to say how it ended keeps its signals: one that comes then takes neither its word nor its exit code. Nobody reads what it says until
// many have come.
func TestFault38_no_signal_takes_the_last_word(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	flag := filepath.Join(t.TempDir(), "running")
	cmd := busy(t, write, t.TempDir(), flag)
	command, err := os.ReadFile(flag)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	said := bufio.NewReader(read)
	for line := ""; !strings.Contains(line, "stopping"); {
		if line, err = said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, int(write.Fd()))
	over := signalled(cmd, syscall.SIGTERM)
	if !gone(strings.TrimSpace(string(command))) { // which a second asking ends
		t.Error("the command goes on")
	}
	over()
	for range 100 {
		cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(time.Millisecond) // no event tells how far it has come with its last word: the more signals, the likelier one finds it there
	}
	write.Close()
	rest, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(rest), "ended at once") {
		t.Errorf("it ended with %v, want code 1 and its word", err)
	}
}

// fill writes to a pipe until it takes no more.
func fill(t *testing.T, pipe int) {
	t.Helper()
	err := syscall.SetNonblock(pipe, true)
	for size := 4096; err == nil && size > 0; {
		if _, err = syscall.Write(pipe, make([]byte, size)); err == syscall.EAGAIN {
			size, err = size/2, nil
		}
	}
	if again := syscall.SetNonblock(pipe, false); err != nil || again != nil {
		t.Fatal(err, again)
	}
}

// What no signal may do is end a process that runs for long without the grace of its runs.
func TestFault38_no_signal_but_those_that_ask_ends_a_server_or_a_worker(t *testing.T) {
	dev, address, log := startProcess(t, "--data", t.TempDir(), "--allow-exec", "--remote-queue", "far")
	works := command(t, "worker", "-o", "json", "--address", address, "--queue", "far", "--allow-exec")
	stdout, err := works.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said lines
	works.Stderr = &said
	if err := works.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { works.Process.Kill() })
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(new(struct{})); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]struct {
		cmd   *exec.Cmd
		log   *lines
		queue string
	}{"server": {dev, log, "default"}, "worker": {works, &said, "far"}} {
		for signal, says := range map[syscall.Signal]string{
			syscall.SIGHUP: "signal=hangup", syscall.SIGUSR1: "signal=user defined signal 1", syscall.SIGUSR2: "signal=user defined signal 2",
			syscall.SIGQUIT: "goroutine 1 [", syscall.SIGPIPE: "",
		} {
			p.cmd.Process.Signal(signal)
			eventually(t, name+" says that it has got "+signal.String(), func() (bool, string) {
				return strings.Contains(plainSignals(p.log.String()), says), p.log.String()
			})
		}
		job := `{"queue": "` + p.queue + `", "target": {"exec": {"argv": ["true"]}}}`
		if got := belfry(t, job, "job", "apply", name, "-f", "-", "--address", address); got.code != 0 {
			t.Fatal(got.errors)
		}
		if got := belfry(t, "", "job", "trigger", name, "--wait", "--address", address); got.code != 0 {
			t.Errorf("after all signals the %s runs nothing: %s", name, got.errors)
		}
	}
}

// plainSignals is a log without what text and JSON write differently.
func plainSignals(log string) string { return strings.NewReplacer(`"`, "", ":", "=").Replace(log) }

// Who prints to a program that has gone is not ended by that.
func TestFault38_a_server_whose_output_nobody_reads_goes_on(t *testing.T) {
	cmd := command(t, "dev", "-o", "json", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--log-level", "debug")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	write.Close()
	var started struct{ Address string }
	for scan := bufio.NewReader(read); started.Address == ""; {
		line, err := scan.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, value, ok := strings.Cut(line, `"address": "`); ok {
			started.Address, _, _ = strings.Cut(value, `"`)
		}
	}
	read.Close()
	for range 3 { // each is a line of the log
		if got := belfry(t, `{"target": {"http": {"url": "http://127.0.0.1:1"}}, "retry": {"max_attempts": 1}}`, "job", "apply", "a", "-f", "-", "--address", started.Address); got.code != 0 {
			t.Fatal(got.errors)
		}
		belfry(t, "", "job", "trigger", "a", "--wait", "--address", started.Address)
		cmd.Process.Signal(syscall.SIGUSR1)
	}
	if got := belfry(t, "", "job", "get", "a", "--address", started.Address); got.code != 0 {
		t.Errorf("the server has gone: %s", got.errors)
	}
}

// The end of a terminal is asked for by whoever closes it: what runs has its grace.
func TestFault38_a_terminal_that_hangs_up_drains(t *testing.T) {
	ran := t.TempDir() + "/ran"
	cmd := command(t, "dev", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--allow-exec", "--grace", "5m")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	var said lines
	go func() {
		block := make([]byte, 4096)
		for {
			n, err := terminal.Read(block)
			said.Write(block[:n])
			if err != nil {
				return
			}
		}
	}()
	address := ""
	eventually(t, "it greets", func() (bool, string) {
		_, rest, _ := strings.Cut(said.String(), "http://")
		at, _, whole := strings.Cut(rest, "\r\n")
		if fields := strings.Fields(at); whole && len(fields) > 0 {
			address = "http://" + fields[0]
		}
		return address != "", said.String()
	})
	job := `{"target": {"exec": {"argv": ["/bin/sh", "-c", "echo begun >'` + ran + `'; sleep 1; echo ended >'` + ran + `'"]}}}`
	if got := belfry(t, job, "job", "apply", "a", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	if got := belfry(t, "", "job", "trigger", "a", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	eventually(t, "the command runs", func() (bool, string) { _, err := os.Stat(ran); return err == nil, said.String() })
	// A terminal that is closed hangs up twice, and "timeout" asks twice.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTERM} {
		cmd.Process.Signal(s)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after a hang-up: %v, want code 0\n%s", err, said.String())
	}
	if text, err := os.ReadFile(ran); err != nil || string(text) != "ended\n" {
		t.Errorf("the command came to %q, %v; want it to have had its grace", text, err)
	}
}

// A terminal that is closed is noticed by what was started from it, also where nothing of it is read from or written to the terminal.
func TestFault38_a_terminal_that_is_closed_drains_what_prints_elsewhere(t *testing.T) {
	for _, args := range [][]string{{"dev", "--data", t.TempDir()}, {"serve", "--data", t.TempDir()}} {
		t.Run(args[0], func(t *testing.T) {
			terminal, own, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			cmd := command(t, append(args, "-o", "json", "--listen", "127.0.0.1:0")...)
			cmd.ExtraFiles = []*os.File{own}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said lines
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			own.Close()
			if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(new(struct{})); err != nil {
				t.Fatal(err, said.String())
			}
			terminal.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("after its terminal was closed: %v, want code 0\n%s", err, said.String())
			}
		})
	}
}
