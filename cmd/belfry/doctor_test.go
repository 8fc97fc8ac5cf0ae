package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/job"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A disk that is nearly full is told of before the server stops on it, and is no fault of the doctor's where that cannot be asked.
func TestTheDoctorOfADiskThatIsNearlyFull(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Run("prepare", func(t *testing.T) { dev(t, "--data", data) })
	for _, c := range []struct {
		free, size uint64
		err        error
		code       int
		status     string
		found      string
	}{
		{free: 500 << 30, size: 1000 << 30, status: findOK, found: "500 GB free, 50%"},
		{free: 40 << 30, size: 1000 << 30, status: findAttention, found: "40 GB free, 4%"},
		{free: 9 << 30, size: 1000 << 30, code: 1, status: findProblem, found: "9216 MB free, 0%"},
		{err: errors.New("no such device"), status: findAttention, found: "how much is left is not known: no such device"},
	} {
		var asked string
		room := func(folder string) (free, size uint64, err error) { asked = folder; return c.free, c.size, c.err }
		got := belfryOn(t, room, "", "doctor", "-o", "json", "--data", data)
		found := decode[[]finding](t, got.out)
		at := slices.IndexFunc(found, func(f finding) bool { return f.Check == "room" })
		if at < 0 || got.code != c.code || asked != data {
			t.Fatalf("%s: code %d, asked of %q\n%s%s", c.found, got.code, asked, got.out, got.errors)
		}
		if f := found[at]; f.Status != c.status || f.Found != c.found || c.err == nil && (f.Help == "") != (c.status == findOK) {
			t.Errorf("found %+v, want %s: %s", f, c.status, c.found)
		}
	}
}

// diagnosed runs the doctor and gives its findings by their checks.
func diagnosed(t *testing.T, code int, args ...string) map[string]finding {
	t.Helper()
	got := belfry(t, "", append([]string{"doctor", "-o", "json"}, args...)...)
	if got.code != code {
		t.Fatalf("belfry doctor %q: code %d, want %d\n%s%s", args, got.code, code, got.out, got.errors)
	}
	found := map[string]finding{}
	for _, f := range decode[[]finding](t, got.out) {
		found[f.Check] = f
		if f.Status != findOK && f.Help == "" {
			t.Errorf("%s does not say what to do: %+v", f.Check, f)
		}
	}
	return found
}

func TestTheDoctorOfARunningServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `[{"name": "near", "target": {"http": {"url": "http://`+listener.Addr().String()+`/x"}}},
		{"name": "command", "target": {"exec": {"argv": ["true"]}}}]`, "job", "apply", "-f", "-")
	found := diagnosed(t, 0, "--address", address, "--targets")
	for _, check := range []string{"server", "store", "ticks", "clocks", "versions", "workers", "places", "queue default", "dead letters", "jobs", "time zones", "target"} {
		if f := found[check]; f.Status != findOK {
			t.Errorf("%s: %+v, want ok", check, f)
		}
	}
	call(0, `[{"name": "far", "target": {"http": {"url": "http://127.0.0.1:1/x"}}},
		{"name": "none", "target": {"exec": {"argv": ["/no/such/program"]}}}]`, "job", "apply", "-f", "-")
	diagnosed(t, 1, "--address", address, "--targets")
	text := belfry(t, "", "doctor", "--address", address, "--targets")
	if text.code != 1 || !strings.Contains(text.out, "127.0.0.1:1 (far)") || !strings.Contains(text.out, "/no/such/program is not found") ||
		!strings.Contains(text.out, "\n  Start what listens there") || !strings.Contains(text.errors, "found a problem") {
		t.Errorf("as text: %d\n%s%s", text.code, text.out, text.errors)
	}
}

func TestTheDoctorOfADataFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if f := diagnosed(t, 1, "--data", data)["data folder"]; f.Status != findProblem {
		t.Errorf("no folder: %+v", f)
	}
	t.Run("prepare", func(t *testing.T) {
		address := dev(t, "--data", data)
		to(t, address)(0, `{"name": "a", "target": {"http": {"url": "http://127.0.0.1:1/"}}}`, "job", "apply", "-f", "-")
		if f := diagnosed(t, 0, "--data", data)["store"]; f.Status != findAttention || !strings.Contains(f.Found, "a server has it open") {
			t.Errorf("of a running server: %+v", f)
		}
	})
	found := diagnosed(t, 0, "--data", data)
	for _, check := range []string{"data folder", "room", "store", "ticks", "runs", "dead letters", "jobs"} {
		if f := found[check]; f.Status == findProblem || f.Found == "" {
			t.Errorf("%s: %+v", check, f)
		}
	}
	if f := found["jobs"]; f.Found != "1, none with a fault" {
		t.Errorf("jobs: %+v", f)
	}
	if f := diagnosed(t, 1, "--data", data, "--targets")["target"]; !strings.Contains(f.Found, "127.0.0.1:1 (a)") {
		t.Errorf("target: %+v", f)
	}

	key := filepath.Join(t.TempDir(), "server.key")
	for _, path := range []string{key, filepath.Join(data, "secrets.key")} {
		if err := errors.Join(os.WriteFile(path, []byte("key"), 0o600), os.Chmod(path, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("BELFRY_TLS_KEY", key)
	found = diagnosed(t, 1, "--data", data)
	for check, path := range map[string]string{"tls-key": key, "secrets.key": filepath.Join(data, "secrets.key")} {
		if f := found[check]; f.Status != findProblem || f.Help != "chmod 600 "+path {
			t.Errorf("%s: %+v", check, f)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if f := diagnosed(t, 1, "--data", data)["data folder"]; f.Help != "chmod 700 "+data {
		t.Errorf("rights: %+v", f)
	}
	if err := os.Chmod(data, 0o700); err != nil {
		t.Fatal(err)
	}
	change := func(items ...store.Item) {
		t.Helper()
		s, err := pebble.Open(pebble.Config{Dir: embed.StoreFolder(data), Logger: discardLog(), Now: longAgo})
		if err == nil {
			err = s.Import(t.Context(), items...)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	faulty, err := (job.Job{Tenant: "default", Name: "bad", Generation: 1, Fault: "parked: it does not advance"}).Put(1)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	stuck, err := timer.Shard{Horizon: now, Watermark: now + 3_600_000, Swept: [timer.Sweeps]int64{now, now - 9_000_000, now}}.Put(1)
	if err != nil {
		t.Fatal(err)
	}
	given := runs.Run{ID: runs.FireID("bad", 60_000), Tenant: "default", State: runs.Dead, Ended: now}
	discarded := runs.Run{ID: runs.FireID("bad", 120_000), Tenant: "default", State: runs.Dead, Ended: now, Discarded: runs.Discarded{At: now}}
	listed, err := given.DeadLetterOp(1)
	if err != nil {
		t.Fatal(err)
	}
	settled, err := discarded.DeadLetterOp(1)
	if err != nil {
		t.Fatal(err)
	}
	change(store.Item{Key: faulty.Key, Version: 1, Value: faulty.Value}, store.Item{Key: stuck.Key, Version: 9, Value: stuck.Value},
		store.Item{Key: given.DeadKey(), Version: 1, Value: listed.Value}, store.Item{Key: discarded.DeadKey(), Version: 1, Value: settled.Value},
		store.Item{Key: job.Key("default", "torn"), Version: 1, Value: []byte{1, 0xff}})
	found = diagnosed(t, 1, "--data", data)
	for check, says := range map[string]string{"jobs": "bad", "ticks": "in the future", "dead letters": "1 run failed or dead", "store": "unreadable items: job#default"} {
		if f := found[check]; f.Status == findOK || !strings.Contains(f.Found, says) || f.Why == "" {
			t.Errorf("%s: %+v, want %q", check, f, says)
		}
	}
	change(store.Item{Key: job.Key("default", "torn"), Version: 2, Value: []byte{99, 0xa0}})
	if f := diagnosed(t, 1, "--data", data)["store"]; !strings.Contains(f.Found, "written by a newer Belfry") {
		t.Errorf("a newer record: %+v", f)
	}
	if err := os.WriteFile(filepath.Join(embed.StoreFolder(data), "BELFRY-STORE"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := diagnosed(t, 1, "--data", data)["store"]; !strings.Contains(f.Found, "format 9") || !strings.Contains(f.Help, "docs/upgrade.md") {
		t.Errorf("a newer format: %+v", f)
	}
}

func TestHowTheDoctorJudges(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	ms := time.Millisecond
	slow := slices.Repeat([]time.Duration{ms}, 50)
	slow[49] = time.Second
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("bel_x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		got    finding
		status string
		says   string
	}{
		{"clocks agree", clockFinding(-2 * time.Second), findOK, "agree"},
		{"clock ahead", clockFinding(61 * time.Second), findProblem, "1m1s ahead of"},
		{"clock behind", clockFinding(-time.Hour), findProblem, "1h0m0s behind"},
		{"same versions", versionFinding("v1", "v1"), findOK, "both v1"},
		{"versions apart", versionFinding("v1", "v2"), findAttention, "the server is v1, this command v2"},
		{"new zones", zonesFinding("2025c", "2025c", now), findOK, "tzdata 2025c"},
		{"older host", zonesFinding("2025c", "2024a", now), findOK, "the host has 2024a"},
		{"newer host", zonesFinding("2025c", "2026a", now), findAttention, "the host has 2026a"},
		{"old zones", zonesFinding("2024a", "", now), findAttention, "tzdata 2024a"},
		{"quick disk", judgeSyncs(slices.Repeat([]time.Duration{ms}, 50)), findOK, "takes 1ms"},
		{"slow disk", judgeSyncs(slices.Repeat([]time.Duration{30 * ms}, 50)), findAttention, "takes 30ms"},
		{"a disk that stops now and then", judgeSyncs(slow), findAttention, "at the worst 1s"},
		{"room", judgeRoom(100<<30, 200<<30), findOK, "100 GB free, 50%"},
		{"little room", judgeRoom(900<<20, 8<<30), findAttention, "900 MB"},
		{"no room", judgeRoom(50<<20, 8<<30), findProblem, "50 MB"},
		{"a token that all can read", privateFinding("token file", token), findProblem, "-rw-r--r--"},
		{"a token file that is not there", privateFinding("token file", token+"s"), findProblem, "no such file"},
		{"not ready", readyFinding(wire.Check{Name: "ticks", State: wire.CheckFailing, Detail: "none has succeeded for 9m"}), findProblem, "none has succeeded"},
		{"a queue that is full", readyFinding(wire.Check{Name: "queues", State: wire.CheckAttention, Detail: "one is full"}), findAttention, "one is full"},
		{"a disk that fills", readyFinding(wire.Check{Name: "disk", State: wire.CheckAttention, Detail: "9 MB"}), findAttention, "9 MB"},
	} {
		if c.got.Status != c.status || !strings.Contains(c.got.Found, c.says) || c.status != findOK && c.got.Help == "" {
			t.Errorf("%s: %+v, want %s with %q", c.name, c.got, c.status, c.says)
		}
	}
}

func TestTheHostsTimeZoneRelease(t *testing.T) {
	dir := t.TempDir()
	if got := hostTZData(dir); got != "" {
		t.Errorf("nothing there gives %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tzdata.zi"), []byte("# version 2026a\n# redo posix_only\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := hostTZData(dir); got != "2026a" {
		t.Errorf("got %q, want 2026a", got)
	}
}

func TestWhatTheDoctorSaysOfAQueue(t *testing.T) {
	queue := wire.Queue{Name: "default", Priorities: map[string]wire.Depth{"high": {Ready: 1, Taken: 4}, "low": {Ready: 2, Delayed: 3, Taken: 4}}}
	got := queueFinding(queue, []wire.Worker{{Queue: "default", Running: 6}, {Queue: "other", Running: 9}})
	if got.Status != findOK || got.Found != "3 ready, 3 delayed, 8 taken, of which 6 running" {
		t.Errorf("busy: %+v", got)
	}
	got = queueFinding(queue, []wire.Worker{{Queue: "default", Running: 1}, {Queue: "other", Running: 9}})
	if got.Status != findAttention || !strings.Contains(got.Found, "8 taken, of which 1 running") || !strings.Contains(got.Why, "no worker here can run") {
		t.Errorf("handed back: %+v", got)
	}
	if got := queueFinding(wire.Queue{Name: "default", Priorities: map[string]wire.Depth{"normal": {Ready: 4000, Taken: 33}}}, []wire.Worker{{Queue: "default", Running: 25}}); got.Status != findOK {
		t.Errorf("many short runs: %+v", got)
	}
	queue.Remote = true
	if got = queueFinding(queue, nil); got.Status != findAttention || !strings.Contains(got.Why, "No worker serves it") {
		t.Errorf("without workers: %+v", got)
	}
	queue.Workers, queue.Lacking = 1, []string{"handler resize"}
	if got = queueFinding(queue, nil); got.Status != findAttention || !strings.Contains(got.Why, "handler resize") {
		t.Errorf("without the handler: %+v", got)
	}
}
