package flow

import (
	"errors"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// report collects what is wrong with a definition.
type report struct {
	wrong []error
	forms int // of these, how many Schema finds too
}

// add reports a field whose form is right and whose value cannot be. got is shown as it is.
func (r *report) add(at, got, want string) {
	e := invalid.Missing(at, want)
	var one *invalid.Error
	if errors.As(e, &one) {
		one.Got = got
	}
	r.wrong = append(r.wrong, e)
}

// form reports a field that has not the form that Schema describes.
func (r *report) form(at, got, want string) {
	r.forms++
	r.add(at, got, want)
}

func (r *report) count() int { return len(r.wrong) }

// err joins all that was reported.
func (r *report) err() error { return errors.Join(r.wrong...) }

// guess says which of the names may have been meant, in words to put behind others; "" where none is near. Behind the errors that anybody
// reads no more is guessed: it takes a while.
func (r *report) guess(name string, among []string) string {
	if r.count() >= invalid.Most {
		return ""
	}
	if near := nearest(name, among); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

// notBuilt says that something is still to come.
func notBuilt(what string) string { return what + " are not built yet" }
