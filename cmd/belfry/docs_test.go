package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The examples of docs/cli.md are run as they stand, in a shell that knows belfry, against a fresh server.
func TestExamplesOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	address, dir := dev(t, "--data", t.TempDir(), "--allow-exec"), t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nBELFRY_TEST_PROCESS=1 exec %q \"$@\"\n", os.Args[0])
	if err := os.WriteFile(filepath.Join(dir, "belfry"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, want, _ := strings.Cut(example, "\n")
			if strings.HasSuffix(line, "<<'END'") { // what follows is the file
				file, after, _ := strings.Cut(want, "\nEND")
				line, want = line+"\n"+file+"\nEND\n", strings.TrimPrefix(after, "\n")
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "BELFRY_ADDRESS="+address)
			got, _ := cmd.CombinedOutput() // examples that fail show what they print
			ran++
			if !alike(strings.TrimRight(string(got), "\n"), strings.TrimRight(want, "\n")) {
				t.Errorf("$ %s\ngives\n%s\nthe docs say\n%s", line, got, want)
			}
		}
	}
	if ran < 8 {
		t.Errorf("only %d examples were found", ran)
	}
}

// alike compares line by line; an ellipsis stands for anything.
func alike(got, want string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", "[^\n]*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}
