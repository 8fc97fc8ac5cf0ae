package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make build, the releases and the image are built with, and what is linted and tested.
const buildTags = "grpcnotrace,disable_grpc_modules"

func TestEveryBuildIsTheOneThatIsWeighed(t *testing.T) {
	emulated := `test -c -tags "emulators${DEEP:+,deep},` + buildTags + `" `
	for path, wants := range map[string][]string{
		"Makefile":                {"BUILD_FLAGS := -trimpath -tags=" + buildTags + "\n", "export CGO_ENABLED := 0\n"},
		"infra/docker/Dockerfile": {`build -trimpath -tags ` + buildTags + ` -ldflags "-s -w `, "CGO_ENABLED=0 GOOS="},
		".ci/release/main.go":     {`"-tags", "` + buildTags + `", "-ldflags", "-s -w `, `"build", "-trimpath", `, `"CGO_ENABLED=0", `},
		".golangci.yml":           {"build-tags: [emulators, deep, " + strings.ReplaceAll(buildTags, ",", ", ") + "]\n"},
		"localstack/test":         {emulated},
		"localstack/e2e":          {emulated},
	} {
		text := readText(t, filepath.Join("..", "..", path))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %s", path, want)
			}
		}
	}
}

// A package that is reached through reflection by name, as templates do, keeps every method of every SDK in the binary.
func TestTheBinaryIsUnder50MB(t *testing.T) {
	if testing.Short() {
		t.Skip("links the whole binary for one more processor")
	}
	out := filepath.Join(t.TempDir(), "belfry")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", buildTags, "-ldflags", "-s -w", "-o", out, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() >= 50e6 {
		t.Errorf("%d bytes, want under 50 MB: go tool nm -size -sort size tells what is large, go list -deps ./cmd/belfry what came in", info.Size())
	}
}

func TestTheBinaryLinksNoXRay(t *testing.T) {
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", buildTags, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(deps)) {
		if strings.Contains(dep, "aws-xray-sdk-go/v2/xray") {
			t.Errorf("%s is linked", strings.TrimSpace(dep))
		}
	}
}
