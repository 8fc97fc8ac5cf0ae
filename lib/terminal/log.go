package terminal

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Log writes to a terminal what a program wrote, in parts that may end anywhere. Lines, tabs, returns and colours stay; � stands for
// whatever else acts, and for what is no UTF-8: its bytes could be controls where a terminal speaks another code. Colours end with
// their line, and with each part, so that nothing after it has them.
type Log struct {
	out  io.Writer
	rest []byte // a character or a colour that has begun
}

// NewLog makes a Log.
func NewLog(out io.Writer) *Log { return &Log{out: out} }

var (
	colour = regexp.MustCompile(`^\x1b\[[0-9;:]*m`)
	begun  = regexp.MustCompile(`^\x1b(\[[0-9;:]*)?$`)
	plain  = regexp.MustCompile(`^\x1b\[0*m$`)
)

const (
	reset       = "\x1b[0m"
	mostOfBegun = 64 // bytes of a colour that has begun; no real one is longer
)

// Write writes a part.
func (l *Log) Write(part []byte) (int, error) {
	text := append(l.rest, part...)
	l.rest = nil
	var out bytes.Buffer
	dressed := false
	undress := func() {
		if dressed {
			out.WriteString(reset)
			dressed = false
		}
	}
	for len(text) > 0 {
		if !utf8.FullRune(text) || len(text) < mostOfBegun && begun.Match(text) {
			l.rest = text
			break
		}
		r, size := utf8.DecodeRune(text)
		switch found := colour.Find(text); {
		case found != nil:
			size = len(found)
			out.Write(found)
			dressed = !plain.Match(found)
		case r == '\n':
			undress()
			out.WriteByte('\n')
		case Acts(r) && !strings.ContainsRune("\r\t", r), r == utf8.RuneError:
			out.WriteRune(unicode.ReplacementChar)
		default:
			out.Write(text[:size])
		}
		text = text[size:]
	}
	undress()
	if _, err := l.out.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(part), nil
}

// End writes what has begun and will not go on.
func (l *Log) End() error {
	rest := l.rest
	l.rest = nil
	if len(rest) == 0 {
		return nil
	}
	_, err := io.WriteString(l.out, Text(string(rest)))
	return err
}
