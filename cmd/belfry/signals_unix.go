//go:build unix

package main

import (
	"os"
	"syscall"
)

// othersSignals are those by which service managers and log rotation ask programs to open their files anew.
var othersSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
