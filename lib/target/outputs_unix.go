//go:build unix

package target

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// pipeBytes is what a pipe holds in most systems.
const pipeBytes = 64 << 10

// copy begins to read. The process has its own ends of the pipes by now.
//
// Each output is a pipe of its own, so nobody knows for sure which of two lines came first. What standard output holds when something is found on standard
// error is handed on before that: a last word on standard error stands behind what was printed before it, however much of that is still to be read.
func (o outputs) copy() {
	p := &pump{outputs: o}
	for i, one := range o {
		_ = one.write.Close()
		p.pipes[i], p.ended[i] = one.read.SyscallConn()
	}
	for i, one := range o {
		go func() {
			defer close(one.done)
			if p.pipes[i] != nil {
				_ = p.pipes[i].Read(func(uintptr) (over bool) { return p.both(i) }) // an error of the pipe is its end
			}
			_ = one.read.Close()
		}()
	}
}

// pump reads both outputs of a process, whichever of them something came from.
type pump struct {
	outputs outputs
	pipes   [2]syscall.RawConn

	mu    sync.Mutex
	ended [2]error // nil: it goes on
	said  [pipeBytes / 2]byte
	chunk [pipeBytes / 2]byte
}

// both hands on what there is, until both pipes are found empty, and tells whether one of them has ended.
func (p *pump) both(i int) (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for more := true; more; {
		complaint := p.read(1, p.said[:])
		n := 1
		for printed := 0; n > 0 && printed < pipeBytes; printed += n {
			n = p.read(0, p.chunk[:])
			_, _ = p.outputs[0].Write(p.chunk[:n]) // it takes everything
		}
		_, _ = p.outputs[1].Write(p.said[:complaint])
		more = n > 0 || complaint > 0
	}
	return p.ended[i] != nil
}

// read reads what is there, and does not wait for it.
func (p *pump) read(i int, into []byte) (n int) {
	if p.ended[i] != nil {
		return 0
	}
	closed := p.pipes[i].Control(func(number uintptr) {
		for {
			var err error
			switch n, err = syscall.Read(int(number), into); {
			case errors.Is(err, syscall.EINTR):
				continue
			case errors.Is(err, syscall.EAGAIN):
			case err != nil:
				p.ended[i] = err
			case n == 0:
				p.ended[i] = io.EOF
			}
			return
		}
	})
	if closed != nil {
		p.ended[i] = closed
	}
	return max(0, n)
}
