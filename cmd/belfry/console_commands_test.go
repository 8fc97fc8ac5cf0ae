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
// operation one that the API has; of those of the API few have none: the document itself, and the sessions of browsers.
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
		if err != nil || cmd.HasSubCommands() && cmd.Annotations[worksAlone] == "" {
			t.Errorf("%s: %s: %v, want a command", id, command, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %s: %v", id, command, err)
		} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %s: %v", id, command, err)
		}
	}
	// What belfry has a command for is not to look as if it had none.
	template, err := os.ReadFile("../../infra/api.yaml")
	if err != nil {
		t.Fatal(err)
	}
	operations := regexp.MustCompile(`operationId: ([a-z-]+)`).FindAllStringSubmatch(string(template), -1)
	if len(operations) < 50 {
		t.Fatalf("%d operations were read", len(operations))
	}
	var without []string
	for _, operation := range operations {
		if !slices.Contains(ids, operation[1]) {
			without = append(without, operation[1])
		}
	}
	slices.Sort(without)
	if want := []string{"create-session", "end-session", "get-session", "openapi"}; !slices.Equal(without, want) {
		t.Errorf("%v have no command, want %v", without, want)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != len(lines) {
		t.Error("an operation has two commands")
	}
}
