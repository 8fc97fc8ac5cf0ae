package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// form reads what stands in a file into the types that the API reads, and is as strict as that: a field that is not known, a value of
// another kind, and a zero that would pass for a field left out, are refused. What is refused stays zero.
type form struct {
	mistakes []Mistake
	more     int      // beyond invalid.Most
	unread   []string // fields of which nothing can be judged any more

	paths  map[string]bool          // of the steps of the scenario's workflows, where an expectation names steps by them; nil where they are not known
	byPath map[*manifest.Value]bool // the parts of an expectation that do
}

func (f *form) refuse(v *manifest.Value, at, format string, args ...any) {
	f.unread = append(f.unread, at)
	f.tell(v.Line, at, fmt.Sprintf(format, args...))
}

func (f *form) tell(line int, at, message string) {
	if len(f.mistakes) == invalid.Most {
		f.more++
		return
	}
	f.mistakes = append(f.mistakes, Mistake{Line: line, Field: invalid.Cut(at), Message: message})
}

// kinds are what a type has in a file, for messages.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

func (f *form) value(v *manifest.Value, into reflect.Value, at string, tag reflect.StructTag) {
	switch own := into.Addr().Interface().(type) {
	case *json.RawMessage:
		*own = v.JSON()
		return
	case *time.Time, *schedule.Duration, *target.Value:
		f.scalar(v, into, at)
		return
	case *job.Overlap:
		if v.Kind == manifest.Object {
			f.value(v, reflect.ValueOf((*job.OverlapForm)(own)).Elem(), at, "")
		} else if err := own.UnmarshalJSON(v.JSON()); err != nil {
			f.refuse(v, at, "%v", err)
		}
		return
	case *job.OwnOverlap:
		if text := string(v.JSON()); text == "null" || text == `""` { // which would be taken for none
			f.refuse(v, at, `got %s, want the name of a policy, such as "skip", or {policy: skip}`, text)
		} else if v.Kind == manifest.Object {
			f.value(v, reflect.ValueOf((*job.OwnOverlapForm)(own)).Elem(), at, "")
		} else if err := own.UnmarshalJSON(v.JSON()); err != nil {
			f.refuse(v, at, "%v", err)
		}
		return
	case *job.GateUse:
		if v.Kind == manifest.Object {
			f.value(v, reflect.ValueOf((*job.GateUseForm)(own)).Elem(), at, "")
		} else if err := own.UnmarshalJSON(v.JSON()); err != nil {
			f.refuse(v, at, "got %s, %v", v.Kind, err)
		}
		return
	case *wire.ScenarioDefinition:
		own.Given = true
		fields := make([]string, len(v.Members))
		for i, m := range v.Members {
			fields[i] = m.Name
		}
		of := reflect.ValueOf(&own.Job)
		if wire.DefinesGate(fields) {
			of = reflect.ValueOf(&own.Gate)
		}
		f.value(v, of.Elem(), at, "")
		return
	case *wire.ScenarioOutcomes:
		switch v.Kind {
		case manifest.Array:
			f.value(v, reflect.ValueOf(&own.Else).Elem(), at, "")
		case manifest.Object:
			f.value(v, reflect.ValueOf((*wire.ScenarioChoice)(own)).Elem(), at, "")
		default:
			f.refuse(v, at, `got %s, want a list of outcomes, or an object such as {by: .payload.customer, is: {acme: [{takes: 1s}]}}`, v.Kind)
		}
		return
	}
	if into.Kind() == reflect.Pointer {
		if v.Kind == manifest.Null {
			return // as what it is without the field
		}
		made := reflect.New(into.Type().Elem())
		before := len(f.unread)
		f.value(v, made.Elem(), at, tag)
		if len(f.unread) == before || made.Elem().Kind() == reflect.Struct {
			into.Set(made)
		}
		return
	}
	f.plain(v, into, at, tag)
}

// plain reads a value of a type that says by itself how it stands in JSON.
func (f *form) plain(v *manifest.Value, into reflect.Value, at string, tag reflect.StructTag) {
	wanted := map[reflect.Kind]manifest.Kind{reflect.Bool: manifest.Bool, reflect.Int: manifest.Number, reflect.Int64: manifest.Number,
		reflect.Float64: manifest.Number, reflect.String: manifest.Text, reflect.Slice: manifest.Array, reflect.Map: manifest.Object, reflect.Struct: manifest.Object}
	if v.Kind != wanted[into.Kind()] {
		f.refuse(v, at, "got %s, want %s", v.Kind, kindOf(into.Type()))
		return
	}
	switch into.Kind() {
	case reflect.Bool:
		into.SetBool(v.Scalar == "true")
	case reflect.String:
		f.text(v, into, at, tag)
	case reflect.Int, reflect.Int64, reflect.Float64:
		f.number(v, into, at, tag)
	case reflect.Slice:
		f.list(v, into, at, tag)
	case reflect.Map:
		f.names(v, into, at)
	case reflect.Struct:
		f.object(v, into, at)
	}
}

