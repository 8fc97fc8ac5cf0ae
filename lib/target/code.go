package target

import (
	"errors"
	"regexp"
	"strings"
)

// This file has the codes of failures: what a workflow tells failures apart by. A code is read off the text of a Failure, which is stored, so it is the same for
// whoever reads it.

// CodeCrash is the code of an attempt that nobody reports on: its worker or its machine died, or its lease ran out.
const CodeCrash = "crash"

// CodePattern is what the code of a handler's failure looks like. With its kind it is short enough to stay in every record.
const CodePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,27}$`

// FunctionErrorPattern is what is taken for the type of a function's error.
const FunctionErrorPattern = `^[A-Za-z_][A-Za-z0-9_.$]{0,63}$`

var (
	codeShape     = regexp.MustCompile(CodePattern)
	functionShape = regexp.MustCompile(FunctionErrorPattern)
	kindShape     = regexp.MustCompile(`^[a-z][a-z_]{0,39}(:[A-Za-z0-9][A-Za-z0-9._-]{0,27})?$`)
)

// WithCode gives a handler's error a code, by which a catch of a workflow tells it from others as handler:CODE. code matches CodePattern; what does not is
// left out. WithCode(code, nil) is nil.
func WithCode(code string, err error) error {
	if err == nil || !codeShape.MatchString(code) {
		return err
	}
	return &coded{error: err, code: code}
}

type coded struct {
	error
	code string
}

func (c *coded) Unwrap() error { return c.error }

// codeIn is the code that a handler gave its error, "" for none; of several, wrapped in each other, the outermost.
func codeIn(err error) string {
	var c *coded
	if errors.As(err, &c) {
		return c.code
	}
	return ""
}

// CodeOf gives the code of a Failure by its text: its kind, and where more is known behind a colon what tells failures of that kind apart: http_status:503,
// exit:3, handler:CODE and function:TYPE. "" where the text is not that of a Failure.
func CodeOf(text string) string {
	kind, message, found := strings.Cut(text, ": ")
	if !found || !kindShape.MatchString(kind) {
		return ""
	}
	detail := ""
	switch kind {
	case KindHTTPStatus:
		detail = number(message, statusSaid, 3)
	case KindExit:
		detail = number(message, exitSaid, 3)
	case KindFunction:
		if name, _, named := strings.Cut(message, ": "); named && functionShape.MatchString(name) {
			detail = name
		}
	}
	if detail == "" {
		return kind
	}
	return kind + ":" + detail
}

// How the messages begin of failures that have a number.
const (
	statusSaid = "answered "
	exitSaid   = "exit code "
)

// number is the number of so many digits at most that follows a prefix, "" where none does.
func number(text, prefix string, most int) string {
	rest, found := strings.CutPrefix(text, prefix)
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if !found || digits > most || strings.HasPrefix(rest[digits:], cutMark) {
		return ""
	}
	return rest[:digits]
}

// cutMark ends a text of which only the beginning was kept.
const cutMark = "…"
