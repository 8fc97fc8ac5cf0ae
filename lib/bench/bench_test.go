package bench_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/bench"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// The test binary is the process that a benchmark kills, when it is told so.
func TestMain(m *testing.M) {
	folder := os.Getenv("BENCH_HOLD")
	if folder == "" {
		os.Exit(m.Run())
	}
	ahead, err := time.ParseDuration(os.Getenv("BENCH_AHEAD"))
	if err == nil {
		err = bench.Hold(context.Background(), hostOf(folder, new(atomic.Int64)), held, heldBegun, ahead, os.Stdin, os.Stdout)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Of the runs of a process that is killed these are given to it, and these begin.
const held, heldBegun = 120, 80

// hostOf is a benchmark's host that works in a folder, and notes how much it was told of.
func hostOf(folder string, told *atomic.Int64) bench.Host {
	began := time.Now()
	return bench.Host{
		Folder: folder, Version: "test", Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) },
		NewID: func() uint64 { return rand.Uint64() | 1 }, Random: crand.Reader, Log: slog.New(slog.DiscardHandler),
		Tell: func(string, int) (func(int), func()) { return func(n int) { told.Add(int64(n)) }, func() {} },
	}
}

func gone(t *testing.T, folder string) {
	t.Helper()
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was left behind: %v", err)
	}
}

func TestBurnDownTellsWhatBecameOfAllRuns(t *testing.T) {
	for name, mixed := range map[string]bool{"apart": false, "mixed": true} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "bench")
			var told atomic.Int64
			r, err := bench.BurnDown{Runs: 250, Batch: 100, Callers: 2, Workers: 10, Mixed: mixed}.Run(t.Context(), hostOf(folder, &told))
			if err != nil {
				t.Fatal(err)
			}
			if r.Bench != "burn-down" || r.Runs != 250 || r.ReadBack != 250 || r.Mixed != mixed {
				t.Errorf("got %+v", r)
			}
			if told.Load() < 3*250 {
				t.Errorf("%d steps of progress, want each insert, run and row", told.Load())
			}
			for part, s := range map[string]bench.Synced{"insert": r.InsertSynced, "burn down": r.BurnDownSynced, "total": r.TotalSynced} {
				if s.Syncs == 0 || s.Ops < 250 || s.PerRun < 1 || s.Bytes == 0 {
					t.Errorf("%s: synced %+v", part, s)
				}
			}
			if r.InsertPerSecond <= 0 || r.BurnDownPerSecond <= 0 || r.Disk == 0 || r.Ceiling.OpsPerSecond <= 0 || (r.InsertCeiling.OpsPerSecond > 0) == mixed || r.Machine.Cores == 0 {
				t.Errorf("figures are missing: %+v", r)
			}
			gone(t, folder)
		})
	}
}

func TestAFolderOfSomebodysIsLeftAlone(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mine"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int64
	_, err := bench.BurnDown{Runs: 1, Batch: 1, Callers: 1, Workers: 1}.Run(t.Context(), hostOf(folder, &told))
	var wrong *invalid.Error
	if !errors.As(err, &wrong) || wrong.Field != "data" {
		t.Errorf("got %v, want a refusal of data", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "mine")); err != nil {
		t.Error(err)
	}
}

func TestAnInterruptLeavesTheFolderEmpty(t *testing.T) {
	folder := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var told atomic.Int64
	h := hostOf(folder, &told)
	h.Tell = func(what string, _ int) (func(int), func()) {
		return func(n int) {
			if what == "running" && n > 0 {
				stop()
			}
		}, func() {}
	}
	_, err := bench.BurnDown{Runs: 20_000, Batch: 1000, Callers: 4, Workers: 2}.Run(ctx, h)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%d files were left, %v", len(left), err)
	}
}

