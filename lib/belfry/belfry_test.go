package belfry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

type mail struct {
	To      string `json:"to"`
	Subject string `json:"subject,omitempty"`
}

// open opens a scheduler that the test's end stops.
func open(t *testing.T, at string, opts ...Option) *Belfry {
	t.Helper()
	b, err := Open(t.Context(), at, append([]Option{Logger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func start(t *testing.T, b *Belfry) {
	t.Helper()
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func enqueue[T any](t *testing.T, b *Belfry, name string, payload T, opts ...EnqueueOption) Run {
	t.Helper()
	r, err := Enqueue(t.Context(), b, name, payload, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, b *Belfry, id string) Run {
	t.Helper()
	r, err := b.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// standing is the job as the store has it.
func standing(t *testing.T, b *Belfry, name string) job.Job {
	t.Helper()
	j, err := b.engine.(*embedded).control.Job(t.Context(), tenant, name)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestARunFromEnqueueToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:", Token("bel_of_no_use"), RemoteQueue("elsewhere")) // so that the address alone decides
		var seen []Job[mail]
		Handle(b, "email", func(_ context.Context, job *Job[mail]) error {
			seen = append(seen, *job)
			job.Log.Info("sending", "to", job.Payload.To)
			if job.Attempt == 1 {
				return errors.New("the server is busy")
			}
			job.Result = map[string]string{"sent": job.Payload.To}
			return nil
		}, MaxAttempts(3))
		asked := enqueue(t, b, "email", mail{To: "ann@example.org"}) // before Start, too
		if asked.Job != "email" || asked.State != Queued || asked.ID == "" {
			t.Errorf("asked for %+v", asked)
		}
		start(t, b)
		time.Sleep(time.Minute)
		r := read(t, b, asked.ID)
		if r.State != Succeeded || r.Attempt != 2 || string(r.Result) != `{"sent":"ann@example.org"}` || !strings.Contains(r.Error, "busy") || r.Ended.IsZero() {
			t.Errorf("ended as %+v", r)
		}
		if len(seen) != 2 || seen[0].Run != asked.ID || seen[1].Run != asked.ID || seen[1].Fence <= seen[0].Fence || seen[1].Attempt != 2 ||
			seen[0].Payload.To != "ann@example.org" || !seen[0].Nominal.Equal(asked.Nominal) || seen[0].Name != "email" {
			t.Errorf("the handler saw %+v", seen)
		}
		log, err := b.Log(t.Context(), asked.ID)
		if err != nil || !strings.Contains(string(log), "msg=sending to=ann@example.org") {
			t.Errorf("log %q, %v", log, err)
		}
	})
}

// One job is told of all others that name none themselves, and not of its own runs.
func TestC1_AJobIsToldOfAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:", OnAnyFailed("ops"), OnAnyRecovered("ops"))
		var mu sync.Mutex
		var heard []string
		tells := func(name string) {
			Handle(b, name, func(_ context.Context, job *Job[Told]) error {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, name+" of "+string(job.Payload.Event)+" of "+job.Payload.Run.Job)
				return Permanent(errors.New("nobody is there"))
			})
		}
		tells("ops")
		tells("mine")
		for _, name := range []string{"note", "sum"} {
			Handle(b, name, func(_ context.Context, job *Job[bool]) error {
				if !job.Payload {
					return Permanent(errors.New("no such account"))
				}
				return nil
			})
		}
		start(t, b)
		ends := func(name string, good bool, options ...EnqueueOption) {
			t.Helper()
			enqueue(t, b, name, good, options...)
			time.Sleep(time.Second)
		}
		ends("note", false)
		ends("sum", true)
		ends("note", true)
		ends("sum", false, OnFailed("mine"))
		ends("sum", true)
		enqueue(t, b, "ops", Told{})
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		want := []string{"ops of failed of note", "ops of recovered of note", "mine of failed of sum", "ops of recovered of sum", "ops of  of "}
		if !slices.Equal(heard, want) {
			t.Errorf("told were %q, want %q", heard, want)
		}
	})
}

// Nobody has stored the job that is called. What was to call it ends, and the log says it once an hour.
func TestC1_AJobForAllThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := new(spoken)
		b := open(t, "memory:", OnAnyFailed("ops"), Logger(slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))))
		Handle(b, "note", func(context.Context, *Job[bool]) error { return Permanent(errors.New("no such account")) })
		start(t, b)
		fails := func(n int) {
			t.Helper()
			for range n {
				enqueue(t, b, "note", true)
				time.Sleep(time.Minute)
			}
		}
		warned := func() int { return strings.Count(said.String(), "a job that is called does not exist") }
		fails(50)
		if n := warned(); n != 1 {
			t.Errorf("the first hour warns %d times:\n%s", n, said)
		}
		fails(100)
		if n := warned(); n != 3 || !strings.Contains(said.String(), "tenant=default job=ops event=failed of=note~") {
			t.Errorf("two hours and a half warn %d times:\n%s", n, said)
		}
		ended := map[State]int{}
		for r, err := range b.Runs(t.Context(), "ops") {
			if err != nil {
				t.Fatal(err)
			}
			ended[r.State]++
		}
		if ended[Cancelled] != 150 || len(ended) != 1 {
			t.Errorf("what was to tell of 150 failures: %v", ended)
		}
	})
}

