package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsExportedIsTheSameOnAnotherServer(t *testing.T) {
	here, there := to(t, dev(t, "--data", t.TempDir(), "--allow-exec")), to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	here(0, `name: script
schedule: {cron: '30 9 * * 1-5', timezone: Europe/Berlin, start: '2026-11-21T09:00:00Z', jitter: 5s}
target:
  exec:
    argv: [/bin/sh, -c, "set -e\necho 'a: b' # not a comment\n\techo done\n"]
    env: {YES: 'no', N: '007'}
payload: {big: 123456789012345678901234567890, small: 1e-400, f: 1.50, t: "true", nil: null, deep: [[], {}, [{}]], "": "\u2028 é 😀"}
labels: {team: billing, empty: ''}
description: "- looks like a list: and a # comment"
paused: true
---
name: every
schedule: {every: 1h}
target: {http: {url: 'https://example.org/', headers: {Authorization: {secret: hook-token}}}}
labels: {team: other}
---
`+demand("zeta", "catch_up: {mode: none}", "guarantee: at_most_once", "priority: high"), "job", "apply", "-f", "-")
	dir := t.TempDir()
	for _, name := range []string{"jobs.yaml", "jobs.json"} {
		file := filepath.Join(dir, name)
		if got := here(0, "", "export", file); !strings.Contains(got.errors, "3 jobs written to ") || got.out != "" {
			t.Errorf("exported: %s%s", got.out, got.errors)
		}
		if got := there(0, "", "job", "apply", "-f", file).out; strings.Count(got, "created")+strings.Count(got, "unchanged") != 3 {
			t.Errorf("taken in: %s", got)
		}
		again := filepath.Join(dir, "again-"+name)
		there(0, "", "export", again)
		first, _ := os.ReadFile(file)
		second, err := os.ReadFile(again)
		if err != nil || string(first) != string(second) || len(first) == 0 {
			t.Errorf("%s changed on its way:\n%s\n%s", name, first, second)
		}
	}
	text := here(0, "", "export").out
	for _, want := range []string{"name: every\n", "\n---\nname: script\n", "paused: true\n", "secret: hook-token\n", "big: 123456789012345678901234567890\n", "\"N\": \"007\"\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the export lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "status") {
		t.Errorf("the export tells what only the server writes:\n%s", text)
	}
	if got := here(0, "", "export", "--label", "team=billing", "--prefix", "s").out; strings.Count(got, "name: ") != 1 || !strings.HasPrefix(got, "name: script\n") {
		t.Errorf("by label and prefix:\n%s", got)
	}
	here(2, "", "export", "jobs.json", "-o", "yaml")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("the folder holds %v, %v; want four files and nothing half written", entries, err)
	}
}
