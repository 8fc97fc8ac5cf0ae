package program_test

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/tests/program"
)

// Programs are executed as soon as they are written, while others are being started. Without the lock some thousand of these find one busy.
func TestAProgramIsNeverBusy(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			path := filepath.Join(dir, string(rune('a'+i)))
			for range 40 {
				if err := program.Write(path, []byte("#!/bin/sh\nexit 0\n")); err != nil {
					t.Error(err)
				}
				if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}
	all.Wait()
}
