//go:build unix

package secret

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSourcesAreAskedInTurn(t *testing.T) {
	f := setup(t)
	dir := t.TempDir()
	env := map[string]string{"BELFRY_SECRET_A": "env", "BELFRY_SECRET_HOOK_TOKEN_V2": "env", "BELFRY_SECRET_EMPTY": ""}
	for _, name := range []string{"a", "b", "empty"} {
		write(t, filepath.Join(dir, name), "file\n")
		f.set("default", name, "vault")
	}
	write(t, filepath.Join(dir, "c"), "")
	f.set("default", "c", "vault")
	f.set("rival", "a", "rival's")
	find := Finder(Environment("default", func(name string) (string, bool) { v, ok := env[name]; return v, ok }), Folder("default", dir), f.Source())
	for _, c := range []struct{ tenant, name, want string }{
		{"default", "a", "env"}, {"default", "hook-token.v2", "env"}, {"default", "b", "file"}, {"default", "empty", "file"}, {"default", "c", "vault"},
		{"rival", "a", "rival's"},
	} {
		if got, err := find(t.Context(), c.tenant, c.name); got != c.want || err != nil {
			t.Errorf("%s of %s: got %q, %v; want %q", c.name, c.tenant, got, err, c.want)
		}
	}
	_, err := find(t.Context(), "default", "d-e")
	want := "no such secret; want it as BELFRY_SECRET_D_E in the worker's environment, the file " + filepath.Join(dir, "d-e") + " or Belfry's own store (belfry secret set d-e)"
	if !errors.Is(err, ErrMissing) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	// The operator's environment and files are not for every tenant.
	if _, err := find(t.Context(), "rival", "b"); !errors.Is(err, ErrMissing) || strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "BELFRY_SECRET") {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := Finder()(t.Context(), "default", "a"); !errors.Is(err, ErrMissing) {
		t.Errorf("no source: %v", err)
	}
}

func TestFilesAreReadAsTheyAreMounted(t *testing.T) {
	dir := t.TempDir()
	// Kubernetes: each name leads through a link that is changed at once for all.
	if err := os.Mkdir(filepath.Join(dir, "..v1"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "..v1", "token"), "one")
	for link, to := range map[string]string{"..data": "..v1", "token": "..data/token", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "crlf"), "two\r\n")
	write(t, filepath.Join(dir, "lines"), "-----\nx\n-----\n\n")
	write(t, filepath.Join(dir, "large"), strings.Repeat("h", MaxValue+1))
	write(t, filepath.Join(filepath.Dir(dir), "outside"), "hush")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := Finder(Folder("default", dir))
	for name, want := range map[string]string{"token": "one", "crlf": "two", "lines": "-----\nx\n-----\n"} {
		if got, err := folder(t.Context(), "default", name); got != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for name, says := range map[string]string{
		"dangling": "no such secret", "../outside": "no such secret", "..data/token": "no such secret", "..v1": "no such secret",
		"large": "larger than 32768", "pipe": "no file",
	} {
		if got, err := folder(t.Context(), "default", name); err == nil || got != "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, says)
		}
	}
}
