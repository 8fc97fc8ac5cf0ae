package template

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// part is one template: the root, or one that it nests.
type part struct {
	file       string
	lines      []string
	Parameters map[string]parameter
	Resources  map[string]*resource
	node       *yaml.Node
}

type parameter struct {
	Type          string `yaml:"Type"`
	Default       string `yaml:"Default"`
	Description   string `yaml:"Description"`
	AllowedValues []any  `yaml:"AllowedValues"`

	AllowedPattern string `yaml:"AllowedPattern"`
}

type resource struct {
	Type, Condition string
	Metadata        map[string]any
	Properties      map[string]any
	reason          string // the comment above it
}

// parts are all templates, the root first.
func parts(t *testing.T) []part {
	t.Helper()
	nested, err := filepath.Glob(filepath.Join(root, "infra", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []part
	for _, file := range append([]string{filepath.Join(root, "template.yaml")}, nested...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, read(t, file, text))
	}
	if len(all) < 6 {
		t.Fatalf("%d templates; some are gone", len(all))
	}
	return all
}

func named(t *testing.T, name string) part {
	t.Helper()
	for _, p := range parts(t) {
		if filepath.Base(p.file) == name {
			return p
		}
	}
	t.Fatalf("no template %s", name)
	return part{}
}

func read(t *testing.T, file string, text []byte) part {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	p := part{file: file, lines: strings.Split(string(text), "\n"), node: doc.Content[0], Resources: map[string]*resource{}}
	if parameters := child(p.node, "Parameters"); parameters != nil {
		if err := parameters.Decode(&p.Parameters); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	resources := child(p.node, "Resources")
	for i := 0; i < len(resources.Content); i += 2 {
		name, node := resources.Content[i], resources.Content[i+1]
		whole, _ := plain(node).(map[string]any)
		properties, _ := whole["Properties"].(map[string]any)
		metadata, _ := whole["Metadata"].(map[string]any)
		condition, _ := whole["Condition"].(string)
		p.Resources[name.Value] = &resource{Type: whole["Type"].(string), Condition: condition, Metadata: metadata, Properties: properties,
			reason: p.above(name.Line)}
	}
	return p
}

// above is the comment right above a line, "" where there is none.
func (p part) above(line int) string {
	if text := strings.TrimSpace(p.lines[line-2]); strings.HasPrefix(text, "# ") {
		return text
	}
	return ""
}

func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// plain is a node as JSON would have it, with functions in their long form: !Ref x is {"Ref": "x"}.
func plain(node *yaml.Node) any {
	var value any
	switch node.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(node.Content); i += 2 {
			m[node.Content[i].Value] = plain(node.Content[i+1])
		}
		value = m
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range node.Content {
			list = append(list, plain(item))
		}
		value = list
	default:
		value = node.Value
	}
	switch tag := node.Tag; {
	case strings.HasPrefix(tag, "!!") || tag == "":
		return value
	case tag == "!Ref" || tag == "!Condition":
		return map[string]any{tag[1:]: value}
	default:
		return map[string]any{"Fn::" + tag[1:]: value}
	}
}

// walk visits a value and all that it holds.
func walk(value any, visit func(any)) {
	visit(value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], visit)
		}
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	}
}

// texts are all texts in a value.
func texts(value any) (all []string) {
	walk(value, func(v any) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	})
	return all
}

// each visits the resources of a type, "" for all, in a settled order.
func each(t *testing.T, kind string, visit func(where string, p part, name string, r *resource)) {
	t.Helper()
	seen := 0
	for _, p := range parts(t) {
		for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
			if r := p.Resources[name]; kind == "" || r.Type == kind {
				seen++
				visit(fmt.Sprintf("%s: %s", filepath.Base(p.file), name), p, name, r)
			}
		}
	}
	if seen == 0 {
		t.Errorf("there is no %s", kind)
	}
}

// property is what stands at a path of the properties, nil for nothing.
func (r *resource) property(path ...string) any {
	var value any = r.Properties
	for _, name := range path {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return value
}
