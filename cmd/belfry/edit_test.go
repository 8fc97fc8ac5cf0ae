package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/tests/program"
)

func TestAJobIsEdited(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, demand("a", "timeout: 10s"), "job", "apply", "-f", "-")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("VISUAL", "")
	editor := func(script string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "editor")
		if err := program.Write(path, []byte("#!/bin/sh\n"+script+"\n")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("EDITOR", path+" --flag")
	}
	kept := func() int {
		t.Helper()
		entries, err := os.ReadDir(temporary)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	replace := func(this, that string) string {
		return `sed 's/` + this + `/` + that + `/' "$2" > "$2.new" && mv "$2.new" "$2"`
	}

	editor(replace("timeout: 10s", "timeout: 20s"))
	if got := call(0, "", "job", "edit", "a"); !strings.Contains(got.out, "timeout     20s") || kept() != 0 {
		t.Errorf("edited: %s%s, %d files left", got.out, got.errors, kept())
	}
	editor("true")
	if got := call(0, "", "job", "edit", "a"); got.out != "" || got.errors != "a was left as it is.\n" || kept() != 0 {
		t.Errorf("not edited: %s%s", got.out, got.errors)
	}
	// The server's refusal is in the file that is opened again; there it is put right.
	editor(`if grep -q '^#   queue: got "nowhere"' "$2"; then ` + replace("queue: nowhere", "queue: default") + `; else ` +
		replace("queue: default", "queue: nowhere") + `; ` + replace("timeout: 20s", "timeout: 30s") + `; fi`)
	if got := call(0, "", "job", "edit", "a"); !strings.Contains(got.out, "timeout     30s") || kept() != 0 {
		t.Errorf("put right: %s%s", got.out, got.errors)
	}
	editor(`grep -q given "$2" || echo 'timeout: 1s' >> "$2"`)
	if got := call(1, "", "job", "edit", "a"); !strings.Contains(got.errors, "timeout: given twice") || !strings.Contains(got.errors, "is in "+temporary) || kept() != 1 {
		t.Errorf("given up: %s, %d files left", got.errors, kept())
	}
	editor("false")
	if got := call(1, "", "job", "edit", "a"); !strings.Contains(got.errors, "editor ") || kept() != 1 {
		t.Errorf("an editor that fails: %s, %d files left", got.errors, kept())
	}
	call(3, "", "job", "edit", "none")
}

func TestAJobIsPatched(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, demand("a", "timeout: 10s", "labels: {team: x, old: '1'}"), "job", "apply", "-f", "-")
	if got := call(0, "", "job", "patch", "a", "-p", `{"timeout": "20s", "labels": {"old": null}}`).out; !strings.Contains(got, "timeout     20s") || !strings.Contains(got, "labels      team=x\n") {
		t.Errorf("patched: %s", got)
	}
	if got := call(0, "", "job", "patch", "a", "-p", "timeout: 30s").out; !strings.Contains(got, "timeout     30s") {
		t.Errorf("patched by YAML: %s", got)
	}
	if got := call(0, "", "job", "patch", "a", "-p", "timeout: 40s", "--dry-run").out; !strings.Contains(got, "timeout     40s") {
		t.Errorf("tried: %s", got)
	}
	const calls = `{"on": {"failed": {"job": "page"}, "succeeded": {"job": "tell"}}}`
	if got := call(1, "", "job", "patch", "a", "-p", calls, "--dry-run", "--beside", "tell").errors; !strings.Contains(got, "on.failed.job") || strings.Contains(got, "on.succeeded.job") {
		t.Errorf("tried with one of the jobs that it calls: %s", got)
	}
	if got := call(0, "", "job", "patch", "a", "-p", calls, "--dry-run", "--beside", "page,tell").out; !strings.Contains(got, "page") {
		t.Errorf("tried with the jobs that it calls: %s", got)
	}
	if got := call(2, "", "job", "patch", "a", "-p", calls, "--beside", "page").errors; !strings.Contains(got, "--beside is for --dry-run") {
		t.Errorf("not tried: %s", got)
	}
	file := filepath.Join(t.TempDir(), "patch.yaml")
	if err := os.WriteFile(file, []byte("labels:\n  new: '2'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(0, "", "job", "patch", "a", "-p", "@"+file).out; !strings.Contains(got, "labels      new=2,team=x\n") || !strings.Contains(got, "timeout     30s") {
		t.Errorf("patched by a file: %s", got)
	}
	if got := call(0, `{"labels": null}`, "job", "patch", "a", "-p", "@-").out; strings.Contains(got, "team=x") {
		t.Errorf("patched from standard input: %s", got)
	}
	call(7, "", "job", "patch", "a", "-p", "timeout: 50s", "--if-match", `"old"`)
	call(3, "", "job", "patch", "none", "-p", "timeout: 50s")
	for patch, want := range map[string]string{"timeuot: 50s": "timeuot: unknown field", "timeuot: null": "timeuot: unknown field", "timeout: soon": "timeout: got"} {
		if got := call(1, "", "job", "patch", "a", "-p", patch); !strings.Contains(got.errors, want) {
			t.Errorf("%s: %s", patch, got.errors)
		}
	}
	for _, patch := range []string{"", "[]", "7", "{", "null", "a: 1\n---\nb: 2"} {
		call(2, "", "job", "patch", "a", "-p", patch)
	}
}