func TestInsertTriesEachWay(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	var told atomic.Int64
	r, err := bench.Insert{For: 100 * time.Millisecond, Batch: 50}.Run(t.Context(), hostOf(folder, &told))
	if err != nil {
		t.Fatal(err)
	}
	type way struct {
		via            string
		callers, batch int
	}
	want := []way{{"process", 4, 50}, {"process", 1, 1}, {"process", 16, 1}, {"process", 64, 1}, {"http", 4, 50}, {"http", 1, 1}, {"http", 16, 1}, {"http", 64, 1}}
	var got []way
	for _, row := range r.Rows {
		got = append(got, way{row.Via, row.Callers, row.Batch})
		if row.Runs < row.Batch || row.PerSecond <= 0 || row.P50 <= 0 || row.P50 > row.P99 || row.P99 > row.Max || row.Synced.Syncs == 0 || row.Synced.Ops < int64(row.Runs) {
			t.Errorf("got %+v", row)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	gone(t, folder)
}

func TestLatenessCountsEachStartOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	var told atomic.Int64
	r, err := bench.Lateness{Rate: 20, For: time.Second, Burst: 240, Workers: 20}.Run(t.Context(), hostOf(folder, &told))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, row := range r.Rows {
		kinds = append(kinds, row.Kind)
		if row.Runs != 20 || row.P50 < 0 || row.P50 > row.P99 || row.P99 > row.Max || row.Synced.Syncs == 0 {
			t.Errorf("got %+v", row)
		}
	}
	if want := []string{bench.OneOffs, bench.SchedulesSpread, bench.SchedulesAtOnce}; !slices.Equal(kinds, want) {
		t.Errorf("got %q, want %q", kinds, want)
	}
	if r.Burst == nil || r.Burst.Runs != 240 || len(r.Burst.Groups) != 6 || r.Burst.Synced.Ops < 240 {
		t.Fatalf("got %+v", r.Burst)
	}
	runs := map[string]int{}
	var tenth, half float64
	for _, g := range r.Burst.Groups {
		runs[g.Priority+" of "+g.Tenant] = g.Runs
		tenth, half = tenth+g.OfTenth, half+g.OfHalf
		if g.First < 0 || g.First > g.Half || g.Half > g.Last {
			t.Errorf("got %+v", g)
		}
	}
	want := map[string]int{"high of large": 60, "high of small": 20, "normal of large": 60, "normal of small": 20, "low of large": 60, "low of small": 20}
	if !maps.Equal(runs, want) {
		t.Errorf("got %v, want %v", runs, want)
	}
	if math.Abs(tenth-1) > 1e-9 || math.Abs(half-1) > 1e-9 {
		t.Errorf("the parts of the first tenth add up to %v, of the first half to %v", tenth, half)
	}
	gone(t, folder)
}

// The second of a burst comes before all was asked for: it is asked for anew, further ahead.
func TestABurstThatIsAskedForTooSlowlyBeginsAnew(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	var told, jumped atomic.Int64
	h := hostOf(folder, &told)
	h.Now = func() time.Time { return time.Now().Add(time.Duration(jumped.Load())) }
	h.Tell = func(what string, _ int) (func(int), func()) {
		if what == "asking for what is due in one second" {
			jumped.CompareAndSwap(0, int64(time.Hour))
		}
		return func(int) {}, func() {}
	}
	r, err := bench.Lateness{For: time.Second, Burst: 24, Workers: 20}.Run(t.Context(), h)
	if err != nil || r.Burst == nil || r.Burst.Runs != 24 {
		t.Fatalf("got %+v: %v", r.Burst, err)
	}
	gone(t, folder)
}

// For the same number due, a tick asks the same of the store, however many schedules there are; and what was in flight in a process
// that was killed runs in the next.
func TestScaleCountsTheSameAtEverySize(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	var told atomic.Int64
	s := bench.Scale{Sizes: []int{150, 600}, Due: 100, Ticks: 5, Edits: 5, Workers: heldBegun, InFlight: held}
	s.Child = func(ctx context.Context, folder string, ahead time.Duration) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), "BENCH_HOLD="+folder, "BENCH_AHEAD="+ahead.String())
		return cmd
	}
	r, err := s.Run(t.Context(), hostOf(folder, &told))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 {
		t.Fatalf("got %d rows", len(r.Rows))
	}
	for i, row := range r.Rows {
		if row.Schedules != s.Sizes[i] || row.Due != 100 || row.Disk == 0 || row.LoadSynced.Syncs == 0 || row.TickDue <= 0 || row.Restart <= 0 ||
			row.TickIdle.Max <= 0 || row.Edits.P50 <= 0 || row.ListJobs.P50 <= 0 || row.ListPrefix.P50 <= 0 {
			t.Errorf("figures are missing: %+v", row)
		}
	}
	if small, large := r.Rows[0].TickDueCalls, r.Rows[1].TickDueCalls; small.Items != large.Items || small.Ops != large.Ops || small.Items < 200 {
		t.Errorf("a tick with 100 due asks %+v among %d schedules, and %+v among %d", small, s.Sizes[0], large, s.Sizes[1])
	}
	// Each fire is its run's put and its successor's timer.
	if ops := r.Rows[0].TickDueCalls.Ops; ops < 200 {
		t.Errorf("a tick with 100 fires of schedules asks for %d ops: successors are not counted", ops)
	}
	if r.Rows[0].TickIdleCalls.Items != r.Rows[1].TickIdleCalls.Items {
		t.Errorf("ticks with nothing due ask %+v, and then %+v", r.Rows[0].TickIdleCalls, r.Rows[1].TickIdleCalls)
	}
	if r.Killed == nil || r.Killed.InFlight != held || r.Killed.Begun != heldBegun || r.Killed.Resumed != held || r.Killed.Restart <= 0 {
		t.Errorf("got %+v", r.Killed)
	}
	gone(t, folder)
}
