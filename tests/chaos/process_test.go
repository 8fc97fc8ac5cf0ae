package chaos

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
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// binary is the path of the Belfry that all tests start.
var binary string

func TestMain(m *testing.M) {
	// This very program is also what the jobs start as a command, and the worker that is stopped.
	if url := os.Getenv(reportTo); url != "" {
		os.Exit(report(url))
	}
	if address := os.Getenv(workFor); address != "" {
		os.Exit(work(address))
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "belfry-chaos")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "belfry")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/belfry")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// server is one start of the binary.
type server struct {
	cmd     *exec.Cmd
	greeted chan struct{} // closed when it has said that it is ready
	exited  chan struct{} // closed when it has ended; then cmd.ProcessState holds how
	address string        // http://host:port, when greeted
}

// launch starts `belfry dev` and does not wait for it. Its stderr goes to log.
func launch(data, listen string, log *os.File, flags ...string) (*server, error) {
	args := append([]string{"dev", "--output", "json", "--data", data, "--listen", listen}, flags...)
	return launchAs(exec.Command(binary, args...), log)
}

func launchAs(cmd *exec.Cmd, log *os.File) (*server, error) {
	s := &server{cmd: cmd, greeted: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.exited)
		var greeting struct{ Address string }
		if json.NewDecoder(stdout).Decode(&greeting) == nil {
			s.address = greeting.Address
			close(s.greeted)
		}
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	}()
	return s, nil
}

// patience bounds every wait for a process on a busy machine.
const patience = time.Minute

func (s *server) ready() error {
	select {
	case <-s.greeted:
		return nil
	case <-s.exited:
		return fmt.Errorf("it ended before it was ready: %s", s.cmd.ProcessState)
	case <-time.After(patience):
		return fmt.Errorf("not ready after %s", patience)
	}
}

// kill is kill -9, and returns when the process is gone.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// code is how the process ended by itself, within patience.
func (s *server) code() (int, error) {
	select {
	case <-s.exited:
		return s.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience):
		return 0, fmt.Errorf("still running after %s", patience)
	}
}

// logTo gives a file for what servers say, shown when the test fails.
func logTo(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text := read(t, file)
			t.Logf("the end of what the server said:\n%s", text[max(0, len(text)-4000):])
		}
		file.Close()
	})
	return file
}

func read(t *testing.T, file *os.File) string {
	t.Helper()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serve starts a server for a test and waits until it is ready; the test's end ends it.
func serve(t *testing.T, data, listen string, log *os.File, flags ...string) *server {
	t.Helper()
	s, err := launch(data, listen, log, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	if err := s.ready(); err != nil {
		t.Fatal(err)
	}
	return s
}

// anyPort takes a free one.
const anyPort = "127.0.0.1:0"

func (s *server) hostPort() string { return strings.TrimPrefix(s.address, "http://") }

// clientOf calls once: what becomes of a lost answer is the test's business.
func clientOf(address string) (*client.Client, error) {
	return clientOver(address, http.DefaultTransport)
}

func clientOver(address string, transport http.RoundTripper) (*client.Client, error) {
	return client.New(client.Config{
		Address: address, Tries: 1,
		HTTP:   &http.Client{Timeout: 20 * time.Second, Transport: transport},
		NewKey: func() string { panic("every trigger of these tests brings its own key, or goes around the client") },
	})
}

// eventually asks until the answer is yes, and fails the test after patience.
func eventually(t *testing.T, what string, yes func() (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := until(ctx, yes); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// until asks again and again, since Belfry tells nobody when a run has ended; it leaves the machine four times as long as an
// answer takes, so that what it waits for is not held up by its asking.
func until(ctx context.Context, yes func() (bool, error)) error {
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
