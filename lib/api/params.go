package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// parameters checks path, query and headers against what the operation declares. The query may hold nothing else, and each
// name once unless it is declared as a list.
func (f *form) parameters(declared []*huma.Param, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		f.refuse("", "want a query such as ?limit=10&prefix=a: %v", err)
		return
	}
	known := []string{}
	for _, p := range declared {
		switch p.In {
		case "path":
			f.parameter(p, []string{r.PathValue(p.Name)})
		case "header":
			f.parameter(p, r.Header.Values(p.Name))
		case "query":
			known = append(known, p.Name)
			f.parameter(p, query[p.Name])
			delete(query, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		f.surplus(f.under("", name), "unknown query parameter; want %s", listing(known))
	}
}

func (f *form) parameter(p *huma.Param, values []string) {
	if len(values) == 0 {
		if p.Required {
			f.refuse(p.Name, "missing; want %s", want{p.Schema})
		}
		return
	}
	list := p.Schema.Type == huma.TypeArray
	if list && (p.Explode == nil || !*p.Explode) {
		if len(values) == 1 {
			values = strings.Split(values[0], ",")
		} else {
			f.refuse(p.Name, "given more than once; want one list, with commas")
			return
		}
	}
	if !list && len(values) > 1 {
		f.refuse(p.Name, "given more than once")
		return
	}
	if list {
		texts, _ := json.Marshal(values) // strings always have a JSON form
		f.value(p.Schema, texts, p.Name)
		return
	}
	text := jsonOf(p.Schema.Type, values[0])
	if number := p.Schema.Type == huma.TypeInteger || p.Schema.Type == huma.TypeNumber; number && text[0] == '"' {
		got := "an empty text"
		if values[0] != "" {
			got = quoting(values[0]).String()
		}
		f.refuse(p.Name, "got %s, want %s", got, want{p.Schema})
		return
	}
	f.value(p.Schema, text, p.Name)
}

// jsonOf writes the text of a parameter as the JSON that its schema speaks of.
func jsonOf(schemaType, text string) json.RawMessage {
	if schemaType == huma.TypeInteger || schemaType == huma.TypeNumber {
		if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	quoted, _ := json.Marshal(text)
	return quoted
}

func readAll(r io.ReadCloser) ([]byte, error) {
	defer r.Close()
	return io.ReadAll(r)
}

func sizeText(bytes int64) string { return fmt.Sprintf("%d KB", bytes>>10) }
