//go:build !unix

package main

import "os"

var othersSignals []os.Signal
