// Package docs holds what is written to what is there: links lead somewhere, and what a reader is told to run can be run.
package docs

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/tests/docs/markdown"
)

func TestLinksLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	links := 0
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range markdown.Links(string(text)) {
			links++
			target, anchor, _ := strings.Cut(link.Target, "#")
			other, found := page, true
			if target != "" {
				other = filepath.Join(filepath.Dir(page), filepath.FromSlash(target))
				_, err := os.Stat(other)
				found = err == nil
			}
			if !found {
				t.Errorf("%s:%d: no file %s", page, link.Line, link.Target)
				continue
			}
			if anchor == "" || filepath.Ext(other) != ".md" {
				continue
			}
			there, err := os.ReadFile(other)
			if err != nil {
				t.Fatal(err)
			}
			if !markdown.HasAnchor(string(there), anchor) {
				t.Errorf("%s:%d: %s has no heading #%s", page, link.Line, other, anchor)
			}
		}
	}
	t.Logf("%d links", links)
}

// A row with another number of cells than its head's is shown with some missing, or in the wrong columns.
func TestEveryRowOfATableHasTheCellsOfItsHead(t *testing.T) {
	rows := 0
	for _, page := range pages(t, filepath.Join("..", "..")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range markdown.Rows(string(text)) {
			if rows++; row.Cells != row.Head {
				t.Errorf("%s:%d: %d cells, want %d as in the head of the table; a | in a cell is written \\|", page, row.Line, row.Cells, row.Head)
			}
		}
	}
	t.Logf("%d rows", rows)
}

// What a reader is told to run must at least be what a shell can read.
func TestCommandsAreShell(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := markdown.Commands(string(text))
		if err != nil {
			t.Errorf("%s: %v", page, err)
		}
		for _, block := range blocks {
			cmd := exec.Command("sh", "-n")
			cmd.Stdin = strings.NewReader(block.Text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: block %q: %s", page, block.Line, block.Name, bytes.TrimSpace(out))
			}
		}
	}
}

// pages lists README.md and all Markdown below docs.
func pages(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	if _, err := os.Stat(filepath.Join(root, "README.md")); err == nil {
		all = append(all, filepath.Join(root, "README.md"))
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no page found")
	}
	return all
}
