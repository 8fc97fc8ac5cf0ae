package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Forms of a result. What is behind formPath is a template of it.
const (
	formTable = "table"
	formJSON  = "json"
	formYAML  = "yaml"
	formName  = "name"
	formPath  = "jsonpath="
)

// formsWanted says what --output takes.
const formsWanted = "table, json, yaml, name or jsonpath=TEMPLATE, such as jsonpath='{.state}'"

func checkOutput(text string) error {
	switch text {
	case formTable, formJSON, formYAML, formName:
		return nil
	default:
		template, ok := strings.CutPrefix(text, formPath)
		if !ok {
			return misused("--output %q: want %s", short(text, 40), formsWanted)
		}
		if _, err := pathOf(template); err != nil {
			return misused("--output: %v", err)
		}
		return nil
	}
}

// pathOf reads a template as kubectl has them, where braces around one path may be left out.
func pathOf(template string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(template, "{") {
		if !strings.HasPrefix(template, ".") && !strings.HasPrefix(template, "[") && !strings.HasPrefix(template, "$") {
			template = "." + template
		}
		template = "{" + template + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("the template %s: %w; want one such as {.state} or {range [*]}{.id}{\"\\n\"}{end}", short(template, 80), err)
	}
	return path, nil
}

// picked is what a template makes of JSON, and ends with a line break.
func picked(template string, text []byte) ([]byte, error) {
	path, err := pathOf(template)
	if err != nil {
		return nil, err
	}
	var value any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // which keeps digits as they are
	if err := numbers.Decode(&value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := path.Execute(&out, value); err != nil {
		return nil, fmt.Errorf("--output jsonpath: %w", err)
	}
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	return []byte(terminal.Text(out.String())), nil
}

// namesOf is what commands call things by: the ID of a run or token, the name of a job or queue, the path of a step; a line for each.
func namesOf(text []byte) ([]byte, error) {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		all = []json.RawMessage{text}
	}
	var out bytes.Buffer
	for _, one := range all {
		var thing struct {
			ID   string `json:"id"`
			Name string `json:"name"`
			Path string `json:"path"`
		}
		_ = json.Unmarshal(one, &thing) // what is no object has no name
		name := cmp.Or(thing.ID, thing.Name, thing.Path)
		if name == "" {
			return nil, misused("--output %s: this result has no names; -o json shows what it has", formName)
		}
		fmt.Fprintln(&out, terminal.Line(name))
	}
	return out.Bytes(), nil
}
