package runlog

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// Log is what is kept of what one attempt wrote. Its zero value is that of an attempt that wrote nothing.
type Log struct {
	Attempt int    // which attempt wrote it, counted from 1; 0 where a version before did not say
	Error   string // how the attempt failed, its beginning; "" where it did not
	Earlier string // key of the log of an attempt before, "" where there is none

	head, tail []byte // without a gap all is head
	gap        int64  // bytes between them
	gapLines   int64  // ends of lines in these
	marks      []mark // by position; none where a version before kept no times
}

// Plain is a log of which no times are known.
func Plain(text []byte) Log { return Log{head: text} }

// IsEmpty tells whether nothing was written.
func (l Log) IsEmpty() bool { return l.Written() == 0 }

// Written is how much was written: the position behind the last byte.
func (l Log) Written() int64 { return l.tailBegins() + int64(len(l.tail)) }

func (l Log) tailBegins() int64 { return int64(len(l.head)) + l.gap }

// last is the segment that ends the log.
func (l *Log) last() *[]byte {
	if l.gap > 0 {
		return &l.tail
	}
	return &l.head
}

// Text is all that is kept, with a line that says what is not.
func (l Log) Text() []byte { return l.Show(View{}).Text }

// View says how a log is shown.
type View struct {
	From   int64 // position of the first byte
	Follow bool  // what stands in front was shown before, so that a line may have begun there
	Times  bool  // each line with its time, where it is known
	Most   int   // about how many bytes are shown at most, 0 for all: what is behind is shown from Next on
}

// Shown is a part of a log for people.
type Shown struct {
	Text []byte
	From int64 // position of its first byte
	Next int64 // position behind its last byte: From of what follows
}

// timeForm is how the time of a line is shown, in UTC.
const timeForm = "2006-01-02T15:04:05.000Z "

// Show gives a part of the log.
func (l Log) Show(v View) Shown {
	v.From = min(max(0, v.From), l.Written())
	p := printer{log: &l, view: v}
	next := v.From
	if next < int64(len(l.head)) {
		next = p.print(l.head, 0, next)
	}
	if next >= int64(len(l.head)) && l.gap > 0 && !p.full() {
		if next < l.tailBegins() {
			p.tellGap(next)
			next = l.tailBegins()
		}
		next = p.print(l.tail, l.tailBegins(), next)
	}
	return Shown{Text: p.out, From: v.From, Next: next}
}

type printer struct {
	log  *Log
	view View
	out  []byte
}

func (p *printer) full() bool { return p.view.Most > 0 && len(p.out) >= p.view.Most }

// print shows what stands from a position on in a segment that begins at another one, and gives the position behind it.
func (p *printer) print(segment []byte, begins, from int64) (next int64) {
	rest := segment[from-begins:]
	if !p.view.Times || len(p.log.marks) == 0 {
		p.out = append(p.out, rest...)
		return from + int64(len(rest))
	}
	// A line that goes on in the tail is shown as if it began there, since what stands in front is not.
	lineBegins := from == begins || !p.view.Follow && len(p.out) == 0 || segment[from-begins-1] == '\n'
	marks := marksFrom(p.log.marks, from)
	for len(rest) > 0 && !p.full() {
		if marks = marksFrom(marks, from); lineBegins {
			p.out = time.UnixMilli(marks[0].ms).UTC().AppendFormat(p.out, timeForm)
		}
		line := rest
		if n := bytes.IndexByte(rest, '\n') + 1; n > 0 {
			line = rest[:n]
		}
		p.out = append(p.out, line...)
		rest, from, lineBegins = rest[len(line):], from+int64(len(line)), true
	}
	return from
}

// tellGap says in a line of its own what is not kept from a position on.
func (p *printer) tellGap(from int64) {
	midLine := len(p.out) > 0 && p.out[len(p.out)-1] != '\n'
	if p.view.Follow && len(p.out) == 0 && from > 0 {
		head := p.log.head
		midLine = from > int64(len(head)) || len(head) > 0 && head[len(head)-1] != '\n'
	}
	if midLine {
		p.out = append(p.out, '\n')
	}
	lines := p.log.gapLines
	if from > int64(len(p.log.head)) {
		lines = 0 // nobody has counted those from there on
	}
	p.out = append(p.out, gapLine(lines, p.log.tailBegins()-from)...)
}

// gapLine is the line that stands where a log has a gap.
func gapLine(lines, size int64) string {
	var parts []string
	if lines > 0 {
		parts = append(parts, counted(lines, "line"))
	}
	if size < 1<<10 {
		parts = append(parts, counted(size, "byte"))
	} else {
		parts = append(parts, grouped((size+1<<9)>>10)+" KB")
	}
	are := "are"
	if lines == 0 && size == 1 {
		are = "is"
	}
	return fmt.Sprintf("… %s %s not kept …\n", strings.Join(parts, ", "), are)
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes a number with a comma in front of each three digits.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// LastBytes is where the last bytes that are kept begin, at most so many: with a line, or within one that is longer, with a character.
func (l Log) LastBytes(n int) int64 {
	segment, begins := *l.last(), l.tailBegins()
	if l.gap == 0 {
		begins = 0
	}
	if n <= len(segment) || l.gap == 0 {
		return begins + int64(tailOf(segment, n))
	}
	if n -= len(segment); int64(n) <= l.gap {
		return int64(len(l.head))
	}
	return int64(tailOf(l.head, int(int64(n)-l.gap)))
}

func tailOf(text []byte, n int) int {
	at := len(text) - n
	if at <= 0 {
		return 0
	}
	if text[at-1] == '\n' {
		return at
	}
	if line := bytes.IndexByte(text[at:], '\n') + 1; line > 0 && at+line < len(text) {
		return at + line
	}
	for range utf8.UTFMax - 1 { // what is no text has no characters to look for
		if at == len(text) || utf8.RuneStart(text[at]) {
			break
		}
		at++
	}
	return at
}

// LastLines is where the last n lines begin.
func (l Log) LastLines(n int) int64 {
	if l.gap == 0 {
		at, _ := linesBack(l.head, n)
		return int64(at)
	}
	at, more := linesBack(l.tail, n)
	if at > 0 || more == 0 {
		return l.tailBegins() + int64(at)
	}
	between := l.gapLines
	if n := len(l.head); n > 0 && l.head[n-1] != '\n' {
		between-- // the first of these is the end of a line that begins in the head
	}
	if int64(more) <= between {
		return int64(len(l.head))
	}
	at, _ = linesBack(l.head, int(int64(more)-between))
	return int64(at)
}

// linesBack is where the last n lines of a text begin, and how many lines it has too few.
func linesBack(text []byte, n int) (at, more int) {
	end := len(bytes.TrimSuffix(text, []byte{'\n'}))
	if n <= 0 {
		return len(text), 0
	}
	for ; n > 0 && len(text) > 0; n-- {
		if at = bytes.LastIndexByte(text[:end], '\n') + 1; at == 0 {
			return 0, n - 1
		}
		end = at - 1
	}
	return at, n
}

// Since is where the first line begins that came at a time or later, or the end of the log. A log of which no times are known is shown whole.
func (l Log) Since(t time.Time) int64 {
	if len(l.marks) == 0 {
		return 0
	}
	i := sort.Search(len(l.marks), func(i int) bool { return !time.UnixMilli(l.marks[i].ms).Before(t) })
	if i == len(l.marks) {
		return l.Written()
	}
	if at := l.marks[i].at; at < int64(len(l.head)) || at >= l.tailBegins() {
		return at
	}
	return int64(len(l.head)) // others of these lines may have been late enough, too
}
