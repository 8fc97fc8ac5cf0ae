package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// reading goes through valid JSON once, however deep that is, and checks each value where it meets it.
type reading struct {
	*form
	text json.RawMessage
	at   int
	kept bytes.Buffer // what is right of it: wrong members are left out, and wrong entries are null, so that the others keep their places
}

// check reads the value that stands here, and tells whether anything may be made of it.
func (r *reading) check(schema *huma.Schema, field string) bool {
	schema = r.resolved(schema)
	got := kind(r.text[r.at:])
	if schema.Type == "" && len(schema.OneOf) > 0 {
		return r.choose(schema, got, field)
	}
	if schema.Type == "" || schema.Nullable && got == "null" {
		_ = json.Compact(&r.kept, r.skip()) // valid
		return true
	}
	if got != schema.Type && !(got == huma.TypeNumber && schema.Type == huma.TypeInteger) {
		r.refuse(field, "got %s, want %s", got, wantInstead{r, schema, r.skip()})
		return false
	}
	switch schema.Type {
	case huma.TypeObject:
		return r.object(schema, field)
	case huma.TypeArray:
		return r.array(schema, field)
	}
	token := r.skip()
	wrong := r.wrong()
	switch schema.Type {
	case huma.TypeString:
		r.form.text(schema, token, field)
	case huma.TypeInteger, huma.TypeNumber:
		r.number(schema, string(token), field)
	}
	if r.wrong() > wrong {
		return false
	}
	r.kept.Write(token)
	return true
}

// wantInstead is what the schema takes in place of a value of another type: of a text where an object stands that needs one text and no more, this object.
type wantInstead struct {
	*reading
	schema *huma.Schema
	given  json.RawMessage
}

func (w wantInstead) String() string {
	text := want{w.schema}.String()
	if w.schema.Type != huma.TypeObject || w.schema.Title != "" || len(w.schema.Required) != 1 || kind(w.given) != huma.TypeString {
		return text
	}
	name := w.schema.Required[0]
	field, given := w.schema.Properties[name], textOf(w.given)
	if field == nil {
		return text
	}
	if field = w.resolved(field); field.Pattern == "" || !compiled(field.Pattern).MatchString(given) || field.MaxLength != nil && len(given) > *field.MaxLength {
		return text
	}
	return fmt.Sprintf("%s such as {%s: %s}", text, name, given)
}

// resolved is the schema that a reference leads to.
func (r *reading) resolved(schema *huma.Schema) *huma.Schema {
	for schema.Ref != "" {
		schema = r.registry.SchemaFromRef(schema.Ref)
	}
	return schema
}

// skip gives the value or name that stands here, and goes on behind it.
func (r *reading) skip() json.RawMessage {
	end := behind(r.text, r.at)
	skipped := r.text[r.at:end]
	r.at = end
	return skipped
}

// next goes to the next member or entry, or behind the end: then it is false.
func (r *reading) next() bool {
	r.at = between(r.text, r.at)
	if c := r.text[r.at]; c != '}' && c != ']' {
		return true
	}
	r.at++
	return false
}

// choose checks a value against the one alternative that has its type. Of objects it is the one that knows most of its fields, the first where several do.
func (r *reading) choose(schema *huma.Schema, got, field string) bool {
	var chosen *huma.Schema
	most := -1
	for _, alternative := range schema.OneOf {
		of := r.resolved(alternative)
		if of.Type != got {
			continue
		}
		if known := r.known(of); known > most {
			chosen, most = of, known
		}
	}
	if chosen != nil {
		wrong := r.wrong()
		return r.check(chosen, field) && r.wrong() == wrong // the parts of such a value make none without the others
	}
	r.skip()
	r.refuse(field, "got %s, want %s", got, want{schema})
	return false
}

// known counts the fields of the object that stands here which a schema knows. It is 0 for what is no object.
func (r *reading) known(schema *huma.Schema) (count int) {
	if r.text[r.at] != '{' {
		return 0
	}
	start := r.at
	for r.at++; r.next(); {
		if schema.Properties[textOf(r.skip())] != nil {
			count++
		}
		r.at = between(r.text, r.at)
		r.skip()
	}
	r.at = start
	return count
}

