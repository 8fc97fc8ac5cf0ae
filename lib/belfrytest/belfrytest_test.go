package belfrytest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
	"github.com/belfry-scheduler/belfry/lib/belfrytest"
	"github.com/belfry-scheduler/belfry/lib/job"
)

type mail struct{ To string }

func schedule(t testing.TB, h *belfrytest.Harness, name, cron string, opts ...belfry.ScheduleOption) {
	t.Helper()
	if err := h.Belfry.Schedule(t.Context(), name, cron, opts...); err != nil {
		t.Fatal(err)
	}
}

func enqueue[T any](t testing.TB, h *belfrytest.Harness, name string, payload T, opts ...belfry.EnqueueOption) belfry.Run {
	t.Helper()
	r, err := belfry.Enqueue(t.Context(), h.Belfry, name, payload, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Everything runs at its own instant and in the order of the instants, whatever it is.
func TestEverythingRunsAtItsInstant(t *testing.T) {
	h := belfrytest.New(t)
	began := h.Now()
	var seen []string
	belfry.Handle(h.Belfry, "note", func(_ context.Context, job *belfry.Job[string]) error {
		seen = append(seen, fmt.Sprintf("%s %s", h.Now().Sub(began), job.Payload))
		switch {
		case job.Payload == "fails" && job.Attempt < 3:
			return belfry.RetryAfter(time.Duration(job.Attempt)*10*time.Minute, errors.New("not yet"))
		case job.Payload == "chain":
			_, err := belfry.Enqueue(context.Background(), h.Belfry, "note", "link")
			return err
		}
		return nil
	})
	schedule(t, h, "note", "*/40 * * * *", belfry.As("cron"), belfry.Payload("cron"))
	enqueue(t, h, "note", "late", belfry.Delay(2*time.Hour))
	enqueue(t, h, "note", "fails")
	enqueue(t, h, "note", "soon", belfry.Delay(90*time.Second))
	enqueue(t, h, "note", "chain", belfry.At(began.Add(35*time.Minute)))
	h.Advance(0)
	if want := []string{"0s fails"}; !slices.Equal(seen, want) {
		t.Fatalf("before the clock has moved: %q, want %q", seen, want)
	}
	h.Advance(125 * time.Minute)
	want := []string{"0s fails", "1m30s soon", "10m0s fails", "30m0s fails", "35m0s chain", "35m0s link", "40m0s cron", "1h0m0s cron", "1h40m0s cron",
		"2h0m0s cron", "2h0m0s late"}
	slices.Sort(seen[9:])
	if !slices.Equal(seen, want) {
		t.Errorf("ran\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if !h.Now().Equal(began.Add(125 * time.Minute)) {
		t.Errorf("the clock is at %s", h.Now())
	}
	h.RequireSucceeded("cron", 4)
	h.RequireSucceeded("note", 5)
}

// What is due at one instant has an order too, and it is the same in every run of a test.
func TestTheOrderIsTheSameEveryTime(t *testing.T) {
	var before []string
	for range 5 {
		h := belfrytest.New(t)
		var seen []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			belfry.Handle(h.Belfry, name, func(_ context.Context, job *belfry.Job[int]) error {
				seen = append(seen, fmt.Sprint(job.Name, job.Payload, job.Attempt))
				if job.Payload == 2 && job.Attempt < 3 {
					return errors.New("not yet")
				}
				return nil
			})
			schedule(t, h, name, "*/30 * * * *")
			enqueue(t, h, name, 1, belfry.Delay(time.Hour))
			enqueue(t, h, name, 2)
		}
		h.Advance(3 * time.Hour)
		if before != nil && !slices.Equal(seen, before) {
			t.Fatalf("ran\n%v\nand before\n%v", seen, before)
		}
		before = seen
	}
	if len(before) != 8*(6+1+3) {
		t.Errorf("%d attempts", len(before))
	}
}

func TestAMonthOfADailyCron(t *testing.T) {
	h := belfrytest.New(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var nominal []string
	belfry.Handle(h.Belfry, "report", func(_ context.Context, job *belfry.Job[struct{}]) error {
		nominal = append(nominal, job.Nominal.Format("02 15:04"))
		return nil
	})
	schedule(t, h, "report", "30 2 * * *", belfry.In("Europe/Berlin"))
	h.Advance(31 * 24 * time.Hour)
	h.RequireSucceeded("report", 31)
	// On 29 March the clocks of Berlin go from 02:00 to 03:00: it fires once, at the end of the gap.
	if got := strings.Join(nominal[26:29], ", "); got != "28 01:30, 29 01:00, 30 00:30" {
		t.Errorf("around the change of the clocks it fired at %s", got)
	}
}

func TestWhatWasEnqueued(t *testing.T) {
	h := belfrytest.New(t)
	belfry.Handle(h.Belfry, "email", func(_ context.Context, job *belfry.Job[mail]) error { job.Result = job.Payload.To; return nil })
	schedule(t, h, "email", "@daily", belfry.Payload(mail{To: "all"}))
	long := strings.Repeat("x", 10_000)
	enqueue(t, h, "email", mail{To: "bob"}, belfry.Delay(time.Hour))
	enqueue(t, h, "email", mail{To: "ann"}, belfry.Key("1"))
	enqueue(t, h, "email", mail{To: "ann"}, belfry.Key("1"))
	enqueue(t, h, "email", mail{To: long}, belfry.Delay(30*time.Hour))
	h.Advance(25 * time.Hour)
	got := belfrytest.Enqueued[mail](h, "email")
	if len(got) != 3 || got[0].Payload.To != "ann" || got[0].Run.State != belfry.Succeeded || got[1].Payload.To != "bob" ||
		got[2].Payload.To != long || got[2].Run.State != belfry.Scheduled || !got[1].Run.Nominal.Equal(h.Now().Add(-24*time.Hour)) {
		t.Errorf("enqueued %.300v", got)
	}
	runs := h.Runs("email")
	if len(runs) != 4 || string(runs[0].Result) != `"ann"` || string(runs[2].Result) != `"all"` {
		t.Errorf("runs %+v", runs)
	}
	if got := belfrytest.Enqueued[mail](h, "other"); len(got) != 0 {
		t.Errorf("of a job that is not there: %v", got)
	}
}

func TestDeadLettersAndRetries(t *testing.T) {
	h := belfrytest.New(t)
	down := true
	belfry.Handle(h.Belfry, "email", func(context.Context, *belfry.Job[mail]) error {
		if down {
			return errors.New("the server is down")
		}
		return nil
	}, belfry.MaxAttempts(4), belfry.Backoff(time.Hour, 3*time.Hour)) // longer than a message waits: the store wakes it
	r := enqueue(t, h, "email", mail{To: "ann"})
	h.Advance(24 * time.Hour)
	h.RequireDeadLetters("email", 1)
	h.RequireSucceeded("other", 0)
	down = false
	if err := h.Belfry.Retry(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	h.Advance(0)
	h.RequireSucceeded("email", 1)
	h.RequireDeadLetters("email", 0)
}

// The list over all jobs is kept by the sweeps, which go their way here too.
func TestRunsOfAllJobs(t *testing.T) {
	h := belfrytest.New(t)
	for _, name := range []string{"a", "b"} {
		belfry.Handle(h.Belfry, name, func(context.Context, *belfry.Job[string]) error { return nil })
	}
	schedule(t, h, "a", "0 */5 * * *")
	enqueue(t, h, "b", "now")
	enqueue(t, h, "b", "then", belfry.Delay(7*time.Hour))
	enqueue(t, h, "b", "soon", belfry.Delay(20*time.Second))
	for _, step := range []time.Duration{0, 4 * time.Minute, 11 * time.Hour, 24 * time.Hour, 90 * time.Second} {
		h.Advance(step)
		if all, want := len(h.Runs("")), len(h.Runs("a"))+len(h.Runs("b")); all != want {
			t.Errorf("at %s: %d runs of all jobs, want %d", h.Now(), all, want)
		}
	}
}

// What is away for two hours fills no dead letters, and what is away for good fills them the same day. The waits are those that are promised:
// short ones are of the queue's, long ones of the store.
func TestByDefaultRetriesGoOnForHours(t *testing.T) {
	h := belfrytest.New(t)
	began := h.Now()
	var starts []time.Time
	belfry.Handle(h.Belfry, "back", func(context.Context, *belfry.Job[string]) error {
		if h.Now().Sub(began) < 2*time.Hour {
			return errors.New("not yet")
		}
		return nil
	})
	belfry.Handle(h.Belfry, "gone", func(context.Context, *belfry.Job[string]) error {
		starts = append(starts, h.Now())
		return errors.New("no more")
	})
	enqueue(t, h, "back", "")
	enqueue(t, h, "gone", "")
	h.Advance(2*time.Hour - time.Second)
	h.RequireDeadLetters("gone", 0)
	h.Advance(3 * time.Hour)
	h.RequireSucceeded("back", 1)
	h.RequireDeadLetters("back", 0)
	h.RequireDeadLetters("gone", 1)
	if len(starts) != job.DefaultAttempts {
		t.Fatalf("%d attempts, want %d", len(starts), job.DefaultAttempts)
	}
	for n := 1; n < len(starts); n++ {
		least, most := job.Definition{}.WithDefaults().Retry.Wait(n)
		if wait := starts[n].Sub(starts[n-1]); wait < least-time.Millisecond || wait > most+5*time.Second {
			t.Errorf("waited %s behind failure %d, want %s to %s", wait, n, least, most)
		}
	}
}

// A run that is tried for longer than a message may live goes on under the checks that a sweep has armed.
func TestRetriesForDays(t *testing.T) {
	h := belfrytest.New(t)
	attempts := 0
	belfry.Handle(h.Belfry, "poll", func(_ context.Context, job *belfry.Job[string]) error {
		attempts++
		return belfry.RetryAfter(10*time.Minute, errors.New("not yet"))
	}, belfry.MaxAttempts(100), belfry.Backoff(time.Second, time.Minute))
	enqueue(t, h, "poll", "")
	h.Advance(3 * 24 * time.Hour)
	h.RequireDeadLetters("poll", 1)
	if attempts != 100 {
		t.Errorf("%d attempts, want 100", attempts)
	}
}

func TestPausedJobsWait(t *testing.T) {
	h := belfrytest.New(t)
	ran := 0
	belfry.Handle(h.Belfry, "email", func(context.Context, *belfry.Job[mail]) error { ran++; return nil })
	schedule(t, h, "email", "@hourly")
	h.Advance(150 * time.Minute)
	if err := h.Belfry.Pause(t.Context(), "email", "maintenance"); err != nil {
		t.Fatal(err)
	}
	r := enqueue(t, h, "email", mail{})
	h.Advance(24 * time.Hour)
	if ran != 2 {
		t.Errorf("%d runs of a job that was paused after two", ran)
	}
	if err := h.Belfry.Resume(t.Context(), "email"); err != nil {
		t.Fatal(err)
	}
	h.Advance(20 * time.Minute)
	if got, err := h.Belfry.Run(t.Context(), r.ID); err != nil || got.State != belfry.Succeeded || ran != 3 {
		t.Errorf("after the pause: %+v, %v, %d runs", got, err, ran)
	}
}

// The code under test may start and stop its scheduler as it does in a program.
func TestStartAndStopOfTheProgram(t *testing.T) {
	h := belfrytest.New(t)
	ran := 0
	belfry.Handle(h.Belfry, "a", func(context.Context, *belfry.Job[string]) error { ran++; return nil })
	if err := h.Belfry.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Belfry.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	enqueue(t, h, "a", "")
	h.Advance(time.Second)
	if err := h.Belfry.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := belfry.Enqueue(t.Context(), h.Belfry, "a", ""); !belfry.HasCode(err, belfry.CodeClosed) || ran != 1 {
		t.Errorf("after Stop: %v, %d runs", err, ran)
	}
}

// failing is a test that is told to fail, and notes it.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

func TestWhatTheRequirementsSay(t *testing.T) {
	f := &failing{TB: t}
	h := belfrytest.New(f)
	belfry.Handle(h.Belfry, "email", func(_ context.Context, job *belfry.Job[mail]) error {
		if job.Payload.To == "" {
			return belfry.Permanent(errors.New("nobody to write to"))
		}
		return nil
	})
	enqueue(t, h, "email", mail{})
	enqueue(t, h, "email", mail{To: "ann"})
	h.Advance(0)
	for name, row := range map[string]struct {
		do   func()
		want string
	}{
		"Succeeded":   {func() { h.RequireSucceeded("email", 1) }, "failed, attempt 1: handler: nobody to write to"},
		"DeadLetters": {func() { h.RequireDeadLetters("email", 2) }, "want 2 runs of email that have failed for good"},
		"None":        {func() { h.RequireSucceeded("other", 1) }, "its runs: none"},
		"Back":        {func() { h.Advance(-time.Second) }, "not negative"},
		"BackTo":      {func() { h.AdvanceTo(h.Now().Add(-time.Second)) }, "goes forward alone"},
		"Type":        {func() { belfrytest.Enqueued[int](h, "email") }, "no int"},
	} {
		f.said = ""
		func() {
			defer func() { _ = recover() }()
			row.do()
		}()
		if !strings.Contains(f.said, row.want) {
			t.Errorf("%s: %q, want %q in it", name, f.said, row.want)
		}
	}
}

func TestAHandlerMayNotMoveTheClock(t *testing.T) {
	f := &failing{TB: t}
	h := belfrytest.New(f)
	belfry.Handle(h.Belfry, "a", func(context.Context, *belfry.Job[string]) error { h.Advance(0); return nil }, belfry.MaxAttempts(1))
	enqueue(t, h, "a", "")
	h.Advance(0)
	if !strings.Contains(f.said, "called by a handler") {
		t.Errorf("it was told %q", f.said)
	}
}

// BenchmarkAMonthOfADailyCron is what a user's test pays for each month that it skips.
func BenchmarkAMonthOfADailyCron(b *testing.B) {
	h := belfrytest.New(b)
	belfry.Handle(h.Belfry, "report", func(context.Context, *belfry.Job[struct{}]) error { return nil })
	schedule(b, h, "report", "0 3 * * *")
	for b.Loop() {
		h.Advance(30 * 24 * time.Hour)
	}
}

// BenchmarkAnHourOfASecondlyCron is the densest schedule that there is.
func BenchmarkAnHourOfASecondlyCron(b *testing.B) {
	h := belfrytest.New(b)
	belfry.Handle(h.Belfry, "report", func(context.Context, *belfry.Job[struct{}]) error { return nil })
	schedule(b, h, "report", "* * * * * *")
	for b.Loop() {
		h.Advance(time.Hour)
	}
}

// A handler that stops its Belfry comes to its end, and nothing runs after it.
func TestAHandlerMayStop(t *testing.T) {
	for name, ctx := range map[string]func(context.Context) context.Context{
		"ItsContext":     func(ctx context.Context) context.Context { return ctx },
		"AnotherContext": func(context.Context) context.Context { return context.Background() },
	} {
		t.Run(name, func(t *testing.T) {
			h := belfrytest.New(t)
			ran := 0
			belfry.Handle(h.Belfry, "a", func(of context.Context, _ *belfry.Job[string]) error {
				ran++
				return h.Belfry.Stop(ctx(of))
			})
			schedule(t, h, "a", "@hourly")
			enqueue(t, h, "a", "")
			began := h.Now()
			h.Advance(24 * time.Hour)
			if err := h.Belfry.Stop(t.Context()); err != nil || ran != 1 || h.Now().Sub(began) != 24*time.Hour {
				t.Errorf("stopped: %v, %d runs, want one; the clock is at %s", err, ran, h.Now())
			}
			h.Advance(time.Hour)
			if _, err := belfry.Enqueue(t.Context(), h.Belfry, "a", ""); !belfry.HasCode(err, belfry.CodeClosed) || ran != 1 {
				t.Errorf("after Stop: %v, %d runs", err, ran)
			}
		})
	}
}

// Stop has no more time: the handler's context ends.
func TestStopEndsAHandlerWhenItsTimeIsOver(t *testing.T) {
	h := belfrytest.New(t)
	under := make(chan struct{})
	belfry.Handle(h.Belfry, "a", func(ctx context.Context, _ *belfry.Job[string]) error {
		close(under)
		<-ctx.Done()
		return ctx.Err()
	}, belfry.Timeout(time.Hour))
	enqueue(t, h, "a", "")
	advanced := make(chan struct{})
	go func() { defer close(advanced); h.Advance(0) }()
	<-under
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Belfry.Stop(now); err != nil {
		t.Error(err)
	}
	<-advanced
}
