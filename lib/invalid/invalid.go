// Package invalid describes wrong input in one form: the field, what is wrong with it, and what would be right.
//
// Every validation in Belfry returns an *Error or several joined with errors.Join; the HTTP API turns them into the
// fields of a problem document and the command line into one line each. A field is named as the user wrote it, by its
// path in the JSON form: "schedule.cron", "retry.max_attempts", "target.http.headers".
package invalid

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Error is one field that cannot be accepted.
type Error struct {
	Field string // path in the JSON form, "" for the whole document
	Got   string // what was given, shortened; "" when it is absent
	Want  string // what would be right, as a phrase: "a duration such as \"90s\", at least 1s"
}

func (e *Error) Error() string {
	switch {
	case e.Field == "" && e.Got == "":
		return "want " + e.Want
	case e.Field == "":
		return fmt.Sprintf("got %s, want %s", e.Got, e.Want)
	case e.Got == "":
		return fmt.Sprintf("%s: want %s", e.Field, e.Want)
	default:
		return fmt.Sprintf("%s: got %s, want %s", e.Field, e.Got, e.Want)
	}
}

// Field reports that the field holds got where want would be right. got is quoted and cut to a readable length.
func Field(field, got, want string) error {
	return &Error{Field: cutTo(longestPath, field), Got: Quote(got), Want: want}
}

// Missing reports a field that must be given.
func Missing(field, want string) error {
	return &Error{Field: cutTo(longestPath, field), Want: want}
}

// Under puts every *Error in err below a parent field: Under("schedule", Field("cron", …)) names "schedule.cron".
// Errors of other kinds pass unchanged.
func Under(parent string, err error) error {
	if err == nil {
		return nil
	}
	all := All(err)
	if len(all) == 0 {
		return err
	}
	moved := make([]error, len(all))
	for i, e := range all {
		field := parent + e.Field
		if e.Field != "" && e.Field[0] != '[' {
			field = parent + "." + e.Field
		}
		moved[i] = &Error{Field: cutTo(longestPath, field), Got: e.Got, Want: e.Want}
	}
	return errors.Join(moved...)
}

// All lists the *Errors in err, in the order in which they were joined.
func All(err error) []*Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, All(e)...)
		}
		return all
	}
	var one *Error
	if errors.As(err, &one) {
		return []*Error{one}
	}
	return nil
}

// Most is how many wrong fields an answer names. Of the others it gives the number: nobody reads more, and a request must not
// make an answer many times its size.
const Most = 100

// First returns the first of the *Errors in err, at most most of them, and the number of the others.
func First(err error, most int) (first []*Error, more int) {
	all := All(err)
	if len(all) > most {
		return all[:most], len(all) - most
	}
	return all, 0
}

// longest is how many bytes of a wrong value or name an error shows: enough to recognize it, too little to flood a log.
// longestPath is the same for the path of a field.
const (
	longest     = 80
	longestPath = 400
)

// Quote returns a text in quotes, cut to a readable length.
func Quote(text string) string { return strconv.Quote(Cut(text)) }

// Cut returns a text cut to a readable length, between two characters.
func Cut(text string) string { return cutTo(longest, text) }

// CutPath returns the path of a field cut to a readable length.
func CutPath(path string) string { return cutTo(longestPath, path) }

func cutTo(most int, text string) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
