//go:build !unix

package target

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Without process groups only the process itself can be ended; there is no gentle way to ask it to.
func ownGroup() *syscall.SysProcAttr { return nil }

func terminateGroup(leader *os.Process) { _ = leader.Kill() }
func killGroup(leader *os.Process)      { _ = leader.Kill() }

func groupLives(*os.Process) bool { return false }

func killedBy(*os.ProcessState) string { return "" }

func startMayWorkLater(error) bool { return false }

func isDenied(err error) bool { return errors.Is(err, fs.ErrPermission) }