func (f *form) scalar(v *manifest.Value, into reflect.Value, at string) {
	switch own := into.Addr().Interface().(type) {
	case *time.Time:
		if v.Kind != manifest.Text || own.UnmarshalJSON(v.JSON()) != nil || own.Unix() < 0 {
			*own = time.Time{}
			f.refuse(v, at, "got %s, want a time such as \"2026-01-05T00:00:00Z\" (RFC 3339), from 1970 on", shown(v))
		}
	case *schedule.Duration:
		err := own.UnmarshalJSON(v.JSON())
		if v.Kind != manifest.Text {
			err = invalid.Missing("", `a duration such as "90s", "5m", "1h30m" or "30d"`)
		}
		var wrong *invalid.Error
		switch {
		case errors.As(err, &wrong):
			f.refuse(v, at, "got %s, want %s", shown(v), wrong.Want)
		case *own == 0 && !zeroDuration[at[strings.LastIndexByte(at, '.')+1:]]:
			f.refuse(v, at, "got %s, want more than 0s, or the field left out", shown(v))
		}
	case *target.Value:
		if err := own.UnmarshalJSON(v.JSON()); err != nil {
			f.refuse(v, at, "got %s, %v", shown(v), err)
		}
	}
}

// zeroDuration has the fields in which 0s is a duration like any other, and not what passes for the default.
var zeroDuration = map[string]bool{"phase": true, "jitter": true, "delay": true, "takes": true, "stops_after": true}

// shown is a value in a message.
func shown(v *manifest.Value) string {
	if v.Kind == manifest.Array || v.Kind == manifest.Object {
		return v.Kind.String()
	}
	if v.Kind == manifest.Text {
		return invalid.Quote(v.Scalar)
	}
	return invalid.Cut(string(v.JSON()))
}

// patterns are those of the tags.
var patterns = map[string]struct {
	is   *regexp.Regexp
	want string
}{
	job.NamePattern: {regexp.MustCompile(job.NamePattern), "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit"},
}

func (f *form) text(v *manifest.Value, into reflect.Value, at string, tag reflect.StructTag) {
	most, _ := strconv.Atoi(tag.Get("maxLength"))
	choices := strings.Split(tag.Get("enum"), ",")
	pattern, named := patterns[tag.Get("pattern")]
	switch {
	case tag.Get("enum") != "" && !slices.Contains(choices, v.Scalar):
		if tag.Get("json") == "do" && slices.Contains(wire.ScenarioActionsToCome, v.Scalar) {
			f.refuse(v, at, "%s is not built yet; want %s", v.Scalar, anyOf(choices))
			return
		}
		f.refuse(v, at, "got %s, want %s%s", invalid.Quote(v.Scalar), anyOf(choices), meant(v.Scalar, choices))
	case named && !pattern.is.MatchString(v.Scalar):
		f.refuse(v, at, "got %s, want %s", invalid.Quote(v.Scalar), pattern.want)
	case most > 0 && utf8.RuneCountInString(v.Scalar) > most:
		f.refuse(v, at, "got %d characters, want at most %d", utf8.RuneCountInString(v.Scalar), most)
	case v.Scalar == "" && (tag.Get("minLength") != "" || emptyRefused(tag)):
		f.refuse(v, at, "got empty text, want something, or the field left out")
	default:
		into.SetString(v.Scalar)
	}
}

// emptyRefused tells whether an empty text would pass for a field left out, whose default may be something.
func emptyRefused(tag reflect.StructTag) bool {
	name, rest, _ := strings.Cut(tag.Get("json"), ",")
	return strings.Contains(rest, "omitempty") && name != "description" && name != "reason"
}

func (f *form) number(v *manifest.Value, into reflect.Value, at string, tag reflect.StructTag) {
	value, err := strconv.ParseFloat(v.Scalar, 64)
	whole := int64(0)
	if into.CanInt() {
		whole, err = strconv.ParseInt(v.Scalar, 10, 64)
		value = float64(whole)
	}
	want := kindOf(into.Type())
	least, errLeast := strconv.ParseFloat(tag.Get("minimum"), 64)
	most, errMost := strconv.ParseFloat(tag.Get("maximum"), 64)
	switch {
	case errLeast == nil && errMost == nil:
		want += fmt.Sprintf(" from %g to %.0f", least, most)
	case errLeast == nil:
		want += fmt.Sprintf(", at least %g", least)
	}
	switch {
	case err != nil, errLeast == nil && value < least, errMost == nil && value > most:
		f.refuse(v, at, "got %s, want %s", shown(v), want)
	case value == 0 && errLeast != nil && tag.Get("json") != "":
		f.refuse(v, at, "got %s, want another number than 0, or the field left out", shown(v))
	case into.CanInt():
		into.SetInt(whole)
	default:
		into.SetFloat(value)
	}
}

