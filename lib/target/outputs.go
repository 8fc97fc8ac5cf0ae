package target

import (
	"io"
	"os"
	"sync"
	"time"
)

// outputs are standard output and standard error of a process.
type outputs [2]*output

// output is a pipe from a process, and where goes what comes out of it.
type output struct {
	read, write *os.File

	mu   sync.Mutex
	to   io.Writer     // io.Discard from the end of the attempt on
	done chan struct{} // closed when nobody holds the pipe any more
}

func newOutputs(stdout, stderr io.Writer) (o outputs, err error) {
	for i, to := range [2]io.Writer{stdout, stderr} {
		one := &output{to: to, done: make(chan struct{})}
		if one.read, one.write, err = os.Pipe(); err != nil {
			o.close()
			return outputs{}, err
		}
		o[i] = one
	}
	return o, nil
}

// close lets go of pipes that no process was given.
func (o outputs) close() {
	for _, one := range o {
		if one != nil {
			_ = one.read.Close()
			_ = one.write.Close()
		}
	}
}

// room tells whether the pipes leave enough open files to others.
func (o outputs) room() error {
	last, err := o[1].write.SyscallConn()
	if err != nil {
		return err
	}
	return roomFor(last)
}

// end waits until nobody holds the pipes, for so long at most, or until cut is closed, and lets nothing through from then on. It tells whether
// that was all.
func (o outputs) end(wait time.Duration, cut <-chan struct{}) (whole bool) {
	over := time.NewTimer(wait)
	defer over.Stop()
	whole = true
	for _, one := range o {
		if whole {
			select {
			case <-one.done:
			case <-over.C:
				whole = false
			case <-cut:
				whole = false
			}
		}
		one.mu.Lock()
		one.to = io.Discard
		one.mu.Unlock()
	}
	return whole
}

// Write hands on what was read.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}
