package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference of the API in the console names a command beside an operation. It has to be one that is there, with its flags, and each
// operation one that the API has.
func TestTheReferenceInTheConsoleNamesCommandsThatAreThere(t *testing.T) {
	text, err := os.ReadFile("../../lib/console/web/src/commands.ts")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("../../lib/api/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var api strings.Builder
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		api.Write(source)
	}
	lines := regexp.MustCompile(`(?m)^  '?([a-z-]+)'?: (?:'([^']+)'|"([^"]+)"),$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 40 || len(lines) != strings.Count(string(text), "belfry ")-1 { // and once in the comment
		t.Fatalf("%d commands were read", len(lines))
	}
	var ids []string
	for _, line := range lines {
		id, command := line[1], line[2]+line[3]
		ids = append(ids, id)
		if !strings.Contains(api.String(), `operation{id: "`+id+`"`) {
			t.Errorf("%s is no operation of the API", id)
		}
		words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(command, -1)[1:]
		cmd, rest, err := wholeTree().Find(words)
		if err != nil || cmd.HasSubCommands() {
			t.Errorf("%s: %s: %v, want a command", id, command, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %s: %v", id, command, err)
		} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %s: %v", id, command, err)
		}
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != len(lines) {
		t.Error("an operation has two commands")
	}
}
