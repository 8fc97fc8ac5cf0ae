package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// garden is where mutants are planted: a module, and a folder for what is built.
type garden struct {
	root string // of the module
	dir  string // removed by its owner
	// bound is how long the tests of a package may take, and a seed of the simulation. Tests of a sound product need far less.
	bound time.Duration
}

// planted is a mutant ready to be built.
type planted struct {
	garden
	mutant
	overlay string // file for -overlay
	binary  map[string]string

	// What ran out of time, and so tells nothing.
	lateSeeds []uint64
	lateTests []string
}

// plant writes the mutant's files beside the tree, and the overlay that puts them in place of the originals.
func (g garden) plant(m mutant) (*planted, error) {
	p := &planted{garden: g, mutant: m, overlay: filepath.Join(g.dir, m.Name+".json"), binary: map[string]string{}}
	replaced := map[string]string{}
	for i, c := range m.patch {
		file := filepath.Join(g.root, filepath.FromSlash(c.File))
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		changed, err := c.apply(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), c.File, changed, parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		beside := filepath.Join(g.dir, fmt.Sprintf("%s-%d.go", m.Name, i))
		if err := os.WriteFile(beside, []byte(changed), 0o600); err != nil {
			return nil, err
		}
		replaced[file] = beside
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.overlay, text, 0o600)
}

// buildFor bounds a build: with an empty cache all of the module's dependencies are compiled.
const buildFor = 5 * time.Minute

// build makes the test binary of a package with the mutant in it.
func (p *planted) build(ctx context.Context, pkg string) (string, error) {
	if binary := p.binary[pkg]; binary != "" {
		return binary, nil
	}
	ctx, cancel := context.WithTimeout(ctx, buildFor)
	defer cancel()
	binary := filepath.Join(p.dir, p.Name+"-"+strings.ReplaceAll(pkg, "/", "-")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay", p.overlay, "-o", binary, "./"+pkg)
	cmd.Dir = p.root
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s does not build with %s: %w\n%s", pkg, p.Name, err, said.String())
	}
	p.binary[pkg] = binary
	return binary, nil
}

// uproot removes what was built.
func (p *planted) uproot() {
	for _, binary := range p.binary {
		_ = os.Remove(binary)
	}
	clear(p.binary)
}
