package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// isTerminal tells whether text goes to a person.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// dumb is a terminal that knows no escape sequences.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// widthOf is the columns of the terminal behind out, 0 for no bound.
func widthOf(out io.Writer) int {
	if !isTerminal(out) {
		return 0
	}
	width, _, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}

// coloured decides on colours: always and never are as they say; auto is a terminal that nobody asked to stay plain.
func coloured(choice string, out io.Writer) (bool, error) {
	switch choice {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return isTerminal(out) && !dumb() && os.Getenv("NO_COLOR") == "", nil
	}
	return false, misused("--color %q: want auto, always or never", choice)
}

// Colours, as SGR parameters of the eight that every terminal lets its user choose.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	purple = "35"
	faint  = "2"
	bold   = "1"
)

// colours of the words that states and results are told by. What is not here stays plain.
var colours = map[string]string{
	"succeeded": green, "ok": green, "created": green, "ready": green, "active": green,
	"failed": red, "dead": red, "FAILED": red, "lost": red, "refused": red, "expired": red, "revoked": red, "deleted": red,
	"unknown": purple,
	"running": blue, "queued": blue, "changed": blue, "applied": blue, "updated": blue,
	"retrying": yellow, "attention": yellow, "paused": yellow,
	"scheduled": faint, "skipped": faint, "cancelled": faint, "unchanged": faint,
}

func paint(text, colour string) string {
	if colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// printable is a text of somebody else's as one line that moves no cursor and turns no text round.
func printable(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// writeLog prints what a target wrote: on a terminal what can be read of it, else as it is.
func (c *cli) writeLog(text []byte) error {
	if isTerminal(c.stdout) {
		text = harmless(text)
	}
	_, err := c.stdout.Write(text)
	return err
}

// sgr is a change of colour.
var sgr = regexp.MustCompile(`^\x1b\[[0-9;:]*m`)

// harmless leaves lines and colours of a log, and shows what else would do something to a terminal: set its title, answer for
// the user, write over what stands there. What is no UTF-8 stays: it may be half of a letter.
func harmless(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if colour := sgr.Find(text); colour != nil {
			size = len(colour)
		} else if (unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r)) || unicode.Is(unicode.Bidi_Control, r) {
			out, text = utf8.AppendRune(out, unicode.ReplacementChar), text[size:]
			continue
		}
		out, text = append(out, text[:size]...), text[size:]
	}
	return out
}

// columnsOf is how many columns a text takes on a terminal.
func columnsOf(text string) int { return runewidth.StringWidth(text) }

// cutTo shortens a text to as many columns, and shows that it did.
func cutTo(text string, columns int) string { return runewidth.Truncate(text, columns, "…") }

// pad fills a text up to as many columns.
func pad(text string, columns int) string {
	return fmt.Sprintf("%s%*s", text, max(0, columns-columnsOf(text)), "")
}
