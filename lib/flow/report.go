package flow

import (
	"errors"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// report collects what is wrong with a definition.
type report struct {
	wrong []*invalid.Error
	forms int // of these, how many Schema finds too
}

// add reports a field whose form is right and whose value cannot be. got is shown as it is.
func (r *report) add(at, got, want string) {
	r.wrong = append(r.wrong, &invalid.Error{Field: invalid.CutPath(at), Got: got, Want: want})
}

// form reports a field that has not the form that Schema describes.
func (r *report) form(at, got, want string) {
	r.forms++
	r.add(at, got, want)
}

func (r *report) count() int { return len(r.wrong) }

// err joins all that was reported.
func (r *report) err() error {
	all := make([]error, len(r.wrong))
	for i, e := range r.wrong {
		all[i] = e
	}
	return errors.Join(all...)
}

// guess says which of the names may have been meant, in words to put behind others; "" where none is near. Behind the errors that anybody
// reads no more is guessed: it takes a while.
func (r *report) guess(name string, among []string) string {
	if r.count() >= invalid.Most {
		return ""
	}
	if near := invalid.Nearest(name, among); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

// notBuilt says that something is still to come.
func notBuilt(what string) string { return what + " are not built yet" }
