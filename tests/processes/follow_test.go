//go:build emulators

package processes

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// TestALogIsFollowedWhileAWorkerWritesIt asks a server that does no work for the log of a run which a worker beside it on the table has, and
// which ends when its first line has been read.
func TestALogIsFollowedWhileAWorkerWritesIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "followed")
	h.env = append(h.env, "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s")
	serve := h.start("serve", "--no-work")
	worker := h.start("worker", "--queue", "default", "--allow-exec")
	server := serve.client("")
	gate := filepath.Join(t.TempDir(), "gate")
	var d job.Definition
	d.Timeout = schedule.Duration(process.Patience)
	d.Target.Exec = &target.Exec{Argv: []string{"/bin/sh", "-c", `echo begun; while [ ! -e "$0" ]; do sleep 0.1; done; echo opened`, gate}}
	if _, err := server.PutJob(t.Context(), "slow", wire.Job{Definition: d}, client.Condition{}); err != nil {
		t.Fatal(err)
	}
	r, err := server.Trigger(t.Context(), "slow", wire.Trigger{}, "")
	if err != nil {
		t.Fatal(err)
	}
	follow := exec.Command(binary, "run", "logs", r.ID, "--follow", "--address", serve.Address)
	follow.Env = h.env
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(process.Patience, func() { _ = follow.Process.Kill() }).Stop()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "begun\n" {
		t.Errorf("while it runs: %q, %v", line, err)
	}
	if r, err := server.Run(t.Context(), r.ID); err != nil || r.State != "running" || r.Attempt != 1 {
		t.Errorf("it is %s, attempt %d, %v", r.State, r.Attempt, err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if string(rest) != "opened\n" || err != nil {
		t.Errorf("then: %q, %v", rest, err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("following ended with %v", err)
	}
	if r := waitFor(t, server, r.ID); r.State != "succeeded" || r.Attempt != 1 {
		t.Errorf("it ended as %s after %d attempts", r.State, r.Attempt)
	}
	worker.stop()
	serve.stop()
}
