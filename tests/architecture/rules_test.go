package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/belfry-scheduler/belfry/"

// ports have their adapters in the folders below them.
var ports = []string{"lib/store", "lib/queue", "lib/blob", "lib/metrics", "lib/trace", "lib/target"}

// wirers are the packages of lib that build a whole scheduler out of adapters, as mains do: for programs that embed one, and for the
// functions, which wire the shared engines as the binary does, to be measured, and to be simulated; lib/plan/ordering, of which the queue alone.
var wirers = []string{"lib/embed", "lib/belfrytest", "lib/cloud", "lib/lambda", "lib/lambda/work", "lib/bench", "lib/simulate", "lib/plan/ordering"}

// drawers are names that tell nothing of what is inside, so that everything ends up there.
var drawers = []string{"util", "utils", "common", "types", "helper", "helpers", "model", "models", "misc", "shared", "base"}

// sleepers are the files of tests that may sleep in real time, each with the reason why no signal would do.
var sleepers = map[string]string{
	"lib/queue/queuetest/queuetest.go": "the suite runs against queues far away too, whose depth is approximate and changes without a signal",
	"lib/store/pebble/store_test.go":   "Pebble shows what is not yet synced at a moment that it tells nobody",
}

const (
	longestFile = 600 // lines; worry at 400
	longestMain = 40  // lines of a Lambda main, which only wires
)

type source struct {
	name    string // slash-separated, from the module's root
	pkg     string // of the package clause
	lines   int
	imports []string // within the module, without its path
	sleeps  []int    // lines that call time.Sleep
	virtual bool     // imports testing/synctest, whose bubbles have their own time

	waits     waits
	constants map[string]ast.Expr
}

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

type tree struct {
	packages map[string][]source // by folder
}

// read parses every Go file of the module.
func read(fsys fs.FS) (tree, error) {
	t := tree{map[string][]source{}}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := path.Base(name)
			if name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata") {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		s, err := parse(fsys, name)
		t.packages[path.Dir(name)] = append(t.packages[path.Dir(name)], s)
		return err
	})
	return t, err
}

func parse(fsys fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return source{}, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	s := source{name: name, pkg: file.Name.Name, lines: strings.Count(string(text), "\n"), waits: waitsOf(file, files), constants: constants(file)}
	clock := ""
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		switch {
		case imported == "time":
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		case imported == "testing/synctest":
			s.virtual = true
		case strings.HasPrefix(imported, module):
			s.imports = append(s.imports, strings.TrimPrefix(imported, module))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && clock != "" && selector.Sel.Name == "Sleep" {
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == clock {
				s.sleeps = append(s.sleeps, files.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return s, nil
}

// adapter tells whether a package speaks one technology for a port; decorators and conformance suites serve all engines.
func adapter(dir string) bool {
	return slices.Contains(ports, path.Dir(dir)) && !suite(dir) && path.Base(dir) != "faulty"
}

func suite(dir string) bool {
	return slices.Contains(ports, path.Dir(dir)) && strings.HasSuffix(dir, "test")
}

// check lists what breaks a rule, in the order of the files.
func (t tree) check(sleepers, hasty map[string]string) []string {
	var broken []string
	refuse := func(where, format string, args ...any) {
		broken = append(broken, where+": "+fmt.Sprintf(format, args...))
	}
	slept, waited := map[string]bool{}, map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(t.packages)) {
		checkPlace(dir, refuse)
		// One file of a package may open the bubble in which the tests of the others run.
		virtual := slices.ContainsFunc(t.packages[dir], func(s source) bool { return s.virtual })
		t.checkWaits(dir, virtual, hasty, waited, refuse)
		for _, s := range t.packages[dir] {
			if strings.HasPrefix(dir, "functions/") && s.pkg != "main" && !s.isTest() {
				refuse(dir, "want package main: a Lambda only wires, what it does belongs in lib/, where the binary shares it")
			}
			if strings.HasPrefix(dir, "functions/") && s.lines >= longestMain && !s.isTest() {
				refuse(s.name, "%d lines; a Lambda main has under %d, because what it does belongs in lib/", s.lines, longestMain)
			}
			if s.lines > longestFile && !s.isTest() && !suite(dir) {
				refuse(s.name, "%d lines; split it by concept, a reader holds %d at most", s.lines, longestFile)
			}
			if !s.isTest() {
				checkArrows(dir, s, refuse)
				checkConsole(dir, s, refuse)
			}
			if s.isTest() || suite(dir) || strings.HasPrefix(dir, "tests/") {
				slept[s.name] = len(s.sleeps) > 0
				for _, line := range s.sleeps {
					if !virtual && sleepers[s.name] == "" {
						refuse(fmt.Sprintf("%s:%d", s.name, line), "sleeps: wait for a signal, or use the virtual time of testing/synctest")
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sleepers)) {
		if !slept[name] {
			refuse(name, "does not sleep; take it out of sleepers")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hasty)) {
		if !waited[name] {
			refuse(name, "has no short deadline; take it out of hasty")
		}
	}
	return broken
}

// checkConsole holds that only what runs a server of its own has the console in it. A function has 21 MB, and each file of a page would be
// an invocation.
func checkConsole(dir string, s source, refuse func(where, format string, args ...any)) {
	if slices.Contains(s.imports, "lib/console") && !strings.HasPrefix(dir, "cmd/") && !strings.HasPrefix(dir, "examples/") {
		refuse(s.name, "imports lib/console: the pages belong to the binary; take an http.Handler, and let main choose")
	}
}

// checkPlace looks at where a package lies and what it is called.
func checkPlace(dir string, refuse func(where, format string, args ...any)) {
	if slices.Contains(drawers, path.Base(dir)) && dir != "tests/model" { // which is one, of the protocol
		refuse(dir, "the name says nothing: name the package by the concept it owns, a reader guesses the contents from the import")
	}
	parts := strings.Split(dir, "/")
	if !slices.Contains([]string{"cmd", "functions", "lib", "tests", "examples"}, parts[0]) {
		refuse(dir, "Go code lies in cmd/, functions/, lib/, tests/ or examples/")
	}
	if parts[0] == "lib" && len(parts) > 3 {
		refuse(dir, "two levels under lib/ are enough: a port and its adapter")
	}
}

// checkArrows holds that arrows point inward: mains and wirers know adapters, adapters know the domain, and the domain knows
// neither; else an engine could not be changed for another, and the Lambdas would carry the embedded one.
func checkArrows(dir string, s source, refuse func(where, format string, args ...any)) {
	if !strings.HasPrefix(dir, "lib/") {
		return
	}
	for _, imported := range s.imports {
		switch {
		case !strings.HasPrefix(imported, "lib/"):
			refuse(s.name, "imports %s: lib/ knows nothing of what is built on it", imported)
		case suite(imported) && !suite(dir):
			refuse(s.name, "imports %s, a conformance suite, outside of a test", imported)
		case adapter(imported) && slices.Contains(wirers, dir):
		case adapter(imported) && adapter(dir):
			refuse(s.name, "imports %s: adapters never import each other; what they share belongs to the port", imported)
		case adapter(imported):
			refuse(s.name, "imports %s, an adapter: take the port, and let main choose", imported)
		}
	}
}