func (r *reading) object(schema *huma.Schema, field string) bool {
	seen := map[string]bool{} // of the names that the schema knows or leaves free
	free, _ := schema.AdditionalProperties.(*huma.Schema)
	overfull, postponed := false, false
	r.kept.WriteByte('{')
	first := r.kept.Len()
	for r.at++; r.next(); {
		name := r.skip()
		r.at = between(r.text, r.at)
		if overfull {
			r.skip()
			continue
		}
		key := textOf(name)
		property := schema.Properties[key]
		if property == nil {
			property = free
		}
		switch at := r.under(field, key); {
		case seen[key]:
			r.skip()
			r.surplus(at, "given twice")
		case property == nil && r.later.has(schema, key):
			r.skip()
			postponed = true
			r.surplus(at, "%s", r.later.says(schema, key))
		case property == nil && r.ignored.has(schema, key):
			seen[key] = true
			r.skip()
		case property == nil:
			r.skip()
			r.surplus(at, "unknown field; want %s", fieldsOf{schema})
		case free != nil && schema.MaxProperties != nil && len(seen) == *schema.MaxProperties:
			r.skip()
			r.refuse(field, "got more than %d names, want at most %d", *schema.MaxProperties, *schema.MaxProperties)
			overfull = true
		default:
			seen[key] = true
			mark := r.kept.Len()
			if mark > first {
				r.kept.WriteByte(',')
			}
			r.kept.Write(name)
			r.kept.WriteByte(':')
			if !r.check(property, at) {
				r.kept.Truncate(mark)
			}
		}
	}
	r.kept.WriteByte('}')
	for _, key := range schema.Required {
		if !seen[key] {
			r.refuse(r.under(field, key), "missing; want %s", want{schema.Properties[key]})
		}
	}
	if one := oneOf(schema); one != nil {
		given := slices.DeleteFunc(slices.Clone(one), func(key string) bool { return !seen[key] })
		if len(given) != 1 {
			for _, key := range one {
				r.unreadable(r.under(field, key))
			}
			if len(given) > 0 || !postponed {
				r.surplus(field, "want exactly one of %s", listOf(one))
			}
		} else {
			r.dependent(schema, seen, field)
		}
	}
	return !overfull
}

// dependent refuses what means nothing without another field, whatever its value: a zero too, which would be gone without a word.
func (r *reading) dependent(schema *huma.Schema, seen map[string]bool, field string) {
	for _, key := range slices.Sorted(maps.Keys(schema.DependentRequired)) {
		at := r.under(field, key)
		for _, other := range schema.DependentRequired[key] {
			if seen[key] && !seen[other] && !slices.Contains(r.unread, at) {
				r.reject(at, "want no %s without %q", key, other)
			}
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

func (r *reading) array(schema *huma.Schema, field string) bool {
	malformed, rejected, unread, more := len(r.malformed), len(r.invalid), len(r.unread), r.more
	count := 0
	r.kept.WriteByte('[')
	for r.at++; r.next(); count++ {
		if schema.MaxItems != nil && count >= *schema.MaxItems {
			r.skip()
			continue
		}
		if count > 0 {
			r.kept.WriteByte(',')
		}
		mark := r.kept.Len()
		if entry := r.entry(field, count); !r.check(schema.Items, entry) {
			r.unreadable(entry)
			r.kept.Truncate(mark)
			r.kept.WriteString("null")
		}
	}
	r.kept.WriteByte(']')
	if least := schema.MinItems; least != nil && count < *least {
		r.refuse(field, "got %d entries, want at least %d", count, *least)
	}
	if most := schema.MaxItems; most != nil && count > *most {
		// That there are too many says more than what is wrong with them.
		r.malformed, r.invalid, r.unread, r.more = r.malformed[:malformed], r.invalid[:rejected], r.unread[:unread], more
		r.refuse(field, "got %d entries, want at most %d", count, *most)
		return false
	}
	return true
}

func (f *form) text(schema *huma.Schema, quoted json.RawMessage, field string) {
	text := textOf(quoted)
	length := utf8.RuneCountInString(text)
	named := meaning[schema.Pattern] != "" && length > 0 // and that says more than a length would
	of, path, isStep := stepNamed(text)
	switch {
	case schema.Pattern == runIDPattern && isStep:
		f.refuse(field, "got %s, want the run's ID alone, %s. %s", quoting(text), quoting(of), stepRequests(of, path))
	case schema.MinLength != nil && length < *schema.MinLength && !named:
		f.refuse(field, "got %d characters, want at least %d", length, *schema.MinLength)
	case schema.MaxLength != nil && length > *schema.MaxLength:
		f.refuse(field, "got %d characters, want at most %d", length, *schema.MaxLength)
	case schema.Pattern == urlPattern && !compiled(urlPattern).MatchString(text):
		for _, e := range invalid.All(target.ValidURL(text)) {
			f.refuse(field, "%s", messageOf(e))
		}
	case f.later.has(schema, text):
		f.refuse(field, "got %s, which is not available yet; want %s", quoting(text), want{schema})
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
