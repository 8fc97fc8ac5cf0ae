// Package program writes programs for tests that execute them.
package program

import (
	"os"
	"syscall"
)

// Write writes a file that is to be executed. A process that another goroutine starts meanwhile would have the file open for writing until it executes its own, and whoever
// executes this one by then is told "text file busy": so none is started while it is written.
func Write(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
