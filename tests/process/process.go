// Package process builds the real binary for tests and starts it: servers, ticks and workers that say when they are ready, are stopped,
// woken and killed, and whose log is shown when a test fails.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// Patience bounds every wait for a process. It is there for a hang and no measure of speed: a busy machine may take several times as long.
const Patience = 5 * time.Minute

// AnyPort takes a free one.
const AnyPort = "127.0.0.1:0"

// Build builds cmd/belfry into a file, from a package that lies two folders below the root, as those of tests do. Flags are those of
// go build. What debuggers want is left out, as in a release: writing it takes the linker longer than all the rest.
func Build(file string, flags ...string) error {
	build := exec.Command("go", append(append([]string{"build", "-ldflags", "-s -w", "-o", file}, flags...), "../../cmd/belfry")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return nil
}

// WithBinary runs the tests of a package with a binary in a folder of their own, which it gives to set. For TestMain.
func WithBinary(m *testing.M, set func(binary string)) int {
	dir, err := os.MkdirTemp("", "belfry-process")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "belfry")
	if err := Build(binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	set(binary)
	return m.Run()
}

// Process is one start of a program that greets with a line of JSON when it is ready, as `belfry dev`, serve, tick and worker do under
// --output json.
type Process struct {
	Cmd     *exec.Cmd
	Greeted chan struct{} // closed when it has said that it is ready
	Exited  chan struct{} // closed when it has ended; then Cmd.ProcessState holds how
	Address string        // http://host:port of one that listens, when Greeted
	Worker  string        // the name of one that works elsewhere, when Greeted
}

// Start starts a program and does not wait for it. Its stderr goes to log.
func Start(cmd *exec.Cmd, log *os.File) (*Process, error) {
	p := &Process{Cmd: cmd, Greeted: make(chan struct{}), Exited: make(chan struct{})}
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.Exited)
		var greeting struct{ Address, Worker string }
		if json.NewDecoder(stdout).Decode(&greeting) == nil {
			p.Address, p.Worker = greeting.Address, greeting.Worker
			close(p.Greeted)
		}
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	}()
	return p, nil
}

// Run starts a program for a test and waits until it is ready; the test's end ends it.
func Run(t testing.TB, cmd *exec.Cmd, log *os.File) *Process {
	t.Helper()
	p, err := Start(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if err := p.Ready(); err != nil {
		t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
	return p
}

// Ready waits until it has greeted.
func (p *Process) Ready() error {
	select {
	case <-p.Greeted:
		return nil
	case <-p.Exited:
		return fmt.Errorf("it ended before it was ready: %s", p.Cmd.ProcessState)
	case <-time.After(Patience):
		return fmt.Errorf("not ready after %s", Patience)
	}
}

// Kill is kill -9, and returns when the process is gone.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Exited
}

// Killed tells whether it has ended by kill -9.
func (p *Process) Killed() bool {
	select {
	case <-p.Exited:
		status, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
		return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	default:
		return false
	}
}

// Signal sends one, as SIGSTOP and SIGCONT.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// Stop asks it to end, and wants it to end well.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code, err := p.Code(); err != nil || code != 0 {
		t.Errorf("%s ended with exit code %d (%v)", strings.Join(p.Cmd.Args, " "), code, err)
	}
}

// Code is how the process ended by itself, within Patience.
func (p *Process) Code() (int, error) {
	select {
	case <-p.Exited:
		return p.Cmd.ProcessState.ExitCode(), nil
	case <-time.After(Patience):
		return 0, fmt.Errorf("still running after %s", Patience)
	}
}

// HostPort is the address without its scheme.
func (p *Process) HostPort() string { return strings.TrimPrefix(p.Address, "http://") }

// Log gives a file for what processes say, shown when the test fails.
func Log(t testing.TB) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text := Said(t, file)
			t.Logf("the end of what the process said:\n%s", text[max(0, len(text)-4000):])
		}
		file.Close()
	})
	return file
}

// Said is what stands in a log.
func Said(t testing.TB, file *os.File) string {
	t.Helper()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Client calls once: what becomes of a lost answer is the test's business.
func Client(address, token string, transport http.RoundTripper) (*client.Client, error) {
	return client.New(client.Config{
		Address: address, Token: token, Tries: 1,
		HTTP:   &http.Client{Timeout: 20 * time.Second, Transport: transport},
		NewKey: func() string { panic("every trigger of these tests brings its own key, or goes around the client") },
	})
}

// Answered repeats a call until a server answers it, also by a refusal. Errors are those of the last try.
func Answered[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for {
		answer, err := call()
		var refused *client.Error
		if err == nil || errors.As(err, &refused) && refused.Status < http.StatusInternalServerError || ctx.Err() != nil {
			return answer, err
		}
		select {
		case <-time.After(20 * time.Millisecond): // a server that is gone tells nobody when the next is there
		case <-ctx.Done():
		}
	}
}

// Eventually asks until the answer is yes, and fails the test after Patience.
func Eventually(t testing.TB, what string, yes func() (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := Until(ctx, yes); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Until asks again and again, since Belfry tells nobody when a run has ended; it leaves the machine four times as long as an
// answer takes, so that what it waits for is not held up by its asking.
func Until(ctx context.Context, yes func() (bool, error)) error {
	for {
		began := time.Now()
		ok, err := yes()
		if ok {
			return nil
		}
		pause := time.NewTimer(max(50*time.Millisecond, 4*time.Since(began)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(errors.New("not within the time"), err)
		}
	}
}
