package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// findTests lists the tests below tree whose names carry a claim, in the order of their files.
//
// A test is a function Test… or Fuzz… of a _test.go file, a subtest named by a literal (an argument of Run, or a row of a
// table in a file of tests), or a script under testdata that a test of its package runs under its name. Conformance suites
// are Go files that import testing. Only what builds for Linux without tags counts: the rest does not run in make test.
func findTests(tree fs.FS) ([]test, error) {
	var all []test
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(tree, name)
		}
		var found []test
		switch {
		case path.Ext(name) == ".go":
			found, err = inFile(tree, name)
		case strings.Contains("/"+name, "/testdata/"):
			found, err = inScript(tree, name)
		}
		all = append(all, found...)
		return err
	})
	return all, err
}

// skip tells WalkDir to leave out what the go command would: hidden folders and other modules.
func skip(tree fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	if base := path.Base(dir); strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func inFile(tree fs.FS, name string) ([]test, error) {
	if strings.Contains("/"+name, "/testdata/") {
		return nil, nil
	}
	linux := build.Context{
		GOOS: "linux", GOARCH: "amd64", Compiler: "gc", CgoEnabled: true, ReleaseTags: build.Default.ReleaseTags,
		JoinPath: path.Join,
		OpenFile: func(name string) (io.ReadCloser, error) { return tree.Open(name) },
	}
	if builds, err := linux.MatchFile(path.Dir(name), path.Base(name)); err != nil || !builds {
		return nil, err
	}
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse tests: %w", err)
	}
	if !imports(file, "testing") {
		return nil, nil
	}

	var found []test
	add := func(testName string) {
		if claims := named(strings.TrimPrefix(strings.TrimPrefix(testName, "Test"), "Fuzz")); claims != nil {
			found = append(found, test{name, testName, claims})
		}
	}
	row := func(e ast.Expr) {
		// Other data than names stands in composite literals too, and might speak of a claim in a sentence.
		if text := literal(e); strings.Contains(text, "_") && !strings.Contains(text, " ") {
			add(text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			isTest := strings.HasPrefix(n.Name.Name, "Test") || strings.HasPrefix(n.Name.Name, "Fuzz")
			if isTest && n.Recv == nil && strings.HasSuffix(name, "_test.go") {
				add(n.Name.Name)
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Run" && len(n.Args) > 0 {
				add(literal(n.Args[0]))
			}
		case *ast.CompositeLit:
			// A row {"Fault19_every_page", check}, a field name: "Fault19_…", or a key of a map of tests.
			for _, element := range n.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					row(pair.Key)
					row(pair.Value)
				} else {
					row(element)
				}
			}
		}
		return true
	})
	return found, nil
}

// inScript finds the claims in the name of a file under testdata, if a test of the package it lies in reads that folder.
func inScript(tree fs.FS, name string) ([]test, error) {
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	claims := named(base)
	if claims == nil {
		return nil, nil
	}
	dir, _, _ := strings.Cut("/"+name, "/testdata/")
	dir = path.Join(".", strings.TrimPrefix(dir, "/"))
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		source, err := fs.ReadFile(tree, path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(source), `"testdata`) {
			return []test{{name, base, claims}}, nil
		}
	}
	return nil, nil
}

// literal is the text of a string literal, "" for any other expression.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

func imports(file *ast.File, pkg string) bool {
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote(pkg) {
			return true
		}
	}
	return false
}
