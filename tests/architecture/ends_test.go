package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// enders are the files that may end a run, each with what it ends. A run that ends gives up its place at the gate of its job without a word:
// whoever finds the gate full reads it. Whoever is to tell of it, as gates with a line will want, has to do so in each of these.
var enders = map[string]string{
	"lib/backup/restore.go":    "what had not ended in a copy of the past",
	"lib/backup/settle.go":     "fires that a copy of the past has missed, which have never begun",
	"lib/control/runs.go":      "what is cancelled, one by one and in bulk",
	"lib/control/settle.go":    "runs on demand of a job that was deleted, and whose name is used again",
	"lib/dispatch/check.go":    "attempts whose lease is over",
	"lib/dispatch/deleted.go":  "fires of a deleted job that have not started",
	"lib/dispatch/enter.go":    "runs that find no room at their gate, which have never entered it",
	"lib/dispatch/fires.go":    "fires of a deleted job, and fires that were missed",
	"lib/dispatch/requests.go": "runs on demand of a deleted job",
	"lib/lease/enter.go":       "runs of a deleted job that wait for room",
	"lib/lease/held.go":        "attempts of this process, and of workers elsewhere",
	"lib/lease/look.go":        "attempts whose lease is over, when their message comes again",
	"lib/lease/rescue.go":      "runs whose messages were given up",
}

// ending are the methods of run.Run that may give it an end. Skip has a namesake with fewer arguments.
var ending = map[string]int{"Succeed": 4, "Fail": 3, "Crash": 3, "GiveUp": 3, "AskCancel": 3, "Cancelled": 3, "Restored": 3, "Skip": 3, "Withdraw": 3, "Overlapping": 3}

func TestTheFilesThatMayEndARun(t *testing.T) {
	root := os.DirFS("../..")
	found := map[string]bool{}
	for _, folder := range []string{"lib", "cmd", "functions"} {
		if err := fs.WalkDir(root, folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || path.Dir(name) == "lib/run" {
				return err
			}
			text, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+module+`lib/run"` }) {
				return nil
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if method, ok := call.Fun.(*ast.SelectorExpr); ok && ending[method.Sel.Name] == len(call.Args) && len(call.Args) > 0 {
						found[name] = true
					}
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if enders[name] == "" {
			t.Errorf("%s ends runs: say which beside the others", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(enders)) {
		if !found[name] {
			t.Errorf("%s ends no run any more", name)
		}
	}
}
