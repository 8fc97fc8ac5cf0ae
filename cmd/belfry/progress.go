package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// When progress is told: after a while, and then often to a person, and seldom to a log.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
	progressLog   = 10 * time.Second
)

// progress tells on stderr how far long work is: a line that is drawn over on a terminal, else a line every 10 s. Work that
// ends within a second says nothing. It is safe for concurrent use; end must be called.
type progress struct {
	out      io.Writer
	terminal bool
	colon    string
	total    int64 // 0: not known
	now      func() time.Time
	began    time.Time

	mu    sync.Mutex
	count int64
	drawn bool // a line stands on the terminal
	said  bool // a line went to the log

	stop  chan struct{}
	ended sync.WaitGroup
}

// progress begins to tell of work: what is "importing jobs", total how many there are, 0 where nobody knows.
func (c *cli) progress(what string, total int64) *progress {
	p := &progress{out: c.stderr, terminal: isTerminal(c.stderr) && !dumb(), colon: what + ": ", total: total, now: c.now, began: c.now(), stop: make(chan struct{})}
	p.ended.Go(p.tell)
	return p
}

func (p *progress) tell() {
	first, every := progressLog, progressLog
	if p.terminal {
		first, every = progressAfter, progressEvery
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
			timer.Reset(every)
		}
	}
}

// add counts what was done.
func (p *progress) add(n int64) {
	p.mu.Lock()
	p.count += n
	p.mu.Unlock()
}

// say writes a line of the command's own to stderr, so that it and the progress do not run into each other.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(terminal.Messages(p.out), format+"\n", args...)
}

// clear makes room for what the command prints itself.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// end stops telling, and leaves a terminal as it was. It may be called twice.
func (p *progress) end() {
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.erase(); p.said {
		p.said = false
		fmt.Fprintln(p.out, p.line())
	}
}

func (p *progress) draw() {
	if !p.terminal {
		p.said = true
		fmt.Fprintln(p.out, p.line())
		return
	}
	p.drawn = true
	line := p.line()
	if width := widthOf(p.out); width > 1 {
		line = cutTo(line, width-1)
	}
	fmt.Fprint(p.out, "\r\x1b[K"+line)
}

func (p *progress) erase() {
	if p.drawn {
		p.drawn = false
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// line is "importing jobs: 1200 of 5000 (24%), 310/s, 12s left".
func (p *progress) line() string {
	took := p.now().Sub(p.began)
	rate := float64(p.count) / max(took.Seconds(), 1e-3)
	text := fmt.Sprintf("%s%d", p.colon, p.count)
	if p.total > 0 {
		text += fmt.Sprintf(" of %d (%d%%)", p.total, min(100, p.count*100/p.total))
	}
	switch {
	case rate >= 10:
		text += fmt.Sprintf(", %.0f/s", rate)
	case p.count > 0:
		text += fmt.Sprintf(", %.1f/s", rate)
	}
	if left := p.total - p.count; left > 0 && p.count > 0 {
		return text + ", " + span(time.Duration(float64(left)/rate*float64(time.Second))) + " left"
	}
	return text + ", " + span(took) + " so far"
}
