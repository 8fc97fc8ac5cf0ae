package record

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Explain shows a stored record for people, as what JSON can hold. like is a value of the struct that the record is written
// from: fields have the names that its JSON has, else those of Go in snake case, and a type with a String method shows its
// text. An int64 that can be Unix ms since 1973 is shown as "TIME (MS)". A field that like does not have keeps its number as
// its name, and a value that does not fit its field is shown as it is stored. A nil like names nothing.
//
// The errors are those of Decode: a record of a newer format is not guessed at.
func Explain(stored []byte, like any) (map[string]any, error) {
	var tree map[any]any
	if err := Decode(stored, &tree); err != nil {
		return nil, err
	}
	return explainMap(tree, reflect.TypeOf(like)), nil
}

// explain shows a decoded value that stands in a field of type t; nil for one that is not known.
func explain(v any, t reflect.Type) any {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case map[any]any:
		return explainMap(v, t)
	case []any:
		var element reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			element = t.Elem()
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = explain(v[i], element)
		}
		return out
	case []byte:
		if text, ok := explainBytes(v, t); ok {
			return text
		}
		switch {
		case json.Valid(v):
			return json.RawMessage(v)
		case utf8.Valid(v):
			return string(v)
		}
	case uint64, int64:
		if t != nil {
			return explainNumber(v, t)
		}
	}
	return v
}

func explainMap(tree map[any]any, t reflect.Type) map[string]any {
	known := map[string]reflect.StructField{}
	var element reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Struct:
		known = fieldsOf(t)
	case t.Kind() == reflect.Map:
		element = t.Elem()
	}
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		name, as := fmt.Sprint(key), element
		if field, ok := known[name]; ok {
			name, as = nameOf(field), field.Type
		}
		out[name] = explain(value, as)
	}
	return out
}

// fieldsOf gives the fields of a struct by their numbers in a record.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for field := range t.Fields() {
		number, options, _ := strings.Cut(field.Tag.Get("cbor"), ",")
		if strings.Contains(options, "keyasint") {
			fields[number] = field
		}
	}
	return fields
}

func nameOf(field reflect.StructField) string {
	if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
		return name
	}
	var name strings.Builder
	for i, letter := range field.Name {
		if unicode.IsUpper(letter) && i > 0 {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToLower(letter))
	}
	return name.String()
}

// explainBytes is the text of a type that is stored as bytes of its own.
func explainBytes(stored []byte, t reflect.Type) (string, bool) {
	if t == nil {
		return "", false
	}
	field := reflect.New(t)
	from, ok := field.Interface().(encoding.BinaryUnmarshaler)
	if !ok || from.UnmarshalBinary(stored) != nil {
		return "", false
	}
	named, ok := field.Elem().Interface().(fmt.Stringer)
	if !ok {
		return "", false
	}
	return named.String(), true
}

// The numbers that are taken for Unix ms: from 1973 to the year 9999. The other int64 of records are generations, which are
// instants too, moved on where two edits meet.
const earliest, latest = 100_000_000_000, 253_402_300_799_999

func explainNumber(v any, t reflect.Type) any {
	field := reflect.New(t).Elem()
	digits := fmt.Sprint(v)
	switch {
	case field.CanInt():
		n, err := strconv.ParseInt(digits, 10, t.Bits())
		if err != nil {
			return v
		}
		field.SetInt(n)
		if t == reflect.TypeFor[int64]() && n >= earliest && n <= latest {
			return fmt.Sprintf("%s (%d)", time.UnixMilli(n).UTC().Format("2006-01-02T15:04:05.000Z07:00"), n)
		}
	case field.CanUint():
		n, err := strconv.ParseUint(digits, 10, t.Bits())
		if err != nil {
			return v
		}
		field.SetUint(n)
	default:
		return v
	}
	if named, ok := field.Interface().(fmt.Stringer); ok {
		return named.String()
	}
	return v
}