func (f *form) list(v *manifest.Value, into reflect.Value, at string, tag reflect.StructTag) {
	if most, err := strconv.Atoi(tag.Get("maxItems")); err == nil && len(v.Items) > most {
		f.refuse(v, at, "got %d entries, want at most %d", len(v.Items), most)
		return
	}
	if least, err := strconv.Atoi(tag.Get("minItems")); err == nil && len(v.Items) < least {
		f.refuse(v, at, "got %d entries, want at least %d", len(v.Items), least)
		into.Set(reflect.MakeSlice(into.Type(), 0, 0)) // given, though refused
		return
	}
	made := reflect.MakeSlice(into.Type(), len(v.Items), len(v.Items))
	for i, item := range v.Items {
		f.value(item, made.Index(i), fmt.Sprintf("%s[%d]", at, i), "")
	}
	into.Set(made)
}

func (f *form) names(v *manifest.Value, into reflect.Value, at string) {
	made := reflect.MakeMapWithSize(into.Type(), len(v.Members))
	for _, m := range v.Members {
		value := reflect.New(into.Type().Elem()).Elem()
		f.value(m.Value, value, below(at, m.Name), "")
		made.SetMapIndex(reflect.ValueOf(m.Name), value)
	}
	into.Set(made)
}

func below(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// toCome are the fields of a later version, by the type that is without them. Those that the API has, its own tables name too.
var toCome = map[reflect.Type][]string{
	reflect.TypeFor[wire.Scenario]():        wire.ScenarioFieldsToCome["Scenario"],
	reflect.TypeFor[wire.ScenarioOutcome](): wire.ScenarioFieldsToCome["ScenarioOutcome"],
	reflect.TypeFor[wire.ScenarioTrigger](): wire.ScenarioFieldsToCome["ScenarioTrigger"],
	reflect.TypeFor[wire.ScenarioLine]():    wire.ScenarioFieldsToCome["ScenarioLine"],
	reflect.TypeFor[wire.Job]():             {"deadline", "unique", "order_by"},
	reflect.TypeFor[wire.GateDefinition]():  {"rate", "fair_by", "weights", "while_retrying", "open", "breaker", "pool", "key"},
	reflect.TypeFor[schedule.Spec]():        {"exclude", "only"},
	reflect.TypeFor[target.Spec]():          {"callback"},
}

func (f *form) object(v *manifest.Value, into reflect.Value, at string) {
	fields := fieldsOf(into.Type())
	given := map[string]bool{}
	for _, m := range v.Members {
		where := below(at, m.Name)
		field, ok := fields[m.Name]
		if !ok {
			f.unknown(m, into.Type(), at)
			continue
		}
		given[m.Name] = true
		f.value(m.Value, into.FieldByIndex(field.Index), where, field.Tag)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !optional(fields[name]) && !given[name] && !slices.Contains(f.unread, below(at, name)) {
			f.unread = append(f.unread, below(at, name))
			f.tell(v.Line, below(at, name), "missing")
		}
	}
}

// unknown refuses a member that no field is for.
func (f *form) unknown(m manifest.Member, of reflect.Type, at string) {
	where := below(at, m.Name)
	f.unread = append(f.unread, where)
	if slices.Contains(toCome[of], m.Name) {
		f.tell(m.Line, where, "not built yet; leave it out")
		return
	}
	names := slices.Sorted(maps.Keys(fieldsOf(of)))
	if near := invalid.Nearest(m.Name, names); near != "" {
		f.unread = append(f.unread, below(at, near)) // which is not also missing
		f.tell(m.Line, where, fmt.Sprintf("unknown field; did you mean %q?", near))
		return
	}
	f.tell(m.Line, where, "unknown field; want "+anyOf(names))
}

// fieldsOf are the fields of a struct by their names in JSON, with those of structs that are embedded.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = field
		}
	}
	return fields
}

func optional(field reflect.StructField) bool {
	_, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
	return rest != ""
}

// clouded tells whether a field cannot be judged, since it, or something around or in it, was refused already.
func (f *form) clouded(field string) bool {
	return slices.ContainsFunc(f.unread, func(unread string) bool {
		return unread == "" || field == unread || within(field, unread) || within(unread, field) || wire.JudgedInScenario(field, unread)
	})
}

func within(field, other string) bool {
	return other != "" && strings.HasPrefix(field, other) && (field[len(other)] == '.' || field[len(other)] == '[')
}
