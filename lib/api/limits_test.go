package api

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// The pages of the console go by the server's numbers.
func TestTheConsoleHasTheLimitsOfTheServer(t *testing.T) {
	path := filepath.Join("..", "console", "web", "src", "limits.ts")
	want := fmt.Sprintf(`// Written by make generate: what the server holds to.

/** inRequest is how many runs or jobs one request may be about. */
export const inRequest = %d

/** seconds is how long one request over many may take. */
export const seconds = %d

/** explained is how many refusals one answer tells in words. */
export const explained = %d

/** sampled is how many a dry run over a filter shows. */
export const sampled = %d
`, control.MaxLimit, int(control.BulkTime.Seconds()), invalid.Most, control.Sampled)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what the server holds to (%v); make generate writes it", path, err)
	}
}
