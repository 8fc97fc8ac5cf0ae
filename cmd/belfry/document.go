package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// document is a job of a file: its name, and its JSON as it stands there, so that the server sees and names every field.
type document struct {
	name string
	text json.RawMessage
}

// maxFile bounds what is read of a file of jobs.
const maxFile = 64 << 20

func (c *cli) readFile(name string) ([]byte, error) {
	in := c.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MB", name, maxFile>>20)
	}
	return text, nil
}

// documents takes a file apart: one job, an array of them, or an object with such an array.
func documents(text []byte) ([]document, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("want JSON: %w", err)
	}
	whole = bytes.TrimSpace(whole)
	many := []json.RawMessage{whole}
	switch kind(whole) {
	case "an array":
		_ = json.Unmarshal(whole, &many) // valid, and an array
	case "an object":
		for _, m := range members(whole) {
			if m.name != "jobs" {
				continue
			}
			if kind(m.value) != "an array" {
				return nil, fmt.Errorf("jobs: got %s, want an array of jobs", kind(m.value))
			}
			if len(members(whole)) > 1 {
				return nil, errors.New(`want nothing beside "jobs" in an object that holds many`)
			}
			_ = json.Unmarshal(m.value, &many)
		}
	default:
		return nil, fmt.Errorf(`got %s, want a job as an object, an array of jobs, or {"jobs": [...]}`, kind(whole))
	}
	all := make([]document, len(many))
	for i, one := range many {
		var err error
		if all[i], err = readDocument(bytes.TrimSpace(one)); err != nil {
			return nil, fmt.Errorf("job %d: %w", i+1, err)
		}
	}
	return all, nil
}

// readDocument finds a job's name, and takes it out: the path names the job, and the rest is for the server to judge.
func readDocument(text json.RawMessage) (document, error) {
	if kind(text) != "an object" {
		return document{}, fmt.Errorf("got %s, want an object", kind(text))
	}
	d := document{text: text}
	all := members(text)
	at := slices.IndexFunc(all, func(m member) bool { return m.name == "name" })
	if at < 0 {
		for _, m := range all {
			if m.name == "status" && kind(m.value) == "an object" {
				d.name = nameIn(members(m.value))
			}
		}
		return d, nil
	}
	if kind(all[at].value) != "text" {
		return d, fmt.Errorf("name: got %s, want text", kind(all[at].value))
	}
	d.name = nameIn(all)
	rest := map[string]json.RawMessage{}
	for _, m := range all {
		if _, twice := rest[m.name]; twice {
			return d, fmt.Errorf("%s: given twice", short(m.name, 40)) // a map would keep the last, unseen by the server
		}
		rest[m.name] = m.value
	}
	delete(rest, "name")
	var err error
	d.text, err = json.Marshal(rest)
	return d, err
}

// nameIn is the text of the member "name", "" where there is none.
func nameIn(all []member) string {
	var name string
	for _, m := range all {
		if m.name == "name" {
			_ = json.Unmarshal(m.value, &name) // what is no text is no name
		}
	}
	return name
}

// member is a name and value of an object.
type member struct {
	name  string
	value json.RawMessage
}

// members reads a valid object, with names that are given twice.
func members(object json.RawMessage) []member {
	in := json.NewDecoder(bytes.NewReader(object))
	_, _ = in.Token()
	var all []member
	for in.More() {
		token, _ := in.Token()
		name, _ := token.(string)
		var value json.RawMessage
		_ = in.Decode(&value)
		all = append(all, member{name, bytes.TrimSpace(value)})
	}
	return all
}

// kind says for people what valid JSON is.
func kind(text json.RawMessage) string {
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "text"
	case 't', 'f':
		return string(text)
	case 'n':
		return "null"
	}
	return "a number"
}
