package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Encode gives the JSON of a value. It refuses a Go string that is not UTF-8 with an *invalid.Error that names its field: encoding/json
// would put U+FFFD in the place of its bytes.
func Encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// encoding/json writes U+FFFD itself as it is, and this escape for bytes that it replaces. JSON that was given may have it too.
	if bytes.Contains(text, []byte(`\ufffd`)) {
		if field, got, ok := broken(reflect.ValueOf(v), ""); ok {
			return nil, (&invalid.Broken{Field: field, Got: firstWrong(got)}).Err()
		}
	}
	return text, nil
}

// firstWrong is the first byte of a text that belongs to no character. The rest may be a secret.
func firstWrong(text string) string {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return fmt.Sprintf(`\x%02x`, text[i])
		}
	}
	return ""
}

// broken finds a string that is not UTF-8 in a value that has a JSON form.
func broken(v reflect.Value, at string) (field, got string, found bool) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "", "", false
	}
	if v.IsValid() && v.CanInterface() {
		of := v
		if v.CanAddr() {
			of = v.Addr() // as encoding/json does, which finds the methods of the pointer, too
		}
		switch own := of.Interface().(type) {
		case json.Marshaler:
			return brokenWithin(own, at)
		case encoding.TextMarshaler:
			text, err := own.MarshalText()
			return at, string(text), err == nil && !utf8.Valid(text)
		}
	}
	switch v.Kind() {
	case reflect.String:
		return at, v.String(), !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return broken(v.Elem(), at)
	case reflect.Struct:
		for i := range v.NumField() {
			of := v.Type().Field(i)
			if !of.IsExported() && !of.Anonymous || of.Tag.Get("json") == "-" {
				continue
			}
			if field, got, found = broken(v.Field(i), under(at, of)); found {
				return field, got, true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			name := fmt.Sprint(entries.Key())
			next := strings.TrimPrefix(at+"."+strings.ToValidUTF8(name, "?"), ".")
			if _, got, found = broken(entries.Key(), next); found {
				return next, got, true
			}
			if field, got, found = broken(entries.Value(), next); found {
				return field, got, true
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", "", false // bytes are base64, or JSON that was given
		}
		for i := range v.Len() {
			if field, got, found = broken(v.Index(i), fmt.Sprintf("%s[%d]", at, i)); found {
				return field, got, true
			}
		}
	}
	return "", "", false
}

// brokenWithin is broken for a value that makes its JSON itself. What it holds is its own, and may lead anywhere: it is looked at only where
// its JSON has replaced something, and no deeper than its own texts.
func brokenWithin(own json.Marshaler, at string) (field, got string, found bool) {
	text, err := own.MarshalJSON()
	if err != nil || !bytes.Contains(text, []byte(`\ufffd`)) {
		return "", "", false
	}
	v := reflect.Indirect(reflect.ValueOf(own))
	switch v.Kind() {
	case reflect.String:
		return at, v.String(), !utf8.ValidString(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			of, is := v.Type().Field(i), v.Field(i)
			if of.IsExported() && is.Kind() == reflect.String && !utf8.ValidString(is.String()) {
				return under(at, of), is.String(), true
			}
		}
	}
	return "", "", false
}

// under is the path of a field, by its name in JSON.
func under(at string, of reflect.StructField) string {
	name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
	switch {
	case name == "" && of.Anonymous:
		return at
	case name == "" || name == "-":
		name = of.Name
	}
	return strings.TrimPrefix(at+"."+name, ".")
}
