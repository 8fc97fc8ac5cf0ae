//go:build unix

package target

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// A group that is gone answers ESRCH, and then there is nothing to do.
func terminateGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGTERM) }

// killGroup also kills the leader by itself, which may have moved to another group: its end is waited for.
func killGroup(leader *os.Process) {
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL)
	_ = leader.Kill()
}

// groupLives also tells of a group that has become another user's.
func groupLives(leader *os.Process) bool {
	return !errors.Is(syscall.Kill(-leader.Pid, 0), syscall.ESRCH)
}

// killedBy names the signal that ended the process, "" when it exited.
func killedBy(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}

// startMayWorkLater tells a program that is being written, or a disk that is unwell, from a program that is not there.
func startMayWorkLater(err error) bool {
	return errors.Is(err, syscall.ETXTBSY) || errors.Is(err, syscall.EIO)
}

func isDenied(err error) bool { return errors.Is(err, fs.ErrPermission) }
