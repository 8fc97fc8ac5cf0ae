package sim

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutineID tells goroutines apart where nothing else does: siblings that do the same thing for different reasons. On one processor
// (GOMAXPROCS 1) they are numbered in the order in which they were begun, and siblings are begun by one goroutine, in an order of its
// own. It takes some microseconds, so it is asked for only where two are tied.
func goroutineID() uint64 {
	var text [40]byte
	n := runtime.Stack(text[:], false)
	number, _, _ := bytes.Cut(bytes.TrimPrefix(text[:n], []byte("goroutine ")), []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("sim: a goroutine without a number: " + string(text[:n]))
	}
	return id
}
