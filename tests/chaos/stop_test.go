package chaos

import (
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// SIGTERM while targets work for longer than the grace: attempts are stopped and given up, the process ends in order, and the
// next start goes on where that is allowed. (Ending within the grace, and a second signal, are cmd/belfry's tests.)
func TestP5_Fault34_Fault38_sigterm_hands_back_after_the_grace(t *testing.T) {
	t.Parallel()
	h, log, data := newHeld(t), process.Log(t), t.TempDir()
	s := serve(t, data, log, "--grace", "1s")
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := start(t, server, h, job.DefaultQueue)
	began := time.Now()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, err := s.Code()
	if took := time.Since(began); err != nil || code != 0 || took < time.Second || took > process.Patience/2 {
		t.Fatalf("ended with code %d after %s (%v), want 0 soon after the grace of 1s", code, took, err)
	}

	s = serve(t, data, log)
	if server, err = clientOf(s.Address); err != nil {
		t.Fatal(err)
	}
	second := h.next(t)
	second.letGo()
	r := ended(t, server, ids[least])
	if second.run != r.ID || second.attempt != 2 || r.State != "succeeded" || r.Attempts[0].Outcome != "handed_back" || load.FenceIn(r.Result) != second.fence {
		t.Errorf("at least once: want it handed back and run again, got %+v", r)
	}
	r = ended(t, server, ids[most])
	if n := len(h.of(r.ID)); r.State != "unknown" || n != 1 {
		t.Errorf("at most once: %s after %d calls, want unknown after one: %+v", r.State, n, r)
	}
}
