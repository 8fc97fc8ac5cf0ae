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
type form struct {
	registry  huma.Registry
	malformed []wire.FieldError // not what the schema says
	invalid   []wire.FieldError // as the schema says, but a format that it can only hint at does not hold
}

func (f *form) refuse(field, message string) {
	f.malformed = append(f.malformed, wire.FieldError{Field: field, Message: message})
}

// problem is nil when nothing was wrong.
func (f *form) problem() error {
	switch {
	case len(f.malformed) > 0:
		p := newProblem(codeMalformed, "The request does not have the form that /openapi.json describes.")
		p.Errors = append(f.malformed, f.invalid...)
		return p
	case len(f.invalid) > 0:
		return invalidProblem(f.invalid)
	}
	return nil
}

// body checks a whole document.
func (f *form) body(schema *huma.Schema, text []byte) {
	var document json.RawMessage
	if !utf8.Valid(text) {
		f.refuse("", "want JSON in UTF-8")
	} else if err := json.Unmarshal(text, &document); err != nil {
		f.refuse("", "want JSON: "+strings.TrimPrefix(err.Error(), "json: "))
	} else {
		f.check(schema, document, "")
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
		f.refuse(field, fmt.Sprintf("got %s, want %s", got, wantOf(schema)))
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
	f.refuse(field, fmt.Sprintf("got %s, want %s", kind(text), wantOf(schema)))
}

func (f *form) object(schema *huma.Schema, text json.RawMessage, field string) {
	in := json.NewDecoder(bytes.NewReader(text))
	_, _ = in.Token() // the text is a valid object: no step of this loop can fail
	seen := map[string]bool{}
	for in.More() {
		token, _ := in.Token()
		var value json.RawMessage
		_ = in.Decode(&value)
		key := token.(string)
		at := under(field, key)
		property := schema.Properties[key]
		if free, ok := schema.AdditionalProperties.(*huma.Schema); ok && property == nil {
			property = free
		}
		switch {
		case seen[key]:
			f.refuse(at, "given twice")
		case property == nil:
			f.refuse(at, "unknown field; want "+listOf(slices.Sorted(maps.Keys(schema.Properties))))
		default:
			f.check(property, bytes.TrimSpace(value), at)
		}
		seen[key] = true
	}
	for _, key := range schema.Required {
		if !seen[key] {
			f.refuse(under(field, key), "missing; want "+wantOf(schema.Properties[key]))
		}
	}
	if one := oneOf(schema); one != nil {
		given := slices.DeleteFunc(slices.Clone(one), func(key string) bool { return !seen[key] })
		if len(given) != 1 {
			f.refuse(field, fmt.Sprintf("want exactly one of %s", listOf(one)))
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
	var items []json.RawMessage
	_ = json.Unmarshal(text, &items) // a valid array
	if least := schema.MinItems; least != nil && len(items) < *least {
		f.refuse(field, fmt.Sprintf("got %d entries, want at least %d", len(items), *least))
	}
	if most := schema.MaxItems; most != nil && len(items) > *most {
		f.refuse(field, fmt.Sprintf("got %d entries, want at most %d", len(items), *most))
		return
	}
	for i, item := range items {
		f.check(schema.Items, item, fmt.Sprintf("%s[%d]", field, i))
	}
}

func (f *form) text(schema *huma.Schema, quoted json.RawMessage, field string) {
	var text string
	_ = json.Unmarshal(quoted, &text) // a valid string
	length := utf8.RuneCountInString(text)
	named := meaning[schema.Pattern] != "" && length > 0 // and that says more than a length would
	switch {
	case schema.MinLength != nil && length < *schema.MinLength && !named:
		f.refuse(field, fmt.Sprintf("got %d characters, want at least %d", length, *schema.MinLength))
	case schema.MaxLength != nil && length > *schema.MaxLength:
		f.refuse(field, fmt.Sprintf("got %d characters, want at most %d", length, *schema.MaxLength))
	case len(schema.Enum) > 0 && !slices.Contains(schema.Enum, any(text)),
		schema.Pattern != "" && !compiled(schema.Pattern).MatchString(text):
		f.refuse(field, fmt.Sprintf("got %s, want %s", shown(text), wantOf(schema)))
	case schema.Format == "date-time":
		var instant time.Time
		if instant.UnmarshalJSON(quoted) != nil {
			f.invalid = append(f.invalid, wire.FieldError{Field: field, Message: fmt.Sprintf("got %s, want %s", shown(text), wantTime)})
		}
	case schema.Pattern == durationPattern:
		if _, err := schedule.ParseDuration(text); err != nil {
			f.invalid = append(f.invalid, fieldErrors(invalid.Under(field, err))...)
		}
	}
}

func (f *form) number(schema *huma.Schema, text, field string) {
	value, err := strconv.ParseFloat(text, 64)
	if _, whole := strconv.ParseInt(text, 10, 64); schema.Type == huma.TypeInteger && whole != nil {
		if err == nil && value == math.Trunc(value) {
			f.invalid = append(f.invalid, wire.FieldError{Field: field, Message: fmt.Sprintf("got %.40s, want it without a fraction or exponent, and below 2^63", text)})
			return
		}
		err = whole
	}
	if err != nil || schema.Minimum != nil && value < *schema.Minimum || schema.Maximum != nil && value > *schema.Maximum {
		f.refuse(field, fmt.Sprintf("got %.40s, want %s", text, wantOf(schema)))
	}
}

const (
	wantTime = `a time such as "2026-11-21T09:00:00Z" (RFC 3339)`
	anything = "any JSON"
)

// meaning says what the patterns of the document stand for.
var meaning = map[string]string{
	durationPattern: `a duration such as "90s", "1h30m" or "30d"`,
	job.NamePattern: "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
	runIDPattern:    "a run's ID as Belfry gave it, job~time or job~time~random",
	urlPattern:      "an absolute http or https URL",
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

func under(field, key string) string {
	if len(key) > longestShown {
		key = key[:longestShown] + "…"
	}
	if field == "" {
		return key
	}
	return field + "." + key
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

const longestShown = 80

func shown(text string) string {
	if len(text) > longestShown {
		text = text[:longestShown] + "…"
	}
	return strconv.Quote(text)
}

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
