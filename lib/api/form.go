package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// form checks JSON against the schemas of the OpenAPI document. The framework's own check is not used: it takes keys in any
// letter case, null for whatever may be left out, and the last of two equal keys, so that a typing error would pass for a
// field that was never given.
//
// A check costs a few times the memory of its text, however wrong that is: what is right of it is copied once, and beyond invalid.Most wrong
// fields no more are put into words.
type form struct {
	registry  huma.Registry
	later     later
	ignored   ignored
	malformed []wire.FieldError // not what the schema says
	invalid   []wire.FieldError // as the schema says, but a format that it can only hint at does not hold
	more      int               // wrong fields beyond those
	unread    []string          // of those, the fields of which nothing can be read: missing, or not what they should be
}

// refuse names a field that has not the form. args are put into words only where the field is listed.
func (f *form) refuse(field, format string, args ...any) {
	f.unreadable(field)
	f.list(&f.malformed, field, format, args...)
}

// reject names a field whose form is right and whose value cannot be.
func (f *form) reject(field, format string, args ...any) {
	f.unreadable(field)
	f.list(&f.invalid, field, format, args...)
}

// surplus names a field that should not be there.
func (f *form) surplus(field, format string, args ...any) {
	f.list(&f.malformed, field, format, args...)
}

func (f *form) unreadable(field string) {
	if !f.full() {
		f.unread = append(f.unread, field)
	}
}

