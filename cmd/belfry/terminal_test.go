package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/terminal"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// hostile does to a terminal whatever can be done: titles, the clipboard, queries, cursors, by ESC and by C1, and turns lines round.
const hostile = "a\x1b]0;title\x07\x1b]52;c;cm0=\x1b\\\x1b[2J\x1b[1A\x1b[6n\x08\x7f\u009b2J\u009d0;t\u009c\u0085\u202eevil\u202c\u2066\u2069\u200e\u200f\u061c\u2028\u2029\ufeffz"

// acting gives what in a text would do something to a terminal, beyond lines and tabs.
func acting(text string) (found []rune) {
	for _, r := range text {
		if terminal.Acts(r) && r != '\n' && r != '\t' {
			found = append(found, r)
		}
	}
	return found
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	written, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// What whoever writes jobs has written is shown to an operator, and taken in again as it was.
func TestNothingThatIsPrintedActsOnATerminal(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	text := quoted(t, hostile)
	lines := quoted(t, "first\n"+hostile+"\nlast")
	call(0, `{"description": `+text+`, "payload": {`+text+`: [`+text+`, `+lines+`]}, "retry": {"max_attempts": 1},
		"target": {"exec": {"argv": ["sh", "-c", "cat >&2; exit 3", `+text+`]}}}`, "job", "apply", "a", "-f", "-")
	// Jobs that are not there are in errors, whatever they are called.
	call(0, "", "job", "pause", "a", "--reason", "why "+hostile)
	call(0, "", "job", "resume", "a")
	run := decode[wire.Run](t, call(0, "", "job", "trigger", "a", "-o", "json").out).ID
	eventually(t, "the run ends", func() (bool, string) {
		got := call(0, "", "run", "get", run, "-o", "json")
		return strings.Contains(got.out, `"dead"`) || strings.Contains(got.out, `"failed"`), got.out
	})
	call(0, "", "job", "pause", "a", "--reason", "why "+hostile)
	folder := t.TempDir()
	for _, args := range [][]string{
		{"job", "list"}, {"job", "list", "-o", "json"}, {"job", "list", "-o", "yaml"}, {"job", "get", "a"}, {"job", "get", "a", "-o", "json"},
		{"job", "get", "a", "-o", "yaml"}, {"export"}, {"export", "-o", "json"}, {"export", filepath.Join(folder, "jobs.yaml")},
		{"export", filepath.Join(folder, "jobs.json")}, {"run", "list"}, {"run", "list", "-o", "json"}, {"run", "list", "-o", "yaml"},
		{"run", "get", run}, {"run", "get", run, "-o", "json"}, {"run", "get", run, "-o", "yaml"}, {"run", "logs", run, "-o", "json"},
		{"run", "logs", run, "-o", "yaml"}, {"dead-letter", "list"}, {"dead-letter", "list", "-o", "json"}, {"dead-letter", "list", "-o", "yaml"},
		{"job", "list", "--last-runs"}, {"job", "list", "--last-runs", "-o", "json"}, {"job", "list", "--last-runs", "-o", "yaml"}, {"job", "next", "a"},
		{"run", "payload", run, "-o", "json"}, {"run", "payload", run, "-o", "yaml"}, {"dead-letter", "groups"}, {"dead-letter", "groups", "-o", "json"},
		{"dead-letter", "groups", "-o", "yaml"}, {"doctor"}, {"doctor", "--targets"}, {"doctor", "--targets", "-o", "json"},
	} {
		got := belfry(t, "", append(args, "--address", address)...)
		if found := acting(got.out + got.errors); len(found) > 0 || got.code > 1 {
			t.Errorf("belfry %q: code %d, %U in\n%q%q", args, got.code, found, got.out, got.errors)
		}
	}
	for _, args := range [][]string{
		{"job", "get", hostile}, {"job", "trigger", hostile}, {"run", "get", hostile}, {"run", "list", "--state", hostile}, {hostile}, {"job", hostile},
		{"job", "apply", "-f", hostile}, {"job", "list", "--" + hostile}, {"job", "list", "-o", hostile}, {"job", "get", "a", "--token-file", hostile}, {"export", hostile + "/x.yaml"},
		{"doctor", "--data", hostile}, {"job", "list", "--timezone", hostile}, {"cron", "next", hostile},
	} {
		got := belfry(t, "", append(args, "--address", address)...)
		if found := acting(got.out + got.errors); len(found) > 0 || got.code == 0 {
			t.Errorf("belfry %q: code %d, %U in\n%q%q", args, got.code, found, got.out, got.errors)
		}
	}
	// Both forms are read back as what stands: apply finds nothing to change, and a structured answer holds the text.
	for _, name := range []string{"jobs.yaml", "jobs.json"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		values, err := manifest.Read(name, content)
		if err != nil || len(values) != 1 || values[0].Member("description").Scalar != hostile {
			t.Errorf("%s holds %v, %v:\n%s", name, values, err, content)
		}
		if found := acting(string(content)); len(found) > 0 {
			t.Errorf("%s holds %U", name, found)
		}
		got := call(0, "", "job", "apply", "-f", filepath.Join(folder, name), "--dry-run", "--exit-code")
		if !strings.Contains(got.out, "unchanged") {
			t.Errorf("%s: applied again it changes\n%s", name, got.out)
		}
	}
	for _, form := range []string{"json", "yaml"} {
		values, err := manifest.Read("."+form, []byte(call(0, "", "job", "get", "a", "-o", form).out))
		if err != nil || len(values) != 1 || values[0].Member("description").Scalar != hostile {
			t.Errorf("-o %s: %v, %v", form, values, err)
		}
	}
}

// A message that goes to stderr past terminal.Messages shows whatever is in it.
func TestMessagesAreWrittenHarmless(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	raw := regexp.MustCompile(`fmt\.Fprint(f|ln)?\((\w+\.)?stderr\b`)
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := raw.Find(content); found != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s: %s: want messages()", name, found)
		}
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// A log comes from whoever writes jobs, and the terminal is an operator's; into a pipe it goes as it was written.
func TestALogDoesNothingToATerminal(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	wrote := hostile + "\x9b2J\xff\n\x1b[31mred\nplain\n\x1b[1;4mleft on"
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(wrote), 0o600); err != nil {
		t.Fatal(err)
	}
	call(0, fmt.Sprintf(`{"target": {"exec": {"argv": ["sh", "-c", "cat %s >&2"]}}}`, file), "job", "apply", "a", "-f", "-")
	run := decode[wire.Run](t, call(0, "", "job", "trigger", "a", "--wait", "-o", "json").out).ID
	for _, follow := range [][]string{nil, {"--follow"}, {"--tail", "1MB"}, {"--follow", "--tail", "1MB"}} {
		args := append([]string{"run", "logs", run, "--address", address}, follow...)
		if got := belfry(t, "", args...); got.code != 0 || got.out != wrote {
			t.Errorf("into a pipe %q gives\n%q, want\n%q", args, got.out, wrote)
		}
		shown := atTerminal(t, 200, nil, args...)
		if found := acting(sgr.ReplaceAllString(shown, "")); len(found) > 0 {
			t.Errorf("on a terminal %q shows %U:\n%q", args, found, shown)
		}
		for _, want := range []string{"\x1b[31mred\x1b[0m\nplain\n", "\x1b[1;4mleft on\x1b[0m", "\uFFFD2J", "\uFFFDevil"} {
			if !strings.Contains(shown, want) {
				t.Errorf("on a terminal %q shows\n%q, want %q in it", args, shown, want)
			}
		}
	}
}
