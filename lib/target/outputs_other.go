//go:build !unix

package target

import "io"

// copy begins to read. The process has its own ends of the pipes by now. In which order the two outputs are handed on is left to chance.
func (o outputs) copy() {
	for _, one := range o {
		_ = one.write.Close()
		go func() {
			defer close(one.done)
			_, _ = io.Copy(one, one.read) // it takes everything; an error of the pipe is its end
			_ = one.read.Close()
		}()
	}
}
