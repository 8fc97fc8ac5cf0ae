package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const called = "v9.8.7-test"

// built makes one release that all tests look at.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "release-test")
	if err != nil {
		return "", err
	}
	r := release{out: filepath.Join(dir, "dist"), version: called}
	return r.out, r.make([]string{here, "darwin/arm64"})
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(dir))
	}
	os.Exit(code)
}

func dist(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func name(platform string) string {
	return "belfry-" + called + "-" + strings.ReplaceAll(platform, "/", "-")
}

// unpacked gives the files of an archive, without the folder that holds them all.
func unpacked(t *testing.T, platform string) map[string][]byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(dist(t), name(platform)+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for in := tar.NewReader(zipped); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		folder, rest, _ := strings.Cut(header.Name, "/")
		if folder != name(platform) {
			t.Errorf("%s lies outside of %s", header.Name, name(platform))
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s belongs to %d:%d %q of the building machine", header.Name, header.Uid, header.Gid, header.Uname)
		}
		if files[rest], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
}

// binary is the release's own, ready to run.
func binary(t *testing.T) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "belfry")
	if err := os.WriteFile(at, unpacked(t, here)["belfry"], 0o755); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestArchiveHasAllThatAHostNeeds(t *testing.T) {
	for _, platform := range []string{here, "darwin/arm64"} {
		files := unpacked(t, platform)
		for _, want := range []string{"belfry", "LICENSE", "README.md", "man/belfry.1", "man/belfry-job-apply.1", "completions/belfry.bash",
			"completions/_belfry", "completions/belfry.fish", "systemd/belfry.service", "systemd/belfry.env", "systemd/belfry.sysusers"} {
			if len(files[want]) == 0 {
				t.Errorf("%s: %s is missing or empty", platform, want)
			}
		}
	}
	var said struct{ Version, Platform string }
	out, err := exec.Command(binary(t), "version", "--output", "json").Output()
	if err != nil || json.Unmarshal(out, &said) != nil || said.Version != called || said.Platform != here {
		t.Errorf("version says %s, %v; want %s on %s", out, err, called, here)
	}
}

func TestNothingOfTheBuildingMachineIsInIt(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	for file, data := range unpacked(t, here) {
		for _, trace := range []string{root + "/", filepath.Join(home, "go") + "/"} {
			if bytes.Contains(data, []byte(trace)) {
				t.Errorf("%s names %s", file, trace)
			}
		}
	}
}

func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	again := release{out: filepath.Join(t.TempDir(), "dist"), version: called}
	if err := again.make([]string{here}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dist(t), "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(again.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(want, []byte("\n")) != 4 || bytes.Count(got, []byte("\n")) != 2 {
		t.Fatalf("the sums of two platforms are\n%s\nand of one\n%s", want, got)
	}
	for sum := range bytes.Lines(got) {
		if !bytes.Contains(want, sum) {
			t.Errorf("first\n%s\nthen\n%s", want, sum)
		}
	}
}

func TestBillOfMaterialsListsWhatIsLinked(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dist(t), name(here)+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	if bill.BOMFormat != "CycloneDX" || bill.Metadata.Component.Version != called {
		t.Errorf("it is about %q %+v, want %s in CycloneDX", bill.BOMFormat, bill.Metadata.Component, called)
	}
	required, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, c := range bill.Components {
		listed[c.Name] = c.Version
		if !strings.HasPrefix(c.PURL, "pkg:golang/") {
			t.Errorf("%s has the package URL %q", c.Name, c.PURL)
		}
	}
	for _, module := range []string{"github.com/cockroachdb/pebble/v2", "github.com/danielgtaylor/huma/v2", "github.com/spf13/cobra", "gocloud.dev"} {
		if v := listed[module]; v == "" || !bytes.Contains(required, []byte(module+" "+v)) {
			t.Errorf("%s: listed as %q, want the version of go.mod", module, v)
		}
	}
	if listed["std"] == "" {
		t.Error("Go's own library is not listed, and its flaws count as well")
	}
}

func TestBadReleasesAreRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old.tar.gz"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r      release
		target string
		want   string
	}{
		{release{version: "1.2.3", out: t.TempDir()}, here, "-version"},
		{release{version: "v1.2", out: t.TempDir()}, here, "-version"},
		{release{version: called, out: t.TempDir()}, "plan9/amd64", "-only"},
		{release{version: called, out: full}, here, "-out"},
	} {
		if err := c.r.make([]string{c.target}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v %s: %v, want an error about %s", c.r, c.target, err, c.want)
		}
	}
}

