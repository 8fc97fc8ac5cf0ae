//go:build !unix

package main

import "os"

var othersSignals []os.Signal

// hasTerminal tells whether the process belongs to a terminal.
func hasTerminal() bool { return isTerminal(os.Stdin) || isTerminal(os.Stderr) }