// spoken is what a log has said.
type spoken struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *spoken) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestAJobForAllIsNamedRightly(t *testing.T) {
	for option, named := range map[string]Option{"OnAnyFailed": OnAnyFailed("acme=ops"), "OnAnyMissed": OnAnyMissed(""), "OnAnyRecovered": OnAnyRecovered("tell ops")} {
		if _, err := Open(t.Context(), "memory:", named); !HasCode(err, CodeInvalid) || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v", option, err)
		}
	}
	said := new(spoken)
	b, err := Open(t.Context(), "http://127.0.0.1:1", OnAnyMissed("ops"), Logger(slog.New(slog.NewTextHandler(said, nil))))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context()); err != nil || strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), "option=OnAnyMissed job=ops") {
		t.Errorf("%v, and it says %s", err, said.String())
	}
}

// Whoever enqueues a run says which job is told of its end. That one's handler gets what happened as its payload.
func TestC1_AnEnqueuedRunTellsOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		var mu sync.Mutex
		var heard []Told
		Handle(b, "ops", func(_ context.Context, job *Job[Told]) error {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, job.Payload)
			return nil
		})
		Handle(b, "note", func(_ context.Context, job *Job[string]) error {
			if job.Payload == "bad" {
				return Permanent(errors.New("no such account"))
			}
			return nil
		})
		bad := enqueue(t, b, "note", "bad", OnFailed("ops"), OnSucceeded("ops")) // before Start, and before anybody has put the other job
		start(t, b)
		good, err := EnqueueMany(t.Context(), b, "note", Order[string]{Payload: "good", Options: []EnqueueOption{OnSucceeded("ops"), Delay(time.Minute)}}, Order[string]{Payload: "bad"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Enqueue(t.Context(), b, "note", "x", OnFailed("nobody")); !HasCode(err, CodeInvalid) {
			t.Errorf("who is nobody is called: %v", err)
		}
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(heard) != 2 || heard[0].Event != "failed" || heard[0].Run.ID != bad.ID || !strings.Contains(heard[0].Run.Error, "no such account") ||
			heard[1].Event != "succeeded" || heard[1].Run.ID != good[0].Run.ID || heard[1].Run.State != "succeeded" {
			t.Errorf("heard %+v", heard)
		}
	})
}

func TestWhenAnEnqueuedRunStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		began := time.Now()
		var mu sync.Mutex
		at := map[string]time.Duration{}
		Handle(b, "note", func(_ context.Context, job *Job[string]) error {
			mu.Lock()
			defer mu.Unlock()
			at[job.Payload] = time.Since(began)
			return nil
		})
		start(t, b)
		enqueue(t, b, "note", "now")
		enqueue(t, b, "note", "delayed", Delay(3*time.Minute))
		enqueue(t, b, "note", "at", At(began.Add(90*time.Second)))
		first := enqueue(t, b, "note", "once", Key("k"))
		if again := enqueue(t, b, "note", "once", Key("k")); again.ID != first.ID {
			t.Errorf("one key gave %s and %s", first.ID, again.ID)
		}
		if _, err := Enqueue(t.Context(), b, "note", "another", Key("k")); !HasCode(err, CodeKeyReused) {
			t.Errorf("another request under the key: %v", err)
		}
		time.Sleep(4 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := map[string]time.Duration{"now": 0, "delayed": 3 * time.Minute, "at": 90 * time.Second, "once": 0}
		for name, due := range want {
			if got, ok := at[name]; !ok || got != due {
				t.Errorf("%s started after %s, want %s", name, got, due)
			}
		}
		if len(at) != len(want) {
			t.Errorf("%d ran", len(at))
		}
	})
}

func TestWhatAHandlersErrorMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "fails", func(_ context.Context, job *Job[string]) error {
			switch job.Payload {
			case "permanent":
				return fmt.Errorf("send: %w", Permanent(errors.New("no such address")))
			case "later":
				if job.Attempt == 1 {
					return RetryAfter(2*time.Minute, errors.New("come back"))
				}
				return nil
			case "panic":
				panic("oh")
			}
			return errors.New("always")
		}, MaxAttempts(2))
		Handle(b, "odd", func(_ context.Context, job *Job[string]) error { job.Result = func() {}; return nil })
		start(t, b)
		began := time.Now()
		ids := map[string]string{}
		for _, what := range []string{"permanent", "later", "panic", "always"} {
			ids[what] = enqueue(t, b, "fails", what).ID
		}
		ids["odd"] = enqueue(t, b, "odd", "").ID
		time.Sleep(4 * time.Minute)
		for what, want := range map[string]Run{"permanent": {State: Failed, Attempt: 1}, "later": {State: Succeeded, Attempt: 2},
			"panic": {State: Dead, Attempt: 2}, "always": {State: Dead, Attempt: 2}, "odd": {State: Failed, Attempt: 1}} {
			if r := read(t, b, ids[what]); r.State != want.State || r.Attempt != want.Attempt {
				t.Errorf("%s: %+v", what, r)
			}
		}
		if r := read(t, b, ids["later"]); r.Started.Sub(began) < 2*time.Minute {
			t.Errorf("tried again after %s, want two minutes", r.Started.Sub(began))
		}
		var dead []string
		for r, err := range b.Runs(t.Context(), "fails", Dead, Failed) {
			if err != nil {
				t.Fatal(err)
			}
			dead = append(dead, r.ID)
		}
		if want := []string{ids["permanent"], ids["panic"], ids["always"]}; len(dead) != 3 || slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(dead, id) }) {
			t.Errorf("dead letters %v", dead)
		}
		if err := b.Retry(t.Context(), ids["permanent"]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r := read(t, b, ids["permanent"]); r.Attempt != 2 {
			t.Errorf("after a retry: %+v", r)
		}
	})
}

func TestAHandlersWordsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "slow", func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			return fmt.Errorf("step 3: %w", ctx.Err())
		}, Timeout(time.Second), MaxAttempts(1))
		start(t, b)
		r := enqueue(t, b, "slow", "")
		time.Sleep(10 * time.Second)
		if got := read(t, b, r.ID); got.State != Dead || got.Error != "timeout: the attempt ran into its timeout: step 3: context deadline exceeded" {
			t.Errorf("ended as %+v", got)
		}
	})
}

