package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What others read of the benchmarks stays.
func TestBenchTellsItsFields(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	burnt := belfry(t, "", "bench", "burn-down", "--runs", "150", "--batch", "50", "-o", "json")
	if burnt.code != 0 {
		t.Fatal(burnt.errors)
	}
	fields := decode[map[string]any](t, burnt.out)
	for _, name := range []string{"runs", "read_back", "insert_seconds", "insert_per_second", "burn_down_seconds", "burn_down_per_second", "total_per_second",
		"peak_rss_bytes", "disk_bytes_per_run"} {
		if v, _ := fields[name].(float64); v <= 0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	for _, name := range []string{"machine", "insert_synced", "burn_down_synced", "ceiling", "insert_ceiling"} {
		if _, ok := fields[name].(map[string]any); !ok {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	inserted := belfry(t, "", "bench", "insert", "--for", "50ms", "--batch", "20", "-o", "json")
	if inserted.code != 0 {
		t.Fatal(inserted.errors)
	}
	rows, _ := decode[map[string]any](t, inserted.out)["rows"].([]any)
	for _, row := range rows {
		row, _ := row.(map[string]any)
		if via := row["via"]; via != "process" && via != "http" {
			t.Errorf("via %v", via)
		}
		for _, name := range []string{"callers", "batch", "per_second", "p50_ms", "p99_ms", "max_ms"} {
			if v, _ := row[name].(float64); v <= 0 {
				t.Errorf("%s is %v", name, row[name])
			}
		}
	}
	if len(rows) != 8 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestBenchSaysWhatWasSynced(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got := belfry(t, "", "bench", "burn-down", "--runs", "150")
	if got.code != 0 {
		t.Fatal(got.errors)
	}
	for _, text := range []string{"PHASE", "burn down", "150 runs are in the history as succeeded", "every acknowledged change: ", " fdatasyncs", "cores"} {
		if !strings.Contains(got.out, text) {
			t.Errorf("%q is missing in\n%s", text, got.out)
		}
	}
}

func TestASoakTellsItsTrendsInWords(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got := belfry(t, "", "bench", "soak", "--for", "4s", "--every", "1s", "--rate", "20")
	if got.code != 0 {
		t.Fatal(got.errors)
	}
	for _, text := range []string{"GOROUTINES", "\n4s ", "looks scatter by", " bytes a run, all of which are kept", "retention  20 runs a second kept for 24h0m0s would take ", " 0 runs left"} {
		if !strings.Contains(got.out, text) {
			t.Errorf("%q is missing in\n%s", text, got.out)
		}
	}
}

func TestBenchShowsWhatWorkflowsTake(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got := belfry(t, "", "bench", "workflow", "--for", "20ms", "--callers", "2")
	if got.code != 0 {
		t.Fatal(got.errors)
	}
	for _, text := range []string{"KIND", "a run of no workflow", "a chain of 10 steps", "100 steps at once and a join", "291 to 300", "every acknowledged change: "} {
		if !strings.Contains(got.out, text) {
			t.Errorf("%q is missing in\n%s", text, got.out)
		}
	}
}

func TestBenchRefusesAFolderOfSomebodys(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := belfry(t, "", "bench", "insert", "--data", folder); got.code != exitUsage || !strings.Contains(got.errors, "want a folder that is empty or not there") {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(filepath.Join(folder, "mine")); err != nil {
		t.Error(err)
	}
	if got := belfry(t, "", "bench", "burn-down", "--runs", "0"); got.code != exitUsage || !strings.Contains(got.errors, "runs") {
		t.Errorf("got %+v", got)
	}
}

func TestBenchNamesTheFlagThatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"burn-down --runs 0":         `--runs: got "0", want 1 to 1073741824`,
		"insert --batch 1":           `--batch: got "1", want 2 to 1000`,
		"lateness --for 1ms":         `--for: got "1ms", want 1s to 24h`,
		"scale --workers 10001":      `--workers: got "10001", want 1 to 10000`,
		"scale --ticks 0":            `--ticks: got "0", want 1 or more`,
		"soak --retention 1h":        `--retention: got "1h0m0s", want 24h to 43800h`,
		"workflow --callers 1":       `--callers: got "1", want 2 to 1000`,
		"soak --for 10s --every 11s": `--every: got "11s", want 1s to a third of --for`,
	} {
		if got := belfry(t, "", append([]string{"bench"}, strings.Fields(line)...)...); got.code != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("%s: got %+v, want %s", line, got, want)
		}
	}
}

// Whatever ends a benchmark but SIGKILL, its folder goes.
func TestASignalEndsABenchmarkAndLeavesNothing(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) { endedBy(t, signal) })
	}
}

func endedBy(t *testing.T, signal syscall.Signal) {
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "bench", "burn-down")
	cmd.Env = append(os.Environ(), "BELFRY_TEST_PROCESS=1", "TMPDIR="+folder)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the benchmark begins", func() (bool, string) {
		found, err := filepath.Glob(filepath.Join(folder, "*", "*", "store", "*.log"))
		return err == nil && len(found) > 0, said.String()
	})
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	over := signalled(cmd, signal)
	_ = cmd.Wait() // its code is looked at
	over()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("it ended with %d: %s", code, said.String())
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
