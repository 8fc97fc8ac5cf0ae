// Command release builds what people download: one archive for each platform, a list of what each binary is made of
// (CycloneDX), and SHA-256 sums of all of it. The same source, version and Go give the same bytes: file times come from
// the commit, owners are nobody, and nothing of the building machine is in them.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// here is the platform that this machine can run.
var here = runtime.GOOS + "/" + runtime.GOARCH

// version is what a release may be called, after Semantic Versioning 2.0.0.
var version = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

type release struct {
	root, out, version string
	time               time.Time // of the commit
}

func main() {
	var r release
	var only string
	flag.StringVar(&r.version, "version", "", "what the release is called, as v1.2.3")
	flag.StringVar(&r.out, "out", "dist", "folder for the result; it must be empty or not there")
	flag.StringVar(&only, "only", strings.Join(platforms, ","), "platforms, with commas")
	flag.Parse()
	if err := r.make(strings.Split(only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) make(targets []string) error {
	if !version.MatchString(r.version) {
		return fmt.Errorf("-version %q: want one such as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	for _, t := range targets {
		if !slices.Contains(platforms, t) {
			return fmt.Errorf("-only %q: want some of %s", t, strings.Join(platforms, ", "))
		}
	}
	top, err := output("", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r.root = strings.TrimSpace(string(top))
	seconds, err := output(r.root, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(strings.TrimSpace(string(seconds)), 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	r.time = time.Unix(unix, 0).UTC()
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.out); err == nil && len(there) > 0 {
		return fmt.Errorf("-out %s: is not empty; what is in it would be taken for part of this release", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "belfry-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binaries := map[string]string{}
	for _, t := range append([]string{here}, targets...) {
		if binaries[t] != "" {
			continue
		}
		fmt.Println("building", t)
		binaries[t] = filepath.Join(work, strings.ReplaceAll(t, "/", "-"), "belfry")
		if err := r.build(binaries[t], t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	extras, err := r.extras(work, binaries[here])
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := r.platform(t, binaries[t], extras); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return r.sums()
}

// file is one entry of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// extras are what every archive has beside the binary. Man pages and completions come from the binary itself, the one for this
// machine.
func (r *release) extras(work, binary string) ([]file, error) {
	man := filepath.Join(work, "man")
	quiet := []string{"BELFRY_CONFIG=" + filepath.Join(work, "none.toml"), "HOME=" + work, "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10)}
	if _, err := output(work, quiet, binary, "man", "--dir", man); err != nil {
		return nil, err
	}
	var all []file
	err := filepath.WalkDir(man, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		all = append(all, file{"man/" + d.Name(), 0o644, data})
		return err
	})
	if err != nil {
		return nil, err
	}
	for shell, name := range map[string]string{"bash": "belfry.bash", "zsh": "_belfry", "fish": "belfry.fish"} {
		script, err := output(work, quiet, binary, "completion", shell)
		if err != nil {
			return nil, err
		}
		all = append(all, file{"completions/" + name, 0o644, script})
	}
	for name, from := range map[string]string{"LICENSE": "LICENSE", "README.md": "README.md",
		"systemd/belfry.service": "infra/systemd/belfry.service", "systemd/belfry.env": "infra/systemd/belfry.env",
		"systemd/belfry.sysusers": "infra/systemd/belfry.sysusers"} {
		data, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, 0o644, data})
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// build makes a static binary without the paths of this machine.
func (r *release) build(to, platform string) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + goos, "GOARCH=" + goarch}
	_, err := output(r.root, env, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace,disable_grpc_modules", "-ldflags", "-s -w -X main.version="+r.version, "-o", to, "./cmd/belfry")
	return err
}

// platform writes one archive and its bill of materials.
func (r *release) platform(platform, binary string, extras []file) error {
	name := "belfry-" + r.version + "-" + strings.ReplaceAll(platform, "/", "-")
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	archive, err := r.archive(name, slices.Concat([]file{{"belfry", 0o755, data}}, extras))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, name+".tar.gz"), archive, 0o644); err != nil {
		return err
	}
	// Without serial number and time, which would differ each time.
	_, err = output(filepath.Join(r.root, ".ci", "release"), nil, "go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version", r.version, "-output", filepath.Join(r.out, name+".cdx.json"), binary)
	return err
}

func (r *release) archive(folder string, files []file) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	packed := tar.NewWriter(zipped)
	for _, f := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: r.time, Format: tar.FormatPAX}
		if err := packed.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := packed.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// sums writes SHA256SUMS in the form that sha256sum -c reads.
func (r *release) sums() error {
	all, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range all {
		data, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	fmt.Print(text.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// output runs a command and gives what it printed.
func output(dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaint.Bytes())
	}
	return out, nil
}