func TestPayloadsAreOfTheHandlersType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		var called atomic.Int32
		Handle(b, "email", func(context.Context, *Job[mail]) error { called.Add(1); return nil })
		Handle(b, "raw", func(_ context.Context, job *Job[json.RawMessage]) error { job.Result = job.Payload; return nil })
		start(t, b)
		if _, err := Enqueue(t.Context(), b, "email", "ann"); !HasCode(err, CodeInvalid) || !strings.Contains(err.Error(), "want a belfry.mail") {
			t.Errorf("a string for mail: %v", err)
		}
		if err := b.Schedule(t.Context(), "email", "@daily", Payload(7)); !HasCode(err, CodeInvalid) {
			t.Errorf("an int for mail: %v", err)
		}
		if _, err := Enqueue(t.Context(), b, "raw", json.RawMessage("{")); !HasCode(err, CodeInvalid) {
			t.Errorf("broken JSON: %v", err)
		}
		// Another process may send what this one does not know.
		for _, payload := range []string{`{"to": "ann", "cc": "bob"}`, `{"to": 7}`, `[]`} {
			r, err := b.engine.trigger(t.Context(), "email", requestOf(payload))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := read(t, b, r.ID); got.State != Failed || got.Attempt != 1 || !strings.Contains(got.Error, "the payload does not fit belfry.mail") {
				t.Errorf("%s: %+v", payload, got)
			}
		}
		if n := called.Load(); n != 0 {
			t.Errorf("the handler was called %d times with what it cannot read", n)
		}
		r := enqueue(t, b, "raw", json.RawMessage(`{"any":1}`))
		synctest.Wait()
		if got := read(t, b, r.ID); string(got.Result) != `{"any":1}` {
			t.Errorf("raw: %+v", got)
		}
	})
}

func TestASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		var mu sync.Mutex
		fires := map[string][]string{}
		note := func(_ context.Context, job *Job[string]) error {
			mu.Lock()
			defer mu.Unlock()
			fires[job.Name+" "+job.Payload] = append(fires[job.Name+" "+job.Payload], job.Nominal.Format(time.RFC3339))
			return nil
		}
		Handle(b, "report", note)
		Handle(b, "poll", note)
		start(t, b)
		schedule := func(name, cron string, opts ...ScheduleOption) {
			t.Helper()
			if err := b.Schedule(t.Context(), name, cron, opts...); err != nil {
				t.Fatal(err)
			}
		}
		schedule("report", "40 5 * * 6", In("Asia/Kolkata")) // the bubble's clock begins on Saturday, 2000-01-01, at 05:30 there
		schedule("report", "12 0 * * 6", As("weekend"), Payload("short"))
		schedule("poll", "@every 4m")
		time.Sleep(13 * time.Minute)
		want := map[string]string{
			"report ":       "2000-01-01T00:10:00Z",
			"weekend short": "2000-01-01T00:12:00Z",
			"poll ":         "2000-01-01T00:04:00Z 2000-01-01T00:08:00Z 2000-01-01T00:12:00Z",
		}
		mu.Lock()
		for name, times := range want {
			if got := strings.Join(fires[name], " "); got != times {
				t.Errorf("%s fired at %s, want %s", name, got, times)
			}
		}
		clear(fires)
		mu.Unlock()
		for _, name := range []string{"report", "weekend", "poll", "never-there"} {
			if err := b.Unschedule(t.Context(), name); err != nil {
				t.Errorf("unschedule %s: %v", name, err)
			}
		}
		time.Sleep(5 * time.Minute)
		mu.Lock()
		if len(fires) > 0 {
			t.Errorf("fired after Unschedule: %v", fires)
		}
		mu.Unlock()
		enqueue(t, b, "report", "by hand") // the job itself is still there
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(fires["report by hand"]) != 1 {
			t.Errorf("enqueued after Unschedule: %v", fires)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "email", func(context.Context, *Job[mail]) error { return nil })
		ctx := t.Context()
		for name, row := range map[string]struct {
			code Code
			says string
			do   func() error
		}{
			"BadCron":      {CodeInvalid, "hour", func() error { return b.Schedule(ctx, "email", "0 25 * * *") }},
			"BadZone":      {CodeInvalid, "timezone", func() error { return b.Schedule(ctx, "email", "@daily", In("Berlin")) }},
			"BadEvery":     {CodeInvalid, "every", func() error { return b.Schedule(ctx, "email", "@every soon") }},
			"NoHandler":    {CodeInvalid, "call Handle first", func() error { return b.Schedule(ctx, "other", "@daily") }},
			"NoJob":        {CodeJobNotFound, "other", func() error { _, err := Enqueue(ctx, b, "other", 1); return err }},
			"BothTimes":    {CodeInvalid, "not both", func() error { _, err := Enqueue(ctx, b, "email", mail{}, At(time.Now()), Delay(1)); return err }},
			"NoPayload":    {CodeInvalid, "no JSON form", func() error { _, err := Enqueue(ctx, b, "other", func() {}); return err }},
			"NoRun":        {CodeRunNotFound, "email~", func() error { _, err := b.Run(ctx, "email~0mwqknmhs"); return err }},
			"NoID":         {CodeInvalid, "run", func() error { return b.Cancel(ctx, "x", "") }},
			"NoState":      {CodeInvalid, "state", func() error { return first(b.Runs(ctx, "email", "lost")) }},
			"PauseNothing": {CodeJobNotFound, "other", func() error { return b.Pause(ctx, "other", "") }},
		} {
			if err := row.do(); !HasCode(err, row.code) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v, want code %s about %s", name, err, row.code, row.says)
			}
		}
	})
	for _, at := range []string{"", "pebble:", "pebble://host/a", "pebble://", "memory:x", "redis://localhost", "data", "pebble:%zz"} {
		if b, err := Open(t.Context(), at); !HasCode(err, CodeInvalid) || b != nil {
			t.Errorf("open %q: %v", at, err)
		}
	}
	if _, err := Open(t.Context(), "memory:", Concurrency(0)); !HasCode(err, CodeInvalid) {
		t.Errorf("no workers: %v", err)
	}
	if _, err := Open(t.Context(), "memory:", Logger(nil)); !HasCode(err, CodeInvalid) {
		t.Errorf("no logger: %v", err)
	}
}

