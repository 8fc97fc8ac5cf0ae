package markdown

import (
	"slices"
	"strings"
	"testing"
)

const page = "# How a run lives\n" +
	"See [the store](store.md#keys \"keys\"), [here](#how-a-run-lives) and [home](https://example.org).\n" +
	"Not `[code](gone.md)`.\n\n" +
	"[ref]: ../README.md\n\n" +
	"```sh run=first\necho one \\\n  two\n```\n" +
	"```sh needs=clone\nmake test\n```\n" +
	"```go\n[no](link.md)\n# no heading\n```\n"

func TestLinks(t *testing.T) {
	want := []Link{{2, "store.md#keys"}, {2, "#how-a-run-lives"}, {5, "../README.md"}}
	if got := Links(page); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHasAnchor(t *testing.T) {
	for anchor, want := range map[string]bool{"how-a-run-lives": true, "no-heading": false, "how": false} {
		if HasAnchor(page, anchor) != want {
			t.Errorf("#%s: got %v", anchor, !want)
		}
	}
}

func TestCommands(t *testing.T) {
	got, err := Commands(page)
	want := []Block{{8, "first", "", "echo one \\\n  two\n"}, {12, "", "clone", "make test\n"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if text, err := Marked(page, "first"); err != nil || text != want[0].Text {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := Marked(page, "second"); err == nil || !strings.Contains(err.Error(), "run=second") {
		t.Errorf("got %v, want an error that names the block", err)
	}
	if _, err := Commands(page + page); err == nil || !strings.Contains(err.Error(), "run=first") {
		t.Errorf("got %v, want an error that names the doubled block", err)
	}
}

func TestSessions(t *testing.T) {
	got := Sessions("Text.\n\n```console\n$ true\n$ cat <<'END'\na\nEND\na\n$ ls\nx\ny\n```\n")
	want := []Example{{4, "true", ""}, {5, "cat <<'END'\na\nEND\n", "a"}, {9, "ls", "x\ny"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCommandsRefuseUnknownMarks(t *testing.T) {
	if _, err := Commands("```sh name=first\ntrue\n```\n"); err == nil || !strings.Contains(err.Error(), "name=first") {
		t.Errorf("got %v, want an error that names the mark", err)
	}
}

func TestRows(t *testing.T) {
	page := "text\n| a | b |\n|---|---|\n| 1 | `x\\|y` |\n| `x|y` | 2 |\n| only |\n|  | |\n\n```\n| no | table | at | all |\n```\n| c |\n|---|\n| d\n"
	want := []Row{{2, 2, 2}, {3, 2, 2}, {4, 2, 2}, {5, 3, 2}, {6, 1, 2}, {7, 2, 2}, {12, 1, 1}, {13, 1, 1}, {14, 1, 1}}
	if got := Rows(page); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
