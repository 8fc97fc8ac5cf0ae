package stats_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

var minute = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).UnixMilli()

// ran is a run that was due at an instant of the minute, started late ms after it, and took so long.
func ran(state run.State, late, took int64) run.Run {
	id := run.RequestID("a", minute+uniq, uint64(uniq))
	uniq++
	start := id.Nominal + late
	r := run.Run{ID: id, Tenant: "acme", Version: 3, State: state, Attempt: 1, Started: start, Attempts: []run.Attempt{{Number: 1, Started: start}}}
	if state.Ended() {
		r.Ended = start + took
	}
	return r
}

var uniq int64

func TestEachDurationIsInTheBucketOfItsBound(t *testing.T) {
	for _, row := range []struct {
		ms     int64
		bucket int
	}{{-3, 0}, {0, 0}, {5, 0}, {6, 1}, {10, 1}, {11, 2}, {3_600_000, 15}, {3_600_001, 16}} {
		var c stats.Counts
		c.Add(ran(run.Succeeded, row.ms, 0))
		if c.Lateness[row.bucket] != 1 || c.Lateness.Count() != 1 {
			t.Errorf("%d ms: %v, want bucket %d", row.ms, c.Lateness, row.bucket)
		}
	}
}

func TestAQuantileIsWithinItsBucket(t *testing.T) {
	var none, h stats.Histogram
	if got := none.Quantile(&stats.LatenessBounds, 0.5); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
	h[0], h[2], h[16] = 50, 49, 1
	for q, want := range map[float64]time.Duration{0.25: 2500 * time.Microsecond, 0.5: 5 * time.Millisecond, 0.99: 25 * time.Millisecond, 1: time.Hour} {
		if got := h.Quantile(&stats.LatenessBounds, q); got != want {
			t.Errorf("%.2f: %s, want %s", q, got, want)
		}
	}
}

func TestWhatIsCountedOfARun(t *testing.T) {
	never := run.Run{ID: run.RequestID("a", minute, 1), State: run.Cancelled, Ended: minute + 5}
	forgot := ran(run.Dead, 0, 10)
	forgot.Attempt, forgot.Attempts = 9, []run.Attempt{{Number: 5, Started: 1}}
	waited := ran(run.Succeeded, 60_000, 1)
	waited.Wait.LetIn = waited.Started - 20
	workflow := run.Run{ID: run.RequestID("a", minute, 2), State: run.Running, Started: minute + 3} // it has no attempt of its own
	var all stats.Counts
	for _, r := range []run.Run{never, forgot, waited, workflow} {
		all.Add(r)
	}
	if all.Due() != 4 || all.Open != 1 || all.In(run.Cancelled) != 1 || all.In(run.Dead) != 1 || all.In(run.Succeeded) != 1 || all.Retries != 8 {
		t.Errorf("%+v", all)
	}
	if all.Lateness != (stats.Histogram{0: 1, 2: 1}) || all.Duration.Count() != 2 {
		t.Errorf("late %v, took %v: want none of who never started, and no lateness of who forgot it", all.Lateness, all.Duration)
	}
}

// TestASumIsSettledOnce: whatever is read how often, a run is counted once, and what nobody made any more is not.
func TestASumIsSettledOnce(t *testing.T) {
	s := stats.Sum{Place: stats.Place{Tenant: "acme", Minute: minute / stats.Minute}}
	ended, open, stays, gone := ran(run.Succeeded, 1, 1), ran(run.Running, 1, 0), ran(run.Queued, 0, 0), ran(run.Queued, 0, 0)
	for _, r := range []run.Run{ended, open, stays, gone} {
		s.Count(r)
	}
	if all := s.All(); all.Due() != 4 || all.Open != 3 || all.In(run.Succeeded) != 1 {
		t.Fatalf("%+v", all)
	}
	named, err := s.Runs()
	if err != nil || len(named) != 3 || named[0].ID != open.ID || named[0].Tenant != "acme" {
		t.Fatalf("%+v, %v", named, err)
	}
	if s.Settle([]run.Run{open, stays, gone}, false) {
		t.Error("changed by what is as it was")
	}
	open.State, open.Ended, gone.Version = run.Dead, open.Started+7, 0
	if !s.Settle([]run.Run{open, stays, gone}, false) {
		t.Error("not changed")
	}
	op, err := s.Put(time.UnixMilli(minute), 1)
	if err != nil {
		t.Fatal(err)
	}
	back, err := stats.FromItem(s.Place, store.Item{Key: op.Key, Version: 1, Value: op.Value})
	if err != nil || back.All() != s.All() || len(back.Unended) != 1 {
		t.Fatalf("read again: %+v, %v", back, err)
	}
	if !back.Settle([]run.Run{stays}, true) || len(back.Unended) != 0 || back.Counts.Open != 1 || back.Counts.Due() != 3 || back.Counts.In(run.Dead) != 1 {
		t.Errorf("at last: %+v", back)
	}
}

