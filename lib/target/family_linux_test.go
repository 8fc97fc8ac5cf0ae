package target

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// leavers are scripts that say "ready" when something of theirs has left the process group, and then go on for long.
var leavers = map[string]string{
	"a session of its own":                `setsid sleep 600 & echo ready; wait`,
	"deaf to SIGTERM":                     `setsid sh -c 'trap "" TERM; echo ready; sleep 600; sleep 600' & wait`,
	"its parent is gone":                  `setsid sh -c 'trap "" TERM; sleep 600 & sleep 600 & echo ready' >/dev/null; echo ready; sleep 600`,
	"a daemon, forked twice":              `setsid sh -c 'trap "" TERM; (sleep 600 &); echo ready' & sleep 600`,
	"in a session in a session":           `setsid setsid sh -c 'setsid sh -c "setsid sleep 600 & echo ready; wait" & wait' & sleep 600`,
	"the leader has ended by then":        `setsid sh -c 'trap "" TERM; sleep 600; sleep 600' & trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done`,
	"without the output pipe":             `setsid sh -c 'trap "" TERM; exec sleep 600' >/dev/null 2>&1 & echo ready; wait`,
	"without an environment":              `env -i /usr/bin/setsid /bin/sh -c 'trap "" TERM; exec sleep 600' >/dev/null 2>&1 & echo ready; wait`,
	"below one without an environment":    `env -i /usr/bin/setsid /bin/sh -c 'trap "" TERM; /usr/bin/setsid sleep 600 & echo ready; sleep 600' & wait`,
	"with a name that is hard to read":    `ln -s "$(command -v sleep)" "$DIR/a) R 1 (b"; setsid "$DIR/a) R 1 (b" 600 & echo ready; wait`,
	"it starts others all the time":       `setsid sh -c 'trap "" TERM; while :; do sleep 0.01; done' >/dev/null 2>&1 & echo ready; wait`,
	"it starts sessions all the time":     `setsid sh -c 'trap "" TERM; while :; do setsid sleep 0.05 & sleep 0.01; done' >/dev/null 2>&1 & echo ready; wait`,
	"it begins a session when it is told": `trap 'setsid sleep 600 >/dev/null 2>&1 & exit 0' TERM; echo ready; while :; do sleep 0.02; done`,
}

func TestExecTimeoutKillsWhatHasLeftTheGroup(t *testing.T) {
	wantNobodyLeft(t, leavers, runIntoTimeout, KindTimeout)
}

func TestKillEndsWhatHasLeftTheGroup(t *testing.T) {
	wantNobodyLeft(t, leavers, func(s *Set, _ func()) { s.Kill() }, KindSignal)
}

// What has left the group has the grace, too.
func TestExecHasAGraceToEndInOrderWhereverItIs(t *testing.T) {
	wantGrace(t, `setsid sh -c 'trap "echo in order; exit 0" TERM; echo ready; while :; do sleep 0.02; done' & wait`)
}

// What an attempt that ended by itself has left in the background goes on, whatever becomes of the next one; and so does what only looks like it.
func TestExecTimeoutKillsNobodyElse(t *testing.T) {
	s, call := newSet(t, nil), testCall()
	got, err := s.Call(t.Context(), shell(`setsid sleep 600 >/dev/null 2>&1 & echo $!; sleep 600 >/dev/null 2>&1 & echo $!`), call)
	if err != nil {
		t.Fatal(err)
	}
	alike := exec.CommandContext(t.Context(), "sleep", "600")
	alike.Env = append(s.environment(nil, call), markName+"=1")
	if err := alike.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alike.Wait() })

	log := watch("ready")
	call.Log = log
	ctx, end := timedOut(t)
	go func() { <-log.seen; end() }()
	_, err = s.Call(ctx, shell(`setsid sleep 600 & echo ready; wait`), call)
	wantFailure(t, err, KindTimeout, false)

	for _, text := range append(strings.Fields(string(got.Body)), fmt.Sprint(alike.Process.Pid)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := newSystem().read(pid); err != nil {
			t.Errorf("process %d did not live on: %+v, %v", pid, p, err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Each call has a mark of its own, over all processes of the host.
func TestExecMarksDiffer(t *testing.T) {
	seen := map[string]bool{}
	s := newSet(t, nil)
	for range 3 {
		got, err := s.Call(t.Context(), shell(`echo "$BELFRY_CALL"`), testCall())
		if err != nil {
			t.Fatal(err)
		}
		mark := strings.TrimSpace(string(got.Body))
		if mark == "" || seen[mark] || !strings.HasPrefix(mark, fmt.Sprint(os.Getpid(), ".")) {
			t.Errorf("the mark %q: want one that no other call has", mark)
		}
		seen[mark] = true
	}
}

func TestAProcessIsReadWhateverItsName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "a) Z 1 (b")
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), odd, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	if p, err := newSystem().read(cmd.Process.Pid); err != nil || p.parent != os.Getpid() || p.start == 0 {
		t.Errorf("got %+v, %v", p, err)
	}
}
