package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// calls are those that a target has seen, by run.
type calls struct {
	mu     sync.Mutex
	seen   map[string]time.Time // nominal
	fences map[string]int64
}

func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	nominal, err := time.Parse(time.RFC3339Nano, r.Header.Get("Belfry-Nominal-Time"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.seen[r.Header.Get("Belfry-Run")] = nominal
	var fence int64
	_, _ = fmt.Sscan(r.Header.Get("Belfry-Fence"), &fence)
	c.fences[r.Header.Get("Belfry-Run")] = fence
	fmt.Fprint(w, r.Header.Get("Belfry-Run"))
}

func (c *calls) of(job string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for run := range c.seen {
		if strings.HasPrefix(run, job+"~") {
			n++
		}
	}
	return n
}

func sink(t *testing.T) (*calls, string) {
	t.Helper()
	c := &calls{seen: map[string]time.Time{}, fences: map[string]int64{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, server.URL
}

// TestARestoredBackupFiresNothingOfThePast backs up a server that is busy, goes on with it, kills it, and restores the backup
// elsewhere, all with processes of their own.
func TestARestoredBackupFiresNothingOfThePast(t *testing.T) {
	t.Parallel()
	seen, url := sink(t)
	dir := t.TempDir()
	file, copied := filepath.Join(dir, "belfry.backup"), filepath.Join(dir, "copy")
	original, address, _ := startProcess(t, "--data", filepath.Join(dir, "original"))
	call := to(t, address)
	var jobs []string
	for i := range 20 {
		jobs = append(jobs, fmt.Sprintf(`{"name": "each-%02d", "schedule": {"every": "1s"}, "target": {"http": {"url": %q}}}`, i, url))
	}
	jobs = append(jobs, fmt.Sprintf(`{"name": "later", "target": {"http": {"url": %q}}}`, url))
	call(0, "["+strings.Join(jobs, ",")+"]", "job", "apply", "-f", "-")
	eventually(t, "the jobs run", func() (bool, string) { return seen.of("each-00") >= 2, "" })
	var soon wire.Run
	var done taken
	// It is to be due behind the backup, however long that takes here.
	laters := 1
	for delay := 5 * time.Second; ; delay *= 2 {
		soon = decode[wire.Run](t, call(0, "", "job", "trigger", "later", "--delay", delay.String(), "-o", "json").out)
		done = decode[taken](t, call(0, "", "backup", file, "-o", "json").out)
		if time.Now().Before(soon.NominalTime) {
			break
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		laters++
	}
	if done.Items < 50 {
		t.Errorf("the backup holds %d items", done.Items)
	}
	eventually(t, "the original goes on", func() (bool, string) { return seen.of("later") == laters, "" })
	if err := original.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = original.Wait()
	seen.mu.Lock()
	before, fence := len(seen.seen), seen.fences[soon.ID]
	seen.mu.Unlock()

	at := time.Now() // what the restore takes is no past any more
	report := decode[restored](t, belfry(t, "", "restore", file, "--data", copied, "-o", "json").out)
	if report.Jobs != 20 || report.Skipped < 20 || report.Unknown < 1 || report.NextRun == nil {
		t.Errorf("the restore says %+v", report)
	}
	_, address, _ = startProcess(t, "--data", copied)
	call = to(t, address)
	eventually(t, "the copy fires", func() (bool, string) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return len(seen.seen) >= before+60, ""
	})
	known := map[string]bool{}
	for _, r := range decode[[]wire.Run](t, call(0, "", "run", "list", "--job", "each-00", "--state", "succeeded", "-n", "0", "-o", "json").out) {
		known[r.ID] = true
		if got := call(0, "", "run", "get", r.ID, "-o", "json").out; !strings.Contains(got, r.ID) {
			t.Errorf("%s is not readable in the copy: %s", r.ID, got)
		}
	}
	seen.mu.Lock()
	later := 0
	for run, nominal := range seen.seen {
		if nominal.After(at) {
			later++
		} else if nominal.After(done.TakenAt.Add(2*time.Second)) && known[run] {
			t.Errorf("%s lies between the backup and the restore, and ran in the copy", run)
		}
	}
	if len(seen.seen)-before > later {
		t.Errorf("%d runs were called by the copy, of which %d lie behind the restore", len(seen.seen)-before, later)
	}
	seen.mu.Unlock()

	unknown := decode[wire.Run](t, call(0, "", "run", "get", soon.ID, "-o", "json").out)
	if unknown.State != "unknown" {
		t.Errorf("what was to run between is %s", unknown.State)
	}
	call(0, "", "run", "retry", soon.ID, "--force")
	eventually(t, "the retried run has a fence above all that its target saw", func() (bool, string) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return seen.fences[soon.ID] > fence+1<<20, fmt.Sprint(seen.fences[soon.ID])
	})
}

// A restore says how many lines stand still under strict, behind which runs, and what opens them.
func TestARestoreTellsOfLinesThatStandStill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "belfry.backup")
	original, address, _ := startProcess(t, "--data", filepath.Join(dir, "original"), "--allow-exec")
	call := to(t, address)
	call(0, `{"name": "ledger", "overlap": "strict", "retry": {"max_attempts": 1}, "target": {"exec": {"argv": ["false"]}}}`, "job", "apply", "-f", "-")
	first := decode[wire.Run](t, call(exitOutcome, "", "job", "trigger", "ledger", "--wait", "-o", "json").out)
	call(0, "", "backup", file)
	if err := original.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = original.Wait()
	if told := belfry(t, "", "restore", file, "--data", filepath.Join(dir, "copy")).out; !strings.Contains(told, "1 stands still under overlap strict: it goes on") || !strings.Contains(told, first.ID) ||
		!strings.Contains(told, "belfry gate open JOB --run RUN") {
		t.Errorf("the restore says\n%s", told)
	}
	if report := decode[restored](t, belfry(t, "", "restore", file, "--data", filepath.Join(dir, "other"), "--resume-runs", "-o", "json").out); report.Lines != 1 || !slices.Equal(report.Behind, []string{first.ID}) {
		t.Errorf("the restore says %+v", report)
	}
}