// TestASumIsBounded, however many runs of a minute have not ended.
func TestASumIsBounded(t *testing.T) {
	var s stats.Sum
	const runs = 5000
	for range runs {
		s.Count(ran(run.Running, 0, 0))
	}
	op, err := s.Put(time.UnixMilli(minute), 1)
	if err != nil {
		t.Fatal(err)
	}
	if all := s.All(); all.Due() != runs || all.Open != runs || len(op.Value) > 80<<10 || len(s.Unended) < 1000 {
		t.Errorf("%d due in %d bytes, %d named", all.Due(), len(op.Value), len(s.Unended))
	}
}

// TestAnHourIsNotAddedUpOverWhatHasExpired: once its minutes may be gone, what stands stays. Before that it is written over the version that is known.
func TestAnHourIsNotAddedUpOverWhatHasExpired(t *testing.T) {
	at := time.UnixMilli(minute)
	for after, expired := range map[time.Duration]bool{2 * time.Hour: false, 6 * 24 * time.Hour: false, 8 * 24 * time.Hour: true} {
		op, kept, err := stats.PutHour("acme", minute/stats.Hour, 3, stats.Counts{Open: 1}, 7, at.Add(after), 1)
		if err != nil {
			t.Fatal(err)
		}
		want := store.Version(7)
		if expired {
			want = store.Absent
		}
		if op.If != want || kept != expired {
			t.Errorf("after %s: under %s, kept %t", after, op.If, kept)
		}
	}
}

// TestTheLastLookIsLaterThanDefaultRetries, so that a job that says nothing of retries is counted as dead and not as under way.
func TestTheLastLookIsLaterThanDefaultRetries(t *testing.T) {
	def := job.Definition{}.WithDefaults()
	if longest := def.Retry.Longest(def.Timeout.Std()); stats.Within < longest {
		t.Errorf("runs are looked at for %s, and by default they may take %s", stats.Within, longest)
	}
	if want := timer.Lags[timer.Sweeps-1] + stats.LateHours*time.Hour; stats.Within != want {
		t.Errorf("runs are said to be looked at for %s, want %s", stats.Within, want)
	}
	passed := time.Date(2026, 1, 5, 14, 7, 0, 0, time.UTC) // 9 to 10 o'clock was looked at for the last time when the last sweep passed 14 o'clock
	if got := stats.Settled(passed.UnixMilli()); got != passed.Truncate(time.Hour).Add(-4*time.Hour).UnixMilli() {
		t.Errorf("settled up to %s", time.UnixMilli(got).UTC())
	}
}

// TestAPlaceIsReadFromItsKey.
func TestAPlaceIsReadFromItsKey(t *testing.T) {
	s := stats.Sum{Place: stats.Place{Tenant: "acme", Minute: minute / stats.Minute, Shard: 9, Swept: minute/stats.Minute + 8}}
	s.Count(ran(run.Dead, 1, 1))
	op, err := s.Put(time.UnixMilli(minute), 1)
	if err != nil {
		t.Fatal(err)
	}
	item := store.Item{Key: op.Key, Version: 4, Value: op.Value}
	if got, err := stats.OfMinute("acme", item); err != nil || got.Place != s.Place || got.Version != 4 || got.All() != s.All() {
		t.Errorf("%+v, %v", got, err)
	}
	item.Sort = "m#x"
	if _, err := stats.OfMinute("acme", item); !errors.Is(err, record.ErrBroken) {
		t.Errorf("%v", err)
	}
}
