package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// generated is a schema as a generator of clients sees it.
type generated struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Enum                 []any
	Properties           map[string]*generated
	Required             []string
	OneOf                []*generated
	Items                *generated
	AdditionalProperties any
	Discriminator        any
	Nullable             any
}

// Generators make a type of each schema with a name. What has none gets one of its place, a new one in each.
func TestEveryShapeThatGeneratorsMakeATypeOfHasAName(t *testing.T) {
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name   string
				Schema *generated
			}
			RequestBody struct {
				Content map[string]struct{ Schema *generated }
			}
			Responses map[string]struct {
				Content map[string]struct{ Schema *generated }
			}
		}
		Components struct{ Schemas map[string]*generated }
	}
	text := documentText(t)
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	words := map[string][]string{} // places of lists of words without a name
	used := map[string]bool{}
	var within func(place string, s *generated, named bool)
	within = func(place string, s *generated, named bool) {
		if s == nil {
			return
		}
		if s.Ref != "" {
			name := strings.TrimPrefix(s.Ref, schemaPrefix)
			if used[name] = true; d.Components.Schemas[name] == nil {
				t.Errorf("%s refers to %s, which is not there", place, s.Ref)
			}
		}
		if s.Nullable != nil {
			t.Errorf("%s: nullable is of OpenAPI 3.0", place)
		}
		if !named && (len(s.Properties) > 0 || len(s.OneOf) > 0) {
			t.Errorf("%s is an object or union without a name", place)
		}
		if !named && len(s.Enum) > 0 {
			words[fmt.Sprint(s.Enum)] = append(words[fmt.Sprint(s.Enum)], place)
		}
		for name, property := range s.Properties {
			within(place+"."+name, property, false)
		}
		within(place+"[]", s.Items, false)
		if values, ok := s.AdditionalProperties.(map[string]any); ok && values["properties"] != nil {
			t.Errorf("%s.* is an object without a name", place)
		}
		for _, one := range s.OneOf {
			if one.Ref == "" && (one.Type == nil || one.Type == "object") {
				t.Errorf("%s is one of what has no name", place)
			}
		}
	}
	seen := map[string]string{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			at := method + " " + path
			if before := seen[op.OperationID]; before != "" || op.OperationID == "" {
				t.Errorf("%s: operation ID %q, which %s has", at, op.OperationID, before)
			}
			seen[op.OperationID] = at
			for _, p := range op.Parameters {
				within(op.OperationID+"?"+p.Name, p.Schema, false)
			}
			for kind, c := range op.RequestBody.Content {
				within(op.OperationID+" "+kind, c.Schema, false)
			}
			for status, r := range op.Responses {
				for kind, c := range r.Content {
					within(op.OperationID+" "+status+" "+kind, c.Schema, false)
				}
			}
		}
	}
	for name, s := range d.Components.Schemas {
		within(name, s, true)
	}
	for list, name := range enums {
		if s := d.Components.Schemas[name]; s == nil || fmt.Sprint(s.Enum) != fmt.Sprint(strings.Split(list, ",")) {
			t.Errorf("no schema of the API is %s, of %s", name, list)
		}
	}
	for list, places := range words {
		if len(places) > 1 {
			t.Errorf("%s stands in %v: give it a name in enums", list, places)
		}
	}
	if strings.Contains(string(text), namedAs) {
		t.Errorf("the document has %s in it", namedAs)
	}
}

// A union has variants that are told apart by a field that one alone has, and that it always has.
func TestVariantsOfUnionsAreToldApartByAField(t *testing.T) {
	schemas := map[string]*generated{}
	for name, text := range document(t).Components.Schemas {
		schemas[name] = new(generated)
		if err := json.Unmarshal(text, schemas[name]); err != nil {
			t.Fatal(err)
		}
	}
	for name, variants := range unions {
		union := schemas[name]
		if union == nil || len(union.OneOf) != len(variants) || union.Type != nil {
			t.Errorf("%s is no union of %d", name, len(variants))
			continue
		}
		for i, v := range variants {
			one := schemas[strings.TrimPrefix(union.OneOf[i].Ref, schemaPrefix)]
			if one == nil || !slices.Contains(one.Required, v.field) || one.AdditionalProperties != false {
				t.Errorf("%s: %s is not closed, or may be without %s", name, v.name, v.field)
				continue
			}
			for _, other := range variants {
				if other.field == v.field {
					continue
				}
				for _, field := range append([]string{other.field}, other.with...) {
					if one.Properties[field] != nil && !slices.Contains(v.with, field) {
						t.Errorf("%s: %s has %s, which goes with %s", name, v.name, field, other.field)
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		for _, one := range schemas[name].OneOf {
			if len(one.Required) > 0 {
				t.Errorf("%s asks for one of some fields: list it in unions, which generators understand", name)
			}
		}
	}
}

func TestTheDocumentIsTheSameEachTime(t *testing.T) {
	first := documentText(t)
	for range 5 {
		if string(documentText(t)) != string(first) {
			t.Fatal("the document differs")
		}
	}
}
