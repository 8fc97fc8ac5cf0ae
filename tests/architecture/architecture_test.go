// Package architecture holds the rules of layering that a linter of single files can't see: which package may know which,
// what packages are called and how deep they lie. The rules about what a file may import or call are in .golangci.yml.
package architecture

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTreeKeepsTheRules(t *testing.T) {
	tree, err := read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.packages) < 10 {
		t.Fatalf("only %d packages found", len(tree.packages))
	}
	for _, broken := range tree.check(sleepers, hasty) {
		t.Error(broken)
	}
}

// Each row plants one violation into a small tree that keeps the rules.
func TestRulesFindWhatIsPlanted(t *testing.T) {
	const module = `"github.com/belfry-scheduler/belfry/`
	for name, row := range map[string]struct {
		file, text string
		want       string // "" for what is allowed
	}{
		"nothing planted":                            {"lib/job/plain.go", "package job", ""},
		"domain knows a port":                        {"lib/job/a.go", "package job\nimport _ " + module + `lib/store"`, ""},
		"domain knows an engine":                     {"lib/job/a.go", "package job\nimport _ " + module + `lib/store/pebble"`, "lib/job/a.go: imports lib/store/pebble"},
		"domain knows a suite":                       {"lib/job/a.go", "package job\nimport _ " + module + `lib/store/storetest"`, "lib/job/a.go: imports lib/store/storetest"},
		"domain test knows an engine":                {"lib/job/a_test.go", "package job\nimport _ " + module + `lib/store/pebble"`, ""},
		"port knows its engine":                      {"lib/store/a.go", "package store\nimport _ " + module + `lib/store/memory"`, "lib/store/a.go: imports lib/store/memory"},
		"engine knows its port":                      {"lib/store/pebble/a.go", "package pebble\nimport _ " + module + `lib/store"`, ""},
		"engine knows another":                       {"lib/store/pebble/a.go", "package pebble\nimport _ " + module + `lib/store/memory"`, "lib/store/pebble/a.go: imports lib/store/memory"},
		"engine of one port knows another's":         {"lib/queue/local/a.go", "package local\nimport _ " + module + `lib/store/pebble"`, "lib/queue/local/a.go: imports lib/store/pebble"},
		"suite knows an engine":                      {"lib/store/storetest/a.go", "package storetest\nimport _ " + module + `lib/store/memory"`, "lib/store/storetest/a.go: imports lib/store/memory"},
		"suite knows a decorator":                    {"lib/store/storetest/a.go", "package storetest\nimport _ " + module + `lib/store/faulty"`, ""},
		"the embedding package knows an engine":      {"lib/embed/a.go", "package embed\nimport _ " + module + `lib/store/pebble"`, ""},
		"the package above it knows an engine":       {"lib/belfry/a.go", "package belfry\nimport _ " + module + `lib/store/pebble"`, "lib/belfry/a.go: imports lib/store/pebble"},
		"lib knows a main's package":                 {"lib/job/a.go", "package job\nimport _ " + module + `cmd/belfry/flags"`, "lib/job/a.go: imports cmd/belfry/flags"},
		"lib knows tests":                            {"lib/job/a.go", "package job\nimport _ " + module + `tests/kill"`, "lib/job/a.go: imports tests/kill"},
		"the API has the console in it":              {"lib/api/a.go", "package api\nimport _ " + module + `lib/console"`, "lib/api/a.go: imports lib/console"},
		"a function has the console in it":           {"functions/api/main.go", "package main\nimport _ " + module + `lib/console"`, "functions/api/main.go: imports lib/console"},
		"the binary has the console in it":           {"cmd/belfry/a.go", "package main\nimport _ " + module + `lib/console"`, ""},
		"a drawer":                                   {"lib/util/a.go", "package util", "lib/util: "},
		"a drawer by its clause":                     {"lib/job/helpers/a.go", "package helpers", "lib/job/helpers: "},
		"a third level":                              {"lib/store/pebble/deep/a.go", "package deep", "lib/store/pebble/deep: "},
		"Go outside the house":                       {"pkg/a/a.go", "package a", "pkg/a: "},
		"a long Lambda main":                         {"functions/tick/main.go", "package main\n" + strings.Repeat("//\n", 40), "functions/tick/main.go: "},
		"a Lambda package that is no main":           {"functions/tick/a.go", "package tick", "functions/tick: "},
		"a long file":                                {"lib/job/a.go", "package job\n" + strings.Repeat("//\n", 601), "lib/job/a.go: "},
		"a sleep in a test":                          {"lib/job/a_test.go", "package job\nimport \"time\"\nfunc f() { time.Sleep(1) }", "lib/job/a_test.go:3: "},
		"a sleep in a suite, renamed":                {"lib/store/storetest/a.go", "package storetest\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }", "lib/store/storetest/a.go:3: "},
		"a sleep in a test program":                  {"tests/kill/a.go", "package main\nimport \"time\"\nfunc f() { time.Sleep(1) }", "tests/kill/a.go:3: "},
		"a sleep in virtual time":                    {"lib/job/a_test.go", "package job\nimport \"time\"\nimport \"testing/synctest\"\nfunc f() { synctest.Wait(); time.Sleep(1) }", ""},
		"a sleep with a reason":                      {"tests/listed/a_test.go", "package listed\nimport \"time\"\nfunc f() { time.Sleep(1) }", ""},
		"a reason for a sleep that is there no more": {"tests/listed/a_test.go", "package listed", "tests/listed/a_test.go: "},

		"a deadline that measures the machine":                {"lib/job/a_test.go", "package job\nfunc f() { context.WithTimeout(ctx, 4*time.Minute) }", "lib/job/a_test.go:2: waits for 4m0s"},
		"such a deadline by a constant":                       {"tests/kill/a.go", "package kill\nconst soon = 10 * time.Second\nfunc f() { context.WithTimeout(ctx, 2*(soon+time.Second)) }", "tests/kill/a.go:3: waits for 22s"},
		"such a deadline of a client":                         {"lib/job/a_test.go", "package job\nvar c = &http.Client{Timeout: 10 * time.Second}", "lib/job/a_test.go:2: waits for 10s"},
		"a deadline for a hang":                               {"lib/job/a_test.go", "package job\nfunc f() { context.WithTimeout(ctx, 5*time.Minute) }", ""},
		"a short deadline in virtual time":                    {"lib/job/a_test.go", "package job\nimport _ \"testing/synctest\"\nfunc f() { context.WithTimeout(ctx, time.Second) }", ""},
		"a short deadline of the product":                     {"lib/job/a.go", "package job\nfunc f() { context.WithTimeout(ctx, time.Second) }", ""},
		"a reason for a short deadline that is there no more": {"tests/listed/b_test.go", "package listed", "tests/listed/b_test.go: "},
		"a seed from the clock":                               {"tests/kill/a.go", "package kill\nfunc f() { rand.NewPCG(uint64(time.Now().UnixNano()), 1) }", "tests/kill/a.go:2: takes its seed"},
		"a seed of the day":                                   {"lib/job/a_test.go", "package job\nfunc f() { for seed := time.Now().Unix() / 86_400; ; {} }", "lib/job/a_test.go:2: takes its seed"},
		"a seed otherwise from the clock":                     {"lib/job/a_test.go", "package job\nfunc f() { process.Number(t, \"X\", uint64(time.Now().UnixNano())) }", "lib/job/a_test.go:2: takes its seed"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"go.mod":                 {Data: []byte("module github.com/belfry-scheduler/belfry")},
				"lib/job/job.go":         {Data: []byte("package job")},
				".ci/planted/lib/x/x.go": {Data: []byte("package util")},
				"tests/listed/a_test.go": {Data: []byte("package listed\nimport \"time\"\nfunc f() { time.Sleep(1) }")},
				"tests/listed/b_test.go": {Data: []byte("package listed\nfunc g() { context.WithTimeout(ctx, time.Second) }")},
			}
			fsys[row.file] = &fstest.MapFile{Data: []byte(row.text)}
			tree, err := read(fsys)
			if err != nil {
				t.Fatal(err)
			}
			broken := tree.check(map[string]string{"tests/listed/a_test.go": "as an example"}, map[string]string{"tests/listed/b_test.go": "as an example"})
			switch {
			case row.want == "" && len(broken) > 0:
				t.Errorf("allowed, but: %q", broken)
			case row.want != "" && (len(broken) != 1 || !strings.HasPrefix(broken[0], row.want)):
				t.Errorf("got %q, want one that begins with %q", broken, row.want)
			}
		})
	}
}
