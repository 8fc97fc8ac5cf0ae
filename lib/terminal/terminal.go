// Package terminal makes text of others harmless for whoever reads it at a terminal. Names, descriptions, errors, results and logs come
// from whoever writes jobs, and from what these call. Control characters in them could set a terminal's title, answer for its
// user, or write over what stands there, and marks of direction let a line read as something that it is not.
//
// There is one set of such characters (Acts), and three ways to treat them. Text for people shows � in their place (Line, Text). JSON and
// YAML escape them, so that what is read back is equal (Escape). What a program wrote keeps its lines and colours besides (Log).
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Acts tells whether a character does something where it should be shown: controls (C0, DEL and C1), marks and overrides of direction, and
// separators of lines.
func Acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// Line is a text as one line: white space of any kind is a space, and � stands for what acts, and for what is no UTF-8.
func Line(text string) string {
	return strings.Map(shown, strings.Join(strings.Fields(text), " "))
}

// Text is Line for a text that keeps its lines, tabs and spaces.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return shown(r)
	}, text)
}

func shown(r rune) rune {
	if Acts(r) {
		return unicode.ReplacementChar
	}
	return r
}

// Messages is a writer that writes each text as Text gives it. One write holds whole characters.
func Messages(to io.Writer) io.Writer { return messages{to} }

type messages struct{ to io.Writer }

func (m messages) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.to, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escape writes what acts as \uXXXX in a text of JSON, or one of YAML where such characters stand in double quotes alone. Those of ASCII but
// DEL are left: both forms have escaped them already, or they separate lines.
func Escape(text []byte) []byte {
	var out []byte
	from := 0
	for at := 0; at < len(text); {
		if text[at] < 0x7f {
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if Acts(r) {
			out = fmt.Appendf(append(out, text[from:at]...), `\u%04x`, r)
			from = at + size
		}
		at += size
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

// Escaped is a writer that writes each text as Escape gives it. One write holds whole characters.
func Escaped(to io.Writer) io.Writer { return escaped{to} }

type escaped struct{ to io.Writer }

func (e escaped) Write(p []byte) (int, error) {
	if _, err := e.to.Write(Escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
