package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// form checks JSON against the schemas of the OpenAPI document. The framework's own check is not used: it takes keys in any
// letter case, null for whatever may be left out, and the last of two equal keys, so that a typing error would pass for a
// field that was never given.
//
// A check costs a few times the memory of its text, however wrong that is: nothing is copied, and beyond invalid.Most wrong fields no
// more are put into words.
type form struct {
	registry  huma.Registry
	malformed []wire.FieldError // not what the schema says
	invalid   []wire.FieldError // as the schema says, but a format that it can only hint at does not hold
	more      int               // wrong fields beyond those
}

// refuse names a field that has not the form. args are put into words only where the field is listed.
func (f *form) refuse(field, format string, args ...any) {
	f.list(&f.malformed, field, format, args...)
}

// reject names a field whose form is right and whose value cannot be.
func (f *form) reject(field, format string, args ...any) {
	f.list(&f.invalid, field, format, args...)
}

func (f *form) list(into *[]wire.FieldError, field, format string, args ...any) {
	if f.full() {
		f.more++
		return
	}
	*into = append(*into, wire.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f *form) full() bool { return len(f.malformed)+len(f.invalid) == invalid.Most }

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

// body checks a whole document.
func (f *form) body(schema *huma.Schema, text []byte) {
	switch {
	case !utf8.Valid(text):
		f.refuse("", "want JSON in UTF-8")
	case !json.Valid(text):
		var document json.RawMessage
		err := json.Unmarshal(text, &document)
		f.refuse("", "want JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	default:
		f.check(schema, bytes.TrimSpace(text), "")
	}
}

func (f *form) check(schema *huma.Schema, text json.RawMessage, field string) {
	for schema.Ref != "" {
		schema = f.registry.SchemaFromRef(schema.Ref)
	}
	if schema.Type == "" && len(schema.OneOf) > 0 {
		f.choose(schema, text, field)
		return
	}
	if schema.Type == "" || schema.Nullable && string(text) == "null" {
		return
	}
	if got := kind(text); got != schema.Type && !(got == huma.TypeNumber && schema.Type == huma.TypeInteger) {
		f.refuse(field, "got %s, want %s", got, want{schema})
		return
	}
	switch schema.Type {
	case huma.TypeObject:
		f.object(schema, text, field)
	case huma.TypeArray:
		f.array(schema, text, field)
	case huma.TypeString:
		f.text(schema, text, field)
	case huma.TypeInteger, huma.TypeNumber:
		f.number(schema, string(text), field)
	}
}

// choose checks a value against the one alternative that has its type: the document has none that differ in less.
func (f *form) choose(schema *huma.Schema, text json.RawMessage, field string) {
	for _, alternative := range schema.OneOf {
		if alternative.Type == kind(text) {
			f.check(alternative, text, field)
			return
		}
	}
	f.refuse(field, "got %s, want %s", kind(text), want{schema})
}

func (f *form) object(schema *huma.Schema, text json.RawMessage, field string) {
	seen := map[string]bool{} // of the names that the schema knows or leaves free
	free, _ := schema.AdditionalProperties.(*huma.Schema)
	each(text, func(name, value json.RawMessage) bool {
		key := textOf(name)
		property := schema.Properties[key]
		if property == nil {
			property = free
		}
		switch at := f.under(field, key); {
		case seen[key]:
			f.refuse(at, "given twice")
		case property == nil:
			f.refuse(at, "unknown field; want %s", fieldsOf{schema})
		case free != nil && schema.MaxProperties != nil && len(seen) == *schema.MaxProperties:
			f.refuse(field, "got more than %d names, want at most %d", *schema.MaxProperties, *schema.MaxProperties)
			return false
		default:
			seen[key] = true
			f.check(property, value, at)
		}
		return true
	})
	for _, key := range schema.Required {
		if !seen[key] {
			f.refuse(f.under(field, key), "missing; want %s", want{schema.Properties[key]})
		}
	}
	if one := oneOf(schema); one != nil {
		given := slices.DeleteFunc(slices.Clone(one), func(key string) bool { return !seen[key] })
		if len(given) != 1 {
			f.refuse(field, "want exactly one of %s", listOf(one))
		}
	}
}

// oneOf lists the fields of which exactly one is to be given, nil for objects without such a rule.
func oneOf(schema *huma.Schema) []string {
	var keys []string
	for _, choice := range schema.OneOf {
		keys = append(keys, choice.Required...)
	}
	return keys
}

func (f *form) array(schema *huma.Schema, text json.RawMessage, field string) {
	count := 0
	each(text, func(_, _ json.RawMessage) bool { count++; return true })
	if least := schema.MinItems; least != nil && count < *least {
		f.refuse(field, "got %d entries, want at least %d", count, *least)
	}
	if most := schema.MaxItems; most != nil && count > *most {
		f.refuse(field, "got %d entries, want at most %d", count, *most)
		return
	}
	i := 0
	each(text, func(_, item json.RawMessage) bool {
		f.check(schema.Items, item, f.entry(field, i))
		i++
		return true
	})
}

func (f *form) text(schema *huma.Schema, quoted json.RawMessage, field string) {
	text := textOf(quoted)
	length := utf8.RuneCountInString(text)
	named := meaning[schema.Pattern] != "" && length > 0 // and that says more than a length would
	switch {
	case schema.MinLength != nil && length < *schema.MinLength && !named:
		f.refuse(field, "got %d characters, want at least %d", length, *schema.MinLength)
	case schema.MaxLength != nil && length > *schema.MaxLength:
		f.refuse(field, "got %d characters, want at most %d", length, *schema.MaxLength)
	case len(schema.Enum) > 0 && !slices.Contains(schema.Enum, any(text)),
		schema.Pattern != "" && !compiled(schema.Pattern).MatchString(text):
		f.refuse(field, "got %s, want %s", quoting(text), want{schema})
	case schema.Format == "date-time":
		var instant time.Time
		if instant.UnmarshalJSON(quoted) != nil || instant.Unix() < 0 { // the zero of a time is long before
			f.reject(field, "got %s, want %s", quoting(text), wantTime)
		}
	case schema.Pattern == durationPattern:
		d, err := schedule.ParseDuration(text)
		for _, e := range invalid.All(err) {
			f.reject(field, "%s", messageOf(e))
		}
		if err == nil && d == 0 && schema.Extensions[zeroAllowed] != true {
			f.reject(field, "got %s, want more than 0s, or the field left out", quoting(text))
		}
	}
}

func (f *form) number(schema *huma.Schema, text, field string) {
	value, err := strconv.ParseFloat(text, 64)
	if _, whole := strconv.ParseInt(text, 10, 64); schema.Type == huma.TypeInteger && whole != nil {
		if err == nil && value == math.Trunc(value) {
			f.reject(field, "got %.40s, want it without a fraction or exponent, and below 2^63", text)
			return
		}
		err = whole
	}
	if err != nil || schema.Minimum != nil && value < *schema.Minimum || schema.Maximum != nil && value > *schema.Maximum {
		f.refuse(field, "got %.40s, want %s", text, want{schema})
		return
	}
	if value == 0 && schema.Minimum == nil && schema.Extensions[zeroAllowed] != true {
		f.reject(field, "got %.40s, want another number than 0, or the field left out", text)
	}
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
	durationPattern: `a duration such as "90s", "1h30m" or "30d"`,
	job.NamePattern: "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
	runIDPattern:    "a run's ID as Belfry gave it, job~time or job~time~random",
	urlPattern:      "an absolute http or https URL, without blanks (%20 stands for one) and without a fragment (#…), which is never sent",
	arnPattern:      "an ARN such as \"arn:aws:lambda:eu-west-1:123456789012:function:report\"",
	keyPattern:      "1 to 255 visible ASCII characters",
	tokenPattern:    "the ID of a token, 16 hex digits",
	workerPattern:   "1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
	startPattern:    "1 to 20 digits and small letters",
	kindPattern:     "one of those that docs/targets.md lists, such as \"exit\"",
	base64Pattern:   "base64",
	labelPattern:    "name=value",
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
		return want
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
