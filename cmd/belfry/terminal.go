package main

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/belfry-scheduler/belfry/lib/terminal"
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
	"failed": red, "dead": red, "FAILED": red, "lost": red, "refused": red, "expired": red, "revoked": red, "deleted": red, "differs": red, "bad": red,
	"unknown": purple,
	"running": blue, "queued": blue, "changed": blue, "applied": blue, "updated": blue,
	"retrying": yellow, "waiting": yellow, "suspended": yellow, "attention": yellow, "paused": yellow,
	"scheduled": faint, "skipped": faint, "cancelled": faint, "unchanged": faint,
}

func paint(text, colour string) string {
	if colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// messages is stderr for what people read there: texts of servers, files and errors are in it.
func (c *cli) messages() io.Writer { return terminal.Messages(c.stderr) }

// log is where what a target wrote is printed: on a terminal what can be read of it, else as it is. The log is over with end.
func (c *cli) log() (log io.Writer, end func() error) {
	if !isTerminal(c.stdout) {
		return c.stdout, func() error { return nil }
	}
	shown := terminal.NewLog(c.stdout)
	return shown, shown.End
}

// columnsOf is how many columns a text takes on a terminal.
func columnsOf(text string) int { return runewidth.StringWidth(text) }

// cutTo shortens a text to as many columns, and shows that it did.
func cutTo(text string, columns int) string { return runewidth.Truncate(text, columns, "…") }

// pad fills a text up to as many columns.
func pad(text string, columns int) string {
	return fmt.Sprintf("%s%*s", text, max(0, columns-columnsOf(text)), "")
}