func TestBackupsOfAStoppedServerAndOtherFiles(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "a.backup")
	if got := belfry(t, "", "backup", file, "--data", data); got.code != 1 || !strings.Contains(got.errors, "there is no store in") {
		t.Errorf("no folder: %d %s", got.code, got.errors)
	}
	address := dev(t, "--data", data)
	to(t, address)(0, `{"name": "a", "target": {"http": {"url": "https://example.org/"}}}`, "job", "apply", "-f", "-")
	if got := belfry(t, "", "backup", file, "--data", data); got.code != 1 || !strings.Contains(got.errors, "in use by another Belfry") {
		t.Errorf("a running server's folder: %d %s", got.code, got.errors)
	}
	streamed := to(t, address)(0, "", "backup", "-").out
	if got := belfry(t, streamed, "restore", "-", "--check", "-o", "json"); got.code != 0 || decode[taken](t, got.out).Items == 0 {
		t.Errorf("a backup by standard output is %q %s", got.out, got.errors)
	}
	to(t, address)(0, "", "backup", dir)
	named, err := filepath.Glob(filepath.Join(dir, "belfry-20*Z.backup"))
	if err != nil || len(named) != 1 {
		t.Fatalf("a backup into a folder gave %q, %v", named, err)
	}
	if info, err := os.Stat(named[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the rights %v, %v", info.Mode(), err)
	}
	to(t, address)(1, "", "backup", named[0])

	cut := filepath.Join(dir, "cut")
	if err := os.WriteFile(cut, []byte(streamed[:len(streamed)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "fresh")
	for _, c := range []struct{ file, data, says string }{
		{cut, fresh, "cut short"},
		{os.Args[0], fresh, "not a backup"},
		{named[0], data, "is not empty"},
	} {
		if got := belfry(t, "", "restore", c.file, "--data", c.data); got.code != 1 || !strings.Contains(got.errors, c.says) || !strings.Contains(got.errors, "nothing was restored") {
			t.Errorf("restore of %s: %d %s", c.file, got.code, got.errors)
		}
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a restore that failed left a folder: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(fresh, embed.Unfinished), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"restore", named[0], "--data", fresh}, {"dev", "--data", fresh, "--listen", "127.0.0.1:0"}} {
		if got := belfry(t, "", args...); got.code != 1 || !strings.Contains(got.errors, "cut short") {
			t.Errorf("%s on an unfinished restore: %d %s", args[0], got.code, got.errors)
		}
	}
	if err := os.RemoveAll(fresh); err != nil {
		t.Fatal(err)
	}
	if got := belfry(t, "", "restore", named[0], "--data", fresh); got.code != 0 || !strings.Contains(got.out, "stop the original") {
		t.Errorf("restore: %d %s%s", got.code, got.out, got.errors)
	}
	if got := belfry(t, "", "backup", filepath.Join(dir, "again"), "--data", fresh); got.code != 0 {
		t.Errorf("a backup of the restored folder: %s", got.errors)
	}
}
