package worker

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// cappedLog keeps the beginning of what is written, and says where it was cut: between two characters, where it is text.
type cappedLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	limit int
	lost  int
}

func (l *cappedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := min(len(p), l.limit-l.text.Len())
	l.text.Write(p[:kept])
	l.lost += len(p) - kept
	return len(p), nil
}

// bytes is what was kept; nothing may be written any more.
func (l *cappedLog) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		whole := len(target.WholeText(l.text.Bytes()))
		l.lost += l.text.Len() - whole
		l.text.Truncate(whole)
		more := fmt.Sprintf("%d more bytes were", l.lost)
		if l.lost == 1 {
			more = "1 more byte was"
		}
		fmt.Fprintf(&l.text, "\n[cut here: %s logged]\n", more)
		l.lost = 0
	}
	return l.text.Bytes()
}

// soFar is a copy of what was kept until now, of a text up to its last whole character. It is the beginning of what bytes will give.
func (l *cappedLog) soFar() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(target.WholeText(l.text.Bytes()))
}
