package takeover

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// Job is something that became a job.
type Job struct {
	Line int // of the text, from 1
	Name string
	Def  job.Definition
}

// Note is something that its owner should know.
type Note struct {
	Line int    // of the text, from 1
	Text string // what it is about: a line, shortened, or a name
	Why  string // what became of it, and why
	Lost bool   // it is a job that was not kept
}

// File is what a text says.
type File struct {
	Jobs  []Job
	Notes []Note
}

// Note adds a note about a text, which is shortened.
func (f *File) Note(line int, about string, lost bool, format string, args ...any) {
	f.Notes = append(f.Notes, Note{Line: line, Text: Shorten(about, 200), Why: fmt.Sprintf(format, args...), Lost: lost})
}

// Check tells whether the API would take the job, whatever queues the server has. The error joins one *invalid.Error for each
// field that is wrong.
func Check(name string, def job.Definition) error {
	_, err := def.WithDefaults().Validate(func(string) bool { return true })
	return errors.Join(job.ValidName(name), err)
}

// Reasons says in one line what is wrong with a job.
func Reasons(err error) string {
	var texts []string
	for _, e := range invalid.All(err) {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "; ")
}

// Shorten cuts a text to at most size bytes, never inside a character.
func Shorten(text string, size int) string {
	const mark = "…"
	if len(text) <= size {
		return text
	}
	end := size - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
