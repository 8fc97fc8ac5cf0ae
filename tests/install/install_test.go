// Package install proves that `go install …/cmd/belfry@version` works: the module as the Go proxy would hand it out, put into an
// empty folder of somebody who has nothing but Go.
package install

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// version is one that nobody will ever release, and that no test running beside this one puts into the host's cache.
var version = fmt.Sprintf("v0.0.0-0.test%d", os.Getpid())

var root = filepath.Join("..", "..")

func goMod(t *testing.T) (*modfile.File, []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, text
}

// The go command refuses to install from a module whose go.mod holds what counts only for the main module.
func TestGoModHoldsNothingForItselfAlone(t *testing.T) {
	parsed, _ := goMod(t)
	if n := len(parsed.Replace); n > 0 {
		t.Errorf("%d replace directives: with them, nobody can go install", n)
	}
	if n := len(parsed.Exclude); n > 0 {
		t.Errorf("%d exclude directives: with them, nobody can go install", n)
	}
}

func TestGoInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command: not under -short")
	}
	parsed, text := goMod(t)
	this := module.Version{Path: parsed.Module.Mod.Path, Version: version}
	served := filepath.Join(t.TempDir(), this.Path, "@v")
	if err := os.MkdirAll(served, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": text, version + ".zip": zipped(t, this)} {
		if err := os.WriteFile(filepath.Join(served, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	proxy := "file://" + strings.TrimSuffix(filepath.ToSlash(served), "/"+this.Path+"/@v")

	// The modules that it needs are in this host's cache, since it was built here; of the one above nothing may stay there.
	cache := strings.TrimSpace(output(t, exec.Command("go", "env", "GOMODCACHE")))
	forget := func() {
		_ = os.RemoveAll(filepath.Join(cache, filepath.FromSlash(this.Path)+"@"+version))
		downloads := filepath.Join(cache, "cache", "download", filepath.FromSlash(this.Path), "@v")
		kept, _ := filepath.Glob(filepath.Join(downloads, version+".*"))
		for _, file := range kept {
			_ = os.Remove(file)
		}
		if list, _ := os.ReadFile(filepath.Join(downloads, "list")); strings.TrimSpace(string(list)) == version {
			_ = os.Remove(filepath.Join(downloads, "list"))
		}
	}
	forget()
	t.Cleanup(forget)

	bin := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", "-modcacherw", this.Path+"/cmd/belfry@"+version)
	install.Dir = t.TempDir() // empty: no go.mod, no clone
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=-mod=mod", "GOWORK=off", "GOSUMDB=off", "CGO_ENABLED=0",
		"GOPROXY="+proxy+",file://"+filepath.ToSlash(filepath.Join(cache, "cache", "download"))+",off")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	var told struct{ Version string }
	said := output(t, exec.CommandContext(t.Context(), filepath.Join(bin, "belfry"), "version", "--output", "json"))
	if err := json.Unmarshal([]byte(said), &told); err != nil || told.Version != version {
		t.Errorf("belfry version says %s, %v, want %s", said, err, version)
	}
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, said.String())
	}
	return string(out)
}

// file is a file of the module's zip.
type file struct{ name, at string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return os.Lstat(f.at) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.at) }

// zipped is the module as the proxy would hand it out if everything here that is not ignored were committed.
func zipped(t *testing.T, this module.Version) []byte {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names := strings.Split(strings.TrimSuffix(output(t, list), "\x00"), "\x00")
	var files []modzip.File
	for _, name := range names {
		f := file{name, filepath.Join(root, filepath.FromSlash(name))}
		if info, err := f.Lstat(); err != nil || !info.Mode().IsRegular() {
			continue // deleted and not committed, or a link, which no zip of a module holds
		}
		if slices.ContainsFunc(names, func(other string) bool {
			return path.Base(other) == "go.mod" && other != "go.mod" && strings.HasPrefix(name, path.Dir(other)+"/")
		}) {
			continue // of another module
		}
		files = append(files, f)
	}
	var out bytes.Buffer
	if err := modzip.Create(&out, this, files); err != nil {
		t.Fatalf("the module cannot be handed out: %v", err)
	}
	reader, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(reader.File) < 100 {
		t.Fatalf("the module has only %d files", len(reader.File))
	}
	return out.Bytes()
}