func first(runs func(func(Run, error) bool)) (err error) {
	runs(func(_ Run, e error) bool { err = e; return false })
	return err
}

func TestOptionsThatCannotBeAreToldByStart(t *testing.T) {
	b := open(t, "memory:")
	Handle(b, "slow", func(context.Context, *Job[string]) error { return nil }, Timeout(48*time.Hour))
	Handle(b, "often", func(context.Context, *Job[string]) error { return nil }, MaxAttempts(1000), AtMostOnce())
	Handle(b, "many", func(context.Context, *Job[string]) error { return nil }, SkipOverlap(1001))
	err := b.Start(t.Context())
	if !HasCode(err, CodeInvalid) || !strings.Contains(err.Error(), "job slow: timeout") || !strings.Contains(err.Error(), "job often: retry.max_attempts") || !strings.Contains(err.Error(), "job many: overlap.limit") {
		t.Errorf("started: %v", err)
	}
}

func TestHandlePanicsWhereTheProgramIsWrong(t *testing.T) {
	b := open(t, "memory:")
	fine := func(context.Context, *Job[string]) error { return nil }
	Handle(b, "taken", fine)
	panics := func(name string, wrong func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s was accepted", name)
			}
		}()
		wrong()
	}
	panics("a name twice", func() { Handle(b, "taken", fine) })
	panics("no name", func() { Handle(b, "no name", fine) })
	panics("no function", func() { Handle[string](b, "nil", nil) })
	start(t, b)
	panics("a handler after Start", func() { Handle(b, "late", fine) })
}

