package functions_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// How functions are built; the Makefile's targets for sam build, and the page that builds one without them, say the same.
const (
	tags     = "lambda.norpc,grpcnotrace"
	mostMB   = 22
	megabyte = 1_000_000
)

var all = []string{"api", "tick", "worker", "deadletter"}

func TestTheyAreBuiltAsTheyAreMeasured(t *testing.T) {
	flags := `-trimpath -tags ` + tags + ` -ldflags "-s -w`
	for path, want := range map[string]string{
		"../Makefile":          "FUNCTION_FLAGS = " + flags + " ",
		"../docs/functions.md": "go build " + flags + `" `,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}

// Lambda loads the whole binary at each cold start, and an upload without S3 takes 50 MB for all.
func TestEachBinaryIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four binaries for another processor")
	}
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "bootstrap")
			build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", tags, "-ldflags", "-s -w", "-o", out, "./"+name)
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
			if text, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			info, err := os.Stat(out)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.1f MB", name, float64(info.Size())/megabyte)
			if info.Size() >= mostMB*megabyte {
				t.Errorf("%d bytes, want under %d MB: go list -deps ./functions/%s tells what came in", info.Size(), mostMB, name)
			}
		})
	}
}

// What one machine needs alone, and what only the API needs, is in no other function.
func TestTheyLinkWhatTheyNeed(t *testing.T) {
	nobody := []string{
		"github.com/cockroachdb/pebble", "github.com/belfry-scheduler/belfry/lib/store/pebble", "github.com/belfry-scheduler/belfry/lib/queue/local",
		"gocloud.dev/blob/azureblob", "gocloud.dev/blob/gcsblob", "github.com/Azure", "cloud.google.com/go/storage",
		"github.com/prometheus", "github.com/spf13", "github.com/klauspost/compress/gzhttp", "github.com/aws/aws-xray-sdk-go/v2/xray", "github.com/valyala/fasthttp", "archive/zip",
		"github.com/belfry-scheduler/belfry/lib/target/mailtarget", "net/smtp",
	}
	onlyAPI := []string{"github.com/danielgtaylor/huma", "github.com/coreos/go-oidc", "github.com/belfry-scheduler/belfry/lib/api"}
	onlyWorker := []string{"github.com/belfry-scheduler/belfry/lib/target/awstarget"}
	for _, name := range all {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tags, "./"+name).Output()
		if err != nil {
			t.Fatal(err)
		}
		unwanted := slices.Clone(nobody)
		if name != "api" {
			unwanted = append(unwanted, onlyAPI...)
		}
		if name != "worker" {
			unwanted = append(unwanted, onlyWorker...)
		}
		for dep := range strings.Lines(string(out)) {
			dep = strings.TrimSpace(dep)
			for _, prefix := range unwanted {
				if dep == prefix || strings.HasPrefix(dep, prefix+"/") {
					t.Errorf("%s links %s", name, dep)
				}
			}
		}
	}
}

// Lambda counts how often an event has led to another of the same function, and stops the seventeenth: a run with a hundred attempts has
// more fresh messages than that.
func TestTheTemplateLetsMessagesGoRound(t *testing.T) {
	text, err := os.ReadFile("../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TickFunction", "WorkerFunction", "DeadLetterFunction"} {
		_, rest, found := strings.Cut(string(text), "\n  "+name+":\n")
		resource, _, _ := strings.Cut(rest, "\n\n")
		if !found || !strings.Contains(resource, "\n      RecursiveLoop: Allow\n") {
			t.Errorf("%s does not say RecursiveLoop: Allow", name)
		}
	}
}

// A main only wires.
func TestMainsAreShort(t *testing.T) {
	for _, name := range all {
		text, err := os.ReadFile(name + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines >= 40 {
			t.Errorf("functions/%s/main.go has %d lines, want under 40", name, lines)
		}
	}
}
