// Package invalid is the one form of "your input is wrong, and here is what would be right".
//
// Every validation in Belfry returns an *Error or several joined with errors.Join; the HTTP API turns them into the
// fields of a problem document and the command line into one line each. A field is named as the user wrote it, by its
// path in the JSON form: "schedule.cron", "retry.max_attempts", "target.http.headers".
package invalid

import (
	"errors"
	"fmt"
)

// Error is one field that cannot be accepted.
type Error struct {
	Field string // path in the JSON form, "" for the whole document
	Got   string // what was given, shortened; "" when it is absent
	Want  string // what would be right, as a phrase: "a duration such as \"90s\", at least 1s"
}

func (e *Error) Error() string {
	switch {
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
	return &Error{Field: field, Got: quote(got), Want: want}
}

// Missing reports a field that must be given.
func Missing(field, want string) error {
	return &Error{Field: field, Want: want}
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
		field := parent
		if e.Field != "" {
			field = parent + "." + e.Field
		}
		moved[i] = &Error{Field: field, Got: e.Got, Want: e.Want}
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

// longest is how much of a wrong value an error shows: enough to recognize it, too little to flood a log.
const longest = 80

func quote(got string) string {
	if len(got) > longest {
		got = got[:longest] + "…"
	}
	return fmt.Sprintf("%q", got)
}
