//go:build unix

package main

import (
	"os"
	"syscall"
)

// othersSignals are those by which service managers and log rotation ask programs to open their files anew.
var othersSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}

// hasTerminal tells whether the process belongs to a terminal, which hangs up on it when it is closed: also where its input and output go
// elsewhere, as of "belfry serve </dev/null >log 2>&1".
func hasTerminal() bool {
	own, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = own.Close() // nothing was written
	return true
}
