//go:build emulators && deep

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A browser has one journey through the pages that belfry console shows of the stack; the other journeys are those of make test-console.
func aBrowserUsesTheStack(t *testing.T, f fixture) {
	const profile = "stack"
	job := f.stack.put(t, "browser", object{"target": f.target.at("browser").get()})
	config := filepath.Join(t.TempDir(), "config.toml")
	auth, settings := "iam", [][]string{{"address", f.stack.address}, {"aws_region", env(t, "AWS_REGION")}}
	if f.stack.key != "" {
		auth, settings = "api-key", [][]string{{"address", f.stack.address}, {"api_key", f.stack.key}}
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "BELFRY_") }) // the profile says it all
		cmd.Env = append(cmd.Env, "BELFRY_CONFIG="+config, "BELFRY="+env(t, "BELFRY_BINARY"), "JOB="+job, "PROFILE="+profile)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, text)
		}
	}
	for _, set := range append(settings, []string{"auth", auth}) {
		run(env(t, "BELFRY_BINARY"), "config", "set", set[0], set[1], "--profile", profile)
	}
	run("node", "--test", "--test-force-exit", "--test-reporter=spec", "../../lib/console/web/test/stack.mjs")
}