func TestAnUnchangedProgramChangesNothing(t *testing.T) {
	data := "pebble://" + t.TempDir()
	program := func(change ...func(*Belfry)) *Belfry {
		b, err := Open(t.Context(), data, Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		opts := []JobOption{Timeout(time.Minute)}
		if len(change) > 0 {
			opts = append(opts, MaxAttempts(9))
		}
		Handle(b, "report", func(context.Context, *Job[mail]) error { return nil }, opts...)
		start(t, b)
		if err := b.Schedule(t.Context(), "report", "0 3 * * *", In("Europe/Berlin"), Payload(mail{To: "ann"})); err != nil {
			t.Fatal(err)
		}
		return b
	}
	end := func(b *Belfry) {
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b := program()
	before := standing(t, b, "report")
	if _, err := Open(t.Context(), data); !HasCode(err, CodeInUse) {
		t.Errorf("a second process opens the folder: %v", err)
	}
	end(b)

	b = program()
	if after := standing(t, b, "report"); after.Generation != before.Generation {
		t.Errorf("the same program made generation %d of %d", after.Generation, before.Generation)
	}
	if err := b.Pause(t.Context(), "report", "holidays"); err != nil {
		t.Fatal(err)
	}
	end(b)

	b = program()
	if after := standing(t, b, "report"); !after.Def.Paused {
		t.Error("a restart resumed what an operator had paused")
	}
	if err := b.Resume(t.Context(), "report"); err != nil {
		t.Fatal(err)
	}
	end(b)

	b = program(func(*Belfry) {})
	after := standing(t, b, "report")
	if after.Generation == before.Generation || after.Def.Retry.MaxAttempts != 9 || after.Def.Schedule == nil || after.Def.Timeout.Std() != time.Minute {
		t.Errorf("a changed program made %+v", after)
	}
	end(b)
}

func TestStopWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "slow", func(ctx context.Context, _ *Job[string]) error {
			time.Sleep(20 * time.Second)
			return nil
		})
		start(t, b)
		enqueue(t, b, "slow", "")
		synctest.Wait()
		began := time.Now()
		if err := b.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("stopped after %s, want the 20s of the handler", took)
		}
		if _, err := Enqueue(t.Context(), b, "slow", ""); !HasCode(err, CodeClosed) {
			t.Errorf("after Stop: %v", err)
		}
		if err := b.Start(t.Context()); err == nil {
			t.Error("started after Stop")
		}
	})
}

func TestWhatIsStoppedGoesOnAtTheNextStart(t *testing.T) {
	data := "pebble://" + t.TempDir()
	started, done := make(chan int, 2), make(chan int, 2)
	var patient atomic.Bool
	program := func() *Belfry {
		b := open(t, data)
		Handle(b, "slow", func(ctx context.Context, job *Job[string]) error {
			started <- job.Attempt
			if !patient.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			done <- job.Attempt
			return nil
		}, MaxAttempts(1), Timeout(time.Hour))
		start(t, b)
		return b
	}
	b := program()
	asked := enqueue(t, b, "slow", "")
	<-started
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Stop(now); err != nil { // no time left
		t.Error(err)
	}
	patient.Store(true)
	b = program()
	if n := <-done; n != 2 {
		t.Errorf("attempt %d after the restart, want 2", n)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	b = program()
	if r := read(t, b, asked.ID); r.State != Succeeded || r.Attempt != 2 {
		t.Errorf("one attempt was allowed, and none was used up by the stop: %+v", r)
	}
}

func TestCancelEndsAHandlersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "slow", func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			return ctx.Err()
		}, Timeout(time.Hour))
		start(t, b)
		r := enqueue(t, b, "slow", "")
		later := enqueue(t, b, "slow", "", Delay(time.Hour))
		synctest.Wait()
		for _, id := range []string{r.ID, later.ID} {
			if err := b.Cancel(t.Context(), id, "not needed"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := read(t, b, id); got.State != Cancelled {
				t.Errorf("%+v", got)
			}
		}
		if err := b.Cancel(t.Context(), r.ID, ""); !HasCode(err, CodeRunEnded) {
			t.Errorf("cancelled twice: %v", err)
		}
	})
}
