package runlog

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// MaxBytes is how much of what one attempt writes can be kept.
const MaxBytes = 256 << 10

// headShare of the bytes that are kept is the beginning, a quarter: 64 KB of 256 KB. What begins an attempt is said soon, and why it
// failed stands at the end.
const headShare = 4

// bytesPerMark is for how many bytes there is room for one mark in time: of shorter lines that each come at a time of their own, less is kept.
const bytesPerMark = 8

// Keeper keeps the beginning and the end of what is written to it. It is safe for concurrent use. Its memory is bounded by what it is to keep:
// some more than that for the text, and at most twice as much for the times of lines.
type Keeper struct {
	now  func() time.Time
	most int

	mu      sync.Mutex
	head    segment
	closed  bool // the head has all that it will have
	tail    segment
	lost    int64 // bytes between head and tail
	breaks  int64 // of lines in them
	midLine bool  // what was written last did not end its line
	marked  bool
	latest  int64 // time of the newest mark, Unix ms: times of lines never go back
}

// segment is a stretch of a log.
type segment struct {
	text  []byte
	marks []mark
}

// mark says that the line which begins at a position came at a time, and those behind it up to the next mark.
type mark struct {
	at int64 // position in the log
	ms int64 // Unix ms
}

// NewKeeper keeps at most so many bytes, by a clock that tells when they came.
func NewKeeper(now func() time.Time, most int) *Keeper { return &Keeper{now: now, most: most} }

// pieceBytes is how much is taken at once: the tail holds no more beyond its bound than a quarter of it and a piece.
const pieceBytes = 16 << 10

// Write takes everything.
func (k *Keeper) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now().UnixMilli()
	for rest := p; len(rest) > 0; {
		piece := rest[:min(len(rest), pieceBytes)]
		rest = rest[len(piece):]
		k.take(piece, now)
	}
	return len(p), nil
}

func (k *Keeper) take(p []byte, now int64) {
	if !k.closed {
		room := k.headBytes() - len(k.head.text)
		fits := p[:min(len(p), room)]
		if len(k.head.marks) >= marksOf(k.headBytes()) {
			fits = nil
		}
		k.add(&k.head, fits, now)
		if p = p[len(fits):]; len(p) == 0 {
			return
		}
		k.closed = true
		whole := len(target.WholeText(k.head.text))
		k.tail.text = append(k.tail.text, k.head.text[whole:]...)
		k.head.text = k.head.text[:whole]
	}
	k.add(&k.tail, p, now)
	most := k.most - len(k.head.text)
	if len(k.tail.text) > most+most/4 || len(k.tail.marks) > marksOf(most)*5/4 {
		k.drop(k.surplus())
	}
}

func (k *Keeper) headBytes() int { return k.most / headShare }

// marksOf is how many marks may stand for so many bytes.
func marksOf(size int) int { return size/bytesPerMark + 2 }

// add puts what has come at the end of a segment.
func (k *Keeper) add(to *segment, p []byte, now int64) {
	if len(p) == 0 {
		return
	}
	begins := 0 // the first line that begins in p
	if k.midLine {
		begins = bytes.IndexByte(p, '\n') + 1
	}
	if (begins > 0 || !k.midLine) && begins < len(p) {
		if k.latest < now || !k.marked {
			k.latest, k.marked = now, true
			to.marks = append(to.marks, mark{k.written() + int64(begins), now})
		}
	}
	to.text = append(to.text, p...)
	k.midLine = p[len(p)-1] != '\n'
}

func (k *Keeper) written() int64 { return int64(len(k.head.text)) + k.lost + int64(len(k.tail.text)) }

// surplus is how much of the tail is over the bounds.
func (k *Keeper) surplus() int {
	most := k.most - len(k.head.text)
	over := max(0, len(k.tail.text)-most)
	if many := len(k.tail.marks) - marksOf(most); many > 0 {
		over = max(over, int(k.tail.marks[many].at-k.tailBegins()))
	}
	return over
}

func (k *Keeper) tailBegins() int64 { return int64(len(k.head.text)) + k.lost }

// drop lets go of the beginning of the tail, and of the marks that say nothing of what is left.
func (k *Keeper) drop(n int) {
	k.lost += int64(n)
	k.breaks += int64(bytes.Count(k.tail.text[:n], []byte{'\n'}))
	k.tail.text = append(k.tail.text[:0], k.tail.text[n:]...)
	k.tail.marks = append(k.tail.marks[:0], marksFrom(k.tail.marks, k.tailBegins())...)
}

// marksFrom are the marks of the line at a position and of those behind it.
func marksFrom(marks []mark, at int64) []mark {
	for len(marks) > 1 && marks[1].at <= at {
		marks = marks[1:]
	}
	return marks
}

// Log is a copy of what was written until now. Where more may come, it ends with the last whole character.
func (k *Keeper) Log(ended bool) Log {
	k.mu.Lock()
	defer k.mu.Unlock()
	over := k.surplus()
	l := Log{head: bytes.Clone(k.head.text), gap: k.lost + int64(over), gapLines: k.breaks + int64(bytes.Count(k.tail.text[:over], []byte{'\n'}))}
	tail := k.tail.text[over:]
	marks := marksFrom(k.tail.marks, k.tailBegins()+int64(over))
	if l.gap > 0 {
		torn := tornBytes(tail)
		l.gap += int64(torn)
		l.tail = bytes.Clone(tail[torn:])
	} else {
		l.head = append(l.head, tail...)
	}
	if last := l.last(); !ended {
		*last = target.WholeText(*last)
	}
	l.marks = slices.Concat(k.head.marks, marks)
	return l
}

// tornBytes is how many bytes at the beginning belong to a character whose beginning is missing.
func tornBytes(text []byte) int {
	n := 0
	for n < len(text) && n < 3 && text[n]&0xC0 == 0x80 {
		n++
	}
	if n == len(text) || text[n]&0xC0 == 0x80 {
		return 0 // no text, which has no characters to tear
	}
	return n
}
