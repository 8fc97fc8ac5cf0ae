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

// enders are the files that may end a run. A run that ends makes room at the gate of its job, and whoever waits there is let in by whoever wrote the end, or nobody
// lets it in before its check. So each of these files calls one of the hooks, or says why it has none.
var enders = map[string]struct{ ends, without string }{
	"lib/backup/restore.go":    {"what had not ended in a copy of the past", "nothing waits in the copy, whose lines are left out"},
	"lib/backup/settle.go":     {"fires that a copy of the past has missed, which have never begun", "they hold no place"},
	"lib/control/runs.go":      {ends: "what is cancelled, one by one and in bulk"},
	"lib/control/settle.go":    {"runs on demand of a job that was deleted, and whose name is used again", "the edit that settles lets in, in edit.go"},
	"lib/dispatch/check.go":    {ends: "attempts whose lease is over"},
	"lib/dispatch/deleted.go":  {"fires of a deleted job that have not started", "the delete that ends them sees to the line, in edit.go"},
	"lib/dispatch/displace.go": {ends: "runs that give way to a later one, and steps of those"},
	"lib/dispatch/full.go":     {"runs that find no room at their gate", "they have never entered it, and enter.go tells the gates before it"},
	"lib/dispatch/latest.go":   {"runs that wait, in whose place a later one waits", "they hold no place"},
	"lib/dispatch/fires.go":    {"fires of a deleted job, and fires that were missed", "they hold no place"},
	"lib/dispatch/flow.go":     {ends: "workflows' runs, and steps of those that were cancelled"},
	"lib/dispatch/letting.go":  {"runs that wait and are too late, or whose job was deleted", "they hold no place at that gate, and leaveNarrower tells those before it"},
	"lib/dispatch/named.go":    {ends: "runs of a deleted job that wait at a gate of several"},
	"lib/dispatch/requests.go": {ends: "runs on demand of a deleted job"},
	"lib/lease/held.go":        {ends: "attempts of this process, and of workers elsewhere"},
	"lib/lease/look.go":        {ends: "attempts whose lease is over, when their message comes again"},
	"lib/lease/rescue.go":      {ends: "runs whose messages were given up"},
}

// hooks let in whoever waits for a run that has ended, and bring on a workflow's whose step has ended, by how many arguments they have.
var hooks = map[string]int{"Left": 2, "left": 3, "found": 3}

// ending are the methods of run.Run that may give it an end. Skip has a namesake with fewer arguments.
var ending = map[string]int{"Succeed": 4, "Fail": 3, "Crash": 3, "GiveUp": 3, "AskCancel": 3, "Cancelled": 3, "Restored": 3, "Skip": 3, "Withdraw": 3, "Overlapping": 4, "Close": 4, "GiveWay": 3, "Replaced": 3}

func TestTheFilesThatMayEndARun(t *testing.T) {
	root := os.DirFS("../..")
	found, told := map[string]bool{}, map[string]bool{}
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
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				switch called := call.Fun.(type) {
				case *ast.SelectorExpr:
					found[name] = found[name] || ending[called.Sel.Name] == len(call.Args)
					told[name] = told[name] || hooks[called.Sel.Name] == len(call.Args)
				case *ast.Ident:
					told[name] = told[name] || hooks[called.Name] == len(call.Args)
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name] && enders[name].ends == "" {
			t.Errorf("%s ends runs: say which beside the others", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(enders)) {
		switch without := enders[name].without; {
		case !found[name]:
			t.Errorf("%s ends no run any more", name)
		case !told[name] && without == "":
			t.Errorf("%s ends runs, and tells no gate of it: call dispatch.Left, or say why not", name)
		case told[name] && without != "":
			t.Errorf("%s tells gates of ends, and says why it does not", name)
		}
	}
}
