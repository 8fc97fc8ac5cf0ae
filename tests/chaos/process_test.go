package chaos

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// The Belfry that all tests start, and the one that dies at named points.
var binary, mortal string

func TestMain(m *testing.M) {
	// This very program is also what the jobs start as a command, and the worker that is stopped.
	if url := os.Getenv(load.ReportTo); url != "" {
		os.Exit(load.Report(url))
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
	binary, mortal = filepath.Join(dir, "belfry"), filepath.Join(dir, "mortal")
	overlay, err := points.Overlay("../..", dir)
	if err == nil {
		err = process.Build(binary)
	}
	if err == nil {
		err = process.Build(mortal, "-overlay", overlay)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	killed.show(os.Stdout)
	return code
}

// dev is `belfry dev` on a data folder.
func dev(binary, data string, flags ...string) *exec.Cmd {
	return exec.Command(binary, append([]string{"dev", "--output", "json", "--data", data, "--listen", process.AnyPort}, flags...)...)
}

// launch starts `belfry dev` and does not wait for it. Its stderr goes to log.
func launch(data string, log *os.File, flags ...string) (*process.Process, error) {
	return process.Start(dev(binary, data, flags...), log)
}

// serve starts a server for a test and waits until it is ready; the test's end ends it.
func serve(t *testing.T, data string, log *os.File, flags ...string) *process.Process {
	t.Helper()
	return process.Run(t, dev(binary, data, flags...), log)
}

func clientOf(address string) (*client.Client, error) {
	return process.Client(address, "", http.DefaultTransport)
}