// The unit is judged by systemd itself: that it means what it says, and how much of the machine it leaves open.
func TestUnitIsSoundAndTight(t *testing.T) {
	text, err := os.ReadFile("../../infra/systemd/belfry.service")
	if err != nil {
		t.Fatal(err)
	}
	const installed = "/usr/local/bin/belfry"
	if !bytes.Contains(text, []byte("ExecStart="+installed+" ")) {
		t.Fatalf("the unit does not start %s", installed)
	}
	unit := filepath.Join(t.TempDir(), "belfry.service")
	// systemd looks whether the program is there; the man page is installed with it.
	text = bytes.ReplaceAll(text, []byte(installed), []byte(binary(t)))
	text = bytes.ReplaceAll(text, []byte("Documentation=man:belfry(1)\n"), nil)
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// In tenths of systemd's exposure level, of 100: 1.1 when this was written.
	out, err = exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=15", "--no-pager", unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	// The user is one that systemd makes out of the file beside it.
	users, err := os.Open("../../infra/systemd/belfry.sysusers")
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	host := t.TempDir()
	if err := os.Mkdir(filepath.Join(host, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	makeUser := exec.Command("systemd-sysusers", "--root="+host, "-")
	makeUser.Stdin = users
	out, err = makeUser.CombinedOutput()
	passwd, _ := os.ReadFile(filepath.Join(host, "etc", "passwd"))
	if err != nil || !bytes.HasPrefix(passwd, []byte("belfry:")) && !bytes.Contains(passwd, []byte("\nbelfry:")) {
		t.Errorf("systemd-sysusers: %v\n%s\nand these users:\n%s", err, out, passwd)
	}
	// The command line is one that this binary understands.
	line := regexp.MustCompile(`(?m)^ExecStart=\S+ (.*)$`).FindSubmatch(text)
	args := append(strings.Fields(string(line[1])), "--help")
	if out, err := exec.Command(binary(t), args...).CombinedOutput(); err != nil {
		t.Errorf("belfry %v: %v\n%s", args, err, out)
	}
}

// image is the last stage of the Dockerfile.
type image struct {
	copies     [][2]string // from the first stage, to
	env        []string
	entrypoint []string
	cmd        []string
	user       string
}

func readDockerfile(t *testing.T) image {
	t.Helper()
	text, err := os.ReadFile("../../infra/docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	goMod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindSubmatch(goMod)
	if !regexp.MustCompile(`(?m)^FROM .*golang:` + regexp.QuoteMeta(string(minor[1])) + `\.\d+-`).MatchString(string(text)) {
		t.Errorf("the Dockerfile does not build with an exact version of Go %s", minor[1])
	}
	var i image
	for line := range strings.Lines(last) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "COPY":
			var paths []string
			for _, part := range strings.Fields(rest) {
				if !strings.HasPrefix(part, "--") {
					paths = append(paths, part)
				}
			}
			i.copies = append(i.copies, [2]string{paths[0], paths[1]})
		case "ENV":
			i.env = append(i.env, strings.Fields(rest)...)
		case "USER":
			i.user = rest
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &i.entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &i.cmd)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return i
}

// An image from scratch has nothing that a host has. So the binary runs with a folder as its whole file system that holds only
// what the Dockerfile copies, as the user that it names.
func TestImageFromScratchRuns(t *testing.T) {
	i := readDockerfile(t)
	root := t.TempDir()
	for _, c := range i.copies {
		to := filepath.Join(root, c[1])
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		switch path.Base(c[0]) {
		case "belfry":
			if err := os.WriteFile(to, unpacked(t, here)["belfry"], 0o755); err != nil {
				t.Fatal(err)
			}
		case "ca-certificates.crt":
			if err := os.WriteFile(to, nil, 0o644); err != nil { // the builder's; nothing is called by https here
				t.Fatal(err)
			}
		default:
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if i.user != "65532:65532" {
		t.Fatalf("the image runs as %q, want a user without any rights", i.user)
	}
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), i.entrypoint[0], append(i.entrypoint[1:], args...)...)
		cmd.Err = nil // it is looked up outside of the new root
		cmd.Path = i.entrypoint[0]
		cmd.Env, cmd.Dir = i.env, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Chroot: root, Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}},
		}
		return cmd
	}
	out, err := inside("version").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(called)) {
		t.Fatalf("version: %v\n%s", err, out)
	}
	// As it stands it has neither TLS nor a credential, and refuses to be reached from elsewhere with what to do about it.
	for _, c := range []struct {
		args []string
		want string
	}{{i.cmd, "--tls-cert"}, {append(slices.Clone(i.cmd), "--behind-proxy"), "token create"}} {
		out, err = inside(c.args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("%v: %v\n%s\nwant it to refuse, and to name %s", c.args, err, out, c.want)
		}
	}
	server := inside("serve", "--listen", "127.0.0.1:0", "--output", "json")
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	var greeting bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(stdout, &greeting))
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "}") {
	}
	go func() { _, _ = io.Copy(io.Discard, stdout); ended <- server.Wait() }()
	var at struct{ Address string }
	if err := json.Unmarshal(greeting.Bytes(), &at); err != nil {
		t.Fatalf("%v: %s\n%s", err, greeting.Bytes(), log.Bytes())
	}
	// The zone comes from inside the binary: there is no other.
	client := http.Client{Timeout: 5 * time.Minute}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, at.Address+"/v1/jobs/zoned",
		strings.NewReader(`{"schedule": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, "target": {"http": {"url": "https://example.org"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.Bytes())
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("a job in a zone: %s %s", answer.Status, text)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("told to stop, it ended with %v\n%s", err, log.Bytes())
		}
	case <-time.After(5 * time.Minute):
		server.Process.Kill()
		t.Errorf("told to stop, it went on\n%s", log.Bytes())
	}
	if there, err := os.ReadDir(filepath.Join(root, "data")); err != nil || len(there) == 0 {
		t.Errorf("the data folder holds %v, %v", there, err)
	}
}