func (f *form) list(into *[]wire.FieldError, field, format string, args ...any) {
	if f.full() {
		f.more++
		return
	}
	*into = append(*into, wire.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f *form) full() bool { return len(f.malformed)+len(f.invalid) == invalid.Most }

// wrong is how many fields are.
func (f *form) wrong() int { return len(f.malformed) + len(f.invalid) + f.more }

// problem is nil when nothing was wrong.
func (f *form) problem() error {
	switch {
	case len(f.malformed) > 0:
		p := newProblem(codeMalformed, "The request does not have the form that /openapi.json describes.")
		p.Errors, p.MoreErrors = append(f.malformed, f.invalid...), f.more
		return p
	case len(f.invalid) > 0:
		return invalidProblem(f.invalid, f.more)
	}
	return nil
}

// body checks a whole document, and gives what is right of it, without blanks: so a payload is the same however often it is shown and sent
// back. It is nil where nothing is.
func (f *form) body(schema *huma.Schema, text []byte) []byte {
	if !json.Valid(text) {
		var document json.RawMessage
		err := json.Unmarshal(text, &document)
		f.refuse("", "want JSON in UTF-8: %s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	// In payloads, too: what is decoded anywhere on their way would be changed without a word.
	if broken := invalid.BrokenText(text); broken != nil {
		f.refuse(broken.Field, "got %s, want %s", broken.Got, broken.Want())
	}
	return f.value(schema, text, "")
}

// value is body for a text that is valid JSON.
func (f *form) value(schema *huma.Schema, text json.RawMessage, field string) []byte {
	r := &reading{form: f, text: text, at: between(text, 0)}
	if !r.check(schema, field) {
		return nil
	}
	return r.kept.Bytes()
}

// want, fieldsOf and quoting are put into words only where they are read.
type want struct{ schema *huma.Schema }

func (w want) String() string { return wantOf(w.schema) }

type fieldsOf struct{ schema *huma.Schema }

func (o fieldsOf) String() string { return listOf(slices.Sorted(maps.Keys(o.schema.Properties))) }

type listing []string

func (l listing) String() string { return listOf(l) }

type quoting string

func (q quoting) String() string { return invalid.Quote(string(q)) }

// under is the path of a name in an object. Where no more fields are listed nobody reads it.
func (f *form) under(field, key string) string {
	if f.full() {
		return ""
	}
	if key = invalid.Cut(key); field == "" {
		return key
	}
	return field + "." + key
}

// entry is the path of an entry of a list.
func (f *form) entry(field string, i int) string {
	if f.full() {
		return ""
	}
	return field + "[" + strconv.Itoa(i) + "]"
}

const (
	wantTime = `a time such as "2026-11-21T09:00:00Z" (RFC 3339), from 1970 on`
	anything = "any JSON"
)

// meaning says what the patterns of the document stand for.
var meaning = map[string]string{
	`^bytes=[0-9]{1,10}-[0-9]{0,10}$`: "a part such as bytes=0-524287, from the first byte to the last",
	durationPattern:                   `a duration such as "90s", "1h30m" or "30d"`,
	job.NamePattern:                   "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
	gatePattern:                       "the name of a gate, such as job:NAME for a job's own",
	runIDPattern:                      "a run's ID as Belfry gave it, job~time or job~time~random",
	workIDPattern:                     "a run's ID as Belfry gave it, job~time or job~time~random, or RUN/PATH of a workflow's step",
	stepPathPattern:                   "the path of a step: its name, behind those of the scopes around it and slashes, such as parts/load",
	urlPattern:                        "an absolute http or https URL, without blanks (%20 stands for one) and without a fragment (#…), which is never sent",
	arnPattern:                        "an ARN such as \"arn:aws:lambda:eu-west-1:123456789012:function:report\"",
	keyPattern:                        "1 to 255 visible ASCII characters",
	tokenPattern:                      "the ID of a token, 16 hex digits",
	workerPattern:                     "1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
	startPattern:                      "1 to 20 digits and small letters",
	codePattern:                       "1 to 28 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
	kindPattern:                       "one of those that docs/targets.md lists, such as \"exit\"",
	base64Pattern:                     "base64",
	labelPattern:                      "name=value",
	dayPattern:                        "a day such as 2026-03-29",
	containsPattern:                   "1 to 128 letters, digits, dots, underscores or hyphens",
}

// wantOf says in a phrase what the schema takes.
func wantOf(schema *huma.Schema) string {
	switch {
	case schema.Format == "date-time":
		return wantTime
	case len(schema.Enum) > 0:
		values := make([]string, len(schema.Enum))
		for i, value := range schema.Enum {
			values[i] = fmt.Sprint(value)
		}
		return "one of " + listOf(values)
	case meaning[schema.Pattern] != "":
		return meaning[schema.Pattern]
	case schema.Pattern != "":
		return "text that matches " + schema.Pattern
	case schema.Type == huma.TypeInteger || schema.Type == huma.TypeNumber:
		want := map[string]string{huma.TypeInteger: "a whole number", huma.TypeNumber: "a number"}[schema.Type]
		if schema.Minimum != nil {
			want += fmt.Sprintf(", at least %v", *schema.Minimum)
		}
		if schema.Maximum != nil {
			want += fmt.Sprintf(", at most %v", *schema.Maximum)
		}
		if hint, ok := schema.Extensions[besideZero].(string); ok {
			want += "; " + hint
		}
		return want
	case schema.Title != "":
		return schema.Title
	case schema.Type == "" && len(schema.OneOf) > 0:
		return schema.Description
	case schema.Ref != "" || schema.Type == huma.TypeObject:
		return "an object"
	case schema.Type == huma.TypeArray:
		return "an array"
	case schema.Type == huma.TypeBoolean:
		return "true or false"
	case schema.Type == huma.TypeString:
		return "text in quotes"
	}
	return anything
}

// kind is the schema type of valid JSON.
func kind(text json.RawMessage) string {
	switch text[0] {
	case '{':
		return huma.TypeObject
	case '[':
		return huma.TypeArray
	case '"':
		return huma.TypeString
	case 't', 'f':
		return huma.TypeBoolean
	case 'n':
		return "null"
	}
	return huma.TypeNumber
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "no fields"
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return names[0]
}

// shown is a text as a message quotes it.
func shown(text string) string { return invalid.Quote(text) }

// patterns holds the few patterns of the document, compiled.
var patterns sync.Map

func compiled(pattern string) *regexp.Regexp {
	if found, ok := patterns.Load(pattern); ok {
		return found.(*regexp.Regexp)
	}
	made := regexp.MustCompile(pattern)
	patterns.Store(pattern, made)
	return made
}
