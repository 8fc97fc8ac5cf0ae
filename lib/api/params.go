package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// declared are the parameters that a struct has by its tags, those that it embeds included, and which of its fields holds each, by name.
func declared(registry huma.Registry, params reflect.Type) (all []*huma.Param, fields map[string][]int) {
	fields = map[string][]int{}
	for i := range params.NumField() {
		field := params.Field(i)
		if field.Anonymous {
			embedded, within := declared(registry, field.Type)
			all = append(all, embedded...)
			for name, index := range within {
				fields[name] = append([]int{i}, index...)
			}
			continue
		}
		p := parameterOf(registry, field)
		all = append(all, p)
		fields[p.Name] = []int{i}
	}
	return all, fields
}

func parameterOf(registry huma.Registry, field reflect.StructField) *huma.Param {
	p := &huma.Param{Schema: huma.SchemaFromField(registry, field, ""), Required: field.Tag.Get("required") == "true"}
	p.Description = p.Schema.Description
	if field.Tag.Get("zero") == "allowed" {
		p.Schema.Extensions = map[string]any{zeroAllowed: true}
	}
	if name, ok := field.Tag.Lookup("query"); ok {
		p.In, p.Name = "query", name
		if p.Schema.Type == huma.TypeArray {
			explode := true
			p.Explode = &explode
		}
	} else if name, ok := field.Tag.Lookup("header"); ok {
		p.In, p.Name = "header", name
	} else {
		p.In, p.Name, p.Required = "path", field.Tag.Get("path"), true
	}
	return p
}

// parameters checks path, query and headers against what the operation declares, and sets the fields of a struct to what is right of them.
// The query may hold nothing else, and each name once unless it is declared as a list.
func (f *form) parameters(declared []*huma.Param, r *http.Request, fields map[string][]int, into reflect.Value) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		f.refuse("", "want a query such as ?limit=10&prefix=a: %v", err)
		return
	}
	known := []string{}
	for _, p := range declared {
		var given []string
		switch p.In {
		case "path":
			given = []string{r.PathValue(p.Name)}
		case "header":
			given = r.Header.Values(p.Name)
		case "query":
			known = append(known, p.Name)
			given = query[p.Name]
			delete(query, p.Name)
		}
		right := f.parameter(p, given)
		if field, ok := fields[p.Name]; ok && right != nil {
			if err := json.Unmarshal(right, into.FieldByIndex(field).Addr().Interface()); err != nil {
				f.refuse(p.Name, "got %s, want %s", quoting(right), want{p.Schema})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		f.surplus(f.under("", name), "unknown query parameter; want %s", listing(known))
	}
}

// parameter gives what is right of one as JSON, nil where nothing is.
func (f *form) parameter(p *huma.Param, values []string) []byte {
	if len(values) == 0 {
		if p.Required {
			f.refuse(p.Name, "missing; want %s", want{p.Schema})
		}
		return nil
	}
	for _, value := range values {
		if p.In == "query" && !utf8.ValidString(value) { // as JSON it would be another text
			f.refuse(p.Name, "got %s, want text in UTF-8", quoting(value))
			return nil
		}
	}
	if p.Schema.Type == huma.TypeArray {
		texts, _ := json.Marshal(entriesOf(p.Schema.Items, values)) // strings always have a JSON form
		return f.value(p.Schema, texts, p.Name)
	}
	if len(values) > 1 {
		f.refuse(p.Name, "given more than once")
		return nil
	}
	text := jsonOf(p.Schema.Type, values[0])
	if number := p.Schema.Type == huma.TypeInteger || p.Schema.Type == huma.TypeNumber; number && text[0] == '"' {
		got := "an empty text"
		if values[0] != "" {
			got = quoting(values[0]).String()
		}
		f.refuse(p.Name, "got %s, want %s", got, want{p.Schema})
		return nil
	}
	return f.value(p.Schema, text, p.Name)
}

// entriesOf are the entries of a list, each given alone or several with commas.
func entriesOf(entry *huma.Schema, values []string) (all []string) {
	for _, value := range values {
		if entry.Pattern == labelPattern {
			all = append(all, wire.SplitLabels(value)...)
		} else {
			all = append(all, strings.Split(value, ",")...)
		}
	}
	return all
}

// jsonOf writes the text of a parameter as the JSON that its schema speaks of.
func jsonOf(schemaType, text string) json.RawMessage {
	if schemaType == huma.TypeInteger || schemaType == huma.TypeNumber {
		if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	if schemaType == huma.TypeBoolean && (text == "true" || text == "false") {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text)
	return quoted
}

func readAll(r io.ReadCloser) ([]byte, error) {
	defer r.Close()
	return io.ReadAll(r)
}

func sizeText(bytes int64) string { return fmt.Sprintf("%d KB", bytes>>10) }
