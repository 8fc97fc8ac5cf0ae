package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, row := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 4}, 4}, {[]float64{9, 1, 4, 6}, 5}} {
		if got := median(row.values); got != row.want {
			t.Errorf("median of %v is %v, want %v", row.values, got, row.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for n := range hundred {
		hundred[n] = time.Duration(n + 1)
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(hundred, share); got != want {
			t.Errorf("quantile %v is %d, want %d", share, got, want)
		}
	}
	if got := quantile(hundred[:1], 0.99); got != 1 {
		t.Errorf("of one value it is %d", got)
	}
}

func TestEachCallIsMadeOnce(t *testing.T) {
	var mu sync.Mutex
	made := map[int]int{}
	took, err := concurrently(t.Context(), 7, 1000, func(_ context.Context, n int) error {
		mu.Lock()
		defer mu.Unlock()
		made[n]++
		return nil
	})
	if err != nil || took.perSecond <= 0 || took.p99 < took.p50 {
		t.Fatalf("got %+v, %v", took, err)
	}
	for n := range 1000 {
		if made[n] != 1 {
			t.Fatalf("call %d was made %d times", n, made[n])
		}
	}
}

func TestTheFirstErrorEndsTheCalls(t *testing.T) {
	broken := errors.New("broken")
	_, err := concurrently(t.Context(), 4, 1_000_000, func(ctx context.Context, n int) error {
		if n == 10 {
			return broken
		}
		if n > 10 {
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

func TestRoundsBeginWithAnother(t *testing.T) {
	var order []string
	var all []contestant
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, contestant{
			name: name, shown: name,
			burnDown: func(_ context.Context, jobs int) (burnt, error) {
				order = append(order, name)
				return burnt{jobs, time.Second, time.Second}, nil
			},
			insert: func(context.Context) ([]figure, error) { return nil, nil },
		})
	}
	rows, err := contest(t.Context(), all, 3, 1000, time.Minute, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abcbcacab" {
		t.Errorf("order %s", got)
	}
	if len(rows) != 9 || len(rows[0].Each) != 3 {
		t.Errorf("got %d rows, the first with %d rounds", len(rows), len(rows[0].Each))
	}
}

func TestAContestantThatHangsEnds(t *testing.T) {
	hangs := contestant{shown: "hangs", burnDown: func(ctx context.Context, _ int) (burnt, error) {
		<-ctx.Done()
		return burnt{}, context.Cause(ctx)
	}}
	_, err := contest(t.Context(), []contestant{hangs}, 1, 1000, time.Millisecond, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "hangs: took over 1ms; -limit gives more") {
		t.Errorf("got %v", err)
	}
}

// The report of a contest whose figures are round, as a reader and a program see it.
func TestReport(t *testing.T) {
	r := report{
		Machine: machine{CPU: "Some CPU", Cores: 2, Memory: 24 << 30, System: "linux/amd64", Kernel: "6.1", FileSystem: "ext4 of /dev/vda", Sync: 0.25, Load: 3},
		Rounds:  3, Jobs: 200_000, Versions: []string{"Belfry v1.0.0", "River v0.51.1"},
		Settings: []settingsOf{{"River on PostgreSQL", []string{"fsync=on"}}},
		Ceiling:  &ceiling{RunsPerSecond: 80_000, OpsPerSecond: 240_000, OpsPerBatch: 24, BytesPerOp: 230, Share: 0.5},
	}
	belfry := contestant{name: belfryName, shown: "Belfry, embedded", survives: "all"}
	fifty := contestant{name: belfryDev, shown: "Belfry, 50 attempts at once", survives: "all"}
	river := contestant{name: "river", shown: "River on PostgreSQL", survives: "all"}
	nothing := contestant{name: "asynq-none", shown: "Asynq on Redis", survives: "nothing"}
	for _, rate := range []float64{50_000, 70_000, 60_000} {
		r.Rows = add(r.Rows, nothing, figure{measure: burnDown, inserted: inserted{perSecond: rate * 2}})
		r.Rows = add(r.Rows, river, figure{measure: burnDown, inserted: inserted{perSecond: rate / 2}})
		r.Rows = add(r.Rows, river, figure{measure: insert16, inserted: inserted{rate / 10, 2 * time.Millisecond, 9500 * time.Microsecond}})
		r.Rows = add(r.Rows, belfry, figure{measure: insert16, how: "over HTTP", inserted: inserted{rate / 12, time.Millisecond, 8 * time.Millisecond}})
		r.Rows = add(r.Rows, belfry, figure{measure: insert16, inserted: inserted{rate / 6, time.Millisecond, 8 * time.Millisecond}})
		r.Rows = add(r.Rows, fifty, figure{measure: burnDown, inserted: inserted{perSecond: rate / 3}})
		r.Rows = add(r.Rows, belfry, figure{measure: burnDown, inserted: inserted{perSecond: rate}})
		r.Rows = add(r.Rows, belfry, figure{measure: endToEnd, inserted: inserted{perSecond: rate}})
	}
	r.Rows = finish(r.Rows)
	var shown strings.Builder
	r.show(&shown)
	want, err := os.ReadFile(filepath.Join("testdata", "report.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if shown.String() != string(want) {
		t.Errorf("shown:\n%s\nwant:\n%s", shown.String(), want)
	}

	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Rows []struct {
			Measure   string  `json:"measure"`
			Name      string  `json:"name"`
			PerSecond float64 `json:"per_second"`
			Ratio     float64 `json:"belfry_ratio"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if got := read.Rows[3]; got.Measure != burnDown || got.Name != "river" || got.PerSecond != 30_000 || got.Ratio != 2 {
		t.Errorf("the fourth row is %+v", got)
	}
}

func TestBelfrysBurnDownIsRead(t *testing.T) {
	const text = `{"runs": 5000, "read_back": 5000, "insert_seconds": 0.5, "insert_per_second": 10000, "burn_down_seconds": 2, "burn_down_per_second": 2500,
		"ceiling": {"ops_per_batch": 24, "bytes_per_op": 229, "ops_per_second": 42416.05, "runs_per_second": 8621.5, "share": 0.19}}`
	b, err := parseBurnDown([]byte(text), 5000)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.burnt(); got != (burnt{5000, 500 * time.Millisecond, 2 * time.Second}) {
		t.Errorf("got %+v", got)
	}
	if b.Ceiling.RunsPerSecond != 8621.5 || b.Ceiling.OpsPerBatch != 24 {
		t.Errorf("ceiling %+v", b.Ceiling)
	}
	for what, text := range map[string]string{
		"other runs":   strings.Replace(text, `"runs": 5000`, `"runs": 4000`, 1),
		"a run lost":   strings.Replace(text, `"read_back": 5000`, `"read_back": 4999`, 1),
		"no times":     strings.Replace(text, `"insert_seconds": 0.5,`, "", 1),
		"no JSON":      "5000 runs",
		"another name": strings.Replace(text, "burn_down_seconds", "seconds", 1),
	} {
		if _, err := parseBurnDown([]byte(text), 5000); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestBelfrysInsertsAreRead(t *testing.T) {
	const sixteen = `{"via": "process", "callers": 16, "batch": 1, "per_second": 20000, "p50_ms": 0.7, "p99_ms": 2.5}`
	figures, err := parseInsert([]byte(`{"rows": [
		{"via": "process", "callers": 4, "batch": 1000, "per_second": 90000, "p50_ms": 40, "p99_ms": 80},
		{"via": "process", "callers": 1, "batch": 1, "per_second": 3000, "p50_ms": 0.3, "p99_ms": 0.6},
		` + sixteen + `,
		{"via": "process", "callers": 64, "batch": 1, "per_second": 30000, "p50_ms": 2, "p99_ms": 6},
		{"via": "http", "callers": 4, "batch": 1000, "per_second": 60000, "p50_ms": 60, "p99_ms": 90},
		{"via": "http", "callers": 64, "batch": 1, "per_second": 9000, "p50_ms": 5, "p99_ms": 20}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []figure{
		{insert16, "", inserted{20000, 700 * time.Microsecond, 2500 * time.Microsecond}},
		{insert64, "", inserted{30000, 2 * time.Millisecond, 6 * time.Millisecond}},
		{insertBatch, "over HTTP", inserted{perSecond: 60000}},
		{insert64, "over HTTP", inserted{9000, 5 * time.Millisecond, 20 * time.Millisecond}},
	}
	if !slices.Equal(figures, want) {
		t.Errorf("got %+v", figures)
	}
	for _, text := range []string{`{}`, `[]`, `{"rows": [` + sixteen + `]}`} {
		if _, err := parseInsert([]byte(text)); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}

func TestAServerIsEnded(t *testing.T) {
	s, err := launch("sleep", filepath.Join(t.TempDir(), "log"), exec.Command("sleep", "600"), syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	select {
	case <-s.exited:
	default:
		t.Error("it runs on")
	}
}

func TestAServerThatEndsAtOnceSaysWhy(t *testing.T) {
	s, err := launch("the server", filepath.Join(t.TempDir(), "log"), exec.Command("sh", "-c", "echo no such setting >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.ready(t.Context(), func(context.Context) error { return errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "the server ended at once: no such setting") {
		t.Errorf("got %v", err)
	}
	s.stop()
}

func TestMountOf(t *testing.T) {
	const mounts = "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/disk xfs rw 0 0\n"
	for dir, want := range map[string]string{"/var/lib": "ext4 of /dev/vda", "/tmp": "tmpfs of tmpfs", "/tmpfile": "ext4 of /dev/vda", "/tmp/disk/x": "xfs of /dev/vdb"} {
		if got := mountOf(mounts, dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	fine := settings{output: "table", jobs: 1000, singles: 1000, rounds: 1, systems: "belfry"}
	for field, change := range map[string]func(*settings){
		"-output":  func(s *settings) { s.output = "csv" },
		"-jobs":    func(s *settings) { s.jobs = 0 },
		"-singles": func(s *settings) { s.singles = -1 },
		"-rounds":  func(s *settings) { s.rounds = 0 },
		"-systems": func(s *settings) { s.systems = "sidekiq" },
	} {
		s := fine
		change(&s)
		if err := run(t.Context(), s, io.Discard); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// The harness and the product collect garbage by one rule.
func TestGarbageIsCollectedAsBelfryDoes(t *testing.T) {
	rule := regexp.MustCompile(`(?m)^\t(heapRoom|leastGarbage|mostGarbage) += (.+?)(?: +//.*)?$|^\treturn int\(.*$`)
	var rules [2][]string
	for n, file := range []string{"garbage.go", "../../../cmd/belfry/garbage.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range rule.FindAllStringSubmatch(string(text), -1) {
			if found[1] == "" {
				rules[n] = append(rules[n], found[0])
				continue
			}
			rules[n] = append(rules[n], found[1]+" "+found[2])
		}
	}
	if len(rules[0]) != 4 || !slices.Equal(rules[0], rules[1]) {
		t.Errorf("here %q, in Belfry %q", rules[0], rules[1])
	}
}

func TestGosOwnRuleHoldsForAWhile(t *testing.T) {
	t.Setenv("GOGC", "")
	c := new(collector)
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	c.apply()
	ruled := debug.SetGCPercent(100)
	if ruled <= 100 {
		t.Errorf("a small heap is collected at %d%%", ruled)
	}
	err := c.without(77, func() error {
		c.apply() // as after a collection
		if got := debug.SetGCPercent(77); got != 77 {
			t.Errorf("meanwhile it is %d%%", got)
		}
		return nil
	})
	if got := debug.SetGCPercent(100); err != nil || got <= 100 {
		t.Errorf("afterwards it is %d%%, %v", got, err)
	}
}

// What is printed of Belfry's settings is what its benchmark is told, and has to say that it had.
func TestBelfrysSettingsAreTold(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "belfry")
	const script = `#!/bin/sh
echo '{"runs": 5000, "read_back": 5000, "insert_seconds": 1, "burn_down_seconds": 1, "workers": 1000, "batch": 1000, "callers": 4}'
test "$*" = "bench burn-down --runs 5000 --workers $WORKERS --batch 1000 --callers 4 --output json"
`
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b := belfryPeer{binary, t.TempDir(), belfryBest}
	t.Setenv("WORKERS", "1000")
	if _, err := b.burnDown(t.Context(), 5000); err != nil {
		t.Error(err)
	}
	t.Setenv("WORKERS", "50")
	b.settings.Workers = 50
	if _, err := b.burnDown(t.Context(), 5000); err == nil {
		t.Error("a benchmark that had other settings is accepted")
	}
	for _, want := range []string{"--workers 50 --batch 1000 --callers 4", "room for all runs"} {
		if said := strings.Join(b.settings.lines(), "\n"); !strings.Contains(said, want) {
			t.Errorf("%q is missing in %s", want, said)
		}
	}
}

// Each row of -tune differs from the contest, and none is there twice.
func TestTriesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, try := range riverSingleTries() {
		if seen[try.name] {
			t.Errorf("%s is there twice", try.name)
		}
		seen[try.name] = true
	}
	if !seen["one by one, a connection for each caller"] || !seen["one by one, 8 connections"] || !seen["one by one, commit_delay=50 commit_siblings=5"] {
		t.Errorf("got %v", seen)
	}
}
